"""What a column of a factor costs: its size, its slopes and its bends along the nodes of a mode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.cpr.modes import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothness:
    """Weights of the penalty per entry, for a coordinate that runs from 0 to 1.

    Attributes
    ----------
    ridge
        Of the mean square: the paper's lambda.
    slope
        Of the mean square of the first derivative: draws towards constants, allows jumps.
    bend
        Of the mean square of the second derivative: draws towards straight lines.
    """

    ridge: float = 1e-4
    slope: float = 0.0
    bend: float = 0.0


DEFAULT = Smoothness()


def diagonals(mode: Mode, smoothness: Smoothness, entries: float) -> Floats:
    """Return the diagonal and the next two of the penalty, shape (3, nodes).

    The weights are of integrals, so that they mean the same for any number of nodes, evenly spaced or not.
    Neighbouring levels of a category have nothing in common: only their size counts.
    """
    nodes = len(mode)
    found = np.zeros((3, nodes))
    found[0] = entries * smoothness.ridge / nodes
    if mode.is_categorical or nodes < 2:
        return found
    gaps = np.diff(mode.nodes) / (mode.nodes[-1] - mode.nodes[0])
    slopes = np.diff(np.eye(nodes), axis=0) / gaps[:, None]
    full = entries * smoothness.slope * (slopes.T * gaps) @ slopes
    if nodes > 2:
        widths = (gaps[1:] + gaps[:-1]) / 2
        bends = np.diff(slopes, axis=0) / widths[:, None]
        full += entries * smoothness.bend * (bends.T * widths) @ bends
    for k in range(min(3, nodes)):
        found[k, : nodes - k] += np.diag(full, -k)
    return found
