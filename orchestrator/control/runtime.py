"""What the loop asks of a campaign: its executor, its rules, estimates, models, proposals and requests."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from orchestrator.control import assembly as plugins
from orchestrator.control import attempts, estimation, provenance
from orchestrator.control.assembly import Assembly
from orchestrator.control.fastest import fastest
from orchestrator.errors import ModelError, PluginError, ReadError
from orchestrator.executors.base import Executor, cluster_name
from orchestrator.journal.events import Samples
from orchestrator.journal.executables import Digests
from orchestrator.journal.measurements import Collector
from orchestrator.journal.state import InFlight, State
from orchestrator.journal.writer import Patience, persistently, writing
from orchestrator.models.base import Model, Modeler
from orchestrator.policy import effort_runs, progress, reference
from orchestrator.policy.budget import kept_for_validation, no_validation
from orchestrator.policy.effort_runs import EffortChecks
from orchestrator.policy.estimates import Estimates, PointEstimate
from orchestrator.report import models_document
from orchestrator.strategies.base import Choice, Nothing, Strategy, View
from orchestrator.strategies.candidates import nothing_left
from orchestrator.types import (
    Attempt,
    AttemptRecord,
    AttemptRequest,
    Measurements,
    Observation,
    Point,
    Run,
)
from orchestrator.units import count

# Longest waits in seconds: real executors return when something ends, and an interrupt must be heeded soon.
# Local waits cost nothing; each wait for Slurm looks at files on a shared file system.
LONGEST_WAITS = {"local": 0.5, "slurm": 5.0}

_MOST_POINTS = 20_000  # of which reservations are predicted for one round
_TARGETS = 100  # random points over which models are assessed where there is no evaluation point


class Runtime:
    """A campaign in a directory, with its executor. Remembers what is expensive to compute again.

    The loop calls these methods and no plug-in but the executor. Only `fit` and `propose` may take long.

    Parameters
    ----------
    assembly
        The campaign with its application, search space and machine.
    directory
        The campaign directory.
    executor
        Executes attempts.
    cancel_on_interrupt
        Whether an interrupt ends attempts in flight, which are charged, instead of leaving them running.
    patience
        For a full disk; without it, that stops the campaign.
    granted
        The longest time limit that the executor grants to a run; without it, any.
    """

    def __init__(
        self,
        assembly: Assembly,
        directory: Path,
        executor: Executor,
        cancel_on_interrupt: bool = False,
        patience: Patience | None = None,
        granted: estimation.Granted | None = None,
    ):
        campaign = assembly.campaign
        self.assembly = assembly
        self.campaign = campaign
        self.directory = directory
        self.executor = executor
        self.cancel_on_interrupt = cancel_on_interrupt
        self.patience = patience
        self._granted = granted
        self.policy = plugins.policy(campaign)
        self.poll_interval = min(
            campaign.executor.poll_interval, LONGEST_WAITS.get(campaign.executor.name, math.inf)
        )
        self._collector = Collector(campaign.parameters)
        self._table = _Table()
        self._gathered: Mapping[str, Any] = {}  # what runs are made from, when the controller began
        self._started: dict[tuple[Any, ...], Digests] = {}  # by file, as attempts record it
        self._checks: tuple[int, EffortChecks] | None = None  # of the effort models, with their round

    @cached_property
    def strategy(self) -> Strategy:
        """The strategy; built when it is needed, as ending runs needs none. Raises `CampaignError`."""
        return plugins.strategy(self.campaign)

    @cached_property
    def modeler(self) -> Modeler:
        """The modeler, likewise."""
        return plugins.modeler(self.campaign)

    def provenance(self) -> dict[str, Any]:
        """Return what this controller's runs are made from, and on which cluster, for the journal."""
        name = cluster_name(self.executor)
        self._gathered = provenance.gather(self.campaign)
        return {**self._gathered, **({"cluster": name} if name else {})}

    def started(self, record: AttemptRecord | None) -> Digests:
        """Return what tells the content of the executable of an attempt, by role, as far as it is known."""
        used = record.executable if record is not None else {}
        key = tuple(used.values())
        if key not in self._started:
            self._started[key] = provenance.started(self._gathered, used)
        return self._started[key]

    def has_measured(self, state: State, record: AttemptRecord | None) -> bool:
        """Whether the executable of an attempt has measured something before."""
        used = {} if record is None else record.executable
        return any(role in state.measured_with for role in provenance.roles(self._gathered, used))

    def estimates(self, state: State, models: tuple[Model, ...]) -> Estimates:
        """Return what a decision may know of the open runs. ``models`` are those of the last round.

        A point is looked up in the models once per round, when its runs are proposed.
        """
        if self._table.models is not models or self._table.queue is not state.queue:
            open_runs = (*state.failed, *state.waiting, *(attempt.run for attempt in state.in_flight))
            points = dict.fromkeys(run.point for run in open_runs)
            if self.policy.validation_point is not None:
                points[self.policy.validation_point] = None
            known = estimation.at_points(self.assembly, points, models, self._granted)
            self._table = _Table(models, state.queue, known)
        return estimation.estimates(self.assembly, self.executor, self._table.points)

    def request(self, state: State, attempt: Attempt, flight: InFlight) -> AttemptRequest:
        """Return everything the executor needs for an attempt."""
        return attempts.request(self.assembly, self.directory, state, attempt, flight)

    def collect(self, request: AttemptRequest, observation: Observation) -> Samples:
        """Read what a finished attempt measured; raise ``ReadError``."""
        kind, samples = request.attempt.run.kind, observation.samples
        if samples is None and (why := self.campaign.missing.get("measure")) is not None:
            raise ReadError(f"{why}; then: orchestrator reread {self.directory}")
        return attempts.measured(self.assembly, request.directory, kind, samples)

    def measurements(self, state: State) -> Measurements:
        """Return what was measured so far; states must be later ones of the same campaign."""
        return self._collector.measurements(state)

    def fit(self, state: State) -> tuple[Model, ...]:
        """Return models of what was measured so far; none where that is too little."""
        return fit(self.modeler, self.measurements(state))

    def kept(self, state: State, models: tuple[Model, ...]) -> float:
        """Return the core-seconds that are kept back for the validation."""
        return kept_for_validation(state, self.policy, self.estimates(state, models))

    def no_validation(self, state: State, models: tuple[Model, ...]) -> str | None:
        """Return why the validation is not made as models stand, or None."""
        return no_validation(state, self.policy, self.estimates(state, models))

    def propose(self, state: State, models: tuple[Model, ...], rng: np.random.Generator) -> Sequence[Choice]:
        """Return the strategy's choices for the next round.

        Where one of them could not be begun, the strategy chooses again without all such points.
        """
        known, checks = self.measurements(state), self._effort_checks(state)
        kept = self.kept(state, models)
        view = self.assembly.view(state, models, known, checks, kept)
        choices = propose(self.strategy, view, rng)
        if not models:
            return choices
        if isinstance(choices, Nothing):
            return self._without_too_long(state, models, view, choices, rng)
        if not choices:
            return nothing_left(view)
        points = [choice.point for choice in choices]
        if not any(self._not_to_begin(state, models, view, points)):
            return choices
        too_long, too_expensive = self._not_to_begin(
            state, models, view, itertools.chain(points, itertools.islice(view.space, _MOST_POINTS))
        )
        infeasible = view.infeasible | too_long.keys() | too_expensive
        again = propose(self.strategy, replace(view, infeasible=infeasible), rng)
        # A large space has further points that are too long: a round of them alone would begin nothing.
        further, _ = self._not_to_begin(state, models, view, [choice.point for choice in again])
        if any(choice.point not in further for choice in again):
            return again
        # Of the first ones, the decision skips all that do not fit the budget, with the figures.
        if rest := [choice for choice in choices if choice.point not in too_long]:
            return rest
        return Nothing("exhausted", f"at {points[0]}, as at all that would help, {too_long[points[0]]}")

    def _without_too_long(
        self,
        state: State,
        models: tuple[Model, ...],
        view: View,
        nothing: Nothing,
        rng: np.random.Generator,
    ) -> Sequence[Choice]:
        """Return why nothing is left to propose, or what is: no run that is never begun counts as useful."""
        space = itertools.islice(view.space, _MOST_POINTS)
        unmeasured = [point for point in space if point not in view.done and point not in view.infeasible]
        too_long, _ = self._not_to_begin(state, models, view, unmeasured)
        if not too_long:
            return nothing
        again = propose(self.strategy, replace(view, infeasible=view.infeasible | too_long.keys()), rng)
        if len(again) > 0:
            return again
        known = again if isinstance(again, Nothing) else nothing
        first = next(iter(too_long))
        others = f" nor at {count(len(too_long) - 1, 'other point')}" if len(too_long) > 1 else ""
        reason = f"{known.reason}; no run is begun at {first}{others}: {too_long[first]}"
        return Nothing(known.rule, reason, known.for_want_of_budget, known.useful)

    def _not_to_begin(
        self, state: State, models: tuple[Model, ...], view: View, points: Iterable[Point]
    ) -> tuple[Mapping[Point, str], frozenset[Point]]:
        """Return the points at which runs would reach the time limit, with why, and those beyond the budget.

        What a run is expected to cost, which strategies compare with the budget, is less than it reserves.
        """
        known = estimation.at_points(self.assembly, points, models, self._granted)
        table = estimation.estimates(self.assembly, self.executor, known)
        return estimation.too_long(table), estimation.too_expensive(table, state, view.budget_left)

    def references(
        self, state: State, choices: Sequence[Choice], rng: np.random.Generator
    ) -> Sequence[Choice]:
        """Return the reference run that a round needs, if it needs one; of two executables both."""
        campaign = self.campaign
        if not campaign.measure.reference:
            return []
        runs = 1 if campaign.compare is None else len(campaign.compare.names)
        found = reference.propose(state, choices, campaign.stop.budget, runs)
        # One alone would meet another load than the runs of the other executable at its point.
        return self.assembly.paired(found, state, rng)

    def count_effort(
        self, state: State, models: tuple[Model, ...], choices: Sequence[Choice]
    ) -> effort_runs.Plan:
        """Return the effort runs of a round."""
        return self.assembly.effort_plan(state, models, choices, self._effort_checks(state))

    def assess(self, models: tuple[Model, ...], state: State) -> progress.Quality:
        """Return the quality of models, for the stop rules."""
        return progress.assess(models, self.campaign.evaluation_point, self._targets(state))

    def _targets(self, state: State) -> tuple[Point, ...]:
        """Return random points over which models are assessed without an evaluation point."""
        if self.campaign.evaluation_point is not None:
            return ()
        return tuple(itertools.islice(self.assembly.drawn(state, _TARGETS), _TARGETS))

    def gain(self, now: progress.Quality, before: progress.Quality) -> str:
        """Return what a round improved by the campaign's rule; empty where that is nothing."""
        rule = progress.fits_better if self.policy.rule == "smape" else progress.gain
        return rule(now, before)

    def publish(self, state: State, models: tuple[Model, ...]) -> None:
        """Write ``models.json``; raise ``JournalWriteError``, which stops the campaign resumably."""
        quickest = fastest(self.assembly, models, self.measurements(state), state)
        with writing(self.directory / models_document.FILE_NAME):
            point = self.campaign.evaluation_point
            persistently(
                lambda: models_document.write(self.directory, state, models, point, quickest), self.patience
            )

    def _effort_checks(self, state: State) -> EffortChecks:
        if self._checks is None or self._checks[0] != state.round:
            self._checks = state.round, self._check_effort(self.measurements(state))
        return self._checks[1]

    def _check_effort(self, known: Measurements) -> EffortChecks:
        """Return whether the effort models predict counts; nothing where no decision depends on it."""
        effort, options = self.campaign.measure.effort, self.campaign.model.options
        if effort is None or effort.when == "always":
            return {}
        from orchestrator.models import check_counts  # the normal form brings a compiler

        chosen = {key: options[key] for key in ("times", "tolerance", "ranks") if key in options}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return check_counts(known, self.campaign.parameters, self.modeler, **chosen)


