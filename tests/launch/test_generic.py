"""Programs described in a campaign file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.campaign import changes, loader
from orchestrator.control import attempts
from orchestrator.control.assembly import assemble
from orchestrator.errors import CampaignError, ExpressionError
from orchestrator.journal.state import State
from orchestrator.launch import generic
from orchestrator.launch.generic import Aggregate, Output, Program
from orchestrator.types import Application, Sample, Value, left_out

STENCIL = r"""
name: stencil
application: generic
executable: 'true'
settings: {steps: 100, mode: fast}
program:
  arguments: ["--size={n}", "{n * p}", 7, "{{x}}", "{mode}", "{n / 4}"]
  ranks: p * 2
  threads: "2 if n > 64 else 1"
  environment: {OMP_PLACES: cores, LEVEL: 3, OMP_SCHEDULE: "dynamic,{n // 2}", PLACES: "{{0,1}}"}
  files: {in.txt: "n = {n}\nset {{ a }}\n"}
  check: ["n % p == 0", "mode == 'fast'"]
  output:
    - {callpath: main, pattern: 'total: ([\d.eEdD+-]+)'}
    - {callpath: main->solve, pattern: '^(solve|Solve): (?P<value>\S+) ms', scale: 0.001, aggregate: sum}
    - {callpath: main, metric: bytes, pattern: 'bytes=(\d+)', file: '*.log', aggregate: max}
parameters: {p: [1, 2, 3], n: [64, 128]}
executor: {name: slurm}
stop: {budget: 1}
"""


@pytest.fixture
def stencil() -> Application:
    return loader.loads(STENCIL).application_spec


def test_arguments_ranks_threads_files_and_environment(stencil: Application) -> None:
    values: dict[str, Value] = {"p": 2, "n": 128, "steps": 100, "mode": "fast"}
    assert stencil.arguments(values) == ["--size=128", "256", "7", "{x}", "fast", "32"]
    assert stencil.ranks(values) == 4
    assert stencil.threads(values) == 2
    assert stencil.files(values) == {"in.txt": "n = 128\nset { a }\n"}
    assert stencil.variables(values) == {
        "OMP_PLACES": "cores",
        "LEVEL": "3",
        "OMP_SCHEDULE": "dynamic,64",
        "PLACES": "{0,1}",
    }
    assert stencil.output_files == ("*.log",)


def test_check_gives_the_expression_that_does_not_hold(stencil: Application) -> None:
    assert stencil.check({"p": 2, "n": 64, "steps": 1, "mode": "fast"}) is None
    assert stencil.check({"p": 3, "n": 64, "steps": 1, "mode": "fast"}) == "program.check: n % p == 0"
    reason = stencil.check({"p": 0.75, "n": 64, "steps": 1, "mode": "fast"})
    assert reason == "program.ranks: p * 2 = 1.5 is not a whole number from 1"


def test_reads_values_from_all_outputs(stencil: Application) -> None:
    texts = {
        "stdout": "total: 1.5\nsolve: 20 ms\nSolve: 30 ms\n  solve: 99 ms\ntotal: 2.5D-1\n",
        "stderr": "",
        "a.log": "bytes=10",
        "b.log": "bytes=30 bytes=20",
    }
    assert stencil.output(texts) == [
        Sample("main", "time", 0.25),
        Sample("main->solve", "time", (20 + 30) * 0.001),
        Sample("main", "bytes", 30.0),
    ]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"stdout": "nothing"}, r"main: nothing in stdout matches 'total"),
        ({"stdout": "total: 1\nsolve: nan ms"}, "main->solve: 'nan'.*is not finite"),
        ({"stdout": "total: 1\nsolve: fast ms"}, "main->solve: 'fast'.*is not a number"),
        ({"stdout": "total: 1\nsolve: 1 ms"}, r"main: no file '\*.log' among stdout"),
        ({"stdout": "done"}, re.escape(r"main: nothing in stdout matches 'total: ([\d.eEdD+-]+)'; of what")),
        ({"stdout": " \n"}, r"\+\)' \(stdout is empty\)$"),
        (
            {"stdout": " \n", "stderr": "total: 1\n"},
            r"\(stdout is empty\); stderr has it: write file: stderr there, then see reread$",
        ),
    ],
)
def test_says_what_is_missing_in_the_output(
    stencil: Application, texts: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        stencil.output(texts)


def test_what_is_read_from_stderr_is_an_output_of_the_program() -> None:
    rules = (
        Output(callpath="a", pattern=r"a (\S+)"),
        Output(callpath="b", pattern=r"b (\S+)", file="stderr"),
    )
    assert generic.application(Program(output=rules), {}).output_files == ("stderr",)


def test_what_only_some_runs_print_may_be_missing() -> None:
    rules = (
        Output(callpath="main", pattern=r"^total: (\S+)", optional=True),
        Output(callpath="main->halo", pattern=r"^halo: (\S+)", optional=True),
        Output(callpath="main->disk", pattern=r"(\S+) s", file="*.log", optional=True),
    )
    spec = generic.application(Program(output=rules), {})
    assert spec.output({"stdout": "total: 2\n"}) == [Sample("main", "time", 2.0)]
    assert len(spec.output({"stdout": "total: 2\nhalo: 1\n", "a.log": "3 s"})) == 3
    with pytest.raises(ValueError, match=r"nothing matches any pattern of program.output, such as '\^total"):
        spec.output({"stdout": "bye\n"})
    with pytest.raises(ValueError, match="is not a number"):
        spec.output({"stdout": "total: 2\nhalo: much\n"})


CLOCKS = """\
     electrons    :      0.81s CPU      0.82s WALL (       1 calls)

     Called by h_psi:
     h_psi:calbec :      0.01s CPU      0.02s WALL (     237 calls)
     fftw         :     59.00s CPU   1m 1.50s WALL (    1990 calls)

     Parallel routines
     fftw         :      0.20s CPU      0.50s WALL (      10 calls)

     PWSCF        :      1.00s CPU      1.10s WALL
