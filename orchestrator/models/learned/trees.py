"""Learners that split the space: forests, extremely randomised trees, and boosted trees.

Geurts, Ernst and Wehenkel 2006 for extra trees, Friedman 2001 for boosting.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from orchestrator.models.learned.columns import columns_of
from orchestrator.models.learned.fitted import estimated, learner, named
from orchestrator.models.learned.forest import flattened
from orchestrator.models.regression.learner import Fitted, Learner, seed
from orchestrator.models.regression.samples import Samples

# Of boosted trees on bins: by how much every tree counts, and the least samples of a leaf.
_RATE, _LEAST_IN_A_LEAF = 0.06, 5
_BOOSTING_RATE = 0.1  # by which every other boosted tree counts


def extra_trees(*, trees: int = 64, depth: int | None = None, leaf: int = 1, **derived: bool) -> Learner:
    """Return extremely randomised trees; ``leaf`` is the least number of samples in a leaf."""
    return _forest("ExtraTreesRegressor", "extra trees", trees, depth, leaf, derived)


def random_forest(*, trees: int = 64, depth: int | None = None, leaf: int = 1, **derived: bool) -> Learner:
    """Return a random forest."""
    return _forest("RandomForestRegressor", "forest trees", trees, depth, leaf, derived)


def gradient_boosting(*, trees: int, depth: int = 4, **derived: bool) -> Learner:
    """Return boosted trees of small depth, each from half of the samples."""
    name = named(f"{trees} boosted trees, depth {depth}, rate {_BOOSTING_RATE:g}", **derived)

    def build(samples: Samples, rng: np.random.Generator) -> Fitted:
        from sklearn.ensemble import GradientBoostingRegressor

        estimator = GradientBoostingRegressor(
            n_estimators=trees,
            max_depth=depth,
            learning_rate=_BOOSTING_RATE,
            subsample=0.5,
            random_state=seed(rng),
        )
        grown = estimated(name, columns_of(samples, **derived), estimator, samples)
        found = [tree.tree_ for tree in estimator.estimators_[:, 0]]
        start = float(estimator.init_.constant_[0, 0])
        return replace(grown, estimator=flattened(found, start, _BOOSTING_RATE))

    return learner(name, build)


def histogram_boosting(
    *,
    trees: int,
    leaves: int = 15,
    share: float = 1.0,
    absolute: bool = False,
    **derived: bool,
) -> Learner:
    """Return boosted trees on at most 255 bins per column: fast for many samples.

    Parameters
    ----------
    trees, leaves
        Trees, and the most leaves of each.
    share
        Of the columns among which a split is chosen.
    absolute
        Whether absolute errors are minimised instead of squares, so that outliers count less.
    derived
        Derived columns, see `columns_of`.
    """
    what = f"{trees} boosted trees, {leaves} leaves, rate {_RATE:g}"
    name = named(what, share < 1 and f"{share:g} of columns", absolute and "absolute errors", **derived)

    def build(samples: Samples, rng: np.random.Generator) -> Fitted:
        from sklearn.ensemble import HistGradientBoostingRegressor

        estimator = HistGradientBoostingRegressor(
            max_iter=trees,
            max_leaf_nodes=leaves,
            learning_rate=_RATE,
            min_samples_leaf=_LEAST_IN_A_LEAF,
            max_features=share,
            loss="absolute_error" if absolute else "squared_error",
            early_stopping=False,
            random_state=seed(rng),
        )
        return estimated(name, columns_of(samples, **derived), estimator, samples)

    return learner(name, build)


def _forest(
    kind: str, what: str, trees: int, depth: int | None, leaf: int, derived: dict[str, bool]
) -> Learner:
    shape = bool(depth) and f"depth {depth}", leaf > 1 and f"leaves of {leaf}"
    name = named(f"{trees} {what}", *shape, **derived)

    def build(samples: Samples, rng: np.random.Generator) -> Fitted:
        import sklearn.ensemble

        build_kind: Any = getattr(sklearn.ensemble, kind)
        estimator = build_kind(
            n_estimators=trees, max_depth=depth, min_samples_leaf=leaf, n_jobs=1, random_state=seed(rng)
        )
        grown = estimated(name, columns_of(samples, **derived), estimator, samples)
        found = [tree.tree_ for tree in estimator.estimators_]
        return replace(grown, estimator=flattened(found, 0.0, 1 / trees))

    return learner(name, build)
