"""Nodes that fail or are slow: what speaks against one, and when it is used no more. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

MOST = 2  # marks: twice may not be chance
SLOW = 1.5  # times the median of the same point's other repetitions
SLOWER = 1.0  # and at least this many seconds more than it
SAME = 600.0  # seconds within which failures of a node have the same cause
OTHERS = 2  # repetitions on other nodes to compare with


def is_slow(elapsed: float, others: Sequence[float]) -> bool:
    """Tell whether a run took far longer than the repetitions of its point on other nodes (seconds)."""
    if len(others) < OTHERS:
        return False
    usual = statistics.median(others)
    return elapsed > SLOW * usual and elapsed > usual + SLOWER


def excluded(marks: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the nodes with too much against them; ``marks`` holds reasons by node."""
    return tuple(sorted(node for node, reasons in marks.items() if len(reasons) >= MOST))
