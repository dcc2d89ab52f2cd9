"""Averages of the nearest samples."""

from __future__ import annotations

import numpy as np

from orchestrator.models.learned.distances import scaled_columns
from orchestrator.models.learned.fitted import estimated, learner, named
from orchestrator.models.regression.learner import Fitted, Learner
from orchestrator.models.regression.samples import Samples


def nearest(neighbours: int, *, weighted: bool = True, by_relevance: bool = True, **derived: bool) -> Learner:
    """Return the mean of the nearest samples.

    Parameters
    ----------
    neighbours
        How many; fewer where samples are fewer.
    weighted
        Whether near ones count more, by the inverse of the distance.
    by_relevance
        Whether parameters that matter more make more distance.
    derived
        Derived columns, see `columns_of`.
    """
    name = named(f"{neighbours} nearest", weighted and "weighted", by_relevance and "by relevance", **derived)

    def build(samples: Samples, rng: np.random.Generator) -> Fitted:
        from sklearn.neighbors import KNeighborsRegressor

        scaled = scaled_columns(samples, rng, by_relevance=by_relevance, **derived)
        estimator = KNeighborsRegressor(
            min(neighbours, len(samples)), weights="distance" if weighted else "uniform", n_jobs=1
        )
        return estimated(name, scaled, estimator, samples)

    return learner(name, build)
