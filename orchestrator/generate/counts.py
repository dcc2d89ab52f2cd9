"""What a generated program counts at a point: the arithmetic of `orchestrator.generate.program`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from orchestrator.generate.complexity import RANKS, Element, Function
from orchestrator.generate.population import Range

# Iterations at the smallest values: of the only, or of an outer loop; and of a loop inside another.
OUTER, SINGLE, INNER = 10_000, 1_000_000, 100
# Calls at the smallest values where their number grows.
REPEATED = 500
# Elements (double, 8 bytes) of a message at the smallest values; more where every rank has a part of it, so
# that parts can be whole elements without changing the growth.
MESSAGE, DIVIDED = 8192, 262_144
PARTS = ("allgather", "gather", "scatter")


def message(operation: str) -> int:
    """Elements of the whole message at the smallest values."""
    return DIVIDED if operation in PARTS else MESSAGE


def growth(elements: Iterable[Element], range_: Range, x: Mapping[str, float]) -> float:
    """Growth of a product of elements from the smallest values to ``x``."""
    total = 1.0
    for element in elements:
        value, low = x[element.parameter], range_.smallest[element.parameter]
        total *= (value / low) ** element.exponent * (np.log2(value) / np.log2(low)) ** element.log_exponent
    return float(total)


def loop_counts(function: Function, range_: Range, x: Mapping[str, float]) -> list[float]:
    """Iterations of every loop; an inner one has them on average (see ``share`` in the header)."""
    loops = function.computation.loops
    if function.computation.arrangement == "sequential" or len(loops) == 1:
        return [float(round(SINGLE * growth([loop], range_, x))) for loop in loops]
    counts = [float(round(OUTER * growth(loops[:1], range_, x)))]
    for loop in loops[1:]:
        counts.append(float(np.floor(counts[-1] * INNER * growth([loop], range_, x))))
    return counts


def calls(function: Function, range_: Range, x: Mapping[str, float]) -> float:
    """How often the MPI function is called."""
    element = function.communication.calls
    return float(round(REPEATED * growth([element], range_, x))) if element else 1.0


def bytes_per_rank(function: Function, range_: Range, x: Mapping[str, float]) -> dict[str, float]:
    """Mean bytes sent and received per rank in one call, as Score-P counts them.

    ``p`` is taken to be even where ranks send and receive in pairs.
    """
    operation, p = function.communication.operation, x[RANKS]
    length = message(operation) * growth(function.communication.message, range_, x)
    count, part = 8.0 * round(length), 8.0 * max(1, round(length / p))
    sent, received = {
        "barrier": (0.0, 0.0),
        "allgather": (p * part, p * part),
        "allreduce": (p * count, p * count),
        "bcast": (count, count),
        "gather": (part, part),
        "scatter": (part, part),
        "reduce": (count, count),
        "send": (count / 2, count / 2),
        "recv": (count / 2, count / 2),
    }[operation]
    return {"bytes_sent": sent, "bytes_received": received} if sent else {}
