"""Every campaign can be rehearsed without options: what its runs yield, and what comes out."""

import re
from pathlib import Path
from typing import Any

import pytest

from orchestrator.launch.script import data_directory
from tests.cli.running import LOCAL, Result, run, write_campaign

# Of different kinds; all ready campaigns are planned in another test.
READY = [
    data_directory("campaigns") / f"{name}.yaml"
    for name in ("generic", "quickstart", "lulesh-small", "kripke-small", "minife-small")
]
ROUNDS = ("--set", "strategy.name=cpf", "--set", "stop.patience=1")  # few and fast


def rehearsed(*arguments: str | Path) -> Result:
    result = run("simulate", *arguments, "--json")
    assert result.code == 0, result.err
    return result


def outcome(*arguments: str | Path) -> Any:
    return rehearsed(*arguments).document["rehearsal"]


@pytest.mark.parametrize("path", READY, ids=lambda path: path.stem)
def test_ready_campaigns_are_rehearsed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LULESH", "KRIPKE", "MINIFE", "LAMMPS"):
        monkeypatch.delenv(name, raising=False)
    result = rehearsed(path, *ROUNDS)
    found = result.document["rehearsal"]
    assert f"truth: {found['truth']}" in result.err
    assert found["source"] == ("expected_time" if "expected_time" in path.read_text() else "assumption")
    assert "noise of ±5 %" in found["truth"]
    assert 0 < found["core_hours"] <= found["budget"]
    assert found["rounds"] >= 1 and found["runs"] > 0 and found["wall_seconds"] > 0
    assert found["stop_rule"] == result.document["stop_reason"]["rule"]
    (main,) = [row for row in found["found"] if row["callpath"] == "main"]
    assert main["predicted"] == pytest.approx(main["truth"], rel=0.3)
    assert main["inside"] == (main["low"] <= main["truth"] <= main["high"])


def test_the_outcome_is_printed_for_humans() -> None:
    result = run("simulate", "generic", *ROUNDS)
    assert result.code == 0, result.err
    out = " ".join(result.out.split())
    assert "truth of this rehearsal: measure.expected_time, 0.1 + 1e-6 * n * r s, all of it in" in out
    assert re.search(r"it would have cost 0\.\d+ of 0\.03 core-hours: \d+ rounds?, \d+ measured runs, ", out)
    assert "found at P(n=128000, r=24)" in out


AWKWARD = """\
name: awkward
application: generic
executable: ${NO_SUCH_PROGRAM}
program:
  arguments: ["{n}"]
  ranks: p
  threads: "2"
parameters: {p: [1, 2, 4], n: [10, 20, 40, 80], k: {values: [cg, mg]}}
constraints: ["n >= 10 * p", "k == 'cg' or n > 10"]
evaluation_point: {p: 8, n: 160, k: mg}
validate: true
measure:
  profiler: scorep
  metrics: [time, visits]
  effort: EFFORT
strategy: {name: random, batch_size: 4}
stop: {budget: 4 core-hours, patience: 1, rule: smape}
executor:
  name: slurm
  partition: ${NO_SUCH_PARTITION}
  cores_per_node: 16
  prologue: ["module load ${NO_SUCH_MODULE}"]
  template: /no/such/template.sh
"""


@pytest.mark.parametrize("effort", ["false", "true", "{executable: '${NO_SUCH_BUILD}', when: always}"])
def test_profiles_categories_constraints_and_effort_are_no_obstacle(effort: str) -> None:
    write_campaign(Path.cwd(), AWKWARD.replace("EFFORT", effort), None)
    document = rehearsed("campaign.yaml").document
    found = document["rehearsal"]
    assert re.search(r" \* n / p s, all of it", found["truth"])
    assert "visits" in found["notes"][0]
    assert any("basic blocks" in note for note in found["notes"]) == (effort != "false")
    assert (document["effort_runs"]["measured"] > 0) == (effort != "false")
    assert document["runs"]["given up"] == 0
    assert document["validation"]


