"""What a campaign would do first as a document, JSON-ready."""

from __future__ import annotations

from typing import Any

from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import SlurmOptions
from orchestrator.control import attempts, cautions, shapes
from orchestrator.control.assembly import Assembly, sharing_rules
from orchestrator.control.planning import FirstRound
from orchestrator.executors.slurm.options import job_options
from orchestrator.policy import packing
from orchestrator.resources import core_hours
from orchestrator.types import Run
from orchestrator.units import format_duration


def document(built: Assembly, first: FirstRound) -> dict[str, Any]:
    """Return the plan, JSON-ready; costs in core-hours, limits in seconds."""
    return {
        "campaign": built.campaign.name,
        "space": _space(built),
        "resources": [
            {**shapes.document(resources), "points": number}
            for resources, number in shapes.kinds(built).items()
        ],
        "runs": _runs(built, first),
        "cost": {
            "budget": core_hours(built.campaign.stop.budget),
            "worst": core_hours(first.worst),
            "expected": None if first.expected is None else core_hours(first.expected),
            "validation": None if first.validation is None else core_hours(first.validation.reserved),
            "kept_for_validation": core_hours(first.kept),
            "unit": "core-hours",
            "shown_in": built.campaign.stop.unit,
        },
        "packs": _packs(built.campaign),
        "extrapolation": cautions.far_away(built.campaign),
        "names": cautions.of_campaign(built.campaign),
        "side_by_side": cautions.side_by_side(built.campaign, first.cores),
        "unknown_times": cautions.unknown_times(built.campaign, first.derived_limit),
    }


def _space(built: Assembly) -> dict[str, Any]:
    space = built.space.describe()
    categories = {item.name for item in built.campaign.parameters if item.categorical}
    ends = {name: space.values[name] if name in categories else ends for name, ends in space.bounds.items()}
    return {
        "combinations": space.combinations,
        "points": space.feasible,
        "drawn": space.drawn,
        "at_most": space.at_most,
        "bounds": {name: list(values) for name, values in ends.items()},
        "infeasible": dict(space.infeasible),
    }


def _runs(built: Assembly, first: FirstRound) -> list[dict[str, Any]]:
    planned = zip(first.runs, first.cores, first.limits, first.reasons, strict=True)
    return [
        {
            "run": run.id,
            "point": run.point.as_dict(),
            "cores": cores,
            "resources": shapes.document(built.resources(run.point)),
            "time_limit": limit,
            "reason": reason,
            "sbatch": _sbatch(built, run, limit),
            "script": _script(built, run),
        }
        for run, cores, limit, reason in planned
    ]


def _packs(campaign: Campaign) -> str | None:
    """Return in words which runs share a job; None where each has its own."""
    rules = sharing_rules(campaign)
    return None if rules is None else packing.describe(rules, format_duration)


def _script(built: Assembly, run: Run) -> str | None:
    if built.campaign.executor.name == "simulated":
        return None
    return attempts.script(built, run.point, built.resources(run.point), run.kind)


def _sbatch(built: Assembly, run: Run, limit: float) -> list[str] | None:
    """Return the options of ``sbatch`` for a run in a job of its own; None without Slurm."""
    options = built.campaign.executor
    if not isinstance(options, SlurmOptions):
        return None
    from orchestrator.executors.slurm import sbatch  # brings submitit, for which only Slurm has a use

    return sbatch.asked(built.resources(run.point), limit, job_options(options.model_dump()))
