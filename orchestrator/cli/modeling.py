"""What commands share that fit models to measurements: the kind of model, its options, and the processes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import TaskID

from orchestrator import registry
from orchestrator.cli import common
from orchestrator.models import processes, scaling
from orchestrator.models.progress import listening
from orchestrator.types import Measurements


def add_modeler(parser: argparse._ActionsContainer, default: str | None = "auto") -> None:
    """Add the kind of model and its options."""
    parser.add_argument("--modeler", default=default, choices=registry.names("model"))
    parser.add_argument(
        "--option",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        type=_option,
        help="an option of the modeler, as under model: of a campaign file, e.g. --option members=400 "
        "(repeatable)",
    )


def add_processes(parser: argparse._ActionsContainer) -> None:
    """Add which parameters count processes, and how runs on different numbers of them compare."""
    parser.add_argument(
        "--processes",
        metavar="NAMES",
        help="the parameters whose product is the number of processes, e.g. p or nodes*ppn (default: by "
        "their names)",
    )
    parser.add_argument(
        "--scaling",
        choices=("auto", "strong", "weak"),
        default="auto",
        help="strong: the other parameters describe the whole problem; weak: that of one process; auto: weak "
        "if the measured times do not fall with processes",
    )


def options(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the options of the modeler; that of speedups shares the options of the analysis."""
    found = dict(arguments.option)
    if arguments.modeler == "speedup":
        if arguments.processes is not None:
            found.setdefault("processes", arguments.processes)
        if arguments.scaling != "auto":
            found.setdefault("scaling", arguments.scaling)
    return found


@contextmanager
def shown_progress() -> Iterator[None]:
    """Show on a terminal how far the fits of this block are, where they take minutes."""
    with common.bar() as bar:
        tasks: dict[str, TaskID] = {}

        def tell(work: str, done: int, total: int) -> None:
            if work not in tasks:
                tasks[work] = bar.add_task(work)
            bar.update(tasks[work], completed=done, total=total)

        with listening(tell):
            yield


def study(known: Measurements, arguments: argparse.Namespace) -> scaling.Study:
    """Return how runs on different numbers of processes are compared.

    Raises
    ------
    ModelError
        Where no parameter counts processes, or all runs have one number of them.
    """
    numeric = [name for name in known.parameters if not known.is_categorical(name)]
    named = dict(arguments.option).get("processes", "auto")
    counting = processes.required(numeric, arguments.processes or named)
    return scaling.Study.of(known, counting, arguments.scaling)


def _option(text: str) -> tuple[str, object]:
    """Read ``key=value``; the value is YAML."""
    import yaml

    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE, such as members=400")
    try:
        return key.strip(), yaml.safe_load(value)
    except yaml.YAMLError:
        raise argparse.ArgumentTypeError(f"{text!r}: what follows the first = is no value in YAML") from None
