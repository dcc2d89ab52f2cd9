"""What several commands share: arguments, and JSON output."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from orchestrator.api import points
from orchestrator.errors import CampaignError
from orchestrator.storage import remedy
from orchestrator.types import Measurements, Point, Value, format_value
from orchestrator.units import did_you_mean

if TYPE_CHECKING:
    from rich.progress import Progress

    from orchestrator.campaign.definition import Campaign

_N = TypeVar("_N", int, float)


def add_campaign(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """Add the campaign file and ``--set``."""
    parser.add_argument(
        "campaign",
        metavar="CAMPAIGN.yaml",
        nargs="?" if optional else None,
        help="a campaign file, its name without .yaml, or the name of a ready one (quickstart)",
    )
    add_overrides(parser)


def add_directory(parser: argparse.ArgumentParser) -> None:
    """Add the directory of a campaign that was begun."""
    from orchestrator.api.campaign_paths import campaign_directory

    parser.add_argument(
        "directory", metavar="DIR", type=campaign_directory, help="the campaign directory, or its name"
    )


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """Add ``--set key=value``."""
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="overrides",
        help="override a key of the campaign file, e.g. --set stop.budget='2 core-hours' (repeatable)",
    )


def add_json(parser: argparse._ActionsContainer) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print one JSON document on standard output")


def add_seed(add: Callable[..., object]) -> None:
    """Add ``--seed``."""
    add("--seed", type=whole(0), default=0, metavar="N", help="seed of everything random (default 0)")


def add_workers(add: Callable[..., object]) -> None:
    """Add ``--workers``."""
    add("--workers", type=whole(1), metavar="N", help="processes (default: all cores)")


def add_figures(add: Callable[..., object]) -> None:
    """Add ``--figures``."""
    add("--figures", type=Path, metavar="DIR", help="write figures as PNG")


def whole(least: int) -> Callable[[str], int]:
    """Return the type of an argument that is a whole number from ``least``."""
    return _read_as(int, lambda value: value >= least, f"a whole number from {least}")


def number(allowed: str, fits: Callable[[float], bool]) -> Callable[[str], float]:
    """Return the type of an argument that is a finite number which ``fits``, as the words ``allowed`` say."""
    return _read_as(float, lambda value: math.isfinite(value) and fits(value), allowed)


def _read_as(kind: Callable[[str], _N], fits: Callable[[_N], bool], allowed: str) -> Callable[[str], _N]:
    def read(text: str) -> _N:
        with suppress(ValueError):
            if fits(value := kind(text)):
                return value
        raise argparse.ArgumentTypeError(f"{text!r} is not {allowed}")

    return read


def overrides(arguments: argparse.Namespace) -> list[str]:
    """Return ``key=value`` of ``--set``, and of ``--executor`` where a command has it."""
    executor = vars(arguments).get("executor")
    return [*arguments.overrides, *([f"executor.name={executor}"] if executor else [])]


def read_campaign(arguments: argparse.Namespace) -> Campaign:
    """Load the campaign that the arguments name."""
    from orchestrator.api import campaign_paths
    from orchestrator.campaign import loader

    chosen = loader.load(campaign_paths.campaign_path(arguments.campaign), overrides(arguments))
    if chosen.long_walk:
        print(f"note: {chosen.long_walk}", file=sys.stderr, flush=True)
    return chosen


def print_json(document: Any) -> None:
    """Print one JSON document."""
    json.dump(document, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def write(path: Path, content: str | bytes) -> None:
    """Write an output; raise `CampaignError` where that fails."""
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        what = remedy(error) or "name another file"
        raise CampaignError(f"cannot write {path}: {error.strerror}; {what}") from error


def parse_point(text: str, known: Measurements) -> Point:
    """Read ``p=1024,s=35``.

    Raises
    ------
    CampaignError, MeasurementError
        Unless it gives every parameter with several measured values once, a number or a measured category.
    """
    names = known.parameters
    values: dict[str, object] = {}
    for item in _parts(text, known):
        name, equals, value = (part.strip() for part in item.partition("="))
        if equals and name not in names:
            raise CampaignError(f"point {text!r}: unknown parameter {name!r}; {did_you_mean(name, names)}")
        if not equals or name in values:
            raise CampaignError(
                f"point {text!r}: give each of {', '.join(names)} once, like {_example(known)}"
            )
        categorical = known.is_categorical(name)
        values[name] = value if categorical else points.check_number(parse_value(value), name, known, value)
    if missing := points.missing(values, known):
        raise CampaignError(f"point {text!r} lacks {', '.join(missing)}")
    return points.point_of(values, known)


def _parts(text: str, known: Measurements) -> Iterator[str]:
    """Yield what commas separate; those within a measured category separate nothing."""
    pieces = text.split(",")
    while pieces:
        name = pieces[0].partition("=")[0].strip()
        is_category = name in known.parameters and known.is_categorical(name)
        there = {f"{name}={format_value(value)}" for value in known.values_of(name)} if is_category else ()
        length = max(
            (n for n in range(1, len(pieces) + 1) if _spaceless(",".join(pieces[:n])) in there), default=1
        )
        yield ",".join(pieces[:length])
        del pieces[:length]


def _spaceless(item: str) -> str:
    """Return ``name=value`` without the blanks around both."""
    return "=".join(part.strip() for part in item.split("=", 1))


def _example(known: Measurements) -> str:
    """Return a point as users write it: the last measured one."""
    return ",".join(f"{name}={format_value(value)}" for name, value in known.points[-1].items)


def parse_category(text: str, name: str, known: Measurements) -> Value:
    """Read a category, measured or not, as the measured ones are: text or a number that stands for one.

    Raises
    ------
    CampaignError
        If there is nothing to read.
    """
    if not text:
        raise CampaignError(f"{name}=: a category has a name")
    return text if any(isinstance(value, str) for value in known.values_of(name)) else parse_value(text)


def parse_value(text: str) -> Value:
    """Read a number, integer where it is one, else text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def bar() -> Progress:
    """Return a bar on standard error for work that takes long; nothing shows it but a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    return Progress(console=console, disable=not console.is_terminal, transient=True)
