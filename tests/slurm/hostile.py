"""Campaigns in processes of their own on a Slurm, to be killed and resumed; what must hold in the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator import campaign, events, journal, session, state
from orchestrator.state import RunStatus, State
from tests.slurm.faulty.campaigns import charges

# The program notes when each attempt begins and ends, and prints what depends on its point only.
TEXT = """
name: {name}
application: generic
executable: /bin/sh
program:
  arguments:
    - -c
    - 'echo "begin $PWD" >> "{{log}}"; sleep {{seconds}}; echo t={{n}}; echo "end $PWD" >> "{{log}}"'
  output: [{{callpath: main, pattern: "t=(.*)"}}]
settings: {{log: {log}, seconds: {seconds}}}
parameters: {{n: {values}}}
measure: {{time_limit: {limit} s, repetitions: {{initial: {repetitions}, maximum: {repetitions}}}}}
strategy: {{name: full, batch_size: {batch}}}
stop: {{budget: {budget} core-hours, patience: 9}}
executor: {{name: slurm, launcher: none, poll_interval: {interval} s, max_pending: {pending}{further}}}
"""


@dataclass
class Hostile:
    """A campaign of ``values`` × ``repetitions`` runs of ``seconds`` each."""

    directory: Path
    environment: Mapping[str, str]
    values: Sequence[int] = (1, 2, 3)
    repetitions: int = 2
    seconds: float = 2.0
    limit: float = 30.0
    interval: float = 1.0
    pending: int = 3
    batch: int = 9
    budget: float = 3.0
    further: str = ""
    kills: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def log(self) -> Path:
        """Where the program notes its executions."""
        return self.directory.with_suffix(".log")

    def write(self) -> Path:
        """Write the campaign file."""
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        path = self.directory.with_suffix(".yaml")
        text = TEXT.format(
            name=self.directory.name,
            log=self.log,
            seconds=self.seconds,
            values=list(self.values),
            limit=self.limit,
            repetitions=self.repetitions,
            batch=self.batch,
            budget=self.budget,
            interval=self.interval,
            pending=self.pending,
            further=self.further,
        )
        path.write_text(text)
        return path

    def start(self) -> None:
        """Start a controller, or another one after that."""
        path = self.write()
        with self.directory.with_suffix(".out").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "orchestrator", "run", str(path), "--directory", str(self.directory)],
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def kill(self) -> bool:
        """Kill the controller; return False if it was over."""
        assert self._process is not None
        over = self._process.poll() is not None
        self._process.kill()
        self._process.wait()
        self.kills += not over
        return not over

    def wait(self, seconds: float) -> int:
        """Wait for the controller's end; return its exit code."""
        assert self._process is not None
        return self._process.wait(seconds)

    def over(self) -> bool:
        """Whether the controller has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def entries(self) -> list[journal.Entry]:
        """Read the journal."""
        return list(journal.read(self.directory / journal.FILE_NAME))

    def handles(self) -> dict[str, str]:
        """Return the job of each attempt in flight that is seen running."""
        now = session.replayed(self.directory) if session.holds_campaign(self.directory) else State()
        return {attempt.id: item.handle for attempt, item in now.in_flight.items() if item.running}

    def end_attempts(self) -> bool:
        """Kill whatever runs, as a power failure of its node does; tell whether anything did."""
        struck = False
        for record in self.directory.glob("runs/*/*/*/attempt.json"):
            found = json.loads(record.read_text())
            for pid, _ in [] if found.get("finished") else found["processes"]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    struck = True
        return struck

    def running(self, seconds: float = 60.0) -> str:
        """Wait until an attempt runs; return the id of its job."""
        deadline = time.monotonic() + seconds
        while not (found := self.handles()):
            assert time.monotonic() < deadline, f"nothing runs in {self.directory} after {seconds} s"
            time.sleep(0.1)
        return next(iter(found.values()))


Books = Mapping[tuple[str, ...], Sequence[tuple[float, int]]]


def broken(hostile: Hostile, books: Books) -> list[str]:
    """Return every broken promise of a campaign, in words.

    Parameters
    ----------
    hostile
        The campaign, which has ended.
    books
        Seconds and CPUs of each start of a job, by the attempts that share it.
    """
    final = session.replayed(hostile.directory)
    return [*_ended(final), *_executed(hostile, final), *_budget(hostile), *_ledger(hostile, books)]


def _ended(final: State) -> Iterator[str]:
    if final.stopped is None or not final.stopped.detail:
        yield "it ended without a stated reason"
    for run, item in final.runs.items():
        if item.status not in {RunStatus.MEASURED, RunStatus.GIVEN_UP, RunStatus.SKIPPED}:
            yield f"{run} is {item.status} in the end"
        elif item.status is not RunStatus.MEASURED and not item.reason:
            yield f"{run} was {item.status} without a reason"


def _executed(hostile: Hostile, final: State) -> Iterator[str]:
    lines = hostile.log.read_text().splitlines() if hostile.log.exists() else []
    begun = Counter(line.split(" ", 1)[1] for line in lines if line.startswith("begin "))
    ended = {line.split(" ", 1)[1].split("/runs/")[1] for line in lines if line.startswith("end ")}
    yield from (f"{path} was executed {count} times" for path, count in begun.items() if count > 1)
    settled = [entry.event for entry in hostile.entries() if isinstance(entry.event, events.AttemptFinished)]
    accepted = Counter(event.attempt.run for event in settled if event.failure is None)
    yield from (f"{run} was measured {count} times" for run, count in accepted.items() if count > 1)
    good = {event.attempt.id for event in settled if event.failure is None}
    for identifier in sorted(ended - good):
        record = json.loads((hostile.directory / "runs" / identifier / "attempt.json").read_text())
        if record.get("exit_code") == 0 and not record["cancelled"]:
            yield f"the measurement of {identifier} is lost"
    yield from (f"{identifier} was accepted without having ended" for identifier in sorted(good - ended))


def _budget(hostile: Hostile) -> Iterator[str]:
    path = hostile.directory / session.CAMPAIGN_FILE
    budget = campaign.load(path, (), starts=False).stop.budget
    now = State()
    for entry in hostile.entries():
        now = state.apply(now, entry.event, entry.time)
        if now.spent + now.reserved > budget + 1e-6:
            yield f"entry {entry.sequence}: {now.spent} spent and {now.reserved} reserved of {budget}"


def _ledger(hostile: Hostile, books: Books) -> Iterator[str]:
    unconfirmed = {attempt.id for attempt in session.replayed(hostile.directory).unconfirmed}
    packs = {identifier: pack for pack in books for identifier in pack}
    charged: dict[tuple[str, ...], float] = dict.fromkeys(books, 0.0)
    for attempt, cost in charges(hostile.entries()).items():
        pack = packs.get(attempt.id, (attempt.id,))
        charged[pack] = charged.get(pack, 0.0) + cost
    for pack, cost in charged.items():
        own = books.get(pack, ())
        truth = sum(seconds * cpus for seconds, cpus in own)
        most = sum(cpus for _, cpus in own)  # a second of each start
        if abs(cost - truth) > most and not (unconfirmed & set(pack) and cost > truth):
            yield f"{', '.join(pack)}: charged {cost} core-seconds, sacct has {truth} in {len(own)} jobs"


def booked(hostile: Hostile, rows: str) -> dict[tuple[str, ...], list[tuple[float, int]]]:
    """Return the books by attempts, from ``JobName|JobID|ElapsedRaw|AllocCPUS`` rows of ``sacct``."""
    names = {
        event.name: event.attempt.id
        for event in (entry.event for entry in hostile.entries())
        if isinstance(event, events.AttemptIntended)
    }
    manifests = {
        path.stem: json.loads(path.read_text())["attempts"]
        for path in (hostile.directory / "batches").glob("*.json")
    }
    found: dict[tuple[str, ...], list[tuple[float, int]]] = {}
    for row in filter(None, rows.splitlines()):
        batch, job, elapsed, cpus = row.split("|")
        if batch in manifests and "[" not in job:
            entry = manifests[batch][int(job.partition("_")[2])]
            pack = tuple(names[name] for name in ([entry] if isinstance(entry, str) else entry))
            found.setdefault(pack, []).append((float(elapsed), int(cpus)))
    return found


def environment(**changes: str) -> dict[str, str]:
    """Return the environment of a controller."""
    return {**os.environ, "PYTHONWARNINGS": "ignore", **changes}
