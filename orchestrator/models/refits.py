"""Belief for any family: an ensemble of models, each fitted to other runs drawn from the measured ones.

A family that only predicts does not know how its predictions vary together. Fitted again and again to runs
drawn with replacement (the bootstrap: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter
6), it shows that: points at which the refits rise and fall together say much about each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.around import Around
from orchestrator.models.base import Floats, Key, Model, Modeler, key_of
from orchestrator.models.belief import LogBelief
from orchestrator.models.intervals import Predictive, predictive
from orchestrator.models.spread import spread
from orchestrator.models.symbolic import Symbolic, terms_of
from orchestrator.types import Measurement, Measurements, Point

# Standard errors are known within about 10 % from 50 replicates (Efron and Tibshirani, section 6.4).
REFITS = 50
# Fewer refits than this say nothing about covariances: the model is then given without a belief. Chosen by
# hand; not derived.
_LEAST_REFITS = 10
# A prediction of a time that is not positive has no logarithm; it counts as this share of the model's value.
# Chosen by hand; not derived.
_LEAST_SHARE = 1e-3


def refitted(modeler: Modeler, *, refits: int = REFITS, seed: int = 0) -> Modeler:
    """Return a modeler whose models have a belief, from one whose models need not have one.

    Each refit draws as many runs as were made, with replacement, and the same ones for all call paths and
    metrics: whatever disturbs a run disturbs all call paths of it. The same measurements always give the same
    models, so a resumed campaign chooses as an uninterrupted one.

    Parameters
    ----------
    modeler
        What to fit with; it is called ``refits + 1`` times.
    refits
        Number of refits; at least 10.
    seed
        Of the generator that draws the runs.

    Raises
    ------
    ModelError
        For fewer than 10 refits; and by the modeler when no call path can be fitted.
    """
    if refits < _LEAST_REFITS:
        raise ModelError(f"refits is {refits}: covariances need at least {_LEAST_REFITS}")

    def model(measurements: Measurements) -> tuple[Model, ...]:
        rng = np.random.default_rng([seed, refits])
        models = modeler(measurements)
        found: dict[Key, list[Model]] = {}
        draws = [resampled(measurements, rng) for _ in range(refits)]
        for again in spread(partial(_fitted, modeler), draws):
            for other in again:
                found.setdefault(key_of(other), []).append(other)
        return tuple(_with_refits(own, found.get(key_of(own), [])) for own in models)

    return model


def _fitted(modeler: Modeler, drawn: Measurements) -> tuple[Model, ...]:
    try:
        return modeler(drawn)
    except ModelError:
        return ()  # the drawn runs were too few for any model


def resampled(measurements: Measurements, rng: np.random.Generator) -> Measurements:
    """Return measurements of as many runs, drawn with replacement from the measured ones.

    A run is a repetition at a point, the same for all call paths and metrics. Points of which no run was
    drawn are left out.
    """
    runs: dict[Point, int] = {}
    for item in measurements.items:
        for point, values in item.values.items():
            runs[point] = max(runs.get(point, 0), len(values))
    drawn = rng.multinomial(sum(runs.values()), np.full(sum(runs.values()), 1 / max(sum(runs.values()), 1)))
    times = dict(zip(runs, np.split(drawn, np.cumsum(list(runs.values()))[:-1]), strict=True))
    items = []
    for item in measurements.items:
        kept = {
            point: tuple(value for value, n in zip(values, times[point], strict=False) for _ in range(n))
            for point, values in item.values.items()
        }
        origins = {
            point: tuple(origin for origin, n in zip(names, times[point], strict=False) for _ in range(n))
            for point, names in item.origins.items()
        }
        some = {point: found for point, found in kept.items() if found}
        items.append(Measurement(item.callpath, item.metric, some, origins))
    return Measurements(measurements.parameters, tuple(items), measurements.categorical)


def _with_refits(model: Model, others: Sequence[Model]) -> Model:
    if len(others) < _LEAST_REFITS:
        return model
    kind = SymbolicRefitted if isinstance(model, Symbolic) else Refitted
    return kind(model, tuple(others))


@dataclass(frozen=True, slots=True, eq=False)
class Refitted(Around):
    """A model together with its refits; values, text and document are those of the model itself.

    Its 90 % interval, its mean and its belief are those of the refits.
    """

    model: Model
    refits: tuple[Model, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Those of the model."""
        return self.model.parameters

    @property
    def expression(self) -> str:
        """That of the model."""
        return self.model.expression

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of the model, and where the interval comes from."""
        return (*self.model.notes, f"intervals come from {len(self.refits)} refits to drawn runs")

    def predictive(self, points: Sequence[Point]) -> Predictive:
        """Return the refits at each point, all equally probable."""
        shared = predictive(self.model, points[:1]).shared
        return Predictive.of_belief(self.value(points), self.belief(points), shared)

    def value(self, points: Sequence[Point]) -> Floats:
        """Return the model's values."""
        return self.model.value(points)

    def expected(self, points: Sequence[Point]) -> Floats:
        """Return the mean of the refits' values."""
        mean: Floats = self._values(points, self.model.value(points)).mean(axis=0)
        return mean

    def belief(self, points: Sequence[Point]) -> LogBelief:
        """Return the refits as equally probable members; none is uncertain of itself."""
        own = self.model.value(points)
        values = np.maximum(self._values(points, own), _LEAST_SHARE * np.abs(own))
        members, count = values.shape
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.log(values)
        return LogBelief(
            weights=np.full(members, 1 / members),
            mean=mean,
            factor=np.zeros((members, 0, count)),
            rough=np.zeros((members, count)),
            noise=self.noise,
        )

    def document(self) -> dict[str, Any]:
        """Return the model's document, with the notes on refits."""
        return {**self.model.document(), "notes": list(self.notes)}

    def _values(self, points: Sequence[Point], own: Floats) -> Floats:
        """Return the values of all refits, shape (refits, points).

        Where one has none, because the drawn runs left out what it would need there, it counts as the model.
        """
        values = np.stack([other.value(points) for other in self.refits])
        return np.where(np.isfinite(values), values, own)


class SymbolicRefitted(Refitted):
    """As `Refitted`, of a model that is a sum of terms."""

    __slots__ = ()

    @property
    def normal_form(self) -> str:
        """That of the model."""
        return str(self.model.document()["normal_form"])

    @property
    def terms(self) -> list[dict[str, Any]]:
        """Those of the model."""
        return terms_of(self.model)
