"""The story of a campaign, told from its journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.report import event_text, log, log_text
from orchestrator.types import Attempt, FailureClass, Point, Run
from tests.journal.attempts import attempt_finished, attempt_intended

RUNS = tuple(Run(Point.of(p=p), "time", 1) for p in range(1, 9))
CAMPAIGN: dict[str, Any] = {"name": "demo", "stop": {"budget": "36000.0 core-seconds", "patience": 3}}
BEGUN = (
    events.CampaignStarted(id="ab12", campaign=CAMPAIGN, version="1.0"),
    events.ControllerStarted(host="login1", pid=7, version="1.0"),
)
ROUND = events.RoundProposed(1, RUNS, ("starting set",) * len(RUNS))


def story(*what: events.Event | float) -> dict[str, Any]:
    """Return the document of events; a number is the seconds that pass before the next."""
    now = 1_700_000_000.0
    entries: list[Entry] = []
    for item in what:
        if isinstance(item, float):
            now += item
        else:
            entries.append(Entry(len(entries) + 1, now, item))
    return log.document(entries)


def begun(run: Run, number: int = 1, reserved: float = 600.0) -> events.AttemptIntended:
    return attempt_intended(
        Attempt(run, number), 300.0, name=f"name-{run.id}-{number}", cores=2, reserved=reserved
    )


def ended(run: Run, number: int = 1, cost: float = 360.0, **how: Any) -> events.AttemptFinished:
    return events.AttemptFinished(attempt=Attempt(run, number), elapsed=cost / 2, cost=cost, **how)


def failed(run: Run, number: int = 1, cost: float = 720.0, **how: Any) -> events.AttemptFinished:
    return ended(run, number, cost, **{"failure": FailureClass.TIMEOUT, "reason": "too long", **how})


def texts(found: dict[str, Any]) -> list[str]:
    return [item["text"] for item in found["events"]]


def test_what_was_spent_is_told_by_outcome() -> None:
    a, b, c, d = RUNS[:4]
    lost: dict[str, Any] = {"failure": FailureClass.INFRASTRUCTURE, "reason": "gone", "estimated": True}
    found = story(
        *BEGUN,
        ROUND,
        *(begun(run) for run in (a, b, c, d)),
        ended(a, host="n1"),
        failed(b, host="n1"),
        failed(c, host="n2", **lost),
    )
    assert found["spent"] == {
        "budget": 10.0,
        "total": 0.5,
        "accepted": 0.1,
        "failed": {"infrastructure": 0.2, "timeout": 0.2},
        "cancelled": 0.0,
        "reserved": pytest.approx(600 / 3600),
        "estimated": 0.2,
        "unit": "core-hours",
        "shown_in": "core-hours",
    }
    assert found["attempts"] == {"accepted": 1, "timeout": 1, "infrastructure": 1, "in flight": 1}
    assert found["hosts"] == {"n1": {"attempts": 2, "failed": 1}, "n2": {"attempts": 1, "failed": 1}}
    text = log_text.render(found)
    assert "spent: 0.5 of 10 core-hours" in text
    assert "on n1 1 of 2 attempts failed" in text
    assert "0.2 of it is an upper bound" in text


def test_a_charge_that_was_corrected_replaces_the_estimate() -> None:
    a, b = RUNS[:2]
    corrected = [events.AttemptCharged(Attempt(run), 180.0, 360.0) for run in (a, b)]
    estimated = (ended(a, cost=720.0, estimated=True), failed(b, cost=1080.0, estimated=True))
    found = story(*BEGUN, ROUND, begun(a), begun(b), *estimated, *corrected)
    assert found["spent"]["estimated"] == pytest.approx(0)
    assert found["spent"]["accepted"] == pytest.approx(0.1)
    assert found["spent"]["failed"] == {"timeout": pytest.approx(0.1)}


def test_what_the_user_cancelled_is_no_failure() -> None:
    a, b, c = RUNS[:3]
    done = events.RoundCompleted(round=1, smape=3.0, width=0.5, improved=True)
    found = story(
        *(*BEGUN, ROUND, begun(a), begun(b), begun(c)),
        ended(a, host="n1"),
        failed(b, host="n1", cancelled=True, estimated=True),
        failed(c, host="n2", cancelled=True),
        events.AttemptCharged(Attempt(b), 180.0, 360.0),
        done,
    )
    spent = found["spent"]
    assert (spent["total"], spent["failed"], spent["cancelled"]) == (
        pytest.approx(0.4),
        {},
        pytest.approx(0.3),
    )
    assert found["attempts"] == {"accepted": 1, "cancelled": 2, "in flight": 0}
    assert found["hosts"] == {}
    assert [item["kind"] for item in found["events"]].count("failure") == 0
    assert "; 1 run measured, 2 attempts cancelled, 0.4 core-hours" in texts(found)[-1]
    assert "cancelled                       0.3  2 attempts" in log_text.render(found)


def test_what_was_withdrawn_reserves_nothing() -> None:
    found = story(*BEGUN, ROUND, begun(RUNS[0]), events.AttemptWithdrawn(Attempt(RUNS[0]), "never began"))
    assert found["spent"]["reserved"] == 0
    assert found["attempts"] == {"in flight": 0}


def test_a_round_is_summed_up_with_its_duration() -> None:
    a, b = RUNS[:2]
    done = events.RoundCompleted(round=1, smape=3.0, width=0.5, improved=True)
    found = story(*BEGUN, ROUND, begun(a), begun(b), 5400.0, ended(a), failed(b), done)
    assert texts(found)[-1] == (
        "round 1 done: models fit to 3.00 % SMAPE, uncertainty at the evaluation point 50 %; "
        "1 run measured, 1 attempt failed, 0.3 core-hours, 1 h 30 min"
    )


def test_a_controller_that_vanished_is_missed() -> None:
    again = events.ControllerStarted(host="login2", pid=8, version="1.1")
    found = story(*BEGUN, ROUND, 7200.0, again, events.ControllerStopped("interrupted"), 60.0, again)
    assert texts(found)[-4:] == [
        "controller on login1, pid 7 was killed or its machine failed; "
        "no controller was running for 2 h at most",
        "controller starts on login2, pid 8 (version 1.1)",
        "controller stopped: interrupted",
        "controller starts on login2, pid 8 (version 1.1)",
    ]
    assert found["controller"] == "on login2, pid 8"
    assert "is running, unless it was killed" in log_text.render(found)


def test_a_clock_that_was_set_back_gives_no_negative_duration() -> None:
    again = events.ControllerStarted(host="login1", pid=8, version="1.0")
    found = texts(story(*BEGUN, -3600.0, again))
    assert found[-2].endswith("was killed or its machine failed; the clock was set back by 1 h or more")


def test_without_a_controller_a_campaign_is_interrupted_as_in_the_status() -> None:
    found = story(*BEGUN, ROUND, events.ControllerStopped("interrupted"))
    assert log_text.render(found).splitlines()[0].endswith(": interrupted")


def test_rules_that_a_resume_changes_are_no_sign_of_life_of_the_killed_controller() -> None:
    again = events.ControllerStarted(host="login1", pid=8, version="1.0")
    found = texts(story(*BEGUN, ROUND, 23.0, events.CampaignChanged(CAMPAIGN), 1.0, again))
    assert found[-2].endswith("was killed or its machine failed; no controller was running for 24 s at most")


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (0.0027, "0.27 %"),
        (0.0, "0 %"),
        (0.2345, "23.4 %"),
        (2.14, "214 %"),
        (35.04, "35 times the value"),
        (142_596.0, "more than 1000 times the value"),
        (float("inf"), "more than 1000 times the value"),
    ],
)
def test_widths_are_told_in_figures_that_can_be_read(width: float, text: str) -> None:
    told = event_text.describe(events.RoundCompleted(round=2, smape=0.16351, width=width, improved=True))
    assert told == f"round 2 done: models fit to 0.16 % SMAPE, uncertainty at the evaluation point {text}"


def test_one_run_at_one_point_is_singular() -> None:
    alone = event_text.describe(events.RoundProposed(4, RUNS[:1], ("best",)))
    assert alone.startswith("round 4: 1 run at 1 point; first: ")
    repeated = (RUNS[0], Run(RUNS[0].point, "time", 2))
    assert event_text.describe(events.RoundProposed(4, repeated, ("", ""))).startswith(
        "round 4: 2 runs at 1 point;"
    )


def test_another_executable_is_a_warning() -> None:
    first, same, other = (
        events.ControllerStarted(
            host="h", pid=1, version="1.0", provenance={"executable": {"sha256": digest}}
        )
        for digest in ("aa", "aa", "bb")
    )
    rested = events.ControllerStopped("interrupted")
    assert not any("executable" in text for text in texts(story(BEGUN[0], first, rested, same)))
    found = texts(story(BEGUN[0], first, rested, other))
    told = "the executable is another one than before: measurements of both are mixed"
    assert found[-1] == f"{told} (sha256 aa, then bb)"


def test_a_note_is_told_when_it_changes() -> None:
    def proposed(number: int, note: str) -> events.RoundProposed:
        return events.RoundProposed(number, RUNS[:1], ("best",), note)

    notes = ("counts fit", "counts fit", "", "counts fit", "counts differ")
    told = texts(story(*BEGUN, *(proposed(number, note) for number, note in enumerate(notes, 1))))[2:]
    assert [text.partition("(best)")[2] for text in told] == [
        "; counts fit",
        "",
        "",
        "; counts fit",
        "; counts differ",
    ]


def test_changed_rules_are_named() -> None:
    richer = {**CAMPAIGN, "stop": {"budget": "72000.0 core-seconds", "patience": 3}, "notify": None}
    stopped = events.CampaignStopped("budget", "nothing left")
    found = story(*BEGUN, stopped, events.CampaignChanged(richer))
    assert texts(found)[-1] == "rules changed: stop.budget: 10 -> 20 core-hours"
    assert found["state"] == "running"
    assert found["spent"]["budget"] == 20.0


def test_the_end_is_told_with_its_rule() -> None:
    found = story(
        *BEGUN, events.StopRuleReached("patience", "3 rounds"), events.CampaignStopped("patience", "3 rounds")
    )
    assert found["state"] == "stopped: patience (3 rounds)"
    assert found["controller"] is None


def _trouble(number: int) -> Sequence[events.Event]:
    return [
        event for run in RUNS[:number] for event in (begun(run), failed(run), events.RunGivenUp(run, "dead"))
    ]


def test_much_of_the_same_is_counted_not_listed() -> None:
    found = story(*BEGUN, ROUND, *_trouble(8))
    text = log_text.render(found)
    assert "given up: 8 runs" in text
    assert text.count("failed: P(") == 3
    assert "5 more failed attempts, 5 more runs given up; all of them: --all" in text
    everything = log_text.render(found, everything=True)
    assert everything.count("failed: P(") == 8 and "--all" not in everything


def test_a_little_trouble_is_listed_in_full() -> None:
    text = log_text.render(story(*BEGUN, ROUND, *_trouble(3)))
    assert text.count("failed: P(") == 3 and "--all" not in text


def test_a_terminal_is_sent_no_control_characters() -> None:
    text = log_text.render(story(*BEGUN, ROUND, begun(RUNS[0]), failed(RUNS[0], reason="\x1b[2J\rgone")))
    assert "?[2J?gone" in text and "\x1b" not in text


def test_what_a_shared_job_holds_is_reserved_until_its_charge_is_confirmed() -> None:
    a, b, c = RUNS[:3]
    shared = [replace(begun(run), pack="one") for run in (a, b)]
    steps: list[events.Event] = [
        *shared,
        begun(c),
        ended(a, cost=600.0, estimated=True),
        ended(b, cost=600.0, estimated=True),
        events.AttemptCharged(Attempt(a), 50.0, 100.0),
        events.AttemptCharged(Attempt(b), 100.0, 200.0),
        events.AttemptWithdrawn(Attempt(c), "it was never begun"),
    ]
    found = [
        story(*BEGUN, ROUND, *steps[:number])["spent"]["reserved"] * 3600
        for number in range(1, len(steps) + 1)
    ]
    assert found == pytest.approx([600, 1200, 1800, 1200, 600, 1100, 600, 0])


def test_costs_are_told_in_the_unit_of_the_budget() -> None:
    stop = {**CAMPAIGN["stop"], "unit": "core-seconds"}
    found = story(
        events.CampaignStarted(id="ab12", campaign={**CAMPAIGN, "stop": stop}, version="1.0"),
        ROUND,
        ended(RUNS[0]),
    )
    assert texts(found)[0] == "campaign demo begins with 36000 core-seconds"
    assert "spent: 360 of 36000 core-seconds" in log_text.render(found)
    assert (found["spent"]["budget"], found["spent"]["unit"]) == (10.0, "core-hours")


def test_another_unit_is_no_change_of_the_rules() -> None:
    other = {**CAMPAIGN, "stop": {**CAMPAIGN["stop"], "unit": "core-minutes"}}
    assert texts(story(*BEGUN, events.CampaignChanged(other)))[-1] == "rules changed: none"


def test_an_attempt_that_was_withdrawn_from_a_shared_job_may_begin_again_alone() -> None:
    attempt = Attempt(Run(Point.of(p=1)))
    common: dict[str, Any] = {"attempt": attempt, "cores": 1, "limit": 60.0, "reserved": 60.0}
    happened: list[events.Event] = [
        events.CampaignStarted(
            id="id", campaign={"name": "x", "stop": {"budget": "1 core-hours"}}, version="0"
        ),
        events.AttemptIntended(**common, name="a", pack="job"),
        events.AttemptWithdrawn(attempt, "gone"),
        events.AttemptIntended(**common, name="b"),
        attempt_finished(attempt, 5.0),
    ]
    found = log.document(Entry(k, float(k), event) for k, event in enumerate(happened, 1))
    assert found["spent"]["accepted"] == pytest.approx(5 / 3600) and found["spent"]["reserved"] == 0
