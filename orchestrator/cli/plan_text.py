"""The plan of a campaign (`orchestrator.control.plan_document.document`) as text and tables for humans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from orchestrator.campaign.definition import Campaign
from orchestrator.control import shapes
from orchestrator.report import tables, wording
from orchestrator.units import count, hours_in, plain

_EFFORT = " (effort)"
_KINDS = 12  # of runs that are listed


def show_batch(chosen: Campaign, document: dict[str, Any], validated: Mapping[str, int] | None) -> None:
    """Print the search space and the first batch with its cost for a human.

    ``validated``: what the run at the evaluation point occupies, if one is to be made.
    """
    console = tables.console(highlight=False)
    for line in _space_lines(chosen, document, validated):
        console.print(line)
    console.print(_batch_table(document))
    for line in _cost_lines(chosen, document["cost"]):
        console.print(line)
    if document["packs"] is not None:
        console.print(f"jobs: {document['packs']}")
    for text in (*document["extrapolation"], *document["names"]):
        console.print(f"note: {text}")
    for text in filter(None, (document["side_by_side"], document["unknown_times"])):
        console.print(f"note: {text}")


def _space_lines(
    chosen: Campaign, document: dict[str, Any], validated: Mapping[str, int] | None
) -> Iterator[str]:
    """Yield how large the search space is, what it excludes, and what its runs occupy."""
    space = document["space"]
    yield _size(space)
    categories = {item.name for item in chosen.parameters if item.categorical}
    for name, values in space["bounds"].items():
        text = (", " if name in categories else " .. ").join(map(str, dict.fromkeys(values)))
        yield f"  {name}: {text}"
    for reason, number in space["infeasible"].items():
        number = f"about {number:.3g}" if space["drawn"] else number
        yield f"  excluded {number}: {reason}"
    yield from _kinds(document["resources"], validated)


def _batch_table(document: dict[str, Any]) -> Table:
    runs = document["runs"]
    columns = ("point", "repetitions", "cores", "limit s", "why")
    table = tables.titled(f"first batch: {count(len(runs), 'run')}", columns)
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


def _name(item: dict[str, Any]) -> str:
    """Return a run's point, and its kind where that is not time."""
    point, kind = wording.point_of(item["run"]), item["run"].rpartition("-")[0].partition("/")[2]
    return point if kind == "time" else f"{point}{_EFFORT}"


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
    table = tables.titled("every point", ("point", "resources", "cores"))
    for item in points:
        table.add_row(Text(tables.configuration(item)), Text(shapes.described(item)), str(item["cores"]))
    tables.console(highlight=False).print(table)


def _points(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the first run at every point of the batch, of each kind."""
    seen: dict[str, dict[str, Any]] = {}
    for item in document["runs"]:
        seen.setdefault(_name(item), item)
    return seen


def show_scripts(document: dict[str, Any], scripts: int) -> None:
    """Print the scripts of the first ``scripts`` points of the batch."""
    console = tables.console(highlight=False)
    kinds = Counter[bool]()
    for key, item in _points(document).items():
        kinds[key.endswith(_EFFORT)] += 1
        if item["script"] is not None and kinds[key.endswith(_EFFORT)] <= scripts:
            console.print(f"\n--- script of {item['run']} ---")
            if item["sbatch"] is not None:
                console.print(" ".join(["sbatch", *item["sbatch"]]), soft_wrap=True)
            console.print(item["script"], soft_wrap=True)
