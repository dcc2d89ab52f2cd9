"""Measurements are the same whether collected once for a state or step by step while it grows."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.control import session
from orchestrator.journal import events, measurements
from orchestrator.journal.codec import Entry
from orchestrator.journal.replay import apply
from orchestrator.journal.state import RunStatus, State
from orchestrator.types import Attempt, Measurements, Parameter, Point, Run
from tests.journal.attempts import attempt_finished, attempt_intended

CAMPAIGN = """
name: demo
application: generic
program: {{arguments: ["{{p}}"], ranks: p, output: [{{callpath: main, pattern: "t=(.*)"}}]}}
parameters: {{p: [1, 2, 4, 8], n: [10, 20, 30, 40]}}
evaluation_point: {{p: 16, n: 80}}
measure: {{time_limit: 100 s, repetitions: {{initial: 2, maximum: 4}}}}
strategy: {{name: {strategy}, batch_size: 3}}
stop: {{budget: {budget} core-hours, patience: 100, infrastructure: 1.0}}
executor:
  name: simulated
  failure_rate: 0.3
  queue_delay: 20 s
  noise: 5
  truth: {{a: "n + p", b: "n * log2(p) + 1"}}
retries: {{application: 0, timeout: 0, infrastructure: 1}}
validate: true
seed: 4
"""
PARAMETERS = (Parameter("p", ()), Parameter("n", ()))


def counted(state: State) -> dict[Point, int]:
    """Count repetitions by looking at all runs."""
    last: dict[Point, int] = {}
    for run, item in state.runs.items():
        if item.status is not RunStatus.SKIPPED and run != state.validation:
            last[run.point] = max(run.repetition, last.get(run.point, 0))
    return last


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["cpf", "gpr"])
def test_asked_again_and_again_it_says_what_it_says_at_once(tmp_path: Path, strategy: str) -> None:
    chosen = loader.loads(CAMPAIGN.format(strategy=strategy, budget=20))
    collector, rarely = measurements.Collector(PARAMETERS), measurements.Collector(PARAMETERS)
    seen: list[Measurements] = []
    ends: list[Measurements] = []  # of rounds

    def listen(entry: Entry, state: State) -> None:
        if not isinstance(entry.event, events.AttemptIntended | events.AttemptSubmitted):
            seen.append(collector.measurements(state))
            assert seen[-1] == measurements.measurements(state, PARAMETERS)
            assert len(seen) % 17 or seen[-1] == rarely.measurements(state)
            for one, other in zip(
                seen[-1].items, measurements.measurements(state, PARAMETERS).items, strict=True
            ):
                assert list(one.values.items()) == list(other.values.items()), "in the same order"
        if isinstance(entry.event, events.RoundCompleted):
            ends.append(collector.measurements(state))

    state = session.run(chosen, tmp_path, session.Hooks(listen=listen))
    known = seen[-1]
    assert state.validation is not None and Point.of(p=16, n=80) not in known.points
    assert [(item.callpath, item.metric) for item in known.items] == [
        ("(run)", "elapsed"),
        ("a", "time"),
        ("b", "time"),
    ]
    assert sum(map(len, known.items[1].values.values())) == len(
        [item for run, item in state.runs.items() if item.accepted and run != state.validation]
    )
    rounds: dict[Point, int] = {}
    for run, item in state.runs.items():
        rounds[run.point] = min(item.round, rounds.get(run.point, item.round))
    assert known.points == tuple(
        sorted(known.points, key=lambda p: (rounds[p], p.number("p"), p.number("n")))
    )
    assert len({len(one.points) for one in ends}) > 1
    for one in ends:
        assert known.points[: len(one.points)] == one.points, "further rounds change no order"


def test_repetitions_that_were_skipped_do_not_count(tmp_path: Path) -> None:
    statuses: set[RunStatus] = set()

    def listen(entry: Entry, state: State) -> None:
        assert measurements.repetitions(state) == counted(state)
        statuses.update(item.status for item in state.runs.values())

    # The campaign stops in the middle of a round.
    campaign = loader.loads(CAMPAIGN.format(strategy="gpr", budget=20), overrides=["stop.wall_time=1 min"])
    session.run(campaign, tmp_path, session.Hooks(listen=listen))
    assert RunStatus.SKIPPED in statuses


def test_what_was_given_out_does_not_change_later(tmp_path: Path) -> None:
    collector = measurements.Collector(PARAMETERS)
    given: list[tuple[Measurements, str]] = []

    def listen(entry: Entry, state: State) -> None:
        known = collector.measurements(state)
        given.append((known, repr(known)))

    session.run(
        loader.loads(CAMPAIGN.format(strategy="cpf", budget=20)), tmp_path, session.Hooks(listen=listen)
    )
    assert len({text for _, text in given}) > 10
    assert all(repr(known) == text for known, text in given)


def test_repetitions_name_what_they_share(tmp_path: Path) -> None:
    """The job where runs share one, else node and round; nothing in a rehearsal."""
    point, collector = Point.of(p=1, n=10), measurements.Collector(PARAMETERS)
    state, given = State(), []
    cases = [("", "node1"), ("", "node1"), ("job7", "node2"), ("job7", "node2"), ("", "simulated")]
    for number, (pack, host) in enumerate(cases, start=1):
        run = Run(point, "time", number)
        attempt = Attempt(run)
        new: list[events.Event] = [
            events.RoundProposed(1 + number // 4, (run,), ("",)),
            attempt_intended(attempt, 9, pack=pack),
            attempt_finished(
                attempt,
                samples={"time": {"main": 1.0, "main->a": 0.5} if number != 2 else {"main": 1.0}},
                host=host,
                started=10.0 * number,
                finished=10.0 * number + 1,
            ),
        ]
        for event in new:
            state = apply(state, event, 10.0 * number)
        given.append(collector.measurements(state))
    whole, main, inner = given[-1].items
    assert whole.origins is main.origins, "one object for the same runs"
    assert main.origins[point] == ("node1, 1, 1", "node1, 1, 1", "job7", "job7", "")
    assert inner.origins[point] == ("node1, 1, 1", "job7", "job7", "")
    assert given[0].items[0].origins == {point: ("node1, 1, 1",)}, "what was given out does not change"
