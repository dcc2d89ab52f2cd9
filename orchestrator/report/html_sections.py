"""A campaign and its models as sections of HTML, for notebooks and `orchestrator serve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from orchestrator.report import html_parts
from orchestrator.report.models_document import label, legend, shown
from orchestrator.report.status_text import kept_back, reference_line, standing
from orchestrator.report.tables import configuration, fastest_lines, inside, interval, run_interval
from orchestrator.report.wording import measure, place, smape
from orchestrator.types import Point
from orchestrator.units import count, hours_in, uncertainty


def status_section(status: Mapping[str, Any]) -> str:
    """Return where a campaign stands, its models and its validation."""
    return "\n".join(
        [
            f"<p><b>campaign {escape(status['campaign'])}</b></p>",
            _summary(status),
            models_section(status["models"]),
            _fastest(status["fastest"]),
            _validation(status["validation"]),
        ]
    )


def _summary(status: Mapping[str, Any]) -> str:
    cost, unit, stop = status["cost"], status["cost"]["shown_in"], status["stop_reason"]

    def in_its_unit(key: str) -> str:
        return hours_in(cost[key], unit)

    lines = [
        f"{standing(status)}, {count(status['round'], 'round')}, {count(status['points'], 'point')} measured",
        f"{in_its_unit('spent')} of {in_its_unit('budget')} {unit} spent, {in_its_unit('left')} left"
        f"{kept_back(cost)}",
        ", ".join(f"{number} {name}" for name, number in status["runs"].items() if number) or "no runs yet",
        f"stop rule: {stop['rule']} ({stop['detail']})" if stop else status["nearest_rule"],
    ]
    if status["noise_percent"] is not None:
        lines.append(f"repetitions deviate {status['noise_percent']:.1f} % from their mean")
    lines += [f"{kind}: {text}" for kind, text in status["machine"].items()]
    lines += [f"warning: {text}" for text in status["executables"]]
    lines += [reference_line(status)] if status["reference"] else []
    if status["uncertainty_percent"] is not None:
        lines.append(
            f"uncertainty {place(status['uncertainty_targets'])}: "
            f"{uncertainty(status['uncertainty_percent'] / 100)} ({measure(status['uncertainty_targets'])})"
        )
    return "<p>" + "<br>".join(map(escape, lines)) + "</p>"


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
            run_interval(row),
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
            interval({"value": row["predicted"], "low": row["low"], "high": row["high"]}),
        )
        for row in fastest["measured"]
    ]
    heads = ("configuration", "measured s", "runs", "predicted s")
    lines = "".join(f"<p>{escape(line)}</p>" for line in fastest_lines(fastest))
    return "<h2>Fastest measured configurations</h2>" + html_parts.table(heads, rows) + lines
