"""Show what a campaign would do first, and what that may cost; launch nothing.

Prints the search space, what its runs occupy, the first batch with its reasons, the most that the batch can
be charged, the job script of its first run (of each kind), and what the whole campaign is expected to cost
and to find. That is from a rehearsal of at most 10 s, as by orchestrator simulate.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from orchestrator.api import campaign_paths
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import LocalOptions
from orchestrator.cli import common, plan_text
from orchestrator.control import plan_document, planning, priors, refusals, shapes, slurm_preflight
from orchestrator.control.assembly import Assembly, assemble
from orchestrator.control.execution import executor
from orchestrator.control.expectation import expect
from orchestrator.control.rehearsal import Options
from orchestrator.executors.slurm.cluster import Cluster
from orchestrator.report import rehearsal_text, tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_campaign(parser)
    parser.add_argument("--executor", help="plan for this executor instead of the campaign's")
    parser.add_argument(
        "--scripts", action="store_true", help="print the job script of every point of the batch"
    )
    parser.add_argument(
        "--points", action="store_true", help="list every point of the search space with its resources"
    )
    parser.add_argument(
        "--no-rehearsal",
        action="store_true",
        help="do not rehearse the whole campaign",
    )
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    chosen = common.read_campaign(arguments)
    chosen = priors.informed(chosen, Path(chosen.name))
    built = assemble(chosen)
    cluster = Cluster()
    refusals.refuse_launch(built, cluster)
    first = planning.first_round(built, executor(chosen, Path(chosen.name), 0.0))
    refusals.refuse_limits(built, first, cluster)
    document = plan_document.document(built, first)
    document["names"] += slurm_preflight.notes(chosen, cluster)
    if arguments.points:
        document["points"] = [
            {"point": point.as_dict(), **shapes.document(resources)}
            for point, resources in shapes.at_points(built)
        ]
    if not arguments.json:
        plan_text.show_batch(chosen, document, _validated(built))
        plan_text.show_points(document.get("points", []))
    document["rehearsal"] = None if arguments.no_rehearsal else _expected(arguments, chosen)
    if arguments.json:
        common.print_json(document)
    else:
        for line in rehearsal_text.expectation(document["rehearsal"]):
            tables.console(highlight=False).print(line)
        plan_text.show_scripts(document, len(document["runs"]) if arguments.scripts else 1)
    return 0


def _expected(arguments: argparse.Namespace, chosen: Campaign) -> dict[str, Any]:
    """Return what the campaign is expected to cost and to find, on as many cores as it may use."""
    where = chosen.executor
    cores = where.slots if isinstance(where, LocalOptions) and not where.oversubscribe else None
    path = campaign_paths.campaign_path(arguments.campaign)
    return expect(path, common.overrides(arguments), Options(cores=cores))


def _validated(built: Assembly) -> dict[str, int] | None:
    """Return what the run at the evaluation point occupies; None if there is none."""
    point = built.campaign.validation_point
    return None if point is None else shapes.document(built.resources(point))
