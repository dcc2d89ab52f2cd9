"""Checks of what a campaign is begun for: values that its runs can yield, rules that can hold.

What they refuse was once accepted: directories of such campaigns can be read, but not continued.
"""

from __future__ import annotations

import inspect
import itertools
import keyword
import typing
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import (
    ConfigDict,
    PydanticSchemaGenerationError,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
)

from orchestrator import registry, space
from orchestrator import resources as cost
from orchestrator.campaign.model import Campaign
from orchestrator.campaign.resolve import _HOW, KEY, METRICS, SUFFIX, is_instrumented
from orchestrator.campaign.schema import ModelChoice, ProgramSection, Strategy
from orchestrator.campaign.yaml import Path as KeyPath
from orchestrator.campaign.yaml import Problem
from orchestrator.errors import CampaignError, ExpressionError
from orchestrator.executors.attempt.directory import OURS
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.expressions import Kind
from orchestrator.launch import generic, script
from orchestrator.resources import Machine, resources
from orchestrator.space import MOST_COMBINATIONS, Check, SearchSpace
from orchestrator.types import Application, Point, Resources, Value
from orchestrator.units import did_you_mean


def problems(campaign: Campaign) -> Iterator[Problem]:
    """Yield what is wrong with effort runs as a whole."""
    effort = campaign.measure.effort
    if effort is None:
        return
    both = [metric for metric in campaign.measure.metrics if metric in METRICS]
    if both:
        yield Problem(
            ("measure", "metrics"),
            f"{', '.join(both)} would be measured by time runs and counted by effort runs: drop it here, "
            "or write effort: false",
        )
    if campaign.executor.name == "simulated":
        if campaign.executor.dataset is None:
            yield Problem(
                KEY, "executor.truth states times, no counts: give executor.dataset, or write effort: false"
            )
    elif effort.profiler == "effort" and not is_instrumented(Path(effort.executable)):
        key = KEY if effort.executable == f"{campaign.executable}{SUFFIX}" else (*KEY, "executable")
        yield Problem(
            key, f"{effort.executable} was not built to count effort (with {_HOW}): its runs would be in vain"
        )


Problems = Iterator[Problem]


def outputs(campaign: Campaign) -> Problems:
    """Yield what is wrong with the values that are read from a generic program's output."""
    for index, rule in enumerate(campaign.program.output if campaign.program is not None else ()):
        path = ("program", "output", index)
        if not rule.callpath.strip():
            yield Problem((*path, "callpath"), "is empty; name what the value belongs to, such as main")
        if not rule.metric.strip():
            yield Problem((*path, "metric"), "is empty; name what the value is, such as time")
        if rule.scale <= 0:
            yield Problem(
                (*path, "scale"),
                "must be greater than 0, as values are never negative and all zero says nothing; "
                f"write 1, or 0.001 for milliseconds (value: {rule.scale:g})",
            )


def metrics(campaign: Campaign) -> Problems:
    """Yield a problem where runs cannot yield a metric that is to be kept."""
    known, remedy = _metrics(campaign)
    if known is None:
        return
    lacking = [metric for metric in campaign.measure.metrics if metric not in known]
    if lacking:
        there = f"runs yield only {', '.join(known)}"
        yield Problem(
            ("measure", "metrics"), f"{', '.join(lacking)} is measured by nothing: {there}; {remedy}"
        )


def _metrics(campaign: Campaign) -> tuple[tuple[str, ...] | None, str]:
    """Return the metrics that runs yield, None where that cannot be told, and what to do for others."""
    executor, profiler, program = campaign.executor, campaign.measure.profiler, campaign.program
    if executor.name == "simulated":  # a data set is read when the rehearsal begins
        return (("time",) if executor.dataset is None else None), "write metrics: [time], or give a dataset"
    if profiler == "time":
        return ("time",), "write metrics: [time], or choose another measure.profiler"
    if profiler == "stdout" and program is not None and program.output:
        return _of_outputs(program), "correct it, or add an item with this metric to program.output"
    return None, ""


def _of_outputs(program: ProgramSection) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rule.metric for rule in program.output))


def no_output(campaign: Campaign) -> Problems:
    """Yield a problem where a generic program's output is to be read, and nothing in it is described."""
    if campaign.measure.profiler == "stdout" and campaign.program is not None and not campaign.program.output:
        others = [name for name in registry.names("reader") if name not in ("stdout", "effort")]
        yield Problem(
            ("program",),
            "has no output, so profiler stdout finds nothing; add program.output, "
            f"or set measure.profiler to {' or '.join(others)}",
        )


