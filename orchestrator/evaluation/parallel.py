"""Map over processes, one thread each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from orchestrator.cores import one_thread, processes

Task = TypeVar("Task")
Result = TypeVar("Result")

Advance = Callable[[int, int], None]
"""Told how many tasks are finished, of how many."""


def in_parallel(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    workers: int | None,
    advance: Advance | None = None,
) -> Iterator[Result]:
    """Map ``work``, a function of a module, over tasks; results in the order of tasks.

    ``workers`` processes, as many as there are cores unless given; one means this process. ``advance`` is
    called with the number of finished tasks and of all.
    """
    for done, result in enumerate(_results(work, tasks, workers), start=1):
        if advance is not None:
            advance(done, len(tasks))
        yield result


def _results(work: Callable[[Task], Result], tasks: Sequence[Task], workers: int | None) -> Iterator[Result]:
    count = min(workers or os.cpu_count() or 1, len(tasks))
    if count <= 1:
        with one_thread():
            yield from map(work, tasks)
        return
    with processes(count) as pool:
        yield from pool.map(work, tasks, chunksize=max(1, min(8, len(tasks) // (8 * count))))
