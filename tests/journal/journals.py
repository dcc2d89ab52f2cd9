"""Journals that a controller could have written: each event is one that may follow the state before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from hypothesis import strategies as st

from orchestrator.journal import discards, events
from orchestrator.journal.codec import Entry
from orchestrator.journal.replay import apply
from orchestrator.journal.state import RunStatus, State, validation_run
from orchestrator.types import Attempt, FailureClass, Point, Run

T = TypeVar("T")
CAMPAIGN = {"name": "made", "parameters": {"p": [1, 2], "solver": ["cg"]}, "stop": {"budget": "9 core-hours"}}
POINTS = tuple(Point.of(p=p, solver=solver) for p in (1, 2.5) for solver in ("cg", "µ"))
RUNS = tuple(Run(point, kind, k) for point in POINTS for kind in ("time", "effort") for k in (1, 2))
_TEXTS = ("", "n1", 'µ: "x"')


@st.composite
def journals(draw: Callable[[st.SearchStrategy[int]], int], most: int = 60) -> list[Entry]:
    """Return entries in order; the state after each of them is possible.

    Drawn from a seed: hypothesis would need seconds for choices that depend on each other.
    """
    data = _Draw(draw(st.integers(0, 2**32)))
    state, time = State(), 0.0
    entries: list[Entry] = []
    for _ in range(draw(st.integers(1, most))):
        event = _next(data, state)
        time += data.number()
        entries.append(Entry(len(entries) + 1, time, event))
        state = apply(state, event, time)
    return entries


class _Draw:
    """Random choices from a seed."""

    def __init__(self, seed: int):
        self._random = Random(seed)

    def one(self, of: Sequence[T]) -> T:
        return self._random.choice(of)

    def some(self, of: Sequence[T], most: int) -> list[T]:
        return self._random.sample(of, min(len(of), self._random.randint(1, most)))

    def number(self) -> float:
        return self.one((0.0, self._random.uniform(0.0, 1e6)))

    def whole(self, least: int, most: int) -> int:
        return self._random.randint(least, most)

    def share(self) -> float | None:
        return self.one((None, self._random.uniform(0.0, 10.0)))

    def text(self) -> str:
        return self.one(_TEXTS)

    def truth(self) -> bool:
        return self.one((True, False))


def _next(data: _Draw, state: State) -> events.Event:
    if not state.id:
        return events.CampaignStarted(id="id", campaign=CAMPAIGN, version="0", time_limit=data.share())
    flying, unconfirmed = list(state.in_flight), list(state.unconfirmed)
    open_runs = [r for r, i in state.runs.items() if i.status in (RunStatus.WAITING, RunStatus.FAILED)]
    free = [run for run in RUNS if run not in state.runs or state.runs[run].status is RunStatus.SKIPPED]
    free = [run for run in free if run not in state.queue]
    possible: list[Callable[[], events.Event]] = [lambda: _of_campaign(data, state)]
    if free and not state.waiting:
        possible.append(lambda: _round(data, state, sorted(free, key=str)))
    if open_runs:
        chosen = sorted(open_runs, key=str)
        possible += 3 * [lambda: _intended(data, state, data.one(chosen))]
        possible.append(lambda: _dropped(data, data.one(chosen)))
    if flying:
        ordered = sorted(flying, key=str)
        possible += 3 * [lambda: _of_attempt(data, data.one(ordered))]
    if unconfirmed:
        late = sorted(unconfirmed, key=str)
        possible.append(lambda: events.AttemptCharged(data.one(late), data.number(), data.number()))
    return data.one(possible)()


def _round(data: _Draw, state: State, free: list[Run]) -> events.Event:
    runs = tuple(data.some(free, 4))
    reasons = tuple(data.one(["reference: drift", "wide", ""]) for _ in runs)
    return events.RoundProposed(state.round + 1, runs, reasons, data.text())


def _intended(data: _Draw, state: State, run: Run) -> events.Event:
    return events.AttemptIntended(
        attempt=Attempt(run, state.runs[run].attempts + 1),
        name=f"n{data.whole(0, 99)}",
        cores=data.whole(1, 64),
        limit=60.0,
        reserved=data.number(),
        pack=data.one(["", "job"]),
        likely=data.share(),
        memory=data.one([1.0, 1.5]),
    )


def _dropped(data: _Draw, run: Run) -> events.Event:
    if data.truth():
        return events.RunGivenUp(run, data.text())
    return events.RunSkipped(run, data.text(), data.truth())


def _of_attempt(data: _Draw, attempt: Attempt) -> events.Event:
    match data.whole(0, 4):
        case 0:
            return events.AttemptSubmitted(attempt, data.text())
        case 1:
            return events.AttemptStarted(attempt, data.text())
        case 2:
            return events.AttemptWithdrawn(attempt, "gone", data.truth())
    failure = data.one((None, *FailureClass))
    started = data.number()
    return events.AttemptFinished(
        attempt=attempt,
        elapsed=data.number(),
        cost=data.number(),
        samples={} if failure else {"time": {"main": data.number()}},
        failure=failure,
        reason=data.text() if failure else "",
        host=data.one(["", "n1", "n2", "simulated"]),
        started=started,
        finished=started + 1.0,
        estimated=data.truth(),
        nodes=data.whole(1, 2),
        blamed=("n1",) if failure is FailureClass.INFRASTRUCTURE else (),
        load={"others": 0.25} if data.truth() else {},
        on=("n1", "n2") if data.truth() else (),
    )


def _of_campaign(data: _Draw, state: State) -> events.Event:
    machine = {"drift": "2 %"} if data.truth() else {}
    found: list[events.Event] = [
        events.ControllerStarted(
            host="h",
            pid=data.whole(0, 9),
            version="0",
            provenance={"executable": {"sha256": data.one(["a", "b"])}, "cluster": data.one(["c", ""])},
            directory=data.text(),
        ),
        events.ControllerStopped("interrupted"),
        events.ExecutableReplaced({"executable": data.one(["a", "b"])}),
        events.CampaignChanged(CAMPAIGN, data.truth(), data.truth()),
        events.RoundCompleted(
            round=state.round,
            smape=data.share(),
            width=data.share(),
            improved=data.truth(),
            measured=data.truth(),
            machine=machine,
            news=tuple(machine),
            targets=data.whole(0, 9),
            kept=data.share() or 0.0,
        ),
        events.ModelsAssessed(
            smape=data.share(),
            width=data.share(),
            widest=data.share(),
            noise=data.share(),
            narrow=data.truth(),
            targets=data.whole(0, 9),
        ),
        events.StopRuleReached("budget", "spent", data.number(), data.one([None, *POINTS])),
        events.CampaignPaused("failures", "many"),
        events.OutageBegan(what="slurmctld", since=data.number(), jobs=data.whole(0, 9)),
        events.StopWithdrawn(data.number()),
        events.RereadBegan(),
        events.CampaignStopped("budget", "spent"),
    ]
    if state.outages:
        found.append(events.OutageEnded("slurmctld", 1.0))
    accepted = [(run, item) for run, item in state.runs.items() if item.status is RunStatus.MEASURED]
    if accepted:
        run, item = sorted(accepted, key=lambda pair: str(pair[0]))[0]
        samples = {"time": {"main": data.number()}}
        found.append(events.AttemptReread(attempt=Attempt(run, item.accepted or 1), samples=samples))
        found.append(events.MeasurementsDiscarded((run,), data.text()))
    restorable = [run for run in state.discarded if discards.refusal(state, run, restore=True) is None]
    if restorable:
        found.append(events.MeasurementsRestored((min(restorable, key=str),), data.text()))
    found.append(events.RereadCompleted(CAMPAIGN, len(state.reread)))
    if state.validation is None and not state.waiting and not state.in_flight:
        found.append(events.ValidationProposed(validation_run(state, Point.of(p=99, solver="cg"))))
    return data.one(found)
