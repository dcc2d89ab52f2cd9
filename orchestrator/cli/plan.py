"""Show what a campaign would do first, and what that may cost; launch nothing.

Prints the search space, what its runs occupy, the first batch with its reasons, the most that the batch can
be charged, the job script of its first run (of each kind), and what the whole campaign is expected to cost
and to find. That is from a rehearsal of at most 10 s, as by orchestrator simulate.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from orchestrator.api import campaign_paths
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import LocalOptions, SlurmOptions
from orchestrator.cli import common
from orchestrator.control import attempts, cautions, planning, priors, refusals, shapes, slurm_preflight
from orchestrator.control.assembly import Assembly, assemble, sharing_rules
from orchestrator.control.execution import executor
from orchestrator.control.expectation import expect
from orchestrator.control.planning import FirstRound
from orchestrator.control.rehearsal import Options
from orchestrator.executors.slurm.cluster import Cluster
from orchestrator.executors.slurm.options import job_options
from orchestrator.policy import packing
from orchestrator.report import rehearsal_text, status_text, wording
from orchestrator.resources import core_hours
from orchestrator.types import Run
from orchestrator.units import count, format_duration, hours_in, plain

_EFFORT = " (effort)"
_KINDS = 12  # of runs that are listed


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
    extra = (f"executor.name={arguments.executor}",) if arguments.executor else ()
    chosen = common.read_campaign(arguments, extra)
    chosen = priors.informed(chosen, Path(chosen.name))
    built = assemble(chosen)
    cluster = Cluster()
    refusals.refuse_launch(built, cluster)
    first = planning.first_round(built, executor(chosen, Path(chosen.name), 0.0))
    refusals.refuse_limits(built, first, cluster)
    document = describe(built, first)
    document["names"] += slurm_preflight.notes(chosen, cluster)
    if arguments.points:
        document["points"] = [
            {"point": point.as_dict(), **shapes.document(resources)}
            for point, resources in shapes.at_points(built)
        ]
    if not arguments.json:
        show_batch(chosen, document, _validated(built))
        show_points(document.get("points", []))
    document["rehearsal"] = None if arguments.no_rehearsal else _expected(arguments, extra, chosen)
    if arguments.json:
        common.print_json(document)
    else:
        for line in rehearsal_text.expectation(document["rehearsal"]):
            status_text.console(highlight=False).print(line)
        show_scripts(document, len(document["runs"]) if arguments.scripts else 1)
    return 0


def _expected(arguments: argparse.Namespace, extra: tuple[str, ...], chosen: Campaign) -> dict[str, Any]:
    """Return what the campaign is expected to cost and to find, on as many cores as it may use."""
    where = chosen.executor
    cores = where.slots if isinstance(where, LocalOptions) and not where.oversubscribe else None
    path = campaign_paths.campaign_path(arguments.campaign)
    return expect(path, [*arguments.overrides, *extra], Options(cores=cores))


def describe(built: Assembly, first: FirstRound) -> dict[str, Any]:
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
        "names": [
            *cautions.about_parameters(built.campaign),
            *cautions.left_out(built.campaign),
            *cautions.unending(built.campaign),
        ],
        "side_by_side": cautions.side_by_side(built.campaign, first.cores),
    }


def _space(built: Assembly) -> dict[str, Any]:
    space = built.space.describe()
    categories = _categories(built.campaign)
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


def _categories(campaign: Campaign) -> set[str]:
    """Return the names of the parameters whose values are no range."""
    return {item.name for item in campaign.parameters if item.categorical}


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


def _name(item: dict[str, Any]) -> str:
    """Return a run's point, and its kind where that is not time."""
    point, kind = wording.point_of(item["run"]), item["run"].rpartition("-")[0].partition("/")[2]
    return point if kind == "time" else f"{point}{_EFFORT}"


def show_batch(chosen: Campaign, document: dict[str, Any], validated: Mapping[str, int] | None) -> None:
    """Print the search space and the first batch with its cost for a human.

    ``validated``: what the run at the evaluation point occupies, if one is to be made.
    """
    console = status_text.console(highlight=False)
    for line in _space_lines(chosen, document, validated):
        console.print(line)
    console.print(_batch_table(document))
    for line in _cost_lines(chosen, document["cost"]):
        console.print(line)
    if document["packs"] is not None:
        console.print(f"jobs: {document['packs']}")
    for text in (*document["extrapolation"], *document["names"]):
        console.print(f"note: {text}")
    if document["side_by_side"] is not None:
        console.print(f"note: {document['side_by_side']}")


def _space_lines(
    chosen: Campaign, document: dict[str, Any], validated: Mapping[str, int] | None
) -> Iterator[str]:
    """Yield how large the search space is, what it excludes, and what its runs occupy."""
    space = document["space"]
    yield _size(space)
    for name, values in space["bounds"].items():
        text = (", " if name in _categories(chosen) else " .. ").join(map(str, values))
        yield f"  {name}: {text}"
    for reason, number in space["infeasible"].items():
        number = f"about {number:.3g}" if space["drawn"] else number
        yield f"  excluded {number}: {reason}"
    yield from _kinds(document["resources"], validated)


