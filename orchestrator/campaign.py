"""Campaign file -> validated `Campaign`. Everything wrong in a file is reported at once."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator import (
    campaign_checks,
    campaign_dataset,
    campaign_effort,
    campaign_resolve,
    campaign_schema,
    campaign_site,
    expressions,
    generic,
    registry,
)
from orchestrator.campaign_errors import validate
from orchestrator.campaign_schema import (
    Document,
    Executor,
    Measure,
    ModelChoice,
    Notify,
    Program,
    Stop,
    Strategy,
)
from orchestrator.campaign_yaml import Problem, Tree, expand, override, parse
from orchestrator.campaign_yaml import dump as dump_yaml
from orchestrator.cost import Machine
from orchestrator.errors import CampaignError, ExpressionError
from orchestrator.expressions import Expression
from orchestrator.types import Application, FailureClass, Parameter, Point, RunKind, Value


@dataclass(frozen=True)
class Campaign:
    """A valid campaign: every default filled in, every path absolute.

    Attributes
    ----------
    name, application
        As in the file; ``application`` may be ``generic``.
    executable
        Absolute path; ``""`` only with the simulated executor, which starts nothing.
    settings
        Fixed parameters of the application.
    program
        Description of a generic application, else None.
    parameters
        In the order of the file, which is the order of a point's coordinates.
    constraints
        Expressions over parameters and settings; compile them with `expression`.
    evaluation_point
        P₊, in the same order, or None.
    measure, strategy, model, stop, executor
        Sections of the file. ``stop.budget`` is in core-seconds; durations are in seconds.
    retries
        Further attempts at a run by class of failure.
    notify
        Whom to tell of stops and failures, or None.
    seed, validate
        Seed of everything random; whether to measure the evaluation point at the end, which is not done where
        a rehearsal's data set lacks it.
    version_arguments
        With which the executable prints its version; empty where it is not asked.
    raw
        The normalised file with all defaults, JSON-ready: ``loads(dump(campaign)) == campaign``.
    site
        Path of the site file that was merged into ``executor``, or empty.
    """

    name: str
    application: str
    executable: str
    settings: Mapping[str, Value]
    program: Program | None
    parameters: tuple[Parameter, ...]
    constraints: tuple[str, ...]
    evaluation_point: Point | None
    measure: Measure
    strategy: Strategy
    model: ModelChoice
    stop: Stop
    executor: Executor
    retries: Mapping[FailureClass, int]
    notify: Notify | None
    seed: int
    validate: bool
    version_arguments: tuple[str, ...]
    raw: Mapping[str, Any]
    site: str = field(default="", compare=False)

    @cached_property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names that expressions may use, and those among them whose values are text."""
        settings = [name for name, value in self.settings.items() if isinstance(value, str)]
        parameters = [item.name for item in self.parameters if isinstance(item.values[0], str)]
        return (*self.settings, *(item.name for item in self.parameters)), (*settings, *parameters)

    def values(self, point: Point) -> dict[str, Value]:
        """Return the settings and the point's values: what `Application` functions take."""
        return {**self.settings, **point.as_dict()}

    def expression(self, text: str) -> Expression:
        """Compile an expression over parameters and settings; raise `ExpressionError`."""
        return _compiled(text, *self.names)

    def application_spec(self) -> Application:
        """Return the adapter, or the generic application that ``program`` describes.

        In a rehearsal with a data set it is impossible where the data set has nothing to replay, unless that
        is the evaluation point: that is where models must hold, measured or not.
        """
        if self.program is None:
            spec: Application = registry.load("application", self.application)
        else:
            names, texts = self.names
            meanings = {name: "setting" if name in self.settings else "parameter" for name in names}
            spec = generic.application(self.program, meanings, texts)
        wanted = None if self.evaluation_point is None else self.values(self.evaluation_point)
        return campaign_dataset.restricted(spec, _lacks(self.executor, self.parameters, self.measure), wanted)

    def machine(self) -> Machine:
        """Return what decides where a run fits and how many cores it is charged for."""
        options = self.executor
        return Machine(
            slots=options.slots if options.name == "local" else None,
            cores_per_node=options.cores_per_node,
            ranks_per_node=options.ranks_per_node,
            whole_nodes=options.exclusive or options.billing == "nodes",
            oversubscribe=options.oversubscribe,
            sizes=tuple((item.up_to or math.inf, item.cores_per_node) for item in options.by_size),
        )

    def slowdown(self, kind: RunKind) -> float:
        """Return how many times longer a run may take than a time run at the same point."""
        effort = self.measure.effort
        return effort.slowdown if kind == "effort" and effort is not None else 1.0

    def time_limit(self, point: Point) -> float | None:
        """Return the user's time limit at a point, in seconds, or None for one derived from the budget."""
        return self._seconds("time_limit", self.measure.time_limit, point)

    def expected_time(self, point: Point) -> float | None:
        """Return the user's estimate of one run's time at a point, in seconds, or None."""
        return self._seconds("expected_time", self.measure.expected_time, point)

    def _seconds(self, key: str, text: str | None, point: Point) -> float | None:
        if text is None:
            return None
        seconds = self.expression(text).number(self.values(point))
        if seconds <= 0:
            raise CampaignError(f"measure.{key}: {text} gives {seconds} s at {point}; it must be positive")
        return seconds


