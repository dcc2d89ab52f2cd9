"""A model of all that may explain measurements: curves, formulas, and formulas times small curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from orchestrator.models.base import (
    Category,
    Floats,
    Integers,
    coordinates,
    document,
    inside,
)
from orchestrator.models.belief import Belief, LogBelief, in_middle, mixture_quantile
from orchestrator.models.curves.explanations import LIKELY, Explanations
from orchestrator.models.curves.regimes import Change, Regimes
from orchestrator.models.intervals import FromPredictive, Predictive
from orchestrator.models.symbolic import LARGEST_LOG, Symbolic, power_law_through, sum_text, terms_of
from orchestrator.models.unvaried import Unvaried
from orchestrator.types import Point

# Members of the belief that strategies ask for, each with a covariance of its own: as many as have so many
# numbers per point, but not fewer than that.
_NUMBERS, _FEWEST = 4096, 24
# Probability of a formula from which its own posterior stands for all explanations.
_CERTAIN = 0.9
# Share of the probability from which one kind of explanation is not worth a note.
_ALONE = 0.99
_CURVES = (
    "a smooth curve (a Gaussian process in the logarithms), no formula; the expression is its power law at "
    "the largest measured values"
)
_STEP = 1e-3  # of a logarithm, to find the slope at a point


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False, kw_only=True)
class CurveModel(FromPredictive):
    """All that may explain the measurements of a call path."""

    callpath: str
    metric: str
    parameters: tuple[str, ...]  # numeric parameters in the model's coordinates
    category: Category  # value of each categorical parameter for which the model holds
    smape: float  # of the formula if it is likely, else of the mean curve, on the fitted locations, 0..200 %
    noise: float  # relative standard deviation of a single repetition
    remarks: tuple[str, ...]  # what a reader must know of the measurements
    corner: tuple[float, ...]  # largest measured value of every parameter
    explained: Explanations  # the explanations
    # The most probable formula as a model of its own; None where there are only curves.
    form: Symbolic | None = None
    shared_noise: float = 0.0  # part of ``noise`` that repetitions of one origin have in common
    unvaried: Unvaried = field(default_factory=Unvaried)  # parameters that were measured at one value

    @property
    def share(self) -> float:
        """Probability that a formula is part of the explanation."""
        return self.explained.share

    @property
    def answer(self) -> Symbolic | None:
        """The formula, where it is the answer."""
        return self.form if self.share >= LIKELY else None

    @property
    def _change(self) -> tuple[Regimes, int, float] | None:
        """Regimes, which of them, and the probability of its change, where one is likely."""
        if self.explained.regimes is None:
            return None
        found = self.explained.regimes.likely(self.explained.odds)
        return None if found is None else (self.explained.regimes, *found)

    @property
    def changes(self) -> tuple[tuple[str, float], ...]:
        """Parameters with the values from which on the model changes; empty where no change is likely."""
        if self._sides is None:
            return ()
        change = self._sides[2]
        return ((self.parameters[change.parameter], float(change.value)),)

    @property
    def _sides(self) -> tuple[Regimes, int, Change] | None:
        """Regimes, which of them, and its change, where there are power laws below a value and above it."""
        if self._change is None:
            return None
        regimes, law, _ = self._change
        change = regimes.changes[law]
        return (regimes, law, change) if isinstance(change, Change) else None

    @property
    def terms(self) -> list[dict[str, Any]]:
        """Those of the formula if it is likely, else the power law at the largest measured values.

        After a change, where one is likely.
        """
        if self.answer is not None:
            return terms_of(self.answer)
        if self._sides is not None:
            regimes, law, _ = self._sides
            return regimes.terms(law, self.parameters, above=True)
        return self._power_law()

    @property
    def normal_form(self) -> str:
        """The same as text; both sides of a change, where one is likely."""
        if self._sides is None:
            return sum_text(self.terms)
        regimes, law, change = self._sides
        return regimes.text(law, change, self.parameters)

    @property
    def expression(self) -> str:
        """The same: curves have no short formula, and they change one by little."""
        return self.normal_form

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know: of the measurements, and how the prediction comes from the expression."""
        if self._change is not None:
            regimes, law, probability = self._change
            what = regimes.note(law, self.parameters, probability)
        elif self.answer is None:
            what = _CURVES + self._sum_of_parts()
        elif self.share < _ALONE:
            what = f"the formula has a probability of {self.share:.2f}: curves are possible, too"
        else:
            return self.remarks
        return (*self.remarks, what)

    def _sum_of_parts(self) -> str:
        found = self.explained.sum_of_parts(self.parameters)
        if found is None or found[1] < LIKELY:
            return ""
        return f"; parts add up ({found[0]}) with a probability of {found[1]:.2f}"

    def predictive(self, points: Sequence[Point]) -> Predictive:
        """Return the mixture over all explanations at each point; NaN at points of another category."""
        x = coordinates(points, self.parameters)
        weights, mean, spread = self._mixture(x)
        value = mixture_quantile(weights, mean, spread, 0.5)
        if self.share >= LIKELY:
            formula = self.explained.formula_at(x)
            value = np.where(in_middle(formula, weights, mean, spread), formula, value)
        own = Predictive(
            value=inside(points, self.category, np.exp(value)),
            weights=weights,
            mean=np.minimum(mean + self.explained.risen(x), LARGEST_LOG),
            spread=spread,
            noise=self.noise,
            shared=self.shared_noise,
        )
        return self.unvaried.predictive(own, points)

    def value(self, points: Sequence[Point]) -> Floats:
        """Return the median over all, or the formula near it; NaN at points of another category."""
        return self.predictive(points).value

    def expected(self, points: Sequence[Point]) -> Floats:
        """Return the mean over all explanations; NaN at points of another category."""
        weights, mean, spread = self._mixture(coordinates(points, self.parameters))
        logs = np.minimum(mean + np.minimum(spread, 1.0) ** 2 / 2, LARGEST_LOG)
        return inside(points, self.category, weights @ np.exp(logs))

    def belief(self, points: Sequence[Point]) -> LogBelief:
        """Return explanations that stand for all as members, each a Gaussian process.

        Where a formula is nearly certain, return what its own posterior says: thousands of hypotheses, which
        differ where runs tell them apart.
        """
        if self.share >= _CERTAIN and isinstance(self.form, Belief):
            return self.form.belief(points)
        x = coordinates(points, self.parameters)
        some = self.explained.fewer(max(_FEWEST, _NUMBERS // self.explained.dimensions))
        mean, factor = some.moments(x)
        own = LogBelief(
            weights=some.weights,
            mean=mean,
            factor=factor,
            rough=np.broadcast_to(some.rough[:, None], mean.shape),
            rough_is_measured=bool(some.weights @ some.rough > self.noise / 2),
            noise=self.noise,
        )
        return self.unvaried.belief(own, points)

    def document(self) -> dict[str, Any]:
        """Return the model as a JSON-ready object, with the probability of the formula if there is one."""
        found = document(self)
        return found if self.form is None else {**found, "probability_of_formula": self.share}

    def _mixture(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        weights, mean, spread = self.explained.mixture(x)
        return weights, np.clip(mean, -LARGEST_LOG, LARGEST_LOG), spread

    def _power_law(self) -> list[dict[str, Any]]:
        """One term: the power law that touches the mean curve at the largest measured values."""
        corner = np.array(self.corner)
        positive = np.flatnonzero(corner > 0)
        if self not in _TOUCHING:
            _TOUCHING[self] = self._value_and_slopes(corner, positive)
        value, slopes = _TOUCHING[self]
        names = [self.parameters[k] for k in positive]
        return power_law_through(value, np.log(corner[positive]), names, slopes.copy(), 3)

    def _value_and_slopes(self, corner: Floats, positive: Integers) -> tuple[float, Floats]:
        """Return the logarithm of the mean curve at a point, and its slopes along some parameters."""
        steps = np.tile(corner, (len(positive) + 1, 1))
        steps[np.arange(len(positive)) + 1, positive] *= np.exp(-_STEP)
        values = self.explained.weights @ self.explained.mean(steps)
        return float(values[0]), np.round((values[0] - values[1:]) / _STEP, 3)


_TOUCHING: WeakKeyDictionary[CurveModel, tuple[float, Floats]] = WeakKeyDictionary()
"""The power laws of models, found when they are first described: several properties tell of them."""
