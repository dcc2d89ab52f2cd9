"""The keys of a campaign file with their types and defaults: the only place where defaults live.

Durations are seconds and the budget is core-seconds once a section is validated; short forms (a
strategy's bare name, a parameter's bare list of values) are expanded before.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)

from orchestrator import registry, units
from orchestrator.hints import did_you_mean
from orchestrator.types import FailureClass, Value

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


def _file_name(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.name:
        raise ValueError("is not the name of a file inside the attempt's directory; use a plain name")
    return name


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
        if isinstance(value, str) and not re.fullmatch(r"[\d.:\s]*", value):
            return value
        raise


def _number_or_text(expression: str) -> float | str:
    try:
        return float(expression)
    except ValueError:
        return expression


def _pattern(text: str) -> str:
    try:
        pattern = re.compile(text, re.MULTILINE)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    if "value" not in pattern.groupindex and pattern.groups != 1:
        raise ValueError(
            f"has {pattern.groups} groups; put the number into exactly one (...), or into (?P<value>...)"
        )
    return text


def _registered(kind: str) -> Callable[[str], str]:
    def check(name: str) -> str:
        if name not in registry.names(kind):
            raise ValueError(f"unknown {kind}; {did_you_mean(name, registry.names(kind))}")
        return name

    return check


def _application(name: str) -> str:
    known = ("generic", *registry.names("application"))
    if name not in known:
        raise ValueError(f"unknown application; {did_you_mean(name, known)}")
    return name


def _unique(items: tuple[str, ...]) -> tuple[str, ...]:
    if not items or len(set(items)) < len(items):
        raise ValueError("must name at least one, and none twice")
    return items


Name = Annotated[str, AfterValidator(_name)]
Scalar = Annotated[Value, PlainValidator(_scalar), WithJsonSchema(_NUMBER_OR_TEXT)]
Number = Annotated[int | float, PlainValidator(_number), WithJsonSchema({"type": "number"})]
ScalarText = Annotated[str, BeforeValidator(_text_of_scalar), WithJsonSchema(_NUMBER_OR_TEXT)]
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


class Section(BaseModel):
    """A mapping of the campaign file: frozen, no unknown keys, no conversion between types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Values(Section):
    """The values of one parameter, listed or as a range."""

    values: tuple[Scalar, ...] | None = None
    from_: Number | None = Field(None, alias="from")
    to: Number | None = None
    step: Number | None = None
    factor: Number | None = None
    constraint: Expression | None = None
    type: Literal["integer", "float", "categorical"] | None = None


class Output(Section):
    """Where one metric of one call path stands in what the program writes."""

    callpath: str
    metric: str = "time"
    pattern: Annotated[str, AfterValidator(_pattern)]
    file: str = "stdout"
    scale: float = 1.0
    aggregate: Literal["last", "first", "sum", "mean", "max", "min"] = "last"


class Program(Section):
    """A program without an adapter, described in the campaign file."""

    arguments: tuple[ScalarText, ...] = ()
    ranks: Expression = "1"
    threads: Expression = "1"
    output: tuple[Output, ...] = ()
    environment: Environment = {}
    files: Mapping[Annotated[str, AfterValidator(_file_name)], str] = {}
    check: tuple[Expression, ...] = ()


class Repetitions(Section):
    """Repetitions of a point: at first, and at most."""

    initial: Positive = 2
    maximum: Positive = 10


class Measure(Section):
    """What is measured, and how often."""

    profiler: Annotated[str, AfterValidator(_registered("reader"))] = "stdout"
    effort: bool = False
    repetitions: Repetitions = Repetitions()
    metrics: Annotated[tuple[str, ...], AfterValidator(_unique)] = ("time",)
    aggregate: Aggregate = "mean"
    inclusive: bool = False
    time_limit: Seconds | None = None
    expected_time: Seconds | None = None


class Strategy(Section):
    """Who proposes the next points. Further keys are options of the strategy."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, AfterValidator(_registered("strategy"))] = "cpf"
    batch_size: Positive = 4

    @property
    def options(self) -> dict[str, Any]:
        """Keyword options for the strategy's factory."""
        return dict(self.model_extra or {})


class ModelChoice(Section):
    """Which modeler fits. Further keys are options of the modeler."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, AfterValidator(_registered("model"))] = "pmnf"

    @property
    def options(self) -> dict[str, Any]:
        """Keyword options for the modeler's factory."""
        return dict(self.model_extra or {})