@lru_cache(maxsize=256)
def _compiled(text: str, names: tuple[str, ...], texts: tuple[str, ...]) -> Expression:
    return expressions.parse(text, names, texts)


def _lacks(executor: Executor, parameters: tuple[Parameter, ...], measure: Measure) -> campaign_dataset.Check:
    return campaign_dataset.check(executor, [item.name for item in parameters], measure.metrics)


def load(path: Path, overrides: Sequence[str] = (), *, starts: bool = True) -> Campaign:
    """Read a campaign file.

    Parameters
    ----------
    path
        YAML file; relative paths in it start from its folder.
    overrides
        ``key.path=value`` texts, each value in YAML, applied in order.
    starts
        False where nothing will be started (reports, predictions): executable, data set and launch script
        need not be on this machine.

    Raises
    ------
    CampaignError
        With one line per mistake: file, line, key, value and the remedy.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CampaignError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CampaignError(f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    return loads(text, str(path), path.absolute().parent, overrides, starts=starts)


def loads(
    text: str,
    source: str = "campaign",
    base_directory: Path | None = None,
    overrides: Sequence[str] = (),
    *,
    starts: bool = True,
) -> Campaign:
    """Parse the text of a campaign file; ``source`` is what errors call it. See `load`."""
    base = base_directory or Path.cwd()
    tree = parse(text, source)
    for assignment in overrides:
        override(tree, assignment)
    expand(tree, os.environ)
    site = campaign_site.apply(tree, base, os.environ)
    document, broken, problems = validate(tree.data)
    known = {problem.path for problem in tree.problems}
    tree.problems += [problem for problem in problems if problem.path not in known]
    campaign = replace(_resolve(document, broken, base if starts else None, tree), site=site)
    not_checked = broken | tree.blocked() | (frozenset() if starts else {"executor", campaign_checks.START})
    tree.problems += campaign_checks.check(campaign, not_checked)
    if tree.problems:
        problems = sorted(dict.fromkeys(tree.problems), key=tree.line)
        raise CampaignError("\n".join(tree.render(problem) for problem in problems))
    return campaign


def _resolve(document: Document, broken: frozenset[str], base: Path | None, tree: Tree) -> Campaign:
    """Look up what the document names, files only with a ``base``; what is missing becomes a problem."""
    settings = {} if "settings" in broken else document.settings
    parameters = () if "parameters" in broken else _parameters(document, settings, tree)
    executor = _executor(document.executor, base, tree) if base else document.executor
    executable = document.executable
    written = tree.data.get("executor")
    name = written.get("name") if isinstance(written, dict) else written
    if base is None or name == "simulated":  # a rehearsal works without the application, too
        tree.problems = [problem for problem in tree.problems if problem.path != ("executable",)]
    elif "executable" not in broken | tree.blocked():
        executable = _found(campaign_resolve.executable, executable, base, ("executable",), tree)
    notify = _notify(document.notify, base, tree) if document.notify and base else document.notify
    measure, model = document.measure, document.model
    if base is not None and name != "simulated":
        measure = campaign_effort.resolved(measure, executable, base, tree)
    if measure.effort is not None:
        measure, model = campaign_effort.defaults(measure, model, tree.data)
    point = _evaluation_point(document, parameters, tree)
    unmeasured = point is not None and _lacks(executor, parameters, measure)(point.as_dict()) is not None
    validated = document.validate_ and not unmeasured
    update = {"executable": executable, "measure": measure, "model": model, "executor": executor}
    update |= {"settings": settings, "notify": notify, "validate_": validated}
    return _campaign(document.model_copy(update=update), parameters, point)


def _campaign(document: Document, parameters: tuple[Parameter, ...], point: Point | None) -> Campaign:
    return Campaign(
        name=document.name,
        application=document.application,
        executable=document.executable,
        settings=document.settings,
        program=document.program,
        parameters=parameters,
        constraints=document.constraints,
        evaluation_point=point,
        measure=document.measure,
        strategy=document.strategy,
        model=document.model,
        stop=document.stop,
        executor=document.executor,
        retries=document.retries.by_class(),
        notify=document.notify,
        seed=document.seed,
        validate=document.validate_,
        version_arguments=document.version_arguments,
        raw=_raw(document),
    )


def _parameters(document: Document, settings: Mapping[str, Value], tree: Tree) -> tuple[Parameter, ...]:
    result = []
    for name, section in document.parameters.items():
        try:
            result.append(campaign_resolve.parameter(name, section, settings))
        except (ValueError, ExpressionError) as error:
            tree.problems.append(Problem(("parameters", name), str(error)))
    return tuple(result)


def _executor(executor: Executor, base: Path, tree: Tree) -> Executor:
    update = {}
    if executor.dataset is not None:
        update["dataset"] = _found(
            campaign_resolve.file, executor.dataset, base, ("executor", "dataset"), tree
        )
    if executor.template is not None and campaign_resolve.is_path(executor.template, base):
        update["template"] = _found(
            campaign_resolve.file, executor.template, base, ("executor", "template"), tree
        )
    return executor.model_copy(update=update)


def _notify(notify: Notify, base: Path, tree: Tree) -> Notify:
    program = _found(campaign_resolve.executable, notify.command[0], base, ("notify", "command"), tree)
    return notify.model_copy(update={"command": (program, *notify.command[1:])})


def _found(find: Callable[[str, Path], str], text: str, base: Path, key: tuple[str, ...], tree: Tree) -> str:
    try:
        return find(text, base)
    except ValueError as error:
        tree.problems.append(Problem(key, str(error)))
        return text


def _evaluation_point(document: Document, parameters: tuple[Parameter, ...], tree: Tree) -> Point | None:
    given = document.evaluation_point
    if given is None or len(parameters) < len(document.parameters):
        return None
    try:
        return campaign_resolve.evaluation_point(given, parameters)
    except ValueError as error:
        tree.problems.append(Problem(("evaluation_point",), str(error)))
        return None


def _raw(document: Document) -> dict[str, Any]:
    raw = document.model_dump(mode="json", by_alias=True)
    for name, section in raw["parameters"].items():
        raw["parameters"][name] = {key: value for key, value in section.items() if value is not None}
    return raw


def normalised(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``raw`` of a campaign that an earlier version journaled, with the defaults of new keys."""
    try:
        return _raw(Document.model_validate(_as_parsed(raw)))
    except ValidationError:  # it knows keys that this version does not: then they differ
        return dict(raw)


def _as_parsed(data: Any) -> Any:
    """Return JSON's lists as the tuples that a YAML file is parsed to."""
    if isinstance(data, Mapping):
        return {key: _as_parsed(value) for key, value in data.items()}
    return tuple(map(_as_parsed, data)) if isinstance(data, list | tuple) else data


def dump(campaign: Campaign) -> str:
    """Return the campaign as YAML with every default written out; loads as an equal campaign."""
    return dump_yaml(campaign.raw)


def json_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of campaign files."""
    return campaign_schema.json_schema()