def _batch_table(document: dict[str, Any]) -> Table:
    runs = document["runs"]
    table = Table(
        title=f"first batch: {count(len(runs), 'run')}", title_justify="left", show_edge=False, pad_edge=False
    )
    for column in ("point", "repetitions", "cores", "limit s", "why"):
        table.add_column(column, overflow="fold")
    repetitions = Counter(_name(item) for item in runs)
    for key, item in _points(document).items():
        cells = (key, repetitions[key], item["cores"], f"{item['time_limit']:.4g}", item["reason"])
        table.add_row(*(Text(str(cell)) for cell in cells))
    return table


def _cost_lines(chosen: Campaign, cost: dict[str, Any]) -> Iterator[str]:
    """Yield what the batch may cost, and the validation."""
    unit = cost["shown_in"]
    expected = "" if cost["expected"] is None else f", {hours_in(cost['expected'], unit)} expected"
    yield (
        f"{unit}: at most {hours_in(cost['worst'], unit)} for this batch{expected}; budget "
        f"{hours_in(cost['budget'], unit)}; {chosen.executor.name} executor, strategy {chosen.strategy.name}"
    )
    if cost["validation"] is not None:
        kept = f"{hours_in(cost['kept_for_validation'], unit)} {unit}"
        yield (
            f"validation at {chosen.evaluation_point}: at most {hours_in(cost['validation'], unit)} {unit} "
            f"by what is known now; {kept} are kept back for it; this changes once a model predicts "
            "its duration"
        )


def _size(space: dict[str, Any]) -> str:
    """Return how large the search space is, and how that is known where it is an estimate."""
    if not space["drawn"]:
        points = count(space["combinations"], "combination")
        return f"search space: {count(space['points'], 'point')} of {points}"
    size = (
        f"about {space['points']:.2g}"
        if space["at_most"] is None
        else f"fewer than {plain(space['at_most'], 2)}"
    )
    return (
        f"search space: {size} points of {space['combinations']:.3g} combinations, by "
        f"{space['drawn']} combinations drawn at random; values and resources are of these"
    )


def _validated(built: Assembly) -> dict[str, int] | None:
    """Return what the run at the evaluation point occupies; None if there is none."""
    campaign = built.campaign
    if not campaign.validate or campaign.evaluation_point is None:
        return None
    return shapes.document(built.resources(campaign.evaluation_point))


def _kinds(kinds: list[dict[str, Any]], validated: Mapping[str, int] | None) -> list[str]:
    """Return what runs occupy, the kinds with fewest cores first; nothing where one core each is all.

    The evaluation point is counted beside the search space.
    """
    if all(item["cores"] == 1 for item in kinds):
        return []
    shown = kinds if len(kinds) <= _KINDS else [*kinds[: _KINDS - 1], kinds[-1]]
    lines = [
        f"  {shapes.described(item)}: {count(item['cores'], 'core')}, {_number(item, validated)}"
        for item in shown
    ]
    if shown is not kinds:
        lines.insert(-1, f"  and {len(kinds) - _KINDS} other kinds: --points or --json")
    return ["resources of a run:", *lines]


def _number(kind: Mapping[str, int], validated: Mapping[str, int] | None) -> str:
    """Return the points of a kind of runs, with the evaluation point named where it is one of them."""
    if validated is None or {**kind, **validated} != kind:
        return count(kind["points"], "point")
    others = kind["points"] - 1
    return "the evaluation point" if not others else f"{count(others, 'point')} and the evaluation point"


def show_points(points: list[dict[str, Any]]) -> None:
    """Print every point with its resources."""
    if not points:
        return
    table = Table(title="every point", title_justify="left", show_edge=False, pad_edge=False)
    for column in ("point", "resources", "cores"):
        table.add_column(column, overflow="fold")
    for item in points:
        table.add_row(Text(status_text.configuration(item)), Text(shapes.described(item)), str(item["cores"]))
    status_text.console(highlight=False).print(table)


def _points(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the first run at every point of the batch, of each kind."""
    seen: dict[str, dict[str, Any]] = {}
    for item in document["runs"]:
        seen.setdefault(_name(item), item)
    return seen


def show_scripts(document: dict[str, Any], scripts: int) -> None:
    """Print the scripts of the first ``scripts`` points of the batch."""
    console = status_text.console(highlight=False)
    kinds = Counter[bool]()
    for key, item in _points(document).items():
        kinds[key.endswith(_EFFORT)] += 1
        if item["script"] is not None and kinds[key.endswith(_EFFORT)] <= scripts:
            console.print(f"\n--- script of {item['run']} ---")
            if item["sbatch"] is not None:
                console.print(" ".join(["sbatch", *item["sbatch"]]), soft_wrap=True)
            console.print(item["script"], soft_wrap=True)
