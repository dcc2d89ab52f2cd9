"""The keys of a campaign file with their types and defaults: the only place where defaults live.

Each section is a class; the types of values are in `orchestrator.campaign.fields`. Once a section is
validated, durations are seconds and the budget is core-seconds; short forms (a strategy's bare name, a
parameter's bare list of values) are expanded before. Nothing else is converted.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    model_validator,
)

from orchestrator import units
from orchestrator.campaign.fields import (
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
    telling_pattern,
    unique,
    value_pattern,
)
from orchestrator.launch.generic import Output, Program
from orchestrator.types import FailureClass

PARTITION = "partition"
"""Stands for what the partition has; see `orchestrator.campaign.partition`."""

WORDS = r"^(powers|multiples) of [0-9]+ up to ([0-9]+|partition)$"


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


class OutputSection(Section):
    """Where one metric of one call path stands in what the program writes."""

    callpath: str
    metric: str = "time"
    pattern: Annotated[str, AfterValidator(value_pattern)]
    file: str = "stdout"
    scale: float = 1.0
    aggregate: Literal["last", "first", "sum", "mean", "max", "min"] = "last"
    thousands: Literal[",", ".", "'", " ", "_"] | None = None
    optional: bool = False


class ProgramSection(Section):
    """A program without an adapter, described in the campaign file."""

    arguments: tuple[ScalarText, ...] = ()
    ranks: Expression = "1"
    threads: Expression = "1"
    output: tuple[OutputSection, ...] = ()
    environment: Environment = {}
    files: Mapping[Annotated[str, AfterValidator(file_name)], str] = {}
    check: tuple[Expression, ...] = ()

    def described(self) -> Program:
        """Return the description that the generic application is made of."""
        rules = tuple(Output(**dict(rule)) for rule in self.output)
        return Program(**{**dict(self), "output": rules})


class ResourcesSection(Section):
    """What runs ask for beside their ranks: expressions over parameters, settings and derived values."""

    nodes: Expression | None = None
    ranks_per_node: Expression | None = None
    threads: Expression | None = None
    gpus_per_node: Expression | None = None

    def stated(self) -> dict[str, str]:
        """Return the expressions that are given."""
        return {key: text for key, text in self if text is not None}


class Repetitions(Section):
    """Repetitions of a point: at first, and at most."""

    initial: Positive = 2
    maximum: Positive = 10


class Effort(Section):
    """Runs that count effort, besides those that are timed. ``slowdown``: how much longer they take.

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


class Metric(Section):
    """A metric to keep: its unit, whether less or more of it is better, and what is modelled.

    ``model: inverse`` is for figures of merit: work per second becomes seconds per unit of work.
    """

    name: str
    unit: Line = ""
    better: Literal["lower", "higher"] = "lower"
    model: Literal["value", "inverse"] = "value"


def _named(value: object) -> object:
    """Return a section of which only the name was given."""
    return {"name": value} if isinstance(value, str) else value


_BY_NAME = BeforeValidator(_named)


def _short_metric(metric: Metric) -> object:
    """Return the name alone where that says all."""
    return metric.name if metric == Metric(name=metric.name) else metric.model_dump(mode="json")


def _unique_metrics(metrics: tuple[Metric, ...]) -> tuple[Metric, ...]:
    unique(tuple(metric.name for metric in metrics))
    return metrics


Metrics = Annotated[
    tuple[Annotated[Metric, _BY_NAME, PlainSerializer(_short_metric)], ...],
    AfterValidator(_unique_metrics),
]


LARGEST_EXIT_CODE = 125
"""Exit codes above are the shell's: a program that it cannot start, or that a signal ended."""
_ExitCode = Annotated[int, Field(ge=0, le=LARGEST_EXIT_CODE)]


class Measure(Section):
    """What is measured, and how often."""

    profiler: Annotated[str, AfterValidator(registered("reader"))] = "stdout"
    effort: Annotated[Effort | None, BeforeValidator(_effort), PlainSerializer(_effort_or_false)] = None
    repetitions: Repetitions = Repetitions()
    metrics: Metrics = (Metric(name="time"),)
    aggregate: Aggregate = "mean"
    inclusive: bool = False
    time_limit: Seconds | None = None
    expected_time: Seconds | None = None
    limit_margin: Annotated[float, Field(ge=1)] | None = 2.0
    reference: bool = True
    success: Annotated[str, AfterValidator(telling_pattern)] | None = None
    failure: Annotated[str, AfterValidator(telling_pattern)] | None = None
    exit_codes: Annotated[tuple[_ExitCode, ...], Field(min_length=1)] = (0,)

    @property
    def measured(self) -> tuple[str, ...]:
        """Return the metrics that runs must yield."""
        return tuple(metric.name for metric in self.metrics)

    @property
    def inverted(self) -> tuple[str, ...]:
        """Return those of them whose inverse is modelled."""
        return tuple(metric.name for metric in self.metrics if metric.model == "inverse")


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

    name: Annotated[str, AfterValidator(registered("model"))] = "auto"

    @property
    def options(self) -> dict[str, Any]:
        """Keyword options for the modeler's factory."""
        return dict(self.model_extra or {})


