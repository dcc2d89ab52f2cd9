"""Follow a campaign on a full screen: what runs where since when, when rounds end, models, what happened.

The view needs a terminal. It only reads, follows the journal line by line, and survives if the campaign
directory vanishes. q or Ctrl-C ends it; the campaign goes on.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
import termios
import tty
from pathlib import Path
from types import FrameType

from orchestrator.cli import common
from orchestrator.errors import CampaignError, OrchestratorError
from orchestrator.journal.file import require_campaign
from orchestrator.journal.replay import garbage_collection_off

_QUIT = b"qQ\x04"  # Ctrl-D, too


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_directory(parser)
    add_interval(parser)


def add_interval(parser: argparse.ArgumentParser) -> None:
    """Add how often the view is renewed."""
    parser.add_argument(
        "--interval",
        type=common.number("a number of seconds from 0.1", lambda value: value >= 0.1),
        default=1.0,
        metavar="SECONDS",
        help="between looks at the campaign (default 1)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    return watch(arguments.directory, arguments.interval)


def watch(directory: Path, interval: float) -> int:
    """Show the view until the user ends it."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CampaignError(
            f"watch needs a terminal; for files and programs: orchestrator status {directory} [--json] "
            f"or orchestrator log {directory}"
        )
    require_campaign(directory)
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console, shown = Console(emoji=False, markup=False), None
    try:
        with (
            _Keys() as keys,
            Live(console=console, screen=True, auto_refresh=False, redirect_stderr=False) as live,
        ):
            live.update(Text(f"reading {directory} ..."), refresh=True)  # 100 000 runs take seconds
            from orchestrator.control.watching import Watch
            from orchestrator.report import watch_screen

            campaign = Watch(directory)
            with garbage_collection_off():
                shown = campaign.document()  # a damaged journal ends the view
            live.update(watch_screen.screen(shown, *console.size), refresh=True)
            while keys.pressed(interval) not in _QUIT:
                try:
                    shown = campaign.document()
                    live.update(watch_screen.screen(shown, *console.size), refresh=True)
                except (OrchestratorError, OSError) as error:
                    live.update(watch_screen.waiting(str(error)), refresh=True)
    except KeyboardInterrupt:
        pass
    if shown is not None:
        print(f"campaign {shown['campaign']}: {shown['state']}, round {shown['round']}")
    return 0


class _Keys:
    """Keys as they are pressed, without Enter; also returns early when the terminal changes its size."""

    def __enter__(self) -> _Keys:
        self._terminal = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._terminal)
        self._changed, self._change = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._former = signal.signal(signal.SIGWINCH, self._resized)
        tty.setcbreak(self._terminal)
        return self

    def __exit__(self, *_: object) -> None:
        termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._before)
        signal.signal(signal.SIGWINCH, self._former)
        os.close(self._changed)
        os.close(self._change)

    def _resized(self, number: int, frame: FrameType | None) -> None:
        os.write(self._change, b"\0")

    def pressed(self, seconds: float) -> bytes:
        """Return a key; a NUL after so many seconds or a change of size; Ctrl-D if nobody is there."""
        ready, _, _ = select.select([self._terminal, self._changed], [], [], seconds)
        if self._changed in ready:
            os.read(self._changed, 4096)
        if self._terminal not in ready:
            return b"\0"
        return os.read(self._terminal, 1) or b"\x04"
