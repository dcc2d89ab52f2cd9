"""One model from two families: a short formula where it explains the measurements, else curves beside it.

Each explanation counts with its probability (Bayesian model averaging: Hoeting et al., Statistical Science,
1999). A formula that was chosen among thousands must explain the measurements better than chance among
thousands would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.models.base import Category, Floats, Model, Modeler, Prediction, document, unit_of
from orchestrator.models.belief import LogBelief, ModelWithBelief, has_belief
from orchestrator.models.curves.model import CurveModel
from orchestrator.models.curves.modeler import modeler as gaussian
from orchestrator.models.curves.regression import evidence_of_residuals
from orchestrator.models.intervals import Predictive, predictive
from orchestrator.models.pmnf.modeler import modeler as pmnf
from orchestrator.models.symbolic import Symbolic, power_text, terms_of
from orchestrator.types import Measurements, Point

# Natural logarithm of how much better a formula must explain the measurements, because the best of thousands
# is looked at. Chosen by hand: from 20 on, functions in the normal form are lost (docs/models.md).
PRICE = 15.0
# Explanations less probable than this do not count.
_NEGLIGIBLE = 1e-3
_ZERO = 1e-300  # keeps the logarithm of a value of zero finite


def modeler(
    *,
    exponents: str | Sequence[Sequence[float]] = "paper",
    negative_exponents: str | bool = "auto",
    aggregate: str = "auto",
    members: int = 200,
    wide: bool = True,
) -> Modeler:
    """Return a modeler that combines ``pmnf`` and ``curves``, each with its probability.

    Parameters
    ----------
    exponents, negative_exponents, aggregate, members, wide
        Options of ``pmnf``.

    Raises
    ------
    ModelError
        For an option that makes no sense; and by the modeler when no call path can be fitted.
    """
    forms = pmnf(
        exponents=exponents,
        negative_exponents=negative_exponents,
        aggregate=aggregate,
        members=members,
        wide=wide,
    )
    curves = gaussian(aggregate=aggregate)

    def model(measurements: Measurements) -> tuple[Model, ...]:
        found = {(item.callpath, item.metric, item.category): item for item in curves(measurements)}
        return tuple(
            _combined(form, found.get((form.callpath, form.metric, form.category)))
            for form in forms(measurements)
        )

    return model


def _combined(form: Model, curve: Model | None) -> Model:
    if not isinstance(curve, CurveModel) or not has_belief(form) or curve.curves is None:
        return form
    share = probability(form, curve)
    if share > 1 - _NEGLIGIBLE:
        return form
    return curve if share < _NEGLIGIBLE else Blend(form=form, curve=curve, share=share)


def probability(form: Model, curve: CurveModel) -> float:
    """Return the probability of a formula, where curves through the same measurements are the alternative."""
    return float(1 / (1 + np.exp(np.clip(PRICE - advantage(form, curve), -500, 500))))


def advantage(form: Model, curve: CurveModel) -> float:
    """Return by how much a formula explains the measurements better than curves do, as a log ratio.

    Its coefficients cost something here (`evidence_of_residuals`), that it was chosen among many does not.
    """
    assert curve.curves is not None
    design, category = curve.curves.design, dict(curve.category)
    points = [
        Point.of({**dict(zip(curve.parameters, map(float, x), strict=True)), **category})
        for x in design.points
    ]
    residuals = curve.curves.measured - np.log(np.maximum(form.value(points), _ZERO))
    evidence = evidence_of_residuals(residuals, design.count, len(terms_of(form)), design.noise)
    return evidence - curve.curves.evidence


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Blend:
    """A formula and curves, both possible.

    Attributes
    ----------
    form, curve
        The two explanations.
    share
        Probability of the formula.
    """

    form: ModelWithBelief
    curve: CurveModel
    share: float

    @property
    def callpath(self) -> str:  # noqa: D102
        return self.form.callpath

    @property
    def metric(self) -> str:  # noqa: D102
        return self.form.metric

    @property
    def parameters(self) -> tuple[str, ...]:
        """Those of both."""
        return self.form.parameters

    @property
    def category(self) -> Category:
        """That of both."""
        return self.form.category

    @property
    def _likelier(self) -> Model:
        return self.form if self.share >= 0.5 else self.curve

    @property
    def expression(self) -> str:
        """The weighted geometric mean of both expressions."""
        parts = ((self.form, self.share), (self.curve, 1 - self.share))
        return " * ".join(power_text(f"({model.expression})", round(share, 3)) for model, share in parts)

    @property
    def normal_form(self) -> str:
        """That of the more probable explanation."""
        likelier = self._likelier
        return likelier.normal_form if isinstance(likelier, Symbolic) else likelier.expression

    @property
    def terms(self) -> list[dict[str, Any]]:
        """Those of the more probable explanation."""
        return terms_of(self._likelier)

    @property
    def noise(self) -> float:
        """That of the formula."""
        return self.form.noise

    @property
    def smape(self) -> float:
        """That of the more probable explanation."""
        return self._likelier.smape

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of both, and how probable each is."""
        what = f"a formula with probability {self.share:.2g}, a Gaussian process with {1 - self.share:.2g}"
        return tuple(dict.fromkeys((*self.form.notes, *self.curve.notes, what)))

    def predict(self, points: Sequence[Point]) -> Prediction:
        """Predict with the central 90 % of the mixture."""
        return self.predictive(points).prediction(unit_of(self.metric))

    def predictive(self, points: Sequence[Point]) -> Predictive:
        """Return the mixture of both at each point."""
        shared = predictive(self.form, points[:0]).shared
        return Predictive.of_belief(self.value(points), self.belief(points), shared)

    def value(self, points: Sequence[Point]) -> Floats:
        """Return the weighted geometric mean of both values."""
        form, curve = (np.maximum(model.value(points), _ZERO) for model in (self.form, self.curve))
        return np.exp(self.share * np.log(form) + (1 - self.share) * np.log(curve))

    def expected(self, points: Sequence[Point]) -> Floats:
        """Return the weighted mean of both means."""
        return self.share * self.form.expected(points) + (1 - self.share) * self.curve.expected(points)

    def belief(self, points: Sequence[Point]) -> LogBelief:
        """Return the members of both."""
        form, curve = self.form.belief(points), self.curve.belief(points)
        size = form.factor.shape[1], curve.factor.shape[1]
        widened = [
            np.pad(part.factor, ((0, 0), (0, max(size) - part.factor.shape[1]), (0, 0)))
            for part in (form, curve)
        ]
        return LogBelief(
            weights=np.concatenate([self.share * form.weights, (1 - self.share) * curve.weights]),
            mean=np.concatenate([form.mean, curve.mean]),
            factor=np.concatenate(widened),
            rough=np.concatenate([form.rough, curve.rough]),
            rough_is_measured=form.rough_is_measured,
            noise=self.noise,
        )

    def document(self) -> dict[str, Any]:
        """Return the model as a JSON-ready object, with the probability of the formula."""
        return {**document(self), "probability_of_formula": self.share}
