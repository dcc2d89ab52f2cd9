"""Columns scaled for learners that add them up: distances, kernels and networks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.learned.columns import Columns, columns_of
from orchestrator.models.regression.learner import seed
from orchestrator.models.regression.samples import Samples

# A column that explains nothing still counts so much: samples are few, and importances uncertain.
_LEAST_RELEVANCE = 0.02
# Of more samples, so many are drawn to find out what is relevant. All of 100,000 say the same, and take
# longer than the networks that are fitted then.
_MOST_SEEN = 8192


@dataclass(frozen=True, slots=True)
class Scaled:
    """Columns, each shifted and scaled; of the same use as `Columns`."""

    columns: Columns
    # shift, scale: what is subtracted from every column, and what it is then multiplied by, shape (columns,).
    shift: Floats
    scale: Floats

    def at(self, x: Floats) -> Floats:
        """Return the columns at coordinates (n, axes), shape (n, columns)."""
        return (self.columns.at(x) - self.shift) * self.scale


def scaled_columns(
    samples: Samples, rng: np.random.Generator, *, by_relevance: bool, **derived: bool
) -> Scaled:
    """Return columns scaled by relevance, or to variance one; derived ones as of `columns_of`."""
    columns = columns_of(samples, **derived)
    return relevant(columns, samples, rng) if by_relevance else standardised(columns, samples)


def standardised(columns: Columns, samples: Samples) -> Scaled:
    """Return columns of mean zero and variance one."""
    measured = columns.at(samples.x)
    return Scaled(columns, measured.mean(axis=0), _inverse(measured.std(axis=0)))


def relevant(columns: Columns, samples: Samples, rng: np.random.Generator) -> Scaled:
    """Return columns scaled so that the response changes about equally along each.

    The relevance of a column is the share of the variance that shallow extra trees remove by splitting it
    (Geurts et al. 2006); the scale is its square root.
    """
    from sklearn.ensemble import ExtraTreesRegressor

    plain = standardised(columns, samples)
    trees = ExtraTreesRegressor(32, min_samples_leaf=3, n_jobs=1, random_state=seed(rng))
    seen = samples
    if len(samples) > _MOST_SEEN:
        seen = samples.rows(rng.choice(len(samples), _MOST_SEEN, replace=False))
    trees.fit(plain.at(seen.x), seen.y)
    relevance = np.sqrt(np.maximum(trees.feature_importances_, _LEAST_RELEVANCE / plain.scale.size))
    return Scaled(columns, plain.shift, plain.scale * relevance / relevance.max())


def _inverse(spread: Floats) -> Floats:
    return np.asarray(np.where(spread > 1e-12, 1.0 / np.where(spread > 1e-12, spread, 1.0), 0.0), np.float64)
