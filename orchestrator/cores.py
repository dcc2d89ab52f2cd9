"""Work that is spread over the cores of this machine: processes, with one thread each."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

Task = TypeVar("Task")
Result = TypeVar("Result")

# Processes at a time where nobody said how many: each takes 300 MB, and a login node has other users.
_MOST = 4
# Seconds between two looks whether the parent is alive.
_LOOK_AFTER = 1.0
# Seconds of work from which processes are worth their start, which takes two. Chosen by hand; not derived.
_WORTH = 5.0
# Seconds that processes without work wait for more.
_IDLE = 30.0
# One thread for libraries that are loaded later. And the GNU C library keeps memory that arrays gave back:
# fits ask for it again at once, and some took three times as long with pages that are new each time.
_ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # the largest value that all its versions take
    "MALLOC_TRIM_THRESHOLD_": str(256 << 20),
}


def spread(work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
    """Map a function over tasks, in processes once what is left takes long; results in the order of tasks.

    There are as many as this process may use cores, `_MOST` at most; the variable ``LOKY_MAX_CPU_COUNT``
    lowers that. They wait some seconds for more work. What processes cannot do is done here.
    """
    taken = 0.0
    for done, task in enumerate(tasks):
        left = tasks[done:]
        if len(left) > 1 and done and taken / done * len(left) > _WORTH and (count := _cores()) > 1:
            yield from _in_processes(work, left, count)
            return
        begin = time.monotonic()
        result = work(task)
        taken += time.monotonic() - begin
        yield result


def _cores() -> int:
    import loky

    if multiprocessing.parent_process() is not None:  # others run beside this one, for the same user
        return 1
    return min(int(loky.cpu_count()), _MOST)


def _in_processes(work: Callable[[Task], Result], tasks: Sequence[Task], count: int) -> Iterator[Result]:
    done = 0
    try:
        with processes(count) as pool:
            for result in pool.map(work, tasks):
                done += 1
                yield result
    except Exception:  # noqa: BLE001 (one was killed; what is wrong with a task itself shows here again)
        yield from map(work, tasks[done:])


@contextmanager
def processes(count: int) -> Iterator[Any]:
    """Give an executor of processes with one thread each, which take functions of any kind.

    They end a while after the block, if nothing needs them again: at once if it fails or is left early.
    """
    # Unlike those of the standard library these do not import the script of the user again. Imported here:
    # commands that need no processes start faster without.
    from loky import get_reusable_executor

    pool = get_reusable_executor(
        count, timeout=_IDLE, initializer=_begin, initargs=(os.getpid(),), env=_ENVIRONMENT
    )
    try:
        yield pool
    except BaseException:
        pool.shutdown(kill_workers=True)
        raise


def _begin(parent: int) -> None:
    # An interrupt reaches all processes of a terminal: the first one decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, which may be killed and close nothing."""
    while os.getppid() == parent:
        time.sleep(_LOOK_AFTER)
    os._exit(1)


def one_thread() -> AbstractContextManager[object]:
    """Limit numerical libraries to one thread: every core has a process, and sums keep their order."""
    limit: AbstractContextManager[object] = threadpool_limits(1)
    return limit
