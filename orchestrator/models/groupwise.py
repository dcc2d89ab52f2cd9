"""A modeler from a fit of call paths that were measured at the same points: what all such families share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from orchestrator.models import data
from orchestrator.models.base import Floats, Integers, Key, Model, Modeler, key_of
from orchestrator.models.noise import Located, locate
from orchestrator.models.thinning import thinned
from orchestrator.models.zero import ZeroModel
from orchestrator.types import Measurements

_SEED = 0  # of the draw of points where there are too many: the same measurements give the same models
# Groups are located together if, filled up to equal shapes, they have at most so many times the values.
_MOST_PADDED = 10


def by_group(fit: Callable[[data.Group, Located], Iterable[Model]], aggregate: str) -> Modeler:
    """Return a modeler that fits one group after another, see `of_groups`.

    Parameters
    ----------
    fit
        Gives the models of a group, of which it gets the locations and noise.
    aggregate
        How repetitions become one value.
    """
    return of_groups(lambda groups, located: map(fit, groups, located), aggregate)


def of_groups(
    fit: Callable[[Sequence[data.Group], Sequence[Located]], Iterable[Iterable[Model]]], aggregate: str
) -> Modeler:
    """Return a modeler that fits all groups together: those of several categories may tell of each other.

    Call paths that are always zero need no fit. Of thousands of points some are fitted, see `thinned`.

    Parameters
    ----------
    fit
        Gives the models of every group, of which it gets the locations and noise.
    aggregate
        How repetitions become one value.
    """

    def model(measurements: Measurements) -> tuple[Model, ...]:
        found, zeros = data.groups(measurements)
        models: dict[Key, Model] = {key: ZeroModel.of(key) for key in zeros}
        some = thinned(found, np.random.default_rng(_SEED))
        for part in fit(some, locate_groups(some, aggregate)):
            for item in part:
                models[key_of(item)] = item
        return data.in_order(measurements, models)

    return model


def locate_groups(groups: Sequence[data.Group], aggregate: str) -> list[Located]:
    """Locate the values of every group; the noise of one category tells of that of the others.

    Without categories each group is located by itself, else all call paths in all categories at once, each
    with a noise of its own that is shrunk towards that of all (see `orchestrator.models.noise`).
    """
    sizes = [group.values.shape for group in groups]
    points, repetitions = (max(shape[axis] for shape in sizes) for axis in (1, 2)) if sizes else (0, 0)
    together = sum(shape[0] for shape in sizes) * points * repetitions
    separate = len({group.category for group in groups}) <= 1
    if separate or together > _MOST_PADDED * sum(map(math.prod, sizes)):
        return [locate(group.values, aggregate, group.origins) for group in groups]
    values = np.concatenate([_padded(group.values, points, repetitions) for group in groups])
    origins = None
    if any(group.origins is not None for group in groups):
        origins = np.concatenate([_origins(group, points, repetitions) for group in groups])
    with np.errstate(invalid="ignore"):  # where only the filler is
        located = locate(values, aggregate, origins)
    begin, result = 0, []
    for rows, here, runs in sizes:
        part = located.rows(np.arange(begin, begin + rows)).at_points(slice(here))
        shared = part.shared and replace(part.shared, origins=part.shared.origins[:, :, :runs])
        result.append(replace(part, shared=shared))
        begin += rows
    return result


def _padded(values: Floats, points: int, repetitions: int) -> Floats:
    """Return values (call paths, points, repetitions) with more of both that are NaN."""
    more = [(0, 0), (0, points - values.shape[1]), (0, repetitions - values.shape[2])]
    return np.pad(values, more, constant_values=np.nan)


def _origins(group: data.Group, points: int, repetitions: int) -> Integers:
    """Return origins of a group with more points and repetitions; those that nothing is known of differ."""
    result = data.unshared((len(group.values), points, repetitions))
    if group.origins is not None:
        known = group.origins.shape
        result[:, : known[1], : known[2]] = group.origins
    return result
