"""What a campaign says about runs that share a job, for the rule in `packing`."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from orchestrator import registry
from orchestrator import resources as cost
from orchestrator.campaign.model import Campaign
from orchestrator.campaign.resolve import EFFORT_METRICS
from orchestrator.campaign.schema import Pack, SharedJobOptions, SimulatedOptions, SlurmOptions
from orchestrator.control.loop import Parts
from orchestrator.errors import CampaignError, ModelError, ReadError
from orchestrator.executors.base import Executor, ExecutorContext, Truth
from orchestrator.executors.simulated import truth
from orchestrator.executors.slurm.options import asks_for_memory
from orchestrator.journal import nodes
from orchestrator.journal.events import Samples
from orchestrator.journal.measurements import ELAPSED, Collector, repetitions
from orchestrator.journal.state import InFlight, RunState, State
from orchestrator.launch.mpi import launcher_for
from orchestrator.launch.script import find_template, launch_script
from orchestrator.models import check_counts
from orchestrator.models.base import Model, Modeler, holds_at
from orchestrator.models.costs import expected_costs, expected_total
from orchestrator.policy import effort_runs, progress
from orchestrator.policy.decide import Policy
from orchestrator.policy.effort_runs import Verdicts
from orchestrator.policy.limits import limit_for, memory_for
from orchestrator.policy.packing import Packer, Rules
from orchestrator.readers import load as measured_files
from orchestrator.readers.base import Reader
from orchestrator.readers.select import select
from orchestrator.report import models_document
from orchestrator.resources import Machine, Reservation
from orchestrator.space import SearchSpace
from orchestrator.strategies.base import Choice, Costs, Strategy, View
from orchestrator.types import (
    Application,
    Attempt,
    AttemptRequest,
    FailureClass,
    Measurements,
    Observation,
    Point,
    Resources,
    Run,
    RunKind,
    Sample,
)


def rule(campaign: Campaign, application: Application) -> effort_runs.Rule | None:
    """Return the rules of counting; None where no effort is counted."""
    effort = campaign.measure.effort
    if effort is None:
        return None
    return effort_runs.Rule(
        effort.repetitions,
        effort.when == "always",
        campaign.parameters,
        lambda point: application.ranks(campaign.values(point)) > 1,
    )


def verdicts(campaign: Campaign, modeler: Modeler, known: Measurements) -> effort_runs.Verdicts:
    """Check whether effort models predict counts; empty where the campaign counts effort always or never."""
    effort, options = campaign.measure.effort, campaign.model.options
    if effort is None or effort.when == "always":
        return {}
    chosen = {key: options[key] for key in ("times", "tolerance", "ranks") if key in options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check_counts(known, campaign.parameters, modeler, **chosen)


def wanted(campaign: Campaign) -> bool:
    """Whether runs may share a job: where there are jobs, and more than one run is allowed in them."""
    options = campaign.executor
    return isinstance(options, SharedJobOptions) and options.pack.most not in ("off", 1)


def rules(campaign: Campaign) -> Rules:
    """Return what the campaign says."""
    options = campaign.executor
    pack = options.pack if isinstance(options, SharedJobOptions) else Pack()
    return Rules(pack.most if isinstance(pack.most, int) else None, pack.longest, pack.repetitions)


def packer(
    campaign: Campaign,
    state: State,
    executor: Executor,
    shape: Callable[[Run], Hashable],
    expected: Callable[[Run], float],
) -> Packer:
    """Return what the rule needs to know now; ``shape`` and ``expected`` as in `Packer`."""
    return Packer(
        rules(campaign),
        state.price,
        shape,
        functools.cache(expected),
        lambda limits: executor.reserved_seconds(*limits),
    )


def expected(campaign: Campaign, models: Sequence[Model], run: Run, overhead: float) -> float | None:
    """Return the seconds that the model of durations, or the user, expects of a run; None if neither does.

    Durations, as they are measured, have the ``overhead`` of a job.
    """
    slowdown = campaign.slowdown(run.kind)
    durations = [model for model in models if model.metric == ELAPSED]
    seconds = float(expected_total(durations, [run.point])[0]) if durations else math.nan
    if math.isfinite(seconds):
        return slowdown * max(0.0, seconds - overhead)
    stated = campaign.expected_time(run.point)
    return None if stated is None else slowdown * stated


#
# # FOLDED orchestrator.control.runtime: The executor, the strategy and the modeler that a campaign names, each with its options.


def executor(campaign: Campaign, directory: Path, start: float) -> Executor:
    """Build the campaign's executor; ``start`` is the first instant of a virtual clock (Unix seconds)."""
    options = campaign.executor.model_dump()
    context = ExecutorContext(directory, options, campaign.seed, start, _truth(campaign))
    built: Executor = registry.load("executor", campaign.executor.name)(context)
    return built


