"""The overhead tau, and the law corrected by it.

``tau = T_estimated / T_observed`` (equation 5), with the time that the law estimates (equation 6): it
corrects a speedup as a factor (equation 3), so the predicted time is that of the law divided by tau.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats, Integers
from orchestrator.models.blas import one_sklearn_thread
from orchestrator.models.regression.learner import Estimator, Fitted, seed
from orchestrator.models.regression.samples import Samples, where_known
from orchestrator.models.regression.trend import Trend, fit_trend
from orchestrator.models.speedup.law import Law, Settings, within
from orchestrator.models.speedup.nearby import Nearby
from orchestrator.models.speedup.vectors import PER_PREDICTION, Contexts, training

# Depth and number of trees, and layers of networks. Chosen by hand; not derived.
_DEPTH = 5
_TREES = 100
_LAYERS = (16, 16, 16, 8)
# Overheads further from 1 than this factor are not believed of a learner that left what it was trained with.
_MOST_LOG_TAU = 20.0
_LEAST_TAU = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """The trees of a random forest: it predicts what scikit-learn does, without a job per tree."""

    trees: tuple[Any, ...]

    @classmethod
    def of(cls, forest: Any) -> Forest:
        """Take the trees out of a fitted forest."""
        return cls(tuple(estimator.tree_ for estimator in forest.estimators_))

    def predict(self, x: Floats) -> Floats:
        """Return the mean over the trees, shape (n,)."""
        single = np.ascontiguousarray(x, dtype=np.float32)
        total = np.zeros(len(x))
        for tree in self.trees:
            total += tree.predict(single)[:, 0]
        return total / len(self.trees)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Corrected:
    """The law, divided by an overhead."""

    law: Law
    overhead: Fitted

    @property
    def text(self) -> str:
        """What it is."""
        return f"{self.law.text}, overhead by {self.overhead.text}"

    def at(self, x: Floats) -> Floats:
        """Return logarithms of times at coordinates (n, axes), shape (n,); NaN at unknown categories."""
        return where_known(x, lambda known: self.law.at(known) - self.overhead.at(known))


@dataclass(frozen=True, slots=True, eq=False)
class PowerLaw:
    """An overhead that is a power of every parameter, with a factor per category."""

    trend: Trend

    @property
    def text(self) -> str:
        """What it is."""
        return "a power law"

    def at(self, x: Floats) -> Floats:
        """Return logarithms of tau at coordinates (n, axes), shape (n,)."""
        return self.trend.at(x)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Learned:
    """An overhead that a regressor predicts from five-sample vectors.

    With at most c_h processes it is interpolated between measured ones: vectors have larger targets only.
    """

    text: str
    contexts: Contexts  # the runs that the first four samples are
    kept: Integers  # which of them, by problem, shape (problems, draws, 4)
    regressor: Estimator  # fitted to vectors
    logarithmic: bool  # whether it predicts the logarithm of tau
    # nearby, log_tau: coordinates with at most c_h processes, and their overheads.
    nearby: Nearby
    log_tau: Floats

    def at(self, x: Floats) -> Floats:
        """Return logarithms of tau at coordinates (n, axes), shape (n,): means over the draws."""
        result = self.nearby.mean(x, self.log_tau)
        far = self.contexts.layout.processes(x) > self.contexts.most * (1 + 1e-9)
        if far.any():
            there = x[far]
            drawn = self.kept[self.contexts.nearby.nearest(self.contexts.layout.problem(there))]
            with one_sklearn_thread():
                found = self.regressor.predict(self.contexts.vectors(there, drawn))
            logs = found if self.logarithmic else np.log(np.maximum(found, _LEAST_TAU))
            result[far] = logs.reshape(len(there), PER_PREDICTION).mean(axis=1)
        return np.clip(result, -_MOST_LOG_TAU, _MOST_LOG_TAU)


def power_law(samples: Samples, law: Law, settings: Settings, rng: np.random.Generator) -> Fitted:
    """Return the overhead as a power law of every parameter, by least squares of logarithms."""
    return PowerLaw(fit_trend(samples.with_y(law.at(samples.x) - samples.y)))


def learned_by(kind: str) -> Callable[[Samples, Law, Settings, np.random.Generator], Fitted]:
    """Return what fits an overhead with one of `REGRESSORS`."""
    build, text, logarithmic = REGRESSORS[kind]

    def fit(samples: Samples, law: Law, settings: Settings, rng: np.random.Generator) -> Fitted:
        log_tau = law.at(samples.x) - samples.y
        n = law.layout.processes(samples.x)
        last = float(min(n.max(), settings.most_processes))
        contexts = Contexts.of(samples, law.layout, log_tau, last / 2, law.weak)
        here = within(samples.x, law.layout, settings.largest)
        if not here.any():
            raise ModelError("no run is within the cut-offs: raise largest")
        vectors, target = training(samples.rows(here), contexts, log_tau[here], last, rng)
        regressor = build(rng)
        with warnings.catch_warnings(), one_sklearn_thread():
            # The largest number of iterations is a limit of time, no mistake.
            warnings.simplefilter("ignore")
            regressor.fit(vectors, target if logarithmic else np.exp(target))
        few = n <= contexts.most * (1 + 1e-9)
        return Learned(
            text=text,
            contexts=contexts,
            kept=contexts.kept(rng),
            regressor=Forest.of(regressor) if hasattr(regressor, "estimators_") else regressor,
            logarithmic=logarithmic,
            nearby=Nearby.of(law.layout.axes, samples.x[few]),
            log_tau=log_tau[few],
        )

    return fit


def _forest(rng: np.random.Generator) -> Any:
    """Return a random forest of depth 5.

    Its criterion is the squared error: since 1.9 scikit-learn maps the paper's ``friedman_mse`` to it,
    because both always chose the same splits.
    """
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(n_estimators=_TREES, max_depth=_DEPTH, n_jobs=1, random_state=seed(rng))


def _boosting(rng: np.random.Generator) -> Any:
    """Return histogram boosting of depth 5 with squared errors, in place of XGBoost."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        max_iter=_TREES, max_depth=_DEPTH, learning_rate=0.1, early_stopping=False, random_state=seed(rng)
    )


def _network(rng: np.random.Generator) -> Any:
    """Return hidden layers of 16, 16, 16 and 8 units on scaled vectors.

    The output is the logarithm of tau: it keeps tau positive as softplus does in the paper.
    """
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    network = MLPRegressor(
        hidden_layer_sizes=_LAYERS, activation="relu", solver="lbfgs", alpha=0.1, max_iter=300,
        random_state=seed(rng),
    )  # fmt: skip
    return make_pipeline(StandardScaler(), network)


REGRESSORS: MappingProxyType[str, tuple[Callable[[np.random.Generator], Any], str, bool]] = MappingProxyType(
    {
        "forest": (_forest, "a random forest of depth 5", False),
        "boosting": (_boosting, "boosted trees of depth 5", False),
        "network": (_network, "a network of 16-16-16-8 units", True),
    }
)
"""How the regressor is made, what it is, and whether it predicts the logarithm of tau."""
