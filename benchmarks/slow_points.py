"""Models of grids on which everything at one point was slow: how far they are off, with and without it.

    python benchmarks/slow_points.py [--functions 300] [--seed 1] [--modeler auto --modeler pmnf]

Functions of two parameters are drawn as in `modeler_speed.py` (25 points, two runs with ±5 %). Of every
second one all runs at a random point take three times as long: repetitions show no such noise.
Errors are absolute logarithms of prediction over truth one step beyond the grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from command import options
from drawn_functions import score
from modeler_speed import BEYOND, GRIDS, draw

from orchestrator import registry
from orchestrator.types import Measurement, Measurements, Point

NAMES, SLOWER = ("a", "b"), 3.0
Function = Callable[[tuple[float, ...]], float]


@dataclass(frozen=True)
class Drawn:
    """A function, its measurements, and whether those at one point are slow."""

    truth: Function
    measurement: Measurement
    is_slow: bool


def drawn(number: int, rng: np.random.Generator) -> list[Drawn]:
    """Draw functions and measure them."""
    every = list(product(*GRIDS[:2]))
    points = [Point.of(dict(zip(NAMES, x, strict=True))) for x in every]
    result = []
    for k in range(number):
        truth: Function = draw(2, rng)
        values = np.array([[truth(x) * (1 + 0.05 * u) for u in rng.uniform(-1, 1, 2)] for x in every])
        if is_slow := bool(k % 2):
            values[rng.integers(len(every))] *= SLOWER
        runs = {point: tuple(row.tolist()) for point, row in zip(points, values, strict=True)}
        result.append(Drawn(truth, Measurement(f"f{k}", "time", runs), is_slow))
    return result


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--functions", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modeler", action="append", choices=registry.names("model"))
    chosen = parser.parse_args()
    known = drawn(chosen.functions, np.random.default_rng(chosen.seed))
    far = tuple(BEYOND[:2])
    print("modeler | points | mean error | median error | 90 % intervals that hold | high/low")
    for name in chosen.modeler or ["auto", "pmnf"]:
        models = registry.load("model", name)()(
            Measurements(NAMES, tuple(item.measurement for item in known))
        )
        rows = []
        for item, model in zip(known, models, strict=True):
            said = model.predict([Point.of(dict(zip(NAMES, far, strict=True)))])
            rows.append(score(said, item.truth(far)))
        for is_slow in (True, False):
            error, holds, width = np.array(
                [row for row, item in zip(rows, known, strict=True) if item.is_slow == is_slow]
            ).T
            print(
                f"{name} | {'one is slow' if is_slow else 'as they are'} | {error.mean():.3f} | "
                f"{np.median(error):.3f} | {100 * holds.mean():.0f} % | x{np.exp(width.mean()):.2f}"
            )


if __name__ == "__main__":
    main()
