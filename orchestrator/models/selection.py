"""One model from formulas and curves: a short formula where it explains the measurements, else curves.

The performance model normal form is the language of the answer where it is as good as the rest. What it
leaves unexplained is followed by curves around it, and where it explains too little, curves alone remain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from orchestrator.models import data
from orchestrator.models.base import Category, Floats, Integers, Model, Modeler
from orchestrator.models.curves.model import LIKELY, CurveModel
from orchestrator.models.curves.modeler import Known, fit, zero
from orchestrator.models.curves.prior import Sizes, learned
from orchestrator.models.noise import Located, locate
from orchestrator.models.pmnf.build import AT_EDGE, UNFIT
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.modeler import fitter
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.types import Measurements

# Most formulas that are weighed against curves: the most probable ones.
_FORMULAS = 30
# Exponent above which a formula becomes improbable: the largest of the normal form as published.
_STEEPEST = 3.0


def modeler(
    *,
    exponents: str | Sequence[Sequence[float]] = "paper",
    negative_exponents: str | bool = "auto",
    aggregate: str = "auto",
    members: int = 200,
    wide: bool = True,
    sizes: str | Sizes = "all",
) -> Modeler:
    """Return a modeler that weighs the formulas of ``pmnf`` against ``curves``.

    Parameters
    ----------
    exponents, negative_exponents, aggregate, members, wide
        Options of ``pmnf``.
    sizes
        Option of ``curves``.

    Raises
    ------
    ModelError
        For an option that makes no sense; and by the modeler when no call path can be fitted.
    """
    forms = fitter(
        exponents=exponents,
        negative_exponents=negative_exponents,
        aggregate=aggregate,
        members=members,
        wide=wide,
    )

    typical = learned(sizes) if isinstance(sizes, str) else sizes

    def model(measurements: Measurements) -> tuple[Model, ...]:
        found, zeros = data.groups(measurements, positive=True)
        models: dict[tuple[str, str, Category], Model] = {label: zero(*label) for label in zeros}
        for group in found:
            for item in weighed(group, locate(group.values, aggregate, group.origins)):
                models[item.callpath, item.metric, item.category] = item
        return data.in_order(measurements, models)

    def weighed(group: data.Group, located: Located) -> Iterable[Model]:
        models = {(item.callpath, item.metric): item for item in forms(group, located)}
        own = [models[label] for label in group.labels]
        known = Known(_first(own), lambda row: NormalForms.of(own[row].posterior), own)
        more = {(item.callpath, item.metric): item for item in fit(group, located, typical, known)}
        curves = {label: replace(item, remarks=_notes(models[label], item)) for label, item in more.items()}
        return [*own, *curves.values()]

    return model


def _notes(form: Model, model: CurveModel) -> tuple[str, ...]:
    """Return the notes of a formula that hold where it is only one explanation of several."""
    wrong = (UNFIT,) if model.share >= LIKELY else (UNFIT, AT_EDGE)
    return tuple(note for note in form.notes if not note.startswith(wrong))


def _first(models: Sequence[PmnfModel]) -> NormalForms:
    """Return the most probable hypothesis of every model."""
    terms = max(item.posterior.exponents.shape[1] for item in models)
    members = [item.posterior for item in models]
    exponents = np.zeros((len(models), terms, *members[0].exponents.shape[2:]))
    coefficients = np.zeros((len(models), terms + 1))
    for k, posterior in enumerate(members):
        used = posterior.exponents.shape[1]
        exponents[k, :used], coefficients[k, : used + 1] = posterior.exponents[0], posterior.coefficients[0]
    return NormalForms(
        Posterior(
            weights=np.ones(len(models)),
            exponents=exponents,
            coefficients=coefficients,
            covariance=np.empty((len(models), 0, 0)),
            misfit=np.zeros(len(models)),
        )
    )


@dataclass(frozen=True, slots=True)
class NormalForms:
    """Hypotheses of a posterior as formulas around which there may be curves."""

    posterior: Posterior

    @classmethod
    def of(cls, posterior: Posterior) -> NormalForms:
        """Keep the most probable hypotheses, without their correction: the curves do its work."""
        kept = np.argsort(-posterior.weights, kind="stable")[:_FORMULAS]
        kept = np.concatenate([[0], kept[kept != 0]])
        return cls(
            Posterior(
                weights=posterior.weights[kept],
                exponents=posterior.exponents[kept],
                coefficients=posterior.coefficients[kept],
                covariance=posterior.covariance[kept],
                misfit=posterior.misfit[kept],
            )
        )

    @property
    def weights(self) -> Floats:
        """Their probabilities among all hypotheses, shape (formulas,)."""
        return self.posterior.weights

    @property
    def factors(self) -> Integers:
        """How many powers and logarithms each has, shape (formulas,)."""
        used = (self.posterior.coefficients[:, 1:] != 0)[:, :, None, None]
        return np.asarray(((self.posterior.exponents != 0) & used).sum(axis=(1, 2, 3)), np.intp)

    @property
    def steepness(self) -> Floats:
        """By how much exponents exceed `_STEEPEST`, shape (formulas,)."""
        used = self.posterior.coefficients[:, 1:] != 0
        beyond = np.maximum(self.posterior.exponents[..., 0] - _STEEPEST, 0) * used[:, :, None]
        return np.asarray(beyond.sum(axis=(1, 2)), np.float64)

    @property
    def coefficients(self) -> Floats:
        """Constant first, shape (formulas, coefficients)."""
        return self.posterior.coefficients

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        """Return logarithms (formulas, n), and their slopes by coefficients (formulas, coefficients, n)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.posterior.log_slopes(x)
