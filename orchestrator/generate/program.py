"""Readable C++ with MPI for generated functions (section IV, figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from orchestrator.generate.complexity import RANKS, Computation, Element, Function, text
from orchestrator.generate.counts import INNER, OUTER, REPEATED, SINGLE, message
from orchestrator.generate.population import Range

HEADER = "benchmark.hpp"
_WORK = ("arrays.a[k % kWindow] += arrays.b[k % kWindow];", "arrays.a[k % kWindow] *= 1.0000001;")

# Buffers and call of every MPI function; `count` elements are the whole vector, `part` a rank's share.
_CALLS = {
    "allgather": (
        "part",
        "part * ranks",
        "MPI_Allgather(arrays.message.data(), part, MPI_DOUBLE, arrays.received.data(), part, MPI_DOUBLE, "
        "MPI_COMM_WORLD);",
        ("ranks * 8.0 * part", "ranks * 8.0 * part"),
    ),
    "allreduce": (
        "count",
        "count",
        "MPI_Allreduce(arrays.message.data(), arrays.received.data(), count, MPI_DOUBLE, MPI_SUM, "
        "MPI_COMM_WORLD);",
        ("ranks * 8.0 * count", "ranks * 8.0 * count"),
    ),
    "barrier": ("0", "0", "MPI_Barrier(MPI_COMM_WORLD);", ("0", "0")),
    "bcast": (
        "count",
        "0",
        "MPI_Bcast(arrays.message.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD);",
        ("rank == 0 ? ranks * 8.0 * count : 0", "8.0 * count"),
    ),
    "gather": (
        "part",
        "part * ranks",
        "MPI_Gather(arrays.message.data(), part, MPI_DOUBLE, arrays.received.data(), part, MPI_DOUBLE, 0, "
        "MPI_COMM_WORLD);",
        ("8.0 * part", "rank == 0 ? ranks * 8.0 * part : 0"),
    ),
    "reduce": (
        "count",
        "count",
        "MPI_Reduce(arrays.message.data(), arrays.received.data(), count, MPI_DOUBLE, MPI_SUM, 0, "
        "MPI_COMM_WORLD);",
        ("8.0 * count", "rank == 0 ? ranks * 8.0 * count : 0"),
    ),
    "scatter": (
        "part * ranks",
        "part",
        "MPI_Scatter(arrays.message.data(), part, MPI_DOUBLE, arrays.received.data(), part, MPI_DOUBLE, 0, "
        "MPI_COMM_WORLD);",
        ("rank == 0 ? ranks * 8.0 * part : 0", "8.0 * part"),
    ),
}
_PAIR = """\
    const int partner = rank ^ 1;  // ranks work in pairs; a last one without partner rests
    if (partner >= ranks) return;
    for (std::size_t call = 0; call < calls; ++call) {
        if (rank % 2 == 0) {
            MPI_Send(arrays.message.data(), count, MPI_DOUBLE, partner, 0, MPI_COMM_WORLD);
            count_call(8.0 * count, 0);
        } else {
            MPI_Recv(arrays.received.data(), count, MPI_DOUBLE, partner, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            count_call(0, 8.0 * count);
        }
    }
"""


def header() -> str:
    """Return the text of the header that every program includes."""
    return resources.files("orchestrator.generate").joinpath(HEADER).read_text(encoding="utf-8")


def makefile(programs: Sequence[str]) -> str:
    """Return a Makefile: one binary per program that measures time, and one that counts."""
    names = " ".join(programs)
    counting = " ".join(f"{name}-counts" for name in programs)
    return f"""\
# Generated. `make` builds every program twice: to measure time, and to count effort.
ifeq ($(origin CXX),default)
CXX = mpicxx
endif
CXXFLAGS = -O2 -std=c++17 -Wall -Wextra

all: {names} {counting}

%: %.cpp {HEADER}
\t$(CXX) $(CXXFLAGS) -o $@ $<

%-counts: %.cpp {HEADER}
\t$(CXX) $(CXXFLAGS) -DCOUNT -o $@ $<

clean:
\trm -f {names} {counting}

.PHONY: all clean
"""


def source(functions: Sequence[Function], range_: Range) -> str:
    """Return the text of one program; its arguments are the parameters but for the number of ranks."""
    others = [name for name in range_.parameters if name != RANKS]
    fields = ", ".join(f"{name} = {range_.smallest[name]:g}" for name in range_.parameters)
    reads = "\n".join(f"    x.{name} = std::atof(arguments[{k}]);" for k, name in enumerate(others, start=1))
    usage = " ".join(name.upper() for name in others)
    body = "\n\n".join(_function(function, range_) for function in functions)
    calls = "\n".join(f"    {function.name}(x, arrays);" for function in functions)
    return f"""\
// Generated: functions of known complexity. See manifest.json.
#include "{HEADER}"

struct Parameters {{
    double {fields};
}};

// Without C++ name mangling and inlining, so that profiles show these names.
extern "C" {{

{body}

}}

int main(int count, char** arguments) {{
    MPI_Init(&count, &arguments);
    if (count != {len(others) + 1}) {{
        std::fprintf(stderr, "usage: %s {usage}\\n", arguments[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }}
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    Parameters x;
    x.{RANKS} = ranks;
{reads}
    Arrays arrays;
{calls}
    report();
    MPI_Finalize();
    return 0;
}}
"""


def _function(function: Function, range_: Range) -> str:
    name, computation, communication = function.name, function.computation, function.communication
    mpi = "MPI_" + communication.operation.capitalize()
    comments = [
        f"// computation ({computation.arrangement}): {text(computation.terms)}",
        f"// {mpi}: {text(communication.terms)}",
    ]
    return "\n".join(
        [
            *comments,
            f"NOINLINE void {name}_compute(const Parameters& x, Arrays& arrays) {{",
            *_loops(computation, range_),
            f'    Timer timer("main->{name}->{name}_compute");',
            *_work(computation),
            "}",
            "",
            # A barrier needs no array, a message of constant size no parameter.
            f"NOINLINE void {name}_communicate(",
            "    [[maybe_unused]] const Parameters& x, [[maybe_unused]] Arrays& arrays) {",
            *_buffers(function, range_),
            "    MPI_Barrier(MPI_COMM_WORLD);  // waiting for the slowest is not communication",
            f'    Timer timer("main->{name}->{name}_communicate->{mpi}");',
            *_exchange(function),
            "}",
            "",
            f"NOINLINE void {name}(const Parameters& x, Arrays& arrays) {{",
            f"    {name}_compute(x, arrays);",
            f"    {name}_communicate(x, arrays);",
            "}",
        ]
    )


def _growth(element: Element, range_: Range) -> str:
    name = element.parameter
    return f"growth(x.{name}, {range_.smallest[name]:g}, {element.exponent!r}, {element.log_exponent!r})"


def _flat(computation: Computation) -> bool:
    return computation.arrangement == "sequential" or len(computation.loops) == 1


def _loops(computation: Computation, range_: Range) -> list[str]:
    """Ranges of the loops; those inside others are no whole numbers but right on average."""
    flat = _flat(computation)
    lines = []
    for number, loop in enumerate(computation.loops):
        if flat or number == 0:
            base = SINGLE if flat else OUTER
            lines.append(f"    const std::size_t last{number} = whole({base} * {_growth(loop, range_)});")
        else:
            lines.append(f"    const double mean{number} = {INNER} * {_growth(loop, range_)};")
    return lines


def _work(computation: Computation) -> list[str]:
    if not _flat(computation):
        return _nest(len(computation.loops))
    lines = []
    for number in range(len(computation.loops)):
        lines += [
            f"    for (std::size_t k = 0; k < last{number}; ++k) {{",
            f"        {_WORK[number % 2]}",
            "        count_block();",
            "    }",
        ]
    return lines


def _nest(depth: int) -> list[str]:
    lines = []
    for level in range(depth):
        indent = "    " * (level + 1)
        variable = "k" if level == depth - 1 else f"k{level}"
        last = "last0" if level == 0 else f"share(mean{level}, k{level - 1})"
        lines += [
            f"{indent}for (std::size_t {variable} = 0, last = {last}; {variable} < last; ++{variable}) {{",
            f"{indent}    {_WORK[level % 2].replace('[k %', f'[{variable} %')}",
            f"{indent}    count_block();",
        ]
    return [*lines, *("    " * (level + 1) + "}" for level in reversed(range(depth)))]


def _buffers(function: Function, range_: Range) -> list[str]:
    """Number of calls, length of the message, and arrays that are long enough."""
    communication = function.communication
    length = " * ".join(
        [str(message(communication.operation)), *(_growth(e, range_) for e in communication.message)]
    )
    calls = f"whole({REPEATED} * {_growth(communication.calls, range_)})" if communication.calls else "1"
    lines = [
        "    int rank = 0, ranks = 1;",
        "    MPI_Comm_rank(MPI_COMM_WORLD, &rank);",
        "    MPI_Comm_size(MPI_COMM_WORLD, &ranks);",
        f"    const std::size_t calls = {calls};",
    ]
    if communication.operation == "barrier":
        return lines
    sent, received = "count", "count"
    if communication.operation in _CALLS:
        sent, received, _, _ = _CALLS[communication.operation]
    if "part" in (sent, received):
        lines.append(
            f"    const int part = static_cast<int>(std::max<std::size_t>(1, whole({length} / ranks)));"
        )
    else:
        lines.append(f"    const int count = static_cast<int>(whole({length}));")
    return [*lines, f"    reserve(arrays, {sent}, {received});"]


def _exchange(function: Function) -> list[str]:
    operation = function.communication.operation
    if operation not in _CALLS:
        return _PAIR.rstrip("\n").split("\n")
    _, _, call, (sent, received) = _CALLS[operation]
    return [
        "    for (std::size_t call = 0; call < calls; ++call) {",
        f"        {call}",
        f"        count_call({sent}, {received});",
        "    }",
    ]
