"""The live view as a full screen: what `orchestrator.report.watch_document` says, cut to the terminal."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.table import Table
from rich.text import Text

from orchestrator.executors.base import DISK, QUEUE
from orchestrator.report.callpath_names import named
from orchestrator.report.metrics import wanted_of
from orchestrator.report.models_document import label, shown
from orchestrator.report.status_text import pace_line, runs_line, standing
from orchestrator.report.tables import interval, predicted
from orchestrator.report.wording import about, instant, moment, smape, uncertainty_line
from orchestrator.storage import iso
from orchestrator.types import Point
from orchestrator.units import hours_in, without_controls

_BAR = 30  # characters
_FLIGHT = ("in flight", "node", "state", "since", "for", "limit", "job")
_SPARED = ("job", "node", "limit", "since", "state")  # columns that a narrow terminal lacks, in this order
_BETWEEN = 2  # characters between columns
_QUIT = "   q quits"
_TITLE = "bold cyan"
_STATES = {"running": "green", "stopped": "bold", "paused": "yellow", "interrupted": "red"}
_TROUBLE = {QUEUE: "all jobs wait", DISK: "the disk is full: nothing is begun"}


def screen(document: Mapping[str, Any], width: int, height: int) -> RenderableType:
    """Return the view for a terminal of a size; sections that find no space show fewer lines."""
    head = _fitting(_head(document, width), width)
    left = max(0, height - len(head))
    modelled = wanted_of(document["models"], document["metrics"])
    flights, models, log = _shares(left, document["flying"] + 2, len(modelled) + 3)
    parts = [Layout(Group(*head), size=max(1, len(head)))]
    parts += [Layout(_flights(document, width, flights - 2), size=flights)] * (flights > 2)
    parts += [Layout(_models_table(document, models - 3), size=models)] * (models > 3)
    parts += [Layout(_log(document, width, log - 1), size=log)] * (log > 1)
    whole = Layout()
    whole.split_column(*parts)
    return whole


def waiting(what: str) -> RenderableType:
    """Return the view while a campaign cannot be read."""
    clock = datetime.now().astimezone().strftime("%H:%M:%S")
    return Text(f"{clock}  {what}\n\nlooking again; q quits", style="yellow")


def _shares(left: int, flights: int, models: int) -> tuple[int, int, int]:
    """Return lines for attempts in flight, models and the log: half, two thirds of the rest, the rest."""
    first = min(flights, max(left // 3, left - models - 8)) if flights > 2 else 0
    second = min(models, max((left - first) // 2, left - first - 10)) if models > 3 else 0
    return first, second, max(0, left - first - second)


def _head(document: Mapping[str, Any], width: int) -> list[Text]:
    state = standing(document)
    title = Text(f"{document['campaign']} ({document['id']})  ", style=_TITLE)
    title.append(state, style=_STATES.get(state, "yellow"))
    title.append(", rehearsal" * document["virtual"] + f"  round {document['round']}", style="default")
    if document["started"] is not None:
        since = f", {about(max(0.0, document['now'] - document['started']))} since the start"
        title.append(since * (len(title) + len(since) + len(_QUIT) <= width), style="default")
    title.append(_tail(width - len(title)), style="dim")
    lines = [title, _bar(document["cost"])]
    lines.append(Text(runs_line(document)))
    if document["stop_reason"]:
        lines.append(
            Text(f"stop rule: {document['stop_reason']['rule']} ({document['stop_reason']['detail']})")
        )
    if document["paused"]:
        lines.append(
            Text(f"paused: {document['paused']['cause']} ({document['paused']['detail']})", style="yellow")
        )
    for item in document["outages"]:
        what = _TROUBLE.get(item["what"], f"{item['what']} does not answer")
        lines.append(Text(f"{what} ({item['reason']})", style="red"))
    if document["state"] != "stopped":
        lines.append(Text(_next_round(document)))
        lines.append(Text(document["nearest_rule"] if document["pace"] is None else pace_line(document)))
    if document["uncertainty_percent"] is not None:
        lines.append(
            Text(uncertainty_line(document["uncertainty_percent"] / 100, document["uncertainty_targets"]))
        )
    return lines


def _tail(space: int) -> str:
    """Return the clock and how to quit, without the date or the clock where there is no space."""
    now = datetime.fromtimestamp(time.time()).astimezone()
    clocks = (now.strftime("   %Y-%m-%d %H:%M:%S"), now.strftime("   %H:%M:%S"))
    return next((clock + _QUIT for clock in clocks if len(clock) + len(_QUIT) <= space), _QUIT)


def _bar(cost: Mapping[str, Any]) -> Text:
    unit, budget = cost["shown_in"], cost["budget"] or 1.0
    spent = min(_BAR, round(_BAR * cost["spent"] / budget))
    reserved = min(_BAR - spent, round(_BAR * cost["reserved"] / budget))
    bar = Text("█" * spent, style="green")
    bar.append("▒" * reserved, style="yellow").append("·" * (_BAR - spent - reserved), style="dim")
    figures = (hours_in(cost[name], unit) for name in ("spent", "reserved", "left", "budget"))
    text = "  {} spent, {} reserved, {} left of {} ".format(*figures) + unit
    return bar.append(text, style="default")


def _next_round(document: Mapping[str, Any]) -> str:
    seconds, open_runs = document["next_round_seconds"], document["flying"] + document["waiting"]
    queue = f"{document['flying']} in flight, {document['waiting']} waiting"
    if document["waiting"]:
        queue += f", next {document['queue'][0]}"
    if not open_runs:
        return "next round: models are fitted and points chosen"
    if seconds is None:
        when = "not known yet (no run like these was measured)"
    else:
        when = f"in about {about(seconds)}" if seconds >= 1 else "at any moment"
    return f"end of this round: {when}; {queue}"


def _flights(document: Mapping[str, Any], width: int, most: int) -> RenderableType:
    hidden = document["flying"] - most
    items = document["in_flight"][: most if hidden <= 0 else most - 1]
    rows = [_flight(item, document["now"], document["virtual"]) for item in items]
    columns = _narrowed({name: [row[name] for row in rows] for name in _FLIGHT}, width)
    table = Table(show_edge=False, pad_edge=False, expand=True, header_style="bold", box=None)
    for name in columns:
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*(Text(row[name]) for name in columns))
    if hidden <= 0:
        return table
    return Group(table, Text(f"and {hidden + 1} more: orchestrator runs DIR --state in-flight", style="dim"))


def _narrowed(columns: dict[str, list[str]], width: int) -> list[str]:
    """Return the columns for which there is space."""
    shown = list(columns)

    def needed() -> int:
        wide = [max(map(len, (name, *columns[name]))) for name in shown]
        return sum(wide) + _BETWEEN * (len(wide) - 1)

    for name in _SPARED:
        if needed() <= width:
            break
        shown.remove(name)
    return shown


def _flight(item: Mapping[str, Any], now: float, virtual: bool) -> dict[str, str]:
    started = item["started"]
    began = item["since"] if started is None else datetime.fromisoformat(started).timestamp()
    cells = (
        f"{item['run']}/attempt-{item['attempt']}",
        item["node"] or "-",
        item["state"],
        _time(iso(began), virtual),
        about(max(0.0, now - began)),
        about(item["limit"]),
        item["job"],
    )
    return dict(zip(_FLIGHT, cells, strict=True))


def _time(text: str, virtual: bool) -> str:
    """Return the time of day of an instant; of a rehearsal, how long after its start that is."""
    return instant(text, virtual) if virtual else moment(text)[11:]


def _models_table(document: Mapping[str, Any], most: int) -> RenderableType:
    """Return the call paths with the largest predictions first, one line each."""
    wanted = wanted_of(document["models"], document["metrics"])
    models = sorted(wanted, key=lambda model: -(predicted(model) or 0.0))
    hidden = len(models) - most
    table = Table(show_edge=False, pad_edge=False, expand=True, header_style="bold", box=None)
    places = [model["predictions"][0]["point"] for model in models if model["predictions"]]
    table.add_column("call path", no_wrap=True, overflow="ellipsis", ratio=3)
    table.add_column("model", no_wrap=True, overflow="ellipsis", ratio=4)
    table.add_column("SMAPE %", justify="right", no_wrap=True)
    if places:
        table.add_column(f"at {Point.of(places[0])}", justify="right", no_wrap=True)
    for model in named(models[: most if hidden <= 0 else most - 1]):
        cells = [f"{label(model)} {model['metric']}", shown(model), smape(model["smape"])]
        if places:
            cells.append(interval(model["predictions"][0]) if model["predictions"] else "")
        table.add_row(*map(Text, cells))
    outdated = document["models_outdated"]
    title = Text(f"models: {outdated}" if outdated else "models of the last round", style=_TITLE)
    more = [Text(f"and {hidden + 1} more: orchestrator status DIR", style="dim")] if hidden > 0 else []
    return Group(title, table, *more)


def _log(document: Mapping[str, Any], width: int, most: int) -> RenderableType:
    """Return the last decisions and events, whole lines wrapped at words, the newest at the end."""
    lines: list[Text] = []
    for item in reversed(document["events"][-most:] if most else []):
        when, text = _time(item["time"], document["virtual"]), without_controls(item["text"])
        wrapped = _fitting([Text(f"{when}  {text}")], width)
        if len(lines) + len(wrapped) > most:
            break
        lines = [*wrapped, *lines]
    return Group(Text("what happened", style=_TITLE), *lines)


def _fitting(lines: Sequence[Text], width: int) -> list[Text]:
    """Return lines wrapped at words."""
    console = Console(width=max(1, width))
    return [part for line in lines for part in line.wrap(console, max(1, width))]
