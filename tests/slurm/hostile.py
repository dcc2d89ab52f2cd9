"""Campaigns in processes of their own on a Slurm, to be killed and resumed; what must hold in the end."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.campaign import loader
from orchestrator.control import existing
from orchestrator.executors.attempt.worker import HEARTBEAT
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.file import FILE_NAME, holds_campaign, read
from orchestrator.journal.replay import apply
from orchestrator.journal.state import RunStatus, State
from orchestrator.types import FailureClass
from tests.slurm.controllers import begin
from tests.slurm.daemons import wait_for
from tests.slurm.faulty.campaigns import charges

Starts = Mapping[tuple[str, ...], Sequence[tuple[float, int]]]

# The program notes when each attempt begins and ends, and prints what depends on its point only.
TEXT = """
name: {name}
application: generic
executable: /bin/sh
program:
  arguments:
    - -c
    - 'echo "begin $PWD" >> "{{log}}"; {work}; echo t={{n}}; echo "end $PWD" >> "{{log}}"'
  output: [{{callpath: main, pattern: "t=(.*)"}}]
settings: {{log: {log}, seconds: {seconds}}}
parameters: {{n: {values}}}
measure: {{time_limit: {limit} s{measure}, repetitions: {{initial: {repetitions}, maximum: {repetitions}}}}}
strategy: {{name: full, first_round: {batch}, batch_size: {batch}}}
stop: {{budget: {budget} core-hours, patience: 9}}
executor:
  {{name: slurm, launcher: none, poll_interval: {interval} s, max_pending: {pending}, pack: {pack}{further}}}
