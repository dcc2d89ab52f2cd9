"""Nodes that fail or are slow: which observations count against a node, and when it is excluded. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MOST = 2  # marks after which a node is excluded: a single one may be chance
SLOW = 1.5  # times the median of the same point's repetitions on other nodes
SLOWER = 1.0  # and at least this many seconds above that median
SAME = 600.0  # seconds within which failures of a node have the same cause
OTHERS = 2  # repetitions on other nodes to compare with


def is_slow(elapsed: float, others: Sequence[float]) -> bool:
    """Return whether a run took far longer than the repetitions of its point on other nodes (seconds)."""
    if len(others) < OTHERS:
        return False
    import statistics  # those who look at a campaign seldom need it

    usual = statistics.median(others)
    return elapsed > SLOW * usual and elapsed > usual + SLOWER


def excluded(marks: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the nodes with too many marks; ``marks`` holds the reasons by node."""
    return tuple(sorted(node for node, reasons in marks.items() if len(reasons) >= MOST))
