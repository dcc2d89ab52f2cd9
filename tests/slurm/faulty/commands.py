"""Slurm's commands over a `World`: what they print, and what becomes of them while a fault lasts."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.slurm.faulty.faults import Fault
from tests.slurm.faulty.world import ACTIVE, Job, Request, World
from tests.slurm.sacctmgr import association, qos

COMMANDS = ("sbatch", "squeue", "sacct", "scancel", "scontrol", "sacctmgr", "sinfo")
NEVER = float("inf")
_QUEUE_FORMAT = "--format=%F|%K|%j|%T|%S|%e|%N|%C|%r"  # the only one that is understood
_ACCOUNTING_FORMAT = "--format=JobID,JobName,State,ElapsedRaw,NodeList,AllocCPUS,End"
_REFUSED = "Unable to contact slurm controller (connect failure)"
_TIMED_OUT = "Socket timed out on send/recv operation"
_TIMEOUT = 10.0  # seconds: Slurm's MessageTimeout
_DATABASE = "Problem talking to the database: Connection refused"
_LIMIT = "Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size)"
_CONFIGURATION = """\
AccountingStorageType   = accounting_storage/{accounting}
KillWait                = {kill_wait:.0f} sec
MaxArraySize            = {array_size}
MinJobAge               = {remembered:.0f} sec
OverTimeLimit           = 0 min
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command prints and when: ``seconds`` (`NEVER`: it hangs) after its call."""

    out: str = ""
    err: str = ""
    code: int = 0
    seconds: float = 0.0


@dataclass
class Commands:
    """Answer calls; ``calls`` counts them, ``log`` has the instants of each command's."""

    world: World
    faults: Sequence[Fault] = ()
    calls: Counter[str] = field(default_factory=Counter)
    log: dict[str, list[float]] = field(default_factory=dict)
    _snapshots: dict[Fault, list[Job]] = field(default_factory=dict)

    def call(self, name: str, arguments: Sequence[str]) -> Answer:
        """Execute a command now."""
        self.calls[name] += 1
        self.log.setdefault(name, []).append(self.world.now)
        fault = self._fault(name)
        what = fault.what if fault is not None else ""
        if name == "sbatch":
            self.world.reached("submitting")
        unreachable = self._unreachable(name, arguments)
        if unreachable is not None:
            return unreachable
        if name == "sbatch":
            return self._sbatch(arguments, what, fault)
        if what == "no answer":
            return Answer(seconds=NEVER)
        if what == "connection refused":
            return Answer(err=f"{name}: error: {_REFUSED}\n", code=1)
        if what == "garbage":
            return Answer("NOTICE: maintenance on Friday\n\x00|||\n")
        jobs = self.world.jobs
        if what == "stale" and fault is not None:
            jobs = self._snapshots.setdefault(fault, copy.deepcopy(jobs))
        out = {"squeue": self._squeue, "sacct": self._sacct}.get(name, self._other(name, what))(
            arguments, jobs
        )
        if what == "cut off":
            out = out[: 2 * len(out) // 3]
        if what == "empty":
            out = ""
        if what == "odd state":
            out = out.replace("|RUNNING|", "|TELEPORTING|").replace("|PENDING|", "|REQUEUE_HOLD|")
        return Answer(out, seconds=20.0 if what == "slow" else 0.0)

    def _fault(self, name: str) -> Fault | None:
        now = self.world.now - self.world.began
        return next(
            (f for f in self.faults if f.command == name and f.begin <= now < f.begin + f.seconds), None
        )

    def _unreachable(self, name: str, arguments: Sequence[str]) -> Answer | None:
        """Answer while the daemon that is asked does not; what one that hangs was asked, it does later."""
        now, site = self.world.now, self.world.site
        if name in {"sacct", "sacctmgr"}:
            return Answer(err=f"{name}: error: {_DATABASE}\n", code=1) if site.accounting(now) else None
        span = site.controller(now)
        if span is None:
            return None
        word = "Batch job submission failed" if name == "sbatch" else f"{name} error"
        if span.fault.what != "controller hangs":
            return Answer(err=f"{name}: error: {word}: {_REFUSED}\n", code=1, seconds=_TIMEOUT / 2)
        if name == "sbatch":
            request = self._request(arguments)
            if not self._refusal(request):
                self.world.at(span.end, lambda: void(self.world.accept(request)))
        if name == "scancel":
            self.world.at(span.end, lambda: void(self._other(name, "")(arguments, ())))
        return Answer(err=f"{name}: error: {word}: {_TIMED_OUT}\n", code=1, seconds=_TIMEOUT)

    def _request(self, arguments: Sequence[str]) -> Request:
        request = read_script(Path(arguments[-1]))
        return replace(request, cpus=request.cpus * self.world.settings.allocation)

    def _sbatch(self, arguments: Sequence[str], what: str, fault: Fault | None) -> Answer:
        request = self._request(arguments)
        refusal = self._refusal(request)
        if what == "connection refused":
            return Answer(err=f"sbatch: error: {_REFUSED}\n", code=1)
        if what == "no answer":
            return Answer(seconds=NEVER)
        if what == "refused":
            return Answer(
                err="sbatch: error: Batch job submission failed: Invalid qos specification\n", code=1
            )
        if what == "submit limit" or refusal:
            return Answer(err=f"sbatch: error: {refusal or _LIMIT}\n", code=1)
        if what == "lost":
            return Answer("Submitted batch job 7\n")
        if what == "accepted late" and fault is not None:
            self.world.at(self.world.now + fault.value, lambda: void(self.world.accept(request)))
            return Answer(seconds=NEVER)
        number = self.world.accept(request)
        if what == "accepted twice":
            self.world.accept(request)
        if what == "accepted, no answer":
            return Answer(seconds=NEVER)
        if what == "garbage":
            return Answer("Welcome to the cluster!\n")
        return Answer(f"Submitted batch job {number}\n", seconds=20.0 if what == "slow" else 0.0)

    def _refusal(self, request: Request) -> str:
        settings = self.world.settings
        if request.count > settings.array_size:
            return "Batch job submission failed: Invalid job array specification"
        limit = settings.submit_limit
        if limit is not None and len(self.world.active()) + request.count > limit:
            return f"QOSMaxSubmitJobPerUserLimit\nsbatch: error: {_LIMIT}"
        if request.cpus > max(settings.nodes.values()):
            return "Batch job submission failed: Requested node configuration is not available"
        return ""

    def _squeue(self, arguments: Sequence[str], jobs: Sequence[Job]) -> str:
        assert _QUEUE_FORMAT in arguments and "--states=all" in arguments and "--array" in arguments, (
            arguments
        )
        return "".join(
            self._queue_row(job)
            for job in _named(arguments, jobs)
            if job.state != "FORGOTTEN"
            if job.ended is None or self.world.now - job.ended < self.world.settings.remembered
        )

    def _queue_row(self, job: Job) -> str:
        begun = end = "N/A"
        node = ""
        if job.starts and job.starts[-1].state != "REQUEUED":
            start = job.starts[-1]
            begun, node = str(int(start.begun)), start.node
            end = str(int(start.ended if start.ended is not None else start.begun + 60 * job.request.minutes))
        state = job.state.split()[0]
        place = f"{node}|{job.request.cpus}|{job.reason}"
        return f"{job.number}|{job.index}|{job.request.name}|{state}|{begun}|{end}|{place}\n"

    def _sacct(self, arguments: Sequence[str], jobs: Sequence[Job]) -> str:
        assert _ACCOUNTING_FORMAT in arguments and "--duplicates" in arguments, arguments
        if not self.world.settings.accounting:
            return ""
        rows = []
        for job in _named(arguments, jobs):
            for start in job.starts:
                elapsed = (
                    start.elapsed if start.ended is not None else int(self.world.clock()) - int(start.begun)
                )
                end = "Unknown" if start.ended is None else int(start.ended)
                where = f"{start.node}|{job.request.cpus}|{end}"
                rows.append(f"{job.id}|{job.request.name}|{start.state}|{elapsed}|{where}\n")
            forgotten = job.state == "FORGOTTEN"
            if not forgotten and (not job.starts or job.starts[-1].state == "REQUEUED"):
                index = f"[{job.index}]" if job.state == "PENDING" else str(job.index)
                end = "Unknown" if job.state == "PENDING" else int(self.world.clock())
                rows.append(f"{job.number}_{index}|{job.request.name}|{job.state}|0|None assigned|0|{end}\n")
        return "".join(rows)

    def _other(self, name: str, what: str) -> Callable[[Sequence[str], Sequence[Job]], str]:
        def scancel(arguments: Sequence[str], jobs: Sequence[Job]) -> str:
            for identifier in arguments:
                job = self.world.job(identifier)
                if job is not None and what != "ignored":
                    self.world.cancel(job)
            return ""

        def scontrol(arguments: Sequence[str], jobs: Sequence[Job]) -> str:
            settings = self.world.settings
            return _CONFIGURATION.format(
                accounting="slurmdbd" if settings.accounting else "none",
                kill_wait=settings.kill_wait,
                array_size=settings.array_size,
                remembered=settings.remembered,
            )

        def sacctmgr(arguments: Sequence[str], jobs: Sequence[Job]) -> str:
            if "associations" not in arguments:
                return qos("normal")
            return association("project", submitted=str(self.world.settings.submit_limit or ""))

        def sinfo(arguments: Sequence[str], jobs: Sequence[Job]) -> str:
            return "".join(f"{name} idle\n" for name in self.world.settings.nodes)

        return {"scancel": scancel, "scontrol": scontrol, "sacctmgr": sacctmgr}.get(name, sinfo)


def void(value: object) -> None:
    """Drop a value."""


def _named(arguments: Sequence[str], jobs: Sequence[Job]) -> list[Job]:
    names = next(
        (item.partition("=")[2].split(",") for item in arguments if item.startswith("--name=")), None
    )
    return [job for job in jobs if names is None or job.request.name in names]


def read_script(path: Path) -> Request:
    """Read the options of a job script, as ``sbatch`` does."""
    lines = [line[8:] for line in path.read_text().splitlines() if line.startswith("#SBATCH ")]
    options = {name.lstrip("-"): value for name, _, value in (line.strip().partition("=") for line in lines)}
    count = re.match(r"0-(\d+)", options.get("array", "0-0"))
    assert count is not None and "no-requeue" in options, options
    ntasks, threads = int(options.get("ntasks", "1")), int(options.get("cpus-per-task", "1"))
    return Request(
        options["job-name"],
        path.parent,
        ntasks * threads,
        int(options["time"]),
        int(count[1]) + 1,
        tuple(lines),
    )


__all__ = ["ACTIVE", "COMMANDS", "NEVER", "Answer", "Commands", "read_script"]
