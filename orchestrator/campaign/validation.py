"""Semantic validation: what no single key of a campaign file can show to be wrong alone.

Every check yields problems and names the top-level keys that it needs to be right, so that one mistake is
reported once. The last checks, those that need `START`, concern only a campaign that is to be run: earlier
versions accepted what they refuse, so directories of such campaigns can be read but not continued.
"""

from __future__ import annotations

import inspect
import itertools
import keyword
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from orchestrator import registry
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.derivation import Unsolvable, names_in, solved
from orchestrator.campaign.effort import (
    BUILD_WITH_COUNTERS,
    EFFORT_KEY,
    EFFORT_METRICS,
    EFFORT_SUFFIX,
    is_instrumented,
)
from orchestrator.campaign.schema import (
    VARIANT,
    ModelChoice,
    ProgramSection,
    SharedJobOptions,
    SimulatedOptions,
    SlurmOptions,
    Strategy,
)
from orchestrator.campaign.yaml import Path as KeyPath
from orchestrator.campaign.yaml import Problem
from orchestrator.errors import CampaignError, ExpressionError
from orchestrator.executors.attempt.directory import OURS
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.expressions import Kind
from orchestrator.launch import generic, script
from orchestrator.space import ListedSpace
from orchestrator.types import Point, Resources, Value
from orchestrator.units import closest, did_you_mean

Problems = Iterator[Problem]

START = "(start)"
"""Blocks the checks of a campaign that is to be run; no key of a file has this name."""

_BRACED = re.compile(r"(?<!\$)\{\s*(\w+)\s*\}")  # a shell's ${NAME} is none of ours
_MOST_POINTS = 100_000  # that are looked at for a second value of a parameter


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
    spec, launch = campaign.application_spec, campaign.launch
    placed = launch.names() if launch is not None else frozenset()
    placed |= {VARIANT} if campaign.compare is not None else set()
    places = [("settings", name) for name in campaign.settings]
    places += [("parameters", item.name) for item in campaign.parameters]
    derived = campaign.derivation.derived
    for section, name in places:
        if name not in spec.parameters and name not in placed and not _decides(campaign, name):
            hint = did_you_mean(name, spec.parameters)
            yield Problem((section, name), f"{spec.name} has no parameter {name!r}; {hint}")
    for name in spec.required:
        if name not in {name for _, name in places} | {item.name for item in derived}:
            meaning = spec.parameters.get(name, "")
            remedy = "vary it or put it under settings"
            if campaign.resources.stated():
                remedy += f", or derive it by a constraint such as {name} == nodes * ppn"
            yield Problem(("parameters",), f"{spec.name} needs {name} ({meaning}); {remedy}")


def _compared(campaign: Campaign) -> Problems:
    """The executables that are compared are the values of a parameter, which nothing else may use."""
    if campaign.compare is None:
        return
    found = next((item for item in campaign.parameters if item.name == VARIANT), None)
    if found is None or found.values != campaign.compare.names:
        yield Problem(
            ("parameters", VARIANT),
            f"stands for the executables {' and '.join(campaign.compare.names)} of compare: rename it",
        )


def _decides(campaign: Campaign, name: str) -> bool:
    """Whether a parameter or setting decides what runs ask for, or what follows from it."""
    used = [item.names for item in campaign.requested.values()]
    return any(name in names for names in (*used, *(item.needs for item in campaign.derivation.derived)))


def _resources(campaign: Campaign) -> Problems:
    """What runs ask for follows from parameters and settings."""
    known = campaign.names[0]
    given = {*campaign.settings, *(item.name for item in campaign.parameters)}
    for key, text in campaign.resources.stated().items():
        if key in given and text.strip() != key:
            yield Problem(
                ("resources", key),
                f"is {text}, and {key} is also a parameter or setting: write {key}: {key} if that is meant, "
                "or rename the parameter or setting",
            )
        unknown = sorted(names_in(text) - set(known))
        if unknown:
            yield Problem(("resources", key), _not_derived(campaign, text, unknown))
    missing = campaign.derivation.missing
    for place, text in enumerate(campaign.constraints):
        unknown = sorted(names_in(text) - set(known))
        if missing.keys() & unknown:
            reason = next(filter(None, map(missing.get, unknown)), "")
            yield Problem(("constraints", place), _not_derived(campaign, text, unknown, reason))


