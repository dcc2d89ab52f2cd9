"""The runs of a campaign as rows: what each is, where it stands, what it cost; reads state only."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

from orchestrator import expressions
from orchestrator.errors import CampaignError
from orchestrator.journal.state import InFlight, RunState, RunStatus, State, is_rehearsal
from orchestrator.report.tables import titled
from orchestrator.report.wording import instant, moment
from orchestrator.resources import core_hours
from orchestrator.storage import iso
from orchestrator.types import Run, format_value, order_of
from orchestrator.units import campaign_unit, did_you_mean, hours_in

FIGURES = ("repetition", "attempts", "elapsed", "core_hours")
"""Columns that expressions may use beside the parameters."""
COLUMNS = (
    "run",
    "kind",
    "repetition",
    "status",
    "attempts",
    "elapsed",
    "core_hours",
    "node",
    "began",
    "reason",
)
_REASON = "reason"
_SPARED = ("node", "began", _REASON)  # left out of a narrow table, in this order
_TEXTS = ("run", "state", "node", "began")
_LEAST = 20  # characters of a line of a reason
_BETWEEN = 3  # characters between columns


def rows(state: State) -> list[dict[str, Any]]:
    """Return one JSON-ready row per run: by point, kind and repetition.

    ``run`` (its id), ``point``, ``kind``, ``repetition``, ``status``, ``attempts``, ``elapsed`` (seconds of
    the accepted attempt), ``core_hours`` of all attempts, ``node`` (where it ran on one only), ``began``
    (UTC, ISO 8601; of an attempt in flight, when it was submitted) and ``reason``: why it failed, was
    skipped, given up or discarded.
    """
    flights = {attempt.run: flight for attempt, flight in state.in_flight.items()}
    ordered = sorted(state.runs, key=lambda run: (run.point.order, run.kind, run.repetition))
    return [_row(run, state.runs[run], flights.get(run)) for run in ordered]


def _row(run: Run, item: RunState, flight: InFlight | None) -> dict[str, Any]:
    began = item.began if flight is None else flight.since
    return {
        "run": run.id,
        "point": run.point.as_dict(),
        "kind": run.kind,
        "repetition": run.repetition,
        "status": str(item.status),
        "attempts": item.attempts,
        "elapsed": item.elapsed if item.accepted is not None else None,
        "core_hours": core_hours(item.cost),
        "node": item.node,
        "began": None if began is None else iso(began),
        "reason": "" if item.status is RunStatus.MEASURED else item.reason,
    }


def chosen(
    table: Sequence[dict[str, Any]],
    *,
    states: Sequence[str],
    kind: str | None,
    where: str | None,
    runs: Collection[str] | None,
) -> list[dict[str, Any]]:
    """Return the rows that fulfil every condition.

    Parameters
    ----------
    table
        From `rows`.
    states
        Any of these.
    kind
        ``time`` or ``effort``.
    where
        An expression of the parameters and of `FIGURES`; what has no value is 0.
    runs
        Ids of runs: only these.

    Raises
    ------
    ExpressionError
        For an expression that is malformed, or has an unknown name.
    """
    tests: list[Callable[[dict[str, Any]], bool]] = []
    if states:
        tests.append(lambda row: row["status"] in states)
    if kind is not None:
        tests.append(lambda row: row["kind"] == kind)
    if runs is not None:
        tests.append(lambda row: row["run"] in runs)
    if where is not None and table:
        first = table[0]["point"]
        texts = [name for name, value in first.items() if isinstance(value, str)]
        condition = expressions.parse(where, (*first, *FIGURES), texts)
        tests.append(lambda row: bool(condition(_values(row))))
    return [row for row in table if all(test(row) for test in tests)]


def _values(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: row[name] or 0 for name in FIGURES}, **row["point"]}


def ordered(table: Sequence[dict[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows, sorted by columns or parameters; a key with ``-`` before it from large to small.

    Rows without a value come last.

    Raises
    ------
    CampaignError
        For a key that is no column.
    """
    rows = list(table)
    for key in reversed(keys):
        name, falling = key.removeprefix("-"), key.startswith("-")
        known = [*COLUMNS, *(table[0]["point"] if table else ())]
        if table and name not in known:
            raise CampaignError(f"runs cannot be sorted by {name!r}: {did_you_mean(name, known)}")
        with_value = [row for row in rows if _cell(row, name) not in (None, "")]
        without = [row for row in rows if _cell(row, name) in (None, "")]
        with_value.sort(key=lambda row: order_of(_cell(row, name)), reverse=falling)
        rows = [*with_value, *without]
    return rows


