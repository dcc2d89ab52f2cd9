"""Predictions of speedups on more processes than were fitted: errors of many contenders on many programs.

Alasandagutti et al., Grey-Box Machine Learning Prediction of Parallel Application Scaling, sections 4.4, 5.
"""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from orchestrator.errors import MeasurementError, OrchestratorError
from orchestrator.evaluation.parallel import Advance, in_parallel
from orchestrator.evaluation.speedup.contenders import Question, contender
from orchestrator.evaluation.speedup.runs import Chosen, Runs, Scaling, on_one_process, reference
from orchestrator.models.base import Floats

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """Runs of one program, and which of them models are fitted to."""

    machine: str  # where it ran
    runs: Runs  # all runs
    scaling: Scaling  # which speedups are predicted
    cutoff: float  # c_f: the most processes of the training set
    largest: float  # w_f: the largest problem size of the training set
    beyond: float | None = None  # runs on more processes are tested; ``cutoff`` unless given
    # Problem sizes are stated as their roots of this degree, such as 3 for the edge of a cube.
    dimensions: int = 1


class Row(TypedDict):
    """Errors of one contender on one program.

    ``train`` and ``test`` count runs: those of the training set (up to ``cutoff`` processes, sizes up to
    ``largest``), and those that are tested (on more processes than ``beyond``, all sizes). ``size_share`` is
    w_f / w_max: the edge of the largest problem of the training set over that of the largest of all.
    ``rmse`` is the root mean squared error of speedups, ``relative_rmse`` that of relative errors. ``rse``
    and ``relative_rse`` are quantiles (`QUANTILES`) of absolute errors of single runs. ``seconds`` is the CPU
    time of the fit and its predictions. ``failure`` says why there are no errors.
    """

    machine: str
    program: str
    scaling: Scaling
    levels: int
    contender: str
    seed: int
    cutoff: float
    largest: float
    size_share: float
    beyond: float
    train: int
    test: int
    rmse: float | None
    relative_rmse: float | None
    rse: list[float]
    relative_rse: list[float]
    seconds: float
    failure: str | None


Task = tuple[Case, str, int]
"""A case, the name of a contender, and a seed."""


def median_cutoffs(runs: Runs) -> tuple[float, float]:
    """Return the median number of processes and the median problem size, as in section 4.4."""
    processes, sizes = np.unique(runs.processes), np.unique(runs.size)
    return float(np.median(processes)), float(np.quantile(sizes, 0.5, method="lower"))


def tasks(cases: Sequence[Case], names: Sequence[str], seed: int) -> list[Task]:
    """Return what there is to do; contenders that a kind of scaling is not made for are left out.

    Raises
    ------
    CampaignError
        For an unknown contender.
    MeasurementError
        When a case has no run to fit, or none to test with.
    """
    known = {name: contender(name) for name in names}
    for case in cases:
        _check(case)
    return [(case, name, seed) for case in cases for name in names if case.scaling in known[name].scalings]


def rows(todo: Sequence[Task], workers: int | None, advance: Advance | None = None) -> list[Row]:
    """Return a row per task, in their order."""
    by_task = dict(run(todo, workers, advance))
    return [by_task[task] for task in todo]


def run(
    todo: Sequence[Task], workers: int | None, advance: Advance | None = None
) -> Iterator[tuple[Task, Row]]:
    """Yield tasks with their rows as soon as they are known; ``advance`` counts fits.

    A contender that does not ask for the kind of scaling is fitted once for all kinds of the same runs.
    """
    groups = _by_fit(todo)
    for group, found in zip(groups, in_parallel(_rows, groups, workers, advance), strict=True):
        yield from zip(group, found, strict=True)


def _by_fit(todo: Sequence[Task]) -> list[list[Task]]:
    """Return the tasks that share a fit together."""
    groups: dict[tuple[object, ...], list[Task]] = {}
    for task in todo:
        case, name, seed = task
        scaling = case.scaling if contender(name).by_scaling else None
        key = (case.runs, case.cutoff, case.largest, case.beyond, scaling, name, seed)
        groups.setdefault(key, []).append(task)
    return list(groups.values())


