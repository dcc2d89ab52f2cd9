import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import space
from orchestrator.control import expectation, planning
from orchestrator.journal.events import RoundProposed
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.report.wording import point_of
from tests.cli.documented import ROOT, shown
from tests.cli.running import LOCAL, SIMULATED, Result, run, tree, write_campaign

SLURM = LOCAL.replace(
    "{name: local, slots: 1, max_pending: 1, launcher: none}",
    '{name: slurm, cores_per_node: 4, partition: debug, launcher: "srun -n {ranks} -N {nodes}"}',
)


def planned(text: str, *options: str, rehearse: bool = False) -> Result:
    """Plan a campaign; whatever the options, nothing is launched or created."""
    folder = Path.cwd()
    write_campaign(folder, text, "#!/bin/sh\ntouch launched\n")
    before = tree(folder)
    result = run("plan", "campaign.yaml", *options, *(() if rehearse else ("--no-rehearsal",)))
    assert tree(folder) == before
    assert result.code == 0, result.err
    assert result.err == ""
    return result


def test_the_plan_names_points_reasons_and_costs() -> None:
    plan = planned(LOCAL, "--json").document
    assert plan["space"]["points"] == plan["space"]["combinations"] == 5
    assert plan["space"]["infeasible"] == {}
    assert {item["point"]["n"] for item in plan["runs"]} <= {1, 2, 3, 4, 5}
    assert all(item["reason"] for item in plan["runs"])
    assert 0 < plan["cost"]["worst"] <= plan["cost"]["budget"] == 1


def test_points_are_shown_as_they_are_written() -> None:
    text = LOCAL.replace("{n}", "{größe}").replace("{n: ", "{größe: ")
    found = planned(text).out
    assert "größe=1 │" in found
    assert point_of("name=a%0Ab/time-1") == "name=a%0Ab"


def test_a_launcher_that_run_would_refuse_is_refused() -> None:
    write_campaign(Path.cwd(), LOCAL.replace("launcher: none", "launcher: 'no-such-mpiexec -n {ranks}'"))
    refused = [run(command, "campaign.yaml") for command in ("plan", "run")]
    assert [result.code for result in refused] == [2, 2]
    assert refused[0].err == refused[1].err
    assert "no-such-mpiexec of executor.launcher is not on PATH here" in refused[0].err


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("speedup", "model speedup: no name says which parameter counts processes"),
        ("{name: speedup, processes: k}", "model speedup: processes is 'k': k is no numeric parameter"),
        ("{name: speedup, processes: m}", "model speedup: every run would have the same number of processes"),
        ("{name: pmnf, exponents: few}", "unknown exponent set 'few'"),
    ],
)
def test_a_model_that_cannot_be_is_refused_before_anything_is_spent(model: str, why: str) -> None:
    text = LOCAL.replace("{n: [1, 2, 3, 4, 5]}", "{n: [1, 2, 3, 4, 5], m: [2]}")
    text = text.replace("{n: 8}", "{n: 8, m: 2}")
    write_campaign(Path.cwd(), text.replace("model: pmnf", f"model: {model}"))
    before = tree(Path.cwd())
    for asked in ("plan", "run"):
        refused = run(asked, "campaign.yaml")
        assert refused.code == 2 and why in refused.err
    assert tree(Path.cwd()) == before


def test_categories_are_listed_instead_of_a_range() -> None:
    text = LOCAL.replace("{n: [1, 2, 3, 4, 5]}", "{n: [1, 2, 3, 4, 5], k: {values: [cg, mg, fft]}}")
    text = text.replace("{n: 8}", "{n: 8, k: mg}")
    result = planned(text)
    assert "  n: 1 .. 5\n" in result.out and "  k: cg, mg, fft\n" in result.out
    alone = planned(text.replace("k: {values", "j: [7], k: {values").replace("{n: 8,", "{n: 8, j: 7,"))
    assert "  j: 7\n" in alone.out
    assert "note: parameter k changes nothing in what a run executes" in result.out.replace("\n", " ")
    assert planned(text, "--json").document["space"]["bounds"] == {"n": [1, 5], "k": ["cg", "mg", "fft"]}


def test_infeasible_combinations_are_counted_by_reason() -> None:
    text = LOCAL.replace("{n: [1, 2, 3, 4, 5]}", "{n: [1, 2, 3, 4, 5], m: [1, 2, 3, 4, 5]}")
    text = text.replace("{n: 8}", "{n: 8, m: 8}").replace(
        "\nprogram:", '\nconstraints: ["n + m < 10"]\nprogram:'
    )
    text = text.replace("  output:", "  ranks: n\n  output:").replace("slots: 1", "slots: 4")
    text = text.replace("launcher: none", "launcher: 'mpiexec -n {ranks}'")
    found = planned(text, "--json").document["space"]
    assert found["combinations"] == 25
    assert found["infeasible"].pop("n + m < 10") == 1
    (machine,) = found["infeasible"].items()
    assert "executor.slots" in machine[0]
    assert machine[1] == 4
    assert found["points"] == 20


