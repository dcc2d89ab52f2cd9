"""Time and accuracy of a modeler beside Extra-P, in one run on one machine.

    python benchmarks/modeler_speed.py /path/to/venv-with-extrap/bin/python [--seed 0] [--repeats 5]

Functions are drawn here: products and sums of blocks with balanced shares, constants, absent parameters;
the noise is ±5 % uniform, five repetitions, one thread. Extra-P runs in its own interpreter with the same
numbers. CPU seconds are compared, which other users of the machine disturb least; both take turns, and
medians over the repeats are printed, ratios with their range.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from command import options

from orchestrator import registry
from orchestrator.models.pmnf.hypotheses import PAPER, partitions
from orchestrator.types import Measurement, Measurements, Point

GRIDS = ((32, 64, 128, 256, 512), (2, 4, 6, 8, 10), (1000, 2000, 3000, 4000, 5000), (10, 20, 30, 40, 50))
BEYOND = (1024, 12, 6000, 60)
# Parameters -> call paths for us and for Extra-P (which takes proportionally longer).
CASES = {1: (1000, 100), 2: (1000, 100), 3: (1000, 40), 4: (200, 10)}
NOISE = 0.05
REPETITIONS = 5

EXTRAP = """
import json, logging, sys, time, warnings
warnings.simplefilter("ignore"); logging.disable(logging.CRITICAL)
from extrap.entities.callpath import Callpath
from extrap.entities.coordinate import Coordinate
from extrap.entities.experiment import Experiment
from extrap.entities.measurement import Measure, Measurement
from extrap.entities.metric import Metric
from extrap.entities.parameter import Parameter
from extrap.modelers.model_generator import ModelGenerator
case = json.load(open(sys.argv[1]))
experiment, metric = Experiment(), Metric("time")
for name in case["parameters"]:
    experiment.add_parameter(Parameter(name))
experiment.add_metric(metric)
points = [Coordinate(*p) for p in case["points"]]
for point in points:
    experiment.add_coordinate(point)
callpaths = [Callpath(f"f{k}") for k in range(len(case["values"]))]
for callpath, rows in zip(callpaths, case["values"]):
    experiment.add_callpath(callpath)
    for point, values in zip(points, rows):
        experiment.add_measurement(Measurement(point, callpath, metric, values))
generator = ModelGenerator(experiment, use_measure=Measure.MEDIAN)
begin = time.process_time()
generator.model_all()
seconds = time.process_time() - begin
beyond = case["beyond"] if len(case["beyond"]) > 1 else case["beyond"][0]
found = [generator.models[c, metric].hypothesis.function.evaluate(beyond) for c in callpaths]
json.dump({"seconds": seconds, "values": [float(v) for v in found]}, sys.stdout)
"""


def draw(parameters: int, rng: np.random.Generator) -> Any:
    """Draw a function: a random partition into terms, random blocks, random shares at the centre."""
    every = list(partitions(tuple(range(parameters))))
    centre = [float(np.exp(np.mean(np.log(g)))) for g in GRIDS[:parameters]]
    terms = []
    for group in every[rng.integers(len(every))]:
        factors = [(k, *PAPER[rng.integers(len(PAPER))]) for k in group if rng.random() > 0.12]
        if factors:
            terms.append(factors)
    shares = rng.dirichlet(np.ones(len(terms) + 1)) * 10 ** rng.uniform(-3, 3)

    def term(factors: list[tuple[int, float, float]], x: tuple[float, ...]) -> float:
        return float(np.prod([x[k] ** i * np.log2(x[k]) ** j for k, i, j in factors]))

    def function(x: tuple[float, ...]) -> float:
        return float(shares[0]) + sum(
            float(s) * term(t, x) / term(t, tuple(centre)) for s, t in zip(shares[1:], terms, strict=True)
        )

    return function


def extrap(python: Path, parameters: int, values: list[Any]) -> tuple[float, list[float]]:
    case = {
        "parameters": list("abcd"[:parameters]),
        "points": list(product(*GRIDS[:parameters])),
        "values": values,
        "beyond": list(BEYOND[:parameters]),
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "case.json"
        file.write_text(json.dumps(case))
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        run = subprocess.run(
            [python, "-c", EXTRAP, file],
            check=True,
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment,
        )
    result = json.loads(run.stdout[run.stdout.index("{") :])
    return result["seconds"] / len(values), result["values"]


def ours(modeler: str, parameters: int, values: list[Any]) -> tuple[float, float, list[float]]:
    """Return seconds per model, seconds of one model alone, and predictions."""
    points = [Point.of(dict(zip("abcd", x, strict=False))) for x in product(*GRIDS[:parameters])]
    items = tuple(
        Measurement(f"f{k}", "time", {p: tuple(v) for p, v in zip(points, rows, strict=True)})
        for k, rows in enumerate(values)
    )
    known = Measurements(tuple("abcd"[:parameters]), items)
    fit = registry.load("model", modeler)()
    fit(Measurements(known.parameters, items[:2]))
    begin = time.process_time()
    models = fit(known)
    seconds = time.process_time() - begin
    alone = []
    for item in items[:10]:
        begin = time.process_time()
        fit(Measurements(known.parameters, (item,)))
        alone.append(time.process_time() - begin)
    target = [Point.of(dict(zip("abcd", BEYOND[:parameters], strict=False)))]
    found = [float(m.predict(target).value[0]) for m in models]
    return seconds / len(values), float(np.median(alone)), found


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("python", type=Path, help="a Python interpreter that can import extrap")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--modeler", default="auto", choices=registry.names("model"))
    arguments = parser.parse_args()
    print("parameters | Extra-P ms | ours ms (many) | ratio | ours ms (one) | ratio | within 5 %: both")
    for parameters, (many, few) in CASES.items():
        rng = np.random.default_rng([arguments.seed, parameters])
        functions = [draw(parameters, rng) for _ in range(many)]
        values = [
            [
                [f(x) * (1 + NOISE * u) for u in rng.uniform(-1, 1, REPETITIONS)]
                for x in product(*GRIDS[:parameters])
            ]
            for f in functions
        ]
        truth = np.array([f(BEYOND[:parameters]) for f in functions])
        times = []
        for _ in range(arguments.repeats):
            their_seconds, theirs = extrap(arguments.python, parameters, values[:few])
            seconds, alone, found = ours(arguments.modeler, parameters, values)
            times.append((their_seconds, seconds, alone))
        near = [100 * np.mean(np.abs(np.array(v) / truth[: len(v)] - 1) < 0.05) for v in (theirs, found)]
        extrap_ms, many_ms, one_ms = 1e3 * np.median(times, axis=0)
        many_ratio, one_ratio = (ratios(times, k) for k in (1, 2))
        print(
            f"{parameters} | {extrap_ms:.1f} | {many_ms:.2f} | {many_ratio} | {one_ms:.1f} | {one_ratio} | "
            f"{near[0]:.0f}, {near[1]:.0f}",
            flush=True,
        )


def ratios(times: Sequence[tuple[float, ...]], column: int) -> str:
    """Return the median of the ratios of the first to another column, and their range, as text."""
    found = [item[0] / item[column] for item in times]
    return f"{np.median(found):.3g} ({min(found):.3g}..{max(found):.3g})"


if __name__ == "__main__":
    main()
