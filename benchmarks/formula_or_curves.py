"""Formulas, curves, and both in one posterior, on functions that are in the normal form.

    python benchmarks/formula_or_curves.py [--functions 60] [--seed 2026]

Drawn functions of two parameters, with two runs per point: at all 25 points, and at the nine points of two
lines. Per modeler: the share of functions within 10 % of the truth one step beyond the grid, and how often
the 90 % interval holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from command import options
from drawn_functions import BEYOND, NAMES, PARAMETERS, points, score

from orchestrator import registry
from orchestrator.evaluation.strategies.functions import Function, draw
from orchestrator.types import Measurement, Measurements, Point

MODELERS = ("pmnf", "curves", "auto")


def scores(
    function: Function, where: Sequence[Point], noise: float, rng: np.random.Generator
) -> list[tuple[bool, bool]]:
    """For every modeler: whether its prediction at P+ is close, and whether its interval holds."""
    values = {
        point: tuple(function(point) * (1 + noise / 100 * rng.uniform(-1, 1, 2)).astype(float))
        for point in where
    }
    known, truth = Measurements(NAMES, (Measurement("main", "time", values),)), function(BEYOND)
    said = [registry.load("model", name)()(known)[0].predict([BEYOND]) for name in MODELERS]
    found = [score(prediction, truth) for prediction in said]
    return [(item.is_close, item.holds) for item in found]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--functions", type=int, default=60)
    parser.add_argument("--seed", type=int, default=2026)
    chosen = parser.parse_args(arguments)
    print("| noise, points | " + " | ".join(f"{name}: within 10 %, holds" for name in MODELERS) + " |")
    print("|---" * (len(MODELERS) + 1) + "|")
    for noise, lines in product((5.0, 1.0), (False, True)):
        rng = np.random.default_rng([chosen.seed, int(noise), lines])
        where = points(PARAMETERS, lines)
        found = np.array([scores(draw(PARAMETERS, rng), where, noise, rng) for _ in range(chosen.functions)])
        share = 100 * found.mean(axis=0)
        what = f"±{noise:g} %, {len(where)} points"
        print(f"| {what} | " + " | ".join(f"{a:.0f}, {b:.0f}" for a, b in share) + " |", flush=True)


if __name__ == "__main__":
    main()
