"""One self-contained HTML file about a campaign: what it did, cost and found. Reads state only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from orchestrator.models.base import Model, holds_at
from orchestrator.report import pages
from orchestrator.report.metrics import meanings
from orchestrator.report.models_document import CORRECTED, label, shown
from orchestrator.report.status_text import configuration, fastest_lines, interval, reference_line, standing
from orchestrator.report.wording import count, measure, place, smape, uncertainty
from orchestrator.types import Measurement, Measurements, Point
from orchestrator.units import hours_in

if TYPE_CHECKING:  # drawing is expensive to import, and only `page` draws
    from matplotlib.figure import Figure

    from orchestrator.models.scaling import Study

_MOST_FIGURES = 24  # call paths with a figure, largest first
_MOST_SPEEDUPS = 8  # of those with one of their speedup


def page(
    status: Mapping[str, Any],
    models: Sequence[Model],
    known: Measurements,
    point: Point | None,
    spending: Figure | None,
    study: Study | None = None,
) -> str:
    """Return the page.

    Parameters
    ----------
    status
        The document of `orchestrator.report.status`.
    models, known
        The models and the measurements they were fitted to.
    point
        The evaluation point.
    spending
        A figure of what was spent over time.
    study
        How runs on different numbers of processes are compared; None where no parameter counts them.
    """
    parts = [
        f"<h1>Campaign {escape(status['campaign'])}</h1>",
        _summary(status),
        pages.image(spending, f"{status['cost']['shown_in']} over time") if spending is not None else "",
        "<h2>Models</h2>",
        *(f"<p>{escape(text)}</p>" for text in meanings(status["metrics"])),
        models_section(status["models"]),
        *(f"<p>contradiction: {escape(item['note'])}</p>" for item in status["contradictions"]),
        _fastest(status["fastest"]),
        _validation(status["validation"]),
        "" if status["no_validation"] is None else f"<p>{escape(status['no_validation'])}</p>",
        _given_up(status["given_up"]),
        "<h2>Model and measurement</h2>",
        '<p class="note">Points are single runs; the line is the model, the band its 90 % interval, '
        "both up to the evaluation point. Right: all points that the model is for.</p>",
        *_pictures(models, known, point),
        *_speedups(models, known, point, study),
        "<h2>Last round</h2>",
        pages.table(
            ("run", "status", "why"),
            [(item["run"], item["status"], item["reason"]) for item in status["last_round"]],
        ),
    ]
    return pages.document(status["campaign"], parts)


def status_section(status: Mapping[str, Any]) -> str:
    """Return where a campaign stands, its models and its validation, for a notebook."""
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
        f"{in_its_unit('spent')} of {in_its_unit('budget')} {unit} spent, {in_its_unit('left')} left",
        ", ".join(f"{number} {name}" for name, number in status["runs"].items() if number) or "no runs yet",
        f"stop rule: {stop['rule']} ({stop['detail']})" if stop else status["nearest_rule"],
    ]
    if status["noise_percent"] is not None:
        lines.append(f"repetitions deviate {status['noise_percent']:.1f} % from their mean")
    lines += [f"{kind}: {text}" for kind, text in status["machine"].items()]
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
        row: list[object] = [label(item), item["metric"], shown(item), pages.Number(smape(item["smape"]))]
        if predicted:
            row.append(interval(item["predictions"][0]) if item["predictions"] else "")
        rows.append(row)
    notes = "".join(
        f'<p class="note">{escape(label(item))} {escape(item["metric"])}: {escape(note)}</p>'
        for item in described
        for note in item["notes"]
    )
    corrected = any(item["expression"] != item["normal_form"] for item in described)
    legend = f'<p class="note">{escape(CORRECTED)}</p>' if corrected else ""
    return pages.table(heads, rows) + legend + notes


def _validation(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    cells = [
        (
            row["callpath"],
            row["metric"],
            row["measured"],
            interval({"value": row["predicted"], "low": row["low"], "high": row["high"]}),
            None if row["error_percent"] is None else pages.Number(f"{row['error_percent']:+.1f}"),
        )
        for row in rows
    ]
    heads = ("call path", "metric", "measured", "predicted", "error %")
    return f"<h2>Validation at {escape(str(Point.of(rows[0]['point'])))}</h2>" + pages.table(heads, cells)


def _fastest(found: Mapping[str, Any] | None) -> str:
    if not found:
        return ""
    rows = [
        (
            configuration(row),
            row["seconds"],
            row["runs"],
            interval({"value": row["predicted"], "low": row["low"], "high": row["high"]}),
        )
        for row in found["measured"]
    ]
    heads = ("configuration", "measured s", "runs", "predicted s")
    lines = "".join(f"<p>{escape(line)}</p>" for line in fastest_lines(found))
    return "<h2>Fastest measured configurations</h2>" + pages.table(heads, rows) + lines


def _given_up(items: Sequence[Mapping[str, Any]]) -> str:
    if not items:
        return ""
    return "<h2>Given up</h2>" + pages.table(
        ("run", "reason"), [(item["run"], item["reason"]) for item in items]
    )


def _speedups(
    models: Sequence[Model], known: Measurements, point: Point | None, study: Study | None
) -> list[str]:
    """Return speedup and efficiency of the call paths with the largest times."""
    from orchestrator.models.scaling import corners, has_speedup

    pairs = [pair for pair in _largest_first(models, known) if has_speedup(pair[0])]
    if study is None or not pairs:
        return []
    from orchestrator.report import scaling_document, scaling_figures

    points, target = list(corners(known)) if point is None else [point], scaling_document.DEFAULT_TARGET
    why = f" ({study.reason})" if study.reason else ""
    blocks = [
        "<h2>Speedup and efficiency</h2>",
        f'<p class="note">{escape(study.text)}{escape(why)}. Points are measured, the line is the model, the '
        "band its 90 % interval. Right: the time of a run against its core-hours.</p>",
    ]
    for model, item in pairs[:_MOST_SPEEDUPS]:
        described = {"callpath": model.callpath, "category": dict(model.category), "metric": model.metric}
        for there in [there for there in points if holds_at(model, there)][:1]:
            figure = scaling_figures.speedup_figure(model, item, study, there, target)
            [found] = scaling_document.describe(model, study, [there], target)
            said = "".join(f"<p>{escape(text)}</p>" for text in scaling_document.sentences(described, found))
            blocks.append(f"<h3>{escape(label(described))} <small>{escape(model.metric)}</small></h3>")
            blocks.append(pages.image(figure, f"speedup of {label(described)}") + said)
    return blocks


def _pictures(models: Sequence[Model], known: Measurements, point: Point | None) -> list[str]:
    from orchestrator.report import figures

    pairs = _largest_first(models, known)
    blocks = []
    for model, item in pairs[:_MOST_FIGURES]:
        name = label({"callpath": model.callpath, "category": dict(model.category)})
        heading = f"<h3>{escape(name)} <small>{escape(model.metric)}</small></h3>"
        picture = pages.image(figures.model_figure(model, item, point), f"{name} {model.metric}")
        blocks.append(f"{heading}<p><code>{escape(model.expression)}</code></p>{picture}")
    if (left := len(pairs) - _MOST_FIGURES) > 0:
        verb = "is" if left == 1 else "are"
        blocks.append(f'<p class="note">{count(left, "smaller call path")} {verb} not drawn.</p>')
    return blocks


def _largest_first(models: Sequence[Model], known: Measurements) -> list[tuple[Model, Measurement]]:
    """Return models with what they were fitted to, those with the largest values first."""
    measured = {(item.callpath, item.metric): item for item in known.items}
    pairs = [
        (model, measured[model.callpath, model.metric])
        for model in models
        if (model.callpath, model.metric) in measured
    ]
    return sorted(pairs, key=lambda pair: -_largest(*pair))


def _largest(model: Model, item: Measurement) -> float:
    """Return the largest value at the points for which the model holds."""
    return max((max(values) for point, values in item.values.items() if holds_at(model, point)), default=0.0)
