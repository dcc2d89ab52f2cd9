"""Where effort is counted next: only while effort models cannot predict counts, cheapest points first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.journal.measurements import counting_keeps_failing, standing
from orchestrator.journal.state import RunStatus, State
from orchestrator.models.base import Category
from orchestrator.models.effort import UNCOUNTED, CountCheck, category
from orchestrator.policy import machine
from orchestrator.strategies.base import Choice, Costs
from orchestrator.types import Parameter, Point

EffortChecks = Mapping[Category, CountCheck]
"""Whether the effort models predict counts that they have not seen, by category of points."""

_VALUES = 4  # of a parameter that are counted in any case: three to fit, one to predict
_SLOWDOWN = 2.0  # core-seconds of an effort run per core-second of a time run, before any was seen
_ALWAYS = "counts effort, for the priors of the times at this point"


@dataclass(frozen=True, slots=True)
class Plan:
    """How many effort runs each point shall have, with one reason for all; ``note``: why no more."""

    wanted: Mapping[Point, int] = field(default_factory=dict)
    reason: str = ""
    note: str = ""


NOTHING = Plan()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The campaign's rules of counting."""

    repetitions: int  # effort runs per counted point
    always: bool  # count at every point, whether the effort models need it or not
    parameters: tuple[Parameter, ...]  # those of the search space
    # Whether a point has several ranks. Only there do programs poll, which makes counts vary.
    parallel: Callable[[Point], bool]

    def counts_at(self, state: State, point: Point, checks: EffortChecks) -> bool:
        """Return whether a new point would get an effort run, too."""
        if counting_keeps_failing(state):
            return False
        return self.always or not self.check(point, checks).settled

    def check(self, point: Point, checks: EffortChecks) -> CountCheck:
        """Return whether the effort models of a point's category predict counts."""
        return checks.get(category(point, self.categorical), UNCOUNTED)

    @property
    def categorical(self) -> tuple[str, ...]:
        """Names of the categorical parameters."""
        return tuple(item.name for item in self.parameters if item.categorical)


def plan(rules: Rules, choices: Sequence[Choice], state: State, checks: EffortChecks, costs: Costs) -> Plan:
    """Return the effort runs of a round: a pure function of what was chosen, counted and predicted.

    With ``when: always`` every new point is counted. Otherwise no point of a category is counted while its
    effort models are settled (`orchestrator.models.check_counts`). While they are not, at most as many points
    are counted as the round has new ones (one at least), new points or points timed before. First come the
    cheapest that show four values of each parameter and points off the lines, then the cheapest of the rest.
    All but the very first are counted only as long as counting costs no more than timing. The cheapest point
    with several ranks is counted twice, which shows whether counts are reproducible.
    """
    if not choices:
        return NOTHING
    if counting_keeps_failing(state):
        return Plan(note="no effort is counted any more: no effort run succeeded")
    new = list(dict.fromkeys(choice.point for choice in choices))
    if rules.always:
        return Plan(dict.fromkeys(new, rules.repetitions), _ALWAYS)
    done, budget = standing(state, "effort"), _effort_budget(rules, choices, state, costs)
    groups: dict[Category, list[Point]] = {}
    for point in dict.fromkeys([*new, *_timed(state)]):
        groups.setdefault(category(point, rules.categorical), []).append(point)
    wanted: dict[Point, int] = {}
    notes: list[str] = []
    for points in groups.values():
        check = rules.check(points[0], checks)
        counted = [point for point in points if point in done]
        fresh = sum(point not in done for point in points if point in set(new))
        open_ = _cheapest([p for p in points if p not in done and p not in state.infeasible], costs)
        chosen = [] if check.settled else _needed(counted, open_, rules.parameters, max(fresh, 1))
        affordable = budget.spend(chosen) if counted else chosen
        wanted |= dict.fromkeys(affordable, rules.repetitions)
        wanted |= _twice(rules, [*counted, *affordable], done, costs)
        why = "" if check.settled else ", but more effort runs would cost more than the timed runs"
        notes += [] if affordable else [check.reason + (why if open_ else ", at every known point")]
    reasons = [check.reason for check in checks.values() if not check.settled] or [UNCOUNTED.reason]
    note = "" if wanted else f"no further effort runs: {'; '.join(dict.fromkeys(notes))}"
    return Plan(wanted, f"counts effort for the priors: {reasons[0]}", note)


