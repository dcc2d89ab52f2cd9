"""What campaigns lose where their program does not run, with and without learning where that is.

    python benchmarks/failing_regions.py [--campaigns 30] [--seed 1] [--strategy information]

Rehearsed campaigns over three parameters (120 points: ranks, size, steps). Every program fails in a region
drawn at random: beyond a size, a size per rank, or a product of size and steps, at a fifth to three fifths of
the points. Printed are, with learning and without: how many campaigns stopped because of failures; medians of
the points measured of those that run, of the runs given up, and of the share of core-hours that failed
attempts cost; and how many points in all that would run were left out at the end.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np
from command import options

from orchestrator.campaign import loader
from orchestrator.control import session
from orchestrator.expressions import parse
from orchestrator.journal.state import FAILURE_RULES, RunStatus, State
from orchestrator.policy import failing
from orchestrator.types import Point

VALUES = {"p": (1, 2, 4, 8, 16), "n": (100, 200, 300, 400, 500, 600), "k": (10, 20, 40, 80)}
POINTS = [Point.of(dict(zip(VALUES, values, strict=True))) for values in product(*VALUES.values())]
SIZES = {"size": "n", "size per rank": "n / p", "size times steps": "n * k"}
CAMPAIGN = """
name: failing
application: generic
executable: /bin/true
program: {ranks: p, output: [{callpath: main, pattern: "(.*)"}]}
parameters: {p: [1, 2, 4, 8, 16], n: [100, 200, 300, 400, 500, 600], k: [10, 20, 40, 80]}
evaluation_point: {p: 32, n: 700, k: 160}
measure: {time_limit: 10 min, repetitions: {initial: 1, maximum: 3}}
stop: {budget: 20 core-hours, patience: 3}
executor: {name: simulated, noise: 5, truth: {main: "1 + 1e-3 * n * k / p + 0.1 * log2(p)"}}
"""


def drawn(campaigns: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield kinds of regions, each with a condition that holds at a fifth to three fifths of the points."""
    rng = np.random.default_rng(seed)
    for number in range(campaigns):
        kind, text = list(SIZES.items())[number % len(SIZES)]
        sizes = np.array([parse(text, VALUES).number(point.as_dict()) for point in POINTS])
        limits = [limit for limit in np.unique(sizes) if 0.2 <= np.mean(sizes >= limit) <= 0.6]
        yield kind, f"{text} >= {limits[int(rng.integers(len(limits)))]:g}"


def finished(condition: str, strategy: str, seed: int, learns: bool) -> State:
    """Return the end of a campaign."""
    settings = (f"executor.fails_where={condition}", f"strategy.name={strategy}", f"seed={seed}")
    chosen = loader.loads(CAMPAIGN, "failing.yaml", Path.cwd(), settings)
    blind = nullcontext() if learns else mock.patch.object(failing, "regions", lambda state: ())
    with tempfile.TemporaryDirectory() as folder, blind:
        return session.run(chosen, Path(folder) / "campaign")


def row(conditions: list[str], strategy: str, learns: bool) -> list[str]:
    """Return the figures of campaigns, one per condition."""
    stopped, measured, given_up, lost, wrong = 0, [], [], [], []
    for seed, condition in enumerate(conditions):
        state = finished(condition, strategy, seed, learns)
        runs = [point for point in POINTS if not parse(condition, VALUES)(point.as_dict())]
        here = {run.point for run, item in state.runs.items() if item.status is RunStatus.MEASURED}
        failed = [item for item in state.runs.values() if item.failures]
        stopped += state.stopped is not None and state.stopped.rule in FAILURE_RULES
        measured.append(100 * len(here) / len(runs))
        given_up.append(sum(item.status is RunStatus.GIVEN_UP for item in state.runs.values()))
        lost.append(100 * sum(item.cost for item in failed) / state.spent)
        known = failing.regions(state) if learns else ()
        wrong.append(sum(bool(failing.why_not(point, known)) for point in runs))
    medians = [statistics.median(figures) for figures in (measured, given_up, lost)]
    return [
        f"{100 * stopped / len(conditions):.0f}",
        *(f"{figure:.0f}" for figure in medians),
        f"{sum(wrong)}",
    ]


def main() -> None:
    """Print a row per kind of region."""
    parser = options(__doc__)
    parser.add_argument("--campaigns", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--strategy", default="information")
    arguments = parser.parse_args()
    conditions = list(drawn(arguments.campaigns, arguments.seed))
    print("| fails beyond | learns | by failures % | measured % | given up | lost % | left out |")
    print("|---|---|---|---|---|---|---|")
    for kind in SIZES:
        for learns in (False, True):
            mine = [condition for name, condition in conditions if name == kind]
            figures = row(mine, arguments.strategy, learns)
            print(f"| {kind} | {'yes' if learns else 'no'} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
