"""From a campaign file to its application, search space, machine, rules and plug-ins.

The only place that chooses plug-ins by the names in a campaign file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from orchestrator import cores, registry
from orchestrator import resources as cost
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import VARIANT, SharedJobOptions, SlurmOptions
from orchestrator.control import counting
from orchestrator.executors.slurm.options import asks_for_memory
from orchestrator.journal.measurements import ELAPSED, standing
from orchestrator.journal.state import State
from orchestrator.models.base import Model, Modeler
from orchestrator.models.costs import expected_costs
from orchestrator.models.spread import spread_by
from orchestrator.models.sums import with_sums
from orchestrator.policy import effort_runs, elsewhere, failing
from orchestrator.policy.effort_runs import EffortChecks
from orchestrator.policy.packing import SharingRules
from orchestrator.policy.rules import Policy
from orchestrator.policy.variants import paired
from orchestrator.readers.base import EXCLUSIVE
from orchestrator.resources import Machine
from orchestrator.space import SearchSpace
from orchestrator.strategies.base import Choice, Costs, Nothing, Strategy, View
from orchestrator.strategies.drawing import Law
from orchestrator.types import Application, FailureClass, Measurements, Point, Resources


@dataclass(frozen=True, slots=True)
class Assembly:
    """A campaign with its application, search space and machine. Pure: starts and opens nothing."""

    campaign: Campaign
    application: Application
    space: SearchSpace
    machine: Machine

    def resources(self, point: Point) -> Resources:
        """Return what a run at a point occupies; raise ``ValueError`` where the machine cannot hold it."""
        return self.campaign.resources_at(self.campaign.values(point))

    def cores(self, point: Point) -> int:
        """Return the cores that a run at a point is charged for."""
        return self.resources(point).cores

    def paired(self, choices: Sequence[Choice], state: State, rng: np.random.Generator) -> Sequence[Choice]:
        """Return the choices of a strategy for both executables, where two are compared."""
        compared = self.campaign.compare
        if compared is None or isinstance(choices, Nothing):
            return choices
        both = paired(choices, VARIANT, compared.names, state.infeasible, rng)
        known = failing.regions(state)
        return [choice for choice in both if not failing.why_not(choice.point, known)]

    def drawn(self, state: State, *seed: int) -> Iterator[Point]:
        """Draw points of the search space, without those at which the program is known to fail.

        They are the same each time, whatever else a campaign draws; another ``seed`` gives other ones.
        """
        law, known = Law.of(self.campaign.parameters, (), ()), failing.regions(state)
        points = law.points(self.space, np.random.default_rng([self.campaign.seed, *seed]))
        return (point for point in points if not failing.why_not(point, known))

    def effort_rules(self) -> effort_runs.Rules | None:
        """Return the rules of counting effort; None where no effort is counted."""
        effort = self.campaign.measure.effort
        if effort is None:
            return None
        return effort_runs.Rules(
            repetitions=effort.repetitions,
            always=effort.when == "always",
            parameters=self.campaign.parameters,
            parallel=self._has_several_ranks,
        )

    def effort_plan(
        self,
        state: State,
        models: Sequence[Model],
        choices: Sequence[Choice],
        checks: EffortChecks = MappingProxyType({}),
    ) -> effort_runs.Plan:
        """Return the effort runs of a round; ``checks`` of the effort models."""
        rules = self.effort_rules()
        if rules is None:
            return effort_runs.NOTHING
        return effort_runs.plan(rules, choices, state, checks, self.expected_costs(models, state.allocation))

    def _has_several_ranks(self, point: Point) -> bool:
        return self.application.ranks(self.campaign.values(point)) > 1

    def expected_costs(self, models: Sequence[Model], allocation: float = 1.0) -> Costs:
        """Return expected core-seconds: by models, the user's estimate, other campaigns, or a guess.

        ``allocation``: how many cores are charged for each that is asked for.
        """

        def cores(point: Point) -> float:
            return allocation * self.cores(point)

        durations = [model for model in models if model.metric == ELAPSED]
        if durations:
            return expected_costs(durations, cores)
        if self.campaign.measure.expected_time is not None:
            return cost.each(lambda point: cores(point) * (self.campaign.expected_time(point) or 0.0))
        values = {item.name: item.values for item in self.campaign.parameters}
        learned = self.campaign.learned
        known = None if learned is None else learned.neighbours.prices(ELAPSED, values, cores)
        if known is not None:
            return known
        return cost.each(cost.guess(values, self.cores))

    def view(
        self,
        state: State,
        models: tuple[Model, ...],
        known: Measurements,
        checks: EffortChecks = MappingProxyType({}),
        kept: float = 0.0,
    ) -> View:
        """Return all that a strategy may know.

        Parameters
        ----------
        state, models, known
            Where the campaign stands, the models of the last round, and what was measured.
        checks
            Whether the effort models predict counts, by category.
        kept
            Core-seconds kept back for the validation.
        """
        campaign, effort = self.campaign, self.effort_rules()
        costs = self.expected_costs(models, state.allocation)
        predicted = any(model.metric == ELAPSED for model in models)
        repetitions = campaign.repetitions()
        return View(
            space=elsewhere.without(self.space, failing.regions(state)),
            evaluation_point=campaign.evaluation_point,
            measurements=known,
            models=models,
            done=standing(state),
            infeasible=state.infeasible,
            costs=costs,
            budget_left=campaign.stop.budget - state.spent - state.reserved - kept,
            batch_size=campaign.strategy.batch_size,
            initial_repetitions=repetitions.initial,
            maximum_repetitions=repetitions.maximum,
            round=state.round + 1,
            cost_is_relative=not predicted and campaign.measure.expected_time is None,
            cores=cost.cores_at(self.cores),
            unit=campaign.stop.unit,
            kept=kept,
            first=None if effort is None else effort_runs.first_costs(effort, state, checks, costs),
        )


def assemble(campaign: Campaign) -> Assembly:
    """Load the application and build the search space.

    Raises
    ------
    CampaignError
        For an empty space, or a machine that cannot hold any point.
    """
    return Assembly(campaign, campaign.application_spec, campaign.space, campaign.machine)


def policy(campaign: Campaign) -> Policy:
    """Return the campaign's rules for `decide`."""
    stop = campaign.stop
    # Without an amount of memory that can be raised, another attempt would end as the first one did.
    options = campaign.executor
    can_raise = isinstance(options, SlurmOptions) and asks_for_memory(options.sbatch)
    hopeless = {} if can_raise else {FailureClass.MEMORY: 0}
    return Policy(
        budget=stop.budget,
        unit=stop.unit,
        patience=stop.patience,
        rule=stop.rule,
        without_gain=stop.without_gain,
        failures=stop.failures,
        max_pending=campaign.executor.max_pending,
        retries={**campaign.retries, **hopeless},
        wall_time=stop.wall_time,
        width=stop.width,
        failure_rate=stop.failure_rate,
        infrastructure=stop.infrastructure * stop.budget,
        validation_point=campaign.validation_point,
        sharing=sharing_rules(campaign),
        placement=campaign.placement,
    )


