"""What several commands share: arguments, JSON output, interrupts."""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from orchestrator.campaign import loader
from orchestrator.campaign.model import Campaign
from orchestrator.errors import CampaignError
from orchestrator.launch.script import data_directory
from orchestrator.types import Measurements, Point, Value, format_value

_LARGEST = sys.float_info.max


def add_campaign(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """Add the campaign file and ``--set``."""
    parser.add_argument(
        "campaign",
        metavar="CAMPAIGN.yaml",
        nargs="?" if optional else None,
        help="a campaign file, or the name of a ready one (quickstart)",
    )
    add_overrides(parser)


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


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print one JSON document on standard output")


def whole(least: int) -> Callable[[str], int]:
    """Return the type of an argument that is a whole number from ``least``."""

    def read(text: str) -> int:
        try:
            found = int(text)
        except ValueError:
            found = least - 1
        if found < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least}")
        return found

    return read


def number(allowed: str, fits: Callable[[float], bool]) -> Callable[[str], float]:
    """Return the type of an argument that is a finite number which ``fits``, as the words ``allowed`` say."""

    def read(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not (math.isfinite(found) and fits(found)):
            raise argparse.ArgumentTypeError(f"{text!r} is not {allowed}")
        return found

    return read


def campaign_path(text: str) -> Path:
    """Return the path of a campaign file, or of the ready campaign of that name."""
    path = Path(text)
    folder = data_directory("campaigns")
    if path.exists() and not path.is_dir():
        return path
    ready = folder / (path.name if path.suffix else f"{path.name}.yaml")
    if str(path.parent) in (".", "campaigns") and ready.exists():
        return ready
    if path.is_dir():  # most likely a campaign that was begun
        raise CampaignError(
            f"{text} is a directory; to continue the campaign in it: orchestrator resume {text}"
        )
    known = ", ".join(sorted(item.stem for item in folder.glob("*.yaml")))
    raise CampaignError(f"there is no campaign file {text}; ready campaigns: {known}")


def read_campaign(arguments: argparse.Namespace, extra: tuple[str, ...] = ()) -> Campaign:
    """Load the campaign that the arguments name."""
    return loader.load(campaign_path(arguments.campaign), [*arguments.overrides, *extra])


def print_json(document: Any) -> None:
    """Print one JSON document."""
    json.dump(document, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Give a function that tells whether a signal to stop has come; a second one ends at once.

    The signals are SIGINT, SIGTERM and, where it is not ignored (``nohup``), SIGHUP of a closed terminal.
    """
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)
        with suppress(OSError):  # the terminal may be gone
            print("\nstopping; again to stop at once", file=sys.stderr)

    hang_up = [signal.SIGHUP] if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN else []
    numbers = [signal.SIGINT, signal.SIGTERM, *hang_up]
    previous = {number: signal.signal(number, note) for number in numbers}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def parse_point(text: str, known: Measurements) -> Point:
    """Read ``p=1024,s=35``.

    Raises
    ------
    CampaignError
        Unless it gives every parameter of the measurements once, a number or a measured category each.
    """
    names = known.parameters
    values: dict[str, Value] = {}
    for item in text.split(","):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or name not in names or name in values:
            raise CampaignError(f"point {text!r}: give each of {', '.join(names)} once, like p=64,s=20")
        values[name] = _coordinate(value, name, known)
    if missing := [name for name in names if name not in values]:
        raise CampaignError(f"point {text!r} lacks {', '.join(missing)}")
    return Point.of({name: values[name] for name in names})


def _coordinate(text: str, name: str, known: Measurements) -> Value:
    if not known.is_categorical(name):
        return parse_coordinate(text, name, known)
    categories = {format_value(point[name]): point[name] for point in known.points}
    if text not in categories:
        raise CampaignError(f"{name}={text}: models exist only for {', '.join(categories)}")
    return categories[text]


def parse_category(text: str, name: str, known: Measurements) -> Value:
    """Read a category, measured or not, as the measured ones are: text or a number that stands for one.

    Raises
    ------
    CampaignError
        If there is nothing to read.
    """
    if not text:
        raise CampaignError(f"{name}=: a category has a name")
    return text if any(isinstance(point[name], str) for point in known.points) else parse_value(text)


def parse_coordinate(text: str, name: str, known: Measurements) -> int | float:
    """Read a value of a parameter that was measured as numbers.

    Raises
    ------
    CampaignError
        Unless models can say something there: a finite positive number; zero only if it was measured.
    """
    value = parse_value(text)
    if isinstance(value, str) or not -_LARGEST <= value <= _LARGEST:
        raise CampaignError(f"{name}={text}: {name} is a number, so write one")
    if value < 0 or (value == 0 and all(point.number(name) > 0 for point in known.points)):
        raise CampaignError(
            f"{name}={text}: models have powers and logarithms of {name}, so it must be greater than 0"
        )
    return value


def parse_value(text: str) -> Value:
    """Read a number, integer where it is one, else text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