def test_the_evaluation_point_is_named_beside_the_points_of_the_space() -> None:
    text = LOCAL.replace("  output:", "  ranks: n\n  output:").replace("slots: 1", "slots: 16")
    text = text.replace("launcher: none", "launcher: 'mpiexec -n {ranks}'") + "validate: true\n"
    out = planned(text).out
    assert "search space: 5 points" in out
    assert "  1 node x 8 ranks x 1 thread: 8 cores, the evaluation point\n" in out
    assert out.count(" thread: ") == 6 and out.count(", 1 point\n") == 5
    assert " core-hours are kept back for it; this changes once a model predicts its duration" in out


def test_the_script_of_the_first_run_is_printed() -> None:
    result = planned(LOCAL)
    assert "search space: 5 points" in result.out
    assert "first batch:" in result.out
    assert result.out.count("--- script of") == 1
    assert f"exec  {Path.cwd()}/program.sh 1\n" in result.out
    assert planned(LOCAL, "--scripts").out.count("--- script of") == 5


def test_the_job_script_of_a_slurm_campaign_is_printed_without_a_slurm() -> None:
    result = planned(SLURM)
    assert "exec srun -n 1 -N 1" in result.out
    assert f"{Path.cwd()}/program.sh 1\n" in result.out
    plan = planned(SLURM, "--json").document
    assert all("srun -n 1 -N 1" in item["script"] for item in plan["runs"])


def test_what_a_job_asks_slurm_for_stands_above_its_script() -> None:
    text = SLURM.replace(
        "debug,", "debug, gpus_per_node: 4, sbatch: {mem: 2G, overcommit: , contiguous: ''},"
    )
    (line,) = [line for line in planned(text).out.splitlines() if line.startswith("sbatch ")]
    options = "--contiguous --cpus-per-task=1 --gpus-per-node=4 --mem=2G --no-requeue --nodes=1 --ntasks=1"
    assert line.startswith(f"sbatch {options} --ntasks-per-node=1 --overcommit --partition=debug --time=")
    plan = planned(text, "--json").document
    assert all("--gpus-per-node=4" in item["sbatch"] for item in plan["runs"])


@pytest.mark.slow
def test_a_ready_campaign_of_one_problem_is_affordable_as_its_page_has_it() -> None:
    page = (ROOT / "docs" / "campaigns.md").read_text()
    [words] = [words for words in shown(page) if words[1:3] == ["run", "kripke-tuning"]]
    result = run("plan", *words[2:], "--no-rehearsal", "--set", "executable=/bin/true")
    assert result.code == 0, result.err
    assert "first batch: 100 runs" in result.out


def test_a_rehearsal_has_no_script() -> None:
    plan = planned(SIMULATED, "--json").document
    assert [item["script"] for item in plan["runs"]] == [None] * len(plan["runs"])
    assert "--- script of" not in planned(SIMULATED).out


def test_a_budget_below_what_ending_a_run_reserves_is_refused_with_one_that_is_enough() -> None:
    text = LOCAL.replace("time_limit: 20 s", "time_limit: 1 s, expected_time: 0.1 s")
    write_campaign(Path.cwd(), text, "#!/bin/sh\n")
    refused = run("plan", "campaign.yaml", "--set", "stop.budget=0.001")
    assert refused.code == 2
    reason = " ".join(refused.err.split())
    assert "(1 core for up to 1 s, and for 12 s until a run that takes longer has ended)" in reason
    assert "measure.time_limit" not in reason, "no limit is short enough"
    enough = reason.split("raise it to ")[1]
    assert planned(text, "--set", f"stop.budget={enough}").code == 0


def test_the_plan_is_what_is_run() -> None:
    plan = planned(SIMULATED, "--json").document
    run("run", "campaign.yaml")
    events = (entry.event for entry in read(Path("rehearsal") / FILE_NAME))
    first = next(event for event in events if isinstance(event, RoundProposed))
    assert [item["run"] for item in plan["runs"]] == [item.id for item in first.runs]
    assert [item["reason"] for item in plan["runs"]] == list(first.reasons)


