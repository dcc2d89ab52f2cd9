"""Which cores of this machine an attempt gets: cores that no other attempt uses.

A core is physical: its hyper-threads are two CPUs to Linux, share one set of execution units, and so go to
one attempt together.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from orchestrator.executors import inherited
from orchestrator.executors.attempt import processes

CPUs = frozenset[int]

_TOPOLOGY = Path("/sys/devices/system/cpu")


def usable() -> tuple[CPUs, ...]:
    """Return the CPUs of every physical core that attempts may be bound to, in ascending order.

    Empty where this system binds no processes: attempts then run one at a time.
    """
    cpus = inherited.cpus()
    return physical(cpus) if cpus and _can_bind(cpus) else ()


def physical(cpus: Iterable[int], topology: Path = _TOPOLOGY) -> tuple[CPUs, ...]:
    """Group CPUs by the physical core that they are hyper-threads of; one core each where that is unknown."""
    cores: dict[str, set[int]] = {}
    for cpu in sorted(cpus):
        try:
            core = (topology / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text().strip()
        except OSError:
            core = f"cpu {cpu}"
        cores.setdefault(core, set()).add(cpu)
    return tuple(frozenset(core) for core in cores.values())


def choose(
    cores: Sequence[CPUs], occupied: Iterable[CPUs], wanted: int, avoid: CPUs = frozenset()
) -> CPUs | None:
    """Return the CPUs for an attempt that wants so many cores; None while it must wait.

    An attempt that wants more cores than there are gets all of them, and runs alone. Cores with CPUs to
    ``avoid`` are chosen last, before them the first cores: the operating system does most of its own work
    there.
    """
    taken = frozenset[int]().union(*occupied)
    free = [core for core in reversed(cores) if not core & taken]
    free.sort(key=lambda core: bool(core & avoid))  # stable
    needed = min(wanted, len(cores))
    return frozenset[int]().union(*free[:needed]) if len(free) >= needed else None


def of_process(pid: int) -> CPUs:
    """Return the CPUs that a process is bound to; none if it is gone."""
    try:
        return frozenset(os.sched_getaffinity(pid))
    except OSError:
        return frozenset()


def of_other_attempts(ours: Iterable[Path]) -> CPUs:
    """Return the CPUs of attempts that other campaigns of this user run here; ``ours``: other directories."""
    own = {os.fsencode(os.path.realpath(directory)) for directory in ours}
    return frozenset[int]().union(*(of_process(pid) for pid in processes.of_attempts(own)))


def _can_bind(cpus: CPUs) -> bool:
    """Whether this system lets a process choose its CPUs; some containers forbid it."""
    try:
        os.sched_setaffinity(0, os.sched_getaffinity(0) & cpus or cpus)
    except OSError:
        return False
    return True