def _truth(campaign: Campaign) -> Truth | None:
    options = campaign.executor
    if not isinstance(options, SimulatedOptions):
        return None
    if options.dataset is not None:
        return truth.replayed(measured_files.load([Path(options.dataset)]))
    if options.truth:
        functions = {path: campaign.expression(text) for path, text in options.truth.items()}
        return truth.stated(functions, campaign.values, options.noise)
    return None


def strategy(campaign: Campaign) -> Strategy:
    """Return the campaign's strategy with its options.

    Raises
    ------
    CampaignError
        For an option that the strategy does not have.
    """
    chosen = campaign.strategy
    built: Strategy = _with_options("strategy", chosen.name, chosen.options)
    return built


def modeler(campaign: Campaign) -> Modeler:
    """Return the campaign's modeler with its options; raises like `strategy`."""
    chosen = campaign.model
    built: Modeler = _with_options("model", chosen.name, chosen.options)
    return built


def _with_options(kind: str, name: str, options: dict[str, Any]) -> Any:
    try:
        return registry.load(kind, name)(**options)
    except (TypeError, ValueError) as error:
        raise CampaignError(f"{kind} {name!r}: {error}") from error


#
# # FOLDED orchestrator.control.runtime: From a campaign to the parts that the loop works with: the only place that puts plug-ins together.


RUNS = "runs"
# Longest waits in seconds: real executors return when something ends, and an interrupt must be heeded soon.
# Local waits cost nothing; each wait for Slurm looks at files on a shared file system.
_WAITS = {"local": 0.5, "slurm": 5.0}


@dataclass(frozen=True, slots=True)
class Assembly:
    """A campaign with its application, search space and machine. Pure: starts and opens nothing."""

    campaign: Campaign
    application: Application
    space: SearchSpace
    machine: Machine

    def resources(self, point: Point) -> Resources:
        """Return what a run at a point occupies; raise ``ValueError`` where the machine cannot hold it."""
        values = self.campaign.values(point)
        return cost.resources(self.application.ranks(values), self.application.threads(values), self.machine)

    def cores(self, point: Point) -> int:
        """Return the cores that a run at a point is charged for."""
        return self.resources(point).cores

    def expected_costs(self, models: Sequence[Model]) -> Costs:
        """Return expected core-seconds of runs: from models, the user's estimate, or a monotone guess."""
        durations = [model for model in models if model.metric == ELAPSED]
        if durations:
            return expected_costs(durations, self.cores)
        if self.campaign.measure.expected_time is not None:
            return cost.each(lambda point: self.cores(point) * (self.campaign.expected_time(point) or 0.0))
        values = {item.name: item.values for item in self.campaign.parameters}
        return cost.each(cost.guess(values, self.cores))

    def view(
        self,
        state: State,
        models: tuple[Model, ...],
        known: Measurements,
        verdicts: Verdicts = MappingProxyType({}),
    ) -> View:
        """Return all that a strategy may know; ``verdicts`` on the effort models, see `counting`."""
        campaign, costs = self.campaign, self.expected_costs(models)
        effort_rule = rule(campaign, self.application)
        return View(
            space=self.space,
            evaluation_point=campaign.evaluation_point,
            measurements=known,
            models=models,
            done=repetitions(state),
            infeasible=state.infeasible,
            costs=costs,
            budget_left=campaign.stop.budget - state.spent - state.reserved,
            batch_size=campaign.strategy.batch_size,
            initial_repetitions=campaign.measure.repetitions.initial,
            maximum_repetitions=campaign.measure.repetitions.maximum,
            round=state.round + 1,
            cost_is_relative=campaign.measure.expected_time is None
            and not any(model.metric == ELAPSED for model in models),
            first=None
            if effort_rule is None
            else effort_runs.first_costs(effort_rule, state, verdicts, costs),
        )


