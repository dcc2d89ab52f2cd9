"""A valid campaign: every default filled in, every path absolute."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from orchestrator import expressions, registry
from orchestrator.campaign.derivation import Derivation, derive, names_in
from orchestrator.campaign.paths import is_text
from orchestrator.campaign.schema import (
    VARIANT,
    ClusterOptions,
    Compare,
    ExecutorOptions,
    LocalOptions,
    Measure,
    ModelChoice,
    Notify,
    Priors,
    ProgramSection,
    Repetitions,
    ResourcesSection,
    SimulatedOptions,
    SlurmOptions,
    Stop,
    Strategy,
)
from orchestrator.errors import CampaignError
from orchestrator.executors.simulated import dataset
from orchestrator.executors.slurm.options import gives_own_cores
from orchestrator.expressions import Expression
from orchestrator.launch import generic
from orchestrator.launch.script import Frame, find_frame, find_template, template_of
from orchestrator.launch.template import Template
from orchestrator.launch.template import parse as parse_template
from orchestrator.policy.placement import Placement
from orchestrator.resources import Asked, Machine, resources
from orchestrator.space import MOST_COMBINATIONS, Check, ListedSpace, SearchSpace
from orchestrator.types import (
    Application,
    FailureClass,
    Parameter,
    Point,
    Resources,
    RunKind,
    Value,
    format_value,
)

if TYPE_CHECKING:  # it imports what fits models
    from orchestrator.campaign.learned import Learned

_WALKING = registry.TABLES["strategy"].keys() - {"sample", "active"}  # those of ours that look at all points
# Of a space that no strategy walks: a first point is looked for in ten times as many combinations, in order,
# and in so many that are drawn from the whole space.
_WALKED, _DRAWN = 100_000, 100_000

RESOURCES = tuple(ResourcesSection.model_fields)
"""The keys under ``resources``, which are names in expressions, too, where they are known."""


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """A valid campaign: every default filled in, every path absolute."""

    # name, application: as in the file; ``application`` may be ``generic``.
    name: str
    application: str
    executable: str  # absolute path; ``""`` only with the simulated executor, which starts nothing
    compare: Compare | None  # the other executable, or None
    settings: Mapping[str, Value]  # fixed parameters of the application
    # Text of the launch template, or the name of one that comes with the program; None for that of the
    # application.
    template: str | None
    program: ProgramSection | None  # description of a generic application, else None
    parameters: tuple[Parameter, ...]  # in the order of the file, which is the order of a point's coordinates
    # Expressions over parameters, settings and derived values; compile them with `expression`.
    constraints: tuple[str, ...]
    resources: ResourcesSection  # what runs ask for beside their ranks, as such expressions
    evaluation_point: Point | None  # P₊, in the same order, or None
    # measure, strategy, model, priors, stop, executor: sections of the file. ``stop.budget`` is in
    # core-seconds; durations are in seconds.
    measure: Measure
    strategy: Strategy
    model: ModelChoice
    priors: Priors
    stop: Stop
    executor: ExecutorOptions
    retries: Mapping[FailureClass, int]  # further attempts at a run by class of failure
    notify: Notify | None  # the command that is called for stops and failures, or None
    # seed, validate: seed of everything random; whether to measure the evaluation point at the end, which is
    # not done where a rehearsal's data set lacks it.
    seed: int
    validate: bool
    # With which the executable prints its version; empty where it is not asked.
    version_arguments: tuple[str, ...]
    # The normalised file with all defaults, JSON-ready: ``loads(dump(campaign)) == campaign``.
    raw: Mapping[str, Any]
    # Path of the site file that was merged into ``executor``, or empty.
    site: str = field(default="", compare=False)
    # What other campaigns know, see `orchestrator.control.priors`.
    learned: Learned | None = field(default=None, compare=False)
    template_source: str = field(default="template", compare=False)  # what errors call the launch template

    @cached_property
    def missing(self) -> Mapping[str, str]:
        """Why plug-ins of other distributions cannot be used, by the key of the file that names them.

        Only a campaign that is read, and starts nothing, has such plug-ins.
        """
        effort = self.measure.effort
        named = [
            ("strategy", "strategy", self.strategy.name),
            ("model", "model", self.model.name),
            ("measure", "reader", self.measure.profiler),
            *([("measure", "reader", effort.profiler)] if effort is not None else []),
            *([("application", "application", self.application)] if self.program is None else []),
            ("executor", "executor", self.executor.name),
        ]
        found = ((key, registry.why_missing(kind, name)) for key, kind, name in named)
        return {key: why for key, why in found if why is not None}

    @property
    def validation_point(self) -> Point | None:
        """Where one run checks the models at the end; None without a validation."""
        return self.evaluation_point if self.validate else None

    def executable_at(self, point: Point, kind: RunKind = "time") -> str:
        """Return what a run of a kind starts at a point: the other executable where it is compared."""
        effort = self.measure.effort if kind == "effort" else None
        if self.compare is not None and point[VARIANT] == self.compare.names[1]:
            return self.compare.with_ if effort is None else self.compare.effort or self.compare.with_
        return self.executable if effort is None else effort.executable

    @cached_property
    def derivation(self) -> Derivation:
        """The values that constraints and ``resources`` give beside parameters and settings.

        By convention adapters take their ranks from ``p`` and their threads from ``t``: where a campaign does
        not give these, they follow from what it states of its resources.
        """
        stated, adapter = self.resources.stated(), self._adapter_parameters()
        conventions = {"p": "nodes * ranks_per_node", "t": "threads"}
        return derive(
            constraints=self.constraints,
            known=self._given[0],
            texts=self._given[1],
            wanted={*RESOURCES, *adapter, *self._used()},
            definitions={key: text for key, text in stated.items() if text.strip() != key},
            conventions={name: text for name, text in conventions.items() if name in adapter},
        )

    @cached_property
    def _given(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of settings and parameters, and those among them whose values are text."""
        settings = [name for name, value in self.settings.items() if isinstance(value, str)]
        parameters = [item.name for item in self.parameters if isinstance(item.values[0], str)]
        return (*self.settings, *(item.name for item in self.parameters)), (*settings, *parameters)

    def _adapter_parameters(self) -> Collection[str]:
        if self.application == "generic":
            return ()
        spec: Application = registry.load("application", self.application)
        return spec.parameters

    def _used(self) -> frozenset[str]:
        """Return the names that are used elsewhere than in constraints: a name only there is a mistake."""
        texts = [*self.resources.stated().values()]
        if self.program is not None:
            program = self.program
            texts += [program.ranks, program.threads, *program.check]
            for template in (*program.arguments, *program.files.values(), *program.environment.values()):
                texts += generic.placeholders(template)
        used = frozenset().union(*map(names_in, texts))
        with suppress(CampaignError):  # a validation of the campaign reports it
            used |= self.launch.names() if self.launch is not None else frozenset()
        return used

    @cached_property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names that expressions may use, and those among them whose values are text."""
        names, texts = self._given
        return (*names, *self.derivation.names), texts

    def values(self, point: Point) -> dict[str, Value]:
        """Return the settings, the point's values and what follows from them: for `Application` functions.

        Raises
        ------
        CampaignError
            At a point, outside the search space, from which not all values follow.
        """
        values = {**self.settings, **point.as_dict()}
        for item in self.derivation.derived:
            found = item.solve(values)
            if found is None:
                raise CampaignError(f"{item.reason!r} gives no value of {item.name} at {point}")
            values[item.name] = found
        return values

    @cached_property
    def requested(self) -> Mapping[str, Expression]:
        """The expressions of what runs ask for beside their ranks, by its key under ``resources``.

        A key that is not stated there but that constraints give stands for itself.
        """
        derived = {name: name for name in self.derivation.names if name in RESOURCES}
        stated = {**derived, **self.resources.stated()}
        return {key: self.expression(text) for key, text in stated.items()}

    def resources_at(self, values: Mapping[str, Value]) -> Resources:
        """Return what a run with these values occupies.

        Raises
        ------
        ValueError
            If what the campaign states of it cannot be, or the machine cannot hold it.
        """
        spec = self.application_spec
        asked = self._asked_everywhere or self._asked(values)
        return resources(spec.ranks(values), spec.threads(values), self.machine, asked)

    @cached_property
    def _asked_everywhere(self) -> Asked | None:
        """What runs ask for where that is the same for all of them, as usual; None where it is not."""
        names = frozenset().union(*(expression.names for expression in self.requested.values()))
        return self._asked(self.settings) if names <= self.settings.keys() else None

    def _asked(self, values: Mapping[str, Value]) -> Asked:
        known = {
            key: _whole(key, expression, values, least=0 if key == "gpus_per_node" else 1)
            for key, expression in self.requested.items()
        }
        per_node = self.requested.get("ranks_per_node")
        varies = per_node is not None and not per_node.names <= self.settings.keys()
        return Asked(**known, exact=varies)

    def expression(self, text: str) -> Expression:
        """Compile an expression over parameters and settings; raise `ExpressionError`."""
        return _compiled(text, *self.names)

    def frame(self, kind: RunKind = "time") -> Frame:
        """Return what the launch scripts of runs of a kind have in common; raises as `find_frame`."""
        options, effort = self.executor, self.measure.effort if kind == "effort" else None
        path = find_frame((effort and effort.template) or options.template, options.name)
        return Frame(
            text=path.read_text(encoding="utf-8"),
            source=str(path),
            profiler=self.measure.profiler if effort is None else effort.profiler,
            modules=options.modules,
            prologue=options.prologue,
            epilogue=options.epilogue,
            environment={**options.environment, **(effort.environment if effort is not None else {})},
        )

    @cached_property
    def launch(self) -> Template | None:
        """The launch template, parsed; None where the application gives arguments.

        Raises
        ------
        CampaignError
            If there is none of that name, or no command in it starts the program.
        """
        if self.template is None:
            return template_of(self.application)
        if is_text(self.template):
            return parse_template(self.template, self.template_source)
        return template_of(find_template(self.template).stem)

    @cached_property
    def application_spec(self) -> Application:
        """The adapter, or the generic application that ``program`` describes; built once.

        A rehearsal with a data set is restricted to the points that the data set holds, and to the evaluation
        point: that is where models must hold, measured or not.
        """
        if self.program is None:
            spec: Application = registry.load("application", self.application)
        else:
            names, texts = self.names
            meanings = {name: "setting" if name in self.settings else "parameter" for name in names}
            spec = generic.application(self._program(self.program), meanings, texts)
        wanted = None
        if self.evaluation_point is not None:
            with suppress(CampaignError):  # a validation of the campaign reports it
                wanted = self.values(self.evaluation_point)
        return dataset.restricted(spec, self.unmeasured(), wanted)

    def _program(self, section: ProgramSection) -> generic.Program:
        """Return the program, with the ranks and threads that ``resources`` gives where it says nothing."""
        asked, program = {key: item.text for key, item in self.requested.items()}, section.described()
        if program.threads == "1" and "threads" in asked:
            program = replace(program, threads=asked["threads"])
        if program.ranks == "1" and {"nodes", "ranks_per_node"} <= asked.keys():
            program = replace(program, ranks=f"({asked['nodes']}) * ({asked['ranks_per_node']})")
        return program

    @property
    def serial(self) -> bool:
        """Whether the program is described in the campaign file, and every run of it has one rank."""
        return self.program is not None and self._program(self.program).ranks.strip() == "1"

    @property
    def has_one_rank(self) -> bool:
        """Whether every run has one rank by the program's description, whatever the point is."""
        if self.program is None:
            return False
        ranks = self.expression(self._program(self.program).ranks)
        return ranks.names <= self.settings.keys() and ranks.number(self.settings) == 1

    @property
    def replayed(self) -> str | None:
        """Path of the data set that a rehearsal replays, or None."""
        return self.executor.dataset if isinstance(self.executor, SimulatedOptions) else None

    def unmeasured(self) -> dataset.Check:
        """Return what says why a rehearsal has nothing to replay at a point, or None where it has."""
        names = [item.name for item in self.parameters]
        return dataset.check(self.replayed, names, self.measure.measured)

    def repetitions(self) -> Repetitions:
        """Return how often points may be measured; in a rehearsal at most as often as its data set holds."""
        stated, names = self.measure.repetitions, [item.name for item in self.parameters]
        held = dataset.repetitions(self.replayed, names, self.measure.measured)
        if held is None or held >= stated.maximum:
            return stated
        return stated.model_copy(update={"initial": min(stated.initial, held), "maximum": held})

    @property
    def placement(self) -> Placement:
        """Return which nodes runs are asked onto."""
        return self.executor.placement if isinstance(self.executor, SlurmOptions) else "any"

    @cached_property
    def machine(self) -> Machine:
        """What decides where a run fits and how many cores it is charged for."""
        options = self.executor
        if isinstance(options, LocalOptions):
            return Machine(slots=options.slots, nodes=1, oversubscribe=options.oversubscribe)
        if isinstance(options, SimulatedOptions) and options.cores is not None:
            return Machine(slots=options.cores)
        if not isinstance(options, ClusterOptions):
            return Machine()
        slurm = options if isinstance(options, SlurmOptions) else None
        return Machine(
            cores_per_node=options.cores_per_node,
            ranks_per_node=options.ranks_per_node,
            gpus_per_node=(slurm and slurm.gpus_per_node) or 0,
            threads_per_core=options.threads_per_core,
            own_cores=slurm is not None and gives_own_cores(slurm.sbatch),
            whole_nodes=options.exclusive or options.billing == "nodes",
            sizes=tuple((item.up_to or math.inf, item.cores_per_node) for item in options.by_size),
        )

    @cached_property
    def space(self) -> SearchSpace:
        """The search space: what the application and the machine can run; built once.

        Raises
        ------
        CampaignError
            If it is empty, naming the constraint that removed the last points, or has more than
            `MOST_COMBINATIONS` combinations, and the strategy is one of ours that walks all points.
        """
        space = self.space_of(_possible(self))
        walks = self.strategy.name in _WALKING
        listed = dataset.points(self.replayed, [p.name for p in self.parameters], self.measure.measured)
        if listed is not None:
            space = ListedSpace(space, listed)
        elif walks and space.combinations > MOST_COMBINATIONS:
            raise CampaignError(
                f"the parameters have {space.combinations:.3g} combinations, more than "
                f"{MOST_COMBINATIONS:.0e}, and strategy {self.strategy.name} looks at all of them; use "
                "strategy sample or active, fewer values, or a constraint on the values of one parameter"
            )
        if next(space.some(MOST_COMBINATIONS if walks else _WALKED, _DRAWN), None) is None:
            raise CampaignError(_emptiness(space))
        return space

    @property
    def long_walk(self) -> str:
        """What to know before a strategy walks a space that takes minutes; empty of a smaller one."""
        walks = self.strategy.name in _WALKING and not isinstance(self.space, ListedSpace)
        if not walks or not self.space.describe().drawn:
            return ""
        return (
            f"the parameters have {self.space.combinations:.3g} combinations, and strategy "
            f"{self.strategy.name} looks at all of them, several times: it may take minutes, or hours, "
            "before anything is chosen. Use strategy sample or active, fewer values, or leave out a "
            "parameter that follows from the others by an equation among the constraints"
        )

    def space_of(self, check: Check) -> SearchSpace:
        """Return all points that satisfy the constraints and pass a check."""
        given = self.derivation
        constraints = [
            self.expression(text) for place, text in enumerate(self.constraints) if place not in given.used
        ]
        return SearchSpace(self.parameters, constraints, self.settings, check, given.derived)

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


