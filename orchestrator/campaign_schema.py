"""The keys of a campaign file with their types and defaults: the only place where defaults live.

Durations are seconds and the budget is core-seconds once a section is validated; short forms (a
strategy's bare name, a parameter's bare list of values) are expanded before.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
)

from orchestrator.campaign_types import (
    Aggregate,
    Budget,
    Duration,
    Environment,
    Expression,
    Line,
    Most,
    Name,
    Natural,
    Number,
    Positive,
    Scalar,
    ScalarLine,
    ScalarText,
    Seconds,
    Word,
    application_name,
    command_line,
    file_name,
    registered,
    unique,
    value_pattern,
)
from orchestrator.types import FailureClass


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
    pattern: Annotated[str, AfterValidator(value_pattern)]
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
    files: Mapping[Annotated[str, AfterValidator(file_name)], str] = {}
    check: tuple[Expression, ...] = ()


class Repetitions(Section):
    """Repetitions of a point: at first, and at most."""

    initial: Positive = 2
    maximum: Positive = 10


class Effort(Section):
    """Runs that count effort beside those that are timed. ``slowdown``: how much longer they take.

    ``when``: at new points while the effort models need it, or always.
    """

    executable: str = ""
    profiler: Annotated[str, AfterValidator(registered("reader"))] = "effort"
    when: Literal["needed", "always"] = "needed"
    repetitions: Positive = 1
    aggregate: Aggregate | None = None
    slowdown: Annotated[float, Field(ge=1)] = 5.0
    template: str | None = None
    environment: Environment = {}


def _effort(value: object) -> object:
    """Expand ``true`` to a section, and ``false`` to none."""
    if isinstance(value, bool):
        return Effort() if value else None
    return value


def _effort_or_false(effort: Effort | None) -> object:
    return False if effort is None else effort.model_dump(mode="json")


class Measure(Section):
    """What is measured, and how often."""

    profiler: Annotated[str, AfterValidator(registered("reader"))] = "stdout"
    effort: Annotated[Effort | None, BeforeValidator(_effort), PlainSerializer(_effort_or_false)] = None
    repetitions: Repetitions = Repetitions()
    metrics: Annotated[tuple[str, ...], AfterValidator(unique)] = ("time",)
    aggregate: Aggregate = "mean"
    inclusive: bool = False
    time_limit: Seconds | None = None
    expected_time: Seconds | None = None
    limit_margin: Annotated[float, Field(ge=1)] | None = None


class Strategy(Section):
    """Who proposes the next points. Further keys are options of the strategy."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, AfterValidator(registered("strategy"))] = "information"
    batch_size: Positive = 4

    @property
    def options(self) -> dict[str, Any]:
        """Keyword options for the strategy's factory."""
        return dict(self.model_extra or {})


class ModelChoice(Section):
    """Which modeler fits. Further keys are options of the modeler."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, AfterValidator(registered("model"))] = "pmnf"

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
    failure_rate: Annotated[float, Field(gt=0, le=1)] | None = 0.75


def _cores() -> int:
    """Cores that this process may use, which on shared machines are fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class SizeClass(Section):
    """Where runs of up to some number of cores (ranks times threads) go, with what differs there."""

    partition: Line
    up_to: Positive | None = None
    cores_per_node: Positive | None = None
    qos: Line | None = None
    constraint: Line | None = None


def _ascending(sizes: tuple[SizeClass, ...]) -> tuple[SizeClass, ...]:
    limits = [item.up_to or math.inf for item in sizes]
    if any(a >= b for a, b in itertools.pairwise(limits)):
        raise ValueError("up_to must grow from one to the next, and only the last may lack it")
    return sizes


class Pack(Section):
    """Which runs share an allocation. ``longest``: sum of their time limits in seconds."""

    most: Most = "auto"
    longest: Annotated[Duration, Field(gt=0)] = 1800.0
    repetitions: Literal["any", "spread", "together"] = "any"


def _pack(value: object) -> object:
    return value if isinstance(value, Mapping | Pack) else {"most": value}


class Executor(Section):
    """Where attempts run. Keys that the chosen executor does not need are ignored."""

    name: Annotated[str, AfterValidator(registered("executor"))] = "local"
    max_pending: Positive = 8
    pack: Annotated[Pack, BeforeValidator(_pack)] = Pack()
    slots: Positive = Field(default_factory=_cores)
    oversubscribe: bool = False
    launcher: str | None = None
    mpi: Word | None = None
    template: str | None = None
    modules: tuple[ScalarLine, ...] = ()
    prologue: tuple[str, ...] = ()
    epilogue: tuple[str, ...] = ()
    environment: Environment = {}
    poll_interval: Annotated[Duration, Field(gt=0)] = 10.0
    cores_per_node: Positive | None = None
    ranks_per_node: Positive | None = None
    exclusive: bool = False
    billing: Literal["cores", "nodes"] = "cores"
    gpus_per_node: Positive | None = None
    partition: Line | None = None
    by_size: Annotated[tuple[SizeClass, ...], AfterValidator(_ascending)] = ()
    account: Line | None = None
    qos: Line | None = None
    constraint: Line | None = None
    reservation: Line | None = None
    sbatch: Mapping[str, ScalarLine | None] = {}
    queue_delay: Duration = 0.0
    failure_rate: Annotated[float, Field(ge=0, lt=1)] = 0.0
    noise: Annotated[float, Field(ge=0)] = 0.0
    overhead: Duration = 0.0
    truth: Mapping[str, Expression] = {}
    dataset: str | None = None


class Notify(Section):
    """Whom to tell: a command, called without a shell. ``left`` is in percent, ``timeout`` in seconds."""

    command: Annotated[tuple[ScalarText, ...], AfterValidator(command_line)]
    on: Annotated[tuple[Literal["stop", "failures", "budget"], ...], AfterValidator(unique)] = (
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
    memory: Natural = 2
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
    application: Annotated[str, AfterValidator(application_name)]
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
    site: str = "none"
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
    packed = schema["$defs"]["Executor"]["properties"]
    most = schema["$defs"]["Pack"]["properties"]["most"]["anyOf"]
    packed["pack"] = {"anyOf": [*most, {"$ref": "#/$defs/Pack"}]}
    counted = schema["$defs"]["Measure"]["properties"]["effort"]
    counted["anyOf"] = [{"type": "boolean"}, *(item for item in counted["anyOf"] if "$ref" in item)]
    counted["default"] = False
    values = properties["parameters"]["additionalProperties"]
    listed = schema["$defs"]["Values"]["properties"]["values"]["anyOf"][0]
    properties["parameters"]["additionalProperties"] = {"anyOf": [listed, values]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
