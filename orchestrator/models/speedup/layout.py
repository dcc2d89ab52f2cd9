"""Samples as the paper sees them: processes N, levels of parallelism, problems, and reference runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats, Integers
from orchestrator.models.processes import Processes
from orchestrator.models.regression.samples import Axis, Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What the coordinates of samples mean."""

    axes: tuple[Axis, ...]  # what the coordinates are
    counting: tuple[int, ...]  # positions of those whose product is ``N / factor``
    nodes: int | None  # position of the one that counts nodes; None where none does
    # Position of the one that counts processes of a node beside the total; None where none does.
    per_node: int | None = None
    others: tuple[int, ...]  # positions of all that are not about processes: problem sizes and categories
    factor: float = 1.0  # processes that every run has as a factor, such as 4 on every node

    @classmethod
    def of(cls, axes: tuple[Axis, ...], processes: Processes, factor: float) -> Layout:
        """Find the positions of parameters by their names; those with one value are no coordinates."""
        names = [axis.name for axis in axes]
        counting = tuple(k for k, name in enumerate(names) if name in processes.names)
        nodes = names.index(processes.nodes) if processes.nodes in names else None
        per_node = names.index(processes.per_node) if processes.per_node in names else None
        others = tuple(k for k in range(len(names)) if k not in (*counting, nodes, per_node))
        return cls(axes=axes, counting=counting, nodes=nodes, per_node=per_node, others=others, factor=factor)

    def processes(self, x: Floats) -> Floats:
        """Return N at coordinates (n, axes), shape (n,); 1 or the factor where no coordinate counts it."""
        logs = np.zeros(len(x))
        for k in self.counting:
            logs += x[:, k]
        # Rounded: 24 = 3 * 8 = 4 * 6 is one number of processes, also where logarithms are added.
        return np.asarray(np.round(self.factor * np.exp(np.minimum(logs, 500.0)), 6), np.float64)

    def levels(self, x: Floats) -> Floats:
        """Return logarithms of N, of nodes, and of processes per node (section 3), shape (n, 1 or 3).

        One column where nothing tells nodes from processes.
        """
        total = np.log(self.processes(x))
        if self.nodes is not None and self.counting != (self.nodes,):
            nodes = x[:, self.nodes]
        elif self.nodes is None and self.per_node is not None:
            nodes = total - x[:, self.per_node]
        else:
            return total[:, None]
        return np.column_stack([total, nodes, total - nodes])

    def problem(self, x: Floats) -> Floats:
        """Return the coordinates of the problem: all that are not about processes, shape (n, others)."""
        return x[:, list(self.others)]

    def problems(self, x: Floats) -> tuple[Floats, Integers]:
        """Return the different problems, shape (problems, others), and which of them each row has, (n,)."""
        coordinates = self.problem(x)
        if not coordinates.shape[1]:
            return np.empty((1, 0)), np.zeros(len(x), dtype=np.intp)
        problems, index = np.unique(coordinates, axis=0, return_inverse=True)
        return problems, index.reshape(-1)

    @property
    def problem_axes(self) -> tuple[Axis, ...]:
        """Those of `problem`."""
        return tuple(self.axes[k] for k in self.others)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class References:
    """The run of every problem with the fewest processes, one of them in the paper."""

    problems: Floats  # coordinates of the problems, shape (problems, others)
    index: Integers  # the problem of every sample, shape (samples,)
    row: Integers  # the sample that is the reference of a problem, shape (problems,)
    processes: Floats  # N of every reference, shape (problems,)

    @classmethod
    def of(cls, samples: Samples, layout: Layout) -> References:
        """Find the references of samples.

        Raises
        ------
        ModelError
            When no problem was measured on two numbers of processes.
        """
        n = layout.processes(samples.x)
        problems, index = layout.problems(samples.x)
        order = np.lexsort((n, index))
        first = np.ones(len(n), dtype=bool)
        first[1:] = index[order][1:] != index[order][:-1]
        row = order[first]
        if not np.any(n > n[row][index]):
            raise ModelError(
                "no problem was measured on two numbers of processes: a speedup is that of one problem"
            )
        return cls(problems=problems, index=index, row=row, processes=n[row])