@dataclass
class _EffortBudget:
    """The core-seconds that counting may still cost; ``factor`` on the ``costs`` of time runs."""

    left: float
    factor: float
    costs: Costs

    def spend(self, points: Sequence[Point]) -> list[Point]:
        """Return those points, given in the order of cost, that are affordable, and subtract their cost."""
        affordable = []
        for point, seconds in zip(points, self.costs(points) if points else (), strict=True):
            cost = self.factor * float(seconds)
            if cost <= self.left:
                self.left -= cost
                affordable.append(point)
        return affordable


def _effort_budget(rules: Rules, choices: Sequence[Choice], state: State, costs: Costs) -> _EffortBudget:
    """Return what counting may cost: no more in all than the time runs, those of this round included."""
    coming = zip(choices, costs([choice.point for choice in choices]), strict=True)
    timing = sum(choice.repetitions * float(seconds) for choice, seconds in coming)
    return _EffortBudget(_ahead(state) + timing, rules.repetitions * slowdown(state), costs)


def _ahead(state: State) -> float:
    """Return by how many core-seconds timing has cost more than counting."""
    spent = {"time": 0.0, "effort": 0.0}
    for run in sorted(state.runs, key=lambda run: run.id):  # sums must not depend on a map's order
        spent[run.kind] += state.runs[run].cost
    return spent["time"] - spent["effort"]


def _timed(state: State) -> list[Point]:
    """Points with a measured time, in an order of their own: states do not keep one."""
    return sorted({run.point for run, _ in machine.timed(state)}, key=str)


def _cheapest(points: Sequence[Point], costs: Costs) -> list[Point]:
    priced = zip(points, costs(points), strict=True) if points else ()
    return [point for point, _ in sorted(priced, key=lambda pair: (float(pair[1]), str(pair[0])))]


def _needed(
    counted: Sequence[Point], open_: Sequence[Point], parameters: Sequence[Parameter], most: int
) -> list[Point]:
    """Choose points, given in the order of cost: first what effort models need at least, then the rest."""
    names = [item.name for item in parameters if not item.categorical]
    lowest = {name: min((p.number(name) for p in [*counted, *open_]), default=0.0) for name in names}

    def is_off_lines(point: Point) -> bool:
        return sum(point.number(name) > lowest[name] for name in names) > 1

    chosen: list[Point] = []
    for point in open_:
        if len(chosen) == most:
            break
        known = [*counted, *chosen]
        values = {name: {p.number(name) for p in known} for name in names}
        shows = any(point.number(n) not in values[n] and len(values[n]) < _VALUES for n in names)
        if sum(map(is_off_lines, known)) < len(names) if is_off_lines(point) else shows:
            chosen.append(point)
    return chosen or list(open_[:most])


def _twice(
    rules: Rules, points: Sequence[Point], done: Mapping[Point, int], costs: Costs
) -> dict[Point, int]:
    """Return a second run at the cheapest point with several ranks, unless some point has two."""
    if rules.repetitions > 1 or any(number > 1 for number in done.values()) or not points:
        return {}
    ordered = _cheapest(points, costs)
    return {next((p for p in ordered if rules.parallel(p)), ordered[0]): 2}


def first_costs(rules: Rules, state: State, checks: EffortChecks, costs: Costs) -> Costs:
    """Return the expected core-seconds of the effort runs that new points would get.

    These are the costs of time runs times the `slowdown` of finished effort runs. They are 0 where `plan`
    would not count, because counting is not needed there or too expensive.
    """
    factor, ahead = rules.repetitions * slowdown(state), _ahead(state)
    free = rules.always or not state.runs

    def first(points: Sequence[Point]) -> list[float]:
        expected = []
        for point, seconds in zip(points, map(float, costs(points)), strict=True):
            affordable = free or factor * seconds <= ahead + seconds
            counts = affordable and rules.counts_at(state, point, checks)
            expected.append(factor * seconds if counts else 0.0)
        return expected

    return first


def slowdown(state: State) -> float:
    """Return how much an effort run costs per time run at the same point: the median over finished ones."""
    elapsed: dict[Point, dict[str, float]] = {}
    for run, item in state.runs.items():
        if item.status is RunStatus.MEASURED and item.elapsed > 0 and run.repetition == 1:
            elapsed.setdefault(run.point, {})[run.kind] = item.elapsed
    ratios = sorted(pair["effort"] / pair["time"] for pair in elapsed.values() if len(pair) == 2)
    return ratios[len(ratios) // 2] if ratios else _SLOWDOWN
