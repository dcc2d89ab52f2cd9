"""The document of a campaign: what its journal says, and no more."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestrator.control import discarding, existing, reporting
from orchestrator.journal import events
from orchestrator.journal import file as journal
from orchestrator.journal.codec import Entry
from orchestrator.journal.replay import replay
from orchestrator.journal.state import RunStatus
from orchestrator.report.page.course import attempts, failures, spending, unmeasured
from orchestrator.report.page.history import History
from orchestrator.report.wording import about, clock
from orchestrator.types import Attempt, FailureClass, Point, Run
from tests.cli.running import run
from tests.journal.attempts import attempt_finished, attempt_intended
from tests.report.page.sample import unpacked

CAMPAIGN = """
name: rehearsal
application: generic
program: {arguments: ["{p}"], ranks: p, output: [{callpath: main, pattern: "t=(.*)"}]}
parameters: {p: [1, 2, 4, 8], n: [10, 20, 30, 40]}
constraints: ["p * n <= 240"]
evaluation_point: {p: 16, n: 50}
measure: {time_limit: 60 s, expected_time: 5 s}
model: {name: pmnf}
stop: {budget: 0.5 core-hours}
executor:
  name: simulated
  failure_rate: 0.3
  noise: 3
  truth: {main: "0.5 + 0.05*n*p + log2(p)*n*0.01", "main->solve<b>&": "0.05*n*p"}
