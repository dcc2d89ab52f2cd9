"""What a report is about: measurements, their models, and what is known of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from orchestrator.journal.measurements import ELAPSED
from orchestrator.models.base import Model, unit_of
from orchestrator.models.callpaths import callers, parts
from orchestrator.models.scaling import Study
from orchestrator.types import ROOTS, Measurement, Measurements, Point, Value

TIME = "time"
_SLACK = 0.02  # by which children may exceed what includes them: rounding of what programs print
# A call path that takes at least this much of its caller, at so many points, is included in it.
_NEARLY_ALL, _SEVERAL = 0.98, 4


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Measurements and their models."""

    # known, models: what was measured, and the models that were fitted to it.
    known: Measurements
    models: tuple[Model, ...]
    point: Point | None = None  # the evaluation point, if there is one
    fastest: Point | None = None  # of a space that is searched for it: the fastest measured configuration
    # How runs on different numbers of processes are compared; None where no parameter counts them.
    study: Study | None = None
    # By parameter: values of the search space beside the measured ones.
    values: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)  # of metrics whose unit is not known by their name
    # Whether the times of call paths are without those of what they call; None: the values decide.
    is_exclusive: bool | None = None
    # Models of the same without priors, largest call paths first; empty where no prior was used.
    unaided: tuple[Model, ...] = ()
    priors: tuple[str, ...] = ()  # where priors come from, in words

    def unit(self, metric: str) -> str:
        """Return the unit of a metric, empty where there is none."""
        return self.units.get(metric) or unit_of(metric)

    @cached_property
    def metric(self) -> str | None:
        """The metric that says how long runs take; None where nothing is in seconds."""
        there = [item.metric for item in self.known.items]
        seconds = [name for name in dict.fromkeys(there) if self.unit(name) == "s"]
        if TIME in seconds:
            return TIME
        return next((name for name in seconds if name != ELAPSED), seconds[0] if seconds else None)

    @cached_property
    def measured(self) -> Mapping[tuple[str, str], Measurement]:
        """Measurements by call path and metric."""
        return {(item.callpath, item.metric): item for item in self.known.items}

    @cached_property
    def callpaths(self) -> tuple[str, ...]:
        """The measured call paths of the metric."""
        return tuple(item.callpath for item in self.known.items if item.metric == self.metric)

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """The measured call paths right below every call path of the metric that has some.

        Those of the whole program are the outermost ones, if no call path has its name before its own.
        """
        there, below, outermost = set(self.callpaths), dict[str, list[str]](), []
        for path in self.callpaths:
            above = next((caller for caller in callers(path)[1:] if caller in there), None)
            if above is not None:
                below.setdefault(above, []).append(path)
            elif path not in ROOTS and len(parts(path)) == 1:
                outermost.append(path)
        root = next((name for name in ROOTS if name in there and name not in below), None)
        if root is not None and outermost:
            below[root] = outermost
        return {parent: tuple(names) for parent, names in below.items()}

    @cached_property
    def includes(self) -> bool:
        """Whether values of a call path include those of its children.

        Children that take longer than their caller exclude each other, or overlap: then all call paths
        together take longer than whole runs, or one of them takes nearly all of its caller's time everywhere.
        """
        if self.is_exclusive is not None:
            return not self.is_exclusive
        if all(self._holds(parent, names) for parent, names in self.children.items()):
            return True
        if any(
            self._is_nearly_all(parent, child) for parent, names in self.children.items() for child in names
        ):
            return True
        durations = [item for item in self.known.items if item.metric == ELAPSED]
        return not all(self._are_within(item, self.callpaths) for item in durations)

    @cached_property
    def is_within_runs(self) -> bool:
        """Whether the whole program took at most as long as the runs that it was measured in."""
        durations = [item for item in self.known.items if item.metric == ELAPSED]
        return bool(durations) and all(self._are_within(item, self.whole) for item in durations)

    def _holds(self, parent: str, children: Sequence[str]) -> bool:
        """Return whether a call path took at least as long as its children, at every point that has some."""
        assert self.metric is not None
        return self._are_within(self.measured[parent, self.metric], children)

    def _is_nearly_all(self, parent: str, child: str) -> bool:
        """Return whether a call path took all of its caller's time but a few percent, at several points.

        Of values that exclude each other this would be chance.
        """
        assert self.metric is not None
        own, part = (self.measured[path, self.metric].values for path in (parent, child))
        pairs = [
            (np.mean(own[point]), np.mean(part[point])) for point in own if own[point] and part.get(point)
        ]
        return len(pairs) >= _SEVERAL and all(
            _NEARLY_ALL * whole <= value <= (1 + _SLACK) * whole for whole, value in pairs
        )

    def _are_within(self, whole: Measurement, callpaths: Sequence[str]) -> bool:
        """Return whether call paths took at most as long as something else, at every point that has some.

        With another solver there are others: it may be that no point has all of them.
        """
        assert self.metric is not None
        parts = [self.measured[path, self.metric].values for path in callpaths]
        pairs = [
            (np.mean(values), sum(float(np.mean(part[point])) for part in parts if part.get(point)))
            for point, values in whole.values.items()
            if values
        ]
        return all(own >= (1 - _SLACK) * total for own, total in pairs)

    @cached_property
    def whole(self) -> tuple[str, ...]:
        """The call paths whose values of the metric add up to those of a run."""
        if not self.includes:
            return self.callpaths
        inner = {child for names in self.children.values() for child in names}
        return tuple(path for path in self.callpaths if path not in inner)

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The call paths that the whole is made of: its children, or all of what excludes its children."""
        if not self.includes:
            return self.whole
        return self._lineage[-1]

    @cached_property
    def overlap(self) -> bool:
        """Whether the parts took longer together than the whole: some contain others."""
        if not self.includes or len(self._lineage) == 1:
            return False
        return not self._holds(self._lineage[-2][0], self.parts)

    @cached_property
    def _lineage(self) -> tuple[tuple[str, ...], ...]:
        """The whole, and its only children, down to the first that are several, or have none."""
        found = [self.whole]
        while len(found[-1]) == 1 and found[-1][0] in self.children:
            found.append(self.children[found[-1][0]])
        return tuple(found)