def width(campaign: Campaign) -> Problems:
    """Yield a problem where a stop rule asks for intervals at a point that is not given."""
    if campaign.stop.width is not None and campaign.evaluation_point is None:
        yield Problem(
            ("stop", "width"),
            "is the width of intervals at the evaluation point, which is not given, so the rule never holds; "
            f"add evaluation_point, or remove it (value: {campaign.stop.width:g})",
        )


def build(campaign: Campaign, machine: Machine | None = None) -> SearchSpace:
    """Return the search space of a campaign: what its machine and application can run.

    Parameters
    ----------
    campaign
        The campaign.
    machine
        Where runs must fit; by default the campaign's own.

    Raises
    ------
    CampaignError
        If it is empty, naming the constraint that removed the last points, or has more than
        `MOST_COMBINATIONS` combinations.
    """
    constraints = [campaign.expression(text) for text in campaign.constraints]
    check = _possible(campaign.application_spec(), machine or campaign.machine())
    space = SearchSpace(campaign.parameters, constraints, campaign.settings, check)
    if space.combinations > MOST_COMBINATIONS:
        raise CampaignError(
            f"the parameters have {space.combinations:.3g} combinations, more than {MOST_COMBINATIONS:.0e}; "
            "use fewer values, or a constraint on the values of one parameter"
        )
    if next(iter(space), None) is None:
        description = space.describe()
        counts = "; ".join(f"{count} by {reason!r}" for reason, count in description.infeasible.items())
        raise CampaignError(
            f"the search space is empty: the last of {description.combinations} combinations was excluded by "
            f"{description.last!r}; relax it or add values"
            + (f" (excluded: {counts})" if len(description.infeasible) > 1 else "")
        )
    return space


def _possible(application: Application, machine: Machine) -> Check:
    def check(values: Mapping[str, Value]) -> str | None:
        reason = application.check(values)
        if reason is None:
            try:
                resources(application.ranks(values), application.threads(values), machine)
            except ValueError as error:
                reason = str(error)
        return reason

    return check


#
# # FOLDED orchestrator.campaign.validation: Checks of a campaign as a whole: what no single key of the file can be blamed for alone.


_MOST_POINTS = 100_000  # looked at for what runs occupy

START = "(start)"
"""Blocks what is only asked of a campaign that is to be run; no key of a file has this name."""


def check(campaign: Campaign, blocked: frozenset[str]) -> list[Problem]:
    """Return all problems of a campaign.

    ``blocked`` are the top-level keys known to be wrong: what depends on them is not checked, so that one
    mistake is reported once.
    """
    problems: list[Problem] = []
    for needs, find in _CHECKS:
        if not blocked.union(str(p.path[0]) for p in problems if p.path) & needs:
            problems += find(campaign)
    return problems


def _names(campaign: Campaign) -> Problems:
    for section, names in (
        ("settings", list(campaign.settings)),
        ("parameters", [item.name for item in campaign.parameters]),
    ):
        for name in names:
            valid = name.isidentifier() and not keyword.iskeyword(name)
            if not valid or unicodedata.normalize("NFKC", name) != name:
                yield Problem((section, name), "is no name; use letters, digits and '_', as in num_zones")
            if section == "parameters" and name in campaign.settings:
                yield Problem(("settings", name), "is a parameter, too; keep it under parameters or settings")
    if not campaign.parameters:
        yield Problem(("parameters",), "is empty; give at least one parameter with its values")


def _application(campaign: Campaign) -> Problems:
    """The adapter knows every parameter and setting, and has those that it requires."""
    if campaign.application == "generic":
        if campaign.program is None:
            yield Problem(("program",), "is required for application: generic; describe the program there")
        return
    if campaign.program is not None:
        remedy = "remove it, or write application: generic"
        yield Problem(
            ("program",), f"is only for generic applications, not for {campaign.application}; {remedy}"
        )
    spec = campaign.application_spec()
    places = [("settings", name) for name in campaign.settings]
    places += [("parameters", item.name) for item in campaign.parameters]
    for section, name in places:
        if name not in spec.parameters:
            hint = did_you_mean(name, spec.parameters)
            yield Problem((section, name), f"{spec.name} has no parameter {name!r}; {hint}")
    for name in spec.required:
        if name not in {name for _, name in places}:
            meaning = spec.parameters.get(name, "")
            yield Problem(
                ("parameters",), f"{spec.name} needs {name} ({meaning}); vary it or put it under settings"
            )


