"""Weighted sums over points of products of blocks, from which any hypothesis of them is solved.

Residuals are relative to the measured value: noise is multiplicative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Weighted sums over points, with products z, values y and weights ω.

    ``s1`` Σ ω z, ``szz`` Σ ω z² and ``syz`` Σ ω y z have the shape (call paths, products); ``total`` Σ ω,
    ``s1y`` Σ ω y and ``syy`` Σ ω y² have the shape (call paths,).
    """

    s1: Floats
    szz: Floats
    syz: Floats
    total: Floats
    s1y: Floats
    syy: Floats


def moments(products: Floats, squares: Floats, log_value: Floats, precision: Floats) -> Moments:
    """Sum over points, with residuals relative to the measured value.

    Parameters
    ----------
    products, squares
        Products of blocks, and their squares, shape (products, points).
    log_value, precision
        As in `orchestrator.models.pmnf.candidates.Searched`, shape (call paths, points).
    """
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
