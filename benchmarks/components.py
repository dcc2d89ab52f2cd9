"""Components of workflows, and a multigrid solver: measured programs that no choice was made with.

    python benchmarks/components.py SOURCE FOLDER
    python benchmarks/far_corner.py --cases FOLDER

SOURCE has `data/` of the repository ArtifactDescription/HPC_Autotuner (execution times of components of
in-situ workflows) and `Data/Dune_AllNumeric.csv` of DeepPerf/DeepPerf. None of it is part of this project.

Sets in FOLDER, beside a power law, a ridge regression of degree 2 in the logarithms, a Gaussian process with
a linear mean, and a random forest: of components 100 points are fitted, five draws each. They are any points
(`*_rand`), or those with up to a quarter of the largest number of processes, and predicted are 60 others, or
60 with more than half of it (`*_ext`). Of the solver's variants the far corner is predicted from all other
points (`dune_cornerout`), or from those below the largest value of every parameter (`dune_inner`).
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from command import options
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from orchestrator.models.base import Floats

Runs = tuple[list[float], list[float]]  # a point, and its times

_DRAWS, _FITTED, _PREDICTED = 5, 100, 60
_STEPS = ("x", "y", "iterations")
_HEAT = ("px", "py", "per_node", "buffer", "outputs", *_STEPS)
_WRITER = ("processes", "per_node", "outputs", *_STEPS)
_THREADED = ("processes", "per_node", "threads", "outputs", "melting", "solid")
# File, names of its first columns, the time last, and what counts processes.
_COMPONENTS: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "ht": ("hs/ht", _HEAT, "px * py"),
    "ht2": ("hs/ht2", _HEAT, "py"),
    "sw2": ("hs/sw2", _WRITER, "processes"),
    "vr": ("lv/vr", _THREADED, "processes"),
    "vr2": ("lv/vr2", _THREADED, "processes"),
    "lmp2": ("lv/lmp2", _THREADED, "processes"),
    "gv": ("gp/gv", ("processes", "per_node", "edge", "steps"), "processes"),
}
_TIME = "time"


def component(source: Path, name: str) -> tuple[tuple[str, ...], list[Runs], str]:
    """Return the parameters that vary, the points with their times, and which of them counts processes."""
    file, names, counts = _COMPONENTS[name]
    table = pd.read_csv(source / "data" / f"{file}.csv", sep="\t", header=None).iloc[:, : len(names) + 1]
    table.columns = pd.Index([*names, _TIME])
    table = table[np.isfinite(table[_TIME])]
    if counts == "px * py":
        table.insert(0, "processes", table["px"] * table["py"])
        table, counts = table.drop(columns=["px", "py"]), "processes"
    varied = tuple(column for column in table if column != _TIME and table[column].nunique() > 1)
    return varied, _runs(table, varied), counts


def _runs(table: pd.DataFrame, parameters: Sequence[str]) -> list[Runs]:
    times: dict[tuple[float, ...], list[float]] = {}
    for *point, time in table[[*parameters, _TIME]].to_numpy(float).tolist():
        times.setdefault(tuple(point), []).append(time)
    return [(list(point), found) for point, found in sorted(times.items())]


def component_sets(source: Path, name: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the cases of both sets of a component."""
    parameters, runs, counts = component(source, name)
    processes = np.array([point[parameters.index(counts)] for point, _ in runs])
    few, many = processes <= processes.max() / 4, processes > processes.max() / 2
    for kind in ("rand", "ext"):
        cases = []
        for seed in range(_DRAWS):
            order = np.random.default_rng(seed).permutation(len(runs))
            inner, outer = (order[some[order]] for some in (few, many))
            fitted = order[:_FITTED] if kind == "rand" else inner[:_FITTED]
            held = order[_FITTED:][:_PREDICTED] if kind == "rand" else outer[:_PREDICTED]
            train, test = ([runs[k] for k in some] for some in (fitted, held))
            cases.append(case(f"sc_{name}_{kind}|seed{seed}", str(seed), parameters, train, test))
        yield f"sc_{name}_{kind}", cases


def solver_sets(source: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the cases of both sets of the solver: one case per variant."""
    table = pd.read_csv(source / "Data" / "Dune_AllNumeric.csv").rename(columns={"performance": _TIME})
    table = table[(table["pre"] > 0) & (table["post"] > 0)]
    parameters = ("cells", "pre", "post")
    variants = [str(column) for column in table if column not in (*parameters, _TIME)]
    for kind in ("inner", "cornerout"):
        cases = []
        for key, some in table.groupby(variants):
            runs = _runs(some, parameters)
            corner = [max(point[k] for point, _ in runs) for k in range(len(parameters))]
            below = all if kind == "inner" else any
            train = [(p, t) for p, t in runs if below(x < top for x, top in zip(p, corner, strict=True))]
            test = [(p, t) for p, t in runs if p == corner]
            name = "+".join(text for text, used in zip(variants, key, strict=True) if used)
            cases.append(case(name, "0", parameters, train, test))
        yield f"dune_{kind}", cases


def case(
    name: str, group: str, parameters: Sequence[str], train: Sequence[Runs], test: Sequence[Runs]
) -> dict[str, Any]:
    """Return a case as `far_corner.py` reads it, with what the other methods predict."""
    x, held = (np.log(np.array([point for point, _ in part])) for part in (train, test))
    y = np.log([float(np.mean(times)) for _, times in train])
    predicted = {method: np.exp(values).tolist() for method, values in _others(x, y, held).items()}
    return {
        "id": name,
        "group": group,
        "parameters": list(parameters),
        "train": train,
        "test": test,
        "baselines": predicted,
    }


def _others(x: Floats, y: Floats, held: Floats) -> dict[str, Floats]:
    """Return logarithms that other methods predict, from logarithms."""
    square = make_pipeline(
        StandardScaler(), PolynomialFeatures(2), StandardScaler(), RidgeCV(np.logspace(-4, 2, 13))
    )
    kernel = 1.0 * DotProduct(1.0) + 1.0 * RBF(np.ones(x.shape[1])) + WhiteKernel(0.01)
    process = GaussianProcessRegressor(kernel, n_restarts_optimizer=1, random_state=0)
    scaled, mean = StandardScaler().fit(x), y.mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a length scale at its bound is an answer
        process.fit(scaled.transform(x), y - mean)
    return {
        "power": LinearRegression().fit(x, y).predict(held),
        "ridge2": square.fit(x, y).predict(held),
        "gplin": process.predict(scaled.transform(held)) + mean,
        "rf": RandomForestRegressor(200, random_state=0).fit(x, y).predict(held),
    }


def main() -> None:
    """Write the sets."""
    parser = options(__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    sets = [*solver_sets(arguments.source)]
    for name in _COMPONENTS:
        sets += component_sets(arguments.source, name)
    for name, cases in sets:
        (arguments.folder / f"{name}.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    main()
