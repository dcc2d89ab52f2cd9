"""Linear learners on products of logarithms: least squares, ridge and lasso.

A polynomial in the logarithms bends the trend, and couples parameters. It is smooth and needs few samples,
but its higher degrees cannot be trusted beyond the measured range.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.learned.fitted import learner
from orchestrator.models.regression.learner import Fitted, Learner, seed
from orchestrator.models.regression.samples import Axis, Samples
from orchestrator.models.regression.trend import linear_columns

# More products and samples than these are slow to fit, and rarely worth it.
_MOST_PRODUCTS, _MOST = 600, 20_000
_PENALTIES = tuple(10.0**k for k in range(-4, 4))


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A polynomial in coordinates and indicators of categories.

    ``powers`` has one row per product: the columns that are multiplied, -1 for one.
    """

    text: str
    axes: tuple[Axis, ...]
    powers: NDArray[np.int64]
    slopes: Floats

    def at(self, x: Floats) -> Floats:
        """Return logarithms at coordinates (n, axes), shape (n,)."""
        return np.asarray(products(self.axes, x, self.powers) @ self.slopes, np.float64)


def least_squares(degree: int) -> Learner:
    """Return a polynomial by ordinary least squares; of lower degree where samples are too few."""

    def solve(columns: Floats, y: Floats, rng: np.random.Generator) -> Floats:
        return np.asarray(np.linalg.lstsq(columns, y, rcond=1e-10)[0], np.float64)

    return _polynomial(f"least squares, products of {degree} logarithms", degree, solve, per_product=2.0)


def ridge(degree: int) -> Learner:
    """Return a polynomial with a ridge penalty, chosen by leaving out one sample after another."""

    def solve(columns: Floats, y: Floats, rng: np.random.Generator) -> Floats:
        from sklearn.linear_model import RidgeCV

        scaled, mean, scale = _standardised(columns)
        estimator = RidgeCV(alphas=[_PENALTIES[0] * 0.01, *_PENALTIES])
        estimator.fit(scaled, y)
        return _unscaled(estimator, mean, scale)

    return _polynomial(f"ridge, products of {degree} logarithms", degree, solve, per_product=0.2)


def lasso(degree: int) -> Learner:
    """Return a polynomial with few products: lasso, its penalty chosen in three folds."""

    def solve(columns: Floats, y: Floats, rng: np.random.Generator) -> Floats:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LassoCV

        scaled, mean, scale = _standardised(columns)
        estimator = LassoCV(
            cv=3,
            alphas=30,
            eps=1e-4,
            max_iter=2000,
            tol=1e-3,
            selection="random",
            random_state=seed(rng),
        )
        with warnings.catch_warnings():
            # Penalties too small to converge predict worse in the folds, and are not chosen.
            warnings.simplefilter("ignore", ConvergenceWarning)
            estimator.fit(scaled, y)
        return _unscaled(estimator, mean, scale)

    return _polynomial(f"lasso, products of {degree} logarithms", degree, solve, per_product=0.2, most=4096)


Solve = Callable[[Floats, Floats, np.random.Generator], Floats]


def _polynomial(name: str, degree: int, solve: Solve, per_product: float, most: int = _MOST) -> Learner:
    def build(samples: Samples, rng: np.random.Generator) -> Fitted:
        affordable = min(len(samples) / per_product, _MOST_PRODUCTS)
        powers = exponents(samples.axes, affordable_degree(samples.axes, degree, affordable))
        slopes = solve(products(samples.axes, samples.x, powers), samples.y, rng)
        return Polynomial(name, samples.axes, powers, slopes)

    return learner(name, build, most)


def affordable_degree(axes: tuple[Axis, ...], largest: int, products: float) -> int:
    """Return the largest degree with at most so many products, and 1 at least."""
    width = sum(axis.width for axis in axes)
    return max(
        [degree for degree in range(1, largest + 1) if comb(width + degree, degree) <= products], default=1
    )


def exponents(axes: tuple[Axis, ...], degree: int) -> NDArray[np.int64]:
    """Return which columns are multiplied, shape (products, degree); -1 for one.

    Indicators of one category are neither squared nor multiplied with each other.
    """
    owners = [-1]
    for index, axis in enumerate(axes):
        owners += [index] * axis.width
    found: list[tuple[int, ...]] = []
    for size in range(degree + 1):
        for chosen in combinations_with_replacement(range(1, len(owners)), size):
            categories = [owners[column] for column in chosen if axes[owners[column]].is_categorical]
            if len(categories) == len(set(categories)):
                found.append(chosen + (-1,) * (degree - size))
    return np.array(found, dtype=np.int64).reshape(len(found), degree)


def products(axes: tuple[Axis, ...], x: Floats, powers: NDArray[np.int64]) -> Floats:
    """Return the columns of a polynomial, shape (n, products)."""
    columns = linear_columns(axes, x)
    for index, axis in enumerate(axes):
        if axis.levels is not None:
            columns[np.isnan(x[:, index])] = np.nan
    # Column -1 is the constant: appended, so that -1 finds it.
    columns = np.column_stack([columns, np.ones(len(x))])
    result = np.ones((len(x), len(powers)))
    for factors in powers.T:
        result *= columns[:, factors]
    return result


def _standardised(columns: Floats) -> tuple[Floats, Floats, Floats]:
    mean, scale = columns.mean(axis=0), columns.std(axis=0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    return (columns - mean) / scale, mean, scale


def _unscaled(estimator: Any, mean: Floats, scale: Floats) -> Floats:
    slopes = np.asarray(estimator.coef_, dtype=float) / scale
    slopes[0] += float(estimator.intercept_) - float(mean @ slopes)
    return slopes
