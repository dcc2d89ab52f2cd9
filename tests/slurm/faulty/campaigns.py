"""Whole campaigns on the faulty Slurm, in virtual time, with controllers that die; what must hold after."""

from __future__ import annotations

import json
import math
import subprocess
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from orchestrator.campaign import loader
from orchestrator.control import loop, settle
from orchestrator.control.assembly import Assembly, assemble
from orchestrator.control.runtime import Runtime
from orchestrator.executors.attempt import record
from orchestrator.executors.base import Executor
from orchestrator.executors.slurm.executor import SlurmExecutor
from orchestrator.executors.slurm.options import SlurmSettings
from orchestrator.journal import events, setbacks
from orchestrator.journal.file import FILE_NAME, Entry, Journal, read
from orchestrator.journal.state import RunStatus, State, apply, replay
from orchestrator.models.base import Model
from orchestrator.types import Attempt, FailureClass
from tests.slurm.faulty.commands import COMMANDS, NEVER, Commands
from tests.slurm.faulty.faults import Fault
from tests.slurm.faulty.virtual import VirtualRunner
from tests.slurm.faulty.world import Job, Settings, World, charged_cpu_seconds, excess_cpu_seconds

START = 1_800_000_000.0
LONGEST = 30 * 86400.0  # virtual seconds after which a campaign counts as stuck
POLL_INTERVAL = 30.0
REPAIR = 3600.0  # seconds until somebody resumes a campaign that is paused
CALL = 0.05  # seconds that a command takes, if nothing is wrong
SHARE = 0.1  # of the budget, that failures of the site may cost until a campaign pauses
SEEN_IN_TIME = 60.0  # seconds that files may be late, so that no measurement is lost
TEXT = """
name: faulty
application: generic
executable: /bin/true
program: {{arguments: ["{{p}}"], ranks: p, output: [{{callpath: main, pattern: "t=(.*)"}}]}}
parameters: {{p: {values}}}
evaluation_point: {{p: 8}}
measure: {{time_limit: 100 s, repetitions: {{initial: {times}, maximum: {times}}}}}
strategy: {{name: full, batch_size: 2}}
stop: {{budget: {budget} core-seconds, patience: 9, failures: 5}}
executor: {{name: slurm, max_pending: {max_pending}, poll_interval: {interval} s, pack: {pack}}}
seed: {seed}
"""


_LOAD = record._load
# Of these, a run may be given up: Slurm does not take it, or ends it for its memory, time after time.
_REFUSALS = {"refused", "submit limit", "out of memory"}


class End(Enum):
    """How a controller ended."""

    STOPPED = "the campaign is over"
    PAUSED = "the campaign waits for somebody to repair the site"
    KILLED = "SIGKILL"


class Killed(BaseException):
    """The controller's SIGKILL: no handler of the program may see it."""


@dataclass(frozen=True)
class Scenario:
    """One campaign: its rules, the site, what goes wrong, and when controllers die.

    ``kills``: at which boundaries (journal appends before and after, commands before and after) a controller
    dies, counted over all controllers. ``away``: virtual seconds until the next one starts.
    """

    faults: tuple[Fault, ...] = ()
    kills: tuple[int, ...] = ()
    away: float = 60.0
    budget: float = 20000.0
    max_pending: int = 4
    seed: int = 0
    queue_delay: float = 30.0
    accounting: bool = True
    array_size: int = 1001
    submit_limit: int | None = None
    allocation: int = 1
    pack: int = 1
    repetitions: str = "any"
    srun: bool = False


@dataclass
class Outcome:
    """What happened."""

    scenario: Scenario
    state: State
    entries: list[Entry]
    world: World
    runner: VirtualRunner
    commands: Commands
    directory: Path
    kills: int = 0
    pauses: int = 0


