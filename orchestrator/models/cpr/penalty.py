"""What a column of a factor costs: its size, and its slopes, bends and jumps along the nodes of a mode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.cpr.modes import Mode

# A jump below this is none: bounds the weight of gaps across which a factor is constant.
_NO_JUMP = 1e-2


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothness:
    """Weights of the penalty, for a coordinate that runs from 0 to 1 and entries of variance 1."""

    ridge: float = 1e-4  # of the mean square, per entry: the paper's lambda
    slope: float = 0.0  # of the integral of the squared first derivative, per factor
    bend: float = 0.0  # of the integral of the squared second derivative, per factor
    jump: float = 0.0  # of the total variation, per factor: allows few jumps and is constant between them


DEFAULT = Smoothness()


def diagonals(mode: Mode, smoothness: Smoothness, entries: float, factor: Floats | None = None) -> Floats:
    """Return the diagonal and the next two of the penalty, shape (3, nodes).

    The weights are of integrals, so that they mean the same for any number of nodes, evenly spaced or not.
    Neighbouring levels of a category have nothing in common: only their size counts.

    Parameters
    ----------
    mode
        Whose nodes.
    smoothness
        The weights.
    entries
        How many entries there are.
    factor
        The factor so far, shape (nodes, rank): the total variation costs as much as squares that are weighted
        by its jumps (iteratively reweighted least squares). All columns jump at the same nodes.
    """
    nodes = len(mode)
    bands = np.zeros((3, nodes))
    bands[0] = entries * smoothness.ridge / nodes
    if mode.is_categorical or nodes < 2:
        return bands
    gaps = np.diff(mode.nodes) / (mode.nodes[-1] - mode.nodes[0])
    weights = smoothness.slope / gaps
    if smoothness.jump and factor is not None:
        jumps = np.sqrt(np.mean(np.diff(factor, axis=0) ** 2, axis=1))
        weights += smoothness.jump / (jumps + _NO_JUMP)
    bands[0, :-1] += weights
    bands[0, 1:] += weights
    bands[1, :-1] -= weights
    if smoothness.bend and nodes > 2:
        widths = (gaps[1:] + gaps[:-1]) / 2
        slopes = np.diff(np.eye(nodes), axis=0) / gaps[:, None]
        bends = np.diff(slopes, axis=0)
        full = smoothness.bend * (bends.T / widths) @ bends
        for k in range(3):
            bands[k, : nodes - k] += np.diag(full, -k)
    return bands
