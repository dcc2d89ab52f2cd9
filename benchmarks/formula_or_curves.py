"""How much better a formula must explain the measurements than curves do, before it is believed.

    python benchmarks/formula_or_curves.py [--functions 60] [--seed 2026]

Drawn functions of two parameters in the normal form, with two runs per point: at all 25 points, and at the
nine points of two lines. For several prices of the formula: the share of functions within 10 % of the truth
one step beyond the grid, if whichever explanation is more probable predicts.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product

import numpy as np

from orchestrator import registry
from orchestrator.evaluation.functions import Function, draw
from orchestrator.evaluation.synthetic import SERIES
from orchestrator.models.curves.model import CurveModel
from orchestrator.models.selection import PRICE, advantage
from orchestrator.types import Measurement, Measurements, Point

PRICES = (0.0, 10.0, PRICE, 20.0, 25.0)
NAMES = tuple(parameter.name for parameter, _ in SERIES[:2])
PLUS = Point.of({parameter.name: beyond for parameter, beyond in SERIES[:2]})


def points(lines: bool) -> list[Point]:
    first, second = (parameter.values for parameter, _ in SERIES[:2])
    grid = [Point.of(dict(zip(NAMES, pair, strict=True))) for pair in product(first, second)]
    return [p for p in grid if not lines or p[NAMES[0]] == first[0] or p[NAMES[1]] == second[0]]


def errors(function: Function, where: Sequence[Point], noise: float, rng: np.random.Generator) -> list[float]:
    """Absolute log errors at P+ for every price."""
    values = {
        point: tuple(function(point) * (1 + noise / 100 * rng.uniform(-1, 1, 2)).astype(float))
        for point in where
    }
    known = Measurements(NAMES, (Measurement("main", "time", values),))
    (form,), (curve,) = (registry.load("model", name)()(known) for name in ("pmnf", "curves"))
    assert isinstance(curve, CurveModel)
    better = advantage(form, curve)
    logs = [abs(np.log(float(model.value([PLUS])[0]) / function(PLUS))) for model in (form, curve)]
    return [logs[0] if better > price else logs[1] for price in PRICES]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", type=int, default=60)
    parser.add_argument("--seed", type=int, default=2026)
    chosen = parser.parse_args(arguments)
    print("| noise, points | " + " | ".join(f"{price:g}" for price in PRICES) + " |")
    print("|---" * (len(PRICES) + 1) + "|")
    for noise, lines in product((5.0, 1.0), (False, True)):
        rng = np.random.default_rng([chosen.seed, int(noise), lines])
        where = points(lines)
        series = [parameter for parameter, _ in SERIES[:2]]
        found = np.array([errors(draw(series, rng), where, noise, rng) for _ in range(chosen.functions)])
        within = 100 * (found < np.log(1.1)).mean(axis=0)
        what = f"±{noise:g} %, {len(where)} points"
        print(f"| {what} | " + " | ".join(f"{share:.0f}" for share in within) + " |", flush=True)


if __name__ == "__main__":
    main()