def play(scenario: Scenario, directory: Path) -> Outcome:
    """Run a campaign to its end, however many controllers that takes."""
    game = _Game(scenario, directory)
    with game.slurm():
        while (how := game.controller()) is not End.STOPPED:
            game.kills += how is End.KILLED
            game.pauses += how is End.PAUSED
            game.sleep(scenario.away if how is End.KILLED else REPAIR)
    game.world.drain()
    entries = list(read(directory / FILE_NAME))
    return Outcome(
        scenario,
        replay(entries),
        entries,
        game.world,
        game.runner,
        game.commands,
        directory,
        game.kills,
        game.pauses,
    )


class _Game:
    def __init__(self, scenario: Scenario, directory: Path) -> None:
        self.scenario, self.directory = scenario, directory
        self.kills = self.pauses = self._boundaries = 0
        self.runner = VirtualRunner(self._seconds, scenario.srun)
        rng = np.random.default_rng(scenario.seed)
        delays = rng.exponential(scenario.queue_delay, 1000) if scenario.queue_delay else np.zeros(1000)
        settings = Settings(
            accounting=scenario.accounting,
            array_size=scenario.array_size,
            submit_limit=scenario.submit_limit,
            allocation=scenario.allocation,
            nodes={f"n{i}": 4 * scenario.allocation for i in range(1, 5)},
            queue_delay=lambda number: float(delays[number % 1000]),
        )
        self.world = World(self.runner, settings, scenario.faults, START)
        self.commands = Commands(self.world, scenario.faults)
        text = TEXT.format(
            budget=scenario.budget,
            max_pending=scenario.max_pending,
            interval=POLL_INTERVAL,
            seed=scenario.seed,
            values=[1, 2, 4] if scenario.pack == 1 else [1, 2],
            times=2 if scenario.pack == 1 else 4,
            pack=f"{{most: {scenario.pack}, repetitions: {scenario.repetitions}}}",
        )
        self.campaign = loader.loads(text, "faulty.yaml", directory)

    def _seconds(self, directory: Path) -> float:
        run = str(directory.parent.relative_to(self.directory))
        return 10.0 + zlib.crc32(f"{self.scenario.seed}{run}".encode()) % 60

    def sleep(self, seconds: float) -> None:
        self.world.advance(self.world.now + seconds)
        if self.world.now - START > LONGEST:
            raise AssertionError(f"stuck: {LONGEST / 86400:.0f} days have passed")

    def boundary(self, moment: str = "", entries: Sequence[Entry] = ()) -> None:
        self._boundaries += 1
        if self._boundaries in self.scenario.kills:
            raise Killed

    @contextmanager
    def slurm(self) -> Iterator[None]:
        """Let calls of Slurm's commands go to the world, as far as any caller can see."""
        real = subprocess.run

        def run(command: Sequence[str], **options: Any) -> Any:
            if command[0] not in COMMANDS:
                return real(command, **options)
            self.boundary()
            answer = self.commands.call(command[0], list(command[1:]))
            self.sleep(min(answer.seconds + CALL, options["timeout"]))
            self.boundary()
            if answer.seconds == NEVER or answer.seconds > options["timeout"]:
                raise subprocess.TimeoutExpired(list(command), options["timeout"])
            return subprocess.CompletedProcess(command, answer.code, answer.out.encode(), answer.err.encode())

        def load(path: Path) -> Any:
            return None if self.runner.hidden.get(path, 0.0) > self.world.now else _LOAD(path)

        with patch("subprocess.run", run), patch("orchestrator.executors.attempt.record._load", load):
            yield

    def controller(self) -> End:
        """Start or resume the campaign; return how its controller ended."""
        try:
            with Journal(self.directory, self.boundary) as opened:
                known = replay(opened.entries())
                if not known.id:
                    begun = events.CampaignStarted("c0ffee00", dict(self.campaign.raw), "0")
                    known = replay(opened.append([begun], self.world.now), known)
                final = loop.run(self._runtime(), opened, known, lambda entry, state: None, lambda: False)
        except Killed:
            return End.KILLED
        return End.STOPPED if final.stopped is not None else End.PAUSED

    def _runtime(self) -> Runtime:
        options = self.campaign.executor
        executor = SlurmExecutor(
            self.directory,
            SlurmSettings(poll_interval=options.poll_interval),
            np.random.default_rng(self.scenario.seed),
            clock=lambda: self.world.now + self.world.site.clock("our clock", self.world.now),
            sleep=self.sleep,
        )
        return _WithoutModels(assemble(self.campaign), self.directory, executor)


