"""A campaign and its models as sections of HTML, for notebooks and `orchestrator serve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from orchestrator.report import html_parts
from orchestrator.report.models_document import label, legend, shown
from orchestrator.report.status_text import standing_lines
from orchestrator.report.tables import configuration, fastest_lines, inside, interval, predicted_interval
from orchestrator.report.wording import smape
from orchestrator.types import Point


def status_section(status: Mapping[str, Any]) -> str:
    """Return where a campaign stands, its models and its validation."""
    return "\n".join(
        [
            f"<p>{'<br>'.join(map(escape, standing_lines(status)))}</p>",
            models_section(status["models"]),
            _fastest(status["fastest"]),
            _validation(status["validation"]),
        ]
    )


def models_section(described: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of models, as `models_document.describe` gives them, with their notes."""
    if not described:
        return "<p>No models yet.</p>"
    predicted = next((item["predictions"][0]["point"] for item in described if item["predictions"]), None)
    heads = ["call path", "metric", "model", "SMAPE %"]
    heads += [f"at {Point.of(predicted)}"] if predicted else []
    rows = []
    for item in described:
        row: list[object] = [
            label(item),
            item["metric"],
            shown(item),
            html_parts.Number(smape(item["smape"])),
        ]
        if predicted:
            row.append(interval(item["predictions"][0]) if item["predictions"] else "")
        rows.append(row)
    notes = "".join(
        f'<p class="note">{escape(label(item))} {escape(item["metric"])}: {escape(note)}</p>'
        for item in described
        for note in item["notes"]
    )
    explained = "".join(f'<p class="note">{escape(line)}</p>' for line in legend(described).splitlines())
    return html_parts.table(heads, rows) + explained + notes


def _validation(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    cells = [
        (
            row["callpath"],
            row["metric"],
            row["measured"],
            predicted_interval(row),
            None if row["error_percent"] is None else html_parts.Number(f"{row['error_percent']:+.1f}"),
            inside(row),
        )
        for row in rows
    ]
    heads = ("call path", "metric", "measured", "predicted, one run", "error %", "inside")
    return f"<h2>Validation at {escape(str(Point.of(rows[0]['point'])))}</h2>" + html_parts.table(
        heads, cells
    )


def _fastest(fastest: Mapping[str, Any] | None) -> str:
    if not fastest:
        return ""
    rows = [
        (
            configuration(row),
            row["seconds"],
            row["runs"],
            predicted_interval(row),
        )
        for row in fastest["measured"]
    ]
    heads = ("configuration", "measured s", "runs", "predicted s")
    lines = "".join(f"<p>{escape(line)}</p>" for line in fastest_lines(fastest))
    return "<h2>Fastest measured configurations</h2>" + html_parts.table(heads, rows) + lines
