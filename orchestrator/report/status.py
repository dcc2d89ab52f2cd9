"""Where a campaign stands, as one JSON-ready document and as text for humans; reads state only."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator import nodes
from orchestrator.cost import core_hours
from orchestrator.models.base import Model
from orchestrator.models.swc_effort import EFFORT, unmatched, variation
from orchestrator.report.models_document import CORRECTED, describe, label, shown, validation
from orchestrator.state import RunStatus, State
from orchestrator.types import Measurements, Point, RunKind

_WIDTH = 120
# Rows of which a table shows all, and the share of the largest value below which longer ones leave rows out.
_ROWS = 30
_SMALL = 0.01
_REPRODUCIBLE = 0.01  # counts that differ by more between runs at one point are not


def document(
    state: State, models: Sequence[Model], known: Measurements, point: Point | None
) -> dict[str, Any]:
    """Return the status of a campaign; costs in core-hours.

    Parameters
    ----------
    state, models
        The replayed journal, and the models fitted to ``known``.
    known
        What was measured.
    point
        The evaluation point, for predictions.
    """
    stop = state.stopped or state.stopping
    budget = float(state.campaign["stop"]["budget"].split()[0])
    return {
        "campaign": state.campaign["name"],
        "id": state.id,
        "state": phase(state),
        "stop_reason": None if stop is None else {"rule": stop.rule, "detail": stop.detail},
        "nearest_rule": nearest_rule(state, budget),
        "round": state.round,
        "runs": counts(state),
        "effort_runs": counts(state, "effort"),
        "note": state.note,
        "effort": effort(known),
        "attempts": state.attempts_settled + len(state.in_flight),
        "cost": {
            "budget": core_hours(budget),
            "spent": core_hours(state.spent),
            "reserved": core_hours(state.reserved),
            "unconfirmed": core_hours(sum(item.reserved for item in state.unconfirmed.values())),
            "left": core_hours(budget - state.spent - state.reserved),
        },
        "jobs": {
            "in_flight": state.jobs,
            "overhead_seconds": state.price.overhead if state.price.overheads else None,
            "wait_seconds": state.price.wait if state.price.waits else None,
            "runs_that_shared_one": sum(item.packed for item in state.runs.values()),
        },
        "suspect_nodes": [
            {"node": node, "excluded": node in nodes.excluded(state.marks), "reasons": list(reasons)}
            for node, reasons in sorted(state.marks.items())
        ],
        "points": len(known.points),
        "noise_percent": noise(known),
        "last_round": [
            {"run": run.id, "status": state.runs[run].status, "reason": state.reasons.get(run, "")}
            for run in state.queue
        ],
        "given_up": [
            {"run": run.id, "reason": item.reason}
            for run, item in sorted(state.runs.items(), key=lambda pair: pair[0].id)
            if item.status is RunStatus.GIVEN_UP
        ],
        "models": [describe(model, [point] if point else []) for model in models],
        "validation": validation(state, models),
    }


def phase(state: State) -> str:
    """Return ``not started``, ``running``, ``stopping`` or ``stopped``."""
    if state.stopped is not None:
        return "stopped"
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
            mean = float(np.mean(values))
            if len(values) > 1 and mean > 0:
                deviations += [abs(value - mean) / mean for value in values]
    return 100 * float(np.mean(deviations)) if deviations else None


def effort(known: Measurements) -> dict[str, float | int] | None:
    """Return what is to be known of counted effort; None without any.

    ``callpaths`` that were counted, those of them that are ``irreproducible``, and the share of the basic
    blocks that belong to no timed call path (``unmatched_percent``).
    """
    counted = [item for item in known.items if item.metric in EFFORT]
    if not counted:
        return None
    timed = {item.callpath for item in known.items if item.metric not in EFFORT}
    wild = {item.callpath for item in counted if variation(item.values) > _REPRODUCIBLE}
    return {
        "callpaths": len({item.callpath for item in counted}),
        "irreproducible": len(wild),
        "unmatched_percent": 100 * unmatched(known, timed)[1],
    }


def _effort_line(found: dict[str, float | int]) -> str:
    share = found["unmatched_percent"]
    return (
        f"effort: {found['callpaths']} call paths counted, {found['irreproducible']} of them irreproducible; "
        f"{share:.2g} % of the basic blocks belong to no timed call path; their models: status --json"
    )


def nearest_rule(state: State, budget: float) -> str:
    """Say how far the stop rules are, in one line."""
    patience = state.campaign["stop"]["patience"]
    used = 100 * (state.spent + state.reserved) / budget
    return (
        f"budget: {used:.0f} % spent or reserved; "
        f"patience: {state.rounds_without_improvement} of {patience} rounds without improvement"
    )


def render(status: dict[str, Any]) -> RenderableType:
    """Return the document as text and tables."""
    cost = status["cost"]
    lines = [
        f"campaign {status['campaign']} ({status['id']}): {status['state']}, round {status['round']}",
        f"core-hours: {cost['spent']:.4g} spent, {cost['reserved']:.4g} reserved, {cost['left']:.4g} left "
        f"of {cost['budget']:.4g}",
        "runs: "
        + ", ".join(f"{number} {name}" for name, number in status["runs"].items() if number)
        + f"; {status['points']} points measured",
    ]
    if any(status["effort_runs"].values()):
        named = (f"{number} {name}" for name, number in status["effort_runs"].items() if number)
        lines.append("of these count effort: " + ", ".join(named))
    if status["effort"]:
        lines.append(_effort_line(status["effort"]))
    if status["note"]:
        lines.append(status["note"])
    jobs = status["jobs"]
    if jobs["runs_that_shared_one"]:
        line = f"jobs: {jobs['runs_that_shared_one']} measured runs shared one with others"
        if jobs["overhead_seconds"] is not None:
            line += (
                f"; alone, a run costs {jobs['overhead_seconds']:.3g} s beside its own time and waits "
                f"{jobs['wait_seconds']:.3g} s"
            )
        lines.append(line)
    if status["noise_percent"] is not None:
        lines.append(f"noise: repetitions deviate {status['noise_percent']:.1f} % from their mean")
    if status["stop_reason"]:
        lines.append(f"stop rule: {status['stop_reason']['rule']} ({status['stop_reason']['detail']})")
    else:
        lines.append(f"stop rules: {status['nearest_rule']}")
    if cost["unconfirmed"]:
        lines.append(
            f"{cost['unconfirmed']:.4g} of the core-hours spent are upper bounds: the scheduler did not say "
            "yet what those attempts cost"
        )
    lines += [
        f"node {item['node']} is used no more: {'; '.join(item['reasons'])}"
        for item in status["suspect_nodes"]
        if item["excluded"]
    ]
    lines += [f"given up: {item['run']}: {item['reason']}" for item in status["given_up"][:10]]
    parts: list[RenderableType] = [Text("\n".join(lines))]
    rows = [model for model in status["models"] if model["metric"] not in EFFORT] or status["models"]
    checks = status["validation"]
    large_rows = _large(rows, [_predicted(row) for row in rows])
    large_checks = _large(checks, [check["measured"] for check in checks])
    if large_rows:
        parts.append(models_table(large_rows))
    if large_checks:
        parts.append(validation_table(large_checks))
    if hidden := max(len(rows) - len(large_rows), len(checks) - len(large_checks)):
        parts.append(
            Text(
                f"not shown: {hidden} call paths below {100 * _SMALL:.0f} % of the largest value; "
                "all are in 'report' and 'status --json'"
            )
        )
    return Group(*parts)


def _predicted(model: dict[str, Any]) -> float | None:
    value: float | None = model["predictions"][0]["value"] if model["predictions"] else None
    return value


def _large(rows: Sequence[dict[str, Any]], values: Sequence[float | None]) -> list[dict[str, Any]]:
    """Return the rows a screen has place for: all, or those whose value is not small for their metric.

    A program may have hundreds of call paths (C++ under Score-P), few of which matter.
    """
    if len(rows) <= _ROWS or not any(values):
        return list(rows)
    largest: dict[str, float] = {}
    for row, value in zip(rows, values, strict=True):
        largest[row["metric"]] = max(largest.get(row["metric"], 0.0), value or 0.0)
    return [
        row
        for row, value in zip(rows, values, strict=True)
        if value is not None and value >= _SMALL * largest[row["metric"]]
    ]


def models_table(models: Sequence[dict[str, Any]]) -> Table:
    """Return a table of models, as `models_document.describe` gives them."""
    predicted = next((m["predictions"][0]["point"] for m in models if m["predictions"]), None)
    where = Point.of(predicted) if predicted else None
    table = Table(title="models", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("call path")
    table.add_column("metric")
    table.add_column("model", overflow="fold")
    table.add_column("SMAPE %", justify="right")
    if where is not None:
        table.add_column(f"at {where}", justify="right")
    for model in models:
        row = [label(model), model["metric"], shown(model), _figure(model["smape"], "{:.2f}")]
        if where is not None:
            row.append(interval(model["predictions"][0]) if model["predictions"] else "")
        table.add_row(*map(Text, row))
    if any(model["expression"] != model["normal_form"] for model in models):
        table.caption, table.caption_justify = CORRECTED, "left"
    return table


def validation_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return predicted against measured values at the evaluation point."""
    table = Table(
        title=f"validation at {Point.of(rows[0]['point'])}",
        title_justify="left",
        show_edge=False,
        pad_edge=False,
    )
    for column in ("call path", "metric"):
        table.add_column(column)
    for column in ("measured", "predicted", "error %"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            Text(row["callpath"]),
            row["metric"],
            _figure(row["measured"]),
            interval({"value": row["predicted"], "low": row["low"], "high": row["high"]}),
            _figure(row["error_percent"], "{:+.1f}"),
        )
    return table


def interval(prediction: dict[str, Any]) -> str:
    """Return a predicted value and its interval as text; a dash where the model says nothing."""
    if prediction["value"] is None:
        return "-"
    low, high = _figure(prediction["low"]), _figure(prediction["high"])
    return f"{_figure(prediction['value'])} [{low}, {high}]"


def _figure(value: float | None, form: str = "{:.4g}") -> str:
    return "-" if value is None else form.format(value)


def console() -> Console:
    """Return where tables are printed: in files and pipes wide enough not to fold models."""
    found = Console()
    return found if found.is_terminal or "COLUMNS" in os.environ else Console(width=_WIDTH)


def print_status(status: dict[str, Any]) -> None:
    """Print the document for a human."""
    console().print(render(status))
