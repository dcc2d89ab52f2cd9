"""Weighted sums over points of products of blocks, from which any hypothesis of them is solved.

Residuals are relative to the measured value: noise is multiplicative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Weighted sums over points: ``s1`` Σ ω z, ``szz`` Σ ω z², ``syz`` Σ ω y z, one column per product."""

    s1: Floats
    szz: Floats
    syz: Floats
    total: Floats
    s1y: Floats
    syy: Floats


def moments(products: Floats, squares: Floats, log_value: Floats, precision: Floats) -> Moments:
    """Sum over points, with residuals relative to the measured value; arrays as in `screen`."""
    scale = np.exp(-(log_value - log_value.mean(axis=1, keepdims=True)))
    weighted_y = precision * scale
    weight = weighted_y * scale
    return Moments(
        s1=weight @ products.T,
        szz=weight @ squares.T,
        syz=weighted_y @ products.T,
        total=weight.sum(axis=1),
        s1y=weighted_y.sum(axis=1),
        syy=precision.sum(axis=1),
    )
