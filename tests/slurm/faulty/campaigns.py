"""Whole campaigns on the faulty Slurm, in virtual time, with controllers that die."""

from __future__ import annotations

import json
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from orchestrator.campaign import loader
from orchestrator.control import loop
from orchestrator.control.assembly import Assembly, assemble
from orchestrator.control.runtime import Runtime
from orchestrator.executors.attempt import record
from orchestrator.executors.base import Executor
from orchestrator.executors.slurm.executor import SlurmExecutor
from orchestrator.executors.slurm.options import SlurmSettings
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.replay import replay
from orchestrator.journal.state import State
from orchestrator.journal.writer import Journal
from orchestrator.models.base import Model
from orchestrator.types import Attempt
from tests.slurm.faulty.commands import COMMANDS, NEVER, Commands
from tests.slurm.faulty.faults import Fault
from tests.slurm.faulty.virtual import VirtualRunner
from tests.slurm.faulty.world import Settings, World

START = 1_800_000_000.0
LONGEST = 30 * 86400.0  # virtual seconds after which a campaign counts as stuck
POLL_INTERVAL = 30.0
REPAIR = 3600.0  # seconds until somebody resumes a campaign that is paused
CALL = 0.05  # seconds that a command takes, if nothing is wrong
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
    times: int = 0  # repetitions of each point; 0: two, or four where runs share jobs


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
    sessions: Sequence[tuple[float, float]] = ()


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
        game.sessions,
    )


class _Game:
    def __init__(self, scenario: Scenario, directory: Path) -> None:
        self.scenario, self.directory = scenario, directory
        self.kills = self.pauses = self._boundaries = 0
        self.sessions: list[tuple[float, float]] = []  # of controllers
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
            times=scenario.times or (2 if scenario.pack == 1 else 4),
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
        begun = self.world.now
        try:
            return self._controller()
        finally:
            self.sessions.append((begun, self.world.now))

    def _controller(self) -> End:
        try:
            with Journal(self.directory, self.boundary) as opened:
                known = replay(opened.entries())
                if not known.id:
                    begun = events.CampaignStarted(
                        id="c0ffee00", campaign=dict(self.campaign.raw), version="0"
                    )
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


def charges(entries: Sequence[Entry]) -> dict[Attempt, float]:
    """Return the core-seconds charged for every attempt in the end."""
    settled = (events.AttemptFinished, events.AttemptCharged)
    return {entry.event.attempt: entry.event.cost for entry in entries if isinstance(entry.event, settled)}


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
