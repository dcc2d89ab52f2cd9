"""Which parameters count processes: the total, nodes, processes of a node, threads of a process."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats
from orchestrator.types import Measurements, format_value

# Names as they are common in campaigns and tables, in lower case and without separators.
_TOTAL = {"p", "np", "nproc", "nprocs", "procs", "process", "processes", "numprocs", "processors"}
_TOTAL |= {"rank", "ranks", "nranks", "numranks", "mpiranks", "mpiworldsize", "worldsize", "jobsize"}
_TOTAL |= {"task", "tasks", "ntasks", "mpitasks", "cores", "ncores", "numcores", "gpus", "ngpus"}
_NODES = {"node", "nodes", "nnodes", "numnodes", "nodecount"}
_THREADS = {"t", "thread", "threads", "nthreads", "numthreads", "ompthreads", "ompnumthreads"}
_THREADS |= {"threadsperrank", "threadsperprocess", "cpuspertask"}
_THREADS |= {"workers", "nworkers", "numworkers", "njobs"}  # processes that a program starts by itself
_PER_NODE = {"ppn", "rpn", "tpn"} | {
    f"{prefix}{what}pernode"
    for what in ("ranks", "tasks", "procs", "processes", "cores", "gpus", "cpus")
    for prefix in ("", "n", "num")
}


@dataclass(frozen=True, slots=True)
class Processes:
    """The parameters whose product is the number of processes ``N``."""

    names: tuple[str, ...]  # parameters whose product is ``N``
    # The parameter that counts nodes; empty where none does. It need not be among ``names``.
    nodes: str = ""
    per_node: str = ""  # the parameter that counts processes of a node beside a total; empty where none does

    @property
    def all_names(self) -> frozenset[str]:
        """Every parameter that counts processes or nodes."""
        return frozenset(filter(None, (*self.names, self.nodes, self.per_node)))

    def total(self, values: Mapping[str, Floats]) -> Floats:
        """Return ``N`` where parameters have some values, arrays of one shape."""
        return np.asarray(np.prod([values[name] for name in self.names], axis=0), np.float64)

    @property
    def text(self) -> str:
        """How ``N`` is counted: ``nodes * ppn``."""
        return " * ".join(self.names)


def found(parameters: Sequence[str], named: str | Sequence[str] = "auto") -> Processes | None:
    """Return which of the parameters count processes.

    Parameters
    ----------
    parameters
        All numeric parameters.
    named
        Those that do, outermost first: names, or a text such as ``nodes * ppn``; ``auto`` goes by names.

    Returns
    -------
    The parameters; None where no name says it.

    Raises
    ------
    ModelError
        For a name that no parameter has, and where several parameters may count the same thing.
    """
    some = ", ".join(parameters) or "(there is none)"
    if isinstance(named, str):
        if named == "auto":
            return _by_name(parameters)
        names = tuple(re.split(r"\s*[,*]\s*", named.strip()))
    else:
        names = tuple(named) if isinstance(named, Iterable) else (named,)
        if wrong := [name for name in names if not isinstance(name, str)]:
            raise ModelError(f"processes: {wrong[0]!r} is no name of a parameter; name some of {some}")
    if not names:
        raise ModelError(f"processes names no parameter: name some of {some}")
    if missing := [name for name in names if name not in parameters]:
        raise ModelError(
            f"processes is {', '.join(names)!r}: {', '.join(missing)} is no numeric parameter; name some of "
            f"{some}"
        )
    nodes = next((name for name in names if _plain(name) in _NODES), "")
    return Processes(names, nodes or (names[0] if len(names) > 1 else ""))


def counts_processes(name: str) -> bool:
    """Return whether a parameter of this name commonly counts nodes, processes or threads."""
    return _plain(name) in _TOTAL | _NODES | _PER_NODE | _THREADS


def required(parameters: Sequence[str], named: str | Sequence[str] = "auto") -> Processes:
    """Return which of the parameters count processes; raises as `found`, and where no name says it."""
    result = found(parameters, named)
    if result is None:
        some = ", ".join(parameters) or "(there is none)"
        raise ModelError(
            f"no name says which parameter counts processes: name it with the option processes, such as "
            f"processes=p or processes=nodes*ppn; the numeric parameters are {some}"
        )
    return result


def fixed_factor(measurements: Measurements, processes: Processes) -> float:
    """Return the product of those that have one value in all measurements, as 4 processes on every node.

    Raises
    ------
    ModelError
        When a count is below 1.
    """
    factor = 1.0
    for name in processes.names:
        values = measurements.values_of(name)
        for value in values:
            if isinstance(value, str) or not value >= 1:
                raise ModelError(
                    f"{name} is {format_value(value)} in some run, but it counts processes: leave such runs "
                    "out, or name the right parameter with the option processes"
                )
        if len(values) == 1:
            factor *= float(values[0])
    return factor


def _by_name(parameters: Sequence[str]) -> Processes | None:
    total, nodes, per_node, threads = (
        _named(parameters, known) for known in (_TOTAL, _NODES, _PER_NODE, _THREADS)
    )
    several = next((names for names in (total, nodes, per_node, threads) if len(names) > 1), ())
    if several:
        raise ModelError(
            f"{' and '.join(several)} may both count processes: name one with the option processes, such as "
            f"processes={several[0]}"
        )
    node = nodes[0] if nodes else ""
    ranks = total or (*nodes, *per_node)
    names = (*ranks, *threads)
    beside = per_node[0] if total and per_node else ""
    return Processes(names, node, beside) if names else None


def _named(parameters: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in parameters if _plain(name) in known)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