def assemble(campaign: Campaign) -> Assembly:
    """Load the application and build the search space.

    Raises
    ------
    CampaignError
        For an empty space, or a machine that cannot hold any point.
    """
    machine = campaign.machine()
    return Assembly(campaign, campaign.application_spec, campaign.space, machine)


def policy(campaign: Campaign) -> Policy:
    """Return the campaign's rules for `decide`."""
    stop = campaign.stop
    # Without an amount of memory that can be raised, another attempt would end as the first one did.
    options = campaign.executor
    raised_memory = isinstance(options, SlurmOptions) and asks_for_memory(options.sbatch)
    in_vain = {} if raised_memory else {FailureClass.MEMORY: 0}
    return Policy(
        budget=stop.budget,
        patience=stop.patience,
        failures=stop.failures,
        max_pending=campaign.executor.max_pending,
        retries={**campaign.retries, **in_vain},
        wall_time=stop.wall_time,
        width=stop.width,
        failure_rate=stop.failure_rate,
        validation_point=campaign.evaluation_point if campaign.validate else None,
    )


def parts(assembly: Assembly, directory: Path, built: Executor) -> Parts:
    """Return what the loop needs."""
    campaign = assembly.campaign
    chosen_strategy, chosen_modeler = strategy(campaign), modeler(campaign)
    collector = Collector(campaign.parameters)

    latest: list[tuple[Model, ...]] = []
    judged: dict[int, Verdicts] = {}

    def reservation(state: State, run: Run) -> Reservation:
        cap = campaign.time_limit(run.point) or state.time_limit
        assert cap is not None, "a time limit is derived when the campaign starts"
        slowdown, margin = campaign.slowdown(run.kind), campaign.measure.limit_margin
        expected = None if margin is None else _longest(current(state), run.point, slowdown)
        limit = limit_for(cap * slowdown, margin, expected, state.runs.get(run, RunState()))
        cores = assembly.cores(run.point)
        return Reservation(cores, limit, built.reserved_seconds(limit) * cores * state.allocation)

    def fitted(state: State) -> tuple[Model, ...]:
        latest[:] = [fit(chosen_modeler, collector.measurements(state))]
        return latest[0]

    def current(state: State) -> tuple[Model, ...]:
        """Return the models of the last round; a new controller fits them once."""
        return latest[0] if latest else fitted(state)

    def packing(state: State) -> Packer:
        models = functools.cache(lambda: current(state) if state.rounds_completed else ())
        return packer(
            campaign,
            state,
            built,
            functools.cache(lambda run: (assembly.resources(run.point), memory_for(state.runs[run]))),
            lambda run: own_seconds(state, models(), run),
        )

    def own_seconds(state: State, models: Sequence[Model], run: Run) -> float:
        seconds = expected(campaign, models, run, state.price.overhead)
        return reservation(state, run).limit if seconds is None else seconds

    def effort_verdicts(state: State) -> Verdicts:
        if state.round not in judged:
            judged.clear()
            judged[state.round] = verdicts(campaign, chosen_modeler, collector.measurements(state))
        return judged[state.round]

    def propose(state: State, models: tuple[Model, ...], rng: np.random.Generator) -> Sequence[Choice]:
        view = assembly.view(state, models, collector.measurements(state), effort_verdicts(state))
        return chosen_strategy(view, rng)

    return Parts(
        directory=directory,
        executor=built,
        policy=policy(campaign),
        reservation=reservation,
        request=lambda state, attempt, flight: replace(
            request(assembly, directory, attempt, flight),
            exclude=nodes.excluded(state.marks),
            memory=memory_for(state.runs[attempt.run]),
        ),
        collect=lambda item, observation: collect(assembly, item, observation),
        fit=fitted,
        propose=propose,
        assess=lambda models: progress.assess(models, campaign.evaluation_point),
        publish=lambda state, models: models_document.write(
            directory, state, models, campaign.evaluation_point
        ),
        seed=campaign.seed,
        packer=packing if wanted(campaign) else None,
        count=lambda state, models, choices: count(assembly, state, models, choices, effort_verdicts(state)),
        poll_interval=min(campaign.executor.poll_interval, _WAITS.get(campaign.executor.name, math.inf)),
    )


