"""Campaigns as users run them, on a Slurm that is disturbed; what must hold when all of them are over."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.control import existing
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.file import FILE_NAME, holds_campaign, read
from orchestrator.journal.replay import apply
from orchestrator.journal.state import RunStatus, State
from orchestrator.types import FailureClass
from tests.slurm.faulty.campaigns import charges
from tests.slurm.hostile import executions, names_of, sharing

# Only the first rank notes when an attempt begins and ends, and prints what depends on its point only.
TEXT = """
name: {name}
application: generic
executable: /bin/sh
program:
  arguments:
    - -c
    - '[ "$SLURM_PROCID" = 0 ] && echo "begin $PWD" >> "{{log}}";
      sleep {seconds}; [ "$SLURM_PROCID" = 0 ] || exit 0; echo t={{p}}; echo "end $PWD" >> "{{log}}"'
  ranks: p
  output: [{{callpath: main, pattern: "t=(.*)"}}]
settings: {{log: {log}}}
parameters: {{p: [1, 2, 3, 4]}}
measure:
  time_limit: 60 s
  expected_time: {expected} s
  repetitions: {{initial: {repetitions}, maximum: {repetitions}}}
strategy: {{name: full, first_round: 40, batch_size: 40}}
stop: {{budget: {budget} core-hours, patience: 9}}
executor:
  name: slurm
  launcher: "{launcher}"
  partition: debug
  poll_interval: {interval} s
  max_pending: {pending}
  pack: {pack}
