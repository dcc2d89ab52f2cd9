"""A model of splines: predictions with intervals, and beside them the formula and the tests of its terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from orchestrator.models.regression.model import RegressionModel, fields_of
from orchestrator.models.splines.fitting import Splines
from orchestrator.models.splines.significance import note


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SplineModel(RegressionModel):
    """One whose prediction within the measured range is a regression."""

    splines: Splines

    @classmethod
    def of(cls, model: RegressionModel, splines: Splines) -> Self:
        """Add what a regression says of its terms to a model."""
        said = note(splines.tests)
        return cls(**fields_of(model, notes=(*model.notes, *([said] if said else []))), splines=splines)

    def document(self) -> dict[str, Any]:
        """Return the model as a JSON-ready object, with the formula, its knots and the tests of its terms."""
        predictors = self.splines.design.predictors
        return {
            # Not `super()`: slots make a new class.
            **RegressionModel.document(self),
            "formula": self.splines.formula,
            "knots": {item.axis.name: item.knot_values for item in predictors if item.knots},
            "significance": [test.document for test in self.splines.tests],
        }
