"""Formulas as a learner: what the modeler of formulas finds, compared with learners on the same samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Floats, Model, Modeler, holds_at
from orchestrator.models.regression.learner import Fitted, Learner
from orchestrator.models.regression.samples import Axis, Samples, decoded
from orchestrator.models.symbolic import Symbolic
from orchestrator.types import Measurement, Measurements

FORMULA = "formula"
"""The family's name among learners."""

# Samples that a search for formulas takes: its time grows with their number, its answer hardly.
_MOST = 200


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """Models of a modeler of formulas, one per combination of categories, as a function of coordinates."""

    axes: tuple[Axis, ...]
    models: tuple[Model, ...]

    @property
    def symbolic(self) -> Symbolic | None:
        """The model, where there is one for all categories and it reads as a sum of terms."""
        single = self.models[0] if len(self.models) == 1 else None
        return single if isinstance(single, Symbolic) and not single.category else None

    @property
    def text(self) -> str:
        """The formula, or how many there are."""
        if len(self.models) == 1:
            return self.models[0].expression
        return f"{len(self.models)} formulas, one per combination of categories"

    def at(self, x: Floats) -> Floats:
        """Return logarithms at coordinates (n, axes), shape (n,); NaN for a combination never seen."""
        points = decoded(self.axes, x)
        logs = np.full(len(x), np.nan)
        for model in self.models:
            here = np.array([k for k, point in enumerate(points) if holds_at(model, point)], dtype=np.intp)
            if len(here):
                with np.errstate(divide="ignore", invalid="ignore"):
                    logs[here] = np.log(model.value([points[k] for k in here]))
        return logs


def formula_learner(modeler: Modeler) -> Learner:
    """Return the learner of a modeler whose models are formulas."""

    def fit(samples: Samples, rng: np.random.Generator) -> Fitted:
        points = decoded(samples.axes, samples.x)
        values = {point: (float(value),) for point, value in zip(points, np.exp(samples.y), strict=True)}
        names = tuple(axis.name for axis in samples.axes)
        models = modeler(Measurements(names, (Measurement("", "", values),)))
        return Formula(samples.axes, models)

    return Learner(family=FORMULA, name="formula", fit=fit, most=_MOST)