def _possible(campaign: Campaign) -> Check:
    """Return what says why the application or the machine cannot run a point, or None where they can."""
    application = campaign.application_spec

    def check(values: Mapping[str, Value]) -> str | None:
        reason = application.check(values)
        if reason is None:
            try:
                campaign.resources_at(values)
            except ValueError as error:
                reason = str(error)
        return reason

    return check


def _whole(key: str, expression: Expression, values: Mapping[str, Value], least: int) -> int:
    """Return what a run asks for; raise ``ValueError`` unless that is a whole number from ``least``."""
    number = expression.number(values)
    if number < least or number != int(number):
        raise ValueError(
            f"resources.{key}: {expression.text} = {format_value(number)} is not a whole number from {least}"
        )
    return int(number)


def _emptiness(space: SearchSpace) -> str:
    """Return why a search space is empty, and what to do."""
    description = space.describe()
    if description.drawn:
        counts = "; ".join(f"{count:.3g} by {reason!r}" for reason, count in description.infeasible.items())
        return (
            f"no point of the search space was found: none among {description.drawn} combinations drawn from "
            f"{description.combinations:.3g} (excluded: about {counts}); relax constraints, or state the "
            "values of fewer parameters and derive the others"
        )
    counts = "; ".join(f"{count} by {reason!r}" for reason, count in description.infeasible.items())
    return (
        f"the search space is empty: the last of {description.combinations} combinations was excluded by "
        f"{description.last!r}; relax it or add values"
        + (f" (excluded: {counts})" if len(description.infeasible) > 1 else "")
    )


@lru_cache(maxsize=256)
def _compiled(text: str, names: tuple[str, ...], texts: tuple[str, ...]) -> Expression:
    return expressions.parse(text, names, texts)
