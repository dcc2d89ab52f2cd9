"""How often intervals of several levels hold the truth, and a further run, on functions of the normal form.

    python benchmarks/interval_levels.py [--modeler pmnf] [--functions 100] [--seed 2026]

Drawn functions of two parameters with lognormal noise, measured at all 25 points or at the nine points of two
lines, predicted one step beyond the grid. Each function is fitted by itself. Prints the share of intervals of
each level that hold the true value (`mean`) and one further run there (`measured`), and the median high/low
at 90 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from command import options
from drawn_functions import BEYOND, NAMES, PARAMETERS, points

from orchestrator import registry
from orchestrator.evaluation.strategies.functions import Function, draw
from orchestrator.models.base import Modeler
from orchestrator.models.intervals import LEVEL, Interval, predictive
from orchestrator.types import Measurement, Measurements, Point

LEVELS = (50.0, 80.0, LEVEL, 95.0)


def intervals(
    function: Function,
    modeler: Modeler,
    where: Sequence[Point],
    noise: float,
    runs: int,
    rng: np.random.Generator,
) -> tuple[Interval, ...]:
    """Fit one function to so many runs at each point; return the intervals beyond."""
    values = {
        point: tuple(map(float, function(point) * np.exp(rng.normal(0, noise, runs)))) for point in where
    }
    (model,) = modeler(Measurements(NAMES, (Measurement("main", "time", values),)))
    return predictive(model, [BEYOND]).intervals(LEVELS)


def row(modeler: Modeler, lines: bool, noise: float, runs: int, functions: int, seed: int) -> list[str]:
    """Return the shares of intervals that hold, per kind, and median widths at 90 %."""
    rng = np.random.default_rng([seed, int(1000 * noise), runs, lines])
    held: dict[str, dict[float, list[bool]]] = {
        kind: {level: [] for level in LEVELS} for kind in ("mean", "measured")
    }
    widths: dict[str, list[float]] = {kind: [] for kind in held}
    for _ in range(functions):
        function = draw(PARAMETERS, rng)
        truth = function(BEYOND)
        aims = {"mean": truth, "measured": truth * float(np.exp(rng.normal(0, noise)))}
        for item in intervals(function, modeler, points(PARAMETERS, lines), noise, runs, rng):
            held[item.kind][item.level].append(bool(item.low[0] <= aims[item.kind] <= item.high[0]))
            if item.level == LEVEL:
                widths[item.kind].append(float(item.high[0] / item.low[0]))
    cells = []
    for kind, known in held.items():
        cells.append("/".join(f"{100 * np.mean(hits):.0f}" for hits in known.values()))
        cells.append(f"{np.median(widths[kind]):.2f}")
    return cells


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--modeler", default="auto", choices=registry.names("model"))
    parser.add_argument("--functions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=2026)
    chosen = parser.parse_args(arguments)
    modeler = registry.load("model", chosen.modeler)()
    levels = "/".join(f"{level:.0f}" for level in LEVELS)
    width = f"high/low at {LEVEL:.0f} %"
    print(f"| noise | points | runs | mean: {levels} % hold | {width} | one run: {levels} % hold | {width} |")
    print("|---|---|---|---|---|---|---|")
    for noise, lines, runs in product((0.01, 0.1), (False, True), (1, 2, 5)):
        cells = row(modeler, lines, noise, runs, chosen.functions, chosen.seed)
        what = (f"{100 * noise:g} %", str(len(points(PARAMETERS, lines))), str(runs))
        print(f"| {' | '.join([*what, *cells])} |", flush=True)


if __name__ == "__main__":
    main()
