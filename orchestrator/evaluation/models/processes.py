"""Fits in processes of their own: one that crashes, or takes too long, costs a row and not the others."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from orchestrator.evaluation.models.fit import Row, Task, failed, fit
from orchestrator.units import format_duration

_TOO_LONG = "no result within"


@dataclass(frozen=True, slots=True, eq=False)
class _Worker:
    process: SpawnProcess
    connection: Connection


def rows(tasks: Sequence[Task], workers: int | None, limit: float | None = None) -> Generator[Row]:
    """Yield rows as fits end.

    Parameters
    ----------
    tasks
        What to fit.
    workers
        Processes, one thread each; as many as there are cores unless given.
    limit
        Seconds after which a fit, with its predictions, is given up.
    """
    waiting, idle = deque(tasks), list[_Worker]()
    busy: dict[_Worker, tuple[Task, float]] = {}
    count = min(workers or os.cpu_count() or 1, len(tasks))
    try:
        while waiting or busy:
            while waiting and len(busy) < count:
                worker = idle.pop() if idle else _started()
                busy[worker] = waiting.popleft(), time.monotonic()
                with suppress(OSError):  # it has died: its answer, which is none, says so
                    worker.connection.send(busy[worker][0])
            for worker in _ready(busy, limit):
                task, _ = busy.pop(worker)
                if not worker.connection.poll():
                    _end(worker)
                    yield failed(task, f"{_TOO_LONG} {format_duration(limit or 0.0)}")
                    continue
                try:
                    row: Row = worker.connection.recv()
                except EOFError:
                    _end(worker)
                    yield failed(task, _death(worker.process.exitcode))
                else:
                    idle.append(worker)
                    yield row
    finally:
        for worker in [*idle, *busy]:
            _end(worker)


def took_too_long(row: Row) -> bool:
    """Return whether a fit was given up because of its limit."""
    return row["failure"] is not None and row["failure"].startswith(_TOO_LONG)


def _ready(busy: dict[_Worker, tuple[Task, float]], limit: float | None) -> list[_Worker]:
    """Wait; return workers that have answered, died, or exceeded the limit."""
    left = None
    if limit is not None:
        left = max(0.0, min(since for _, since in busy.values()) + limit - time.monotonic())
    answered = set(wait([worker.connection for worker in busy], left))
    now = time.monotonic()
    return [
        worker
        for worker, (_, since) in busy.items()
        if worker.connection in answered or (limit is not None and now - since >= limit)
    ]


def _started() -> _Worker:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there,), daemon=True)
    process.start()
    there.close()  # so that the end of the process ends the connection
    return _Worker(process, here)


def _serve(connection: Connection) -> None:
    """Fit what comes until the other side leaves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the other side ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, BrokenPipeError):
        while True:
            connection.send(fit(connection.recv()))


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, in the middle of a fit, too."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _end(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.join()
    worker.connection.close()


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"its process was ended by {name}" + " (out of memory?)" * (name == "SIGKILL")
    return f"its process ended with exit code {code}"
