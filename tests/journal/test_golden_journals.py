"""Journals written by earlier versions must replay to what they meant when they were written.

A journal here is never regenerated: when the format grows, another one is added beside it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from orchestrator.journal import events
from orchestrator.journal.file import read
from orchestrator.journal.measurements import measurements
from orchestrator.journal.replay import replay
from orchestrator.journal.state import StopReason
from orchestrator.report import dossier, log, status
from orchestrator.resources import core_hours
from orchestrator.types import FailureClass, Parameter, Point

GOLDEN = Path(__file__).parents[1] / "golden" / "journals"


def test_attempts_that_share_jobs_replay_to_the_same_campaign() -> None:
    entries = list(read(GOLDEN / "schema-1-packs.jsonl"))
    state = replay(entries)
    shared = Counter(e.event.pack for e in entries if isinstance(e.event, events.AttemptIntended))
    assert max(count for pack, count in shared.items() if pack) == 3
    barred = [e.event for e in entries if isinstance(e.event, events.AttemptWithdrawn) and e.event.barred]
    charged = [e.event for e in entries if isinstance(e.event, events.AttemptCharged)]
    assert len(barred) == 1 and len(charged) == 4
    assert {str(item.status) for item in state.runs.values()} == {"measured"}
    assert state.spent == pytest.approx(571.0, rel=1e-12)
    assert not state.holds and not state.unconfirmed and state.reserved == 0


def test_a_campaign_that_was_cancelled_failed_and_was_mended_replays_to_all_its_measurements() -> None:
    entries = list(read(GOLDEN / "schema-1-mended.jsonl"))
    ends = [e.event for e in entries if isinstance(e.event, events.AttemptFinished)]
    assert [event.cost for event in ends if event.cancelled] == [0.0, 6.0]
    changes = [e.event.anew for e in entries if isinstance(e.event, events.CampaignChanged)]
    assert changes == [False, True]
    state = replay(entries)
    assert state.spent == pytest.approx(78.0, rel=1e-12)
    assert {str(item.status) for item in state.runs.values()} == {"measured"}
    assert not any(item.failures for item in state.runs.values()) and not state.infeasible
    before = replay(entries[:26])
    assert before.stopped is not None and before.stopped.rule == "failures"
    assert before.infeasible == {Point.of(p=2)}
    assert before.recent == () and before.setbacks.charged > 0  # both failures were the infrastructure's


def test_charges_that_were_corrected_replay_to_what_was_booked() -> None:
    """With a node that failed, a job without memory and a crash of the application."""
    entries = list(read(GOLDEN / "schema-1-charges.jsonl"))
    charged = [e.event for e in entries if isinstance(e.event, events.AttemptCharged)]
    assert [event.cost for event in charged] == [69.0, 104.0, 74.0]
    state = replay(entries)
    assert state.spent == pytest.approx(496.0, rel=1e-12)
    assert sum(item.cost for item in state.runs.values()) == pytest.approx(496.0, rel=1e-12)
    assert not state.unconfirmed and state.reserved == 0
    assert {str(run): item.failures for run, item in state.runs.items() if item.failures} == {
        "P(p=2) time-1": (FailureClass.APPLICATION,),
        "P(p=2) time-2": (FailureClass.INFRASTRUCTURE,),
        "P(p=4) time-1": (FailureClass.MEMORY,),
    }
    assert list(state.marks) == ["n1"]


def test_outputs_that_were_read_again_replay_to_their_new_values() -> None:
    """By another pattern and scale; one attempt could not be read before."""
    entries = list(read(GOLDEN / "schema-1-reread.jsonl"))
    rereads = [e.event for e in entries if isinstance(e.event, events.AttemptReread)]
    assert [event.recovered for event in rereads] == [False, False, True]
    state, before = replay(entries), replay(entries[:-1])
    values = {run.point["n"]: item.samples for run, item in state.runs.items()}
    assert values == {n: {"time": {"main": (n + 0.5) / 1000}} for n in (10, 20, 30)}
    assert {run.point["n"]: str(item.status) for run, item in before.runs.items()} == {
        10: "measured",
        20: "measured",
        30: "given up",
    }
    assert before.infeasible == {Point.of(n=30)} and not state.infeasible
    assert state.spent == before.spent == pytest.approx(0.12098526954650879)
    assert state.campaign["program"]["output"][0]["scale"] == 0.001


def test_measurements_that_were_discarded_replay_to_what_was_measured_instead() -> None:
    """Of one, that was measured again; of another, that was restored; and of the validation."""
    entries = list(read(GOLDEN / "schema-1-discarded.jsonl"))
    changes = [e.event for e in entries if events.name_of(e.event).startswith("measurements_")]
    assert [len(event.runs) for event in changes if hasattr(event, "runs")] == [3, 1]
    state = replay(entries)
    assert {run.id: str(item.status) for run, item in sorted(state.runs.items(), key=str)} == {
        "p=1/time-1": "measured",
        "p=2/time-1": "discarded",
        "p=2/time-2": "measured",
        "p=4/time-1": "measured",
        "p=8/time-1": "discarded",
        "p=8/time-2": "measured",
    }
    assert state.spent == pytest.approx(203.0) and state.stopped is not None
    assert {run.id: item.reason for run, item in state.discarded.items()} == dict.fromkeys(
        ("p=2/time-1", "p=8/time-1"), "node n3 was throttled"
    )
    assert state.validation is not None and state.validation.id == "p=8/time-2"
    known = measurements(state, (Parameter("p", ()),))
    assert {point["p"]: len(values) for point, values in known.items[0].values.items()} == {1: 1, 2: 1, 4: 1}


def test_schema_1_has_every_event_and_replays_to_the_same_campaign() -> None:
    entries = list(read(GOLDEN / "schema-1.jsonl"))
    names = {events.name_of(entry.event) for entry in entries}
    assert len(names) == 16
    state = replay(entries)
    assert state.id == "5a1b53ac"
    assert state.spent == pytest.approx(2466.333585060428, rel=1e-12)
    assert Counter(str(item.status) for item in state.runs.values()) == {
        "measured": 21,
        "given up": 3,
        "skipped": 1,
    }
    assert (state.round, state.rounds_completed, state.attempts_settled) == (3, 3, 28)
    assert state.stopped == StopReason("exhausted", "the strategy has nothing left to measure")
    assert state.validation is not None and state.validation.point == Point.of(p=16, n=40)
    known = measurements(state, (Parameter("p", ()), Parameter("n", ())))
    assert [(item.callpath, item.metric) for item in known.items] == [
        ("(run)", "elapsed"),
        ("exchange", "time"),
        ("solve", "time"),
    ]
    assert known.items[2].values[Point.of(p=1, n=10)] == pytest.approx(
        (2.9391706528622965, 2.9308176966696715)
    )


def test_reports_tell_which_runs_shared_a_job() -> None:
    entries = list(read(GOLDEN / "schema-1-packs.jsonl"))
    told = log.document(entries)
    lines = [item["text"] for item in told["events"]]
    assert any("8 runs in 6 jobs measured, 2 attempts failed" in line for line in lines), lines
    assert any(line.endswith("did not finish (job 100_0)") for line in lines), lines
    assert told["spent"]["total"] == pytest.approx(core_hours(replay(entries).spent))
    shown = status.document(replay(entries), (), measurements(replay(entries), (Parameter("p", ()),)), None)
    assert shown["jobs"]["in_flight"] == 0 and shown["jobs"]["runs_that_shared_one"] == 6
    [first, *_] = dossier.document(Path("nowhere"), entries, "p=1/time-1")["attempts"]
    assert first["shares_job_with"] == [f"p=1/time-{k}/attempt-1" for k in (1, 2, 3)]


def test_an_executable_that_was_replaced_during_the_campaign_replays_to_both() -> None:
    entries = list(read(GOLDEN / "schema-1-replaced.jsonl"))
    state = replay(entries)
    assert len(state.measured_with["executable"]) == 3
    lines = [item["text"] for item in log.document(entries)["events"]]
    assert sum(line.startswith("the executable was replaced: ") for line in lines) == 2


def test_models_that_were_assessed_after_measurements_were_discarded_replay_to_that_decision() -> None:
    entries = list(read(GOLDEN / "schema-1-assessed.jsonl"))
    [k] = [k for k, entry in enumerate(entries) if isinstance(entry.event, events.ModelsAssessed)]
    before, state = replay(entries[:k]), replay(entries)
    assert (before.smape, before.uncertainty, before.narrow_rounds) == (None, None, 0)
    assert state.smape is not None and state.uncertainty is not None and state.narrow_rounds == 1
    assert state.stopped is not None and state.stopped.rule == "converged"
    assert {*state.runs} == {*before.runs} and state.spent == before.spent