"""

WAIT = "until [ -e {} ]; do sleep 0.2; done"

# Seconds. A slurmctld that was killed has forgotten jobs: those that live give a sign in this time.
GRACE = 1.2 * HEARTBEAT


@dataclass
class Hostile:
    """A campaign of ``values`` × ``repetitions`` runs of ``seconds`` each.

    Where it is ``held``, no run goes on before the file ``gate`` exists, however slow the machine is.
    """

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
    work: str = "sleep {seconds}"
    measure: str = ""
    pack: str = "off"
    further: str = ""
    held: bool = False
    kills: int = 0
    _controller: int | None = None  # its pid
    _code: int | None = None  # what it exited with

    @property
    def log(self) -> Path:
        """Where the program notes its executions."""
        return self.directory.with_suffix(".log")

    @property
    def gate(self) -> Path:
        """What runs wait for; the campaigns of a directory have one in common."""
        return self.directory.with_name("gate")

    def write(self) -> Path:
        """Write the campaign file."""
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        path = self.directory.with_suffix(".yaml")
        text = TEXT.format(
            name=self.directory.name,
            log=self.log,
            seconds=self.seconds,
            work=f"{WAIT.format(self.gate)}; {self.work}" if self.held else self.work,
            measure=self.measure,
            values=list(self.values),
            limit=self.limit,
            repetitions=self.repetitions,
            batch=self.batch,
            budget=self.budget,
            interval=self.interval,
            pending=self.pending,
            pack=self.pack,
            further=self.further,
        )
        path.write_text(text)
        return path

    def start(self) -> None:
        """Start a controller, or another one after that."""
        self._controller = begin(self.write().read_text(), self.directory, GRACE, self.environment)
        self._code = None

    def kill(self) -> bool:
        """Kill the controller; return False if it was over or never started."""
        if self._controller is None or self.over():
            return False
        os.kill(self._controller, signal.SIGKILL)
        wait_for(self.over, "the killed controller")
        self.kills += 1
        return True

    def wait(self, seconds: float) -> int:
        """Wait for the controller's end; return its exit code."""
        wait_for(self.over, f"the end of {self.directory}", seconds)
        assert self._code is not None
        return self._code

    def over(self) -> bool:
        """Whether the controller has ended."""
        assert self._controller is not None, f"{self.directory} was not started"
        if self._code is None:
            pid, status = os.waitpid(self._controller, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code is not None

    def entries(self) -> list[Entry]:
        """Read the journal."""
        return list(read(self.directory / FILE_NAME))

    def executing(self) -> dict[str, str]:
        """Return the job of each attempt whose application has begun and not ended."""
        begun, ended = executions(self.log)
        now = existing.replayed(self.directory) if holds_campaign(self.directory) else State()
        return {
            attempt.id: item.handle
            for attempt, item in now.in_flight.items()
            if item.handle and attempt.id in begun.keys() - ended
        }


def executions(log: Path) -> tuple[Counter[str], set[str]]:
    """Return how often each attempt's application began, and those that ended, by the attempts' ids."""
    lines = log.read_text().splitlines() if log.exists() else []
    told = [(word, path.split("/runs/")[1]) for word, _, path in (line.partition(" ") for line in lines)]
    begun = Counter(attempt for word, attempt in told if word == "begin")
    return begun, {attempt for word, attempt in told if word == "end"}


def broken(hostile: Hostile, starts: Starts) -> list[str]:
    """Return every broken promise of a campaign, in words.

    Parameters
    ----------
    hostile
        The campaign, which has ended.
    starts
        Seconds and CPUs of each start of a job, by the attempts that share it.
    """
    final = existing.replayed(hostile.directory)
    return [*_ended(final), *_executed(hostile, final), *_budget(hostile), *_charges(hostile, starts)]


def _ended(final: State) -> Iterator[str]:
    if final.stopped is None or not final.stopped.detail:
        yield "it ended without a stated reason"
    for run, item in final.runs.items():
        if item.status not in {RunStatus.MEASURED, RunStatus.GIVEN_UP, RunStatus.SKIPPED}:
            yield f"{run} is {item.status} in the end"
        elif item.status is not RunStatus.MEASURED and not item.reason:
            yield f"{run} was {item.status} without a reason"


def _executed(hostile: Hostile, final: State) -> Iterator[str]:
    begun, ended = executions(hostile.log)
    yield from (f"{path} was executed {count} times" for path, count in begun.items() if count > 1)
    settled = [entry.event for entry in hostile.entries() if isinstance(entry.event, events.AttemptFinished)]
    accepted = Counter(event.attempt.run for event in settled if event.failure is None)
    yield from (f"{run} was measured {count} times" for run, count in accepted.items() if count > 1)
    good = {event.attempt.id for event in settled if event.failure is None}
    half = {event.attempt.id for event in settled if event.failure is FailureClass.MEMORY}
    for identifier in sorted(ended - good - half):
        record = json.loads((hostile.directory / "runs" / identifier / "attempt.json").read_text())
        if record.get("exit_code") == 0 and not record["cancelled"] and not record["timed_out"]:
            yield f"the measurement of {identifier} is lost"
    yield from (f"{identifier} was accepted without having ended" for identifier in sorted(good - ended))


def _budget(hostile: Hostile) -> Iterator[str]:
    path = hostile.directory / loader.CAMPAIGN_FILE
    budget = loader.load(path, (), starts=False).stop.budget
    now = State()
    for entry in hostile.entries():
        now = apply(now, entry.event, entry.time)
        if now.spent + now.reserved > budget + 1e-6:
            yield f"entry {entry.sequence}: {now.spent} spent and {now.reserved} reserved of {budget}"


def _charges(hostile: Hostile, starts: Starts) -> Iterator[str]:
    unconfirmed = {attempt.id for attempt in existing.replayed(hostile.directory).unconfirmed}
    charged = {attempt.id: cost for attempt, cost in charges(hostile.entries()).items()}
    for group in sharing([*starts, *((attempt,) for attempt in charged)]):
        own = [start for pack, found in starts.items() if group & {*pack} for start in found]
        cost = sum(charged.get(attempt, 0.0) for attempt in group)
        truth = sum(seconds * cpus for seconds, cpus in own)
        most = sum(cpus for _, cpus in own)  # a second of each start
        if abs(cost - truth) > most and not (group & unconfirmed and cost > truth):
            names = ", ".join(sorted(group))
            yield f"{names}: charged are {cost} core-seconds, sacct has {truth} in {len(own)} jobs"


def sharing(packs: Iterable[Sequence[str]]) -> list[set[str]]:
    """Return the attempts that share jobs, directly or through others."""
    groups: list[set[str]] = []
    for pack in packs:
        touched = [group for group in groups if group & {*pack}]
        groups = [group for group in groups if group not in touched] + [{*pack}.union(*touched)]
    return groups


def accounted_starts(hostile: Hostile, rows: str) -> Starts:
    """Return the starts of jobs by attempts.

    Rows of ``sacct`` are ``JobName|JobID|ElapsedRaw|AllocCPUS|End``.
    Jobs that never end in accounting are left out: Slurm's controller was killed and has forgotten them.
    """
    names = names_of(hostile.entries())
    manifests = {
        path.stem: json.loads(path.read_text())["attempts"]
        for path in (hostile.directory / "batches").glob("*.json")
    }
    found: dict[tuple[str, ...], list[tuple[float, int]]] = {}
    for row in filter(None, rows.splitlines()):
        batch, job, elapsed, cpus, end = row.split("|")
        index = job.partition("_")[2]
        if batch in manifests and index.isdigit() and end != "Unknown":
            pack = manifests[batch][int(index)]
            attempts = tuple(names[name] for name in ([pack] if isinstance(pack, str) else pack))
            found.setdefault(attempts, []).append((float(elapsed), int(cpus)))
    return found


def names_of(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the ids of attempts by the names of their submissions."""
    intents = (entry.event for entry in entries if isinstance(entry.event, events.AttemptIntended))
    return {event.name: event.attempt.id for event in intents}


def environment(**changes: str) -> dict[str, str]:
    """Return the environment of a controller."""
    return {**os.environ, "PYTHONWARNINGS": "ignore", **changes}
