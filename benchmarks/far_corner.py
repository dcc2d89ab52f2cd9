"""Extrapolation on measured data: leave out the largest values, fit on the rest, predict the far corner.

    python benchmarks/far_corner.py FILE [--tolerance 10 --tolerance 20]

FILE is any measured data that ``orchestrator model`` reads. All points with the largest value of any
parameter are left out; the corner is the point with the largest values of all. Errors are against the mean
measured there.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from orchestrator import registry
from orchestrator.readers.load import load
from orchestrator.types import Measurement, Measurements, Point

RELEVANT = 1.0  # percent of the time at the corner


@dataclass(frozen=True)
class Line:
    callpath: str
    share: float
    error: float
    low: float
    high: float
    expression: str


def corner_and_rest(known: Measurements) -> tuple[Point, Measurements]:
    largest = {name: max(p.number(name) for p in known.points) for name in known.parameters}
    corner = next(p for p in known.points if all(p.number(n) == v for n, v in largest.items()))

    def inside(point: Point) -> bool:
        return all(point.number(name) < value for name, value in largest.items())

    def kept(item: Measurement) -> Measurement:
        return replace(item, values={p: v for p, v in item.values.items() if inside(p)})

    return corner, replace(known, items=tuple(kept(item) for item in known.items if corner in item.values))


def lines(known: Measurements) -> list[Line]:
    corner, rest = corner_and_rest(known)
    there = [item for item in known.items if corner in item.values]
    truth = {item.callpath: float(np.mean(item.values[corner])) for item in there}
    total = sum(truth.values())
    result = []
    for model in registry.load("model", "pmnf")()(rest):
        said, true = model.predict([corner]), truth[model.callpath]
        error, low, high = (100 * (float(v[0]) / true - 1) for v in (said.value, said.low, said.high))
        result.append(
            Line(model.callpath, 100 * true / total, error, low, high, str(model.document()["normal_form"]))
        )
    return sorted(result, key=lambda line: -line.share)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--metric", default="time")
    parser.add_argument("--tolerance", type=float, action="append")
    chosen = parser.parse_args(arguments)
    known = load([chosen.file])
    items = tuple(
        item for item in known.items if item.metric == chosen.metric and any(map(any, item.values.values()))
    )
    found = lines(replace(known, items=items))
    print("| call path | share at the corner % | error % | interval % | model |\n|---|---|---|---|---|")
    for line in found:
        interval = f"{line.low:+.0f} .. {line.high:+.0f}"
        cells = (line.callpath, f"{line.share:.2f}", f"{line.error:+.1f}", interval, f"`{line.expression}`")
        print(f"| {' | '.join(cells)} |")
    for tolerance in chosen.tolerance or (10.0, 20.0):
        print(
            f"\nwithin {tolerance:g} %: {sum(abs(line.error) <= tolerance for line in found)} of {len(found)}"
        )
    relevant = [abs(line.error) for line in found if line.share > RELEVANT]
    print(f"\nmore than {RELEVANT:g} % of the time: {len(relevant)}, off by at most {max(relevant):.1f} %")
    print(f"\nin the 90 % interval: {sum(line.low <= 0 <= line.high for line in found)} of {len(found)}")


if __name__ == "__main__":
    main()