def _check(case: Case) -> None:
    train, test = _train(case), _test(case)
    most, what = case.runs.processes[train], f"{case.machine}, {case.runs.name}"
    if not train.any() or most.min() == most.max():
        raise MeasurementError(
            f"{what}: no runs with several numbers of processes up to {case.cutoff:g} and sizes up to "
            f"{case.largest:g}: raise the cut-offs"
        )
    if not test.any():
        raise MeasurementError(
            f"{what}: no {case.scaling} scaling to test above {case.beyond or case.cutoff:g} processes; "
            f"there are {case.runs.processes.min():g} to {case.runs.processes.max():g}: lower the cut-off"
        )


def _train(case: Case) -> Chosen:
    return np.asarray((case.runs.processes <= case.cutoff) & (case.runs.size <= case.largest))


def _test(case: Case) -> Chosen:
    """Return the runs on more processes than the cut-off that have a run on one process to compare with."""
    on_one = on_one_process(case.runs, case.runs.seconds)
    known = np.isfinite(reference(case.runs, case.scaling, on_one))
    beyond = case.cutoff if case.beyond is None else case.beyond
    return np.asarray((case.runs.processes > beyond) & known)


def _rows(group: Sequence[Task]) -> list[Row]:
    """Return the rows of tasks that share a fit."""
    cases, (_, name, seed) = [case for case, _, _ in group], group[0]
    start = time.process_time()
    failure, seconds = None, np.full(len(cases[0].runs), np.nan)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds = _predicted(cases, name, np.random.default_rng([seed, zlib.crc32(name.encode())]))
    except OrchestratorError as error:
        failure = " ".join(str(error).split())
    took = time.process_time() - start
    return [_row(task, seconds, took, failure) for task in group]


def _row(task: Task, seconds: Floats, took: float, failure: str | None) -> Row:
    """Return the errors of predicted seconds (runs,), NaN for those that are not tested."""
    case, name, seed = task
    runs, test = case.runs, _test(case)
    wrong = ~(np.isfinite(seconds[test]) & (seconds[test] > 0))
    if failure is None and wrong.any():
        failure = f"{wrong.sum()} of {len(wrong)} predicted times are no positive numbers"
    row = Row(
        machine=case.machine,
        program=runs.name,
        scaling=case.scaling,
        levels=runs.levels,
        contender=name,
        seed=seed,
        cutoff=case.cutoff,
        largest=case.largest,
        size_share=(case.largest / float(runs.size.max())) ** (1 / case.dimensions),
        beyond=case.cutoff if case.beyond is None else case.beyond,
        train=int(_train(case).sum()),
        test=int(test.sum()),
        rmse=None,
        relative_rmse=None,
        rse=[],
        relative_rse=[],
        seconds=took,
        failure=failure,
    )
    if failure is None:
        on_one = reference(runs, case.scaling, on_one_process(runs, runs.seconds))
        relative = runs.seconds[test] / seconds[test] - 1
        row["rmse"], row["rse"] = _errors(on_one[test] / runs.seconds[test] * relative)
        row["relative_rmse"], row["relative_rse"] = _errors(relative)
    return row


def _predicted(cases: Sequence[Case], name: str, rng: np.random.Generator) -> Floats:
    """Return the seconds that a contender predicts for all runs that some case tests, NaN for the others."""
    chosen, case = contender(name), cases[0]
    runs = case.runs
    seen = {
        "small": _train(case) | (runs.processes <= case.cutoff / 2),
        "near": runs.processes <= case.cutoff,
        "all": np.ones(len(runs), dtype=bool),
    }[chosen.sees]
    tested = np.any([_test(each) for each in cases], axis=0)
    question = Question(
        seen=runs.rows(seen),
        asked=runs.rows(tested),
        parameters=runs.parameters,
        scaling=case.scaling,
        cutoff=case.cutoff,
        largest=case.largest,
    )
    seconds = np.full(len(runs), np.nan)
    seconds[tested] = chosen.predict(question, rng)
    return seconds


def _errors(errors: Floats) -> tuple[float, list[float]]:
    """Return the root mean square, and quantiles of the absolute values."""
    size = np.abs(errors)
    return float(np.sqrt(np.mean(size**2))), [float(value) for value in np.quantile(size, QUANTILES)]
