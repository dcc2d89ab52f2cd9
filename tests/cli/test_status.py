import io
import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from orchestrator.campaign import loader
from orchestrator.control import existing
from orchestrator.journal import events
from orchestrator.journal.events import ControllerStopped
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.writer import Journal
from orchestrator.report.status_text import render
from orchestrator.types import Attempt, Point, Run
from tests.cli.running import SIMULATED, run, write_campaign
from tests.journal.attempts import attempt_finished, attempt_intended

KEYS = {"campaign", "state", "stop_reason", "runs", "cost", "points", "models"}


def test_the_document_of_run_resume_and_status_is_the_same() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    first = run("run", "campaign.yaml", "--json").document
    assert run("status", "rehearsal", "--json").document == first
    assert run("resume", "rehearsal", "--json").document == first
    assert set(first) >= KEYS


def test_where_no_model_could_be_fitted_the_text_says_where_to_learn_why() -> None:
    text = SIMULATED.replace("p: 216", "p: 8")
    write_campaign(Path.cwd(), f"{text}model: speedup\nconstraints: [p == 8]\n", None)
    with pytest.warns(UserWarning, match="every run has the same number of processes"):
        run("run", "campaign.yaml")
    assert "why: orchestrator model rehearsal" in run("status", "rehearsal").out
    assert "every run has the same number of processes" in run("model", "rehearsal").err


def test_the_document_of_a_stopped_campaign() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    status = run("run", "campaign.yaml", "--json").document
    assert status["campaign"] == "rehearsal"
    assert status["state"] == "stopped"
    assert set(status["stop_reason"]) == {"rule", "detail"}
    statuses = {"waiting", "in flight", "failed", "measured", "given up", "skipped", "discarded"}
    assert set(status["runs"]) == statuses
    assert status["runs"]["in flight"] == 0
    assert status["runs"]["measured"] > 20
    assert status["points"] > 10
    cost = status["cost"]
    figures = {"budget", "spent", "unconfirmed", "reserved", "left", "kept_for_validation"}
    assert set(cost) == {*figures, "unit", "shown_in"}
    assert cost["budget"] == 5, "costs are core-hours"
    assert 0 < cost["spent"] < 5
    assert cost["spent"] + cost["reserved"] + cost["left"] == pytest.approx(cost["budget"])
    assert {model["callpath"] for model in status["models"]} >= {"main"}


def test_text_for_humans_tells_the_same() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    result = run("status", "rehearsal")
    status = run("status", "rehearsal", "--json").document
    assert result.code == 0
    assert result.err == ""
    assert f"{status['runs']['measured']} measured" in result.out
    assert f"stop rule: {status['stop_reason']['rule']}" in result.out
    assert "main" in result.out


def test_what_only_the_validation_may_spend_is_said_while_the_campaign_runs() -> None:
    """Else more seems to be left for further runs than there is."""
    write_campaign(Path.cwd(), SIMULATED + "validate: true\n", None)
    run("run", "campaign.yaml")
    path = Path("rehearsal") / FILE_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    names = [json.loads(line)["event"] for line in lines]
    path.write_bytes(b"".join(lines[: names.index("round_completed") + 1]))
    cost = run("status", "rehearsal", "--json").document["cost"]
    kept = cost["kept_for_validation"]
    assert 0 < kept < cost["left"]
    text = f"left of 5; {kept:.4g} of these are kept back for the validation"
    assert text in run("status", "rehearsal").out
    path.write_bytes(b"".join(lines[: names.index("validation_proposed") + 1]))
    assert run("status", "rehearsal", "--json").document["cost"]["kept_for_validation"] == 0
    assert "kept back" not in run("status", "rehearsal").out


def test_costs_are_shown_in_the_unit_of_the_budget_and_documents_have_core_hours() -> None:
    text = SIMULATED.replace("budget: 5 core-hours", "budget: 300 core-minutes")
    assert text != SIMULATED
    write_campaign(Path.cwd(), text, None)
    assert "budget 300;" in run("plan", "campaign.yaml").out
    ended = run("run", "campaign.yaml")
    cost = run("status", "rehearsal", "--json").document["cost"]
    assert (cost["budget"], cost["unit"], cost["shown_in"]) == (5, "core-hours", "core-minutes")
    line = f"core-minutes: {60 * cost['spent']:.4g} spent, 0 reserved"
    assert line in ended.out and line in run("status", "rehearsal").out
    assert "core-hours" not in ended.out + ended.err + run("log", "rehearsal").out
    # The same budget in another unit changes no rule, so a stopped campaign stays stopped.
    same = run("resume", "rehearsal", "--set", "stop.budget=5 core-hours")
    assert "nothing is begun" in same.out + same.err
    more = run("resume", "rehearsal", "--set", "stop.budget=6 core-hours")
    assert "core-hours: " in more.out and "core-minutes" not in more.out


