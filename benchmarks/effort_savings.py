"""Core-hours that priors from counted effort save: the cheapest campaigns of equal accuracy, in simulation.

``python benchmarks/effort_savings.py [--functions N] [--seed N]`` prints the table in
``docs/evaluation/noise.md``.

One application of generated functions (`orchestrator.evaluation.noise.cases.synthetic`) is measured by plans
of growing cost: two lines of points, or the cheapest points of the grid beside them, with one to five runs
each. *Classic* models see times only, *combined* ones also one counted run at every point of the plan. For
every noise the cheapest plans of both kinds are compared that make as many call paths accurate (within 5 %
one step beyond the grid), and the paper's plan, all points with five runs, with the cheapest one whose
combined models are at least as accurate with no larger mean error.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from command import options

from orchestrator.evaluation.noise import cases as noise_cases
from orchestrator.evaluation.noise import study as noise_study
from orchestrator.evaluation.noise.cases import Study
from orchestrator.generate.complexity import RANKS
from orchestrator.types import Measurement, Point

LEVELS = (10.0, 50.0)
PATTERNS = ("uniform",)
RUNS = (1, 2, 5)
POINTS = (9, 13, 17, 25)
ACCURATE = 5.0  # percent
WANTED = (80.0, 90.0, 95.0)  # percent of call paths that are accurate
# Seconds of a counted run over those of a timed one: Kripke and RELeARN in the paper (section V-C3: 1.59 over
# 1.18 and 1.99 over 1.11), and small C++ functions with our own compiler wrapper (docs/effort.md).
SLOWDOWNS = (1.35, 1.8, 4.0)
LONGEST = 60.0  # seconds of the longest run: times are scaled to it


@dataclass(frozen=True, slots=True)
class Outcome:
    """What models of one plan are worth: points, runs per point, accurate percent, mean error in percent."""

    points: int
    runs: int
    accurate: float
    error: float


def main() -> None:
    """Print the table."""
    arguments = _arguments()
    study = noise_cases.synthetic(arguments.functions, 2.0, arguments.seed)
    order = _order(study)
    seconds = _seconds(study)
    found: dict[tuple[str, float], list[Outcome]] = {}
    for count in POINTS:
        part = _restricted(study, set(order[:count]))
        chosen = noise_study.settings(LEVELS, RUNS, 1, PATTERNS)
        errors = noise_study.run(part, chosen, seed=arguments.seed, workers=arguments.workers)
        for contender in ("classic", "combined"):
            for level in LEVELS:
                for runs in RUNS:
                    mine = np.concatenate(
                        [
                            item.error_percent
                            for item in errors
                            if item.contender == contender
                            and item.setting.percent == level
                            and item.setting.repetitions == runs
                        ]
                    )
                    outcome = Outcome(count, runs, 100 * float(np.mean(mine <= ACCURATE)), float(mine.mean()))
                    found.setdefault((contender, level), []).append(outcome)
    _print(found, _core_hours(order, seconds))


def _arguments() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--functions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--workers", type=int)
    return parser.parse_args()


def _order(study: Study) -> list[Point]:
    """Return the points as they are measured: both lines at the lowest values, then the cheapest others."""
    points = list(study.cases[0].times)
    least = {name: min(p.number(name) for p in points) for name in study.parameters}
    seconds = _seconds(study)

    def place(point: Point) -> tuple[bool, float]:
        away = sum(point.number(name) > least[name] for name in study.parameters)
        return away > 1, point.number(RANKS) * seconds[point]

    return sorted(points, key=place)


def _seconds(study: Study) -> dict[Point, float]:
    """Return how long a run of the application takes at each point: all functions, scaled to `LONGEST`."""
    total = {p: sum(float(np.median(c.times[p])) for c in study.cases) for p in study.cases[0].times}
    return {point: LONGEST * value / max(total.values()) for point, value in total.items()}


def _restricted(study: Study, points: set[Point]) -> Study:
    cases = [replace(c, times={p: v for p, v in c.times.items() if p in points}) for c in study.cases]
    effort = [
        Measurement(i.callpath, i.metric, {p: v for p, v in i.values.items() if p in points})
        for i in study.effort
    ]
    return replace(study, cases=tuple(cases), effort=tuple(effort))


Cost = Callable[[Outcome, float], float]
"""Core-hours of a plan, with so many runs per point beside the timed ones."""


def _core_hours(order: Sequence[Point], seconds: dict[Point, float]) -> Cost:
    def cost(outcome: Outcome, more: float) -> float:
        runs = outcome.runs + more
        return sum(point.number(RANKS) * seconds[point] * runs for point in order[: outcome.points]) / 3600

    return cost


def _print(found: dict[tuple[str, float], list[Outcome]], cost: Cost) -> None:
    heads = ["noise", "wanted", "classic: points x runs", "accurate, mean error", "core-hours"]
    heads += ["priors: points x runs", "accurate, mean error"]
    heads += [f"core-hours (saved), count x{slowdown:g}" for slowdown in SLOWDOWNS]
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for level in LEVELS:
        classic, combined = found["classic", level], found["combined", level]
        full = next(item for item in classic if (item.points, item.runs) == (POINTS[-1], RUNS[-1]))
        _print_row(f"| {level:g} % | as all {full.points} x {full.runs}", [full], combined, full, cost)
        for wanted in WANTED:
            enough = [item for item in classic if item.accurate >= wanted]
            least = Outcome(0, 0, wanted, np.inf)
            _print_row(f"| {level:g} % | {wanted:g} % accurate", enough, combined, least, cost)


def _print_row(
    start: str, classic: Sequence[Outcome], combined: Sequence[Outcome], least: Outcome, cost: Cost
) -> None:
    """Print the cheapest plan of both kinds that is as good as ``least``."""
    enough = [item for item in combined if item.accurate >= least.accurate and item.error <= least.error]
    cells = [start]
    if not classic or not enough:
        missing = "classic" if not classic else "priors"
        print(" | ".join([*cells, f"{missing}: no plan"]) + " |")
        return
    best = min(classic, key=lambda item: cost(item, 0.0))
    full_price = cost(best, 0.0)
    cells += [*_cells(best), f"{full_price:.0f}"]
    cells += _cells(min(enough, key=lambda item: cost(item, SLOWDOWNS[0])))
    for slowdown in SLOWDOWNS:
        price = min(cost(item, slowdown) for item in enough)
        cells.append(f"{price:.0f} ({full_price - price:+.0f}, {100 * (1 - price / full_price):.0f} %)")
    print(" | ".join(cells) + " |")


def _cells(outcome: Outcome) -> list[str]:
    return [f"{outcome.points} x {outcome.runs}", f"{outcome.accurate:.0f} %, {outcome.error:.2g} %"]


if __name__ == "__main__":
    main()
