"""One model from formulas and curves: a short formula where it explains the measurements, else curves.

The performance model normal form is the language of the answer where it is as good as the rest. What it
leaves unexplained is followed by curves around it, and where it explains too little, curves alone remain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from orchestrator.models.base import Category, Floats, Model, Modeler
from orchestrator.models.curves.modeler import Found, fit
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.modeler import modeler as pmnf
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.types import Measurements

# Most formulas that are weighed against curves: the most probable ones.
_FORMULAS = 30


def modeler(
    *,
    exponents: str | Sequence[Sequence[float]] = "paper",
    negative_exponents: str | bool = "auto",
    aggregate: str = "auto",
    members: int = 200,
    wide: bool = True,
) -> Modeler:
    """Return a modeler that weighs the formulas of ``pmnf`` against ``curves``.

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

    def model(measurements: Measurements) -> tuple[Model, ...]:
        known = {
            (item.callpath, item.metric, item.category): item
            for item in forms(measurements)
            if isinstance(item, PmnfModel)
        }

        def found(label: tuple[str, str], category: Category) -> Found:
            form = known.get((*label, category))
            return (None, None) if form is None else (NormalForms.of(form.posterior), form)

        return tuple(
            replace(item, remarks=known[key].notes)
            if (key := (item.callpath, item.metric, item.category)) in known
            else item
            for item in fit(measurements, aggregate, found)
        )

    return model


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
    def factors(self) -> int:
        """How many powers and logarithms the first one has."""
        return int(np.count_nonzero(self.posterior.exponents[0]))

    @property
    def coefficients(self) -> Floats:
        """Constant first, shape (formulas, coefficients)."""
        return self.posterior.coefficients

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        """Return logarithms (formulas, n), and their slopes by coefficients (formulas, coefficients, n)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.posterior.log_slopes(x)
