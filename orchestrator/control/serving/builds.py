"""Reports built beside the server: fitting takes seconds to minutes, and must delay neither pages nor runs.

A build is a process of its own, with low priority, and there is one at a time. A report is built when
somebody looks at it, at most once per state of the journal. What is there already is shown meanwhile.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.control.serving.campaigns import ServedCampaign

# After a build, so many times its duration pass before the next one of the same models: on a machine that
# measures at the same time, building takes at most this share of one core.
_PAUSE = 10.0
_COMMAND = (sys.executable, "-m", "orchestrator.control.serving.build")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A report, or why there is none, for a state of the journal.

    ``version`` and ``milestone`` are those of the campaign when the build began; ``finished`` and ``seconds``
    in seconds of a monotonic clock.
    """

    page: bytes | None
    error: str
    version: int
    milestone: int
    finished: float
    seconds: float


class Reports:
    """The newest report of every campaign that somebody looked at.

    Parameters
    ----------
    changed
        Is called when a report was built.
    command
        Prints the report of the directory that is its last argument.
    clock
        A monotonic clock, in seconds.
    """

    def __init__(
        self,
        changed: Callable[[], None],
        command: tuple[str, ...] = _COMMAND,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._changed = changed
        self._command = command
        self._clock = clock
        self._built: dict[str, Built] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._one = asyncio.Semaphore(1)

    def newest(self, key: str) -> Built | None:
        """Return the report that was built last."""
        return self._built.get(key)

    def building(self, key: str) -> bool:
        """Return whether a report is being built, or waits for its turn."""
        return key in self._tasks

    def want(self, campaign: ServedCampaign) -> None:
        """Begin to build a report, if that is due and not on its way."""
        if campaign.key not in self._tasks and self._due(campaign):
            task = asyncio.create_task(self._build(campaign))
            self._tasks[campaign.key] = task
            task.add_done_callback(lambda _: self._end(campaign.key))

    def _due(self, campaign: ServedCampaign) -> bool:
        last = self._built.get(campaign.key)
        if last is None or last.milestone != campaign.milestone:
            return True
        rested = self._clock() - last.finished >= _PAUSE * last.seconds
        return last.version != campaign.row["version"] and rested

    def _end(self, key: str) -> None:
        del self._tasks[key]
        self._changed()

    async def _build(self, campaign: ServedCampaign) -> None:
        async with self._one:
            version, milestone, began = campaign.row["version"], campaign.milestone, self._clock()
            page, error = await self._run(campaign.directory)
            now = self._clock()
            self._built[campaign.key] = Built(
                page=page,
                error=error,
                version=version,
                milestone=milestone,
                finished=now,
                seconds=now - began,
            )

    async def _run(self, directory: Path) -> tuple[bytes | None, str]:
        """Return the report, or None and the last line of what the process says, or why it cannot start."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                str(directory),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:  # no memory, too many files or processes, or Python was updated meanwhile
            return None, f"cannot start {self._command[0]}: {error.strerror}"
        try:
            page, said = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if process.returncode == 0:
            return page, ""
        lines = said.decode(errors="replace").strip().splitlines()
        return None, lines[-1] if lines else f"the process ended with {process.returncode}"

    async def close(self) -> None:
        """End the builds on their way, with their processes."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
