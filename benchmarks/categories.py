"""Models of categories that share their form, and of categories that do not.

    python benchmarks/categories.py [--functions 100] [--seed 2026] [--modeler pmnf] [--parameters 1]

Drawn functions in the normal form, one per category, with two runs per point. ``shared`` categories have the
same exponents, ``proportional`` ones differ by a factor, ``other`` ones have nothing in common. Per case, in
one category: the share of predictions within 10 % of the truth one step beyond the measured values, how often
the 90 % interval holds it, and the median of its width as a quotient of its ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from command import options
from drawn_functions import score

from orchestrator import registry
from orchestrator.evaluation.strategies.functions import Function, draw
from orchestrator.models.base import Modeler, holds_at
from orchestrator.types import Measurement, Measurements, Parameter, Point, Value

KINDS = ("shared", "proportional", "other")
NAMES = ("p", "n")
# Measured values of each parameter by the number of points; those of two parameters are on two lines.
LINES = {1: {3: 3, 5: 5, 9: 9}, 2: {3: 2, 5: 3, 9: 5}}
FIRST = (4.0, 10.0)


def values(parameters: int, points: int) -> list[list[float]]:
    return [[first * 2.0**k for k in range(LINES[parameters][points])] for first in FIRST[:parameters]]


def drawn(kind: str, categories: int, series: list[Parameter], rng: np.random.Generator) -> list[Function]:
    """Draw the function of every category."""
    first = draw(series, rng)
    if kind == "other":
        return [first, *(draw(series, rng) for _ in range(categories - 1))]
    return [first, *(again(first, kind, rng) for _ in range(categories - 1))]


def again(function: Function, kind: str, rng: np.random.Generator) -> Function:
    """Draw other coefficients: all times the same factor, or each by itself, within a factor of 30."""
    factor = float(np.exp(rng.uniform(-math.log(4), math.log(4))))
    terms = function.text.split("+")
    own = [1.0] * len(terms) if kind == "proportional" else np.exp(rng.uniform(-1.7, 1.7, len(terms)))
    texts = []
    for term, change in zip(terms, own, strict=True):
        number, *rest = term.split("*", 1)
        texts.append("*".join([f"{float(number) * factor * change:.6g}", *rest]))
    return Function("+".join(texts))


def measured(
    functions: Sequence[Function],
    axes: list[list[float]],
    noise: float,
    rng: np.random.Generator,
    few: int | None = None,
) -> Measurements:
    """Run every category at all points, but the first one only at the first few."""
    names = NAMES[: len(axes)]
    times: dict[Point, tuple[float, ...]] = {}
    for k, function in enumerate(functions):
        for place in product(*axes):
            point = dict(zip(names, place, strict=True))
            off = sum(x != axis[0] for x, axis in zip(place, axes, strict=True)) > 1
            if off or (few is not None and k == 0 and len(times) >= few):
                continue
            runs = function(Point.of(point)) * (1 + noise / 100 * rng.standard_normal(2))
            there: dict[str, Value] = {**point, "layout": f"c{k}"}
            times[Point.of(there)] = tuple(map(float, runs))
    return Measurements((*names, "layout"), (Measurement("main", "time", times),))


def scores(
    modeler: Modeler,
    functions: Sequence[Function],
    known: Measurements,
    axes: list[list[float]],
    few: int | None = None,
) -> Iterator[tuple[bool, bool, float]]:
    """Yield whether the prediction is close, whether the interval holds, and its log width.

    Of every category, or of the first one if that has few points.
    """
    models = modeler(known)
    corner: dict[str, Value] = {n: 2 * axis[-1] for n, axis in zip(NAMES, axes, strict=False)}
    for k, function in enumerate(functions if few is None else functions[:1]):
        point = Point.of({**corner, "layout": f"c{k}"})
        model = next(model for model in models if holds_at(model, point))
        found = score(model.predict([point]), function(Point.of(corner)))
        yield found.is_close, found.holds, found.width


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--functions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--modeler", default="pmnf")
    parser.add_argument("--parameters", type=int, default=1, choices=tuple(LINES))
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--categories", nargs="+", type=int, default=(2, 4, 8))
    parser.add_argument("--points", nargs="+", type=int, default=(3, 5, 9))
    parser.add_argument("--noise", nargs="+", type=float, default=(2.0, 5.0))
    parser.add_argument("--few", type=int, help="so many points in the first category, which alone counts")
    chosen = parser.parse_args(arguments)
    modeler = registry.load("model", chosen.modeler)()
    print("| categories are | noise | categories | points | within 10 % | 90 % hold | width |")
    print("|---|---|---|---|---|---|---|")
    for kind, noise, categories, points in product(
        chosen.kinds, chosen.noise, chosen.categories, chosen.points
    ):
        axes = values(chosen.parameters, points)
        series = [Parameter(name, tuple(axis)) for name, axis in zip(NAMES, axes, strict=False)]
        rng = np.random.default_rng([chosen.seed, KINDS.index(kind), int(noise), categories, points])
        rows: list[tuple[bool, bool, float]] = []
        for _ in range(chosen.functions):
            functions = drawn(kind, categories, series, rng)
            known = measured(functions, axes, noise, rng, chosen.few)
            rows += scores(modeler, functions, known, axes, chosen.few)
        found = np.array(rows, dtype=float)
        close, holds = 100 * found[:, :2].mean(axis=0)
        width = math.exp(min(float(np.median(found[:, 2])), 20.0))
        print(
            f"| {kind} | {noise:g} % | {categories} | {points} | {close:.0f} | {holds:.0f} | {width:.3g} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