def test_a_directory_of_a_version_without_units_shows_core_hours() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    saved = Path("rehearsal/campaign.yaml")
    assert "budget: 18000.0 core-seconds" in saved.read_text()
    saved.write_text(saved.read_text().replace("  unit: core-hours\n", ""))
    assert existing.load(Path("rehearsal")).stop.unit == "core-hours"


def _cut(lines: int) -> None:
    """Leave of a campaign's journal what a controller had written that was killed then."""
    path = Path("rehearsal") / FILE_NAME
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]))


def _both() -> tuple[dict[str, Any], str]:
    return run("status", "rehearsal", "--json").document, run("status", "rehearsal").out


def test_whether_a_controller_is_at_work() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    ended = run("run", "campaign.yaml", "--json").document["controller"]
    assert ended == {"state": "nobody", "host": None, "pid": None, "since": None}
    assert "is running" not in run("status", "rehearsal").out
    _cut(30)
    host = socket.gethostname()

    status, text = _both()
    assert status["state"] == "running"
    killed = status["controller"]
    assert (killed["state"], killed["host"], killed["pid"]) == ("nobody", host, os.getpid())
    assert "): interrupted, round 1" in text
    assert "no controller is running: " in text
    assert (
        f"the controller on {host}, pid {os.getpid()}, was killed or its machine failed after "
        in " ".join(text.split())
    )
    assert "to continue: orchestrator resume rehearsal" in " ".join(text.split())

    with Journal(Path("rehearsal")) as held:
        status, text = _both()
        assert status["controller"] == {**killed, "state": "at work", "since": status["controller"]["since"]}
        assert "): running, round 1" in text
        assert f"the controller on {host}, pid {os.getpid()}, is running since " in text
        held.append([ControllerStopped("interrupted")], 7384.0)

    status, text = _both()
    since = "1970-01-01T02:03:04.000000+00:00"
    assert status["controller"] == {"state": "nobody", "host": None, "pid": None, "since": since}
    assert "no controller is running since 2:03:04" in text, "by the clock of the rehearsal"
    assert "killed" not in text and "to continue: orchestrator resume rehearsal" in text
    assert run("resume", "rehearsal", "--json").document["controller"] == ended


def test_a_controller_that_cannot_journal_that_the_disk_is_full_is_said_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    _cut(30)
    full = os.statvfs_result((4096, 4096, 10**6, 0, 0, 0, 0, 0, 0, 255))
    with Journal(Path("rehearsal")):
        assert "the disk is full" not in run("status", "rehearsal").out
        monkeypatch.setattr(os, "statvfs", lambda path: full)
        text = " ".join(run("status", "rehearsal").out.split())
    assert "and waits: the disk is full (0 MB free at rehearsal); free some space, and it goes on" in text


def _journal(widths: Sequence[float | None]) -> None:
    """Make a journal of a campaign in flight: each round costs 0.5 of 5 core-hours and takes an hour."""
    with Journal(Path("made")) as journal:
        raw = loader.load(Path("campaign.yaml")).raw
        journal.append([events.CampaignStarted(id="made", campaign=raw, version="0")], 0.0)
        for number, width in enumerate(widths, 1):
            attempt = Attempt(Run(Point.of(p=1, s=10), "time", number))
            journal.append(
                [
                    events.RoundProposed(number, (attempt.run,), ("because",)),
                    attempt_intended(attempt, 1800.0, name=str(number)),
                    attempt_finished(attempt, 1800.0, samples={"time": {"main": 1800.0}}),
                    events.RoundCompleted(round=number, smape=1.0, width=width, improved=True),
                ],
                3600.0 * number,
            )
        Path("made/campaign.yaml").write_text(Path("campaign.yaml").read_text())


HALVED = tuple(0.8 / k**0.5 for k in range(1, 5))


@pytest.mark.parametrize(
    ("widths", "text", "final"),
    [
        (
            HALVED,
            "uncertainty of 25.3 % when the budget is spent, in 6 h ",
            25.3,
        ),
        (
            (0.8, 0.4),
            "no trend yet: 2 rounds have intervals, 3 are needed; the budget is spent in 8 h of",
            None,
        ),
        ((0.2, 0.3, 0.4), "the intervals did not become narrower in the last 3 rounds", None),
        ((None, None), "no round has intervals yet", None),
    ],
)
def test_what_becomes_of_a_campaign_at_its_pace(
    widths: tuple[float | None, ...], text: str, final: float | None
) -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    _journal(widths)
    pace = run("status", "made", "--json").document["pace"]
    assert pace["final_uncertainty_percent"] == (None if final is None else pytest.approx(final, abs=0.1))
    assert pace["seconds_left"] == pytest.approx(3600 * (10 - len(widths)))
    assert f"at this pace: {text}" in run("status", "made").out


