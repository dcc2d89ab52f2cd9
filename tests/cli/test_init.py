"""`orchestrator init`: what it writes is valid, runs, and says what was found."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from orchestrator import registry
from orchestrator.campaign import loader
from orchestrator.cli.main import main
from orchestrator.doctor import first_draft, initial, slurm
from orchestrator.executors.slurm import partitions
from orchestrator.launch.script import data_directory
from orchestrator.types import Point
from tests.cli.running import run

HEAT = """\
#!/bin/sh
# heat SIZE STEPS
echo "heat equation, $1 cells"
echo "total time: $(($1 * $2)).5 s"
echo "exchange: $1 ms"
"""
LULESH = """\
#!/bin/sh
printf '   Problem size        =  %s\\n   Iteration count     =  50\\n' "$2"
printf 'Grind time (us/z/c)  =  5.5 (per dom)  (0.25 overall)\\n'
"""


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "find", lambda probe: ([], None))


def program(name: str, text: str) -> Path:
    path = Path(name).absolute()
    path.write_text(text)
    path.chmod(0o755)
    return path


SOLVER = """\
#!/bin/sh
. ./"$2"
echo "total time: $cells.5 s, tolerance $tol"
"""


def test_a_file_for_each_value_is_found_from_the_directory_of_any_run() -> None:
    program("solver", '#!/bin/sh\n. "$1"\necho "total time: $cells.5 s"\n')
    for cells in (2, 4):
        Path(f"case{cells}.in").write_text(f"cells={cells}\n")
    shown = run("init", "--command", "./solver ./case{n}.in", "--values", "n=2,4")
    assert "printed 1 time: main" in shown.out.replace("\n", " ")
    assert f"{Path('case').resolve()}{{{{n}}}}.in" in Path("solver-scaling.sh").read_text()


def test_timers_of_one_solver_may_be_missing_with_another() -> None:
    program("solve", '#!/bin/sh\necho "total time: $1.5 s"\necho "$2 time: $1 s"\n')
    shown = run("init", "--command", "./solve {n} {pc}", "--values", "n=1,2,3", "--values", "pc=sor,mg")
    assert "printed 2 times: main, main->sor" in shown.out.replace("\n", " ")
    output = loader.load(Path("solve-scaling.yaml"), starts=False).program
    assert output is not None
    assert [item.optional for item in output.output] == [False, True]
    result = run(
        "run", "solve-scaling.yaml", "--set", "strategy=full", "--set", "measure.repetitions.initial=1"
    )
    assert (result.code, "failed" in result.out) == (0, False)


def test_rows_that_a_table_has_only_of_some_runs_fail_no_run() -> None:
    table = 'echo "SUBROUTINE   CALLS   TOTAL TIME"\n'
    rows = 'echo "PROG             1     2.50$1"; [ $1 = 3 ] || echo "init_it          1     1.25"\n'
    program("solve", f"#!/bin/sh\n{table}{rows}")
    shown = run("init", "--command", "./solve {n}", "--values", "n=1,2,3")
    assert "printed 2 times: main, main->init_it" in shown.out.replace("\n", " ")
    result = run(
        "run", "solve-scaling.yaml", "--set", "strategy=full", "--set", "measure.repetitions.initial=1"
    )
    assert (result.code, "failed" in result.out) == (0, False)


def test_processes_that_a_program_starts_itself_need_cores() -> None:
    program("heat", HEAT)
    options = ("--values", "n=1,2", "--values", "p=1,2", "--values", "t=1,2", "--no-try")
    shown = run("init", "--command", "./heat {n} {p} {t}", *options).out.replace("\n", " ")
    assert "p counts for no cores" in shown
    assert "write program.threads: p * t, and 'export OMP_NUM_THREADS={{t}}' into heat" in shown
    with_mpi = run("init", "--name", "mpi", "--command", "mpirun -np {p} ./heat {n} {t}", *options)
    assert "counts for no cores" not in with_mpi.out


def test_an_mpi_program_whose_command_says_no_ranks_is_told_how(monkeypatch: pytest.MonkeyPatch) -> None:
    program("heat", HEAT)
    monkeypatch.setattr(initial, "linked_mpi", lambda executable: "openmpi")
    options = ("--values", "n=1,2", "--values", "p=1,2", "--no-try")
    shown = run("init", "--command", "./heat {n} {p}", *options)
    assert "heat is linked with MPI, and every run has one rank" in shown.out.replace("\n", " ")
    shown = run("init", "--command", "mpirun -np {p} ./heat {n}", *options, "--name", "other")
    assert "linked with MPI" not in shown.out


def test_parameters_may_stand_in_an_input_file_that_the_command_names() -> None:
    program("solver", SOLVER)
    Path("case.in").write_text("cells={cells}\ntol={tol}\nother={other}\n")
    command = ("init", "--command", "./solver -in case.in", "--values", "cells=2,4,8,16")
    shown = run(*command, "--values", "tol=0.5")
    assert shown.code == 0, shown.err
    script = Path("solver-scaling.sh").read_text()
    here = Path("case.in").absolute()
    assert (
        f"\nsed -e 's|{{cells}}|{{{{cells}}}}|g' -e 's|{{tol}}|{{{{tol}}}}|g' {here} > case.in || exit"
        in script
    )
    assert run("run", "solver-scaling.yaml", "--set", "strategy=full").code == 0
    [read] = Path("solver-scaling/runs").glob("cells=16/time-1/attempt-1/case.in")
    assert read.read_text() == "cells=16\ntol=0.5\nother={other}\n"
    shown = run(*command, "--values", "n=1,2", "--name", "other")
    assert shown.code == 2
    assert (
        "--values n: the command has no parameters, and {n} stands in none of its files (case.in)"
        in shown.err
    )


def test_parameters_may_stand_in_files_of_a_folder_that_the_command_names() -> None:
    """A case of OpenFOAM: every run has one of its own, with its values."""
    program("solver", SOLVER.replace('"$2"', "case/system/size"))
    for name, text in (
        ("system/size", "cells={cells}\ntol=0.5\n"),
        ("system/other", "{{cells}}"),
        ("a", "1"),
    ):
        Path("case", name).parent.mkdir(parents=True, exist_ok=True)
        Path("case", name).write_text(text)
    Path("case/binary").write_bytes(b"{cells}\0")
    shown = run("init", "--command", "./solver -case case", "--values", "cells=2,4,8,16")
    assert shown.code == 0, shown.err
    assert "solver-scaling.sh copies case there" in shown.out
    folder = Path("case").absolute()
    script = Path("solver-scaling.sh").read_text()
    assert f"\ncp -r {folder} . || exit" in script and script.count("\nsed") == 1
    assert f" {folder}/system/size > case/system/size || exit" in script
    assert run("run", "solver-scaling.yaml", "--set", "strategy=full").code == 0
    [read] = Path("solver-scaling/runs").glob("cells=16/time-1/attempt-1/case/system/size")
    assert read.read_text() == "cells=16\ntol=0.5\n"


def test_a_run_whose_input_is_gone_fails_before_its_program_starts() -> None:
    program("solver", "#!/bin/sh\necho total time: 0.$1 s\n")
    Path("case.in").write_text("x")
    assert run("init", "--command", "./solver {n} case.in", "--values", "n=1,2,3").code == 0
    Path("case.in").unlink()
    shown = run("run", "solver-scaling.yaml")
    assert shown.code == 1 and "exit code 1; last line of stderr: cp: " in shown.err


def test_parameters_may_stand_in_a_file_that_the_program_reads_without_being_told() -> None:
    program("solver", SOLVER.replace('"$2"', "case.in"))
    Path("case.in").write_text("cells={cells}\ntol=0.5\n")
    Path("notes.txt").write_text("nothing\n")
    Path("other.sh").write_text("./solver {{cells}}\n")  # a template of ours
    shown = run("init", "--command", "./solver", "--values", "cells=2,4,8,16")
    assert shown.code == 0, shown.err
    assert "solver-scaling.sh copies case.in there" in shown.out
    assert run("run", "solver-scaling.yaml", "--set", "strategy=full").code == 0
    [read] = Path("solver-scaling/runs").glob("cells=16/time-1/attempt-1/case.in")
    assert read.read_text() == "cells=16\ntol=0.5\n"
    shown = run("init", "--command", "./solver", "--values", "n=1,2", "--name", "other")
    assert shown.code == 2 and "it names no file; write {n} where its value belongs, in a file" in shown.err
    shown = run("init", "--command", "./solver", "--values", "cells=2,4", "--name", "again")
    # That of the first campaign has {cells} in its sed.
    assert shown.code == 0 and "again.sh copies case.in there" in shown.out


def test_timers_that_were_not_compiled_in_are_told() -> None:
    program("nekbone", "#!/bin/sh\necho 'Solve Time =   0.0000E+00'\n")
    shown = run("init", "--command", "./nekbone {n}", "--values", "n=1,2")
    assert "note: every time is 0, as in 'Solve Time =   0.0000E+00': the program's timers" in shown.out


def test_times_that_are_short_in_the_smallest_run_are_comments() -> None:
    names = [f"part {chr(97 + index)}" for index in range(16)]
    lines = "\n".join(f"{name} time: {0.015 - index / 1000:.4f}" for index, name in enumerate(names))
    program("parts", f"#!/bin/sh\nsleep 0.3\ncat <<'END'\ntotal time: 0.2500\n{lines}\nEND\n")
    shown = run("init", "--command", "./parts {n}", "--values", "n=1,2")
    assert shown.code == 0, shown.err
    assert "part k and 5 shorter, which are comments under program.output" in shown.out
    text = Path("parts-scaling.yaml").read_text()
    chosen = loader.load(Path("parts-scaling.yaml"))
    assert chosen.program is not None and len(chosen.program.output) == 12
    assert "part p time: 0.0000" in lines  # as communication on one rank
    assert '    # - {callpath: "main->part p", pattern: ' in text
    assert "communication is hardly there on the fewest ranks, and grows: take away the #" in text
    Path("parts-scaling.yaml").write_text(text.replace("    # - {", "    - {"))
    chosen = loader.load(Path("parts-scaling.yaml"))
    assert chosen.program is not None and len(chosen.program.output) == 17


def test_sizes_with_units_are_told_to_be_text() -> None:
    program("heat", HEAT)
    shown = run("init", "--command", "./heat {n} 3", "--values", "n=2k,4k", "--no-try")
    assert "no model says what lies between or beyond the values of n: values such as 2k" in shown.out


def test_a_command_becomes_a_template_and_a_campaign_that_runs() -> None:
    program("heat", HEAT)
    shown = run("init", "--command", "./heat {n} {steps}", "--values", "n=2,4,8,16", "--values", "steps=3")
    assert shown.code == 0, shown.err
    # The campaign's directory must not have the name of the program.
    assert "wrote heat-scaling.sh" in shown.out and "one run at P(n=2) took" in shown.out
    assert shown.out.count("s and printed 2 times: main, main->exchange") == 1
    assert "s and printed 2 times: main, main->exchange" in Path("heat-scaling.yaml").read_text()
    assert Path("heat-scaling.sh").read_text().endswith("\n{{launcher}} {{executable}} {{n}} {{steps}}\n")
    chosen = loader.load(Path("heat-scaling.yaml"))
    assert chosen.settings == {"steps": 3} and [item.values for item in chosen.parameters] == [(2, 4, 8, 16)]
    assert chosen.evaluation_point is not None and chosen.evaluation_point["n"] == 32
    assert chosen.program is not None
    assert [item.callpath for item in chosen.program.output] == ["main", "main->exchange"]
    assert not list(Path().glob("*.try-*"))
    assert run("plan", "heat-scaling.yaml", "--no-rehearsal").code == 0
    assert main(["run", "heat-scaling.yaml", "--set", "stop.budget=1 core-hour"]) == 0
    models = {item["callpath"] for item in run("status", "heat-scaling", "--json").document["models"]}
    assert {"main", "main->exchange"} <= models


@pytest.mark.usefixtures("patient")
def test_the_time_of_the_run_becomes_an_estimate_that_plan_can_use() -> None:
    program("heat", HEAT)
    words = "mpirun -np {p} ./heat {n} {steps}"
    values = ("--values", "p=1,2", "--values", "n=2,4,8", "--values", "steps=1,10")
    assert run("init", "--command", words, *values).code == 0
    file = Path("heat-scaling.yaml")
    text = file.read_text()
    [line] = re.findall(r"^  # (expected_time: \S+ \* n / 2 \* steps) .*$", text, re.MULTILINE)
    file.write_text(text.replace(f"  # {line}", f"  {line}"))
    chosen = loader.load(file)
    smallest, larger = (Point.of(p=2, n=n, steps=s) for n, s in ((2, 1), (8, 10)))
    assert chosen.expected_time(larger) == pytest.approx(40 * (chosen.expected_time(smallest) or 0.0))
    assert "truth of the rehearsal: measure.expected_time" in run("plan", str(file)).out


def test_an_output_without_times_is_timed_as_a_whole() -> None:
    program("quiet.sh", "#!/bin/sh\necho done\n")
    assert run("init", "--command", "./quiet.sh {n}").code == 0
    text = Path("quiet-scaling.yaml").read_text()
    assert "profiler: time" in text and "a guess: give values at which a run takes seconds" in text
    assert loader.load(Path("quiet-scaling.yaml")).measure.profiler == "time"


def test_ranks_come_from_the_launcher_of_the_command() -> None:
    program("prog", "#!/bin/sh\necho 'time: 1 s'\n")
    shown = run(
        "init", "--command", "mpirun -np {p} ./prog --size={n} 'a b'", "--no-try", "--values", "n=1,2"
    )
    assert shown.code == 0, shown.err
    assert "{{launcher}} {{executable}} --size={{n}} 'a b'" in Path("prog-scaling.sh").read_text()
    chosen = loader.load(Path("prog-scaling.yaml"))
    assert chosen.program is not None and chosen.program.ranks == "p"
    assert chosen.application_spec.ranks({"p": 2, "n": 1}) == 2
    refused = run("init", "--command", "srun -N {nodes} ./prog {n}", "--no-try", "--name", "more")
    assert refused.code == 2
    assert "leave -N out; nodes, ranks per node and threads are stated under resources" in refused.err


def test_a_point_beyond_this_machine_says_that_it_cannot_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """`validate: true` is refused there: a draft that is completed so needs to say why."""
    monkeypatch.setattr(first_draft, "_machine", lambda wanted: (2, "local"))
    program("prog", "#!/bin/sh\necho 'time: 1 s'\n")
    command = ("init", "--command", "mpirun -np {p} ./prog {n}", "--values", "p=1,2", "--values", "n=1,2,4")
    assert run(*command, "--executor", "local", "--no-try").code == 0
    beyond = "evaluation_point: {p: 4, n: 8}    # where the models must hold: not to be measured on 2 cores"
    assert beyond in Path("prog-scaling.yaml").read_text()
    given = ("--evaluation-point", "p=2", "--name", "held")
    assert run(*command, "--executor", "local", "--no-try", *given).code == 0
    assert "not to be measured" not in Path("held.yaml").read_text()


def test_an_application_is_copied_and_has_values_to_begin_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LULESH", raising=False)
    shown = run("init", "lulesh", "--json").document
    assert shown["files"] == ["lulesh.sh", "lulesh.yaml"] and "Set LULESH" in shown["untried"]
    template = (data_directory("templates") / "lulesh.sh").read_text()
    assert Path("lulesh.sh").read_text() == template
    monkeypatch.setenv("LULESH", str(program("lulesh2.0", LULESH)))
    chosen = loader.load(Path("lulesh.yaml"))
    assert chosen.template == template and chosen.application == "lulesh"
    assert run("plan", "lulesh.yaml", "--no-rehearsal").code == 0


def test_a_program_that_misses_its_input_is_told_where_runs_look_for_it() -> None:
    program("heat", "#!/bin/sh\ncat grid.in\n")
    Path("grid.in").write_text("grid")
    shown = run("init", "--command", "./heat {n}")
    assert shown.code == 1
    assert "every run has a directory of its own: give files" in shown.err and "program.files" in shown.err
    kept = re.search(r"see (\S*heat-scaling\.try-\S*/runs/\S*);", shown.err)
    assert kept is not None and Path(kept[1]).is_dir()
    assert "next: correct heat-scaling.sh or heat-scaling.yaml (or remove" in shown.out


def test_files_that_the_command_names_are_copied_and_a_script_stays_where_it_is() -> None:
    Path("in").mkdir()
    Path("in/heat.in").write_text("total time: 9 s\n")
    Path("run.sh").write_text("echo solve time: 1.5 s\n")
    shown = run("init", "--command", "sh run.sh --deck=in/heat.in old.out {n}", "--values", "n=1,2,3")
    assert shown.code == 0, shown.err
    assert "note: every run has a directory of its own: run-scaling.sh copies heat.in there" in shown.out
    text = Path("run-scaling.sh").read_text()
    assert f"cp -r {Path('in/heat.in').resolve()} . || exit  # the command names it\n" in text
    assert f"{{{{executable}}}} {Path('run.sh').resolve()} --deck=heat.in old.out {{{{n}}}}\n" in text
    assert not list(Path().glob("*.try-*"))


def test_small_folders_that_the_command_names_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pots", "large", "work"):
        Path(name).mkdir()
    Path("pots/Cu.txt").write_text("0.2")
    Path("large/mesh").write_text("many values")
    program("md", "#!/bin/sh\necho solve time: $(cat $2/Cu.txt) s >> $2/log; cat $2/log\n")
    monkeypatch.setattr("orchestrator.doctor.first_draft._LARGEST_FOLDER", 5)
    shown = run("init", "--command", "./md -d pots/ large . {n}", "--values", "n=1,2,3")
    assert shown.code == 0, shown.err
    text = Path("md-scaling.sh").read_text()
    assert text.count("cp -r") == 1 and f"cp -r {Path('pots').resolve()} ." in text
    assert "{{executable}} -d pots/ large . {{n}}\n" in text
    assert not Path("pots/log").exists()  # each run writes into its own
    Path("large/size").write_text("{cells}")
    shown = run("init", "--command", "./md large", "--values", "cells=1,2,3", "--name", "other")
    assert shown.code == 2 and "runs get no copy of large, which has more than 0 MiB" in shown.err


def test_times_in_a_file_that_the_program_writes_are_found() -> None:
    program("prog", "#!/bin/sh\necho begin\necho total time: 0.0$1 s >$2\n")
    shown = run("init", "--command", "./prog {n} results.log", "--values", "n=1,2,3")
    assert "and printed 1 time in results.log: main" in shown.out, shown.err
    chosen = loader.load(Path("prog-scaling.yaml"))
    assert chosen.program is not None
    assert [item.file for item in chosen.program.output] == ["results.log"]
    assert main(["run", "prog-scaling.yaml", "--set", "stop.budget=1 core-hour"]) == 0
    models = run("status", "prog-scaling", "--json").document["models"]
    assert "main" in {item["callpath"] for item in models}


def test_a_run_that_ends_in_good_order_and_says_that_it_failed_is_shown() -> None:
    program("heat", "#!/bin/sh\necho '### FATAL ERROR: could not open deck.in'\necho bye\n")
    shown = run("init", "--command", "./heat {n}")
    assert shown.code == 0
    said = re.search(r"check that this run did its work: it printed: ### FATAL ERROR.*; see (\S+)", shown.out)
    assert said is not None and Path(said[1], "stdout").exists()
    assert "note: every run has a directory of its own: give files" in shown.out


def test_a_program_that_wrote_what_it_should_have_read_is_told_apart() -> None:
    program("heat", "#!/bin/sh\n[ -e heat.in ] || echo default >heat.in\necho total time: 0.0$1 s\n")
    Path("heat.in").write_text("mine\n")
    Path("stdout").write_text("of a run by hand\n")
    shown = run("init", "--command", "./heat {n}", "--values", "n=1,2,3")
    assert shown.code == 0
    assert "note: the run wrote heat.in, which stands here, too" in shown.out


def test_times_of_a_run_of_which_only_the_exit_code_says_that_it_failed_are_found() -> None:
    program("check", "#!/bin/sh\necho 'Runtime: 0.5 seconds'\necho 'checksum differs'\nexit 1\n")
    shown = run("init", "--command", "./check {n}", "--executor", "local")
    assert shown.code == 1 and "exit code 1" in shown.err
    assert (
        "note: the run that failed printed 1 time: main; if it did its work all the same, write exit_codes: "
        "[0, 1] below measure, and what only such runs print as success"
    ) in shown.out
    more = (
        "--set",
        "measure.success=^Runtime",
        "--set",
        "measure.exit_codes=[0, 1]",
        "--set",
        "strategy=full",
    )
    assert run("run", "check-scaling.yaml", *more).code == 0
    program("crash", "#!/bin/sh\necho 'Runtime: 0.5 seconds'\nkill -11 $$\n")
    shown = run("init", "--command", "./crash {n}", "--executor", "local")
    assert shown.code == 1 and "note: the run that failed" not in shown.out


def test_a_time_that_is_longer_than_the_run_is_told() -> None:
    program("micro", "#!/bin/sh\necho 'total time: 523000'\n")
    shown = run("init", "--command", "./micro {n}", "--executor", "local")
    assert "note: main would be 5.23e+05 s, longer than the run that printed it" in shown.out
    program("milli", "#!/bin/sh\necho 'total time: 0.002'\n")
    assert "longer than" not in run("init", "--command", "./milli {n}", "--executor", "local").out


@pytest.mark.parametrize(
    ("printed", "told"),
    [("Time in seconds = 0.02", True), ("Time in seconds = 0.0204", False), ("total time: 12.5 s", False)],
)
def test_a_time_of_few_digits_is_told(printed: str, told: bool) -> None:
    program("coarse", f"#!/bin/sh\nsleep 0.05\necho '{printed}'\n")  # as long as it says
    shown = run("init", "--command", "./coarse {n}", "--executor", "local")
    assert shown.code == 0
    assert ("note: main is printed as 0.02, so it is known to 0.01 s: choose values" in shown.out) == told


def test_a_run_that_fails_is_reported_and_the_files_stay() -> None:
    path = program("broken", "#!/bin/sh\necho no such luck >&2\nexit 3\n")
    shown = run("init", "lulesh", "--executable", path, "--executor", "local")
    assert shown.code == 1 and "exit code 3" in shown.err
    assert "absolute paths" not in shown.err  # nothing says that a file was missing
    assert Path("lulesh.yaml").exists() and list(Path().glob("lulesh.try-*"))


@pytest.mark.parametrize("name", registry.names("application"))
def test_every_application_has_a_first_campaign_that_can_be_planned(name: str) -> None:
    path = program("any", "#!/bin/sh\n")
    shown = run("init", name, "--executable", path, "--no-try", "--executor", "local")
    if name == "fastest":
        assert shown.code == 2 and "needs at least 16 cores" in shown.err
        assert run("init", name, "--executable", path, "--no-try").code == 0
        assert loader.load(Path("fastest.yaml")).executor.name == "slurm"
        return
    assert shown.code == 0, shown.err
    chosen = loader.load(Path(f"{name}.yaml"))
    assert any(chosen.space) and chosen.evaluation_point is not None
    cores = len(os.sched_getaffinity(0))
    spec = chosen.application_spec
    assert all(spec.ranks(chosen.values(point)) <= max(cores, 2) for point in chosen.space)
    planned = run("plan", f"{name}.yaml", "--no-rehearsal")
    assert planned.code == 0, planned.err
    on_slurm = run("init", name, "--executable", path, "--no-try", "--executor", "slurm", "--name", "big")
    assert on_slurm.code == 0, on_slurm.err


def test_on_slurm_the_cores_of_its_nodes_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = "debug*|up|idle|4|48|2:24:1|1-00:00:00\nbig|up|idle|2|96|2:48:1|1-00:00:00\n"
    monkeypatch.setattr(partitions, "partitions", lambda: partitions.parse_partitions(nodes))
    path = program("any", "#!/bin/sh\n")
    shown = run("init", "lulesh", "--executable", path, "--no-try", "--executor", "slurm")
    assert shown.code == 0, shown.err
    text = Path("lulesh.yaml").read_text()
    assert re.search(r"^  cores_per_node: 48 +# of debug, as sinfo reports$", text, re.MULTILINE)
    assert loader.load(Path("lulesh.yaml")).executor.name == "slurm"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give an application or --command"),
        (["lulesh", "--command", "./x {n}"], "give an application or --command"),
        (["luhlesh"], "did you mean 'lulesh'?"),
        (["--command", "./heat 10"], "write what is to vary as {NAME}"),
        (["--command", "./heat {n}", "--values", "n=100"], "--values n=100: one value makes n a setting"),
        (["--command", "./heat 'x"], "No closing quotation"),
        (["--command", "./heat {n} -k {k"], "a brace in '{k' is not closed"),
        (["--command", "./heat {n} -k k}"], "a brace in 'k}' is not opened"),
        (["--command", "./heat {n} -k {}"], "{} names no parameter"),
        (["--command", "./heat {n*2} {n}"], "{n*2} names no parameter"),
        (["--command", "{heat} 3"], "or a script that starts one by its argument: 'bash st"),
        (["--command", "./heat {n} | tee out.txt"], "so '|' cannot be used; leave it out (the output of"),
        (["--command", "./heat {n} 2> out"], "so '>' cannot be used"),
        (["--command", "cd x && ./heat {n}"], "so '&&' cannot be used"),
        (["--command", "./heat $(nproc) {n}"], "so '$(' cannot be used"),
        (["--command", "./heat {n} {class}"], "parameters.class: is a word of expressions, as in Python"),
        (["--command", "A=1 mpirun -np {p} ./heat {n}"], 'put A: "1" under program.environment'),
        (["--command", "mpirun -np {p} A={a} ./heat {n}"], "write 'export A={{a}}' into the template, and a"),
        (["--command", "./none {n}"], "the program './none' does not exist"),
        (["--command", "mpirun --host a ./heat {n}"], "leave --host out"),
        (["lulesh", "--values", "q=1,2"], "lulesh has no parameter 'q'"),
        (["lulesh", "--values", "s"], "give a name and values"),
        (["lulesh", "--values", "s=1,b"], "give at least two numbers to vary"),
        (["lulesh", "--values", "s=a,b"], "s must be a whole number"),
        (["lulesh", "--values", "p=1,2", "--executable", "./heat", "--executor", "slurm"], "p is 3"),
        (["lulesh", "--evaluation-point", "q=1"], "is none of the parameters that vary"),
        (["lulesh", "--evaluation-point", "s"], "give names and values, like p=216,s=35"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(arguments: list[str], message: str) -> None:
    program("heat", HEAT)
    shown = run("init", *arguments)
    assert shown.code == 2 and message in shown.err
    assert [path.name for path in Path().iterdir()] == ["heat"]


@pytest.mark.parametrize(
    ("command", "values", "threads", "counts"),
    [
        ("OMP_NUM_THREADS={k} ./heat {n}", [], "k", ["k"]),
        ("OMP_NUM_THREADS={k} mpirun -np {p} ./heat {n}", [], "k", ["k", "p"]),
        ("OMP_NUM_THREADS=2 ./heat {n}", [], "2", []),
        ("./heat -t {t} {n}", [], "t", ["t"]),
        ("./heat -t {t} {n}", ["t=1,2"], "t", []),
        ("./heat -t {threads} {n}", [], "threads", ["threads"]),
        ("./heat {n_jobs} {n}", [], "n_jobs", ["n_jobs"]),
        ("./heat -t {t} {n}", ["t=0.5,1.0"], "1", []),
        ("./heat -t {t} {n}", ["t=100,200"], "1", []),
        ("OMP_NUM_THREADS={k} ./heat -t {t}", [], "k", ["k"]),
    ],
)
def test_threads_are_those_of_the_environment_or_called_so(
    command: str, values: list[str], threads: str, counts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program("heat", HEAT)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    more = [word for item in values for word in ("--values", item)]
    shown = run("init", "--command", command, "--no-try", "--executor", "local", *more)
    assert shown.code == 0, shown.err
    chosen = loader.load(Path("heat-scaling.yaml"), starts=False)
    assert chosen.program is not None and chosen.program.threads == threads
    for name in counts:
        assert f"  {name}: [1, 2]" in Path("heat-scaling.yaml").read_text()


def test_where_only_categories_vary_there_is_no_evaluation_point() -> None:
    program("heat", HEAT)
    shown = run(
        "init", "--command", "./heat {kind} 3", "--values", "kind=1a,2b", "--no-try", "--executor", "local"
    )
    assert shown.code == 0, shown.err
    assert loader.load(Path("heat-scaling.yaml")).evaluation_point is None
    assert run("plan", "heat-scaling.yaml").code == 0


OPTIONS = ("--values", "order=rows,columns", "--values", "block=8,16,32", "--no-try", "--executor", "local")


def test_a_tuning_space_has_no_evaluation_point_and_single_runs_where_models_are_unsure() -> None:
    program("heat", HEAT)
    shown = run("init", "--command", "./heat {order} {block}", *OPTIONS, "--goal", "tuning")
    assert shown.code == 0, shown.err
    assert "note:" not in shown.out
    chosen = loader.load(Path("heat-tuning.yaml"))
    assert chosen.evaluation_point is None and chosen.strategy.name == "active"
    assert (chosen.measure.repetitions.initial, chosen.measure.repetitions.maximum) == (1, 3)
    assert run("plan", "heat-tuning.yaml", "--no-rehearsal").code == 0
    both = run("init", "--command", "./heat {n}", "--goal", "tuning", "--evaluation-point", "n=4", "--no-try")
    assert both.code == 2 and "--goal tuning has no evaluation point" in both.err


@pytest.mark.usefixtures("patient")
def test_no_run_is_estimated_to_take_longer_the_larger_an_option_is() -> None:
    program("heat", "#!/bin/sh\necho 'Runtime: 0.5 seconds'\n")
    options = ("--values", "order=rows,columns", "--values", "block=8,16,32", "--executor", "local")
    assert run("init", "--command", "./heat {order} {block}", *options, "--goal", "tuning").code == 0
    text = Path("heat-tuning.yaml").read_text()
    assert re.search(r"^  # expected_time: \S+ +# s; correct it", text, re.MULTILINE), text


def test_of_parameters_that_look_like_options_it_is_said_that_models_hold_beyond_them() -> None:
    program("heat", HEAT)
    shown = run("init", "--command", "./heat {order} {block}", *OPTIONS)
    assert (
        "note: the models are to hold at P(order=columns, block=64), beyond what is measured; if" in shown.out
    )
    assert "init --goal tuning" in shown.out
    many = run("init", "--command", "./heat {a} {b} {c} {d}", "--no-try", "--name", "many")
    assert "init --goal tuning" in many.out
    few = run("init", "--command", "./heat {a} {b}", "--no-try", "--name", "few")
    assert "init --goal tuning" not in few.out
    given = run(
        "init",
        "--command",
        "./heat {order} {block}",
        *OPTIONS,
        "--evaluation-point",
        "block=99",
        "--name",
        "x",
    )
    assert given.code == 0 and "init --goal tuning" not in given.out


@pytest.mark.parametrize(
    ("listed", "beyond"), [("1,2", 4), ("4,8", 16), ("1,2,4", 8), ("2,4,6", 8), ("1,3", 5)]
)
def test_after_ranks_that_are_powers_of_two_comes_the_next_power(listed: str, beyond: int) -> None:
    program("heat", HEAT)
    more = ["--executor", "slurm", "--no-try", "--values", f"p={listed}", "--values", "n=1,2"]
    assert run("init", "--command", "mpirun -np {p} ./heat {n}", *more).code == 0
    assert f"evaluation_point: {{p: {beyond}, n: 3}}" in Path("heat-scaling.yaml").read_text()


def test_the_value_after_0_1_and_0_2_is_0_3() -> None:
    program("heat", HEAT)
    more = ["--executor", "local", "--values", "dt=0.1,0.2"]
    assert run("init", "--command", "./heat {dt}", "--no-try", *more).code == 0
    assert "evaluation_point: {dt: 0.3} " in Path("heat-scaling.yaml").read_text()


def test_quoted_arguments_may_hold_what_only_a_shell_understands() -> None:
    program("heat", HEAT)
    text = """./heat {n} 'a | b' "c > d" e\\;f '{"n": {n}}'"""
    shown = run("init", "--command", text, "--no-try")
    assert shown.code == 0, shown.err
    words = """{{n}} 'a | b' 'c > d' 'e;f' '{"n": '{{n}}'}'"""
    assert Path("heat-scaling.sh").read_text().endswith(f"{{{{executable}}}} {words}\n")


def test_files_that_exist_are_never_overwritten() -> None:
    Path("lulesh.sh").write_text("mine")
    shown = run("init", "lulesh", "--no-try", "--executor", "local")
    assert shown.code == 2 and "lulesh.sh exists" in shown.err
    assert Path("lulesh.sh").read_text() == "mine" and not Path("lulesh.yaml").exists()


def test_the_evaluation_point_may_be_given() -> None:
    path = program("any", "#!/bin/sh\n")
    more = ["--executable", str(path), "--no-try", "--executor", "slurm", "--evaluation-point", "p=64"]
    shown = run("init", "lulesh", *more, "--values", "p=1,8,27")
    assert shown.code == 0, shown.err
    point = loader.load(Path("lulesh.yaml")).evaluation_point
    assert point is not None and point.as_dict() == {"p": 64, "s": 35}


def test_sizes_that_are_given_in_another_way_replace_those_to_begin_with() -> None:
    path = program("any", "#!/bin/sh\n")
    more = ["--executable", str(path), "--no-try", "--executor", "local"]
    sizes = ["--values", "nx=4,8", "--values", "ny=4,8", "--values", "nz=4"]
    shown = run("init", "amg", *more, *sizes)
    assert shown.code == 0, shown.err
    chosen = loader.load(Path("amg.yaml"))
    assert [item.name for item in chosen.parameters if item.name != "p"] == ["nx", "ny"]
    assert chosen.settings["nz"] == 4 and "s" not in chosen.settings


def test_texts_are_categories() -> None:
    path = program("any", "#!/bin/sh\n")
    more = ["--executable", str(path), "--no-try", "--executor", "local"]
    shown = run("init", "kripke", *more, "--values", "layout=DGZ,ZGD", "--values", "groups=8")
    assert shown.code == 0, shown.err
    chosen = loader.load(Path("kripke.yaml"))
    assert chosen.evaluation_point is not None and chosen.evaluation_point["layout"] == "ZGD"
    assert "# where the models must hold: choose layout" in Path("kripke.yaml").read_text()
    assert {item.name: item.categorical for item in chosen.parameters} == {
        "p": False,
        "s": False,
        "layout": True,
    }
