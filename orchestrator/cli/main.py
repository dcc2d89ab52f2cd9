"""The command line: find the command, run it, turn errors into one line and an exit code."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence

from orchestrator import __version__
from orchestrator.cli import ascii_text
from orchestrator.cli.pipes import discard_output
from orchestrator.errors import JournalWriteError, OrchestratorError
from orchestrator.executors import inherited  # noqa: F401 (before libraries change what it looks at)
from orchestrator.executors.slurm.silence import when_silent
from orchestrator.models.compiling import when_compiling
from orchestrator.storage import FULL
from orchestrator.units import did_you_mean

_COMPILING = "compiling the modeler, once, about 30 s ..."
_Run = Callable[[argparse.Namespace], int]

EXIT_CODES = """\
exit codes:
  0  done
  1  failed, or a campaign that measured nothing
  2  wrong usage or an invalid campaign: nothing was spent
  3  stopped early but resumable (interrupted, paused, cluster lost, disk full)
"""

# name -> what it does; the command lives in orchestrator/cli/<name>.py
COMMANDS = {
    "init": "write a launch template and a campaign for an application, or for any command",
    "run": "start a campaign; if its directory already holds it, continue it",
    "resume": "continue an interrupted, paused or failed campaign",
    "cancel": "end the runs in flight of a campaign whose controller has ended",
    "plan": "show search space, first batch, job scripts and what they will cost; launch nothing",
    "simulate": "rehearse a campaign: the same loop on a virtual clock; launch nothing",
    "status": "show where a campaign stands",
    "campaigns": "list your campaigns, or those like another one, once you want them kept",
    "runs": "list the runs as a table; filter, sort, CSV, JSON",
    "watch": "follow a campaign on a full screen",
    "log": "show what happened, what was spent, what was given up and why",
    "report": "write one self-contained, interactive HTML page of a campaign or of measurements",
    "serve": "show campaigns in a browser, live; read-only, on this machine only",
    "explore": "show what depends on what in existing measurements, before any model",
    "model": "fit models to existing measurements",
    "compare": "compare two campaigns or sets of measurements: what changed, and how surely",
    "suggest": "suggest what to measure next for existing measurements",
    "generate": "write MPI programs of known complexity (benchmark generator)",
    "evaluate": "compare strategies and models on synthetic or replayed data",
    "export": "write a campaign's measurements for other tools",
    "effort": "build programs that count basic blocks and MPI bytes per call path; show counts",
    "reread": "read kept outputs and profiles again, by other patterns; measure nothing",
    "discard": "leave what some runs measured out of the models, or let it count again",
    "prune": "delete bulky files of settled attempts; keep records and profiles",
    "doctor": "check Slurm, launchers, applications and profilers; say what is missing",
    "completion": "print a script that completes commands and options in bash, zsh or fish",
    "schema": "print the JSON schema of campaign files",
}


_MIXED = ("discard",)
"""Commands with positional arguments before and after options."""


def parser() -> argparse.ArgumentParser:
    """Return the top-level parser, which knows the commands by name only."""
    commands = "\n".join(f"  {name:<12}{text}" for name, text in COMMANDS.items())
    top = argparse.ArgumentParser(
        prog="orchestrator",
        description="Measure an HPC application within a core-hour budget and model every function of it.",
        epilog=f"commands:\n{commands}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"orchestrator {__version__}")
    top.add_argument("command", metavar="command", help="see below; each has --help")
    top.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="arguments of the command")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    _keep_closed_streams_free()
    if isinstance(sys.stdout, io.TextIOWrapper):  # a region's name must not be an error on an ASCII terminal
        sys.stdout.reconfigure(errors=ascii_text.NAME)
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors=ascii_text.NAME)
    try:
        run, arguments = _parsed(argv)
        return _completed(run, arguments)
    except OrchestratorError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # the reader (head, less) has left
        discard_output()
        return 0
    except OSError as error:  # disk full, permissions: one line is enough to fix it
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
        return JournalWriteError.exit_code if error.errno in FULL else 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 3


def _parsed(argv: Sequence[str] | None) -> tuple[_Run, argparse.Namespace]:
    """Return what a command does, and its arguments; exits after help and for wrong usage."""
    try:
        top = parser()
        chosen = top.parse_args(argv)
        if chosen.command not in COMMANDS:
            top.error(f"there is no command {chosen.command!r}: {did_you_mean(chosen.command, COMMANDS)}")
        run, command = command_parser(chosen.command)
        # Until Python 3.12.6, runs after an option were none of what may be repeated.
        parse = command.parse_intermixed_args if chosen.command in _MIXED else command.parse_args
        return run, parse(chosen.arguments)
    finally:
        sys.stdout.flush()  # help: at the end of the process it would be too late to see that nobody reads it


def command_parser(name: str) -> tuple[_Run, argparse.ArgumentParser]:
    """Return what one of `COMMANDS` does, and the parser of its arguments."""
    module = importlib.import_module(f"orchestrator.cli.{name}")
    command = argparse.ArgumentParser(
        prog=f"orchestrator {name}",
        description=module.__doc__,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(command)
    return module.run, command


def _completed(run: _Run, arguments: argparse.Namespace) -> int:
    """Run a command to its end, with all output written; return its exit code."""
    warnings.formatwarning = _line
    if sys.stderr.isatty():
        when_compiling(lambda: print(_COMPILING, file=sys.stderr, flush=True))
    when_silent(lambda text: print(text, file=sys.stderr, flush=True))
    try:
        code = run(arguments)
        sys.stdout.flush()
        return code
    except SystemExit:  # rich's answer to a reader that has left
        raise BrokenPipeError from None


def _line(message: Warning | str, *_: object, **__: object) -> str:
    """Return a warning as users read it: the place in the source says nothing to them."""
    return f"warning: {message}\n"


def _keep_closed_streams_free() -> None:
    """Keep files of ours off the numbers of streams that were closed (``>&-``): output would damage them."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


if __name__ == "__main__":
    sys.exit(main())