def _not_derived(campaign: Campaign, text: str, unknown: Sequence[str], reason: str = "") -> str:
    known = campaign.names[0]
    hints = [f"{name}: {did_you_mean(name, known)}" for name in unknown if closest(name, known)]
    are = "is neither a parameter nor a setting" if len(unknown) == 1 else "are no parameters or settings"
    return (
        f"expression {text!r}: {' and '.join(unknown)} {are}, and no constraint gives "
        f"{'it' if len(unknown) == 1 else 'them'}{f' ({reason})' if reason else ''}; "
        f"{''.join(f'{hint} ' for hint in hints)}Vary {unknown[0]}, or add one equation with no other "
        "unknown, such as nodes * ppn == p"
    )


def _expressions(campaign: Campaign) -> Problems:
    wanted: list[tuple[KeyPath, str, Kind]] = []
    missing = campaign.derivation.missing  # reported by `_resources`
    wanted += [
        (("constraints", i), text, "truth")
        for i, text in enumerate(campaign.constraints)
        if not names_in(text) & missing.keys()
    ]
    wanted += [
        (("resources", key), text, "number")
        for key, text in campaign.resources.stated().items()
        if names_in(text) <= set(campaign.names[0])
    ]
    for key in ("time_limit", "expected_time"):
        text = getattr(campaign.measure, key)
        wanted += [(("measure", key), text, "number")] if text is not None else []
    if isinstance(campaign.executor, SimulatedOptions):
        truth = campaign.executor.truth
        wanted += [(("executor", "truth", path), text, "number") for path, text in truth.items()]
    if campaign.program is not None:
        wanted += [
            (("program", key), getattr(campaign.program, key), "number") for key in ("ranks", "threads")
        ]
        wanted += [(("program", "check", i), text, "truth") for i, text in enumerate(campaign.program.check)]
    for path, text, kind in wanted:
        try:
            found = campaign.expression(text).kind
        except ExpressionError as error:
            yield Problem(path, f"{error}{_unused(campaign, text) if path[0] == 'constraints' else ''}")
            continue
        if found != kind:
            remedy = "write a comparison, such as p <= 64" if kind == "truth" else "write a number"
            yield Problem(path, f"expression {text!r} gives a {found}, not a {kind}; {remedy}")
    yield from _templates(campaign)


def _unused(campaign: Campaign, text: str) -> str:
    """Return what to say of an equation that would give a value, if that were used anywhere."""
    unknown = names_in(text) - set(campaign.names[0])
    if len(unknown) != 1:
        return ""
    [name] = unknown
    with suppress(Unsolvable):
        solved(text, name)
        return (
            f" (an equation gives {name} only where {name} is used, such as in program.ranks or an argument)"
        )
    return ""


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


def _program_environment(campaign: Campaign) -> Problems:
    """The variables of a generic program are templates, too."""
    for name, text in campaign.program.environment.items() if campaign.program is not None else ():
        try:
            generic.parse_variable(text, *campaign.names)
        except ExpressionError as error:
            yield Problem(("program", "environment", name), str(error))


def _environments(campaign: Campaign) -> Problems:
    """Variables that are the same for all runs do not name what varies: it would not be replaced."""
    effort, known = campaign.measure.effort, campaign.names[0]
    sections: list[tuple[KeyPath, Mapping[str, str]]] = [
        (("executor", "environment"), campaign.executor.environment)
    ]
    sections += [(("measure", "effort", "environment"), effort.environment)] if effort is not None else []
    for path, variables in sections:
        for name, text in variables.items():
            found = next((item for item in _BRACED.findall(text) if item in known), None)
            if found is not None:
                place = "program.environment"
                if campaign.program is None:
                    place = f"the launch template, as export {name}={{{{{found}}}}}"
                yield Problem(
                    (*path, name),
                    f"is the same for all runs, so {{{found}}} would not be replaced: write it in {place}",
                )


def _files(campaign: Campaign) -> Problems:
    for name in campaign.program.files if campaign.program is not None else ():
        if name in OURS:
            yield Problem(("program", "files", name), "is a file of the attempt's own; choose another name")


