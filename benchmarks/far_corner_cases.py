"""Held-out cases of `far_corner.py`: where they come from, and what models say of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.api.fit import chosen_modeler, fit_measurements
from orchestrator.errors import ModelError
from orchestrator.models.base import Floats, Model
from orchestrator.models.curves.sizes import WITHOUT
from orchestrator.models.intervals import LEVEL, predictive
from orchestrator.readers.load import load
from orchestrator.report.models_document import shown
from orchestrator.types import Measurement, Measurements, Point, Value

LEVELS = (50.0, 80.0, LEVEL, 95.0)
Measured = Mapping[Point, tuple[float, ...]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One call path (or series): what models are fitted to, and what was measured beyond.

    ``baselines`` has predictions of other methods by name, one per point of ``test``; None where there is
    none. Cases of one ``group`` were measured together.
    """

    name: str
    group: str
    parameters: tuple[str, ...]
    train: Measured
    test: Measured
    baselines: Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the model of a case says at one test point; ends of intervals by level, of two kinds."""

    value: float
    mean: Mapping[float, tuple[float, float]]
    measured: Mapping[float, tuple[float, float]]
    model: str


def stored(folder: Path, only: Sequence[str], most: int) -> dict[str, list[Case]]:
    """Return the sets of a folder, one per JSON file, with at most so many test points per case."""
    paths = [p for p in sorted(folder.glob("*.json")) if not only or any(text in p.stem for text in only)]
    return {path.stem: [_case(entry, most) for entry in json.loads(path.read_text())] for path in paths}


def on_lines(cases: Sequence[Case]) -> list[Case]:
    """Return cases as a campaign begins: a line of points per parameter, and one point per two of them.

    Lines go through the smallest values; the point has the second value of both parameters. Cases that have
    no such lines of all values, or nothing else, are left out. Other methods were fitted to all points, so
    there are no predictions of theirs.
    """
    found = []
    for case in cases:
        names = case.parameters
        values = {name: sorted({point[name] for point in case.train}) for name in names}
        few = {point: runs for point, runs in case.train.items() if _begins(point, values)}
        complete = all(len({point[name] for point in few}) == len(values[name]) > 1 for name in names)
        if complete and len(few) < len(case.train):
            found.append(replace(case, train=few, baselines={}))
    return found


def _begins(point: Point, values: Mapping[str, Sequence[Value]]) -> bool:
    above = [place for name, known in values.items() if (place := known.index(point[name]))]
    return len(above) < 2 or above == [1, 1]


def _case(entry: Mapping[str, Any], most: int) -> Case:
    names = tuple(entry["parameters"])
    kept = slice(None, None, max(1, math.ceil(len(entry["test"]) / most)))
    return Case(
        name=entry["id"],
        group=str(entry["group"]),
        parameters=names,
        train=_measured(names, entry["train"]),
        test=_measured(names, entry["test"][kept]),
        baselines={name: tuple(values[kept]) for name, values in entry["baselines"].items()},
    )


def _measured(names: Sequence[str], rows: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Measured:
    found: dict[Point, tuple[float, ...]] = {}
    for coordinates, values in rows:
        point = Point.of({name: float(x) for name, x in zip(names, coordinates, strict=True)})
        found[point] = (*found.get(point, ()), *values)
    return found


def of_file(path: Path, metric: str) -> list[Case]:
    """Return a case per call path of any measured file: without the largest value of every parameter.

    The test is the point with the largest values of all.
    """
    known = load([path])
    largest = {name: max(p.number(name) for p in known.points) for name in known.parameters}
    corner = next(p for p in known.points if all(p.number(n) == v for n, v in largest.items()))
    return [
        Case(
            name=item.callpath,
            group=path.stem,
            parameters=known.parameters,
            train={p: v for p, v in item.values.items() if all(p.number(n) < m for n, m in largest.items())},
            test={corner: item.values[corner]},
            baselines={},
        )
        for item in known.items
        if item.metric == metric and corner in item.values and any(map(any, item.values.values()))
    ]


def groups(cases: Sequence[Case]) -> list[list[int]]:
    """Return the positions of the cases that are fitted together."""
    found: dict[str, list[int]] = {}
    for position, case in enumerate(cases):
        found.setdefault(case.group, []).append(position)
    return list(found.values())


def family(name: str) -> str:
    """Return the family of a set: sets of one program, or of one kind, are not independent of each other."""
    words = [
        word for word in name.split("_") if word not in ("far2", "sc", "inner", "cornerout", "ext", "rand")
    ]
    kind = words[0].rstrip("0123456789")
    return "collectives" if kind in ("bcast", "allreduce") else kind


def options_for(name: str, modeler: str | None) -> dict[str, str]:
    """Return options with which a modeler has learned nothing from the family of a set."""
    knows = modeler in (None, "auto", "curves") and family(name) in WITHOUT
    return {"sizes": f"without {family(name)}"} if knows else {}


def answers(
    group: Sequence[Case], modeler: str | None, options: Mapping[str, Any]
) -> list[list[Answer | None]]:
    """Fit the cases of a group together; return what the models say per case and test point.

    Parameters
    ----------
    group
        Cases with the same parameters.
    modeler
        Name of the kind of model; None for the default of the product.
    options
        Of the modeler.
    """
    items = tuple(Measurement(str(k), "time", dict(case.train)) for k, case in enumerate(group))
    known = Measurements(group[0].parameters, items)
    try:
        models = fit_measurements(known, chosen_modeler(modeler or "auto", options))
    except ModelError:
        models = ()
    found = {model.callpath: model for model in models}
    return [list(_answers(found.get(str(k)), case)) for k, case in enumerate(group)]


def _answers(model: Model | None, case: Case) -> Iterator[Answer | None]:
    if model is None:
        yield from [None] * len(case.test)
        return
    known, form = predictive(model, list(case.test)), shown(model.document())
    for k, values in enumerate(case.test.values()):
        yield Answer(
            value=float(known.value[k]),
            mean={level: _ends(known.of_mean(level), k) for level in LEVELS},
            measured={level: _ends(known.of_measured(level, len(values)), k) for level in LEVELS},
            model=form,
        )


def _ends(interval: tuple[Floats, Floats], k: int) -> tuple[float, float]:
    return float(interval[0][k]), float(interval[1][k])
