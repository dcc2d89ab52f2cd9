"""Call paths fitted together against each fitted alone: error and coverage at the far corner.

    python benchmarks/joint_fits.py [--modeler auto] [--groups 200] [--seed 2026] [--cases FOLDER]

Groups are drawn: their call paths have noise from 0.1 to 30 %, and shapes in and beyond the normal form.
FOLDER holds sets of measured cases instead, as of `far_corner.py`. Errors are absolute logarithms of
prediction over truth.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from command import options
from drawn_functions import score
from far_corner_cases import Case, groups, stored

from orchestrator import registry
from orchestrator.models.base import Modeler
from orchestrator.types import Measurement, Measurements, Point

Rows = list[tuple[float, bool, float]]

VALUES = {
    "p": (8.0, 16.0, 32.0, 64.0, 128.0),
    "n": (10.0, 20.0, 30.0, 40.0, 50.0),
    "s": (2.0, 4.0, 8.0, 16.0),
}
FAR = {"p": 256.0, "n": 60.0, "s": 32.0}
CALL_PATHS = (2, 3, 5, 10, 30)
SHAPES = ("constant", "product", "sum", "parent", "falling", "saturating", "bent")
MOST = 10  # test points of a measured case, at most
WORST = 5.0  # the error of a prediction that is missing, zero or infinite


@dataclass(frozen=True)
class Group:
    """Call paths measured at the same points, and what is true at others: values per call path and point."""

    known: Measurements
    truth: dict[str, dict[Point, float]]


def drawn(rng: np.random.Generator) -> Group:
    """Draw a program: its parameters, points, repetitions, and call paths with noise of their own."""
    names = ("p", "n") if rng.random() < 0.5 else ("p", "n", "s")
    values = [VALUES[name][: 4 if len(names) == 3 else 5] for name in names]
    points = [Point.of(dict(zip(names, x, strict=True))) for x in product(*values)]
    if rng.random() < 0.5:  # a campaign that has only begun
        points = [points[k] for k in sorted(rng.choice(len(points), rng.integers(7, 13), replace=False))]
    far = Point.of({name: FAR[name] if len(names) == 2 or name != "p" else 128.0 for name in names})
    repetitions = int(rng.integers(2, 5))
    items, truth = [], {}
    for number in range(rng.choice(CALL_PATHS)):
        noise = float(np.clip(0.025 * np.exp(rng.normal(0, 1.2)), 0.001, 0.3))
        exact = Function(names, rng)
        measured = {
            point: tuple(exact(point) * float(f) for f in np.exp(rng.normal(0, noise, repetitions)))
            for point in points
        }
        items.append(Measurement(f"f{number}", "time", measured))
        truth[f"f{number}"] = {far: exact(point=far)}
    return Group(Measurements(names, tuple(items)), truth)


class Function:
    """A random function of a shape: a constant plus terms of random exponents, or something smooth beyond."""

    def __init__(self, names: Sequence[str], rng: np.random.Generator) -> None:
        self.shape = str(rng.choice(SHAPES))
        self.names = list(rng.permutation(names))
        self.powers = {name: float(rng.choice((0.5, 2 / 3, 1.0, 1.5, 2.0))) for name in names}
        self.logs = {name: float(rng.choice((0, 0, 1))) for name in names}
        self.share = rng.uniform(0.05, 1.0, 3)
        self.scale = float(10 ** rng.uniform(-3, 2))

    def _block(self, name: str, x: float) -> float:
        """Return the block of a parameter, relative to its value at the smallest value."""

        def plain(x: float) -> float:
            return float(x ** self.powers[name] * np.log2(x) ** self.logs[name])

        return plain(x) / plain(VALUES[name][0])

    def __call__(self, point: Point) -> float:
        """Return the true value at a point."""
        first, second, *_ = self.names
        blocks = {name: self._block(name, point.number(name)) for name in self.names}
        a, b, c = self.share
        x = point.number(first) / VALUES[first][0]
        value = {
            "constant": 1.0,
            "product": a + b * blocks[first] * blocks[second],
            "sum": a + b * blocks[first] + c * blocks[second],
            "parent": blocks[first] * (a + b * np.log2(point.number(second))),
            "falling": a * blocks[second] / x + b,
            "saturating": blocks[second] * (a + 3 * b * x / (x + 4)),
            "bent": blocks[first] * blocks[second] ** (0.5 + 0.1 * a * np.log2(x)),
        }[self.shape]
        return self.scale * float(value)


def measured(cases: Sequence[Case]) -> Iterator[Group]:
    """Yield the groups of a set of measured cases."""
    for places in groups(cases):
        some = {f"f{number}": cases[place] for number, place in enumerate(places)}
        items = tuple(Measurement(name, "time", case.train) for name, case in some.items())
        truth = {
            name: {point: float(np.mean(values)) for point, values in case.test.items()}
            for name, case in some.items()
        }
        yield Group(Measurements(cases[places[0]].parameters, items), truth)


def outcomes(
    group: Group, modeler: Modeler, *, together: bool
) -> dict[tuple[str, Point], tuple[float, bool, float]]:
    """Return error, whether the interval holds, and the logarithm of its width, per call path and point."""
    parts = [group.known.items] if together else [(item,) for item in group.known.items]
    result = {}
    for items in parts:
        for model in modeler(Measurements(group.known.parameters, items)):
            points = list(group.truth[model.callpath])
            said = model.predict(points)
            for place, point in enumerate(points):
                good = score(said, group.truth[model.callpath][point], place)
                error, width = (x if np.isfinite(x) else WORST for x in (good.error, good.width))
                result[model.callpath, point] = error, good.holds, width
    return result


def line(name: str, found: Sequence[Group], modeler: Modeler) -> str:
    """Return a row of the table: errors, coverage and widths of joint and single fits."""
    joint: Rows = []
    alone: Rows = []
    for group in found:
        both = [outcomes(group, modeler, together=together) for together in (True, False)]
        joint += [both[0][key] for key in both[1]]
        alone += both[1].values()
    cells = [name, str(len(found)), str(len(alone))]
    for rows in (joint, alone):
        error, holds, width = np.array(rows, dtype=float).T
        cells += [f"{error.mean():.4f}", f"{100 * holds.mean():.1f}", f"{np.exp(width.mean()):.2f}"]
    differs = np.abs([e[0] - o[0] for e, o in zip(joint, alone, strict=True)])
    better = [e[0] < o[0] for e, o, d in zip(joint, alone, differs, strict=True) if d > 1e-3]
    cells += [f"{sum(better)} : {len(better) - sum(better)}"]
    return f"| {' | '.join(cells)} |"


def sets(chosen: argparse.Namespace) -> Iterator[tuple[str, list[Group]]]:
    """Yield the sets of groups that were asked for, with their names."""
    if chosen.cases is None:
        known = [drawn(np.random.default_rng([chosen.seed, k])) for k in range(chosen.groups)]
        for size in CALL_PATHS:
            yield f"drawn, {size} call paths", [group for group in known if len(group.known.items) == size]
        return
    for name, cases in stored(chosen.cases, chosen.only, MOST).items():
        yield name, list(measured(cases))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--modeler", choices=registry.names("model"), default="auto")
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--cases", type=Path, metavar="FOLDER", help="measured cases instead of drawn ones")
    parser.add_argument("--only", nargs="*", default=[], help="files of FOLDER whose names contain this")
    chosen = parser.parse_args(arguments)
    modeler: Modeler = registry.load("model", chosen.modeler)()
    print(
        "| set | groups | predictions | joint: error | holds % | width | alone: error | holds % | width | ",
        end="",
    )
    print(f"joint better : worse |\n|{'---|' * 10}", flush=True)
    for name, found in sets(chosen):
        if found:  # of few groups, none may have so many call paths
            print(line(name, found, modeler), flush=True)


if __name__ == "__main__":
    main()
