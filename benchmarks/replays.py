"""Strategies on measured grids, at several shares of what all measured runs cost.

    python benchmarks/replays.py relearn_max_s_cornerout.json --cores p --modeler auto

A file is a JSON list of cases with ``id``, ``group``, ``parameters``, ``train`` and ``test``, as ``[[point,
[repetitions]], ...]``. Each group is measured together. P₊ is the far corner, and with ``--steps`` corners
nearer to the origin; only points below P₊ in every parameter are offered. Every order of the repetitions
is drawn from a seed.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from command import options
from numpy.typing import ArrayLike

from orchestrator import registry
from orchestrator.evaluation.strategies.bench import Bench
from orchestrator.evaluation.strategies.contenders import contenders
from orchestrator.evaluation.strategies.replay import replay_bench
from orchestrator.evaluation.strategies.trial import Conditions, Outcome, run_trial
from orchestrator.models.base import Model
from orchestrator.models.sums import with_sums
from orchestrator.types import Measurement, Measurements, Point


def groups(path: Path, most: int) -> list[list[Measurement]]:
    """Return the call paths of every group; a point with fewer than ``most`` runs has copies of them."""
    found: dict[str, list[Measurement]] = {}
    for case in json.loads(path.read_text()):
        values = {
            Point.of(dict(zip(case["parameters"], point, strict=True))): tuple((runs * most)[:most])
            for point, runs in (*case["train"], *case["test"])
        }
        found.setdefault(case["group"], []).append(Measurement(case["id"].split("|")[0], "time", values))
    return list(found.values())


def reordered(items: Sequence[Measurement], seed: int) -> Measurements:
    """Return the same runs with the repetitions of every point in another order."""
    rng = np.random.default_rng(seed)
    points = items[0].values
    order = {point: rng.permutation(len(runs)) for point, runs in points.items()}
    names = tuple(name for name, _ in next(iter(points)).items)
    return Measurements(
        names,
        tuple(
            Measurement(
                item.callpath, "time", {p: tuple(v[k] for k in order[p]) for p, v in item.values.items()}
            )
            for item in items
        ),
    )


def corners(items: Sequence[Measurement], steps: int) -> Iterator[Mapping[str, float]]:
    """Yield the far corner, and those up to ``steps`` values below it in any parameter."""
    points = list(items[0].values)
    names = [name for name, _ in points[0].items]
    values = [sorted({point.number(name) for point in points})[-steps - 1 :] for name in names]
    for corner in product(*values):
        yield dict(zip(names, corner, strict=True))


class Remembered:
    """A modeler that fits the same measurements once, whichever strategy made them."""

    def __init__(self, name: str):
        self._modeler = with_sums(registry.load("model", name)())
        self._known: dict[str, tuple[Model, ...]] = {}

    def __call__(self, measurements: Measurements) -> tuple[Model, ...]:
        key = repr(
            [(i.callpath, sorted((str(p), v) for p, v in i.values.items())) for i in measurements.items]
        )
        if key not in self._known:
            self._known[key] = self._modeler(measurements)
        return self._known[key]


def benches(chosen: argparse.Namespace) -> Iterator[Bench]:
    for path in chosen.files:
        for items in groups(path, chosen.repetitions):
            for corner, seed in product(corners(items, chosen.steps), range(chosen.seeds)):
                yield replay_bench(reordered(items, seed), chosen.cores, corner, inside=True)


def line(strategy: str, share: float, outcomes: Sequence[Outcome]) -> str:
    def percent(flags: ArrayLike) -> str:
        return f"{100 * float(np.mean(np.asarray(flags, float))):.0f}"

    errors = np.array([abs(o.error_percent) if o.feasible else math.inf for o in outcomes])
    modelled = np.array([math.log1p(o.error_percent / 100) for o in outcomes if o.feasible])
    mean = f"{100 * np.minimum(np.abs(modelled), 1).mean():.1f}" if len(modelled) else "-"
    used = np.mean([o.cost_percent for o in outcomes if o.feasible]) if len(modelled) else math.nan
    cells = (
        f"`{strategy}`",
        f"{share:g} %",
        percent([o.feasible for o in outcomes]),
        percent(errors <= 10),
        percent(errors <= 20),
        mean,
        percent([o.covered for o in outcomes if o.feasible] or [0]),
        f"{used:.0f}",
    )
    return "| " + " | ".join(cells) + " |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--cores", default="1", help="expression in the parameters")
    parser.add_argument("--strategy", action="append", help="repeatable")
    parser.add_argument("--share", action="append", type=float, help="percent of the full cost, repeatable")
    parser.add_argument("--modeler", default="auto")
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=2, help="orders of the repetitions")
    chosen = parser.parse_args(arguments)
    strategies = contenders(chosen.strategy or ["information", "random", "grid", "cpf-2", "gpr", "full"])
    found: dict[tuple[str, float], list[Outcome]] = {}
    for number, bench in enumerate(benches(chosen)):
        modeler, full = Remembered(chosen.modeler), bench.full_cost(chosen.repetitions)
        for contender in strategies:
            for share in (100.0,) if contender.whole else chosen.share or (25.0, 35.0, 50.0):
                found.setdefault((contender.label, share), []).extend(
                    run_trial(
                        bench,
                        contender,
                        modeler,
                        Conditions(
                            budget_percent=share,
                            full_cost=full,
                            maximum_repetitions=chosen.repetitions,
                            seed=(number,),
                        ),
                    )
                )
    print("| strategy | share | has models % | within 10 % | within 20 % | error % | covered % | used % |")
    print("|---|---|---|---|---|---|---|---|")
    for (label, share), outcomes in found.items():
        print(line(label, share, outcomes))


if __name__ == "__main__":
    main()
