"""Generate MPI programs of known complexity: to test modelers, strategies and a cluster on.

Every function computes in loops, nested or one after the other, and then calls one MPI function. Loops
and messages grow like x**i or log2(x)**j; what is not given is drawn at random. The true complexities are
in DIR/manifest.json; DIR/NAME.yaml is a campaign that measures the program.

`orchestrator generate kernels [DIR]` writes another program: it times matrix multiplication, QR factorisation
and MPI broadcast (application mpi-kernel).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from orchestrator.cli import common
from orchestrator.errors import CampaignError
from orchestrator.generate import directory, kernels, manifest
from orchestrator.generate.complexity import ARRANGEMENTS, OPERATIONS, Element, Function, text
from orchestrator.generate.manifest import Manifest, callpaths, parts
from orchestrator.generate.population import DEFAULT, Range, Request, check, draw
from orchestrator.units import count

_KERNELS = Path("kernels")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add = parser.add_argument
    add("directory", metavar="DIR", type=Path, help="where to write, new or empty; or kernels (see above)")
    add("into", metavar="DIR", type=Path, nargs="?", help="of kernels: where to write (default: kernels)")
    add("--count", type=int, default=1, metavar="N", help="functions (default 1; the paper has 200)")
    add("--programs", type=int, default=1, metavar="N", help="programs to spread them over (default 1)")
    common.add_seed(add)
    add("--smallest", default="p=2,n=1000", metavar="POINT", help="smallest values (default p=2,n=1000)")
    add("--largest", default="p=32,n=5000", metavar="POINT", help="largest values (default p=32,n=5000)")
    loops = parser.add_argument_group("computation")
    loops.add_argument("--arrangement", choices=ARRANGEMENTS, help="of the loops")
    loops.add_argument(
        "--loop",
        action="append",
        default=[],
        metavar="F",
        help="n, p**0.5, log2(n)**2 (repeatable, outer first)",
    )
    mpi = parser.add_argument_group("communication")
    mpi.add_argument("--operation", choices=OPERATIONS, help="MPI function")
    mpi.add_argument("--message", metavar="F[*F...]", help="growth of the message: n*p**0.5; 1 for none")
    mpi.add_argument("--calls", metavar="F", help="growth of the number of calls; by default mostly one call")
    sets = parser.add_argument_group("what may be drawn")
    sets.add_argument("--exponents", metavar="LIST", help="I of the paper's eq. 2: 0.5,1,2")
    sets.add_argument("--logs", metavar="LIST", help="J of the paper's eq. 2: 1,2")
    sets.add_argument(
        "--most-work",
        type=float,
        default=DEFAULT.most_work,
        metavar="X",
        help="largest growth of loops (default 1000)",
    )
    sets.add_argument(
        "--most-bytes",
        type=float,
        default=DEFAULT.most_bytes,
        metavar="X",
        help="largest growth of messages (default 100)",
    )
    add("--build", action="store_true", help="build the programs with make and mpicxx")
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.directory == _KERNELS:
        return _write_kernels(arguments)
    if arguments.into is not None:
        raise CampaignError(f"{arguments.into}: one directory is enough")
    content = _content(arguments)
    files = directory.write(arguments.directory, content)
    if arguments.build:
        directory.build(arguments.directory)
    if arguments.json:
        common.print_json({"files": [str(path) for path in files], **manifest.document(content)})
        return 0
    for functions in content.programs.values():
        for function in functions:
            for path, part in zip(callpaths(function), parts(function), strict=True):
                print(f"{path}: {text(part)}")
    built = "built" if arguments.build else f"build with: make -C {arguments.directory}"
    drawn, programs = count(arguments.count, "function"), count(len(content.programs), "program")
    print(f"{arguments.directory}: {drawn} in {programs}; {built}")
    return 0


def _write_kernels(arguments: argparse.Namespace) -> int:
    folder = arguments.into or _KERNELS
    files = kernels.write(folder)
    if arguments.build:
        directory.build(folder, needs=kernels.NEEDS)
    if arguments.json:
        common.print_json({"files": [str(path) for path in files]})
        return 0
    print(f"{folder}: {'built' if arguments.build else f'build with: make -C {folder}'}")
    print(f"next: orchestrator init mpi-kernel --executable {folder}/kernels")
    return 0


def _content(arguments: argparse.Namespace) -> Manifest:
    if arguments.count < 1 or not 1 <= arguments.programs <= arguments.count:
        raise CampaignError("--count and --programs: at least one function, and one for every program")
    range_ = Range(_values("--smallest", arguments.smallest), _values("--largest", arguments.largest))
    check(range_)
    request = _request(arguments, range_)
    rng = np.random.default_rng(arguments.seed)
    functions = [draw(index, range_, request, rng) for index in range(arguments.count)]
    return Manifest(arguments.seed, range_, _spread(functions, arguments.programs))


def _spread(functions: list[Function], programs: int) -> dict[str, tuple[Function, ...]]:
    if programs == 1:
        return {"benchmark": tuple(functions)}
    bounds = np.linspace(0, len(functions), programs + 1).round().astype(int)
    return {f"benchmark{k}": tuple(functions[bounds[k] : bounds[k + 1]]) for k in range(programs)}


def _values(option: str, given: str) -> dict[str, float]:
    try:
        pairs = [item.split("=") for item in given.split(",")]
        return {name.strip(): float(value) for name, value in pairs}
    except ValueError:
        raise CampaignError(f"{option} {given!r}: give numbers like p=2,n=1000") from None


def _request(arguments: argparse.Namespace, range_: Range) -> Request:
    message = arguments.message
    return Request(
        arrangement=arguments.arrangement,
        loops=tuple(element("--loop", given, range_) for given in arguments.loop),
        operation=arguments.operation,
        message=None if message is None else _product(message, range_),
        calls=element("--calls", arguments.calls, range_) if arguments.calls else None,
        exponents=_numbers("--exponents", arguments.exponents) or DEFAULT.exponents,
        logs=_numbers("--logs", arguments.logs) or DEFAULT.logs,
        most_work=arguments.most_work,
        most_bytes=arguments.most_bytes,
    )


def _product(given: str, range_: Range) -> tuple[Element, ...]:
    if given.strip() == "1":
        return ()
    factors = given.replace("**", "^").split("*")
    return tuple(element("--message", factor.replace("^", "**"), range_) for factor in factors)


def element(option: str, given: str, range_: Range) -> Element:
    """Read an element of F: ``n``, ``p**0.5``, ``log2(n)**2``, ``n**(1/3)``.

    Raises
    ------
    CampaignError
        For anything else, naming the option.
    """
    base, _, power = given.strip().partition("**")
    numerator, _, denominator = power.strip().strip("()").partition("/")
    try:
        exponent = float(numerator or 1) / float(denominator or 1)
    except (ValueError, ZeroDivisionError):
        exponent = float("nan")
    base = base.strip()
    name = base[5:-1].strip() if base.startswith("log2(") and base.endswith(")") else base
    if name not in range_.smallest or not 0 < exponent < 10:
        raise CampaignError(
            f"{option} {given!r}: write a power of a parameter or of its logarithm, like n, p**0.5 or "
            f"log2(n)**2; parameters are {', '.join(range_.parameters)}, exponents positive"
        )
    return Element(name, log_exponent=exponent) if name != base else Element(name, exponent=exponent)


def _numbers(option: str, given: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(item) for item in given.split(",")) if given else ()
    except ValueError:
        raise CampaignError(f"{option} {given!r}: give numbers like 0.5,1,2") from None
