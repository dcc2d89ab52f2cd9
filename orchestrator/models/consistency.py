"""Models that contradict each other: a call path that is predicted to take less than what it includes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.models.base import Model, holds_at
from orchestrator.models.callpaths import SEPARATOR, callers, parts
from orchestrator.types import ROOTS, Point

# Smaller differences, relative to the sum of the children, are rounding of what a program prints.
_SLACK = 0.02
_WORTH_A_WORD = 0.05  # of the sum of the children; chosen by hand

Values = Mapping[str, float]
"""Values of one metric in one run, by call path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """A call path, its predicted value, and the predicted sum of the ``children`` that it includes.

    ``beyond``: the difference is larger than the intervals of both permit.
    """

    callpath: str
    metric: str
    value: float
    children: tuple[str, ...]
    total: float
    beyond: bool


def contradictions(
    models: Sequence[Model], point: Point, runs: Iterable[Values], metric: str
) -> list[Contradiction]:
    """Return the call paths whose model predicts clearly less than those of their children together.

    Parameters
    ----------
    models
        Those of all call paths and metrics.
    point
        Where they are compared.
    runs
        Measured values of the metric. Only call paths that took at least as long as their children in every
        run are compared: others do not include them.
    metric
        The metric.
    """
    known = {model.callpath: model for model in models if model.metric == metric and holds_at(model, point)}
    result = []
    for parent, children in _including(children_of(known), list(runs)).items():
        own = known[parent].predict([point])
        predicted = [known[child].predict([point]) for child in children]
        value, total = float(own.value[0]), sum(float(part.value[0]) for part in predicted)
        if not total - value > _WORTH_A_WORD * total:  # nor where either is not known
            continue
        # The errors of call paths are taken as independent.
        possible = math.hypot(
            float(own.high[0]) - value, *(float(part.value[0] - part.low[0]) for part in predicted)
        )
        result.append(
            Contradiction(
                callpath=parent,
                metric=metric,
                value=value,
                children=children,
                total=total,
                beyond=total - value > possible,
            )
        )
    return sorted(result, key=lambda item: item.value - item.total)


def children_of(known: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the direct children of every call path that has some.

    Those of the whole program are the outermost call paths, if no call path has its name before its own.
    """
    children: dict[str, list[str]] = {}
    there = set(known)
    for callpath in sorted(there):
        above = callers(callpath)[1:]
        if above and above[0] in there:
            children.setdefault(above[0], []).append(callpath)
    for root in ROOTS:
        outermost = [name for name in sorted(there) if name != root and len(parts(name)) == 1]
        if root in there and root not in children and outermost:
            children[root] = outermost
    return {parent: tuple(names) for parent, names in children.items()}


def _including(known: Mapping[str, tuple[str, ...]], runs: Sequence[Values]) -> dict[str, tuple[str, ...]]:
    """Return the children of call paths that took at least as long as they, in every run that has all."""
    found = {}
    for parent, children in known.items():
        pairs = [
            (run[parent], sum(run[child] for child in children))
            for run in runs
            if parent in run and all(child in run for child in children)
        ]
        if pairs and all(own >= (1 - _SLACK) * total for own, total in pairs):
            found[parent] = children
    return found


def sentence(item: Contradiction, point: Point) -> str:
    """Return a contradiction of times in words, with its numbers."""
    name = item.callpath.rpartition(SEPARATOR)[2]
    rest = (
        "more than their intervals permit: at least one of these models is wrong there"
        if item.beyond
        else "which their intervals permit: measure nearer to that point before you trust either"
    )
    number = len(item.children)
    together = f"the {number} parts of {name} together" if number > 1 else f"its part {item.children[0]}"
    return (
        f"{item.callpath}: predicted {item.value:.4g} s at {point}, but {together} {item.total:.4g} s, {rest}"
    )
