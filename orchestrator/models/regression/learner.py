"""The contract of what is fitted to samples: a learner and what it has learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.regression.samples import Samples

NO_LIMIT = 10**9


class Fitted(Protocol):
    """A function of coordinates that was fitted to samples. Frozen, and `joblib` can write it to a file."""

    @property
    def text(self) -> str:
        """What it is, on one line: ``64 extra trees of depth 16 on the log-linear trend``."""
        ...

    def at(self, x: Floats) -> Floats:
        """Return logarithms of predictions at coordinates (n, axes), shape (n,), anywhere in their space."""
        ...


Fit = Callable[[Samples, np.random.Generator], Fitted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """One member of a family with its options, not yet fitted."""

    family: str  # the family that it belongs to: ``cpr``, ``learned``
    name: str  # what it is with its options: unique among the candidates of a choice
    # Fits it. The samples are never more than ``most``.
    fit: Fit
    most: int = NO_LIMIT  # so many samples it can use in bearable time; of more, a random subset is taken

    def fitted(self, samples: Samples, rng: np.random.Generator) -> Fitted:
        """Fit to the samples, or to a random subset of ``most``."""
        if len(samples) > self.most:
            samples = samples.rows(np.sort(rng.choice(len(samples), self.most, replace=False)))
        return self.fit(samples, rng)


Streams = Callable[[Learner], np.random.Generator]
"""What gives every learner a random stream of its own."""


def streams(rng: np.random.Generator) -> Streams:
    """Return what gives every learner a random stream of its own, by its name.

    One more candidate then leaves the draws of all others as they are. Each call makes other streams.
    """
    key = int(rng.integers(2**63))
    return lambda learner: np.random.default_rng([key, *learner.name.encode()])


class Estimator(Protocol):
    """What scikit-learn's fitted regressors have in common."""

    def predict(self, x: Floats) -> Floats:
        """Return predictions, shape (n,)."""
        ...


def seed(rng: np.random.Generator) -> int:
    """Return a seed for scikit-learn."""
    return int(rng.integers(2**31))
