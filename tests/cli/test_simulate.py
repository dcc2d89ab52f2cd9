"""Rehearsals: stated functions and replayed measurements, the same for the same seed."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, LOCAL, run, tree, write_campaign

# Two parameters, three repetitions; the times are 0.5 + 0.01 * n * log2(p), some with noise.
DATASET = """\
PARAMETER p
PARAMETER n
POINTS (2 10) (4 10) (8 10) (16 10) (2 20) (4 20) (8 20) (16 20) (2 40) (4 40) (8 40) (16 40)
REGION main
METRIC time
DATA 0.60 0.61 0.60
DATA 0.70 0.71 0.70
DATA 0.80 0.79 0.80
DATA 0.90 0.91 0.89
DATA 0.70 0.69 0.70
DATA 0.90 0.90 0.91
DATA 1.10 1.10 1.09
DATA 1.30 1.31 1.30
DATA 0.90 0.91 0.90
DATA 1.30 1.30 1.29
DATA 1.70 1.71 1.70
DATA 2.10 2.09 2.10
"""

CAMPAIGN = """\
name: replay
application: minife
executable: ${NO_SUCH_PROGRAM}
parameters: {p: [2, 4, 8, 16], n: [10, 20, 40]}
evaluation_point: {p: 32, n: 80}
measure: {time_limit: 10 s, repetitions: {initial: 2, maximum: 3}}
strategy: {name: cpf, batch_size: 2}
stop: {budget: 1 core-hour, patience: 2}
seed: 5
"""

TRUTH = ("--truth", "main=0.5 + 0.01 * n * log2(p)", "--truth", "main->solve=1e-3*n")


@pytest.fixture(autouse=True)
def files() -> None:
    write_campaign(Path.cwd(), CAMPAIGN, None)
    Path("data.txt").write_text(DATASET)


def without_identity(document: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in document.items() if key != "id"}


@pytest.mark.parametrize(
    "source",
    [
        (*TRUTH, "--noise", "3", "--failure-rate", "0.2", "--queue-delay", "5 min"),
        ("--dataset", "data.txt", "--failure-rate", "0.1"),
    ],
)
def test_a_rehearsal_is_determined_by_its_seed(source: tuple[str, ...]) -> None:
    first = run("simulate", "campaign.yaml", *source, "--json")
    again = run("simulate", "campaign.yaml", *source, "--json")
    other = run("simulate", "campaign.yaml", *source, "--set", "seed=6", "--json")
    assert first.code == again.code == other.code == 0, first.err
    assert without_identity(first.document) == without_identity(again.document)
    assert without_identity(first.document) != without_identity(other.document)
    assert first.err == again.err


@pytest.mark.slow
def test_the_order_of_sets_and_maps_in_a_process_changes_nothing() -> None:
    """Every process has its own hashes of text; persistent maps are in their order."""

    def events(hashes: str) -> list[tuple[str, object]]:
        options = ("--set", "strategy={name: sample, batch_size: 6}", "--set", "model=pmnf", "--noise", "5")
        command = [*COMMAND, "simulate", "campaign.yaml", *TRUTH, *options, "--directory", hashes]
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": hashes}, check=True, capture_output=True)
        lines = map(json.loads, (Path(hashes) / "journal.jsonl").read_text().splitlines())
        return [(line["event"], line["data"].get("attempt")) for line in lines]

    assert events("1") == events("2")


def test_stated_functions_are_found_again() -> None:
    status = run("simulate", "campaign.yaml", *TRUTH, "--noise", "0", "--json").document
    models = {item["callpath"]: item for item in status["models"]}
    assert models["main"]["predictions"][0]["value"] == pytest.approx(0.5 + 0.01 * 80 * 5, rel=0.01)
    assert models["main->solve"]["predictions"][0]["value"] == pytest.approx(0.08, rel=0.01)
    assert status["state"] == "stopped"


def test_replayed_measurements_are_those_of_the_file() -> None:
    result = run("simulate", "campaign.yaml", "--dataset", "data.txt", "--directory", "kept", "--json")
    assert result.code == 0, result.err
    written = run("export", "kept", "--format", "csv").out.splitlines()
    values = {float(line.rsplit(",", 1)[1]) for line in written[1:] if ",main," in f",{line}"}
    assert values
    assert values <= {
        float(word) for line in DATASET.splitlines() if "DATA" in line for word in line.split()[1:]
    }


def test_without_a_directory_nothing_is_left_behind() -> None:
    before = tree(Path.cwd())
    assert run("simulate", "campaign.yaml", *TRUTH).code == 0
    assert tree(Path.cwd()) == before


def test_a_rehearsal_that_measures_nothing_fails_as_the_campaign_would() -> None:
    result = run("simulate", "campaign.yaml", "--truth", "main=60 * p")  # the time limit is 10 s
    assert result.code == 1
    assert "error: the campaign measured nothing: failures (8 points in a row were given up" in result.err
    assert "stop rule: failures" in result.out, "the status is shown all the same"


def test_a_kept_rehearsal_is_a_campaign_directory_like_any_other() -> None:
    status = run("simulate", "campaign.yaml", *TRUTH, "--directory", "kept", "--json").document
    del status["rehearsal"]
    assert run("status", "kept", "--json").document == status
    assert run("model", "kept").code == 0


@pytest.mark.parametrize("stated", ["truth: {main: 7 * n}", "dataset: other.txt"])
@pytest.mark.parametrize(
    "source", [("--truth", "main=0.5", "--truth", "a.b(int)=0.5"), ("--dataset", "data.txt")]
)
def test_the_command_line_replaces_what_the_file_says(stated: str, source: tuple[str, ...]) -> None:
    Path("other.txt").write_text(DATASET.replace("DATA 0", "DATA 5"))
    write_campaign(Path.cwd(), CAMPAIGN + f"executor: {{name: simulated, {stated}}}\n", None)
    written = run("simulate", "campaign.yaml", *source, "--directory", "kept", "--json")
    assert written.code == 0, written.err
    models = {item["callpath"]: item for item in written.document["models"]}
    assert models["main"]["predictions"][0]["value"] < 6
    assert ("a.b(int)" in models) == ("--truth" in source)


def test_a_campaign_of_another_executor_is_rehearsed_without_its_program() -> None:
    write_campaign(Path.cwd(), LOCAL.replace("./program.sh", "./missing"), None)
    result = run("simulate", "campaign.yaml", "--truth", "main=n+0.5", "--json")
    assert result.code == 0, result.err
    assert result.document["runs"]["measured"] == 10


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        (("--truth", "main"), "CALLPATH=EXPRESSION"),
        (("--truth", "main=q*2"), "q"),
        (("--truth", "main=__import__('os')"), "main"),
        (("--dataset", "missing.txt"), "missing.txt"),
        (("--truth", "main=n", "--dataset", "data.txt"), "dataset"),
        (("--truth", "main=n", "--failure-rate", "1"), "failure_rate"),
        (("--truth", "main=n", "--queue-delay", "soon"), "soon"),
        (("--truth", "main=n", "--noise", "-1"), "noise"),
        (
            (
                "--truth",
                "main=-n",
            ),
            "main",
        ),
    ],
)
def test_a_rehearsal_that_is_impossible(options: tuple[str, ...], mistake: str) -> None:
    result = run("simulate", "campaign.yaml", *options, "--directory", "kept")
    assert result.code == 2, result.err
    assert mistake in result.err
    assert result.out == ""
    assert "Traceback" not in result.err


LACKING = ("--dataset", "data.txt", "--set", "parameters.n.values=[10, 20, 30, 40]", "--set", "validate=true")


def test_points_that_a_data_set_lacks_are_left_out() -> None:
    result = run("simulate", "campaign.yaml", *LACKING, "--directory", "kept", "--json")
    assert result.code == 0, result.err
    assert "left out: 4 of 16 points of the search space: the data set has no time there" in result.err
    assert "no validation at P(p=32, n=80): the data set has no time there" in result.err
    assert result.document["state"] == "stopped"
    assert "n=30" not in Path("kept/journal.jsonl").read_text()
    assert "validate: false" in Path("kept/campaign.yaml").read_text()


def test_a_kept_rehearsal_goes_on_without_the_points_that_its_data_set_lacks() -> None:
    assert run("simulate", "campaign.yaml", *LACKING, "--directory", "kept").code == 0
    more = ("stop.budget=9", "stop.patience=99", "strategy=full")
    result = run("resume", "kept", *(word for text in more for word in ("--set", text)), "--json")
    assert result.code == 0, result.err
    assert "left out: 4 of 16 points" in result.err
    assert "stop rule: exhausted" in result.err
    assert "n=30" not in Path("kept/journal.jsonl").read_text()


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        (("parameters.n.values=[11, 21]",), "the search space is empty: .*'the data set has no time there'"),
        (("measure.metrics=[visits]",), "the search space is empty: .*'the data set has no visits there'"),
        (
            ("parameters={p: [2, 4]}", "evaluation_point={p: 8}", "settings={n: 10}"),
            "has the parameter n, which",
        ),
    ],
)
def test_a_data_set_of_which_nothing_can_be_replayed(options: tuple[str, ...], mistake: str) -> None:
    changes = [word for text in options for word in ("--set", text)]
    result = run("simulate", "campaign.yaml", "--dataset", "data.txt", *changes, "--directory", "kept")
    assert result.code == 2
    assert re.search(mistake, result.err), result.err
    assert not Path("kept").exists()


def test_a_measured_evaluation_point_is_validated_and_never_left_out() -> None:
    more = ("evaluation_point={p: 16, n: 40}", "parameters.p=[2, 4, 8]", "validate=true", "stop.budget=9")
    changes = [word for text in more for word in ("--set", text)]
    result = run("simulate", "campaign.yaml", "--dataset", "data.txt", *changes, "--json")
    assert result.code == 0, result.err
    assert "no validation" not in result.err and "left out" not in result.err
    assert result.document["validation"] is not None


def test_the_cost_of_a_replayed_run_is_that_of_the_whole_run() -> None:
    paths = ("(run),elapsed", "init,time", "solve,time")
    rows = [f"{p},{n},{path},{p * n}" for p in (2, 4, 8, 16) for n in (10, 20, 40) for path in paths]
    Path("whole.csv").write_text("\n".join(["p,n,callpath,metric,value", *rows]))
    result = run("simulate", "campaign.yaml", "--dataset", "whole.csv", "--json", "--directory", "kept",
                 "--set", "measure.time_limit=1 h", "--set", "stop.budget=99")  # fmt: skip
    assert result.code == 0, result.err
    written = run("export", "kept", "--format", "csv").out.splitlines()
    elapsed = {tuple(row.split(",")[:2]): float(row.split(",")[-1]) for row in written if "elapsed" in row}
    assert elapsed and all(value == int(p) * int(n) for (p, n), value in elapsed.items())


def test_a_table_without_call_paths_has_the_parameters_of_the_campaign() -> None:
    rows = [f"{p},{n},{p * n / 100}" for p in (2, 4, 8, 16) for n in (10, 20, 40)]
    Path("wide.csv").write_text("\n".join(["p,n,time", *rows]))
    result = run("simulate", "campaign.yaml", "--dataset", "wide.csv", "--json")
    assert result.code == 0, result.err
    assert result.document["points"] == 10  # the others reach their limit
    Path("wide.csv").write_text("\n".join(["p,m,time", *rows]))
    result = run("simulate", "campaign.yaml", "--dataset", "wide.csv")
    assert result.code == 2
    assert "wide.csv:1: no column for parameter n" in result.err
    Path("long.csv").write_text("p,callpath,metric,value\n2,main,time,fast\n")  # its mistake is another one
    result = run("simulate", "campaign.yaml", "--dataset", "long.csv")
    assert result.code != 0 and "long.csv:2: value: 'fast' is not a number" in result.err


def test_no_point_is_repeated_more_often_than_the_data_set_has_values() -> None:
    """The same value again would look like a machine without noise."""
    few = DATASET.replace(" 0.61 0.60", "")
    for content, most in ((DATASET, 3), (few, 3), (re.sub(r"(DATA \S+).*", r"\1", DATASET), 1)):
        Path("data.txt").write_text(content)
        kept = f"kept-{len(content)}"
        result = run("simulate", "campaign.yaml", "--dataset", "data.txt", "--directory", kept,
                     "--set", "strategy.name=grid", "--set", "measure.repetitions.maximum=5")  # fmt: skip
        assert result.code == 0, result.err
        runs = run("runs", kept, "--json").document
        assert max(row["repetition"] for row in runs) == most
        assert "no measured time" not in result.err