@dataclass(frozen=True, slots=True)
class _Table:
    """Estimates by point, with the models and the queue that they were computed for."""

    models: tuple[Model, ...] | None = None
    queue: tuple[Run, ...] | None = None
    points: dict[Point, PointEstimate] = field(default_factory=dict)


def fit(modeler: Modeler, known: Measurements) -> tuple[Model, ...]:
    """Fit models; return none, with a warning that says why, where none can be fitted.

    A modeler that fails on some data costs a round of models, never a campaign: the measurements are safe,
    and the next round has more of them.
    """
    try:
        return modeler(known) if known.items else ()
    except (ModelError, PluginError) as error:
        warnings.warn(f"no models this time: {error}", stacklevel=2)
        return ()
    except Exception as error:  # noqa: BLE001 (a plug-in may raise anything)
        warnings.warn(f"no models this time: the modeler failed with {error!r}", stacklevel=2)
        return ()


def propose(strategy: Strategy, view: View, rng: np.random.Generator) -> Sequence[Choice]:
    """Return what a strategy chooses; where it fails with the models, what it chooses without any.

    Like a modeler, it costs a round that is chosen less well, never a campaign. Reasons say so.
    """
    try:
        return strategy(view, rng)
    except Exception as error:
        if not view.models:
            raise
        why = str(error) if isinstance(error, PluginError) else f"the strategy failed with {error!r}"
        warnings.warn(f"{why}; it chooses without models", stacklevel=2)
        without = strategy(replace(view, models=()), rng)
        if isinstance(without, Nothing):
            return without
        remark = f"chosen without models, with which the strategy failed ({type(error).__name__})"
        return [replace(choice, reason=f"{choice.reason}; {remark}") for choice in without]
