"""Progress of a running campaign on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from contextlib import ExitStack
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from orchestrator.campaign.definition import Campaign
from orchestrator.journal import events, executables
from orchestrator.journal.file import Entry
from orchestrator.journal.state import State
from orchestrator.models.progress import listening
from orchestrator.report.log import describe
from orchestrator.report.status import counts
from orchestrator.units import format_cost, in_unit

_REFRESH = 0.1  # seconds between updates; simulated campaigns have thousands of events a second


class _Unattended(Console):
    """A console whose reader may leave: the campaign goes on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


class Display:
    """Shows what happens; `update` listens to the journal."""

    def __init__(self, campaign: Campaign):
        self._console = _Unattended(stderr=True)
        self._budget, self._unit = campaign.stop.budget, campaign.stop.unit
        self._progress = Progress(
            TextColumn("round {task.fields[round]}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[cost]}"),
            TextColumn("{task.fields[runs]}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task("", total=self._budget, round=0, cost="", runs="")
        self._last = 0.0
        self._shown = ExitStack()

    def __enter__(self) -> Display:
        self._shown.enter_context(self._progress)
        self._shown.enter_context(listening(self._fitting))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._shown.close()

    def note(self, text: str) -> None:
        """Print a line above the progress bar."""
        try:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)
        except OSError:  # the terminal is gone
            self._console.quiet = True

    def _fitting(self, work: str, done: int, total: int) -> None:
        self._progress.update(self._task, runs=f"{work}: {done} of {total}")

    def update(self, entry: Entry, state: State) -> None:
        """Show an event."""
        text = describe(entry.event)
        if text:
            self.note(text)
        if isinstance(entry.event, events.ControllerStarted):
            for warning in executables.warnings(state.measured_with, state.executables):
                self.note(f"warning: {warning}")
        if time.monotonic() - self._last < _REFRESH:
            return
        self._last = time.monotonic()
        found = counts(state)
        self._progress.update(
            self._task,
            completed=state.spent,
            round=state.round,
            cost=f"{in_unit(state.spent, self._unit)} of {format_cost(self._budget, self._unit)}",
            runs=f"{found['measured']} measured, {found['in flight']} in flight, {found['waiting']} waiting",
        )