def _distinct(items: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(items)) < len(items):
        raise ValueError("names a campaign twice")
    return items


class Priors(Section):
    """What is known before anything is measured: directories of other campaigns."""

    campaigns: Annotated[tuple[Line, ...], AfterValidator(_distinct)] = ()


class Stop(Section):
    """When the campaign ends, or pauses. ``budget`` is in core-seconds, ``wall_time`` in seconds.

    ``rule`` says what a gain is, ``without_gain`` is a share of the budget: see `orchestrator.policy.rules`.
    ``unit``: in which costs are shown to humans; that in which the budget is written, unless it is given.
    ``infrastructure``: share of the budget that attempts may cost that Slurm, a node or a file system ended.
    """

    budget: Budget
    rule: Literal["uncertainty", "smape"] = "uncertainty"
    patience: Positive = 3
    without_gain: Annotated[float, Field(ge=0, le=1)] = 0.2
    wall_time: Annotated[Duration, Field(gt=0)] | None = None
    failures: Positive = 5
    width: Annotated[float, Field(gt=0)] | None = None
    failure_rate: Annotated[float, Field(gt=0, le=1)] | None = 0.75
    infrastructure: Annotated[float, Field(gt=0, le=1)] = 0.1
    unit: units.CostUnit = "core-hours"

    @model_validator(mode="before")
    @classmethod
    def _unit_of_budget(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or "unit" in data:
            return data
        return {**data, "unit": units.cost_unit(data.get("budget"))}


def _for_all_runs(value: object) -> object:
    if isinstance(value, str):
        raise ValueError(
            "is the same for all runs, so a whole number; write what depends on parameters under resources, "
            "such as resources: {ranks_per_node: ppn}"
        )
    return value


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


ForAllRuns = Annotated[Positive, BeforeValidator(_for_all_runs)]


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


class ExecutorOptions(Section):
    """Where attempts run: what every executor has. A rehearsal starts nothing, so it needs no script."""

    name: str
    max_pending: Positive = 8
    launcher: str | None = None
    mpi: Word | None = None
    template: str | None = None
    modules: tuple[ScalarLine, ...] = ()
    prologue: tuple[str, ...] = ()
    epilogue: tuple[str, ...] = ()
    environment: Environment = {}
    poll_interval: Annotated[Duration, Field(gt=0)] = 10.0


class LocalOptions(ExecutorOptions):
    """Runs on this machine."""

    name: Literal["local"] = "local"
    slots: int = Field(default_factory=_cores, ge=1)
    oversubscribe: bool = False
    share_cores: bool = False


class ClusterOptions(ExecutorOptions):
    """Runs on the nodes of a cluster: what decides which cores a run occupies."""

    cores_per_node: Positive | None = None
    threads_per_core: Positive = 1
    ranks_per_node: ForAllRuns | None = None
    exclusive: bool = False
    billing: Literal["cores", "nodes"] = "cores"
    by_size: Annotated[tuple[SizeClass, ...], AfterValidator(_ascending)] = ()


class SharedJobOptions(ClusterOptions):
    """Runs in jobs, real or simulated, that several runs may share."""

    pack: Annotated[Pack, BeforeValidator(_pack)] = Pack()


class SlurmOptions(SharedJobOptions):
    """Runs as jobs of Slurm."""

    name: Literal["slurm"] = "slurm"
    gpus_per_node: ForAllRuns | None = None
    partition: Line | None = None
    account: Line | None = None
    qos: Line | None = None
    constraint: Line | None = None
    reservation: Line | None = None
    placement: Literal["any", "same", "nested"] = "any"
    sbatch: Mapping[str, ScalarLine | None] = {}


class SimulatedOptions(SharedJobOptions):
    """Runs of a rehearsal: values from stated truths or a data set, on a virtual clock."""

    name: Literal["simulated"] = "simulated"
    queue_delay: Duration = 0.0
    failure_rate: Annotated[float, Field(ge=0, lt=1)] = 0.0
    fails_where: Expression | None = None
    noise: Annotated[float, Field(ge=0)] = 0.0
    overhead: Duration = 0.0
    truth: Mapping[str, Expression] = {}
    dataset: str | None = None
    models: str | None = None
    callpaths: Positive | None = None
    cores: Positive | None = None


class PluginOptions(ClusterOptions):
    """Runs of another distribution's executor. Further keys are options that it validates itself."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, AfterValidator(registered("executor"))]


EXECUTORS: Mapping[str, type[ExecutorOptions]] = MappingProxyType(
    {"local": LocalOptions, "slurm": SlurmOptions, "simulated": SimulatedOptions}
)
"""The options of our own executors, by name."""

PLUGIN = "plug-in"


def executor_keys(name: object) -> frozenset[str]:
    """Return the keys that the options of an executor have, those of its own distribution apart."""
    options = EXECUTORS.get(name, PluginOptions) if isinstance(name, str) else PluginOptions
    return frozenset(options.model_fields)


def without_other_executors(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return an ``executor`` section without the keys that only other executors of ours have.

    Earlier versions wrote the keys of all executors, with defaults, into journals and directories.
    """
    name = section.get("name", "local")
    if not isinstance(name, str) or name not in EXECUTORS:
        return dict(section)
    others = frozenset().union(*map(executor_keys, EXECUTORS)) - executor_keys(name)
    return {key: value for key, value in section.items() if key not in others}


def _kind(value: object) -> str:
    """Return which class validates an ``executor`` section: the name of one of ours, or `PLUGIN`."""
    if isinstance(value, PluginOptions):
        return PLUGIN
    name = value.get("name", "local") if isinstance(value, Mapping) else getattr(value, "name", "local")
    return name if isinstance(name, str) and name in EXECUTORS else PLUGIN


ExecutorSection = Annotated[
    Annotated[LocalOptions, Tag("local")]
    | Annotated[SlurmOptions, Tag("slurm")]
    | Annotated[SimulatedOptions, Tag("simulated")]
    | Annotated[PluginOptions, Tag(PLUGIN)],
    Discriminator(_kind),
]


class Notify(Section):
    """The command to call for events, without a shell. ``left`` is in percent, ``timeout`` in seconds."""

    command: Annotated[tuple[ScalarText, ...], AfterValidator(command_line)]
    on: Annotated[tuple[Literal["stop", "failures", "outage", "budget"], ...], AfterValidator(unique)] = (
        "stop",
        "failures",
        "outage",
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
    if isinstance(value, str) and "," in value:
        raise ValueError(f"is text; put the values in brackets: [{value}]")
    return {"values": value} if isinstance(value, tuple) else value


VARIANT = "variant"
"""The parameter that tells the executables of a comparison apart."""


class Compare(Section):
    """Another executable, measured beside the first in the same rounds.

    ``names`` are the values of `VARIANT`: of the campaign's executable, and of this one. ``effort``: of the
    other executable, the one that counts effort.
    """

    with_: str = Field(alias="with")
    names: tuple[Word, Word] = ("A", "B")
    effort: str | None = None

    @model_validator(mode="after")
    def _different(self) -> Compare:
        if self.names[0] == self.names[1]:
            raise ValueError(f"names: both executables are called {self.names[0]}; give two names")
        return self


class Document(Section):
    """A whole campaign file."""

    name: Name
    application: Annotated[str, AfterValidator(application_name)]
    executable: str = ""
    compare: Compare | None = None
    version_arguments: tuple[ScalarText, ...] = ()
    settings: Mapping[str, Scalar] = {}
    template: str | None = None
    program: ProgramSection | None = None
    parameters: Mapping[str, Annotated[Values, BeforeValidator(_values)]]
    constraints: tuple[Expression, ...] = ()
    resources: ResourcesSection = ResourcesSection()
    evaluation_point: Mapping[str, Scalar] | None = None
    measure: Measure = Measure()
    strategy: Annotated[Strategy, _BY_NAME] = Strategy()
    model: Annotated[ModelChoice, _BY_NAME] = ModelChoice()
    priors: Priors = Priors()
    stop: Stop
    site: str = "none"
    executor: Annotated[ExecutorSection, _BY_NAME] = Field(default_factory=LocalOptions)
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
    definitions = schema["$defs"]
    most = definitions["Pack"]["properties"]["most"]["anyOf"]
    for options in (SlurmOptions, SimulatedOptions):
        section = definitions[options.__name__]
        section["properties"]["pack"] = {"anyOf": [*most, {"$ref": "#/$defs/Pack"}]}
        section["required"] = ["name"]  # without it an executor is local
    definitions["PluginOptions"]["properties"]["name"]["not"] = {"enum": [*EXECUTORS]}
    metrics = definitions["Measure"]["properties"]["metrics"]
    metrics.update(items={"anyOf": [{"type": "string"}, metrics["items"]]}, default=["time"])
    counted = schema["$defs"]["Measure"]["properties"]["effort"]
    counted["anyOf"] = [{"type": "boolean"}, *(item for item in counted["anyOf"] if "$ref" in item)]
    counted["default"] = False
    values = properties["parameters"]["additionalProperties"]
    ranged = schema["$defs"]["Values"]["properties"]
    listed, words = ranged["values"]["anyOf"][0], {"type": "string", "pattern": WORDS}
    properties["parameters"]["additionalProperties"] = {"anyOf": [listed, words, values]}
    ranged["values"]["anyOf"].insert(1, words)
    ranged["to"]["anyOf"].insert(1, {"const": PARTITION})
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
