"""A model learned from samples: learners combined within the measured range, several beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from orchestrator.models.base import Category, Floats, Model, document
from orchestrator.models.belief import LogBelief
from orchestrator.models.intervals import HALF_WIDTH, FromPredictive, Predictive
from orchestrator.models.regression.cross_validation import middle
from orchestrator.models.regression.errors import Errors, Growth
from orchestrator.models.regression.learner import Fitted
from orchestrator.models.regression.samples import Axis, decoded, encoded
from orchestrator.models.symbolic import LARGEST_LOG, Symbolic
from orchestrator.models.unvaried import Unvaried
from orchestrator.types import Point


@dataclass(frozen=True, slots=True, eq=False)
class Combination:
    """A weighted mean of the logarithms of several predictions."""

    members: tuple[Fitted, ...]
    weights: tuple[float, ...]

    @property
    def text(self) -> str:
        """What it is, on one line."""
        if len(self.members) == 1:
            return self.members[0].text
        order = sorted(zip(self.weights, self.members, strict=True), key=lambda item: -item[0])
        return " + ".join(f"{weight:.2f} * ({member.text})" for weight, member in order)

    def at(self, x: Floats) -> Floats:
        """Return logarithms at coordinates (n, axes), shape (n,)."""
        logs = np.zeros(len(x))
        for weight, member in zip(self.weights, self.members, strict=True):
            logs += weight * member.at(x)
        return logs


@dataclass(frozen=True, slots=True, eq=False)
class Continuation:
    """A prediction beyond the range of an axis; anchored if it is shifted to meet that inside at the edge."""

    fitted: Fitted
    anchored: bool

    def at(self, x: Floats, clamped: Floats, edge: Floats) -> Floats:
        """Return logarithms at coordinates, whose nearest ones within the range have the logarithms edge."""
        value = self.fitted.at(x)
        return value + edge - self.fitted.at(clamped) if self.anchored else value


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Extrapolation:
    """What is predicted beyond the largest (and smallest) measured value of one axis."""

    # Each is the mean of the middle ones of its members, see `middle`.
    opinions: tuple[tuple[Continuation, ...], ...]
    weights: tuple[float, ...]  # of the opinions in the prediction
    share: float  # of the change from the edge of the range on that is believed
    growth: Growth  # of the error with the distance

    def at(self, x: Floats, clamped: Floats, edge: Floats) -> Floats:
        """Return logarithms at coordinates, whose nearest ones within the range have the logarithms edge."""
        each = [middle(np.array([member.at(x, clamped, edge) for member in own])) for own in self.opinions]
        return np.asarray(np.array(self.weights) @ np.array(each), np.float64)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RegressionModel(FromPredictive):
    """What was learned from the samples of one call path; one model for all categories."""

    callpath: str
    metric: str
    axes: tuple[Axis, ...]  # the parameters as coordinates
    inside: Combination  # the prediction within the measured range
    # The same, each fitted without some of the samples; none where there are thousands.
    folds: tuple[Combination, ...]
    errors: Errors  # their errors where they were not fitted
    # Per axis, by its position, the prediction beyond the range of its values.
    outside: dict[int, Extrapolation]
    noise: float  # relative standard deviation of a single repetition
    shared_noise: float  # the part of it that repetitions of one origin share
    smape: float  # on the fitted samples, 0..200 %
    notes: tuple[str, ...]
    # How the learners were compared: name, MLogQ of what was left out, and weight of each.
    reasons: tuple[dict[str, Any], ...]
    unvaried: Unvaried  # parameters that were measured at one value, which are no axes
    # A second opinion beyond the range, where the measurements are few: the prediction is the geometric mean
    # of both, and the interval that of the second, widened by how far they differ.
    beside: Model | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """Numeric parameters."""
        return tuple(axis.name for axis in self.axes if not axis.is_categorical)

    @property
    def category(self) -> Category:
        """None: the model is for all."""
        return ()

    @property
    def expression(self) -> str:
        """What it is, on one line."""
        return self.inside.text

    def value(self, points: Sequence[Point]) -> Floats:
        """Return the predicted values alone."""
        return _exponential(self._at(encoded(self.axes, points))[0])

    def expected(self, points: Sequence[Point]) -> Floats:
        """Return the mean over what is possible, for costs."""
        value, grown = self._at(encoded(self.axes, points))
        return _exponential(value + np.minimum(np.hypot(self.errors.spread, grown), 1.0) ** 2 / 2)

    def predictive(self, points: Sequence[Point]) -> Predictive:
        """Return the distribution of the true mean at every point: atoms of errors around every fold."""
        x = encoded(self.axes, points)
        value, grown = self._at(x)
        around = self._fold_values(x, value)
        mean = np.concatenate([row + self.errors.centres[:, None] for row in around])
        spread = np.hypot(np.tile(self.errors.spreads, len(around))[:, None], grown)
        known = np.isfinite(value)
        own = Predictive(
            value=_exponential(value),
            weights=np.tile(self.errors.weights, len(around)) / len(around),
            mean=np.where(known, np.clip(mean, -LARGEST_LOG, LARGEST_LOG), np.nan),
            spread=np.where(known, spread, np.nan),
            noise=self.noise,
            shared=self.shared_noise,
        )
        return self.unvaried.predictive(own, points)

    def belief(self, points: Sequence[Point]) -> LogBelief:
        """Return the folds as members; errors beyond the range rise and fall together."""
        x = encoded(self.axes, points)
        value, grown = self._at(x)
        mean = self._fold_values(x, value)
        own = LogBelief(
            weights=np.full(len(mean), 1 / len(mean)),
            mean=mean,
            factor=np.broadcast_to(grown, (len(mean), 1, len(x))),
            rough=np.full_like(mean, self.errors.spread),
            rough_is_measured=True,
            noise=self.noise,
        )
        return self.unvaried.belief(own, points)

    def document(self) -> dict[str, Any]:
        """Return the model as a JSON-ready object, with the comparison that chose it."""
        return {**document(self), "compared": [dict(item) for item in self.reasons]}

    def _fold_values(self, x: Floats, value: Floats) -> Floats:
        """Return the predictions of every fold, shape (folds, n): those of the model where there are none.

        Beyond the range they differ from the model's as they do at its edge.
        """
        if not self.folds:
            return value[None]
        clamped = self._clamped(x)
        own = self.inside.at(clamped)
        return np.array([value + fold.at(clamped) - own for fold in self.folds])

    def _at(self, x: Floats) -> tuple[Floats, Floats]:
        """Return logarithms, and standard deviations that errors have beyond the range, shape (n,) each."""
        spreads, clamped = self._spreads(x), self._clamped(x)
        edge, grown = self.inside.at(clamped), np.linalg.norm(spreads, axis=1)
        value, share = self._continued(x, spreads, clamped, edge)
        outside = spreads.any(axis=1)
        if self.beside is not None and outside.any():
            other = self.beside.predict(decoded(self.axes, x[outside]))
            differ = value[outside] - np.log(other.value)
            with np.errstate(divide="ignore"):
                own = np.clip(np.log(other.high) - np.log(other.low), 0, LARGEST_LOG) / (2 * HALF_WIDTH)
            value[outside] -= differ / 2
            grown[outside] = np.sqrt(own**2 + differ**2 / 2)
        return edge + share * (value - edge), grown

    def _continued(self, x: Floats, spreads: Floats, clamped: Floats, edge: Floats) -> tuple[Floats, Floats]:
        """Return what learners predict and how much of its change from the edge counts, shape (n,) each.

        Beyond the range, by the axis along which errors grow most.
        """
        value, share = edge.copy(), np.ones(len(x))
        for axis, item in self.outside.items():
            here = (spreads[:, axis] > 0) & (spreads.argmax(axis=1) == axis)
            if here.any():
                value[here], share[here] = item.at(x[here], clamped[here], edge[here]), item.share
        return value, share

    def _clamped(self, x: Floats) -> Floats:
        """Return the nearest coordinates within the range, of values that are aligned alike."""
        columns = [axis.nearest(x[:, k], axis.low, axis.high) for k, axis in enumerate(self.axes)]
        return np.column_stack([np.empty((len(x), 0)), *columns])

    def _distances(self, x: Floats) -> Floats:
        """Return how far beyond the range of every axis coordinates are, shape (n, axes); 0 inside."""
        low = np.array([axis.low for axis in self.axes])
        high = np.array([axis.high for axis in self.axes])
        return np.nan_to_num(np.abs(x - np.clip(x, low, high)))

    def _spreads(self, x: Floats) -> Floats:
        """Return standard deviations by which errors grow along every axis, shape (n, axes); 0 inside."""
        distances = self._distances(x)
        spreads = np.zeros_like(distances)
        for axis, item in self.outside.items():
            spreads[:, axis] = item.growth.at(distances[:, axis])
        return spreads


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SymbolicRegressionModel(RegressionModel):
    """One that reads as a sum of terms: the best formula, which may or may not take part in predictions."""

    form: Symbolic  # the formula as a model of its own

    @classmethod
    def of(cls, model: RegressionModel, form: Symbolic) -> Self:
        """Add the formula to a model."""
        note = f"the expression is the best formula, but predictions come from {model.inside.text}"
        return cls(**fields_of(model, notes=(note, *model.notes)), form=form)

    @property
    def terms(self) -> list[dict[str, Any]]:
        """Those of the formula."""
        return self.form.terms

    @property
    def normal_form(self) -> str:
        """That of the formula."""
        return self.form.normal_form

    @property
    def expression(self) -> str:
        """The formula."""
        return self.normal_form


def fields_of(model: RegressionModel, **changes: Any) -> dict[str, Any]:
    """Return the fields of a model, some of them changed, for a model that adds to it."""
    return {item.name: getattr(model, item.name) for item in fields(model)} | changes


def _exponential(logs: Floats) -> Floats:
    return np.exp(np.clip(logs, -LARGEST_LOG, LARGEST_LOG))
