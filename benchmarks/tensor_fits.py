"""Time, error and size of the fits of tensors to many samples of many parameters.

    OPENBLAS_NUM_THREADS=1 python benchmarks/tensor_fits.py [--samples 65536] [--parameters 9] [--rank 16]

The function is drawn here: power laws, steps along single parameters and along one product, and 3 % noise. A
first fit to few samples compiles the loops and is not counted. Errors are mean absolute errors of logarithms
on 2000 further points without noise. One process; give numpy one thread for comparable times.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable

import numpy as np
from command import options

from orchestrator.models.base import Floats
from orchestrator.models.cpr.als import alternating, completed, row_begins
from orchestrator.models.cpr.completion import Recipe, complete, modes_of, standardised
from orchestrator.models.cpr.coordinates import by_columns
from orchestrator.models.cpr.fitting import beginning, cell_means
from orchestrator.models.cpr.gradient import stochastic
from orchestrator.models.cpr.penalty import Smoothness, diagonals
from orchestrator.models.regression.samples import Axis, Samples
from orchestrator.models.regression.trend import fit_trend

NOISE = 0.03
FEW = 512


def truth(x: Floats) -> Floats:
    """Return logarithms of times at logarithms of sizes (n, parameters)."""
    power = x @ np.linspace(0.2, 1.0, x.shape[1])
    steps = 0.3 * np.sin(x).sum(axis=1) + 0.5 * (x[:, 0] > 2) * np.cos(x[:, 1])
    return np.asarray(power + steps + 0.4 * (x[:, 0] + x[:, -1] > 4), np.float64)


def drawn(number: int, parameters: int, seed: int, noise: float) -> Samples:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 4, (number, parameters))
    axes = tuple(Axis(name=f"p{k}", logarithmic=True, low=0.0, high=4.0) for k in range(parameters))
    y = truth(x) + noise * rng.standard_normal(number)
    return Samples(axes=axes, x=x, y=y, runs=np.ones(number))


def tensors(samples: Samples, recipe: Recipe) -> Callable[[Floats], Floats]:
    trend = fit_trend(samples)
    rest = complete(samples.with_y(samples.y - trend.at(samples.x)), recipe, np.random.default_rng(0))
    print(f"{len(pickle.dumps(rest)):>8} bytes", end=" ")
    return lambda x: np.asarray(trend.at(x) + rest.at(x), np.float64)


def solvers(samples: Samples, recipe: Recipe) -> None:
    """Compare what solves for factors on the same cells: seconds, and the loss that remains."""
    normal, _, _ = standardised(samples)
    modes = modes_of(normal, recipe)
    entries = cell_means(modes, normal.x, normal.y)
    penalties = [diagonals(mode, recipe.smoothness, len(samples)) for mode in modes]
    table = beginning(modes, recipe.rank, np.random.default_rng(0))
    ways: dict[str, Callable[[], Floats]] = {
        "alternating least squares": lambda: alternating(entries, penalties, table, sweeps=20),
        "cyclic coordinate descent": lambda: by_columns(entries, penalties, table, sweeps=20),
        "stochastic gradients": lambda: stochastic(
            entries, penalties, table, np.random.default_rng(0), epochs=40
        ),
    }
    first = row_begins([len(mode) for mode in modes])
    for name, solve in ways.items():
        begun = time.perf_counter()
        found = solve()
        rest = entries.y - completed(entries.node, entries.weight, first, found)
        loss = float(np.average(rest**2, weights=entries.share))
        print(f"{name:<30} {time.perf_counter() - begun:6.1f} s, {loss:.4f} of the variance left")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--samples", type=int, default=65536)
    parser.add_argument("--parameters", type=int, default=9)
    parser.add_argument("--rank", type=int, default=16)
    chosen = parser.parse_args()
    unseen = drawn(2000, chosen.parameters, 1, 0.0)
    kinds = {
        "nodes, smooth": Recipe(rank=chosen.rank, number=32, smoothness=Smoothness(ridge=1e-3, slope=0.03)),
        "nodes, jumps": Recipe(
            rank=chosen.rank, number=32, smoothness=Smoothness(ridge=1e-3, slope=0.03, jump=0.4)
        ),
        "cells": Recipe(rank=chosen.rank, number=32, cells=True),
    }
    for number in (FEW, chosen.samples):
        samples = drawn(number, chosen.parameters, 0, NOISE)
        print(f"{number} samples, {chosen.parameters} parameters, rank {chosen.rank}")
        for name, recipe in kinds.items():
            begun = time.perf_counter()
            at = tensors(samples, recipe)
            spent = time.perf_counter() - begun
            begun = time.perf_counter()
            error = np.mean(np.abs(at(unseen.x) - unseen.y))
            asked = (time.perf_counter() - begun) / len(unseen) * 1e6
            print(f"{name:<14} {spent:6.1f} s, error {error:.4f}, {asked:.1f} µs per prediction")
        solvers(samples, kinds["cells"])


if __name__ == "__main__":
    main()
