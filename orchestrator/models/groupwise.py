"""A modeler from a fit of call paths that were measured at the same points: what all such families share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from orchestrator.models import data
from orchestrator.models.base import Model, Modeler
from orchestrator.models.noise import Located, locate
from orchestrator.models.thinning import thinned
from orchestrator.models.zero import Label, ZeroModel
from orchestrator.types import Measurements

_SEED = 0  # of the draw of points where there are too many: the same measurements give the same models


def by_group(fit: Callable[[data.Group, Located], Iterable[Model]], aggregate: str) -> Modeler:
    """Return a modeler that fits one group after another; call paths that are always zero need no fit.

    Of thousands of points some are fitted, see `thinned`.

    Parameters
    ----------
    fit
        Gives the models of a group, of which it gets the locations and noise.
    aggregate
        How repetitions become one value.
    """

    def model(measurements: Measurements) -> tuple[Model, ...]:
        found, zeros = data.groups(measurements, positive=True)
        models: dict[Label, Model] = {label: ZeroModel.of(label) for label in zeros}
        for group in thinned(found, np.random.default_rng(_SEED)):
            for item in fit(group, locate(group.values, aggregate, group.origins)):
                models[item.callpath, item.metric, item.category] = item
        return data.in_order(measurements, models)

    return model