class _WithoutModels(Runtime):
    """Models take most of the time of such a short campaign, and are tested elsewhere."""

    def __init__(self, assembly: Assembly, directory: Path, executor: Executor):
        super().__init__(assembly, directory, executor)
        self.poll_interval = POLL_INTERVAL

    def provenance(self) -> dict[str, Any]:
        return {}

    def fit(self, state: State) -> tuple[Model, ...]:
        return ()

    def publish(self, state: State, models: tuple[Model, ...]) -> None:
        pass


# --- what must hold -----------------------------------------------------------------------------------


def violations(outcome: Outcome) -> list[str]:
    """Return every broken promise, in words."""
    return [
        *_stopped(outcome),
        *_blamed(outcome),
        *_paused(outcome),
        *_exactly_once(outcome),
        *_submitted_once(outcome),
        *_measurements(outcome),
        *_budget(outcome),
        *_charges(outcome),
        *_queries(outcome),
    ]


def _stopped(outcome: Outcome) -> Iterator[str]:
    final = outcome.state
    if final.stopped is None or not final.stopped.detail:
        yield "it ended without a stated reason"
    if final.in_flight:
        yield f"attempts are in flight after the end: {list(final.in_flight)}"
    for run, item in final.runs.items():
        if item.status not in {RunStatus.MEASURED, RunStatus.GIVEN_UP, RunStatus.SKIPPED}:
            yield f"{run} is {item.status} in the end"
        elif item.status is not RunStatus.MEASURED and not item.reason:
            yield f"{run} was {item.status} without a reason"


def _blamed(outcome: Outcome) -> Iterator[str]:
    """What Slurm, nodes and file system did is no failure of the application, and stops no campaign.

    A Slurm that refuses a valid job may, and so may jobs that Slurm ends for their memory.
    """
    final, what = outcome.state, {fault.what for fault in outcome.scenario.faults}
    for event in _settled(outcome):
        directory = outcome.directory / "runs" / event.attempt.id
        its_own = event.failure in {FailureClass.APPLICATION, FailureClass.TIMEOUT, FailureClass.PARSE}
        if its_own and directory not in outcome.runner.guilty:
            yield f"{event.attempt} is called a failure of class {event.failure}: {event.reason}"
    guilty = {directory.parent for directory in outcome.runner.guilty}
    for run, item in final.runs.items() if not what & _REFUSALS else ():
        if item.status is RunStatus.GIVEN_UP and outcome.directory / "runs" / run.id not in guilty:
            yield f"{run} was given up, and its application never failed: {item.reason}"
    rule = final.stopped.rule if final.stopped is not None else ""
    if rule in {"failures", "failure_rate"} and not guilty and not what & _REFUSALS:
        yield f"stopped by {rule}, and no application failed"


def _paused(outcome: Outcome) -> Iterator[str]:
    """A pause needs a tenth of the budget in failures that were not the application's, or many in a row.

    Each attempt counts with its last charge before the pause, from the last pause on.
    """
    costs: dict[Attempt, float] = {}
    granted = 0.0
    in_a_row = 0
    for entry in outcome.entries:
        match entry.event:
            case events.AttemptFinished(attempt=attempt, failure=FailureClass.INFRASTRUCTURE, refused=False):
                costs[attempt] = entry.event.cost
                in_a_row += 1
            case events.AttemptFinished():
                in_a_row = 0
            case events.AttemptCharged(attempt=attempt) if attempt in costs:
                costs[attempt] = entry.event.cost
            case events.CampaignPaused():
                charged, share = sum(costs.values()) - granted, SHARE * outcome.scenario.budget
                if charged < share - 1e-6 and in_a_row < setbacks.MOST:
                    yield f"paused after {charged:.0f} of {share:.0f} core-seconds and {in_a_row} failures"
                granted, in_a_row = sum(costs.values()), 0


