"""How well predictions agree with measured values: the metrics of Hutter and Solomonik, High-Dimensional
Performance Modeling via Tensor Completion, section 2.2, table 1, divided by the number of values; and how
many measured values intervals hold.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from orchestrator.models.base import Floats, finite

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Of ``log(predicted/measured)``: what a box plot shows."""


class Errors(TypedDict):
    """Table 1, with predictions m, measured values y and relative errors ε = m/y - 1; None without a number.

    ``mlogq`` is the mean of ``|log(m/y)|`` and ``mlogq2`` that of its square; ``mape`` (percent) the mean of
    ``|ε|``; ``smape`` (percent, 0..200) that of ``2 |m - y| / (m + y)``; ``lgmape`` that of ``log |ε|``;
    ``mae`` and ``mse`` those of ``|m - y|`` and ``(m - y)²`` in the unit of the response and its square.
    ``log_errors`` are the `QUANTILES` of ``log(m/y)``. Logarithms are natural.
    """

    mlogq: float | None
    mlogq2: float | None
    mape: float | None
    smape: float | None
    lgmape: float | None
    mae: float | None
    mse: float | None
    log_errors: list[float] | None


class Coverage(TypedDict):
    """``coverage``: share of measured values in their intervals; ``width``: geometric mean of high/low."""

    coverage: float | None
    width: float | None


def errors(predicted: Floats, measured: Floats) -> Errors:
    """Return the errors of positive predictions of positive measured values, both of shape (n,)."""
    if not len(measured):
        return Errors(
            mlogq=None, mlogq2=None, mape=None, smape=None, lgmape=None, mae=None, mse=None, log_errors=None
        )
    logs = np.log(predicted) - np.log(measured)
    off = np.abs(predicted - measured)
    with np.errstate(divide="ignore"):  # an exact prediction: the mean of its logarithm is no number
        lgmape = np.log(off / measured).mean()
    return Errors(
        mlogq=finite(np.abs(logs).mean()),
        mlogq2=finite((logs**2).mean()),
        mape=finite(100 * (off / measured).mean()),
        smape=finite(200 * (off / (predicted + measured)).mean()),
        lgmape=finite(lgmape),
        mae=finite(off.mean()),
        mse=finite((off**2).mean()),
        log_errors=[float(value) for value in np.quantile(logs, QUANTILES)],
    )


def coverage(low: Floats, high: Floats, measured: Floats) -> Coverage:
    """Return how many measured values intervals hold; all of shape (n,). One without ends holds nothing."""
    if not len(measured):
        return Coverage(coverage=None, width=None)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(high) - np.log(low)
    known = logs[np.isfinite(logs)]
    return Coverage(
        coverage=float(np.mean((low <= measured) & (measured <= high))),
        width=finite(np.exp(known.mean())) if len(known) else None,
    )