def count(
    assembly: Assembly,
    state: State,
    models: tuple[Model, ...],
    choices: Sequence[Choice],
    verdicts: Verdicts = MappingProxyType({}),
) -> effort_runs.Plan:
    """Return the effort runs of a round."""
    effort_rule = rule(assembly.campaign, assembly.application)
    if effort_rule is None:
        return effort_runs.NOTHING
    return effort_runs.plan(effort_rule, choices, state, verdicts, assembly.expected_costs(models))


def _longest(models: Sequence[Model], point: Point, slowdown: float) -> float | None:
    """Return the upper end of the interval of a run's duration in seconds; None without a model of it."""
    for model in models:
        if model.metric == ELAPSED and holds_at(model, point):
            return slowdown * float(model.predict([point]).high[0])
    return None


def fit(modeler: Modeler, known: Measurements) -> tuple[Model, ...]:
    """Fit models; return none where too little was measured so far.

    A modeler that breaks down on some data costs a round of models, never a campaign: the measurements are
    safe, the next round has more of them.
    """
    try:
        return modeler(known) if known.items else ()
    except ModelError:
        return ()
    except (ValueError, ArithmeticError) as error:
        warnings.warn(f"no models this time: the modeler failed with {error!r}", stacklevel=2)
        return ()


def request(assembly: Assembly, directory: Path, attempt: Attempt, flight: InFlight) -> AttemptRequest:
    """Return everything an executor needs for an attempt: a pure function of the campaign."""
    campaign, application = assembly.campaign, assembly.application
    point = attempt.run.point
    values = campaign.values(point)
    resources = assembly.resources(point)
    where = directory / RUNS / attempt.id
    simulated = campaign.executor.name == "simulated"
    effort = campaign.measure.effort if attempt.run.kind == "effort" else None
    return AttemptRequest(
        attempt=attempt,
        name=flight.name,
        directory=where,
        resources=resources,
        limit=flight.limit,
        pack=flight.pack,
        script="" if simulated else script(assembly, point, resources, attempt.run.kind),
        files={} if simulated else dict(application.files(values)),
        executable="" if simulated else (effort or campaign).executable,
    )


def script(assembly: Assembly, point: Point, resources: Resources, kind: RunKind = "time") -> str:
    """Render the launch script of a run."""
    campaign = assembly.campaign
    options, measure = campaign.executor, campaign.measure
    executable, profiler = campaign.executable, measure.profiler
    chosen, environment = options.template, options.environment
    if kind == "effort" and measure.effort is not None:
        executable, profiler = measure.effort.executable, measure.effort.profiler
        chosen = measure.effort.template or chosen
        environment = {**environment, **measure.effort.environment}
    template = find_template(chosen, options.name)
    return launch_script(
        application=assembly.application,
        executable=executable,
        settings=campaign.values(point),
        resources=resources,
        launcher=launcher_for(executable, options.launcher, options.name, resources, options.mpi),
        template=template.read_text(),
        prologue=options.prologue,
        modules=options.modules,
        epilogue=options.epilogue,
        environment=environment,
        profiler=profiler,
        source=str(template),
    )


def collect(assembly: Assembly, item: AttemptRequest, observation: Observation) -> Samples:
    """Read what a finished attempt measured; raise ``ReadError``."""
    measure = assembly.campaign.measure
    profiler, metrics, aggregate = measure.profiler, measure.metrics, measure.aggregate
    effort = measure.effort if item.attempt.run.kind == "effort" else None
    if effort is not None:
        profiler, aggregate = effort.profiler, effort.aggregate or aggregate
    samples = observation.samples
    if samples is None:
        read: Reader = registry.load("reader", profiler)
        samples = tuple(read(item.directory, assembly.application, measure.inclusive))
    if effort is not None:
        metrics = _counted(samples)
    chosen: dict[str, dict[str, float]] = {}
    for (callpath, metric), value in select(samples, metrics, aggregate).items():
        chosen.setdefault(metric, {})[callpath] = value
    return chosen


def _counted(samples: Sequence[Sample]) -> tuple[str, ...]:
    """Return the metrics of effort that a run has counted: without MPI, say, there are no bytes."""
    there = {sample.metric for sample in samples}
    counted = tuple(metric for metric in EFFORT_METRICS if metric in there)
    if not set(counted) - {"visits"}:
        raise ReadError(
            f"no effort was counted ({' or '.join(EFFORT_METRICS[1:])}); this run has "
            f"{', '.join(sorted(there)) or 'nothing'}"
        )
    return counted