def _settled(outcome: Outcome) -> list[events.AttemptFinished]:
    return [entry.event for entry in outcome.entries if isinstance(entry.event, events.AttemptFinished)]


def _exactly_once(outcome: Outcome) -> Iterator[str]:
    for directory, count in outcome.runner.executed.items():
        if count > 1:
            yield f"{directory.name} was executed {count} times"
    settled = _settled(outcome)
    for attempt, count in Counter(event.attempt for event in settled).items():
        if count > 1:
            yield f"{attempt} was settled {count} times"
    accepted = Counter(event.attempt.run for event in settled if event.failure is None)
    for run, count in accepted.items():
        if count > 1:
            yield f"{run} was measured {count} times"


def _submitted_once(outcome: Outcome) -> Iterator[str]:
    """No attempt is submitted again while Slurm has its job, unless Slurm denies that."""
    if any(fault.what in {"empty", "stale", "cut off", "accepted late"} for fault in outcome.scenario.faults):
        return
    jobs: dict[Path, list[Job]] = {}
    for job in outcome.world.jobs:
        for directory in outcome.runner.directories(job):
            jobs.setdefault(directory, []).append(job)
    for directory, own in jobs.items():
        again = {late.submitted for job in own for late in own if _known(outcome, job, late.submitted)}
        if again:
            yield f"{directory.relative_to(outcome.directory)} was submitted again at {sorted(again)}"


def _known(outcome: Outcome, job: Job, now: float) -> bool:
    """Whether Slurm knew an earlier job: without accounting it soon forgets those that ended.

    A slurmctld that was killed forgets more.
    """
    if job.state == "FORGOTTEN":
        return False
    memory = math.inf if outcome.scenario.accounting else outcome.world.settings.remembered
    return job.submitted < now and (job.ended is None or now - job.ended < memory)


def _measurements(outcome: Outcome) -> Iterator[str]:
    """Every application that ended well is a measurement, with the value that it printed."""
    accepted = {}
    for run, item in outcome.state.runs.items():
        if item.accepted is not None:
            accepted[outcome.directory / "runs" / Attempt(run, item.accepted).id] = item
    late = sum(
        fault.value for fault in outcome.scenario.faults if fault.what in {"files late", "output late"}
    )
    for directory in outcome.runner.succeeded - set(accepted) if late <= SEEN_IN_TIME else ():
        yield f"the measurement of {directory.relative_to(outcome.directory)} is lost"
    for directory, item in accepted.items():
        value = item.samples["time"]["main"]
        if directory not in outcome.runner.succeeded or value != outcome.runner.seconds(directory):
            yield f"{directory.relative_to(outcome.directory)} was accepted with {value}"


def _budget(outcome: Outcome) -> Iterator[str]:
    """Nothing begins beyond the budget.

    Slurm may charge more only where slurmctld learned of an end late, or where its clock was set meanwhile.
    """
    budget, excess = outcome.scenario.budget, float(excess_cpu_seconds(outcome.world.jobs))
    if _clocks_differ_without_accounting(outcome.scenario):
        excess = math.inf
    now = State()
    for entry in outcome.entries:
        now = apply(now, entry.event, entry.time)
        more = 0.0 if isinstance(entry.event, events.AttemptIntended) else excess
        if now.spent + now.reserved > budget + more + 1e-6:
            yield f"entry {entry.sequence}: {now.spent} spent and {now.reserved} reserved of {budget}"
    truth = charged_cpu_seconds(outcome.world.jobs)
    if truth > budget + excess:
        yield f"Slurm charged {truth} CPU-seconds, the budget is {budget}"


