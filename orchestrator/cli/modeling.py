"""What commands share that fit models to measurements: the kind of model, its options, and the processes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Timer

from rich.progress import TaskID

from orchestrator import registry
from orchestrator.api.fit import chosen_modeler, learned_from
from orchestrator.api.inputs import campaign_among
from orchestrator.cli import common
from orchestrator.models import processes, scaling
from orchestrator.models.base import Modeler
from orchestrator.models.progress import Listener, listening
from orchestrator.types import Measurements
from orchestrator.units import count

DEFAULT = "auto"  # of files
_SILENT = 10.0  # seconds for which nothing is said of a fit where there is no terminal


def add_modeler(parser: argparse._ActionsContainer) -> None:
    """Add the kind of model and its options."""
    parser.add_argument(
        "--modeler",
        choices=registry.names("model"),
        help=f"the kind of model (default: that of the campaign; of files {DEFAULT})",
    )
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
        "if the measured times hardly fall with processes",
    )


def modeler(
    arguments: argparse.Namespace,
    known: Measurements | None = None,
    priors: Mapping[str, Measurements] | None = None,
) -> Modeler:
    """Return what fits: the kind of ``--modeler``, or that of the campaign which is the input.

    Parameters
    ----------
    arguments
        Those of `add_modeler` and `inputs.add_inputs`. Options are added to those of the campaign.
    known, priors
        What it is fitted to, and earlier measurements by a name for notes, whose forms and noise are a prior.

    Raises
    ------
    CampaignError
        For options that it does not take, and priors that tell it nothing.
    """

    def options(name: str) -> dict[str, object]:
        learned = {} if known is None else learned_from(known, name, priors or {})
        return {**_options(arguments, name), **learned}

    directory = campaign_among(arguments.inputs)
    if directory is None or arguments.modeler is not None:
        name = arguments.modeler or DEFAULT
        return chosen_modeler(name, options(name))
    from orchestrator.control import assembly, existing  # a third of the time that a small file takes

    campaign = existing.load(directory)
    return assembly.modeler(campaign, options(campaign.model.name))


def _options(arguments: argparse.Namespace, name: str) -> dict[str, object]:
    """Return the options of the modeler; that of speedups shares the options of `add_processes`."""
    options = dict(arguments.option)
    if name == "speedup" and "scaling" in arguments:
        if arguments.processes is not None:
            options.setdefault("processes", arguments.processes)
        if arguments.scaling != "auto":
            options.setdefault("scaling", arguments.scaling)
    return options


@contextmanager
def shown_progress() -> Iterator[None]:
    """Show how far the fits of this block are, where they take minutes: a bar on a terminal, else a line."""
    with common.bar() as bar:
        tasks: dict[str, TaskID] = {}

        def tell(work: str, done: int, total: int) -> None:
            if work not in tasks:
                tasks[work] = bar.add_task(work)
            bar.update(tasks[work], completed=done, total=total)

        with _told_once() as once, listening(once if bar.disable else tell):
            yield


@contextmanager
def _told_once() -> Iterator[Listener]:
    """Give a listener that prints what takes long, and what would not: logs have no place for a bar."""
    waiting: list[Timer] = []
    told: list[str] = []

    def say(work: str, total: int) -> None:
        told.append(work)
        text = f"{work} for {count(total, 'call path')}, which can take minutes"
        with suppress(OSError, ValueError):  # who reads may have left
            print(f"{text}; --modeler formulas takes seconds", file=sys.stderr, flush=True)

    def end() -> None:
        while waiting:
            waiting.pop().cancel()

    def tell(work: str, done: int, total: int) -> None:
        if done == total:
            end()
        elif not waiting and not told:
            waiting.append(Timer(_SILENT, say, (work, total)))
            waiting[0].daemon = True
            waiting[0].start()

    try:
        yield tell
    finally:
        end()


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