def sharing_rules(campaign: Campaign) -> SharingRules | None:
    """Return which runs may share a job; None where every attempt has a job of its own."""
    options = campaign.executor
    if not isinstance(options, SharedJobOptions) or options.pack.most in ("off", 1):
        return None
    pack = options.pack
    together = campaign.compare is not None and pack.repetitions != "spread"
    return SharingRules(
        pack.most if isinstance(pack.most, int) else None,
        pack.longest,
        "together" if together else pack.repetitions,
        VARIANT if together else "",
    )


def strategy(campaign: Campaign) -> Strategy:
    """Return the campaign's strategy with its options.

    Raises
    ------
    CampaignError
        For an option that the strategy does not have.
    """
    chosen = campaign.strategy
    built: Strategy = registry.build("strategy", chosen.name, chosen.options)
    return built


def modeler(campaign: Campaign, further: Mapping[str, Any] | None = None) -> Modeler:
    """Return the campaign's modeler with its options, and further ones; raises like `strategy`."""
    chosen, measure = campaign.model, campaign.measure
    learned = {} if campaign.learned is None else {"neighbours": campaign.learned.neighbours}
    options = {**_counted(campaign), **learned, **chosen.options, **(further or {})}
    built: Modeler = registry.build("model", chosen.name, options)
    exclusive = measure.profiler in EXCLUSIVE and not measure.inclusive
    return spread_by(cores.spread, built if exclusive else with_sums(built))


def _counted(campaign: Campaign) -> dict[str, Any]:
    """Return the parameters that count processes as an option, for the modeler that has to know them."""
    return {"processes": counting.for_model(campaign).names} if campaign.model.name == "speedup" else {}
