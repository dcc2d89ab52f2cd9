"""Where a campaign stands, as one JSON-ready document; reads state only."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.journal import executables, nodes
from orchestrator.journal.references import references
from orchestrator.journal.state import RunStatus, State, given_up, has_measured, is_rehearsal
from orchestrator.models.effort import CALLS, EFFORT, unmatched, variation
from orchestrator.policy import failing, pace
from orchestrator.report import controller, extrapolation, models_document
from orchestrator.report.metrics import described
from orchestrator.resources import core_hours
from orchestrator.storage import iso
from orchestrator.types import Measurements, Point, Run, RunKind
from orchestrator.units import campaign_budget, campaign_unit, count, uncertainty

if TYPE_CHECKING:  # numpy, which a status of published models does without
    from orchestrator.models.base import Model

_REPRODUCIBLE = 0.01  # counts that differ by more between runs at one point are not


def document(
    state: State,
    models: Sequence[Model],
    known: Measurements,
    point: Point | None,
    running: dict[str, Any] | None = None,
    fastest: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the status of a campaign; costs in core-hours, ``shown_in``: the unit of texts.

    Parameters
    ----------
    state, models
        The replayed journal, and the models fitted to ``known``.
    known
        What was measured.
    point
        The evaluation point, for predictions.
    running
        Which controller is running, from `report.controller`; None where the controller has just stopped in
        good order.
    fastest
        The fastest configurations, from `orchestrator.control.fastest`.
    """
    return combined(state, known, models_document.document(state, models, point, fastest=fastest), running)