def _measure(campaign: Campaign) -> Problems:
    measure = campaign.measure
    yield from _effort(campaign)
    if measure.repetitions.initial > measure.repetitions.maximum:
        initial, maximum = measure.repetitions.initial, measure.repetitions.maximum
        yield Problem(
            ("measure", "repetitions"), f"initial {initial} exceeds maximum {maximum}; raise maximum"
        )
    yield from _no_output(campaign)


def _effort(campaign: Campaign) -> Iterator[Problem]:
    """Effort runs can count, and nothing is both measured and counted."""
    effort = campaign.measure.effort
    if effort is None:
        return
    both = [metric for metric in campaign.measure.measured if metric in EFFORT_METRICS]
    if both:
        yield Problem(
            ("measure", "metrics"),
            f"{', '.join(both)} would be measured by time runs and counted by effort runs: drop it here, "
            "or write effort: false",
        )
    simulated = isinstance(campaign.executor, SimulatedOptions)  # a rehearsal counts by itself
    if not simulated and effort.profiler == "effort" and not is_instrumented(Path(effort.executable)):
        beside = effort.executable == f"{campaign.executable}{EFFORT_SUFFIX}"
        key = EFFORT_KEY if beside else (*EFFORT_KEY, "executable")
        yield Problem(
            key,
            f"{effort.executable} was not built to count effort (with {BUILD_WITH_COUNTERS}): its runs "
            "would measure nothing",
        )


def _no_output(campaign: Campaign) -> Problems:
    """A generic program whose output is read says what to read in it."""
    if campaign.measure.profiler == "stdout" and campaign.program is not None and not campaign.program.output:
        others = [name for name in registry.names("reader") if name not in ("stdout", "effort")]
        yield Problem(
            ("program",),
            "has no output, so profiler stdout finds nothing; add program.output, "
            f"or set measure.profiler to {' or '.join(others)}",
        )


def _outputs(campaign: Campaign) -> Problems:
    """The values that are read from a generic program's output can be named and used."""
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


def _metrics(campaign: Campaign) -> Problems:
    """Some run produces every metric that is to be kept."""
    known, remedy = _readable_metrics(campaign)
    if known is None:
        return
    missing = [metric for metric in campaign.measure.measured if metric not in known]
    if missing:
        there = f"runs produce only {', '.join(known)}"
        yield Problem(
            ("measure", "metrics"), f"no run produces metric {', '.join(missing)}: {there}; {remedy}"
        )


def _readable_metrics(campaign: Campaign) -> tuple[tuple[str, ...] | None, str]:
    """Return the metrics that runs produce (None where only a run can show that), and the remedy."""
    executor, profiler, program = campaign.executor, campaign.measure.profiler, campaign.program
    if isinstance(executor, SimulatedOptions):  # a data set is read when the rehearsal begins
        return (("time",) if executor.truth else None), "write metrics: [time], or give a dataset"
    if profiler == "time":
        printed = () if program is None else _of_outputs(program)
        there = tuple(dict.fromkeys(("time", *printed)))
        return there, "write metrics: [time], or choose another measure.profiler"
    if profiler == "stdout" and program is not None and program.output:
        return _of_outputs(program), "correct it, or add an item with this metric to program.output"
    return None, ""


def _of_outputs(program: ProgramSection) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rule.metric for rule in program.output))


def _simulated(campaign: Campaign) -> Problems:
    """A rehearsal states in one way what runs would yield."""
    executor = campaign.executor
    if not isinstance(executor, SimulatedOptions):
        return
    given = [key for key in ("truth", "dataset", "models") if getattr(executor, key)]
    if not given:
        yield Problem(
            ("executor",),
            "the simulated executor needs executor.truth, executor.dataset or executor.models, for what "
            "runs would yield; 'orchestrator simulate' finds out by itself what is known",
        )
    elif len(given) > 1:
        yield Problem(
            ("executor", given[1]),
            f"is given beside {given[0]}, and both say what runs would yield; keep one of them",
        )


