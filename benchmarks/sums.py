"""Models of call paths that include others: alone, and as the sum of their parts.

    python benchmarks/sums.py [--trees 20] [--seed 2026] [--modeler pmnf]

Drawn call trees: up to six leaves, each a function in the normal form, below three call paths that include
them and take a share of their own. The noise of a run has a part that all call paths share. Printed for the
three call paths, one step beyond the grid: mean absolute logarithmic error, share within 10 % of the truth,
share of 90 % intervals that hold it, and their geometric-mean width (high over low).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from command import options
from drawn_functions import points, score

from orchestrator import registry
from orchestrator.evaluation.strategies.functions import Function, draw
from orchestrator.evaluation.strategies.synthetic import SERIES
from orchestrator.models.base import Floats, Model, Modeler
from orchestrator.models.summed import Summed
from orchestrator.models.sums import with_sums
from orchestrator.types import Measurement, Measurements, Point

LEAVES = ("main->a->x", "main->a->y", "main->a->z", "main->b->x", "main->b->y", "main->c")
CALLERS = ("main->a", "main->b", "main")  # parts before what includes them
_KEPT = 0.85  # probability of a leaf
_LARGEST = 30.0  # a leaf takes at most so many times as long as another
_WIDEST = 5.0  # logarithm of the width of an interval that counts as no narrower


@dataclass(frozen=True, slots=True)
class Setting:
    """What is drawn: parameters, all points or lines, noise (shared and own), share of callers themselves."""

    parameters: int
    lines: bool
    shared: float
    alone: float
    rest: float


SETTINGS = (
    Setting(2, False, 0.02, 0.02, 0.0),
    Setting(2, False, 0.05, 0.05, 0.03),
    Setting(2, False, 0.0, 0.05, 0.3),
    Setting(2, True, 0.01, 0.01, 0.0),
    Setting(2, True, 0.03, 0.03, 0.03),
    Setting(2, True, 0.0, 0.03, 0.03),
    Setting(3, True, 0.01, 0.01, 0.03),
)


def below(parent: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if name.rpartition("->")[0] == parent]


def tree(setting: Setting, rng: np.random.Generator) -> dict[str, tuple[Function, float]]:
    """Draw functions, each with a factor, of leaves and of what callers do themselves."""
    series = [parameter for parameter, _ in SERIES[: setting.parameters]]
    middle = Point.of({s.name: s.values[2] for s in series})
    leaves = [name for name in LEAVES if rng.random() < _KEPT] or [LEAVES[0]]
    found: dict[str, tuple[Function, float]] = {}
    sizes: dict[str, float] = {}
    for name in [*leaves, *(caller for caller in CALLERS if below(caller, [*leaves, *CALLERS]))]:
        children = sum(sizes[child] for child in below(name, list(sizes)))
        size = setting.rest * children if children else float(np.exp(rng.uniform(0.0, np.log(_LARGEST))))
        if name in CALLERS and not children:
            continue
        one = [series[int(rng.integers(len(series)))]]
        function = draw(one if rng.random() < 0.3 else series, rng)
        found[name], sizes[name] = (function, size / function(middle)), size + children
    return found


def inclusive(own: dict[str, Floats]) -> dict[str, Floats]:
    """Add what callers include to what they do themselves; leaves come first."""
    total = dict(own)
    for caller in (caller for caller in CALLERS if caller in own):
        total[caller] = own[caller] + np.sum([total[name] for name in below(caller, list(own))], axis=0)
    return total


def rows(setting: Setting, fit: Modeler, rng: np.random.Generator) -> list[tuple[str, float, bool, float]]:
    """Return (who, absolute log error, whether the interval holds, its log width) per caller and kind."""
    series = [parameter for parameter, _ in SERIES[: setting.parameters]]
    where, drawn = points(series, setting.lines), tree(setting, rng)
    run = np.exp(rng.normal(0, setting.shared, (len(where), 2)))
    times = inclusive(
        {
            name: np.array([[factor * function(p)] for p in where])
            * np.exp(rng.normal(0, setting.alone, (len(where), 2)))
            * run
            for name, (function, factor) in drawn.items()
        }
    )
    items = tuple(
        Measurement(name, "time", {p: tuple(map(float, row)) for p, row in zip(where, values, strict=True)})
        for name, values in times.items()
    )
    beyond = Point.of({parameter.name: value for parameter, value in SERIES[: setting.parameters]})
    truth = inclusive({name: np.array([factor * f(beyond)]) for name, (f, factor) in drawn.items()})
    found = []
    for model in fit(Measurements(tuple(s.name for s in series), items)):
        if model.callpath in CALLERS:
            alone: Model = model.own if isinstance(model, Summed) else model
            for who, one in (("alone", alone), ("sum", model)):
                good = score(one.predict([beyond]), float(truth[model.callpath][0]))
                found.append((who, good.error, good.holds, min(good.width, _WIDEST)))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--modeler", default="auto", choices=registry.names("model"))
    chosen = parser.parse_args(arguments)
    fit = with_sums(registry.load("model", chosen.modeler)())
    print("| parameters, points, noise shared + own, rest | models | error | within 10 % | 90 % | width |")
    print("|---|---|---|---|---|---|")
    for number, setting in enumerate(SETTINGS):
        rng = np.random.default_rng([chosen.seed, number])
        found = [row for _ in range(chosen.trees) for row in rows(setting, fit, rng)]
        shape = f"{setting.parameters}, {'lines' if setting.lines else 'all'}"
        what = f"{shape}, {setting.shared:.0%} + {setting.alone:.0%}, {setting.rest:.0%}"
        for who in ("alone", "sum"):
            error, holds, width = (
                np.array(column) for column in zip(*(row[1:] for row in found if row[0] == who), strict=True)
            )
            close = 100 * (error < np.log(1.1)).mean()
            figures = f"{error.mean():.3f} | {close:.0f} % | {100 * holds.mean():.0f} %"
            print(f"| {what} | {who} | {figures} | {np.exp(width.mean()):.2f} |", flush=True)


if __name__ == "__main__":
    main()