def combined(
    state: State, known: Measurements, models: Mapping[str, Any], running: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the status of a campaign whose models are described already.

    Parameters
    ----------
    state, known, running
        As of `document`.
    models
        The content of ``models.json``, from `models_document.published` with what is ``outdated`` in it.
    """
    budget = campaign_budget(state.campaign)
    return {
        "campaign": state.campaign["name"],
        "id": state.id,
        "virtual": is_rehearsal(state.campaign),
        "state": phase(state),
        "controller": running or controller.no_controller(None if state.stopped else state.time),
        "stop_reason": _stop(state),
        "paused": _pause(state),
        "outages": _outages(state),
        "infrastructure": _infrastructure(state),
        "nearest_rule": nearest_rule(state, budget),
        "round": state.round,
        "runs": counts(state),
        "effort_runs": counts(state, "effort"),
        "note": state.note,
        "effort": effort(known),
        "attempts": state.attempts_settled + len(state.in_flight),
        "cost": _cost(state, budget),
        "jobs": _jobs(state),
        "suspect_nodes": _suspect_nodes(state),
        "machine": dict(state.machine),
        "executables": executables.warnings(state.measured_with, state.executables),
        "reference": _references(state),
        "points": len(known.points),
        "noise_percent": noise(known),
        "measured_values": extrapolation.counts(known),
        "extrapolation": extrapolation.of_measured(_evaluation_point(state), known),
        "uncertainty_percent": None if state.uncertainty is None else 100 * state.uncertainty,
        "uncertainty_targets": state.targets,
        "pace": pace_of(state, budget),
        "last_round": _last_round(state),
        "given_up": [{"run": run, "reason": reason} for run, reason in given_up(state)],
        "left_out": failing.warnings(state, _evaluation_point(state)),
        "discarded": discarded(state),
        "decides_again": state.undecided,
        "metrics": described(state.campaign),
        "models": models["models"],
        "models_outdated": models.get("outdated"),
        "validation": models["validation"],
        "contradictions": models.get("contradictions", []),
        "fastest": models.get("fastest"),
        "no_validation": no_validation(state),
    }


def in_list(state: State) -> dict[str, Any]:
    """Return what every list of campaigns says of one; costs in core-hours, the time of the last entry.

    ``virtual``: whether that is the time of a rehearsal's clock.
    """
    return {
        "state": phase(state),
        "last": iso(state.time),
        "spent": core_hours(state.spent),
        "budget": core_hours(campaign_budget(state.campaign)),
        "virtual": is_rehearsal(state.campaign),
    }


def _stop(state: State) -> dict[str, str] | None:
    stop = state.stopped or state.stopping
    return None if stop is None else {"rule": stop.rule, "detail": stop.detail}


def _outages(state: State) -> list[dict[str, Any]]:
    return [
        {
            "what": what,
            "since": iso(outage.since),
            "reason": outage.reason,
            "jobs": state.jobs_out,
            "blocking": outage.blocking,
        }
        for what, outage in sorted(state.outages.items())
    ]


def _infrastructure(state: State) -> dict[str, Any]:
    """Return what failures of the infrastructure cost, and what the campaign waits for."""
    setbacks = state.setbacks
    return {
        "charged": core_hours(setbacks.charged),
        "tries_in_a_row": setbacks.tries,
        "reason": setbacks.reasons[-1] if setbacks.reasons else None,
        "waits_until": iso(setbacks.last + setbacks.wait) if setbacks.wait else None,
    }


def _cost(state: State, budget: float) -> dict[str, Any]:
    left = budget - state.spent - state.reserved
    return {
        "budget": core_hours(budget),
        "spent": core_hours(state.spent),
        "reserved": core_hours(state.reserved),
        "unconfirmed": core_hours(sum(item.reserved for item in state.unconfirmed.values())),
        "left": core_hours(left),
        "kept_for_validation": core_hours(min(state.kept, max(left, 0.0))),
        "unit": "core-hours",
        "shown_in": campaign_unit(state.campaign),
    }


def _jobs(state: State) -> dict[str, Any]:
    costs = state.job_costs
    return {
        "in_flight": state.jobs,
        "overhead_seconds": costs.overhead if costs.overheads else None,
        "wait_seconds": costs.wait if costs.waits else None,
        "runs_that_shared_one": sum(item.packed for item in state.runs.values()),
    }


def _suspect_nodes(state: State) -> list[dict[str, Any]]:
    excluded = nodes.excluded(state.marks)
    return [
        {"node": node, "excluded": node in excluded, "reasons": list(reasons)}
        for node, reasons in sorted(state.marks.items())
    ]


def _last_round(state: State) -> list[dict[str, Any]]:
    return [
        {"run": run.id, "status": state.runs[run].status, "reason": _reason(state, run)}
        for run in state.queue
    ]


def _reason(state: State, run: Run) -> str:
    """Return why a run was chosen."""
    return "validation at the evaluation point" if run == state.validation else state.runs[run].chosen


def discarded(state: State) -> list[dict[str, str]]:
    """Return which runs have measurements that were discarded, why and when, JSON-ready."""
    found = [(run.id, item) for run, item in state.discarded.items()]
    return [{"run": run, "reason": item.reason, "time": iso(item.time)} for run, item in sorted(found)]


def pace_of(state: State, budget: float) -> dict[str, Any] | None:
    """Return what becomes of a campaign at the pace of its last rounds; None once it stops.

    ``seconds_left``: until the budget is spent.
    """
    if state.stopped is not None or state.stopping is not None or not state.rounds:
        return None
    trend = pace.pace(state.rounds, state.spent, budget)
    return {
        "final_uncertainty_percent": None if trend.final is None else 100 * trend.final,
        "exponent": trend.exponent,
        "no_trend": trend.no_trend or None,
        "seconds_left": trend.seconds,
    }


def _evaluation_point(state: State) -> Point | None:
    point = state.campaign.get("evaluation_point")
    return None if point is None else Point.of(point)


def _references(state: State) -> dict[str, Any] | None:
    """Return what reference runs were made, and their cost in core-hours; None without any."""
    reference = references(state)
    if not reference.points:
        return None
    points = [point.as_dict() for point in reference.points]
    return {"points": points, "measured": reference.runs, "cost": core_hours(reference.cost)}


def no_validation(state: State) -> str | None:
    """Return why a stopped campaign that asks for a validation has none; None if nothing is missing."""
    if state.stopped is None or not state.campaign.get("validate"):
        return None
    if state.validation is None:
        if known := [(run, item.reason) for run, item in state.discarded.items() if item.validation]:
            run, reason = max(known, key=lambda pair: pair[0].repetition)
            return f"validation not made: what {run.id} measured was discarded: {reason}"
        if has_measured(state):
            return "validation not made: the budget left did not hold its reservation"
        return "validation not made: nothing was measured that it could check"
    item = state.runs[state.validation]
    if item.status is RunStatus.MEASURED:
        return None
    reason = item.reason
    if reason.startswith(failing.LEFT_OUT):
        reason = reason.partition(" (")[0]  # what failed there stands with the region itself
    return f"validation not made: {state.validation.id} was {item.status}: {reason}"


def _pause(state: State) -> dict[str, str] | None:
    paused = state.paused
    return None if paused is None else {"cause": paused.rule, "detail": paused.detail}


def phase(state: State) -> str:
    """Return ``not started``, ``running``, ``paused``, ``stopping`` or ``stopped``."""
    if state.stopped is not None:
        return "stopped"
    if state.paused is not None:
        return "paused"
    if state.stopping is not None:
        return "stopping"
    return "running" if state.round else "not started"


def counts(state: State, kind: RunKind | None = None) -> dict[str, int]:
    """Return the number of runs (of one kind) in each status, all statuses named."""
    found = Counter(item.status for run, item in state.runs.items() if kind in (None, run.kind))
    return {str(status): found.get(status, 0) for status in RunStatus}


def noise(known: Measurements) -> float | None:
    """Return the mean relative deviation from the mean of repeated time measurements, in percent.

    Ritter et al., Cost-Effective Empirical Performance Modeling, section III-B: "the divergence from the
    arithmetic mean metric value in percent". None without repetitions.
    """
    deviations: list[float] = []
    for item in known.items:
        for values in item.values.values() if item.metric == "time" else ():
            mean = _mean(values)
            if len(values) > 1 and mean > 0:
                deviations += [abs(value - mean) / mean for value in values]
    return 100 * _mean(deviations) if deviations else None


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def effort(known: Measurements) -> dict[str, float | int] | None:
    """Return how well effort was counted; None without any, or with visits alone, which profiles have, too.

    ``callpaths`` that were counted, those of them that are ``irreproducible``, and the share of the basic
    blocks that belong to no timed call path (``unmatched_percent``).
    """
    counted = [item for item in known.items if item.metric in EFFORT]
    if all(item.metric in CALLS for item in counted):
        return None
    timed = {item.callpath for item in known.items if item.metric not in EFFORT}
    wild = {item.callpath for item in counted if variation(item.values) > _REPRODUCIBLE}
    return {
        "callpaths": len({item.callpath for item in counted}),
        "irreproducible": len(wild),
        "unmatched_percent": 100 * unmatched(known, timed)[1],
    }


def nearest_rule(state: State, budget: float) -> str:
    """Say how far the stop rules are, in one line."""
    stop = state.campaign["stop"]
    used = 100 * (state.spent + state.reserved) / budget
    rules = [f"budget: {used:.0f} % spent or reserved", _patience(state, stop, budget)]
    if state.narrow_rounds and stop.get("rule") != "smape" and stop.get("width") is None:
        rounds = count(stop["patience"], "round")
        rules.append(f"converged: intervals as narrow as noise permits in {state.narrow_rounds} of {rounds}")
    if stop.get("width") is not None and state.widest is not None:
        wanted = uncertainty(stop["width"])
        rules.append(f"precision: the widest interval is {uncertainty(state.widest)}, {wanted} is enough")
    return "; ".join(rules)


def _patience(state: State, stop: Mapping[str, Any], budget: float) -> str:
    rounds, share = count(stop["patience"], "round"), stop.get("without_gain")
    text = f"patience: {state.rounds_without_improvement} of {rounds} without improvement"
    if share is None or stop["rule"] == "smape":
        return text
    spent = 100 * (state.spent - state.spent_at_gain) / budget
    least = f"at least {100 * share:.0f} % are needed"
    return f"{text}; they cost {spent:.0f} % of the budget, {least}"