"""


def test_one_item_reads_every_row_of_a_table() -> None:
    row = r"^ *(?P<callpath>\S+) *: .*CPU *(?P<value>.+?) *WALL"
    rules = (
        Output(callpath="main", pattern=row + r" \(", aggregate="sum"),
        Output(callpath="main", pattern=r"^ *PWSCF *:.*CPU *(.+?) *WALL"),
        Output(
            callpath="main", metric="calls", pattern=r"^ *(?P<callpath>\S+) .*WALL \( *(?P<value>\d+) calls"
        ),
    )
    found = generic.application(Program(output=rules), {}).output({"stdout": CLOCKS})
    assert found == [
        Sample("main->electrons", "time", 0.82),
        Sample("main->h_psi:calbec", "time", 0.02),
        Sample("main->fftw", "time", 62.0),
        Sample("main", "time", 1.1),
        Sample("main->electrons", "calls", 1.0),
        Sample("main->h_psi:calbec", "calls", 237.0),
        Sample("main->fftw", "calls", 10.0),
    ]


def test_a_row_without_a_name_belongs_to_the_call_path_of_its_item() -> None:
    rule = Output(callpath="main", pattern=r"^(?P<callpath>\w[\w ]*)?: (?P<value>\S+)")
    spec = generic.application(Program(output=(rule,)), {})
    assert spec.output({"stdout": "set  up: 1\n: 3\n"}) == [
        Sample("main->set up", "time", 1.0),
        Sample("main", "time", 3.0),
    ]


def test_the_items_of_the_documentation_read_its_tables() -> None:
    section = (
        (Path(__file__).parents[2] / "docs/applications.md").read_text().partition("## A table of timers")[2]
    )
    blocks = re.findall(r"```(text|yaml)\n(.*?)```", section, re.DOTALL)[:6]
    tables, rules = ([text for kind, text in blocks if kind == wanted] for wanted in ("text", "yaml"))
    read = []
    for text, items in zip(tables, rules, strict=True):
        output = tuple(Output(**item) for item in yaml.safe_load(items)["program"]["output"])
        further = "Time (sec): 0.12\nconvergence has been achieved in   6 iterations\n"
        spec = generic.application(Program(output=output), {})
        read.append(
            [
                (s.callpath, s.metric, s.value)
                for s in spec.output({"stdout": text + further, "flat.txt": text})
            ]
        )
    assert read[0] == [
        ("main", "time", pytest.approx(63.3)),
        ("main->cegterg", "time", 1.15),
        ("main->h_psi:calbec", "time", 0.06),
        ("main->cegterg", "calls", 70.0),
        ("main->h_psi:calbec", "calls", 237.0),
        ("main", "iterations", 6.0),
    ]
    assert read[1] == [
        ("main", "time", 0.12),
        ("main->MatMult", "time", 0.028384),
        ("main->MatMult", "calls", 152.0),
        ("main->MatMult", "flops", 1.24e8),
    ]
    assert read[2] == [("main->QCS::setCornerDiv", "time", 0.47)]


def test_the_items_of_the_documentation_read_the_tables_of_profilers() -> None:
    section = (Path(__file__).parents[2] / "docs/applications.md").read_text().partition("(`GPTLpr`)")[2]
    blocks = re.findall(r"```(text|yaml)\n(.*?)```", section, re.DOTALL)[:6]
    tables, rules = ([text for kind, text in blocks if kind == wanted] for wanted in ("text", "yaml"))
    read = []
    total = "TinyProfiler total time across processes [min...avg...max]: 0.122 ... 0.124 ... 0.126\n"
    for text, items in zip(tables, rules, strict=True):
        output = tuple(Output(**item) for item in yaml.safe_load(items)["program"]["output"])
        spec = generic.application(Program(output=output), {})
        exclusive = text.replace("Incl.", "Excl.").replace("0.1053", "8.1e-05")
        found = spec.output({"stdout": total + exclusive + text, "timing.000000": text, "a.2.1.mpiP": text})
        read.append({sample.callpath: sample.value for sample in found})
    assert read == [
        {"main": 0.126, "main->MLMG::solve()": 0.1053},
        {"main": 0.207, "main->run_loop": 0.205, "main->halo exchange": 0.106},
        {"main": 0.125, "main->MPI": 0.0313},
    ]


@given(st.lists(st.floats(-1e9, 1e9, allow_nan=False), min_size=1, max_size=6))
def test_several_matches_are_combined_as_asked(numbers: list[float]) -> None:
    wanted: dict[Aggregate, float] = {
        "last": numbers[-1],
        "first": numbers[0],
        "max": max(numbers),
        "min": min(numbers),
        "sum": sum(numbers),
        "mean": sum(numbers) / len(numbers),
    }
    text = "\n".join(f"t = {number!r}" for number in numbers)
    for aggregate, value in wanted.items():
        rule = Output(callpath="x", pattern=r"t = (\S+)", aggregate=aggregate)
        spec = generic.application(Program(output=(rule,)), {})
        [sample] = spec.output({"stdout": text})
        assert sample.value == pytest.approx(value, abs=1e-6)


HEAD, TAIL = "t = 1\nt = 2\n", "t = 3\nt = 4\n"


@pytest.mark.parametrize(
    ("aggregate", "text", "value"),
    [
        ("first", HEAD + left_out(9) + TAIL, 1.0),
        ("last", HEAD + left_out(9) + TAIL, 4.0),
        ("first", "x\n" + left_out(9) + TAIL, None),
        ("last", HEAD + left_out(9) + "x\n", None),
        ("sum", HEAD + left_out(9) + TAIL, None),
        ("max", HEAD + left_out(9) + "x\n", None),
    ],
)
def test_of_a_long_output_nothing_is_taken_that_may_stand_in_what_was_not_read(
    aggregate: Aggregate, text: str, value: float | None
) -> None:
    program = Program(output=(Output(callpath="x", pattern=r"t = (\S+)", aggregate=aggregate),))
    application = generic.application(program, {})
    if value is not None:
        assert application.output({"stdout": text}) == [Sample("x", "time", value)]
    else:
        with pytest.raises(ValueError, match=rf"x: of stdout only .* the {aggregate} of 't = .*epilogue"):
            application.output({"stdout": text})


@pytest.mark.parametrize(
    ("aggregate", "text", "remedy"),
    [
        (
            "first",
            "x\n" + left_out(9) + "t = 3\n",
            "set aggregate: last, which takes 't = 3'; else let",
        ),
        (
            "last",
            "t = 1\n" + left_out(9) + "x\n",
            "set aggregate: first, which takes 't = 1'; else let",
        ),
        (
            "sum",
            "t = 1\n" + left_out(9) + "x\n",
            "set aggregate: first, which takes 't = 1'; else let",
        ),
        ("first", "x\n" + left_out(9) + TAIL, "'; let a line"),
        ("max", "x\n" + left_out(9) + "x\n", "'; let a line"),
    ],
)
def test_what_a_program_prints_once_can_be_read_from_a_long_output(
    aggregate: Aggregate, text: str, remedy: str
) -> None:
    program = Program(output=(Output(callpath="x", pattern=r"t = (\S+)", aggregate=aggregate),))
    with pytest.raises(ValueError, match="only the beginning and the end were read") as caught:
        generic.application(program, {}).output({"stdout": text})
    assert remedy in str(caught.value)


@given(st.text(alphabet="ab{}n ", max_size=20))
def test_doubled_braces_stand_for_themselves(text: str) -> None:
    escaped = re.sub(r"([{}])", r"\1\1", text)
    assert generic.render(generic.parse_template(escaped, ["n"]), {"n": 1}) == text


@pytest.mark.parametrize("text", ["{", "}", "{}", "{m}", "{n +}", "a{b", "{n.x}"])
def test_malformed_placeholders_are_errors(text: str) -> None:
    with pytest.raises(ExpressionError):
        generic.parse_template(text, ["n"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{n * p}", "{n * q}", "program.arguments.1: expression 'n * q': unknown name 'q'"),
        ("n = {n}", "n = {k}", "program.files.in.txt: expression 'k': unknown name 'k'"),
        ("ranks: p * 2", "ranks: p < 2", "program.ranks: expression 'p < 2' gives a truth, not a number"),
        ("n % p == 0", "n % p", "program.check.0: expression 'n % p' gives a number, not a truth"),
        (r"([\d.eEdD+-]+)", r"\d+", "program.output.0.pattern: has 0 groups"),
        (r"([\d.eEdD+-]+)", r"(?P<callpath>\w+) (\S+)", "program.output.0.pattern: names a call path in"),
        (r"([\d.eEdD+-]+)", r"(\d+", "program.output.0.pattern: not a regular expression"),
        ("in.txt", "../in.txt", "program.files.../in.txt: is not the name of a file inside"),
        (
            "dynamic,{n // 2}",
            "dynamic,{m}",
            "stencil.yaml:10: program.environment.OMP_SCHEDULE: expression 'm': unknown name 'm'",
        ),
        (
            '"{{0,1}}"',
            '"{0:4}"',
            "write {{0:4}} if the braces belong to the value",
        ),
        (
            '"{{0,1}}"',
            '"{0}"',
            "program.environment.PLACES: {0} in '{0}' names nothing that varies; write {{0}} if the braces",
        ),
        ("LEVEL", "LE VEL", "program.environment.LE VEL: is not the name of an environment variable"),
        (
            "application: generic",
            "application: lulesh",
            "program: is only for generic applications, not for lulesh",
        ),
    ],
)
def test_mistakes_in_the_program_section_name_their_place(old: str, new: str, message: str) -> None:
    assert old in STENCIL
    with pytest.raises(CampaignError, match=re.escape(message)):
        loader.loads(STENCIL.replace(old, new), "stencil.yaml")


def test_a_program_without_output_needs_a_profiler_that_reads_none() -> None:
    text = "name: x\napplication: generic\nexecutable: 'true'\nprogram: {}\nparameters: {n: [1, 2]}\n"
    text += "stop: {budget: 1}\n"
    with pytest.raises(CampaignError, match=r"add program.output, or set measure.profiler to .*time"):
        loader.loads(text)
    assert loader.loads(text, overrides=["measure.profiler=time"]).measure.profiler == "time"
    with pytest.raises(CampaignError, match="program: is required for application: generic"):
        loader.loads(text.replace("program: {}\n", ""))


CHUNKS = """
name: chunks
application: generic
executable: 'true'
program: {environment: {OMP_SCHEDULE: "dynamic,{chunk}", HALF: "{half}"}}
measure: {profiler: time}
parameters: {chunk: [8, 16, 32]}
constraints: ["half * 2 == chunk"]
executor: {name: local, slots: 1}
stop: {budget: 1}
"""


def test_a_variable_has_the_values_of_its_point() -> None:
    built = assemble(loader.loads(CHUNKS))
    texts = [attempts.script(built, point, built.resources(point)) for point in built.space]
    for chunk, text in zip((8, 16, 32), texts, strict=True):
        assert f"export OMP_SCHEDULE=dynamic,{chunk}\n" in text
        assert f"export HALF={chunk // 2}\n" in text


@pytest.mark.parametrize("key", ["executor.environment", "measure.effort.environment"])
@pytest.mark.parametrize("value", ["{chunk}", "dynamic,{ chunk }", "{{chunk}}"])
def test_variables_of_all_runs_name_no_parameter(key: str, value: str) -> None:
    overrides = [f"{key}={{OMP_SCHEDULE: '{value}'}}"]
    text = CHUNKS
    if "effort" in key:
        text = text.replace(
            "executor: {name: local, slots: 1}", "executor: {name: simulated, truth: {main: chunk}}"
        )
    with pytest.raises(
        CampaignError, match=re.escape(f"{key}.OMP_SCHEDULE: is the same for all runs")
    ) as caught:
        loader.loads(text, overrides=overrides)
    assert "would not be replaced: write it in program.environment" in str(caught.value)
    assert loader.loads(text, overrides=overrides, starts=False)


def test_of_an_adapter_the_launch_template_is_named() -> None:
    text = "name: x\napplication: lulesh\nexecutable: 'true'\nparameters: {p: [1, 8], s: [4, 5]}\n"
    text += "executor: {name: slurm, environment: {A: '{s}', B: '$${s}', C: '{0}'}}\nstop: {budget: 1}\n"
    with pytest.raises(CampaignError, match=re.escape("as export A={{s}}")) as caught:
        loader.loads(text)
    assert "environment.B" not in str(caught.value)


def test_a_directory_of_an_earlier_version_has_literal_braces() -> None:
    text = STENCIL.replace('"{{0,1}}"', '"{0:4}"')
    assert (
        loader.loads(text, starts=False).application_spec.variables(
            {"p": 1, "n": 64, "steps": 1, "mode": "fast"}
        )["PLACES"]
        == "{0:4}"
    )


@pytest.mark.parametrize(
    ("old", "new", "goes_on"),
    [
        ("{0:4}", "{{0:4}}", True),
        ("{0},{1}", "{{0}},{{1}}", True),
        ("{chunk}", "{{chunk}}", False),
        ("a", "b", False),
    ],
)
def test_a_campaign_with_literal_braces_goes_on_with_doubled_ones(old: str, new: str, goes_on: bool) -> None:
    text = CHUNKS.replace("executable: 'true'", "executable: /bin/sh")
    before, after = (
        loader.loads(text.replace("dynamic,{chunk}", value), starts=value == new) for value in (old, new)
    )
    refused = changes.refusal(after, State(campaign=before.raw, time_limit=1.0))
    assert (refused is None) is goes_on, refused
