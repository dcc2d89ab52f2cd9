"""Few points that stand for many, for model families whose fit takes long: the search for a formula, curves.

A formula of a few coefficients is as well known from a thousand points as from all: of 65,536 samples of a
matrix product, 512 give errors of 17 % (MLogQ 0.160), 1024 of 17 % (0.154), in five times the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from orchestrator.models.base import Integers
from orchestrator.models.data import Group

# Coordinates of the points that are kept, most points, and points that every category keeps at least. As many
# as are fitted within a minute on one core, with 1 to 12 parameters; chosen by hand.
_COORDINATES = 3072
_MOST = 2048
_LEAST = 128


def thinned(groups: Sequence[Group], rng: np.random.Generator) -> list[Group]:
    """Return groups with no more points than can be fitted soon, and a note in those that have more.

    Kept are the points with the smallest and largest values of every parameter, and others that are drawn.

    Parameters
    ----------
    groups
        Categories share what is kept, but keep 128 points each.
    rng
        For the draw.
    """
    categories = len({group.category for group in groups})
    return [_thinned(group, categories, rng) for group in groups]


def _thinned(group: Group, categories: int, rng: np.random.Generator) -> Group:
    number, parameters = len(group.points), len(group.parameters)
    most = max(min(_COORDINATES // max(parameters, 1), _MOST) // categories, _LEAST)
    if number <= most:
        return group
    kept = _kept(group, most, rng)
    note = f"fitted to {most} of {number} points, drawn at random beside the ends of every parameter"
    return replace(group.at_points(kept), notes=tuple((*notes, note) for notes in group.notes))


def _kept(group: Group, most: int, rng: np.random.Generator) -> Integers:
    """Return the rows of the points to keep, in ascending order."""
    ends = np.unique([*group.points.argmin(axis=0), *group.points.argmax(axis=0)]).astype(np.intp)
    others = np.setdiff1d(np.arange(len(group.points)), ends)
    return np.sort(np.concatenate([ends, rng.choice(others, most - len(ends), replace=False)]))