def _expressions(campaign: Campaign) -> Problems:
    wanted: list[tuple[KeyPath, str, Kind]] = []
    wanted += [(("constraints", i), text, "truth") for i, text in enumerate(campaign.constraints)]
    for key in ("time_limit", "expected_time"):
        text = getattr(campaign.measure, key)
        wanted += [(("measure", key), text, "number")] if text is not None else []
    wanted += [
        (("executor", "truth", path), text, "number") for path, text in campaign.executor.truth.items()
    ]
    if campaign.program is not None:
        wanted += [
            (("program", key), getattr(campaign.program, key), "number") for key in ("ranks", "threads")
        ]
        wanted += [(("program", "check", i), text, "truth") for i, text in enumerate(campaign.program.check)]
    for path, text, kind in wanted:
        try:
            found = campaign.expression(text).kind
        except ExpressionError as error:
            yield Problem(path, str(error))
            continue
        if found != kind:
            remedy = "write a comparison, such as p <= 64" if kind == "truth" else "write a number"
            yield Problem(path, f"expression {text!r} gives a {found}, not a {kind}; {remedy}")
    yield from _templates(campaign)


def _templates(campaign: Campaign) -> Problems:
    if campaign.program is None:
        return
    texts: list[tuple[KeyPath, str]] = [
        (("program", "arguments", i), text) for i, text in enumerate(campaign.program.arguments)
    ]
    texts += [(("program", "files", name), text) for name, text in campaign.program.files.items()]
    for path, text in texts:
        try:
            generic.parse_template(text, *campaign.names)
        except ExpressionError as error:
            yield Problem(path, str(error))


def _files(campaign: Campaign) -> Problems:
    for name in campaign.program.files if campaign.program is not None else ():
        if name in OURS:
            yield Problem(("program", "files", name), "is a file of the attempt's own; choose another name")


def _measure(campaign: Campaign) -> Problems:
    measure = campaign.measure
    yield from problems(campaign)
    if measure.repetitions.initial > measure.repetitions.maximum:
        initial, maximum = measure.repetitions.initial, measure.repetitions.maximum
        yield Problem(
            ("measure", "repetitions"), f"initial {initial} exceeds maximum {maximum}; raise maximum"
        )
    yield from no_output(campaign)


def _simulated(campaign: Campaign) -> Problems:
    executor = campaign.executor
    if executor.name == "simulated" and bool(executor.truth) == (executor.dataset is not None):
        yield Problem(
            ("executor",),
            "the simulated executor needs either truth or a dataset, for what runs would yield; give one: "
            "executor.truth (--truth 'main=EXPRESSION') or executor.dataset (--dataset FILE)",
        )


def _jobs(campaign: Campaign) -> Problems:
    executor = campaign.executor
    for name, value in executor.sbatch.items():
        try:
            JobOptions(sbatch={name: value})
        except CampaignError as error:
            yield Problem(("executor", "sbatch", name), str(error).partition(": ")[2])
    if executor.pack.repetitions == "together" and executor.pack.most in ("off", 1):
        text = "off lets no runs share a job, so repetitions cannot be kept together; write auto or a number"
        yield Problem(("executor", "pack", "most"), text)
    if executor.partition is not None and executor.by_size:
        yield Problem(("executor", "by_size"), "executor.partition is given, too; keep one of them")


def _script(campaign: Campaign) -> Problems:
    """The launch script can be written for every number of ranks, threads and nodes that a run has."""
    executor, effort = campaign.executor, campaign.measure.effort
    if executor.name == "simulated":
        return
    try:
        if effort is not None and effort.template is not None:
            script.find_template(effort.template, executor.name)
        template = script.find_template(executor.template, executor.name)
        spec, text = campaign.application_spec(), template.read_text(encoding="utf-8")
        for resources, values in _shapes(campaign).items():
            script.launch_script(
                application=spec,
                executable=campaign.executable,
                settings=values,
                resources=resources,
                launcher=executor.launcher or "mpiexec",  # which one is there is looked up when runs begin
                template=text,
                prologue=executor.prologue,
                modules=executor.modules,
                epilogue=executor.epilogue,
                environment=executor.environment,
                profiler=campaign.measure.profiler,
                source=str(template),
            )
    except CampaignError as error:
        key, _, text = str(error).partition(": ")
        own = key.startswith("executor.")
        yield Problem(tuple(key.split(".")) if own else ("executor", "template"), text if own else str(error))


def _shapes(campaign: Campaign) -> dict[Resources, Mapping[str, Value]]:
    """Return what the runs of a campaign occupy, each with the settings of the first such run."""
    spec, machine = campaign.application_spec(), campaign.machine()
    found: dict[Resources, Mapping[str, Value]] = {}
    validated = campaign.evaluation_point if campaign.validate else None
    points = itertools.islice(build(campaign), _MOST_POINTS)
    for point in itertools.chain(points, [] if validated is None else [validated]):
        values = campaign.values(point)
        with suppress(ValueError):  # an evaluation point that the machine cannot hold is told elsewhere
            found.setdefault(cost.resources(spec.ranks(values), spec.threads(values), machine), values)
    return found


