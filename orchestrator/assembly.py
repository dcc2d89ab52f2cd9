"""From a campaign to the parts that the loop works with: the only place that puts plug-ins together."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from orchestrator import (
    campaign_effort,
    campaign_packing,
    cost,
    counting,
    nodes,
    plugins,
    progress,
    registry,
    space,
    templates,
)
from orchestrator.campaign import Campaign
from orchestrator.cost import Machine, Reservation
from orchestrator.counting import Verdicts
from orchestrator.decide import Policy
from orchestrator.errors import ModelError, ReadError
from orchestrator.events import Samples
from orchestrator.executors.base import Executor
from orchestrator.executors.slurm_options import asks_for_memory
from orchestrator.launchers import launcher_for
from orchestrator.limits import limit_for, memory_for
from orchestrator.loop import Parts
from orchestrator.measured import ELAPSED, Collector, repetitions
from orchestrator.models.base import Model, Modeler, expected_costs, holds_at
from orchestrator.packing import Packer
from orchestrator.readers.base import Reader
from orchestrator.readers.select import select
from orchestrator.report import models_document
from orchestrator.space import SearchSpace
from orchestrator.state import InFlight, RunState, State
from orchestrator.strategies.base import Choice, Costs, View
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
        rule = campaign_effort.rule(campaign, self.application)
        return View(
            self.space,
            campaign.evaluation_point,
            known,
            models,
            repetitions(state),
            state.infeasible,
            costs,
            campaign.stop.budget - state.spent - state.reserved,
            campaign.strategy.batch_size,
            campaign.measure.repetitions.initial,
            campaign.measure.repetitions.maximum,
            state.round + 1,
            cost_is_relative=campaign.measure.expected_time is None
            and not any(model.metric == ELAPSED for model in models),
            first=None if rule is None else counting.first_costs(rule, state, verdicts, costs),
        )


def assemble(campaign: Campaign) -> Assembly:
    """Load the application and build the search space.

    Raises
    ------
    CampaignError
        For an empty space, or a machine that cannot hold any point.
    """
    machine = campaign.machine()
    return Assembly(campaign, campaign.application_spec(), space.build(campaign, machine), machine)


def policy(campaign: Campaign) -> Policy:
    """Return the campaign's rules for `decide`."""
    stop = campaign.stop
    # Without an amount of memory that can be raised, another attempt would end as the first one did.
    in_vain = {} if asks_for_memory(campaign.executor.sbatch) else {FailureClass.MEMORY: 0}
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
    strategy, modeler = plugins.strategy(campaign), plugins.modeler(campaign)
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
        latest[:] = [fit(modeler, collector.measurements(state))]
        return latest[0]

    def current(state: State) -> tuple[Model, ...]:
        """Return the models of the last round; a new controller fits them once."""
        return latest[0] if latest else fitted(state)

    def packer(state: State) -> Packer:
        models = functools.cache(lambda: current(state) if state.rounds_completed else ())
        return campaign_packing.packer(
            campaign,
            state,
            built,
            functools.cache(lambda run: (assembly.resources(run.point), memory_for(state.runs[run]))),
            lambda run: own_seconds(state, models(), run),
        )

    def own_seconds(state: State, models: Sequence[Model], run: Run) -> float:
        seconds = campaign_packing.expected(campaign, models, run, state.price.overhead)
        return reservation(state, run).limit if seconds is None else seconds

    def verdicts(state: State) -> Verdicts:
        if state.round not in judged:
            judged.clear()
            judged[state.round] = campaign_effort.verdicts(campaign, modeler, collector.measurements(state))
        return judged[state.round]

    def propose(state: State, models: tuple[Model, ...], rng: np.random.Generator) -> Sequence[Choice]:
        return strategy(assembly.view(state, models, collector.measurements(state), verdicts(state)), rng)

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
        packer=packer if campaign_packing.wanted(campaign) else None,
        count=lambda state, models, choices: count(assembly, state, models, choices, verdicts(state)),
        poll_interval=min(campaign.executor.poll_interval, _WAITS.get(campaign.executor.name, math.inf)),
    )


def count(
    assembly: Assembly,
    state: State,
    models: tuple[Model, ...],
    choices: Sequence[Choice],
    verdicts: Verdicts = MappingProxyType({}),
) -> counting.Plan:
    """Return the effort runs of a round."""
    rule = campaign_effort.rule(assembly.campaign, assembly.application)
    if rule is None:
        return counting.NOTHING
    return counting.plan(rule, choices, state, verdicts, assembly.expected_costs(models))


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
    template = templates.find_template(chosen, options.name)
    return templates.launch_script(
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
    counted = tuple(metric for metric in campaign_effort.METRICS if metric in there)
    if not set(counted) - {"visits"}:
        raise ReadError(
            f"no effort was counted ({' or '.join(campaign_effort.METRICS[1:])}); this run has "
            f"{', '.join(sorted(there)) or 'nothing'}"
        )
    return counted
