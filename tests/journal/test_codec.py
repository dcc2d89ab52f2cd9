from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.journal import events
from orchestrator.journal.codec import Entry, decode, encode
from orchestrator.types import Attempt, FailureClass, Point, Run

finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.one_of(st.integers(-(10**9), 10**9), finite, st.text(max_size=8))
points = st.dictionaries(st.text(min_size=1, max_size=5), values, min_size=1, max_size=3).map(Point.of)
runs = st.builds(Run, points, st.sampled_from(["time", "effort"]), st.integers(1, 99))
attempts = st.builds(Attempt, runs, st.integers(1, 9))
samples = st.dictionaries(st.text(max_size=6), st.dictionaries(st.text(max_size=9), finite), max_size=2)
any_event = st.one_of(
    st.builds(events.ControllerStarted, host=st.text(), pid=st.integers(1, 2**31), version=st.text()),
    st.builds(
        events.AttemptIntended,
        attempt=attempts,
        name=st.text(),
        cores=st.integers(1, 99),
        limit=finite,
        reserved=finite,
    ),
    st.builds(events.AttemptSubmitted, attempts, st.text()),
    st.builds(
        events.AttemptFinished,
        attempt=attempts,
        elapsed=finite,
        cost=finite,
        samples=samples,
        failure=st.one_of(st.none(), st.sampled_from(FailureClass)),
        reason=st.text(),
    ),
    st.lists(runs, max_size=3).map(lambda r: events.RoundProposed(1, tuple(r), ("why",) * len(r))),
    st.builds(events.RunGivenUp, runs, st.text()),
    st.builds(
        events.RoundCompleted,
        round=st.integers(1, 2**63 - 1),
        smape=st.one_of(st.none(), finite),
        width=finite,
        improved=st.booleans(),
    ),
)


@given(any_event, st.integers(1, 10**6), finite)
def test_an_entry_reads_back_as_it_was_written(event: events.Event, sequence: int, time: float) -> None:
    entry = Entry(sequence, time, event)
    line = encode(entry)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert decode(line) == entry


@given(st.data())
def test_any_altered_byte_is_noticed(data: st.DataObject) -> None:
    line = bytearray(encode(Entry(1, 0.0, events.ControllerStopped("reason"))).rstrip(b"\n"))
    position = data.draw(st.integers(0, len(line) - 1))
    line[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match=r".+"):
        decode(bytes(line))


def test_events_are_called_in_journals_as_they_always_were() -> None:
    """Their names follow from those of classes, which therefore stay."""
    names = (
        "campaign_started campaign_changed controller_started controller_stopped executable_replaced "
        "round_proposed attempt_intended attempt_submitted attempt_started attempt_withdrawn "
        "attempt_finished attempt_charged run_given_up run_skipped round_completed models_assessed "
        "stop_rule_reached campaign_paused outage_began outage_ended validation_proposed stop_withdrawn "
        "reread_began attempt_reread reread_completed measurements_discarded measurements_restored "
        "campaign_stopped"
    )
    assert names.split() == list(events.TYPES)