def _options(campaign: Campaign) -> Problems:
    sections: tuple[tuple[str, Strategy | ModelChoice], ...] = (
        ("strategy", campaign.strategy),
        ("model", campaign.model),
    )
    for kind, section in sections:
        if section.options:
            own = list(type(section).model_fields)
            factory = registry.load(kind, section.name)
            yield from _options_of(factory, kind, section.name, section.options, own)


def _options_of(
    factory: Callable[..., Any], kind: str, name: str, options: Mapping[str, Any], own: list[str]
) -> Problems:
    """Compare options with the signature of the factory that takes them."""
    known = [item.name for item in inspect.signature(factory).parameters.values()]
    hints = _type_hints(factory)
    for key, value in options.items():
        if key not in known:
            yield Problem(
                (kind, key), f"{kind} {name} has no option {key!r}; {did_you_mean(key, [*own, *known])}"
            )
            continue
        try:
            adapter = TypeAdapter(hints.get(key, Any), config=ConfigDict(strict=True))
        except (PydanticSchemaGenerationError, PydanticUserError):
            continue  # a type that only the factory itself can check
        try:
            adapter.validate_python(value)
        except ValidationError as error:
            yield Problem((kind, key), f"{error.errors()[0]['msg']} (value: {value!r})")


def _type_hints(factory: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(factory)
    except NameError:  # types imported for type checkers only
        return {}


def _space(campaign: Campaign) -> Problems:
    try:
        points = build(campaign)
        evaluation = list(_evaluation_point(campaign, points, campaign.application_spec()))
    except CampaignError as error:
        yield Problem(("constraints",) if campaign.constraints else ("parameters",), str(error))
        return
    yield from evaluation


def _times(campaign: Campaign) -> Problems:
    """Times in seconds are positive everywhere, not only where the campaign begins."""
    points, measure = build(campaign), campaign.measure
    for key, text, seconds in (
        ("time_limit", measure.time_limit, campaign.time_limit),
        ("expected_time", measure.expected_time, campaign.expected_time),
    ):
        if text is None:
            continue
        everywhere = iter(points) if campaign.expression(text).names else itertools.islice(points, 1)
        if campaign.validate and campaign.evaluation_point is not None:
            everywhere = itertools.chain(everywhere, [campaign.evaluation_point])
        try:
            for point in everywhere:
                seconds(point)
        except CampaignError as error:
            yield Problem(("measure", key), str(error).removeprefix(f"measure.{key}: "))


def _evaluation_point(campaign: Campaign, points: space.SearchSpace, spec: Application) -> Problems:
    point = campaign.evaluation_point
    if point is None:
        if campaign.validate:
            yield Problem(
                ("validate",), "needs an evaluation_point to measure; give one or write validate: false"
            )
        return
    if point in points:
        yield Problem(
            ("evaluation_point",),
            f"{point} is a point of the search space: models would be validated on data they were fitted to; "
            f"move it or narrow parameter {_narrowest(campaign, point)}",
        )
    reason = spec.check(campaign.values(point))
    if reason is not None:
        yield Problem(("evaluation_point",), f"{point} is impossible for {spec.name}: {reason}")
    elif campaign.validate:
        values = campaign.values(point)
        try:
            cost.resources(spec.ranks(values), spec.threads(values), campaign.machine())
        except ValueError as error:
            yield Problem(("validate",), f"{point} cannot be measured: {error}; or write validate: false")


def _narrowest(campaign: Campaign, point: Point) -> str:
    """The numeric parameter of whose range the evaluation point takes the most, hence the one to narrow."""
    numeric = [item for item in campaign.parameters if not item.categorical]
    ranked = sorted(numeric, key=lambda item: item.values.index(point[item.name]) / len(item.values))
    return ranked[-1].name if ranked else campaign.parameters[0].name


_SPACE = frozenset({"application", "program", "settings", "parameters", "constraints"})
_CHECKS: tuple[tuple[frozenset[str], Callable[[Campaign], Problems]], ...] = (
    (frozenset({"settings", "parameters"}), _names),
    (frozenset({"application", "program", "settings", "parameters"}), _application),
    (frozenset({"settings", "parameters"}), _expressions),
    (frozenset({"program"}), _files),
    (frozenset({"measure", "program"}), _measure),
    (frozenset({"executor"}), _simulated),
    (frozenset({"executor"}), _jobs),
    (frozenset({"strategy", "model"}), _options),
    (_SPACE, _space),
    (_SPACE | {"measure"}, _times),
    (_SPACE | {"measure", "executor"}, _script),
    (frozenset({"program", START}), outputs),
    (frozenset({"program", "measure", "executor", START}), metrics),
    (frozenset({"stop", "evaluation_point", "parameters", START}), width),
)
"""The top-level keys that a check needs to be right, and the check."""
