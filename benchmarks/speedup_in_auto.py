"""Do models of speedup help `auto`? All are fitted where parameters count processes.

    python benchmarks/speedup_in_auto.py [--cases FOLDER] [--only TEXT ...] [--most 6] [--functions 100]

FOLDER has far corners, as for `far_corner.py`; of every group of cases the first ``--most`` are taken.
Drawn are functions in the performance model normal form, and programs of strong scaling: Amdahl's law, and
communication that grows with the logarithm or a power of the processes. Errors are mean absolute log errors
at the held-out points. *auto* is without saturating speedups among its explanations, *saturating* is with
them, as it is by default. *chosen by* X takes speedup where its error at the runs on the most processes, left
out of further fits, is below X times that of `auto`; *where times fall* the same by 1, only where times fall
with the processes.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from far_corner_cases import groups, options_for, stored

from orchestrator import registry
from orchestrator.errors import ModelError
from orchestrator.evaluation.strategies.functions import draw
from orchestrator.evaluation.strategies.synthetic import SERIES
from orchestrator.models.base import Model, Modeler
from orchestrator.models.processes import found, required
from orchestrator.models.scaling import Study
from orchestrator.models.selection import FAMILIES
from orchestrator.types import Measurement, Measurements, Point

MARGINS = (1.0, 0.5, 0.2)
_WORST = 5.0  # log error where nothing usable is predicted
_RANKS, _SIZES, _NOISE = (4, 8, 16, 32, 64), (10, 20, 30, 40, 50), 0.03
Values = Mapping[Point, tuple[float, ...]]


@dataclass(frozen=True, kw_only=True)
class Series:
    """One call path: what is fitted, and what was measured (or is true) beyond."""

    train: Values
    test: Values


def known_of(parameters: tuple[str, ...], values: Sequence[Values]) -> Measurements:
    """Return measurements with a call path per series."""
    return Measurements(
        parameters, tuple(Measurement(f"case{k}", "time", item) for k, item in enumerate(values))
    )


def errors(modeler: Modeler, known: Measurements, test: Sequence[Values]) -> np.ndarray:
    """Return the mean absolute log error of every call path, and the share of intervals that hold, (n, 2)."""
    try:
        models: dict[str, Model] = {model.callpath: model for model in modeler(known)}
    except ModelError:
        models = {}
    rows = []
    for k, values in enumerate(test):
        truth = np.array([float(np.mean(item)) for item in values.values()])
        if f"case{k}" not in models:
            rows.append((_WORST, 0.0))
            continue
        said = models[f"case{k}"].predict(list(values))
        with np.errstate(all="ignore"):
            error = np.nan_to_num(np.abs(np.log(said.value / truth)), nan=_WORST, posinf=_WORST)
        holds = np.mean((said.low <= truth) & (truth <= said.high))
        rows.append((float(np.minimum(error, _WORST).mean()), float(holds)))
    return np.array(rows)


def compared(
    parameters: tuple[str, ...], series: Sequence[Series], modelers: Sequence[Modeler]
) -> np.ndarray:
    """Return errors and coverage of all modelers, and of what is chosen of the first two.

    Shape (series, modelers + margins + 1, 2).
    """
    processes = required(parameters)

    def number(point: Point) -> float:
        return float(np.prod([point.number(name) for name in processes.names]))

    most = max(number(point) for item in series for point in item.train)
    less = [{p: v for p, v in item.train.items() if number(p) < most} for item in series]
    last = [{p: v for p, v in item.train.items() if number(p) >= most} for item in series]
    known, reduced = known_of(parameters, [item.train for item in series]), known_of(parameters, less)
    said = np.array([errors(one, known, [item.test for item in series]) for one in modelers])
    seen = np.array([errors(one, reduced, last)[:, 0] for one in modelers[:2]])
    falls = np.array([not Study.of(known_of(parameters, [item.train]), processes).weak for item in series])
    better = [seen[1] < share * seen[0] for share in MARGINS]
    better.append((seen[1] < seen[0]) & falls)
    chosen = [np.where(taken[:, None], said[1], said[0]) for taken in better]
    return np.concatenate([said, chosen]).transpose(1, 0, 2)


def both(options: Mapping[str, Any]) -> tuple[Modeler, Modeler]:
    """Return `auto` without saturating speedups, and with them."""
    build = registry.load("model", "auto")
    return build(**options, families=[one for one in FAMILIES if one != "speedup"]), build(**options)


def drawn(rng: np.random.Generator, count: int) -> tuple[tuple[str, ...], list[Series]]:
    """Return functions in the normal form on a grid, and the point one step beyond."""
    axes = [replace(parameter, name=name) for (parameter, _), name in zip(SERIES, ("p", "n"), strict=False)]
    names = tuple(parameter.name for parameter in axes)
    beyond = Point.of(dict(zip(names, (value for _, value in SERIES), strict=False)))
    grid = [
        Point.of(dict(zip(names, pair, strict=True)))
        for pair in product(*(parameter.values for parameter in axes))
    ]
    found = []
    for _ in range(count):
        function = draw(axes, rng)
        train = {p: tuple(function(p) * np.exp(rng.normal(0, _NOISE, 2))) for p in grid}
        found.append(Series(train=train, test={beyond: (function(beyond),)}))
    return names, found


def programs(rng: np.random.Generator, count: int) -> tuple[tuple[str, ...], list[Series]]:
    """Return programs of strong scaling on ranks times sizes, and the point with four times the ranks."""
    beyond, result = Point.of(p=256, n=60), []
    for _ in range(count):
        work, serial, share = rng.uniform(1, 3), 10 ** rng.uniform(-4, -1), 10 ** rng.uniform(-4, -1.5)
        power, logarithmic = rng.choice([0.0, 0.5, 1.0]), rng.choice([0.0, 1.0])

        def time(p: float, n: float, *s: float) -> float:
            work, serial, share, power, logarithmic = s
            sent = share * n ** (work / 2) * p**power * np.log2(p) ** logarithmic
            return float(1e-2 * n**work * (serial + (1 - serial) / p) + 1e-2 * sent)

        how = work, serial, share, float(power), float(logarithmic)
        train = {
            Point.of(p=p, n=n): tuple(time(p, n, *how) * np.exp(rng.normal(0, _NOISE, 2)))
            for p, n in product(_RANKS, _SIZES)
        }
        result.append(Series(train=train, test={beyond: (time(256, 60, *how),)}))
    return ("p", "n"), result


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--cases", metavar="FOLDER", type=Path, help="default: far-corner in $MEASUREMENT_DATA"
    )
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--most", type=int, default=6, help="cases of a group")
    parser.add_argument("--functions", type=int, default=100)
    parser.add_argument("--overhead", default="power", help="option of speedup models")
    parser.add_argument("--seed", type=int, default=2026)
    chosen = parser.parse_args(arguments)
    folder = chosen.cases or Path(os.environ.get("MEASUREMENT_DATA", "."), "far-corner")
    by = " | ".join(f"chosen by {share:g}" for share in MARGINS)
    print(
        f"| set | cases | auto | speedup | saturating | {by} | where times fall | better | 90 % hold: auto, "
        "speedup, saturating |"
    )
    print("|---" * (8 + len(MARGINS)) + "|")
    speedup: Modeler = registry.load("model", "speedup")(overhead=chosen.overhead)

    def show(name: str, rows: Sequence[np.ndarray]) -> None:
        all_rows = np.concatenate(rows)
        cells = " | ".join(f"{error:.3f}" for error in all_rows.mean(axis=0)[:, 0])
        better = 100 * np.mean(all_rows[:, 1, 0] < all_rows[:, 0, 0])
        holds = ", ".join(f"{100 * share:.0f}" for share in all_rows.mean(axis=0)[:3, 1])
        print(
            f"| {name} | {len(all_rows)} | {cells} | {better:.0f} % | {holds} % |",
            flush=True,
        )

    for name, cases in stored(folder, chosen.only, 40).items():
        if not cases or found(cases[0].parameters) is None:
            continue
        auto = both(options_for(name, "auto"))
        rows = []
        for group in groups(cases):
            some = [cases[k] for k in group[: chosen.most]]
            series = [Series(train=case.train, test=case.test) for case in some]
            rows.append(compared(cases[0].parameters, series, [auto[0], speedup, auto[1]]))
        show(name, rows)
    for name, make in (("normal form", drawn), ("strong scaling", programs)):
        parameters, series = make(np.random.default_rng(chosen.seed), chosen.functions)
        parts = [series[k : k + 25] for k in range(0, len(series), 25)]
        auto = both({})
        three = [auto[0], speedup, auto[1]]
        show(f"{name} (drawn)", [compared(parameters, part, three) for part in parts])


if __name__ == "__main__":
    main()