def test_a_campaign_that_stopped_has_no_pace() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    assert run("run", "campaign.yaml", "--json").document["pace"] is None
    assert "at this pace" not in run("status", "rehearsal").out


def test_a_validation_that_was_not_made_is_told() -> None:
    # A truth that nobody expects: the evaluation point takes longer than all that is left.
    text = SIMULATED.replace("0.2 * log2(p)", "(900 if p > 200 else 0.01)")
    text = text.replace("5 core-hours", "0.3 core-hours") + "validate: true\nretries: {timeout: 9}\n"
    write_campaign(Path.cwd(), text, None)
    status = run("run", "campaign.yaml", "--json").document
    told = "validation not made: p=216,s=35/time-1 was skipped: 216 cores for up to "
    assert (status["state"], status["validation"]) == ("stopped", [])
    assert status["no_validation"].startswith(told) and status["no_validation"].endswith(" are left")
    assert status["no_validation"] in " ".join(run("status", "rehearsal").out.split())
    warnings = run("report", "rehearsal", "--json").document["head"]["warnings"]
    assert any(warning.startswith(told) for warning in warnings)


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ("", "as models stand the run at P(p=216, s=35) (216 cores for up to"),
        ("measure: {time_limit: 2 min}\n", "the run at P(p=216, s=35) is not made: it takes"),
    ],
)
def test_a_validation_that_cannot_be_made_is_told_when_models_say_so(rules: str, why: str) -> None:
    budget = "200 core-hours" if rules else "3 core-hours"
    text = SIMULATED.replace("0.2 * log2(p)", "5e-3 * p**2").replace("5 core-hours", budget)
    text = text.replace("failure_rate: 0.1", "failure_rate: 0") + "validate: true\n" + rules
    write_campaign(Path.cwd(), text, None)
    status = run("run", "campaign.yaml", "--json").document
    assert status["no_validation"] and "no validation" not in status["machine"], "it is said once"
    entries = read(Path("rehearsal") / FILE_NAME)
    told = [entry.event for entry in entries if isinstance(entry.event, events.RoundCompleted)]
    assert told[0].machine["no validation"].startswith(why) and told[0].news == ("no validation",)
    assert len(told) > 1 and not any("no validation" in event.news for event in told[1:])
    assert all(event.kept == 0 for event in told), "nothing is kept back for a run that cannot be made"
    assert run("log", "rehearsal").out.count("no validation: ") == 1


def test_without_a_measurement_nothing_is_validated() -> None:
    text = SIMULATED.replace("failure_rate: 0.1", "failure_rate: 0.999") + "validate: true\n"
    write_campaign(Path.cwd(), text, None)
    status = run("run", "campaign.yaml", "--json").document
    assert status["state"] == "stopped"
    assert status["no_validation"] == "validation not made: nothing was measured that it could check"
    assert status["no_validation"] in " ".join(run("status", "rehearsal").out.split())


def test_of_a_validation_that_was_made_or_not_wanted_nothing_is_missed() -> None:
    write_campaign(Path.cwd(), SIMULATED + "validate: true\n", None)
    status = run("run", "campaign.yaml", "--json").document
    assert status["validation"] and status["no_validation"] is None
    write_campaign(Path.cwd(), SIMULATED.replace("name: rehearsal", "name: other"), None)
    assert run("run", "campaign.yaml", "--json").document["no_validation"] is None


def _text(status: dict[str, Any]) -> str:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(render(status))
    return console.export_text()


def test_of_hundreds_of_call_paths_the_text_shows_those_that_matter_and_counts_the_others() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    status = run("run", "campaign.yaml", "--json").document
    model = next(m for m in status["models"] if m["callpath"] == "main")
    value = model["predictions"][0]["value"]
    for k in range(300):
        prediction = {
            **model["predictions"][0],
            "value": None if k == 0 else value * (0.005 if k > 2 else 0.02),
        }
        status["models"].append({**model, "callpath": f"std::_{k}", "predictions": [prediction]})
    shown = _text(status)
    assert "std::_1 " in shown
    assert "std::_2 " in shown
    assert "std::_0 " not in shown
    assert "std::_3 " not in shown
    assert "main" in shown
    small = sum(
        m["predictions"][0]["value"] < 0.01 * value for m in status["models"] if m["callpath"][:3] != "std"
    )
    assert f"not shown: {298 + small} call paths below 1 % of the largest" in shown
    status["models"] = status["models"][:25]
    assert "not shown" not in _text(status)


def test_status_writes_nothing() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    before = {path: path.stat().st_mtime_ns for path in Path("rehearsal").rglob("*")}
    run("status", "rehearsal")
    run("status", "rehearsal", "--json")
    assert {path: path.stat().st_mtime_ns for path in Path("rehearsal").rglob("*")} == before
