"""Which runs speedups are compared on: the simulated cluster, and measurements in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from orchestrator import expressions
from orchestrator.errors import MeasurementError
from orchestrator.evaluation.speedup.cluster import CODES, MACHINES, Code, Machine, measured
from orchestrator.evaluation.speedup.runs import Runs, Scaling
from orchestrator.evaluation.speedup.study import Case, median_cutoffs
from orchestrator.models.base import Floats
from orchestrator.types import Measurement, Measurements

PROGRAMS = tuple(code.name for code in CODES)
NAMES = tuple(machine.name for machine in MACHINES)
LEVELS = (1, 2)


def simulated(
    *,
    seed: int,
    machines: Sequence[str] = NAMES,
    programs: Sequence[str] = PROGRAMS,
    scalings: Sequence[Scaling] = ("strong", "hybrid"),
    levels: Sequence[int] = LEVELS,
) -> list[Case]:
    """Return cases on the simulated cluster, ordered as the paper's tables.

    Parameters
    ----------
    seed
        Of the noise.
    machines, programs, scalings
        Names of what is wanted.
    levels
        1 for one process per node; 2 for different numbers of them, on machines that have several processors
        per node, and not in weak scaling.
    """
    places = [
        (machine, code, level, scaling)
        for level, scaling, machine, code in product(sorted(levels), scalings, MACHINES, CODES)
        if machine.name in machines and code.name in programs
        if level == 1 or (len(machine.per_node) > 1 and scaling != "weak")
    ]
    # Strong and hybrid scaling are those of the same runs.
    distinct = {(machine, code, level, scaling == "weak") for machine, code, level, scaling in places}
    runs = {place: _runs_of(*place, seed) for place in distinct}
    return [
        Case(
            machine=machine.name,
            runs=runs[machine, code, level, scaling == "weak"],
            scaling=scaling,
            cutoff=machine.cutoff_levels if level > 1 else machine.cutoff,
            largest=median_cutoffs(runs[machine, code, level, scaling == "weak"])[1],
            dimensions=code.dimensions,
        )
        for machine, code, level, scaling in places
    ]


def _runs_of(machine: Machine, code: Code, level: int, weak: bool, seed: int) -> Runs:
    place = [MACHINES.index(machine), CODES.index(code), level, int(weak)]
    per_node = machine.per_node if level > 1 else (1,)
    return measured(machine, code, np.random.default_rng([seed, *place]), per_node=per_node, weak=weak)


def in_files(
    known: Measurements,
    *,
    machine: str,
    processes: str,
    nodes: str | None = None,
    size: str | None = None,
    scalings: Sequence[Scaling] = ("strong",),
) -> list[Case]:
    """Return a case for every call path and kind of scaling, with the medians as cut-offs.

    Parameters
    ----------
    known
        Measured times.
    machine
        What to call the place in tables.
    processes, nodes, size
        Expressions of the parameters: the number of processes; that of nodes, one process on each unless
        given; and the problem size in units of work, one for all unless given.
    scalings
        Those that are wanted.

    Raises
    ------
    ExpressionError
        For a malformed expression.
    MeasurementError
        For times, and for values of expressions, that are not positive.
    """
    cases = []
    for item in known.items:
        runs = _runs(known, item, processes, nodes or processes, size or "1")
        cutoff, largest = median_cutoffs(runs)
        cases += [
            Case(machine=machine, runs=runs, scaling=scaling, cutoff=cutoff, largest=largest)
            for scaling in scalings
        ]
    return cases


def _runs(known: Measurements, item: Measurement, processes: str, nodes: str, size: str) -> Runs:
    texts = {name for name in known.parameters if known.is_categorical(name)}
    columns: Mapping[str, Floats] = {
        name: _column(text, name, known, item, texts)
        for name, text in {"processes": processes, "nodes": nodes, "size": size}.items()
    }
    seconds = np.array([value for values in item.values.values() for value in values])
    if not np.all(seconds > 0):
        raise MeasurementError(
            f"{item.callpath}: {item.metric} is {seconds.min():g} in some run: times are needed"
        )
    return Runs(
        name=item.callpath,
        nodes=columns["nodes"],
        per_node=columns["processes"] / columns["nodes"],
        size=columns["size"],
        seconds=seconds,
        exact=np.full(len(seconds), np.nan),
    )


def _column(text: str, name: str, known: Measurements, item: Measurement, texts: set[str]) -> Floats:
    """Return an expression at every run of an item."""
    at = expressions.parse(text, known.parameters, texts)
    found = np.array(
        [float(at(point.as_dict())) for point, values in item.values.items() for _ in values], dtype=float
    )
    if not np.all(np.isfinite(found) & (found > 0)):
        raise MeasurementError(
            f"{name} = {text} is {np.min(found):g} at some point: positive numbers are needed"
        )
    return found


def sensitivity(case: Case, cutoffs: Sequence[float], shares: Sequence[float]) -> list[Case]:
    """Return the case with other cut-offs, each varied alone (section 5.4); else the case itself.

    Parameters
    ----------
    case
        With its usual cut-offs.
    cutoffs
        Largest numbers of processes, c_f. All are tested with the runs above the largest of them.
    shares
        Largest problem sizes over the largest of all, w_f / w_max; of the simulated codes edges of them.
    """
    largest = float(case.runs.size.max())
    found = [replace(case, cutoff=cutoff, beyond=max(cutoffs)) for cutoff in cutoffs]
    found += [
        # Rounded: 0.6 ** 3 * 150 ** 3 is below 90 ** 3.
        replace(case, largest=round(share**case.dimensions * largest, 6), beyond=case.cutoff)
        for share in shares
    ]
    return found or [case]