MEMORY = """\
import re, sys
from pathlib import Path
from orchestrator.cli.main import main

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1000

code = main(["plan", "campaign.yaml", "--no-rehearsal", "--set", "parameters.m.to=2"])
before = peak()
code += main(["plan", "campaign.yaml", "--no-rehearsal"])
print(peak() - before, file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_search_space() -> None:
    text = LOCAL.replace("{n: [1, 2, 3, 4, 5]}", "{n: {from: 1, to: 300}, m: {from: 1, to: 300}}")
    write_campaign(Path.cwd(), text.replace("{n: 8}", "{n: 1000, m: 1000}"))
    process = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert "search space: 90000 points" in process.stdout
    assert float(process.stderr) < 10  # MB; points that were kept would take some 30


def test_the_plan_says_which_runs_share_a_job() -> None:
    assert planned(LOCAL, "--json").document["packs"] is None
    four = planned(SLURM, "--json", "--set", "executor.pack={most: 4, repetitions: spread}")
    assert four.document["packs"] == (
        "up to 4 runs of equal size share a job, one after another; their time limits add up to at most "
        "30 min; repetitions of a point have different jobs"
    )
    assert "3 times what a job costs beside its runs" in " ".join(planned(SLURM).out.split())
    assert planned(SLURM, "--json", "--set", "executor.pack=off").document["packs"] is None


@pytest.mark.usefixtures("patient")
def test_the_plan_shows_what_the_campaign_will_cost_and_find() -> None:
    first, again = (planned(SIMULATED, "--json", rehearse=True).document["rehearsal"] for _ in range(2))
    assert first == again
    assert first["complete"] and first["source"] == "truth" and first["seconds"] == 300
    assert expectation.LONGEST == 10, "what the documentation says of it"
    status = run("run", "campaign.yaml", "--json").document  # which is the same rehearsal
    assert first["core_hours"] == pytest.approx(status["cost"]["spent"])
    assert first["uncertainty_percent"] == pytest.approx(status["uncertainty_percent"])
    assert first["runs"] == status["runs"]["measured"]
    assert first["stop_rule"] == status["stop_reason"]["rule"]
    out = " ".join(planned(LOCAL, rehearse=True).out.split())
    assert "expected by a rehearsal: 0." in out and " of 1 core-hours: " in out
    assert " % at P(n=8) (mean width of the 90 % intervals); stop rule " in out
    assert "truth of the rehearsal: an assumption, as nothing is known of the run time" in out
    assert out.index("expected by a rehearsal") < out.index("--- script of")


def test_without_a_rehearsal_nothing_is_expected() -> None:
    assert planned(LOCAL, "--json").document["rehearsal"] is None
    assert "of rehearsal" not in planned(LOCAL).out and "a rehearsal" not in planned(LOCAL).out


@pytest.mark.usefixtures("patient")
def test_the_plan_says_why_nothing_is_expected() -> None:
    text = SIMULATED.replace('"1e-5 * s**3 + 0.2 * log2(p)"', "10 - s")
    found = planned(text, "--json", rehearse=True).document["rehearsal"]
    assert set(found) == {"reason"}
    assert "times are >= 0" in found["reason"]
    out = " ".join(planned(text, rehearse=True).out.split())
    assert "nothing is expected of a rehearsal: executor.truth.main is -" in out


@pytest.mark.usefixtures("patient")
def test_options_of_the_real_executor_are_no_obstacle_to_the_rehearsal() -> None:
    options = ("--set", "executor.name=local", "--set", "executor.slots=1", "--set", "executor.launcher=none")
    found = planned(SLURM, "--json", *options, rehearse=True).document["rehearsal"]
    assert found["complete"] and found["core_hours"] > 0


SPARSE = """\
name: sparse
application: generic
program: {arguments: [x], output: [{callpath: main, pattern: 't=(.*)'}]}
parameters: {a: {from: 1, to: 100}, b: {from: 1, to: 100}, c: {from: 1, to: 100}, d: {from: 1, to: 100}}
constraints: ["CONSTRAINT"]
measure: {expected_time: 10 s}
strategy: sample
stop: {budget: 5 core-hours}
executor: {name: simulated, truth: {main: "1 + a"}}
"""


def test_draws_that_find_no_point_are_no_reason_to_widen_the_parameters() -> None:
    Path("sparse.yaml").write_text(SPARSE.replace("CONSTRAINT", "a * b * c * d == 720720"))
    found = run("plan", "sparse.yaml", "--no-rehearsal")
    assert found.code == 2
    assert "none of 50000 combinations that were drawn from 1e+08 is a point" in found.err
    assert "relax constraints, or state the values of fewer parameters" in found.err


def test_the_size_of_a_space_in_which_draws_found_no_point_has_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(space, "_MOST_VISITED", 10_000)  # more takes seconds, and finds as little
    text = SPARSE.replace("CONSTRAINT", "(a * 7919 + b * 104729 + c * 31 + d * 17) % 100003 == 5")
    Path("sparse.yaml").write_text(text.replace("strategy: sample", "strategy: active"))
    found = run("plan", "sparse.yaml", "--no-rehearsal")
    assert "search space: fewer than 15000 points of 1e+08 combinations" in found.out, found.err
    document = run("plan", "sparse.yaml", "--no-rehearsal", "--json").document
    assert document["space"]["at_most"] == pytest.approx(14980, rel=0.01)


def test_before_a_strategy_walks_millions_of_combinations_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(planning, "first_round", refuse)
    monkeypatch.setattr(space, "_MOST_VISITED", 10_000)
    text = SPARSE.replace("CONSTRAINT", "a + b + c + d <= 300")
    Path("sparse.yaml").write_text(text.replace("strategy: sample", "strategy: information"))
    warned = run("plan", "sparse.yaml", "--no-rehearsal")
    assert "note: the parameters have 1e+08 combinations, and strategy information looks at" in warned.err
    Path("sparse.yaml").write_text(text)
    assert "note:" not in run("plan", "sparse.yaml", "--no-rehearsal").err