def _jobs(campaign: Campaign) -> Problems:
    """The options of jobs do not contradict each other or the executor."""
    executor = campaign.executor
    if not isinstance(executor, SharedJobOptions):
        return
    if executor.pack.repetitions == "together" and executor.pack.most in ("off", 1):
        text = "off lets no runs share a job, so repetitions cannot be kept together; write auto or a number"
        yield Problem(("executor", "pack", "most"), text)
    if not isinstance(executor, SlurmOptions):
        return
    for name, value in executor.sbatch.items():
        try:
            JobOptions(sbatch={name: value})
        except CampaignError as error:
            yield Problem(("executor", "sbatch", name), str(error).partition(": ")[2])
    if executor.partition is not None and executor.by_size:
        yield Problem(("executor", "by_size"), "executor.partition is given, too; keep one of them")


def _script(campaign: Campaign) -> Problems:
    """The launch script can be written for every number of ranks, threads and nodes that a run has."""
    executor, effort = campaign.executor, campaign.measure.effort
    if executor.name == "simulated":
        return
    try:
        if effort is not None and effort.template is not None:
            script.find_frame(effort.template, executor.name)
        frame = script.find_frame(executor.template, executor.name)
        spec, text = campaign.application_spec, frame.read_text(encoding="utf-8")
        for shape, values in _shapes(campaign).items():
            script.launch_script(
                application=spec,
                executable=campaign.executable,
                settings=values,
                resources=shape,
                launcher=executor.launcher or "mpiexec",  # which one is there is looked up when runs begin
                frame=text,
                prologue=executor.prologue,
                modules=executor.modules,
                epilogue=executor.epilogue,
                environment=executor.environment,
                profiler=campaign.measure.profiler,
                source=str(frame),
                template=campaign.launch,
            )
    except CampaignError as error:
        key, _, text = str(error).partition(": ")
        own = key.startswith("executor.")
        launch = campaign.launch
        of_launch = launch is not None and str(error).startswith(f"{launch.source}:")
        place = ("template",) if of_launch else ("executor", "template")
        yield Problem(tuple(key.split(".")) if own else place, text if own else str(error))


def _shapes(campaign: Campaign) -> dict[Resources, Mapping[str, Value]]:
    """Return what the runs of a campaign occupy, each with the settings of the first such run."""
    found: dict[Resources, Mapping[str, Value]] = {}
    validated = campaign.evaluation_point if campaign.validate else None
    points = campaign.space.some()
    for point in itertools.chain(points, [] if validated is None else [validated]):
        # `_evaluation_point` reports a point that the machine cannot hold.
        with suppress(ValueError, CampaignError):
            values = campaign.values(point)
            found.setdefault(campaign.resources_at(values), values)
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
            what = f"{kind} {section.name}"
            for option, text in registry.wrong_options(factory, what, section.options, own):
                yield Problem((kind, option), text)


def _priors(campaign: Campaign) -> Problems:
    factory = registry.load("model", campaign.model.name)
    if campaign.priors.campaigns and "neighbours" not in inspect.signature(factory).parameters:
        yield Problem(
            ("priors", "campaigns"),
            f"model {campaign.model.name} learns nothing from other campaigns: use auto, formulas, pmnf "
            "or swc, or leave priors out",
        )


def _space(campaign: Campaign) -> Problems:
    """There are points, and the evaluation point is none of them."""
    try:
        evaluation = list(_evaluation_point(campaign))
    except CampaignError as error:
        yield Problem(("constraints",) if campaign.constraints else ("parameters",), str(error))
        return
    yield from evaluation


def _times(campaign: Campaign) -> Problems:
    """Times in seconds are positive everywhere, not only where the campaign begins."""
    points, measure = campaign.space, campaign.measure
    for key, text, seconds in (
        ("time_limit", measure.time_limit, campaign.time_limit),
        ("expected_time", measure.expected_time, campaign.expected_time),
    ):
        if text is None:
            continue
        everywhere = points.some()
        if not campaign.expression(text).names:
            everywhere = itertools.islice(everywhere, 1)
        if campaign.validate and campaign.evaluation_point is not None:
            everywhere = itertools.chain(everywhere, [campaign.evaluation_point])
        try:
            for point in everywhere:
                seconds(point)
        except CampaignError as error:
            yield Problem(("measure", key), str(error).removeprefix(f"measure.{key}: "))


