"""Neural networks: small ones, several of which are averaged (Hansen and Salamon 1990)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.blas import one_sklearn_thread
from orchestrator.models.learned.distances import scaled_columns
from orchestrator.models.learned.fitted import Estimate, learner, named, unit_response
from orchestrator.models.regression.learner import Estimator, Fitted, Learner, seed
from orchestrator.models.regression.samples import Samples

# Below so many samples none can be spared for stopping early: a penalty on weights takes its place.
_FEW, _PENALTY = 3000, 1.0
# Steps of that fit: one per sample, but no fewer and no more than these. Of 128 samples of five programs 100
# steps predict as well as 300, of 512 samples up to 18 % worse.
_LEAST_STEPS, _MOST_STEPS = 100, 300


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of several regressors."""

    members: tuple[Estimator, ...]

    def predict(self, x: Floats) -> Floats:
        """Return predictions, shape (n,)."""
        return np.asarray(np.mean([member.predict(x) for member in self.members], axis=0), np.float64)


def networks(
    *,
    layers: int = 2,
    width: int = 64,
    count: int = 4,
    activation: str = "relu",
    by_relevance: bool = True,
    **derived: bool,
) -> Learner:
    """Return the mean of fully connected networks that differ in how they begin.

    Parameters
    ----------
    layers, width
        Hidden layers, and units in each.
    count
        How many are averaged.
    activation
        ``relu`` or ``tanh``.
    by_relevance
        Whether columns are scaled by what extra trees find relevant, or to variance one.
    derived
        Derived columns, see `columns_of`.
    """
    what = f"{count} networks of {layers} x {width} {activation}"
    name = named(what, by_relevance and "by relevance", **derived)

    def build(samples: Samples, rng: np.random.Generator) -> Fitted:
        scaled = scaled_columns(samples, rng, by_relevance=by_relevance, **derived)
        unit, rescaled = unit_response(samples)
        members = [_network(len(samples), layers, width, activation, rng) for _ in range(count)]
        measured = scaled.at(samples.x)
        with warnings.catch_warnings(), one_sklearn_thread():
            # The largest number of iterations is a limit of time, no mistake.
            warnings.simplefilter("ignore")
            fitted = tuple(member.fit(measured, unit.y) for member in members)
        return rescaled(Estimate(name, scaled, Mean(fitted)))

    return learner(name, build)


def _network(n: int, layers: int, width: int, activation: str, rng: np.random.Generator) -> Any:
    from sklearn.neural_network import MLPRegressor

    shape = (width,) * layers
    if n < _FEW:
        return MLPRegressor(
            hidden_layer_sizes=shape,
            activation=activation,
            solver="lbfgs",
            alpha=_PENALTY,
            max_iter=int(np.clip(n, _LEAST_STEPS, _MOST_STEPS)),
            random_state=seed(rng),
        )
    return MLPRegressor(
        hidden_layer_sizes=shape,
        activation=activation,
        alpha=1e-4,
        batch_size=min(256, max(32, n // 50)),
        learning_rate_init=3e-3,
        early_stopping=True,
        validation_fraction=0.1,
        n_iter_no_change=15,
        max_iter=max(20, min(300, 3_000_000 // n)),
        random_state=seed(rng),
    )