"""
ANNOUNCED = 180.0  # seconds of an outage after which it must be reported, on a busy machine
FORGOTTEN = 15.0  # seconds before it was killed that slurmctld may have forgotten
_NOT_OURS = {FailureClass.INFRASTRUCTURE}


@dataclass(kw_only=True)
class Campaign:
    """One campaign and its controller: ``orchestrator run``, then ``orchestrator resume``, until it is over.

    Attributes
    ----------
    directory
        Of the campaign.
    environment
        Of its controllers.
    shape
        Values of `TEXT`.
    exits
        How its controllers ended.
    deleted
        The attempts whose directories were deleted.
    """

    directory: Path
    environment: Mapping[str, str]
    shape: Mapping[str, object]
    exits: Counter[int] = field(default_factory=Counter)
    kills: int = 0
    deleted: set[str] = field(default_factory=set)
    again: float = 0.0  # when to start the next controller
    sessions: list[tuple[float, float]] = field(default_factory=list)  # of controllers, Unix seconds
    _since: float = 0.0
    _controller: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """Where the program notes its executions."""
        return self.directory.with_suffix(".log")

    @property
    def output(self) -> Path:
        """What its controllers print."""
        return self.directory.with_suffix(".out")

    def start(self) -> None:
        """Start a controller."""
        file = self.directory.with_suffix(".yaml")
        if not file.exists():
            file.write_text(TEXT.format(name=self.directory.name, log=self.log, **self.shape))
        begun, self._since = holds_campaign(self.directory), time.time()
        command = (
            ["resume", str(self.directory)]
            if begun
            else ["run", str(file), "--directory", str(self.directory)]
        )
        with self.output.open("ab") as output:
            self._controller = subprocess.Popen(
                [sys.executable, "-m", "orchestrator", *command],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def second(self) -> subprocess.Popen[bytes]:
        """Start a further controller in the same directory."""
        with self.directory.with_suffix(".second").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "orchestrator", "resume", str(self.directory)],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def adopt(self, controller: subprocess.Popen[bytes]) -> None:
        """Take a further controller, which took over, for the one."""
        self._since = time.time()
        self._controller = controller

    @property
    def controlled(self) -> bool:
        """Whether its controller runs."""
        return self._controller is not None and self._controller.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send its controller a signal."""
        if self._controller is None or not self.controlled:
            return
        self._controller.send_signal(number)
        if number == signal.SIGSTOP:  # it notices nothing meanwhile
            self.sessions.append((self._since, time.time()))
        elif number == signal.SIGCONT:
            self._since = time.time()

    def ended(self) -> int | None:
        """Return the exit code of a controller that has ended, once."""
        if self._controller is None or (code := self._controller.poll()) is None:
            return None
        self._controller = None
        self.sessions.append((self._since, time.time()))
        self.exits[code] += 1
        return code

    def entries(self) -> list[Entry]:
        """Read the journal."""
        return list(read(self.directory / FILE_NAME)) if holds_campaign(self.directory) else []

    def state(self) -> State:
        """Replay the journal."""
        return existing.replayed(self.directory) if holds_campaign(self.directory) else State()

    def last_words(self) -> str:
        """Return the end of what its controllers printed."""
        return self.output.read_text(errors="replace")[-600:] if self.output.exists() else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One start of a job in accounting; ``end`` in Unix seconds, None where accounting never learns of it."""

    attempts: tuple[str, ...]
    elapsed: float
    cpus: int
    end: float | None


def rows_of(campaign: Campaign, text: str) -> list[Row]:
    """Read the rows of ``sacct`` of a campaign: ``JobName|JobID|ElapsedRaw|AllocCPUS|End``."""
    names = names_of(campaign.entries())
    manifests = {
        path.stem: json.loads(path.read_text())["attempts"]
        for path in (campaign.directory / "batches").glob("*.json")
    }
    found = []
    for line in filter(None, text.splitlines()):
        batch, job, elapsed, cpus, end = line.split("|")
        index = job.partition("_")[2]
        if batch not in manifests or not index.isdigit():
            continue
        pack = manifests[batch][int(index)]
        attempts = tuple(names[name] for name in ([pack] if isinstance(pack, str) else pack))
        instant = None if end == "Unknown" else time.mktime(time.strptime(end, "%Y-%m-%dT%H:%M:%S"))
        found.append(Row(attempts=attempts, elapsed=float(elapsed), cpus=int(cpus), end=instant))
    return found


@dataclass
class Verdict:
    """What was found of one campaign: figures, broken promises, and deviations that are documented limits."""

    figures: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)


def judge(
    campaign: Campaign, rows: list[Row], kills: Iterable[float], away: Iterable[tuple[float, float]]
) -> Verdict:
    """Return what is broken in a campaign that is over.

    Parameters
    ----------
    campaign
        The campaign.
    rows
        Of accounting.
    kills
        When slurmctld was killed (Unix seconds).
    away
        From when to when it did not answer.
    """
    verdict, final, entries = Verdict(), campaign.state(), campaign.entries()
    name = campaign.directory.name
    settled = [entry.event for entry in entries if isinstance(entry.event, events.AttemptFinished)]
    statuses = Counter(item.status for item in final.runs.values())
    figures = verdict.figures
    figures["campaigns"] += 1
    figures["runs measured"] += statuses[RunStatus.MEASURED]
    figures["runs given up"] += statuses[RunStatus.GIVEN_UP]
    figures["runs skipped"] += statuses[RunStatus.SKIPPED]
    figures["attempts"] += len(settled)
    figures.update(f"failed: {event.failure}" for event in settled if event.failure is not None)
    figures[f"stopped: {final.stopped.rule if final.stopped else 'never'}"] += 1
    found = [
        *_ended(final, campaign),
        *_crashed(campaign),
        *_executed(campaign, settled),
        *_blamed(campaign, settled, final),
        *_overspent(campaign, entries, rows),
    ]
    away = list(away)
    found += _announced(campaign, entries, away, figures)
    verdict.broken += [f"{name}: {text}" for text in found]
    _compare(campaign, rows, list(kills), away, verdict)
    return verdict


def _ended(final: State, campaign: Campaign) -> Iterator[str]:
    if final.stopped is None or not final.stopped.detail:
        yield f"it ended without a stated reason: {campaign.last_words()}"
    for run, item in final.runs.items():
        if item.status not in {RunStatus.MEASURED, RunStatus.GIVEN_UP, RunStatus.SKIPPED}:
            yield f"{run} is {item.status} in the end"


def _crashed(campaign: Campaign) -> Iterator[str]:
    if "Traceback" in campaign.output.read_text(errors="replace"):
        yield f"a controller ended with an error: {campaign.last_words()}"


def _executed(campaign: Campaign, settled: list[events.AttemptFinished]) -> Iterator[str]:
    begun, ended = executions(campaign.log)
    yield from (f"{path} was executed {count} times" for path, count in begun.items() if count > 1)
    accepted = Counter(event.attempt.run for event in settled if event.failure is None)
    yield from (f"{run} was measured {count} times" for run, count in accepted.items() if count > 1)
    good = {event.attempt.id for event in settled if event.failure is None}
    for identifier in sorted(ended - good - campaign.deleted):
        path = campaign.directory / "runs" / identifier / "attempt.json"
        record = json.loads(path.read_text()) if path.exists() else {}
        if record.get("exit_code") == 0 and not record["cancelled"] and not record["timed_out"]:
            yield f"the measurement of {identifier} is lost"
    yield from (f"{identifier} was accepted without having ended" for identifier in sorted(good - ended))


def _blamed(campaign: Campaign, settled: list[events.AttemptFinished], final: State) -> Iterator[str]:
    """No application ever fails by itself here."""
    for event in settled:
        if event.failure not in {None, *_NOT_OURS} and event.attempt.id not in campaign.deleted:
            yield f"{event.attempt} is called a failure of class {event.failure}: {event.reason}"
    for run, item in final.runs.items():
        if item.status is RunStatus.GIVEN_UP:
            yield f"{run} was given up: {item.reason}"
    if final.stopped is not None and final.stopped.rule in {"failures", "failure_rate"}:
        yield f"it was stopped by {final.stopped.rule}: {final.stopped.detail}"


def _announced(
    campaign: Campaign, entries: list[Entry], away: list[tuple[float, float]], figures: Counter[str]
) -> Iterator[str]:
    """Every outage of slurmctld that a controller lived through for minutes is in its journal."""
    reports = [
        (entry.event.since, entry.time)
        for entry in entries
        if isinstance(entry.event, events.OutageBegan) and entry.event.what == "slurmctld"
    ]
    figures["outages reported"] += len(reports)
    stopped = next((e.time for e in entries if isinstance(e.event, events.StopRuleReached)), math.inf)
    for begun, ended in away:
        for session_begun, session_ended in campaign.sessions:
            first, last = max(begun, session_begun), min(ended, session_ended, stopped)
            if last - first > ANNOUNCED and not any(since < last and when > begun for since, when in reports):
                yield f"nothing said that slurmctld was away for {last - first:.0f} s"


def _overspent(campaign: Campaign, entries: list[Entry], rows: list[Row]) -> Iterator[str]:
    """Nothing begins beyond the budget; accounting may charge more only for what it noticed too late."""
    budget = float(str(campaign.shape["budget"])) * 3600
    now = State()
    for entry in entries:
        now = apply(now, entry.event, entry.time)
        if isinstance(entry.event, events.AttemptIntended) and now.spent + now.reserved > budget + 1e-6:
            yield f"entry {entry.sequence}: {now.spent} spent and {now.reserved} reserved of {budget}"
    truth = sum(row.elapsed * row.cpus for row in rows if row.end is not None)
    if truth > budget:
        yield f"Slurm charged {truth} core-seconds, the budget is {budget}"


def _compare(
    campaign: Campaign,
    rows: list[Row],
    kills: list[float],
    away: list[tuple[float, float]],
    verdict: Verdict,
) -> None:
    """Compare what was charged with accounting, by jobs."""
    unconfirmed = {attempt.id for attempt in campaign.state().unconfirmed}
    intents = {
        entry.event.attempt.id: entry.time
        for entry in campaign.entries()
        if isinstance(entry.event, events.AttemptIntended)
    }
    charged = {attempt.id: cost for attempt, cost in charges(campaign.entries()).items()}
    figures = verdict.figures
    for group in sharing([*(row.attempts for row in rows), *((attempt,) for attempt in charged)]):
        own = [row for row in rows if group & {*row.attempts}]
        known = [row for row in own if row.end is not None]
        cost = sum(charged.get(attempt, 0.0) for attempt in group)
        truth = sum(row.elapsed * row.cpus for row in known)
        figures["core-seconds charged"] += round(cost)
        figures["core-seconds in accounting"] += round(truth)
        figures["jobs"] += len(own)
        most = sum(row.cpus for row in known)  # a second of each start
        if abs(cost - truth) <= most:
            continue
        who = f"{campaign.directory.name}: {', '.join(sorted(group))}"
        text = f"{who}: charged {cost:.0f}, sacct has {truth:.0f}"
        ends = [row.end for row in known if row.end is not None]
        if cost > truth and group & unconfirmed:
            verdict.limits.append(f"{text} (an upper bound that accounting never confirmed)")
        elif not own and any(-1 <= kill - intents[one] <= FORGOTTEN for one in group for kill in kills):
            verdict.limits.append(f"{text} (slurmctld was killed, and had forgotten the job: by its records)")
        elif len(own) > len(known):
            verdict.limits.append(f"{text} (a job that accounting never ends)")
        elif cost < truth and group & unconfirmed and any(a <= e <= b + 60 for e in ends for a, b in away):
            verdict.limits.append(f"{text} (its end was noticed late, and confirmed too late)")
        elif cost < truth and any(-10 <= end - kill <= 300 for end in ends for kill in kills):
            verdict.limits.append(f"{text} (slurmctld was killed, and had forgotten that it ended)")
        else:
            verdict.broken.append(text)


def free_environment(conf: Path) -> dict[str, str]:
    """Return the environment of controllers on a cluster."""
    return {**os.environ, "SLURM_CONF": str(conf), "PYTHONWARNINGS": "ignore"}
