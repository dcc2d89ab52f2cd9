"""Tables of models, of what they predict and of what was found against it, and where tables are printed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from orchestrator.report.callpath_names import named
from orchestrator.report.metrics import with_unit
from orchestrator.report.models_document import is_inside, label, legend, run_ends, shown
from orchestrator.report.wording import smape
from orchestrator.types import Point, assigned
from orchestrator.units import count, listed

_NAMED = 4  # call paths, of those whose times are added

WIDTH = 120
"""Characters of a line in files and pipes."""
ANSWERS = {True: "yes", False: "no", None: "-"}
"""Whether a value lies in an interval; None without one."""


def console(highlight: bool = True) -> Console:
    """Return where tables are printed: in files and pipes wide enough not to fold models.

    Brackets are no markup there: names of columns, call paths and files have them.
    """
    found = Console(emoji=False, markup=False, highlight=highlight)
    if found.is_terminal or "COLUMNS" in os.environ:
        return found
    return Console(width=WIDTH, emoji=False, markup=False, highlight=highlight)


def titled(title: str | None = None, texts: Iterable[str] = (), figures: Iterable[str] = ()) -> Table:
    """Return an empty table without a frame; its title, if any, and its caption stand at the left.

    ``texts`` name columns that are folded where there is no space for them, ``figures`` those at their right.
    """
    columns = [*(Column(name, overflow="fold") for name in texts)]
    columns += [Column(name, justify="right") for name in figures]
    return Table(
        *columns, title=title, title_justify="left", caption_justify="left", show_edge=False, pad_edge=False
    )


def models_table(models: Sequence[dict[str, Any]], known: Mapping[str, str] | None = None) -> Table:
    """Return a table of models, as `models_document.describe` gives them; ``known``: units by metric."""
    predicted = next((m["predictions"][0]["point"] for m in models if m["predictions"]), None)
    where = Point.of(predicted) if predicted else None
    table = titled("models")
    table.add_column("call path", overflow="fold")
    table.add_column("metric")
    table.add_column("model", overflow="fold")
    table.add_column("SMAPE %", justify="right")
    if where is not None:
        table.add_column(f"at {where}", justify="right")
    for model in named(models):
        row = [label(model), with_unit(model["metric"], known), shown(model), smape(model["smape"])]
        if where is not None:
            row.append(interval(model["predictions"][0]) if model["predictions"] else "")
        table.add_row(*map(Text, row))
    if explained := legend(models):
        table.caption = explained
    return table


def intervals_table(models: Sequence[dict[str, Any]], runs: int) -> Table:
    """Return a table of intervals at several levels; ``measured`` ones are of the mean of so many runs."""
    table = titled("intervals")
    for column in ("call path", "metric", "at", "of"):
        table.add_column(column)
    places = [prediction for model in models for prediction in model["predictions"]]
    for level in dict.fromkeys(item["level"] for place in places for item in place["intervals"]):
        table.add_column(f"{level:g} %", justify="right")
    further = "one further run" if runs == 1 else f"the mean of {runs} further runs"
    for model in named(models):
        for prediction in model["predictions"]:
            what = (label(model), with_unit(model["metric"]), str(Point.of(prediction["point"])))
            for kind, shown_kind in (("mean", "the true mean"), ("measured", further)):
                found = (item for item in prediction["intervals"] if item["kind"] == kind)
                ends = (f"[{_figure(item['low'])}, {_figure(item['high'])}]" for item in found)
                table.add_row(*map(Text, (*what, shown_kind, *ends)))
                what = ("", "", "")
    return table


def validation_table(rows: Sequence[dict[str, Any]], known: Mapping[str, str] | None = None) -> Table:
    """Return predicted against measured values of one run at the evaluation point, and whether they agree."""
    cells = [
        (
            row["callpath"],
            with_unit(row["metric"], known),
            _figure(row["measured"]),
            predicted_interval(row),
            _figure(row["error_percent"], "{:+.1f}"),
            inside(row),
        )
        for row in named(rows)
    ]
    title = f"validation at {Point.of(rows[0]['point'])}"
    return against_table(title, ("measured", "predicted, one run", "error %"), "inside", cells)


def against_table(title: str, figures: Sequence[str], agreement: str, rows: Iterable[Sequence[str]]) -> Table:
    """Return predictions against what is known; three ``figures`` and ``agreement`` name the columns."""
    table = titled(title)
    for column in ("call path", "metric"):
        table.add_column(column)
    for column in figures:
        table.add_column(column, justify="right")
    table.add_column(agreement)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def inside(row: Mapping[str, Any]) -> str:
    """Return whether a measured value lies in the interval predicted for a run; a dash without one."""
    return ANSWERS[is_inside(row)]


def fastest_table(fastest: Mapping[str, Any]) -> Table:
    """Return the fastest measured configurations, with what the models give there.

    They are from `orchestrator.control.fastest`.
    """
    title = f"fastest measured configurations, of {count(fastest['points'], 'point')}"
    table = titled(title, ["configuration"], ["measured s", "runs", "predicted s"])
    for row in fastest["measured"]:
        cells = (configuration(row), _figure(row["seconds"]), str(row["runs"]), predicted_interval(row))
        table.add_row(*map(Text, cells))
    return table


def fastest_lines(fastest: Mapping[str, Any]) -> list[str]:
    """Return what is compared, which configuration is predicted to be fastest, and which others may be."""
    row = fastest["predicted"]
    if row is None:
        return []
    measured = "not measured yet" if row["seconds"] is None else f"measured {_figure(row['seconds'])} s"
    lines = [
        f"fastest by prediction, of {count(fastest['candidates'], 'point')}: {configuration(row)}: "
        f"{predicted_interval(row)} s, {measured}"
    ]
    alike = fastest.get("alike")  # not of models that an earlier version published
    if alike and alike["points"]:
        common = alike["common"]
        shared = f"; all of these have {configuration({'point': common})}" if common else ""
        others = count(alike["points"], "other point")
        lines.append(
            f"maybe as fast: {others}, with intervals that begin below {_figure(row['high'])} s{shared}"
        )
    return [*lines, *_compared(fastest.get("callpaths", ()))]


def _compared(callpaths: Sequence[str]) -> list[str]:
    """Return whose times are those of a configuration: of several call paths, they may overlap."""
    if not callpaths:
        return []
    if len(callpaths) == 1:
        return [f"compared: the time of {callpaths[0]}"]
    return [
        f"compared: the sum of the times of {listed(callpaths, _NAMED)}; if only one of them counts, call "
        "it main in program.output"
    ]


def configuration(row: Mapping[str, Any]) -> str:
    """Return the parameters of a configuration as text."""
    return assigned(row["point"].items())


def interval(prediction: dict[str, Any]) -> str:
    """Return a predicted value and its interval as text; a dash where the model says nothing."""
    if prediction["value"] is None:
        return "-"
    low, high = _figure(prediction["low"]), _figure(prediction["high"])
    return f"{_figure(prediction['value'])} [{low}, {high}]"


def predicted_interval(row: Mapping[str, Any]) -> str:
    """Return what is predicted beside a known value, as text: of a single run, where a row has that."""
    low, high = run_ends(row)
    return interval({"value": row["predicted"], "low": low, "high": high})


def _figure(value: float | None, form: str = "{:.4g}") -> str:
    return "-" if value is None else form.format(value)


def predicted(model: Mapping[str, Any]) -> float | None:
    """Return what a described model predicts at its first point; None without any."""
    value: float | None = model["predictions"][0]["value"] if model["predictions"] else None
    return value
