"""The modeler of scikit-learn's learners: those that predict best what was left out."""

from __future__ import annotations

from orchestrator.models.base import Modeler
from orchestrator.models.learned.family import candidates, extrapolators
from orchestrator.models.regression.choice import Family
from orchestrator.models.regression.modeler import modeler_of


def modeler(*, aggregate: str = "auto", combine: bool = True, seed: int = 0) -> Modeler:
    """Return a modeler of learners (Hutter and Solomonik, section 6.0.4, and some of our own).

    Parameters
    ----------
    aggregate
        How repetitions become one value, as for ``pmnf``.
    combine
        Whether several learners may be combined; otherwise the best one is taken.
    seed
        Of the random parts of fits and of their comparison.

    Raises
    ------
    ModelError
        For an unknown aggregate; and by the modeler when no call path can be fitted.
    """
    family = Family(inside=candidates, outside=extrapolators, combine=combine)
    return modeler_of(family, aggregate=aggregate, seed=seed)
