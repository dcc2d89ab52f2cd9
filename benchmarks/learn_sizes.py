"""Learn how much curves of real programs vary: the sizes that predict held-out far corners best.

    python benchmarks/learn_sizes.py [--cases FOLDER] [--workers N] [--write]

Every combination of a coarse grid of sizes is tried (`GRID`): the continuous ranked probability score of the
logarithm that curves alone predict at the test points, as a mean over the sets of a family of data sets
(families are programs, or kinds of them). It is the mean absolute error where a prediction is certain, and
rewards intervals that are as wide as they have to be (Gneiting and Raftery, Strictly proper scoring rules,
prediction, and estimation, 2007, section 4.2). The combination with the least mean over families is ``all``;
for every family, the one with the least mean over the others is ``without F``, which `far_corner.py` uses to
score that family. The table is printed; ``--write`` puts it into the package. Format it afterwards.
FOLDER is as for `far_corner.py`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
from command import options
from far_corner_cases import Case, family, groups, stored
from rich.progress import track

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats
from orchestrator.models.belief import mixture_quantile
from orchestrator.models.curves import sizes as table_of_package
from orchestrator.models.curves.modeler import modeler
from orchestrator.models.curves.prior import Sizes
from orchestrator.models.intervals import Predictive, predictive
from orchestrator.types import Measurement, Measurements

GRID = {
    "slope": (-0.6, -0.4),
    "bend": (-2.0,),
    "smooth_walk": (-2.0, -1.5),
    "walk": (-1.0, -0.7),
    "start": (-1.0, -0.7),
    "product": (-2.5, -2.0),
    "noise": (-1.5, -1.2),
}
MOST = 10  # test points of a case, at most
FAILED = 5.0  # log error where there is no prediction
QUANTILES = np.arange(1, 40) / 40


def errors(sizes: Sizes, sets: Mapping[str, Sequence[Case]]) -> dict[str, float]:
    """Return the mean score of the logarithm that curves with some sizes predict, per set."""
    fit = modeler(sizes=sizes)
    result = {}
    for name, cases in sets.items():
        found: list[float] = []
        for group in groups(cases):
            items = tuple(Measurement(str(k), "time", dict(cases[k].train)) for k in group)
            try:
                models = {m.callpath: m for m in fit(Measurements(cases[group[0]].parameters, items))}
            except ModelError:
                models = {}
            for k in group:
                truth = np.array([np.mean(values) for values in cases[k].test.values()])
                model = models.get(str(k))
                if model is None:
                    found += [FAILED] * len(truth)
                else:
                    found += list(score(predictive(model, list(cases[k].test)), np.log(truth)))
        result[name] = float(np.mean(found))
    return result


def score(said: Predictive, log_truth: Floats) -> Floats:
    """Return the continuous ranked probability score of every point: twice the mean loss of all quantiles."""
    found = np.array([mixture_quantile(said.weights, said.mean, said.spread, q) for q in QUANTILES])
    beyond = log_truth - found
    loss = np.maximum(QUANTILES[:, None] * beyond, (QUANTILES[:, None] - 1) * beyond)
    return np.asarray(2 * loss.mean(axis=0), np.float64)


def by_family(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the mean over the sets of every family."""
    names = sorted({family(name) for name in scores})
    return {
        kind: float(np.mean([score for name, score in scores.items() if family(name) == kind]))
        for kind in names
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    folder = os.environ.get("MEASUREMENT_DATA", "")
    parser.add_argument("--cases", type=Path, default=Path(folder, "far-corner"))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--write", action="store_true", help="write the table into the package")
    chosen = parser.parse_args(arguments)
    sets = stored(chosen.cases, (), MOST)
    candidates = [Sizes(*values) for values in product(*GRID.values())]
    with ProcessPoolExecutor(chosen.workers) as pool:
        pending = pool.map(errors, candidates, [sets] * len(candidates))
        found = [by_family(scores) for scores in track(pending, "sizes", total=len(candidates))]
    kinds = list(found[0])
    table = np.array([[scores[kind] for kind in kinds] for scores in found])
    best = int(table.mean(axis=1).argmin())
    without = [int(np.delete(table, k, axis=1).mean(axis=1).argmin()) for k in range(len(kinds))]
    print("| family | all | without it | best of all for it | median of all |\n|---|---|---|---|---|")
    for k, kind in enumerate(kinds):
        own = table[best, k], table[without[k], k], table[:, k].min()
        print(f"| {kind} | " + " | ".join(f"{x:.3f}" for x in (*own, np.median(table[:, k]))) + " |")
    blind = np.mean([table[place, k] for k, place in enumerate(without)])
    print(f"mean: {table[best].mean():.3f}, each without its own family {blind:.3f}")
    learned = source(candidates[best], {k: candidates[p] for k, p in zip(kinds, without, strict=True)})
    print(learned)
    if chosen.write:
        path = Path(table_of_package.__file__)
        head = path.read_text(encoding="utf-8").split("ALL =", maxsplit=1)[0]
        path.write_text(head + learned, encoding="utf-8")


def source(best: Sizes, without: Mapping[str, Sizes]) -> str:
    """Return the table as Python: the best sizes, and where they are others without a family."""
    every = best._asdict()
    different = {
        kind: {name: size for name, size in sizes._asdict().items() if size != every[name]}
        for kind, sizes in without.items()
    }
    rows = [f"    {kind!r}: {sizes!r}," for kind, sizes in different.items()]
    lines = [f"ALL = {every!r}", "", "WITHOUT: dict[str, dict[str, float]] = {", *rows, "}", ""]
    return "\n".join(lines).replace("'", '"')


if __name__ == "__main__":
    main()
