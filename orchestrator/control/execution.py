"""The executor of a campaign, and in a rehearsal what runs yield."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean, variance

from orchestrator import registry
from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import SimulatedOptions
from orchestrator.control.assembly import modeler
from orchestrator.control.runtime import fit
from orchestrator.errors import CampaignError, JournalError
from orchestrator.executors.base import Executor, ExecutorContext, Truth
from orchestrator.executors.simulated import dataset, truth
from orchestrator.executors.simulated.truth import Exact
from orchestrator.journal.file import FILE_NAME, read, require_campaign
from orchestrator.journal.measurements import ELAPSED, WHOLE_RUN, measurements
from orchestrator.journal.replay import replay
from orchestrator.journal.state import State
from orchestrator.models.base import Model
from orchestrator.policy import effort_runs
from orchestrator.types import Measurements, Point, Run


def executor(campaign: Campaign, directory: Path, start: float) -> Executor:
    """Build the campaign's executor; ``start`` is the first instant of a virtual clock (Unix seconds)."""
    options = campaign.executor.model_dump()
    context = ExecutorContext(
        directory=directory, options=options, seed=campaign.seed, start=start, truth=_truth(campaign)
    )
    built: Executor = registry.load("executor", campaign.executor.name)(context)
    return built


TrueValues = Callable[[Point], Mapping[tuple[str, str], float]]


def true_values(campaign: Campaign) -> TrueValues:
    """Return what a rehearsed run at a point yields without noise, by call path and metric.

    Of a data set that is the mean of the measured values, and nothing where the point was not measured; nor
    is there anything where the program fails. The duration of the whole run is among them, with the overhead
    of its job.
    """
    options = campaign.executor
    if not isinstance(options, SimulatedOptions):
        return lambda point: {}
    if options.dataset is not None:
        found = _replayed_values(_replayed(campaign, options.dataset))
    elif (exact := _exact(campaign, options)) is not None:
        found = _exact_values(exact, options.overhead)
    else:
        return lambda point: {}
    if options.fails_where is None:
        return found
    fails = campaign.expression(options.fails_where)
    return lambda point: {} if fails(campaign.values(point)) else found(point)


def _replayed_values(known: Measurements) -> TrueValues:
    def at(point: Point) -> Mapping[tuple[str, str], float]:
        there = Point(tuple((name, value) for name, value in point.items if name in known.parameters))
        items = [(item.callpath, item.metric, item.values.get(there)) for item in known.items]
        return {(callpath, metric): fmean(values) for callpath, metric, values in items if values}

    return at


def _exact_values(exact: Exact, overhead: float) -> TrueValues:
    def at(point: Point) -> Mapping[tuple[str, str], float]:
        found = exact(Run(point))
        values = {(sample.callpath, sample.metric): sample.value for sample in found.samples}
        return {**values, (WHOLE_RUN, ELAPSED): found.seconds + overhead}

    return at


def _truth(campaign: Campaign) -> Truth | None:
    options = campaign.executor
    if not isinstance(options, SimulatedOptions):
        return None
    if options.dataset is not None:
        drawn = truth.replayed(_replayed(campaign, options.dataset))
    elif (exact := _exact(campaign, options)) is not None:
        drawn = truth.noisy(exact, options.noise)
    else:
        return None
    if options.fails_where is None:
        return drawn
    return truth.failing(drawn, campaign.expression(options.fails_where), campaign.values)


def _replayed(campaign: Campaign, path: str) -> Measurements:
    return dataset.read(path, [item.name for item in campaign.parameters])


