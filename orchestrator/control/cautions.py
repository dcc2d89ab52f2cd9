"""What the user should know before a campaign begins, beside its costs: what its file may not mean."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from orchestrator.campaign.definition import RESOURCES, Campaign
from orchestrator.campaign.schema import LocalOptions
from orchestrator.campaign.values import sizes_as_numbers
from orchestrator.control.idle import idle, occupying
from orchestrator.control.planning import FirstRound
from orchestrator.executors.local import cores as local_cores
from orchestrator.report import extrapolation
from orchestrator.units import count, format_cost, format_duration, plain

# Seconds for which a budget keeps this machine busy, from which on it is said. Chosen by hand.
_LONG = 86400.0
# Seconds that few programs of small budgets take: from this limit on nothing is said. Chosen by hand.
_LONG_LIMIT = 60.0


def notes(campaign: Campaign, first: FirstRound) -> list[str]:
    """Return all of it."""
    some = (side_by_side(campaign, first.cores), unknown_times(campaign, first.derived_limit))
    return [*far_away(campaign), *of_campaign(campaign), *filter(None, some)]


def unknown_times(campaign: Campaign, derived: float | None) -> str | None:
    """Return what follows where the budget alone decides the time limit (s); None where it hardly matters.

    Fewer runs at once matter only where they wait in a queue.
    """
    if derived is None or campaign.measure.expected_time is not None:
        return None
    if derived >= _LONG_LIMIT and isinstance(campaign.executor, LocalOptions):
        return None
    return (
        f"only the budget says how long runs may take: each is ended after {format_duration(derived)}, and "
        "few begin at once before some are measured; state measure.expected_time, or measure.time_limit if "
        "they may take longer"
    )


def of_campaign(campaign: Campaign) -> list[str]:
    """Return what its parameters, outputs and budget may not mean."""
    return [*about_parameters(campaign), *left_out(campaign), *unending(campaign)]


def unending(campaign: Campaign) -> list[str]:
    """Return for how long a budget keeps this machine busy, where that is long: its unit may be a mistake."""
    options, stop = campaign.executor, campaign.stop
    if not isinstance(options, LocalOptions) or stop.wall_time is not None:
        return []
    seconds = stop.budget / options.slots
    if seconds < _LONG:
        return []
    days = plain(seconds / 86400)
    return [
        f"the budget of {format_cost(stop.budget, stop.unit)} keeps {count(options.slots, 'slot')} of this "
        f"machine busy for {days} days, if no other rule stops the campaign: check its unit, or set "
        "stop.wall_time"
    ]


def left_out(campaign: Campaign) -> list[str]:
    """Return which values are read from outputs by ``program.output``, and then not kept."""
    measure, rules = campaign.measure, () if campaign.program is None else campaign.program.output
    if measure.profiler == "time" and any(rule.metric == "time" for rule in rules):
        return [
            "measure.profiler: time takes the time of whole runs; those of program.output are read with "
            "measure.profiler: stdout"
        ]
    names = [name for name in dict.fromkeys(rule.metric for rule in rules) if name not in measure.measured]
    return (
        [
            f"{', '.join(names)} of program.output {'is' if len(names) == 1 else 'are'} left out, as "
            f"measure.metrics names only {', '.join(measure.measured)}: write {' and '.join(names)} there to "
            f"keep {'it' if len(names) == 1 else 'them'}; a rate as {{name: {names[0]}, better: higher, "
            "model: inverse}"
        ]
        if names
        else []
    )


def about_parameters(campaign: Campaign) -> list[str]:
    """Return which parameters do not do what their names say, or nothing at all."""
    return [*mere_names(campaign), *idle(campaign), *sizes(campaign)]


def sizes(campaign: Campaign) -> list[str]:
    """Return of which parameters the values are sizes with a unit, which are text and so have no order."""
    remedies = [(item.name, sizes_as_numbers(item)) for item in campaign.parameters]
    return [
        f"no model says what lies between or beyond the values of {name}: {remedy}"
        for name, remedy in remedies
        if remedy
    ]


def mere_names(campaign: Campaign) -> list[str]:
    """Return which parameters are called like a resource, but decide about none."""
    program = campaign.program
    if program is None:
        return []
    used = occupying(campaign, program)
    return [
        f"parameter {item.name} does not change what a run requests; to request {item.name}, write "
        f"resources: {{{item.name}: {item.name}}}"
        for item in campaign.parameters
        if item.name in RESOURCES and item.name not in used
    ]


def far_away(campaign: Campaign) -> list[str]:
    """Return in which parameters the evaluation point lies far beyond all values that can be measured."""
    if campaign.evaluation_point is None:
        return []
    values = {item.name: item.values for item in campaign.parameters}
    return extrapolation.announcements(campaign.evaluation_point, values)


def side_by_side(campaign: Campaign, cores: Sequence[int]) -> str | None:
    """Return what to know of local runs that would be timed at the same time; None where none would be.

    Parameters
    ----------
    campaign
        The campaign.
    cores
        Cores of each run.
    """
    options = campaign.executor
    if not isinstance(options, LocalOptions):
        return None
    there = local_cores.usable()
    most = options.slots if options.share_cores else min(options.slots, len(there))
    begun = [total for total in itertools.accumulate(sorted(cores)) if total <= most]
    together = min(len(begun), options.max_pending)
    if together < 2:
        return None
    how = f"up to {together} runs are timed side by side"
    if options.share_cores:
        return f"{how} and share cores (executor.share_cores): such times depend on what runs beside"
    return (
        f"{how}, each bound to cores of its own; memory bandwidth and caches are shared: "
        "executor.max_pending: 1 times one run after another"
    )
