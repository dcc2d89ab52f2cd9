"""A fitted performance model: the winning hypothesis, and the posterior over all that remain possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from orchestrator.models.base import (
    Category,
    Floats,
    Model,
    coordinates,
    document,
    inside,
)
from orchestrator.models.belief import LogBelief
from orchestrator.models.intervals import FromPredictive, Predictive
from orchestrator.models.pmnf.correction import factors_text
from orchestrator.models.pmnf.interplay import Interplay
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.models.pmnf.unchecked import Beyond
from orchestrator.models.symbolic import sum_text
from orchestrator.models.unseen import Allowance
from orchestrator.models.unvaried import Unvaried
from orchestrator.types import Point


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PmnfModel(FromPredictive):
    """A model in performance model normal form, with its uncertainty."""

    callpath: str
    metric: str
    parameters: tuple[str, ...]  # numeric parameters in the model's coordinates
    category: Category  # value of each categorical parameter for which the model holds
    smape: float  # of the expression, on the fitted locations, 0..200 %
    noise: float  # relative standard deviation of a single repetition
    notes: tuple[str, ...]
    posterior: Posterior  # hypotheses with weights; the first is the expression
    shared_noise: float = 0.0  # part of ``noise`` that repetitions of one origin have in common
    # What intervals allow for beyond the measured range; None for no more than the posterior says.
    unseen: Allowance | None = None
    # Powers of parameters that its terms may have besides; None where that is not looked at.
    interplay: Interplay | None = None
    # What predicts where no measured value checks an exact sum; None for other formulas.
    beyond: Beyond | None = None
    unvaried: Unvaried = field(default_factory=Unvaried)  # parameters that were measured at one value
    # Places of the points that were taken for outliers, among those that were fitted.
    outliers: tuple[int, ...] = ()

    @property
    def _allowances(self) -> list[Allowance]:
        return [item for item in (self.unseen, self.interplay) if item is not None]

    @property
    def is_exact(self) -> bool:
        """Whether the values are exact, and the members are sums that explain all of them."""
        return self.beyond is not None

    @property
    def terms(self) -> list[dict[str, Any]]:
        """JSON-ready terms of the winning hypothesis; a constant has no factors."""
        result: list[dict[str, Any]] = []
        coefficients, exponents = self.posterior.coefficients[0], self.posterior.exponents[0]
        for k, coefficient in enumerate(coefficients):
            if coefficient == 0:
                continue
            factors = [
                {"parameter": name, "exponent": float(i), "log_exponent": float(j)}
                for name, (i, j) in zip(self.parameters, exponents[k - 1] if k else (), strict=False)
                if i or j
            ]
            result.append({"coefficient": float(coefficient), "factors": factors})
        return result

    @property
    def expression(self) -> str:
        """The prediction as text that Python can evaluate: terms, times the correction if there is one."""
        correction = self.posterior.correction
        factors = factors_text(correction, self.parameters) if correction is not None else []
        if not factors:
            return self.normal_form
        main = f"({self.normal_form})" if len(self.terms) > 1 else self.normal_form
        return " * ".join([main, *factors])

    @property
    def normal_form(self) -> str:
        """The terms alone, without the correction."""
        return sum_text(self.terms)

    def predictive(self, points: Sequence[Point]) -> Predictive:
        """Return the mixture over hypotheses at each point; NaN at points of another category."""
        x = coordinates(points, self.parameters)
        with np.errstate(all="ignore"):  # far out, and at zero, there may be no number
            mean, spread = self.posterior.log_moments(x)
            value = inside(points, self.category, np.exp(mean[0]))
        for allowance in self._allowances:
            spread = np.hypot(spread, np.linalg.norm(allowance.causes(x), axis=0))
        own = Predictive(
            value=value,
            weights=self.posterior.weights,
            mean=mean,
            spread=spread,
            noise=self.noise,
            shared=self.shared_noise,
        )
        if self.beyond is not None:
            found = self.beyond.predictive(own, self.posterior, x, points)
            own = replace(found, value=inside(points, self.category, found.value))
        return self.unvaried.predictive(own, points)

    def value(self, points: Sequence[Point]) -> Floats:
        """Return the value of the expression; NaN at points of another category."""
        x = coordinates(points, self.parameters)
        if self.beyond is not None and self.beyond.share(self.posterior, x).any():
            return self.predictive(points).value
        return inside(points, self.category, self.posterior.best(x))

    def expected(self, points: Sequence[Point]) -> Floats:
        """Return the mean over hypotheses and coefficients; NaN at points of another category."""
        x = coordinates(points, self.parameters)
        mean = self.posterior.expected(x)
        if self.beyond is not None:
            mean = self.beyond.expected(mean, self.posterior, x, points)
        return inside(points, self.category, mean)

    def belief(self, points: Sequence[Point]) -> LogBelief:
        """Return the mixture over hypotheses, each with a Gaussian over its coefficients."""
        x = coordinates(points, self.parameters)
        mean, factor, rough = self.posterior.log_factors(x)
        own = LogBelief(
            weights=self.posterior.weights,
            mean=mean,
            factor=factor,
            rough=rough,
            rough_is_measured=self.posterior.correction is not None,
            noise=self.noise,
        )
        for allowance in self._allowances:
            own = own.with_causes(allowance.causes(x))
        if self.beyond is not None:
            own = self.beyond.belief(own, self.posterior, x, points)
        return self.unvaried.belief(own, points)

    def beside(self, model: Model | None) -> PmnfModel:
        """Return an exact sum that leaves what nothing checks to a model, where there is a better one."""
        if self.beyond is None or model is None:
            return self
        return replace(self, beyond=replace(self.beyond, model=model))

    def document(self) -> dict[str, Any]:
        """Return the model as a JSON-ready object."""
        return document(self)
