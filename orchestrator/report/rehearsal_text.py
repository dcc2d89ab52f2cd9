"""What a rehearsed campaign would have cost and found, as text and tables for humans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.report.metrics import with_unit
from orchestrator.report.tables import ANSWERS, against_table, predicted_interval
from orchestrator.report.wording import about, measure
from orchestrator.types import Point
from orchestrator.units import count, hours_in, plain, uncertainty

_ROWS = 12  # the call paths with the largest times; all are in the JSON document


def render(outcome: Mapping[str, Any]) -> RenderableType:
    """Return the outcome of a rehearsal (`orchestrator.control.outcome.document`) as text and a table."""
    lines = [f"truth of this rehearsal: {outcome['truth']}", *outcome["notes"]]
    lines.append(f"it would have cost {_cost(outcome)}; {_end(outcome)}")
    if outcome["fastest"] is not None:
        lines.append(_fastest(outcome["fastest"]))
    elif outcome["point"] is None and outcome["source"] == "models":
        lines.append("without evaluation_point nothing is compared where models are the truth")
    elif outcome["point"] is None:
        lines.append("nothing is compared with the truth: too little was measured")
    elif not outcome["found"]:
        lines.append(f"nothing is compared with the truth at {Point.of(outcome['point'])}: {_why(outcome)}")
    text = Text("\n".join(lines))
    return Group(text, found_table(outcome)) if outcome["found"] else text


def expectation(expected: Mapping[str, Any] | None) -> list[str]:
    """Return what a campaign is expected to cost and to find, line by line.

    ``expected`` is from `orchestrator.control.expectation.expect`.
    """
    if expected is None:
        return []
    if "reason" in expected:
        return [f"nothing is expected of a rehearsal: {expected['reason']}"]
    at = _uncertainty(expected)
    if expected["complete"]:
        lines = [f"expected by a rehearsal: {_cost(expected)}", f"{at}; {_end(expected)}"]
    else:
        reached = f"after {expected['seconds']:g} s of rehearsal, round {expected['round']}"
        final = expected["final_uncertainty_percent"]
        further = (
            "" if final is None else f"; at this pace {uncertainty(final / 100)} when the budget is spent"
        )
        lines = [f"{reached}: {_cost(expected)}", f"{at} so far{further}"]
    return [*lines, f"truth of the rehearsal: {expected['truth']}", *expected["notes"]]


def _uncertainty(expected: Mapping[str, Any]) -> str:
    """Return how wide the intervals are that the rehearsed campaign has come to."""
    width, point = expected["uncertainty_percent"], expected["point"]
    over = expected["uncertainty_targets"]
    where = f"at {Point.of(point)}" if point is not None else "over the search space"
    if width is None:
        return f"no intervals {where}"
    return f"uncertainty of {uncertainty(width / 100)} {where} ({measure(over)})"


def _fastest(fastest: Mapping[str, Any]) -> str:
    """Return the fastest measured configuration against the truly fastest one."""
    truly = plain(fastest["seconds"], 4)
    text = f"fastest measured configuration: {Point.of(fastest['point'])}, {truly} s by the truth, "
    compared = f"the fastest of the {count(fastest['points'], 'point')} compared"
    if fastest["rank"] == 1:
        return f"{text}{compared}"
    best = f"{plain(fastest['best_seconds'], 4)} s at {Point.of(fastest['best_point'])}"
    return f"{text}{plain(fastest['times_best'], 3)} times {compared} ({best}), rank {fastest['rank']}"


def _cost(outcome: Mapping[str, Any]) -> str:
    """Return what the rehearsed campaign has cost."""
    queue, unit = outcome["queue_delay"], outcome["shown_in"]
    waiting = f", with {about(queue)} on average in the queue" if queue else ", none of it in the queue"
    return (
        f"{hours_in(outcome['core_hours'], unit)} of {hours_in(outcome['budget'], unit)} {unit}: "
        f"{count(outcome['rounds'], 'round')}, {count(outcome['runs'], 'measured run')}, "
        f"{about(outcome['wall_seconds'])} of wall time{waiting}"
    )


def _end(outcome: Mapping[str, Any]) -> str:
    """Return why the rehearsed campaign stopped."""
    rule = outcome["stop_rule"]
    return "not stopped yet" if rule is None else f"stop rule {rule} ({outcome['stop_detail']})"


def _why(outcome: Mapping[str, Any]) -> str:
    return "the data set has no times there" if outcome["source"] == "dataset" else "no model predicts it"


def found_table(outcome: Mapping[str, Any]) -> Table:
    """Return predicted against true values at the evaluation point, the largest times first."""
    rows = sorted(outcome["found"], key=lambda row: -float(row["truth"]))
    cells = [
        (
            row["callpath"],
            with_unit(row["metric"]),
            plain(row["truth"], 4),
            predicted_interval(row),
            "-" if row["error_percent"] is None else f"{row['error_percent']:+.1f}",
            ANSWERS[row["inside"]],
        )
        for row in rows[:_ROWS]
    ]
    title = f"found at {Point.of(outcome['point'])}"
    table = against_table(title, ("truth", "predicted", "error %"), "truth in the interval", cells)
    if len(rows) > _ROWS:
        table.caption = f"and {count(len(rows) - _ROWS, 'other')} with smaller times: --json"
    return table