def _evaluation_point(campaign: Campaign) -> Problems:
    points, spec, point = campaign.space, campaign.application_spec, campaign.evaluation_point
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
    try:
        values = campaign.values(point)
    except CampaignError as error:
        yield Problem(("evaluation_point",), f"{error}; move it, or change that constraint")
        return
    reason = spec.check(values)
    if reason is not None:
        yield Problem(("evaluation_point",), f"{point} is impossible for {spec.name}: {reason}")
    elif campaign.validate:
        try:
            campaign.resources_at(values)
        except ValueError as error:
            yield Problem(("validate",), f"{point} cannot be measured: {error}; or write validate: false")


def _varied(campaign: Campaign) -> Problems:
    """Every parameter in which the evaluation point lies elsewhere has several values in the search space."""
    point = campaign.evaluation_point
    if point is None:
        return
    for parameter in campaign.parameters:
        only = _only_value(campaign, parameter.name)
        if only is not None and point[parameter.name] != only:
            yield Problem(
                ("parameters", parameter.name),
                f"has only the value {only} in the search space, and evaluation_point has "
                f"{point[parameter.name]}: runs cannot show what depends on {parameter.name}; give it "
                f"further values (four show the form of most models), or write {parameter.name}: {only} "
                "under evaluation_point",
            )


def _only_value(campaign: Campaign, name: str) -> Value | None:
    """Return the value that a parameter has everywhere; None if it has several, or there are too many points.

    The machine does not count: a campaign may go on where only its small runs fit.
    """
    replayed = isinstance(campaign.space, ListedSpace)
    space = campaign.space if replayed else campaign.space_of(campaign.application_spec.check)
    points = itertools.islice(space, _MOST_POINTS + 1)
    first = next(points)[name]
    for number, point in enumerate(points, start=1):
        if point[name] != first or number == _MOST_POINTS:
            return None
    return first


def _narrowest(campaign: Campaign, point: Point) -> str:
    """Return the numeric parameter in whose range the evaluation point is highest: the one to narrow."""
    numeric = [item for item in campaign.parameters if not item.categorical]
    ranked = sorted(numeric, key=lambda item: item.values.index(point[item.name]) / len(item.values))
    return ranked[-1].name if ranked else campaign.parameters[0].name


def _width(campaign: Campaign) -> Problems:
    """A stop rule on intervals at the evaluation point has such a point."""
    if campaign.stop.width is not None and campaign.evaluation_point is None:
        yield Problem(
            ("stop", "width"),
            "is the width of intervals at the evaluation point, which is not given, so the rule never holds; "
            f"add evaluation_point, or remove it (value: {campaign.stop.width:g})",
        )


def _template(campaign: Campaign) -> Problems:
    """The launch template is one, and the only place that says what the program's arguments are."""
    if campaign.template is None:
        return
    try:
        known = campaign.launch is not None
    except CampaignError as error:
        yield Problem(("template",), str(error))
        return
    if known and campaign.program is not None and campaign.program.arguments:
        yield Problem(
            ("program", "arguments"), "are in the template, too: write them there, and remove them here"
        )


_SPACE = frozenset(
    {"template", "application", "program", "settings", "parameters", "constraints", "resources"}
)
_CHECKS: tuple[tuple[frozenset[str], Callable[[Campaign], Problems]], ...] = (
    (frozenset({"settings", "parameters"}), _names),
    (frozenset({"application", "program"}), _template),
    (frozenset({"compare", "parameters"}), _compared),
    (_SPACE - {"constraints"}, _resources),
    (_SPACE - {"constraints"}, _application),
    (frozenset({"settings", "parameters"}), _expressions),
    (frozenset({"program"}), _files),
    (frozenset({"measure", "program"}), _measure),
    (frozenset({"executor"}), _simulated),
    (frozenset({"executor"}), _jobs),
    (frozenset({"strategy", "model"}), _options),
    (frozenset({"model", "priors"}), _priors),
    (_SPACE, _space),
    (_SPACE | {"measure"}, _times),
    (_SPACE | {"measure", "executor"}, _script),
    (
        frozenset({"settings", "parameters", "constraints", "resources", "program", START}),
        _program_environment,
    ),
    (frozenset({"settings", "parameters", "executor", "measure", "program", START}), _environments),
    (frozenset({"program", START}), _outputs),
    (frozenset({"program", "measure", "executor", START}), _metrics),
    (frozenset({"stop", "evaluation_point", "parameters", START}), _width),
    (_SPACE | {"evaluation_point", START}, _varied),
)
"""The top-level keys that a check needs to be right, and the check."""