CAMPAIGN = LOCAL.replace("measure: {time_limit: 20 s}", "measure: {time_limit: 60 s, expected_time: 3 * n}")


def write_data() -> None:
    rows = [f"{n},main,time,{5 * n}" for n in (1, 2, 3, 4, 5)]
    Path("data.csv").write_text("\n".join(["n,callpath,metric,value", *rows]) + "\n")


def source(*arguments: str) -> tuple[str, float]:
    """Where the times come from, and the predicted time of the call path main at n = 8."""
    document = rehearsed("campaign.yaml", "--noise", "0", *arguments).document
    (main,) = [model for model in document["models"] if model["callpath"] == "main"]
    return document["rehearsal"]["source"], round(main["predictions"][0]["value"], 1)


def test_the_truth_is_the_first_that_is_known() -> None:
    write_campaign(Path.cwd(), LOCAL)
    write_data()
    assert source()[0] == "assumption"
    write_campaign(Path.cwd(), CAMPAIGN)
    assert source() == ("expected_time", 24.0)
    # The campaign itself measures n + 0.5 seconds, in the directory that run uses.
    assert run("run", "campaign.yaml").code == 0
    assert source() == ("models", 8.5)
    found = outcome("campaign.yaml")
    assert f"5 points measured in {Path.cwd()}/tiny" in found["truth"]
    assert {row["callpath"] for row in found["found"]} == {"main", "(run)"}
    # What is stated comes before it, and the command line before the file.
    for executor, expected in (
        ("{name: simulated, truth: {main: 4 * n}}", ("truth", 32.0)),
        ("{name: simulated, dataset: data.csv}", ("dataset", 40.0)),
        ("{name: simulated, models: tiny}", ("models", 8.5)),
    ):
        text = CAMPAIGN.replace("{name: local, slots: 1, max_pending: 1, launcher: none}", executor)
        write_campaign(Path.cwd(), text)
        assert source() == expected
        assert source("--truth", "main=7*n") == ("truth", 56.0)
        assert source("--dataset", "data.csv") == ("dataset", 40.0)
        assert source("--models", "tiny") == ("models", 8.5)


def test_measurements_beside_the_campaign_file_are_found() -> None:
    write_campaign(Path.cwd(), CAMPAIGN)
    assert run("run", "campaign.yaml", "--directory", "elsewhere").code == 0
    assert outcome("elsewhere/campaign.yaml")["source"] == "models"
    assert outcome("campaign.yaml")["source"] == "expected_time"


def test_a_rehearsal_is_no_measurement() -> None:
    write_campaign(Path.cwd(), CAMPAIGN)
    rehearsed("campaign.yaml", "--directory", "tiny")
    assert outcome("campaign.yaml")["source"] == "expected_time"


def test_models_of_another_campaign_must_know_this_one() -> None:
    write_campaign(Path.cwd(), CAMPAIGN)
    assert run("run", "campaign.yaml").code == 0
    other = CAMPAIGN.replace("{n: [", "{m: [").replace("{n}", "{m}").replace("{n: 8}", "{m: 8}")
    Path("other.yaml").write_text(other.replace("3 * n", "3 * m"))
    found = outcome("other.yaml")
    assert found["source"] == "expected_time"
    assert "has the parameter n, which this one has not" in found["notes"][0]
    refused = run("simulate", "other.yaml", "--models", "tiny")
    assert refused.code == 2
    assert "executor.models: the campaign in" in refused.err and "parameter n" in refused.err
    missing = run("simulate", "other.yaml", "--models", "nowhere")
    assert missing.code == 2 and "nowhere" in missing.err


def test_a_kept_rehearsal_of_models_goes_on_with_them() -> None:
    write_campaign(Path.cwd(), CAMPAIGN)
    assert run("run", "campaign.yaml").code == 0
    rehearsed("campaign.yaml", "--directory", "kept", "--noise", "0", "--set", "stop.patience=1")
    again = run("resume", "kept", "--set", "stop.patience=9", "--json")
    assert again.code == 0, again.err
    main = next(model for model in again.document["models"] if model["callpath"] == "main")
    assert main["predictions"][0]["value"] == pytest.approx(8.5, rel=0.02)


