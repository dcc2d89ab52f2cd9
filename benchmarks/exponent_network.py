"""What a network that reads exponents from five points costs, and what a small one of its kind finds.

``python benchmarks/exponent_network.py`` prints the figures in ``docs/experiments.md``. The DNN modeler
(Ritter et al. 2021, Noise-Resilient Empirical Performance Modeling with Deep Neural Networks) has layers of
11, 1500, 1500, 750, 250, 250 and 43 neurons: it chooses one of 42 pairs of exponents, or a constant, for the
points along one parameter. One training step of it is timed in NumPy. A network with two hidden layers of
250, which scikit-learn can train here, is compared with the least-squares fit of every choice.
"""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
from command import options
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier

from orchestrator.evaluation.artificial_noise import mixed
from orchestrator.models.pmnf.hypotheses import EXTRAP

Floats = NDArray[np.float64]

LAYERS = (11, 1500, 1500, 750, 250, 250, 43)
POINTS, REPETITIONS = 5, 5
BATCH, STEPS = 256, 10


def main() -> None:
    """Print parameters, training time, and how often both find the exponents."""
    parser = options(__doc__)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=2026)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    count = sum((before + 1) * after for before, after in pairwise(LAYERS))
    print(f"{count} parameters, {1e6 / BATCH * _step(rng):.0f} s of CPU time for a million samples")
    x, y, _, truth = _drawn(arguments.samples, None, rng)
    network = MLPClassifier((250, 250), activation="tanh", early_stopping=True, random_state=arguments.seed)
    start = time.process_time()
    network.fit(_inputs(x, y), truth)
    print(f"2 x 250 neurons: {time.process_time() - start:.0f} s of CPU time, {network.n_iter_} epochs")
    pairs = np.array([(0.0, 0.0), *EXTRAP])
    for percent in (0.5, 2.0, 5.0, 10.0, 20.0):
        x, y, beyond, truth = _drawn(arguments.tests, percent, rng)
        guesses = {"network": network.predict(_inputs(x, y)), "fit": _fitted(x, y)}
        texts = []
        for name, guess in guesses.items():
            deviation = np.abs(pairs[guess, 0] - pairs[truth, 0]).mean()
            error = np.median(_errors(x, y, guess, beyond))
            texts.append(
                f"{name} {100 * np.mean(guess == truth):.0f} % exact, ED {deviation:.2f}, {error:.1f} %"
            )
        print(f"+-{percent:g} %: " + "; ".join(texts))


def _step(rng: np.random.Generator) -> float:
    """Return the CPU seconds of one step of Adam on a batch, of the whole network in single precision."""
    shapes = list(pairwise(LAYERS))
    weights = [rng.normal(0.0, 0.05, shape).astype(np.float32) for shape in shapes]
    first, second = ([np.zeros_like(weight) for weight in weights] for _ in range(2))
    batch = rng.normal(size=(BATCH, LAYERS[0])).astype(np.float32)
    start = time.process_time()
    for _ in range(STEPS):
        values = [batch]
        for weight in weights:
            values.append(np.tanh(values[-1] @ weight))
        slope = values[-1]
        for k in reversed(range(len(weights))):
            gradient = values[k].T @ slope
            slope = (slope @ weights[k].T) * (1 - values[k] ** 2)
            first[k] = 0.9 * first[k] + 0.1 * gradient
            second[k] = 0.999 * second[k] + 0.001 * gradient**2
            weights[k] -= 1e-4 * first[k] / (np.sqrt(second[k]) + 1e-8)
    return (time.process_time() - start) / STEPS


def _drawn(
    count: int, percent: float | None, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, NDArray[np.intp]]:
    """Return values of a parameter (count, 6), the last one beyond; medians of noisy runs at five; truths."""
    pairs = np.array([(0.0, 0.0), *EXTRAP])
    truth = rng.integers(len(pairs), size=count)
    first, factor = 2.0 ** rng.integers(1, 8, size=(count, 1)), rng.choice([1.5, 2.0, 4.0], size=(count, 1))
    x = first * factor ** np.arange(POINTS + 1)
    term = x ** pairs[truth, :1] * np.log2(x) ** pairs[truth, 1:]
    share = np.exp(rng.uniform(np.log(0.1), np.log(10.0), size=(count, 1)))
    exact = term[:, 2:3] * share * (truth[:, None] > 0) + term
    levels = rng.uniform(0.0, 20.0, size=count) if percent is None else np.full(count, percent)
    noise = 1.0 + (mixed(100.0, (count, POINTS, REPETITIONS), rng) - 1.0) * levels[:, None, None] / 100.0
    return x, np.median(exact[:, :POINTS, None] * noise, axis=2), exact[:, POINTS], truth


def _inputs(x: Floats, y: Floats) -> Floats:
    """Return eleven inputs: logarithms of values and of times, each from the first, and the first value."""
    logs = np.log2(x[:, :POINTS])
    return np.hstack([logs - logs[:, :1], np.log2(y / y[:, :1]), logs[:, :1]])


def _fits(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the squared relative residuals of every choice, and its prediction beyond, (count, choices)."""
    pairs = np.array([(0.0, 0.0), *EXTRAP])
    left, beyond = np.empty((len(x), len(pairs))), np.empty((len(x), len(pairs)))
    for k, (i, j) in enumerate(pairs):
        term = x**i * np.log2(x) ** j
        scale = term[:, 2:3]
        a, b = 1.0 / y, term[:, :POINTS] / scale / y
        aa, ab, bb, a1, b1 = (
            (u * v).sum(axis=1) for u, v in ((a, a), (a, b), (b, b), (a, y / y), (b, y / y))
        )
        if k == 0:
            constant, slope = a1 / aa, np.zeros(len(x))
        else:
            determinant = np.maximum(aa * bb - ab**2, 1e-12 * aa * bb)
            constant, slope = (a1 * bb - b1 * ab) / determinant, (b1 * aa - a1 * ab) / determinant
        left[:, k] = ((1.0 - constant[:, None] * a - slope[:, None] * b) ** 2).sum(axis=1)
        beyond[:, k] = constant + slope * term[:, POINTS] / scale[:, 0]
        left[slope < 0, k] = np.inf
    return left, beyond


def _fitted(x: Floats, y: Floats) -> NDArray[np.intp]:
    """Return the best choice by the Bayesian information criterion: a constant has one coefficient less."""
    left = np.maximum(_fits(x, y)[0], 1e-12)
    penalty = np.where(np.arange(left.shape[1]) > 0, np.log(POINTS), 0.0)
    best: NDArray[np.intp] = np.argmin(POINTS * np.log(left) + penalty, axis=1)
    return best


def _errors(x: Floats, y: Floats, guess: NDArray[np.intp], truth: Floats) -> Floats:
    """Return the relative errors in percent one step beyond the points, of the chosen forms."""
    predicted = np.take_along_axis(_fits(x, y)[1], guess[:, None], axis=1)[:, 0]
    return 100.0 * np.abs(predicted - truth) / truth


if __name__ == "__main__":
    main()
