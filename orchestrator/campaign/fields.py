"""The types of values in a campaign file: what text and numbers may be, and what they become.

Once a value is validated, durations are seconds and costs are core-seconds. Messages say what to write
instead; `orchestrator.campaign.messages` adds file, line and key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
)

from orchestrator import registry, units
from orchestrator.types import Value

READ = "read"
"""Context of a validation of what is only read: the plug-ins that it names need not be installed."""

_NUMBER_OR_TEXT = {"anyOf": [{"type": "number"}, {"type": "string"}]}


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", text):
        raise ValueError("use up to 64 letters, digits, '.', '_' and '-', beginning with a letter or digit")
    return text


def _scalar(value: object) -> Value:
    if isinstance(value, bool):
        raise ValueError(f"{str(value).lower()} is neither a number nor text; quote it or write 0 or 1")
    if not isinstance(value, int | float | str):
        raise ValueError("must be a single number or text")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


def _number(value: object) -> int | float:
    if isinstance(value, bool | str) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("must be a finite number, without quotes")
    return value


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError("is not the name of an environment variable; use letters, digits and '_'")
    return name


def file_name(name: str) -> str:
    """Accept the name of a file below a directory."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.name:
        raise ValueError("is not the name of a file inside the attempt's directory; use a plain name")
    return name


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("has a line break or another character that cannot be printed; remove it")
    return text


def _word(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", text):
        raise ValueError("use letters, digits, '.', '_' and '-'")
    return text


def _text_of_scalar(value: object) -> str:
    return str(_scalar(value))


def _duration(value: Any) -> float:
    return units.parse_duration(value)


def _cost(value: Any) -> float:
    return units.parse_cost(value)


def _seconds_expression(value: Any) -> str:
    """Durations become constant expressions, so that there is one form."""
    try:
        return repr(units.parse_duration(value))
    except ValueError:
        # `5 minuts` is a duration with a mistake, not an expression.
        if isinstance(value, str) and not re.fullmatch(r"[\d.:\s]*", value) and not units.is_quantity(value):
            return value
        raise


def _number_or_text(expression: str) -> float | str:
    try:
        return float(expression)
    except ValueError:
        return expression


def _compiled(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.MULTILINE)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None


def telling_pattern(text: str) -> str:
    """Accept a regular expression that tells a text from the empty one."""
    if _compiled(text).search(""):
        raise ValueError(f"{text!r} matches an empty output, too: write what stands in it")
    return text


def value_pattern(text: str) -> str:
    """Accept a regular expression with one group, or a group called ``value``, beside ``callpath``."""
    found = _compiled(text)
    if "callpath" in found.groupindex and "value" not in found.groupindex:
        raise ValueError("names a call path in (?P<callpath>...); put the number into (?P<value>...)")
    if "value" not in found.groupindex and found.groups != 1:
        raise ValueError(
            f"has {found.groups} groups; put the number into exactly one (...), or into (?P<value>...)"
        )
    return text


def registered(kind: str) -> Callable[[str, ValidationInfo], str]:
    """Return a validator of the names of plug-ins of a kind; in the context `READ` all names are valid."""

    def check(name: str, info: ValidationInfo) -> str:
        if info.context != READ and not registry.knows(kind, name):
            raise ValueError(f"unknown {kind}; {registry.hint(name, registry.names(kind))}")
        return name

    return check


def application_name(name: str, info: ValidationInfo) -> str:
    """Accept the name of an adapter, or ``generic``; in the context `READ` any name."""
    if info.context != READ and name != "generic" and not registry.knows("application", name):
        known = ("generic", *registry.names("application"))
        raise ValueError(f"unknown application; {registry.hint(name, known)}")
    return name


def unique(items: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse an empty list, and one that names something twice."""
    if not items or len(set(items)) < len(items):
        raise ValueError("must name at least one, and none twice")
    return items


def command_line(command: tuple[str, ...]) -> tuple[str, ...]:
    """Accept a program with its arguments."""
    if not command or not command[0]:
        raise ValueError("is empty; give a program and its arguments, such as [./notify-me, --verbose]")
    if any("\0" in word for word in command):
        raise ValueError("has a NUL character, which no argument can carry")
    return command


def _most(value: object) -> int | str:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if value not in ("auto", "off") and not whole:
        raise ValueError("must be auto, off, or a whole number of runs, without quotes")
    return value  # type: ignore[return-value]  # as was just checked


Most = Annotated[
    int | str,
    PlainValidator(_most),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"enum": ["auto", "off"]}]}),
]
Name = Annotated[str, AfterValidator(_name)]
Scalar = Annotated[Value, PlainValidator(_scalar), WithJsonSchema(_NUMBER_OR_TEXT)]
Number = Annotated[int | float, PlainValidator(_number), WithJsonSchema({"type": "number"})]
ScalarText = Annotated[str, BeforeValidator(_text_of_scalar), WithJsonSchema(_NUMBER_OR_TEXT)]
Line = Annotated[str, AfterValidator(_one_line)]
ScalarLine = Annotated[ScalarText, AfterValidator(_one_line)]
Word = Annotated[str, AfterValidator(_word)]
Duration = Annotated[float, BeforeValidator(_duration), Field(ge=0), WithJsonSchema(_NUMBER_OR_TEXT)]
Budget = Annotated[
    float,
    BeforeValidator(_cost),
    Field(gt=0),
    PlainSerializer(lambda core_seconds: f"{core_seconds!r} core-seconds", return_type=str),
    WithJsonSchema(_NUMBER_OR_TEXT),
]
Expression = Annotated[str, BeforeValidator(_text_of_scalar), WithJsonSchema(_NUMBER_OR_TEXT)]
Seconds = Annotated[
    str,
    BeforeValidator(_seconds_expression),
    PlainSerializer(_number_or_text),
    WithJsonSchema(_NUMBER_OR_TEXT),
]
Environment = Mapping[Annotated[str, AfterValidator(_variable)], ScalarText]
Positive = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Aggregate = Literal["mean", "max", "sum", "min"]