class Stop(Section):
    """When the campaign ends. ``budget`` is in core-seconds, ``wall_time`` in seconds."""

    budget: Budget
    patience: Positive = 3
    wall_time: Annotated[Duration, Field(gt=0)] | None = None
    failures: Positive = 5
    width: Annotated[float, Field(gt=0)] | None = None


def _cores() -> int:
    """Cores that this process may use, which on shared machines are fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Executor(Section):
    """Where attempts run. Keys that the chosen executor does not need are ignored."""

    name: Annotated[str, AfterValidator(_registered("executor"))] = "local"
    max_pending: Positive = 8
    slots: Positive = Field(default_factory=_cores)
    oversubscribe: bool = False
    launcher: str | None = None
    template: str | None = None
    prologue: tuple[str, ...] = ()
    environment: Environment = {}
    poll_interval: Annotated[Duration, Field(gt=0)] = 10.0
    cores_per_node: Positive | None = None
    ranks_per_node: Positive | None = None
    exclusive: bool = False
    billing: Literal["cores", "nodes"] = "cores"
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    reservation: str | None = None
    sbatch: Mapping[str, ScalarText | None] = {}
    queue_delay: Duration = 0.0
    failure_rate: Annotated[float, Field(ge=0, lt=1)] = 0.0
    noise: Annotated[float, Field(ge=0)] = 0.0
    overhead: Duration = 0.0
    truth: Mapping[str, Expression] = {}
    dataset: str | None = None


def _command(command: tuple[str, ...]) -> tuple[str, ...]:
    if not command or not command[0]:
        raise ValueError("is empty; give a program and its arguments, such as [./tell-me, --loudly]")
    if any("\0" in word for word in command):
        raise ValueError("has a NUL character, which no argument can carry")
    return command


class Notify(Section):
    """Whom to tell: a command, called without a shell. ``left`` is in percent, ``timeout`` in seconds."""

    command: Annotated[tuple[ScalarText, ...], AfterValidator(_command)]
    on: Annotated[tuple[Literal["stop", "failures", "budget"], ...], AfterValidator(_unique)] = (
        "stop",
        "failures",
        "budget",
    )
    streak: Positive = 3
    left: Annotated[float, Field(gt=0, lt=100)] = 10.0
    timeout: Annotated[Duration, Field(gt=0, le=600)] = 60.0


class Retries(Section):
    """Further attempts at a run, by the class of its failure."""

    infrastructure: Natural = 2
    timeout: Natural = 1
    application: Natural = 1
    parse: Natural = 0

    def by_class(self) -> dict[FailureClass, int]:
        """Return the figures keyed by `FailureClass`."""
        return {failure: getattr(self, failure.value) for failure in FailureClass}


def _values(value: object) -> object:
    if isinstance(value, int | float):
        raise ValueError("is a single value; vary it with a list of values, or fix it under settings")
    return {"values": value} if isinstance(value, tuple) else value


def _named(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


_BY_NAME = BeforeValidator(_named)


class Document(Section):
    """A whole campaign file."""

    name: Name
    application: Annotated[str, AfterValidator(_application)]
    executable: str = ""
    version_arguments: tuple[ScalarText, ...] = ()
    settings: Mapping[str, Scalar] = {}
    program: Program | None = None
    parameters: Mapping[str, Annotated[Values, BeforeValidator(_values)]]
    constraints: tuple[Expression, ...] = ()
    evaluation_point: Mapping[str, Scalar] | None = None
    measure: Measure = Measure()
    strategy: Annotated[Strategy, _BY_NAME] = Strategy()
    model: Annotated[ModelChoice, _BY_NAME] = ModelChoice()
    stop: Stop
    executor: Annotated[Executor, _BY_NAME] = Field(default_factory=Executor)
    retries: Retries = Retries()
    notify: Notify | None = None
    seed: Natural = 0
    validate_: bool = Field(False, alias="validate")


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of campaign files, with the short forms."""
    schema = Document.model_json_schema(by_alias=True)
    properties = schema["properties"]
    for key in ("strategy", "model", "executor"):
        properties[key] = {"anyOf": [{"type": "string"}, properties[key]]}
    values = properties["parameters"]["additionalProperties"]
    listed = schema["$defs"]["Values"]["properties"]["values"]["anyOf"][0]
    properties["parameters"]["additionalProperties"] = {"anyOf": [listed, values]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