validate: true
seed: 2
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a simulated campaign whose budget was raised once."""
    folder = tmp_path_factory.mktemp("campaigns")
    (folder / "campaign.yaml").write_text(CAMPAIGN)
    found = folder / "c"
    assert run("run", folder / "campaign.yaml", "--directory", found).code == 0
    assert run("resume", found, "--set", "stop.budget=1 core-hours").code == 0
    return found


@pytest.fixture(scope="module")
def document(directory: Path) -> dict[str, Any]:
    found = reporting.document(directory)
    json.dumps(found, allow_nan=False)
    return found


def fact(document: dict[str, Any], label: str) -> dict[str, Any]:
    return next(item for item in document["head"]["facts"] if item["label"] == label)


def test_the_head_says_what_it_cost_and_what_stopped_it(directory: Path, document: dict[str, Any]) -> None:
    state = existing.replayed(directory)
    assert state.stopped is not None
    assert fact(document, "Stopped by")["value"] == state.stopped.rule
    assert fact(document, "Cost")["value"].endswith("of 1 core-hours")
    assert fact(document, "Application")["detail"] == f"campaign rehearsal, id {state.id}"
    assert document["head"]["answer"]["point"] == {"p": 16, "n": 50}
    assert document["head"]["answer"]["cost"]["cores"] == 16
    assert state.validation is not None
    took = state.runs[state.validation].samples["time"]["main"]
    assert document["head"]["answer"]["checked"]["measured"] == took
    # A simulated campaign has no executable and no hosts: nothing is said of them.
    assert not {"Executable", "Site file"} & {item["label"] for item in document["head"]["facts"]}


def test_a_rehearsal_has_no_date(directory: Path, document: dict[str, Any]) -> None:
    when, state = fact(document, "When"), existing.replayed(directory)
    assert when["value"] == f"rehearsal, after {about(state.time)}"
    assert when["detail"].startswith("no program was run; times are of a virtual clock, 0:00:00 to ")
    assert when["detail"].endswith(clock(state.time))
    assert "1970-01-01" not in json.dumps(document)


def test_the_slider_shows_what_model_predicts(directory: Path, document: dict[str, Any]) -> None:
    shape = document["grid"]["shape"]
    for place in ([0, 0], [1, -1], [-1, -1]):
        stop = [axis["stops"][k] for axis, k in zip(document["parameters"], place, strict=True)]
        point = ",".join(f"{n}={v}" for n, v in zip(document["grid"]["names"], stop, strict=True))
        printed = run("model", directory, "--modeler", "pmnf", "--predict", point, "--json").document[
            "models"
        ]
        for model in printed:
            item = next(
                c
                for c in document["callpaths"]
                if (c["name"], c["metric"]) == (model["callpath"], model["metric"])
            )
            [predicted] = model["predictions"]
            for end in ("value", "low", "high"):
                shown = unpacked(item[end]).reshape(shape)[tuple(place)]
                assert shown == pytest.approx(predicted[end], rel=1e-6)


def test_the_budget_is_shown_as_it_was(directory: Path, document: dict[str, Any]) -> None:
    book = document["ledger"]
    assert document["cost_unit"] == "core-hours"
    assert book["time"][0] == 0 and book["time"] == sorted(book["time"])
    entries = list(journal.read(directory / journal.FILE_NAME))
    changed = next(e.time for e in entries if isinstance(e.event, events.CampaignChanged)) - entries[0].time
    for time, budget in zip(book["time"], book["budget"], strict=True):
        if time != changed:
            assert budget == pytest.approx(0.5 if time < changed else 1)
    assert {round(x, 9) for x in book["budget"]} == {0.5, 1}
    assert all(
        spent + reserved <= budget * (1 + 1e-9)
        for spent, reserved, budget in zip(book["spent"], book["reserved"], book["budget"], strict=True)
    )
    assert book["spent"][-1] == pytest.approx(replay(entries).spent / 3600)


def test_every_point_has_a_state_a_cost_and_a_reason(directory: Path, document: dict[str, Any]) -> None:
    state = existing.replayed(directory)
    points = {tuple(item["point"].values()): item for item in document["points"]}
    assert len(points) == len(document["points"])
    measured = {r.point for r, item in state.runs.items() if item.status is RunStatus.MEASURED}
    assert {key for key, item in points.items() if item["state"] == "measured"} == {
        (point["p"], point["n"]) for point in measured
    }
    assert len([item for item in points.values() if item["state"] != "infeasible"]) == 16
    unchosen = {key for key, item in points.items() if item["state"] == "not chosen"}
    assert unchosen and not unchosen & {(r.point["p"], r.point["n"]) for r in state.runs}
    assert points[8, 40]["state"] == "infeasible" and "p * n <= 240" in points[8, 40]["reason"]
    assert points[16, 50]["validation"]
    assert all(item["reason"] for item in points.values())
    total = sum(item["cost"] for item in points.values() if item["cost"] is not None)
    assert total == pytest.approx(state.spent / 3600)


def test_rounds_and_attempts_are_those_of_the_journal(directory: Path, document: dict[str, Any]) -> None:
    entries = list(journal.read(directory / journal.FILE_NAME))
    rounds = [e.event for e in entries if isinstance(e.event, events.RoundCompleted)]
    assert [item["round"] for item in document["rounds"]] == [event.round for event in rounds]
    assert [item["spent"] for item in document["rounds"]] == sorted(x["spent"] for x in document["rounds"])
    finished = [e.event for e in entries if isinstance(e.event, events.AttemptFinished)]
    shown = document["attempts"]
    assert sum(item["charge"] for item in shown) == pytest.approx(
        sum(event.cost for event in finished) / 3600
    )
    failed = [item for item in shown if item["state"] == "failed"]
    assert len(failed) == sum(event.failure is not None for event in finished) > 0
    assert [item["run"] for item in failed] == [item["run"] for item in document["failures"]]
    lost = (RunStatus.GIVEN_UP, RunStatus.SKIPPED)
    ended = {r.id for r, item in replay(entries).runs.items() if item.status in lost}
    assert {item["run"] for item in document["unmeasured"]} == ended
    assert all(item["queued"] <= item["started"] <= item["finished"] for item in shown if item["started"])


def test_one_run_at_the_evaluation_point_has_one_cost(directory: Path, document: dict[str, Any]) -> None:
    answer = document["head"]["answer"]
    printed = run("model", directory, "--modeler", "pmnf", "--predict", "p=16,n=50", "--json").document
    [elapsed] = [item for item in printed["models"] if item["metric"] == "elapsed"]
    [predicted] = elapsed["predictions"]
    launched = answer["launched"]
    for end in ("value", "low", "high"):
        assert launched[end] == pytest.approx(max(predicted[end], answer[end]))
    assert launched.get("modeled", launched["value"]) == pytest.approx(predicted["value"])
    assert answer["cost"]["core_hours"] == pytest.approx(16 * launched["value"] / 3600)
    assert answer["cost"]["high"] == pytest.approx(16 * launched["high"] / 3600)
    assert document["alternatives"][0]["core_hours"] == answer["cost"]["core_hours"]
    assert "; with its launch it takes " in answer["sentence"]


def test_alternatives_have_the_cost_of_their_points(document: dict[str, Any]) -> None:
    there, everywhere = document["alternatives"]
    assert there["text"].startswith("one run at P(p=16, n=50) itself: ")
    elapsed = next(item for item in document["callpaths"] if item["metric"] == "elapsed")
    grid = unpacked(elapsed["value"]).reshape(document["grid"]["shape"])
    index = tuple(axis["stops"].index(axis["default"]) for axis in document["parameters"])
    assert there["core_hours"] == pytest.approx(16 * grid[index] / 3600, rel=0.2)
    assert "each of the 15 points" in everywhere["text"]
    assert everywhere["core_hours"] > 0


def test_runs_hold_the_measured_values(directory: Path, document: dict[str, Any]) -> None:
    state = existing.replayed(directory)
    by_id = {r.id: item for r, item in state.runs.items()}
    [main] = [c for c in document["callpaths"] if (c["name"], c["metric"]) == ("main", "time")]
    values = unpacked(main["measured"])
    assert [run["validation"] for run in document["runs"]].count(True) == 1
    for k, row in enumerate(document["runs"]):
        assert values[k] == pytest.approx(by_id[row["id"]].samples["time"]["main"], rel=1e-6)


def test_a_campaign_without_models_has_a_document_too(tmp_path: Path) -> None:
    (tmp_path / "campaign.yaml").write_text(CAMPAIGN.replace("failure_rate: 0.3", "failure_rate: 0.999"))
    assert run("run", tmp_path / "campaign.yaml", "--directory", tmp_path / "c").code == 1
    found = reporting.document(tmp_path / "c", tmp_path)
    assert found["callpaths"] == [] and found["head"]["answer"] is None
    assert found["failures"] and found["failures"][0]["files"] is None  # no program was run
    assert "there are no models yet" in found["head"]["warnings"]


def course(*happened: tuple[float, events.Event]) -> History:
    first = events.CampaignStarted(
        id="id", campaign={"name": "c", "stop": {"budget": "3600 core-seconds"}}, version="0"
    )
    all_events = [(0.0, first), *happened]
    return History.of(Entry(k, time, event) for k, (time, event) in enumerate(all_events, 1))


RUN = Run(Point.of(p=1))
FIRST = Attempt(RUN, 1)
INTENDED = attempt_intended(FIRST, 9.0, reserved=10.0)


def test_an_attempt_in_flight_has_no_end_and_reserves() -> None:
    history = course(
        (1.0, events.RoundProposed(1, (RUN,), ("why",))),
        (2.0, INTENDED),
        (4.0, events.AttemptStarted(FIRST, "7")),
    )
    [item] = attempts(history)
    assert (item["state"], item["queued"], item["started"]) == ("running", 2.0, 4.0)
    assert item["finished"] is item["charge"] is None
    book = spending(history)
    assert book is not None and book["reserved"][-1] == pytest.approx(10 / 3600) and book["spent"][-1] == 0


def test_a_failure_is_told_with_its_class_its_charge_and_what_became_of_the_run() -> None:
    ended = attempt_finished(FIRST, 5.0, failure=FailureClass.TIMEOUT, reason="too long", host="n1")
    history = course(
        (1.0, events.RoundProposed(1, (RUN,), ("why",))),
        (2.0, INTENDED),
        (9.0, ended),
        (9.5, events.RunGivenUp(RUN, "hopeless")),
    )
    [failed] = failures(history, "here")
    assert (failed["class"], failed["reason"], failed["outcome"]) == ("timeout", "too long", "given up")
    assert failed["charge"] == pytest.approx(5 / 3600)
    assert (failed["node"], failed["files"]) == ("n1", "here/runs/p=1/time-1/attempt-1")
    assert failures(history, "")[0]["files"] == "runs/p=1/time-1/attempt-1"
    assert attempts(history)[0]["reason"] == "timeout: too long"


def test_a_run_that_was_given_up_is_no_failed_attempt() -> None:
    skipped = Run(Point.of(p=2))
    history = course(
        (1.0, events.RoundProposed(1, (RUN, skipped), ("why", "why"))),
        (9.5, events.RunGivenUp(RUN, "hopeless")),
        (9.6, events.RunSkipped(skipped, "no budget")),
    )
    assert failures(history, "") == []
    assert [(item["run"], item["outcome"], item["reason"]) for item in unmeasured(history)] == [
        ("p=1/time-1", "given up", "hopeless"),
        ("p=2/time-1", "skipped", "no budget"),
    ]


def test_discarded_runs_are_listed_with_the_reason_and_are_no_measurements(
    directory: Path, document: dict[str, Any], tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(directory, tmp_path / "c"))
    state = existing.replayed(copy)
    measured = (run for run, item in state.runs.items() if item.status is RunStatus.MEASURED)
    point = min((run.point for run in measured if run != state.validation), key=str)
    runs = [run for run, item in state.runs.items() if run.point == point and item.accepted is not None]
    cost = sum(state.runs[run].cost for run in runs)
    found = discarding.discard(copy, [run.id for run in runs], "n3 was throttled")
    assert found.cost == pytest.approx(cost)
    history = History.of(journal.read(copy / journal.FILE_NAME))
    listed = {item["run"]: item for item in unmeasured(history) if item["outcome"] == "discarded"}
    assert set(listed) == {run.id for run in runs}
    assert {item["reason"] for item in listed.values()} == {"n3 was throttled"}
    assert point not in history._measured
    shown = reporting.document(copy)
    assert len(shown["runs"]) < len(document["runs"])
    assert f"discarded: {len(runs)} run" in json.dumps(shown["head"])
    discarding.restore(copy, [run.id for run in runs])
    again = History.of(journal.read(copy / journal.FILE_NAME))
    assert not any(item["outcome"] == "discarded" for item in unmeasured(again)) and point in again._measured