def _cell(row: Mapping[str, Any], name: str) -> Any:
    return row[name] if name in row else row["point"].get(name)


def to_csv(table: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as CSV, one column per parameter."""
    stream = io.StringIO()
    names = list(table[0]["point"]) if table else []
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([COLUMNS[0], *names, *COLUMNS[1:]])
    for row in table:
        cells = (row[name] for name in COLUMNS[1:])
        writer.writerow(
            [row["run"], *row["point"].values(), *("" if cell is None else cell for cell in cells)]
        )
    return stream.getvalue()


def to_table(table: Sequence[Mapping[str, Any]], campaign: Mapping[str, Any], width: int) -> Table:
    """Return the rows for a terminal of a width, costs in the unit of the campaign's budget.

    Figures are never cut. Columns in which nothing stands are left out, and what `_SPARED` names where there
    is no space for it; a line below says so.
    """
    columns = _columns(table, campaign)
    spared = [name for name in _SPARED if name in columns]
    left_out: list[str] = []
    while spared and _width(columns) > width:
        left_out.append(spared.pop(0))
        del columns[left_out[-1]]
    shown = titled()
    for name, cells in columns.items():
        if name == _REASON:
            shown.add_column(name, overflow="fold")
        else:
            side: Literal["left", "right"] = "left" if name in _TEXTS else "right"
            shown.add_column(name, justify=side, no_wrap=True, min_width=_longest(name, cells))
    for row in zip(*columns.values(), strict=True):
        shown.add_row(*map(Text, row))
    if left_out:
        shown.caption = f"no space for: {', '.join(left_out)}; --csv has every column"
    return shown


def _columns(table: Sequence[Mapping[str, Any]], campaign: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the cells of every column by its heading, without columns in which nothing stands."""
    unit = campaign_unit(campaign)
    parameters = list(table[0]["point"]) if table else []
    columns = {name: [format_value(row["point"][name]) for row in table] for name in parameters}
    columns["run"] = [f"{row['kind']}-{row['repetition']}" for row in table]
    columns["state"] = [row["status"] for row in table]
    columns["attempts"] = [str(row["attempts"]) for row in table]
    columns["elapsed s"] = ["" if row["elapsed"] is None else f"{row['elapsed']:.4g}" for row in table]
    columns[unit] = [hours_in(row["core_hours"], unit) for row in table]
    further = {
        "node": [row["node"] for row in table],
        "began": [_began(row["began"], is_rehearsal(campaign)) for row in table],
        _REASON: [row["reason"] for row in table],
    }
    return {**columns, **{name: cells for name, cells in further.items() if any(cells)}}


def _began(text: str | None, virtual: bool) -> str:
    """Return when an attempt began, to the minute; in a rehearsal, how long after its start."""
    if text is None:
        return ""
    return instant(text, virtual) if virtual else moment(text)[5:16]


def _width(columns: Mapping[str, Sequence[str]]) -> int:
    """Return the least width of a table: reasons are wrapped, nothing else is."""
    wide = [
        min(_longest(name, cells), _LEAST) if name == _REASON else _longest(name, cells)
        for name, cells in columns.items()
    ]
    return sum(wide) + _BETWEEN * (len(wide) - 1)


def _longest(name: str, cells: Sequence[str]) -> int:
    return max(map(len, (name, *cells)))
