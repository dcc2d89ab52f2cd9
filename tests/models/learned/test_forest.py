"""Flat trees predict what scikit-learn's do, and take less memory."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor, RandomForestRegressor

from orchestrator.models.learned.forest import flattened

X = np.random.default_rng(2).uniform(0, 4, (300, 4)).round(1)
Y = np.sin(X[:, 0]) + X[:, 1] * (X[:, 2] > 2)


@pytest.mark.parametrize("kind", [ExtraTreesRegressor, RandomForestRegressor])
def test_forests_are_the_same(kind: Any) -> None:
    forest = kind(n_estimators=12, max_depth=9, random_state=0).fit(X, Y)
    flat = flattened([tree.tree_ for tree in forest.estimators_], 0.0, 1 / 12)
    # The measured values themselves are where a rounded threshold would go wrong.
    np.testing.assert_allclose(flat.predict(X), forest.predict(X), atol=1e-6)
    assert len(pickle.dumps(flat)) < len(pickle.dumps(forest)) / 4


def test_boosted_trees_are_the_same() -> None:
    boosted = GradientBoostingRegressor(n_estimators=20, learning_rate=0.3, random_state=0).fit(X, Y)
    flat = flattened([tree.tree_ for tree in boosted.estimators_[:, 0]], float(Y.mean()), 0.3)
    np.testing.assert_allclose(flat.predict(X), boosted.predict(X), atol=1e-6)


def test_many_points_go_down_in_parts() -> None:
    forest = RandomForestRegressor(64, random_state=0).fit(X, Y)
    flat = flattened([tree.tree_ for tree in forest.estimators_], 0.0, 1 / 64)
    many = np.random.default_rng(3).uniform(0, 4, (8000, 4))
    np.testing.assert_allclose(flat.predict(many), forest.predict(many), atol=1e-6)
    assert flat.predict(many[:0]).shape == (0,)