def _charges(outcome: Outcome) -> Iterator[str]:
    """What was charged is what Slurm charged, within a second; estimates are never less.

    A second start of a job, or a second job, finds the attempt claimed and ends at once. What it costs until
    then, two seconds, may come after the attempt was settled. Attempts that share a job share its charge.
    What Slurm charges for the time after an end that it learned of late may be missing where accounting never
    confirmed the charge. Without accounting, charges come from clocks, which must agree.
    """
    if _clocks_differ_without_accounting(outcome.scenario):
        return
    jobs: dict[tuple[Path, ...], list[Any]] = {}
    for job in outcome.world.jobs:
        jobs.setdefault(tuple(outcome.runner.directories(job)), []).append(job)
    packs = {directory: pack for pack in jobs for directory in pack}
    charged: dict[tuple[Path, ...], dict[Attempt, float]] = {}
    for attempt, cost in charges(outcome.entries).items():
        directory = outcome.directory / "runs" / attempt.id
        charged.setdefault(packs.get(directory, (directory,)), {})[attempt] = cost
    for pack in {**jobs, **charged}:
        own, attempts = jobs.get(pack, []), charged.get(pack, {})
        truth, starts = sum(job.charged for job in own), sum(len(job.starts) for job in own)
        # Where none is charged, none ever began: all starts are late ones of revoked attempts.
        tolerance = 1 + 2 * max(0, starts - any(attempts.values()))
        cpus = own[0].request.cpus if own else 1
        seconds = sum(attempts.values()) / cpus
        unconfirmed = bool(attempts.keys() & set(outcome.state.unconfirmed))
        late = sum(start.excess for job in own for start in job.starts)
        unknown = late if unconfirmed or not outcome.scenario.accounting else 0
        less, more = seconds < truth - tolerance - unknown, seconds > truth + tolerance
        # A job taken for dead that lives uses more than Slurm charges; without accounting that stays so.
        overtime = not outcome.scenario.accounting and any(
            s.state == "NODE_FAIL" for j in own for s in j.starts
        )
        if less or (more and not overtime and not unconfirmed):
            names = ", ".join(map(str, attempts)) or f"none of {len(pack)}"
            yield f"{names}: charged {seconds:.1f} s, Slurm has {truth} in {starts} starts"


def _clocks_differ_without_accounting(scenario: Scenario) -> bool:
    clocks = {"controller's clock", "nodes' clocks"}
    return not scenario.accounting and any(fault.what in clocks for fault in scenario.faults)


def charges(entries: Sequence[Entry]) -> dict[Attempt, float]:
    """Return the core-seconds charged for every attempt in the end."""
    settled = (events.AttemptFinished, events.AttemptCharged)
    return {entry.event.attempt: entry.event.cost for entry in entries if isinstance(entry.event, settled)}


def _queries(outcome: Outcome) -> Iterator[str]:
    """Count at most one squeue and one sacct per interval and controller."""
    span = outcome.world.now - START
    for name in ("squeue", "sacct"):
        most = math.ceil(span / (0.9 * POLL_INTERVAL)) + outcome.kills + 1
        if outcome.commands.calls[name] > most:
            yield f"{outcome.commands.calls[name]} calls of {name} in {span:.0f} s"


def describe(outcome: Outcome) -> str:
    """Return the story of a campaign, for whoever must find out what went wrong."""
    lines = [f"kills: {outcome.kills}; calls: {dict(outcome.commands.calls)}"]
    for entry in outcome.entries:
        data = json.dumps(events.to_json(entry.event), default=str)
        if not isinstance(entry.event, events.CampaignStarted):
            lines.append(f"{entry.time - START:9.1f} {events.name_of(entry.event)} {data[:300]}")
    for job in outcome.world.jobs:
        starts = [(s.node, s.begun - START, s.ended and s.ended - START, s.state) for s in job.starts]
        where = [str(item.relative_to(outcome.directory)) for item in outcome.runner.directories(job)]
        lines.append(f"job {job.id} {job.submitted - START:.1f} {job.state} {starts} {' '.join(where)}")
    return "\n".join(lines)


__all__ = ["Outcome", "Scenario", "describe", "play", "settle", "violations"]
