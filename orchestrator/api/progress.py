"""Progress of a running campaign on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack

from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from orchestrator.campaign.definition import Campaign
from orchestrator.journal import events, executables
from orchestrator.journal.codec import Entry
from orchestrator.journal.state import State
from orchestrator.models.progress import listening
from orchestrator.report.event_text import describe
from orchestrator.report.status import counts
from orchestrator.units import format_cost, format_duration, in_unit

_BAR = 24  # characters
_BETWEEN = " · "
_REFRESH = 0.1  # seconds between updates; simulated campaigns have thousands of events a second


class _Unattended(Console):
    """A console whose reader may leave: the campaign goes on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


class _Line(ProgressColumn):
    """Round, bar, cost, runs and time, as far as the terminal has space: the bar is left out first."""

    def __init__(self, console: Console):
        self._console = console
        super().__init__()

    def render(self, task: Task) -> Table:
        """Return the line of a task."""
        parts = dict(task.fields["parts"])
        if task.elapsed is not None and task.elapsed >= 1:
            parts["elapsed"] = format_duration(int(task.elapsed))
        return self._line(task, fitting(parts, self._console.width - 1))

    def _line(self, task: Task, parts: Mapping[str, str]) -> Table:
        text = Text(_BETWEEN.join(parts.values()), no_wrap=True)
        line = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=task.total, completed=task.completed, width=_BAR)
        line.add_row(*[bar] * (len(text) + _BAR + 2 <= self._console.width), text)
        return line


_SPARED = ("elapsed", "waiting", "in flight", "cost")  # in this order


def fitting(parts: Mapping[str, str], width: int) -> Mapping[str, str]:
    """Return the parts of a line that a terminal has space for, joined with what separates them."""
    shown = dict(parts)
    for name in _SPARED:
        if len(_BETWEEN.join(shown.values())) <= width:
            break
        shown.pop(name, None)
    return shown


class Display:
    """Shows what happens; `update` listens to the journal."""

    def __init__(self, campaign: Campaign):
        self._console = _Unattended(stderr=True)
        self._budget, self._unit = campaign.stop.budget, campaign.stop.unit
        self._progress = Progress(
            _Line(self._console),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._said = ""  # the note of the last round
        self._parts: dict[str, str] = {}
        self._task = self._progress.add_task("", total=self._budget, parts=self._parts)
        self._last = 0.0
        self._shown = ExitStack()

    def __enter__(self) -> Display:
        self._shown.enter_context(self._progress)
        self._shown.enter_context(listening(self._fitting))
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.close()

    def note(self, text: str) -> None:
        """Print a line above the progress bar."""
        try:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)
        except OSError:  # the terminal is gone
            self._console.quiet = True

    def _fitting(self, work: str, done: int, total: int) -> None:
        kept = {name: text for name, text in self._parts.items() if name in ("round", "cost")}
        self._progress.update(self._task, parts={**kept, "work": f"{work}: {done} of {total}"})

    def update(self, entry: Entry, state: State) -> None:
        """Show an event."""
        text = describe(entry.event, self._said)
        if isinstance(entry.event, events.RoundProposed):
            self._said = entry.event.note
        if text:
            self.note(text)
        if isinstance(entry.event, events.ControllerStarted) and state.round:
            self.note(self._standing(state))
        if isinstance(entry.event, events.ControllerStarted | events.ExecutableReplaced):
            for warning in executables.warnings(state.measured_with, state.executables):
                self.note(f"warning: {warning}")
        at_round = isinstance(entry.event, events.RoundProposed | events.RoundCompleted)
        if time.monotonic() - self._last < _REFRESH and not at_round:
            return
        self._last = time.monotonic()
        self._parts = self._described(state)
        self._progress.update(self._task, completed=state.spent, parts=self._parts)

    def _standing(self, state: State) -> str:
        """Say where a campaign stands: the next line may be hours away, when its round is completed."""
        parts = self._described(state)
        numbers = [text for name, text in parts.items() if name not in ("round", "cost")]
        return f"{parts['round']} as it stands: {', '.join(numbers)}; {parts['cost']} spent"

    def _described(self, state: State) -> dict[str, str]:
        found = counts(state)
        cost = f"{in_unit(state.spent, self._unit)} of {format_cost(self._budget, self._unit)}"
        numbers = {name: f"{found[name]} {name}" for name in ("measured", "in flight", "waiting")}
        return {**({"round": f"round {state.round}"} if state.round else {}), "cost": cost, **numbers}
