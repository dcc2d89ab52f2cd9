"""Kernels of NumPy, SciPy and Python, timed on this machine: far corners that no choice was made with.

    python benchmarks/kernels.py FOLDER [--passes 3] [--seed 5]
    python benchmarks/far_corner.py --cases FOLDER

Each kernel has two parameters with six values. CPU seconds of a call, at least 20 ms of calls per run; every
pass goes through all points of all kernels in random order, so that repetitions are not disturbed alike.
Sets in FOLDER: five, four or three values of both are fitted, and predicted is one, two or three values
beyond (`kernels_5_1`, `kernels_4_1`, `kernels_4_2`, `kernels_3_3`), beside a power law, a ridge regression of
degree 2 in the logarithms, and the last slope continued. Three passes take some minutes.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import re
import time
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.fft
import scipy.linalg
import scipy.signal
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial
from command import options
from numpy.random import Generator
from rich.progress import track
from threadpoolctl import threadpool_limits

Call = Callable[[], object]
Prepare = Callable[[int, int, Generator], Call]
Times = dict[tuple[int, int], list[float]]

_LEAST = 0.02  # seconds of calls per run
_VALUES = 6
_SETS = ((5, 1), (4, 1), (4, 2), (3, 3))  # values fitted, and how many beyond
_RIDGE = 0.1


def _matrix(n: int, m: int, rng: Generator) -> Call:
    a, b = rng.random((n, n)), rng.random((n, m))
    return lambda: a @ b


def _transforms(n: int, m: int, rng: Generator) -> Call:
    a = rng.random((m, n))
    return lambda: scipy.fft.rfft(a, axis=1)


def _sort(n: int, m: int, rng: Generator) -> Call:
    a = rng.random((m, n))
    return lambda: np.sort(a, axis=1)


def _stencil(n: int, m: int, rng: Generator) -> Call:
    a = rng.random((n, n))

    def sweep() -> None:
        x = a.copy()
        for _ in range(m):
            x[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])

    return sweep


def _sparse_product(n: int, m: int, rng: Generator) -> Call:
    parts = rng.random(n * m), rng.integers(0, n, n * m), np.arange(0, n * m + 1, m)
    a, x = scipy.sparse.csr_matrix(parts, shape=(n, n)), rng.random(n)
    return lambda: a @ x


def _cholesky(n: int, m: int, rng: Generator) -> Call:
    a, b = rng.random((n, n)), rng.random((n, m))
    a = a @ a.T + n * np.eye(n)
    return lambda: scipy.linalg.cho_solve(scipy.linalg.cho_factor(a), b)


def _neighbours(n: int, m: int, rng: Generator) -> Call:
    points, asked = rng.random((n, 3)), rng.random((m, 3))
    return lambda: scipy.spatial.cKDTree(points).query(asked, k=4)


def _common_sequence(n: int, m: int, rng: Generator) -> Call:
    a, b = rng.integers(0, 4, n).tolist(), rng.integers(0, 4, m).tolist()

    def longest() -> int:
        before = [0] * (m + 1)
        for x in a:
            row = [0]
            for j, y in enumerate(b):
                row.append(before[j] + 1 if x == y else max(before[j + 1], row[j]))
            before = row
        return before[-1]

    return longest


def _groups(n: int, m: int, rng: Generator) -> Call:
    table = pd.DataFrame({"key": rng.integers(0, m, n), "value": rng.random(n)})
    return lambda: table.groupby("key")["value"].mean()


def _join(n: int, m: int, rng: Generator) -> Call:
    left = pd.DataFrame({"key": rng.integers(0, n, n), "x": 1.0})
    right = pd.DataFrame({"key": rng.integers(0, n, n * m // 2 + 1), "y": 1.0})
    return lambda: left.merge(right, on="key")


def _largest(n: int, m: int, rng: Generator) -> Call:
    values = rng.random(n).tolist()
    return lambda: heapq.nlargest(m, values)


def _poisson(n: int, m: int) -> Any:
    def line(size: int) -> Any:
        return scipy.sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], (size, size))

    return scipy.sparse.kron(scipy.sparse.eye(n), line(m)) + scipy.sparse.kron(line(n), scipy.sparse.eye(m))


def _conjugate_gradients(n: int, m: int, rng: Generator) -> Call:
    a, b = _poisson(n, m).tocsr(), np.ones(n * m)
    return lambda: scipy.sparse.linalg.cg(a, b, rtol=1e-8)


def _sparse_factors(n: int, m: int, rng: Generator) -> Call:
    a = _poisson(n, m).tocsc()
    return lambda: scipy.sparse.linalg.splu(a)


def _convolution(n: int, m: int, rng: Generator) -> Call:
    a, kernel = rng.random(n), rng.random(m)
    return lambda: np.convolve(a, kernel)


def _gather(n: int, m: int, rng: Generator) -> Call:
    a, index = rng.random(8 * n), rng.integers(0, 8 * n, 50 * m)
    return lambda: a[index].sum()


def _counts(n: int, m: int, rng: Generator) -> Call:
    keys = [tuple(row) for row in rng.integers(0, m, (n, 3)).tolist()]

    def count() -> object:
        found: dict[tuple[int, ...], int] = {}
        for key in keys:
            found[key] = found.get(key, 0) + 1
        return found

    return count


def _singular_values(n: int, m: int, rng: Generator) -> Call:
    a = rng.random((n, 4 * m))
    return lambda: scipy.linalg.svd(a, full_matrices=False)


def _bodies(n: int, m: int, rng: Generator) -> Call:
    start = rng.random((n, 3))

    def move() -> None:
        x = start.copy()
        for _ in range(m):
            d = x[:, None] - x
            x = x + 1e-6 * (d / ((d**2).sum(-1) + 0.1)[..., None] ** 1.5).sum(1)

    return move


def _medians(n: int, m: int, rng: Generator) -> Call:
    a = rng.random(n)
    return lambda: scipy.signal.medfilt(a, 2 * m + 1)


def _search(n: int, m: int, rng: Generator) -> Call:
    text = " ".join("".join(row) for row in rng.choice(list("abc"), (n, m)).tolist())
    pattern = re.compile("a+b.?c")
    return lambda: pattern.findall(text)


def _distances(n: int, m: int, rng: Generator) -> Call:
    a, b = rng.random((n, 10)), rng.random((m, 10))
    return lambda: scipy.spatial.distance.cdist(a, b)


def _exponential(n: int, m: int, rng: Generator) -> Call:
    a = rng.random((n, n)) * m / n
    return lambda: scipy.linalg.expm(a)


def _histogram(n: int, m: int, rng: Generator) -> Call:
    points = rng.random((n, 3))
    return lambda: np.histogramdd(points, bins=m)


def _outer(n: int, m: int, rng: Generator) -> Call:
    a, b = rng.random(n), rng.random(m)
    return lambda: np.exp(np.outer(a, b)).sum()


def _least_squares(n: int, m: int, rng: Generator) -> Call:
    a, b = rng.random((4 * n, m)), rng.random(4 * n)
    return lambda: np.linalg.lstsq(a, b, rcond=None)


def _eigenvectors(n: int, m: int, rng: Generator) -> Call:
    a = rng.random((n, n))
    a = a + a.T

    def some() -> object:
        values, vectors = scipy.linalg.eigh(a)
        return vectors[:, :m] * values[:m] @ vectors[:, :m].T

    return some


def _convolution_2d(n: int, m: int, rng: Generator) -> Call:
    a, kernel = rng.random((4 * n, 4 * n)), rng.random((m, m))
    return lambda: scipy.signal.convolve2d(a, kernel)


def _reaction(n: int, m: int, rng: Generator) -> Call:
    start = rng.random(n)

    def steps() -> None:
        y = start.copy()
        for _ in range(10 * m):
            y = y + 0.01 * (np.roll(y, 1) - 2 * y + np.roll(y, -1)) + 0.001 * y * (1 - y)

    return steps


def _breadth_first(n: int, m: int, rng: Generator) -> Call:
    neighbours = rng.integers(0, n, (n, m)).tolist()

    def reach() -> int:
        seen, queue = {0}, [0]
        for node in queue:
            for other in neighbours[node]:
                if other not in seen:
                    seen.add(other)
                    queue.append(other)
        return len(seen)

    return reach


def _text(n: int, m: int, rng: Generator) -> Call:
    rows = [{str(j): value for j, value in enumerate(row)} for row in rng.random((n, m)).tolist()]
    return lambda: json.loads(json.dumps(rows))


def _digests(n: int, m: int, rng: Generator) -> Call:
    content = bytes(10 * n)
    return lambda: [hashlib.sha256(content).hexdigest() for _ in range(m)]


def _compression(n: int, m: int, rng: Generator) -> Call:
    content = rng.integers(97, 105, n).astype(np.uint8).tobytes()
    return lambda: zlib.compress(content, min(m, 9))


def _shortest_paths(n: int, m: int, rng: Generator) -> Call:
    a = rng.random((n, n))

    def relax() -> object:
        d = a.copy()
        for k in range(min(m, n)):
            d = np.minimum(d, d[:, k : k + 1] + d[k : k + 1])
        return d

    return relax


def _correlations(n: int, m: int, rng: Generator) -> Call:
    a = rng.random((n, m))
    return lambda: np.corrcoef(a.T)


def _loops(n: int, m: int, rng: Generator) -> Call:
    def add() -> int:
        total = 0
        for i in range(n):
            for j in range(m):
                for k in range(j):
                    total += i * k
        return total

    return add


# The smallest values of both parameters, and the factors between values.
KERNELS: dict[Prepare, tuple[int, float, int, float]] = {
    _matrix: (48, 1.6, 16, 1.8),
    _transforms: (256, 2, 4, 2),
    _sort: (1000, 2.5, 2, 2),
    _stencil: (32, 1.8, 2, 2),
    _sparse_product: (1000, 2.2, 2, 2),
    _cholesky: (30, 1.6, 2, 2),
    _neighbours: (500, 2, 50, 2),
    _common_sequence: (20, 1.6, 20, 1.6),
    _groups: (1000, 2.5, 5, 2.5),
    _join: (200, 2, 3, 1.8),
    _largest: (300, 2, 10, 2.2),
    _conjugate_gradients: (10, 1.5, 4, 1.7),
    _sparse_factors: (8, 1.5, 8, 1.5),
    _convolution: (256, 2, 5, 2),
    _gather: (1000, 3, 10, 3),
    _counts: (200, 2, 5, 1.8),
    _singular_values: (20, 1.6, 3, 1.6),
    _bodies: (20, 1.5, 2, 1.6),
    _medians: (200, 2, 2, 1.7),
    _search: (50, 2, 10, 2),
    _distances: (100, 2, 20, 1.9),
    _exponential: (4, 1.6, 4, 1.6),
    _histogram: (3000, 1.8, 3, 1.7),
    _outer: (64, 1.7, 64, 1.7),
    _least_squares: (40, 1.5, 10, 1.6),
    _eigenvectors: (30, 1.6, 5, 1.4),
    _convolution_2d: (8, 1.5, 3, 1.5),
    _reaction: (200, 2, 2, 1.8),
    _breadth_first: (50, 1.8, 3, 1.6),
    _text: (100, 2, 4, 2),
    _digests: (400, 2, 2, 1.7),
    _compression: (2000, 2, 1, 1.6),
    _shortest_paths: (20, 1.6, 4, 1.7),
    _correlations: (50, 2, 3, 2),
    _loops: (10, 1.5, 10, 1.5),
}


def _grid(least: int, factor: float) -> list[int]:
    return sorted({round(least * factor**k) for k in range(_VALUES)})


def _timed(call: Call) -> float:
    call()  # caches, lazy imports
    number, begin = 0, time.process_time()
    while (elapsed := time.process_time() - begin) < _LEAST or not number:
        call()
        number += 1
    return elapsed / number


def measure(passes: int, seed: int) -> dict[str, Times]:
    """Return CPU seconds by kernel and point, one per pass."""
    rng = np.random.default_rng(seed)
    jobs = [
        (prepare, a, b)
        for prepare, (n, by_n, m, by_m) in KERNELS.items()
        for a in _grid(n, by_n)
        for b in _grid(m, by_m)
    ]
    found: dict[str, Times] = {prepare.__name__[1:]: {} for prepare in KERNELS}
    for number in range(passes):
        for k in track(rng.permutation(len(jobs)).tolist(), f"pass {number + 1} of {passes}"):
            prepare, a, b = jobs[k]
            seconds = _timed(prepare(a, b, np.random.default_rng(seed)))
            found[prepare.__name__[1:]].setdefault((a, b), []).append(seconds)
    return found


def case(name: str, times: Times, fitted: int, beyond: int) -> dict[str, Any] | None:
    """Return what `far_corner.py` reads of one kernel; None where a parameter has too few values."""
    n, m = (sorted({point[k] for point in times}) for k in range(2))
    last = fitted + beyond - 1
    if last >= min(len(n), len(m)):
        return None
    test = n[last], m[last]
    train = {p: v for p, v in times.items() if p[0] in n[:fitted] and p[1] in m[:fitted]}
    return {
        "id": name,
        "group": name,
        "parameters": ["n", "m"],
        "train": [[list(p), v] for p, v in sorted(train.items())],
        "test": [[list(test), times[test]]],
        "baselines": {
            method: [value] for method, value in _baselines(train, n[:fitted], m[:fitted], test).items()
        },
    }


def _baselines(train: Times, n: Sequence[int], m: Sequence[int], test: tuple[int, int]) -> dict[str, float]:
    x = np.log(np.array([*train, test], float))
    y = np.log([np.median(values) for values in train.values()])
    x = (x - x[:-1].mean(axis=0)) / x[:-1].std(axis=0)
    linear = np.column_stack([np.ones(len(x)), x])
    square = np.column_stack([linear, x**2, x[:, 0] * x[:, 1]])
    ridge = _RIDGE * np.diag([0.0, *np.ones(square.shape[1] - 1)])
    power = np.linalg.lstsq(linear[:-1], y, rcond=None)[0]
    bent = np.linalg.solve(square[:-1].T @ square[:-1] + ridge, square[:-1].T @ y)
    known = dict(zip(train, y, strict=True))
    end = known[n[-1], m[-1]]
    slopes = (
        (end - known[n[-2], m[-1]]) / np.log(n[-1] / n[-2]),
        (end - known[n[-1], m[-2]]) / np.log(m[-1] / m[-2]),
    )
    slope = end + slopes[0] * np.log(test[0] / n[-1]) + slopes[1] * np.log(test[1] / m[-1])
    found = {"power": linear[-1] @ power, "ridge2": square[-1] @ bent, "endslope": slope}
    return {method: float(np.exp(value)) for method, value in found.items()}


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        times = measure(arguments.passes, arguments.seed)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for fitted, beyond in _SETS:
        cases = [case(name, found, fitted, beyond) for name, found in times.items()]
        content = json.dumps([item for item in cases if item is not None])
        (arguments.folder / f"kernels_{fitted}_{beyond}.json").write_text(content)


if __name__ == "__main__":
    main()