def _exact(campaign: Campaign, options: SimulatedOptions) -> Exact | None:
    """Return what runs yield without noise, where that is not replayed; None where nothing is said."""
    if options.models is not None:
        found = earlier(Path(options.models), options.callpaths)
        found.check(campaign)
        return truth.modelled(found.models, campaign.values, found.parameters, found.slowdown)
    if options.truth:
        functions = {path: campaign.expression(text) for path, text in options.truth.items()}
        return truth.stated(functions, campaign.values)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """An earlier campaign, as the truth of a rehearsal."""

    # directory, name, application: of the campaign.
    directory: Path
    name: str
    application: str
    models: tuple[Model, ...]  # fitted to all that it has measured
    parameters: tuple[str, ...]  # its parameters, in order
    points: int  # number of points measured
    slowdown: float  # how many times longer its effort runs took
    # Of its repetitions, in percent: the half width of a uniform noise with the same standard deviation; None
    # where nothing was repeated.
    noise: float | None
    # Median seconds between the submission and the begin of a job; None where no job is known.
    wait: float | None
    simulated: bool  # whether it was a rehearsal itself

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the metrics that it has models of."""
        return tuple(dict.fromkeys(model.metric for model in self.models))

    def unfit(self, campaign: Campaign) -> str | None:
        """Return why its models say nothing about a campaign, or None."""
        if not any(model.metric == "time" for model in self.models):
            return f"{self.directory} has measured too little: it has no models of times"
        known = campaign.names[0]
        missing = [name for name in self.parameters if name not in known]
        if missing:
            return f"the campaign in {self.directory} has the parameter {missing[0]}, which this one has not"
        return None

    def check(self, campaign: Campaign) -> None:
        """Raise `CampaignError` where its models say nothing about a campaign."""
        if (why := self.unfit(campaign)) is not None:
            raise CampaignError(
                f"executor.models: {why}; give the directory of another campaign, executor.truth or "
                "executor.dataset"
            )


def earlier(directory: Path, callpaths: int | None) -> Earlier:
    """Read an earlier campaign and fit its models, or those of the ``callpaths`` that take longest.

    Raises
    ------
    CampaignError
        If the directory holds no readable campaign.
    """
    try:
        require_campaign(directory)
        found = (directory / FILE_NAME).stat()
        return _earlier(directory.absolute(), callpaths, found.st_mtime_ns, found.st_size)
    except (JournalError, OSError) as error:
        raise CampaignError(f"executor.models: {error}") from error


@lru_cache(maxsize=2)
def _earlier(directory: Path, callpaths: int | None, changed: int, size: int) -> Earlier:
    """``changed`` and ``size`` distinguish the states of a directory, of which a campaign may be running."""
    state: State = replay(read(directory / FILE_NAME))
    campaign = loader.of_directory(directory)
    known = measurements(state, campaign.parameters)
    if callpaths is not None:
        known = _longest(known, callpaths)
    waits = state.job_costs.waits
    return Earlier(
        directory=directory,
        name=campaign.name,
        application=campaign.application,
        models=fit(modeler(campaign), known),
        parameters=tuple(item.name for item in campaign.parameters),
        points=len(known.points),
        slowdown=effort_runs.slowdown(state),
        noise=_noise(known),
        wait=state.job_costs.wait if waits else None,
        simulated=campaign.executor.name == "simulated",
    )


def _noise(known: Measurements) -> float | None:
    """Return the half width, in percent, of the uniform noise that scatters as repeated times do.

    The relative variance is the mean over all repeated times, weighted by time.
    """
    squares, weights = 0.0, 0.0
    for item in known.items:
        for values in item.values.values() if item.metric == "time" else ():
            if len(values) > 1 and (mean := fmean(values)) > 0:
                squares += mean * variance(values, mean) / mean**2
                weights += mean
    return 100 * math.sqrt(3 * squares / weights) if weights else None


def _longest(known: Measurements, callpaths: int) -> Measurements:
    """Return what was measured of the call paths that take longest, and of the run as a whole."""
    times = {
        item.callpath: sum(fmean(values) for values in item.values.values() if values)
        for item in known.items
        if item.metric == "time"
    }
    kept = {WHOLE_RUN, *sorted(times, key=lambda path: -times[path])[:callpaths]}
    return replace(known, items=tuple(item for item in known.items if item.callpath in kept))
