from __future__ import annotations

import pytest

from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.replay import replay
from orchestrator.journal.state import State
from orchestrator.report.expected_end import seconds_to_next_round
from orchestrator.types import Attempt, Point, Run
from tests.journal.attempts import attempt_finished, attempt_intended

MODEL = {
    "callpath": "(run)",
    "metric": "elapsed",
    "terms": [
        {"coefficient": 10.0, "factors": []},
        {"coefficient": 5.0, "factors": [{"parameter": "p", "exponent": 1.0, "log_exponent": 1.0}]},
    ],
}


def state(*runs: Run, begun: int, measured: float | None = None) -> State:
    """A round of runs; the first of those begun, at second 100, may be measured at second 110."""
    found: list[events.Event] = [events.RoundProposed(1, runs, ("",) * len(runs))]
    for run in runs[:begun]:
        found.append(attempt_intended(Attempt(run), 1e3, name=run.id))
    if measured is not None:
        found.append(attempt_finished(Attempt(runs[0]), measured))
    return replay(Entry(k, 100.0, event) for k, event in enumerate(found, 1))


def test_runs_take_what_repetitions_took_side_by_side() -> None:
    runs = [Run(Point.of(p=2), "time", k) for k in range(1, 6)]
    known = state(*runs, begun=3, measured=30.0)
    # Two in flight for 10 s, two waiting: 20 + 20 + 30 + 30 s, two at a time.
    assert seconds_to_next_round(known, [], now=110.0) == pytest.approx(50.0)
    assert seconds_to_next_round(known, [], now=1000.0) == pytest.approx(30.0), "longer than ever"


def test_what_was_never_measured_takes_what_the_model_says() -> None:
    known = state(Run(Point.of(p=4)), begun=0)
    assert seconds_to_next_round(known, [MODEL], 100.0) == pytest.approx(10.0 + 5.0 * 4 * 2)
    assert seconds_to_next_round(known, [], 100.0) is None
    assert seconds_to_next_round(state(Run(Point.of(p="cg")), begun=0), [MODEL], 100.0) is None
    assert seconds_to_next_round(State(), [MODEL], 100.0) is None


def test_every_category_has_a_model_of_its_own() -> None:
    models = [
        {**MODEL, "category": {"solver": solver}, "terms": [{"coefficient": seconds, "factors": []}]}
        for solver, seconds in (("cg", 1.0), ("gmres", 500.0))
    ]
    for solver, seconds in (("cg", 1.0), ("gmres", 500.0), ("sor", None)):
        known = state(Run(Point.of(p=4, solver=solver)), begun=0)
        assert seconds_to_next_round(known, models, 100.0) == seconds