def test_a_local_campaign_keeps_its_cores() -> None:
    text = LOCAL.replace("  output:", "  ranks: n\n  output:").replace("slots: 1", "slots: 3")
    write_campaign(Path.cwd(), text.replace("launcher: none", "launcher: 'mpiexec -n {ranks}'"))
    assert rehearsed("campaign.yaml").document["points"] == 3
    assert rehearsed("campaign.yaml", "--set", "executor.slots=2").document["points"] == 2
    assert rehearsed("campaign.yaml", "--set", "executor.oversubscribe=true").document["points"] == 5


TREE = """\
name: tree
application: lulesh
parameters: {p: [1, 8, 27, 64], s: [10, 20, 30]}
evaluation_point: {p: 125, s: 40}
measure: {effort: true, repetitions: {initial: 2, maximum: 4}}
strategy: cpf
stop: {budget: 10 core-hours, patience: 1, rule: smape}
executor:
  name: simulated
  truth: {main: 3e-4 * s**3 + 1, main->solve: 2e-4 * s**3, main->solve->spmv: 1e-4 * s**3, main->io: "0.5"}
"""


def test_all_call_paths_of_an_earlier_campaign_are_rehearsed_with_their_effort() -> None:
    Path("before").mkdir()
    write_campaign(Path("before"), TREE, None)
    first = rehearsed("before/campaign.yaml", "--directory", "before/kept", "--noise", "1").document
    truth = {row["callpath"]: row["truth"] for row in first["rehearsal"]["found"]}
    assert truth["(run)"] == truth["main"] == pytest.approx(20.2)  # its callees are within it
    assert len(truth) == 5
    again = TREE[: TREE.index("  truth:")] + "  models: kept\n"  # a path from the file's own folder
    write_campaign(Path("before"), again, None)
    document = rehearsed("before/campaign.yaml").document
    found = {row["callpath"]: row for row in document["rehearsal"]["found"]}
    assert set(found) == set(truth)
    assert all(found[path]["truth"] == pytest.approx(truth[path], rel=0.05) for path in truth)
    # The first campaign had a noise of ±1 %, which its repetitions show.
    noise = re.search(r"noise of ±([\d.]+) %, as measured there", document["rehearsal"]["truth"])
    assert noise is not None and float(noise[1]) == pytest.approx(1, rel=0.5)
    assert document["effort_runs"]["measured"] > 0
    counted = {model["callpath"] for model in document["models"] if model["metric"] == "basic_blocks"}
    assert counted == set(truth) - {"(run)"}
    few = rehearsed("before/campaign.yaml", "--set", "executor.callpaths=2").document
    assert {row["callpath"] for row in few["rehearsal"]["found"]} == {"(run)", "main", "main->solve"}
    assert "2 call paths that take longest" in few["rehearsal"]["truth"]


def test_measurements_of_another_campaign_in_the_same_place_are_not_taken() -> None:
    write_campaign(Path.cwd(), CAMPAIGN)
    assert run("run", "campaign.yaml", "--directory", ".").code == 0
    Path("other.yaml").write_text(CAMPAIGN.replace("name: tiny", "name: other"))
    assert outcome("other.yaml")["source"] == "expected_time"
    assert outcome("campaign.yaml")["source"] == "models"


def test_options_of_the_former_executor_are_dropped_wherever_they_stand() -> None:
    write_campaign(Path.cwd(), AWKWARD.replace("EFFORT", "false"), None)
    options = ("--set", "executor.partition=debug", "--set", "executor.sbatch={mem: 4G}")
    assert outcome("campaign.yaml", *options)["runs"] > 0
    mistake = run("simulate", "campaign.yaml", "--set", "executor.partitio=debug")
    assert mistake.code == 2 and "partitio" in mistake.err
