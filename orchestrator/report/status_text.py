"""Where a campaign stands, as text and tables for humans."""

from __future__ import annotations

import io
import shlex
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from orchestrator.journal.setbacks import alike
from orchestrator.journal.state import StopReason
from orchestrator.policy import failing
from orchestrator.report import advice
from orchestrator.report.extrapolation import steep
from orchestrator.report.metrics import meanings, units, wanted_of
from orchestrator.report.models_document import label
from orchestrator.report.tables import (
    WIDTH,
    console,
    fastest_lines,
    fastest_table,
    models_table,
    predicted,
    validation_table,
)
from orchestrator.report.wording import (
    REHEARSAL,
    about,
    discarded_lines,
    instant,
    moment,
    outage,
    point_of,
    uncertainty_line,
)
from orchestrator.storage import shortage
from orchestrator.types import Point
from orchestrator.units import count, hours_in, plain, uncertainty

# Rows of which a table shows all, and the share of the largest value below which longer ones leave rows out.
_ROWS = 30
_REASONS = 5  # of the last round's choices; more of them are only counted
_GIVEN_UP = 5  # causes for which runs were given up; the log has all runs
_SMALL = 0.01


def render(status: Mapping[str, Any], directory: Path | None = None) -> RenderableType:
    """Return the document as text and tables; with the directory it says how to continue."""
    parts: list[RenderableType] = [Text("\n".join(standing_lines(status, directory)))]
    rows = wanted_of(status["models"], status["metrics"])
    checks = status["validation"]
    large_rows = _large(rows, [predicted(row) for row in rows])
    large_checks = _large(checks, [check["measured"] for check in checks])
    if status["models_outdated"] is not None:
        parts.append(Text(_outdated_line(status, directory)))
    elif status["points"] and not status["models"]:
        parts.append(Text(f"no models: none could be fitted; why: orchestrator model {_place(directory)}"))
    if large_rows:
        parts += [Text(line) for line in meanings(status["metrics"])]
        parts.append(models_table(large_rows, units(status["metrics"])))
        notes = steep(large_rows, status["measured_values"])
        if lines := [*_left_out_lines(large_rows), *(f"note: {text}" for text in notes)]:
            parts.append(Text("\n".join(lines)))
    if status["fastest"]:
        parts.append(fastest_table(status["fastest"]))
        parts += [Text(line) for line in fastest_lines(status["fastest"])]
    if status["contradictions"]:
        notes = [f"contradiction: {item['note']}" for item in status["contradictions"]]
        parts.append(Text("\n".join(_first(notes, "contradiction"))))
    if large_checks:
        parts.append(validation_table(large_checks, units(status["metrics"])))
    if hidden := max(len(rows) - len(large_rows), len(checks) - len(large_checks)):
        parts.append(
            Text(
                f"not shown: {count(hidden, 'call path')} below {100 * _SMALL:.0f} % of the largest value; "
                "all are in 'report' and 'status --json'"
            )
        )
    return Group(*parts)


def standing_lines(status: Mapping[str, Any], directory: Path | None = None) -> list[str]:
    """Return where the campaign stands, without its models; with the directory also how to continue."""
    return [
        *_progress_lines(status),
        *_stop_lines(status, directory),
        *_controller_lines(status, directory),
        *_reason_lines(status["last_round"]),
        *_loss_lines(status),
    ]


def _outdated_line(status: Mapping[str, Any], directory: Path | None) -> str:
    """Return of what the models are, or why there are none, and how to have those of now."""
    what = "models" if status["models"] else "no models"
    fit = f"orchestrator status {_place(directory)} --fit"
    return f"{what}: {status['models_outdated']}; to fit them now: {fit}"


def _place(directory: Path | None) -> str:
    """Return the campaign directory as an argument of a command."""
    return "DIR" if directory is None else shlex.quote(str(directory))


def _progress_lines(status: Mapping[str, Any]) -> list[str]:
    """Return how far the campaign is, and what was learned beside the models."""
    cost, unit = status["cost"], status["cost"]["shown_in"]
    spent, reserved, left, budget = (
        hours_in(cost[key], unit) for key in ("spent", "reserved", "left", "budget")
    )
    kept = _kept_back(cost)
    lines = [
        f"campaign {status['campaign']} ({status['id']}): {standing(status)}, round {status['round']}",
        *[REHEARSAL] * bool(status["virtual"]),
        f"{unit}: {spent} spent, {reserved} reserved, {left} left of {budget}{kept}",
        runs_line(status),
    ]
    if any(status["effort_runs"].values()):
        lines.append(f"of these count effort: {_numbers(status['effort_runs'])}")
    if status["effort"]:
        lines.append(_effort_line(status["effort"]))
    if status["note"] and not status["note"].startswith(failing.LEFT_OUT):  # said below, with the reason
        lines.append(status["note"])
    if status["jobs"]["runs_that_shared_one"]:
        lines.append(_jobs_line(status["jobs"]))
    if status["noise_percent"] is not None:
        lines.append(f"noise: repetitions deviate {status['noise_percent']:.1f} % from their mean")
    lines += [f"{kind}: {text}" for kind, text in status["machine"].items()]
    lines += [f"warning: {text}" for text in status["executables"]]
    lines += [_reference_line(status)] if status["reference"] else []
    if status["uncertainty_percent"] is not None:
        lines.append(uncertainty_line(status["uncertainty_percent"] / 100, status["uncertainty_targets"]))
    lines += status["extrapolation"]
    if status["pace"] is not None:
        lines.append(pace_line(status))
    return lines


def _kept_back(cost: Mapping[str, Any]) -> str:
    """Return how much of what is left only the validation may spend; empty where nothing is kept."""
    kept = cost["kept_for_validation"]
    return f"; {hours_in(kept, cost['shown_in'])} of these are kept back for the validation" if kept else ""


def pace_line(status: Mapping[str, Any]) -> str:
    """Return what becomes of the campaign at the pace of its last rounds."""
    pace = status["pace"]
    final, seconds = pace["final_uncertainty_percent"], pace["seconds_left"]
    end = "" if seconds is None else f"in {about(seconds)} of running"
    if final is None:
        return f"at this pace: {pace['no_trend']}" + (f"; the budget is spent {end}" if end else "")
    when = f", {end}" if end else ""
    return f"at this pace: uncertainty of {uncertainty(final / 100)} when the budget is spent{when}"


def _reference_line(status: Mapping[str, Any]) -> str:
    """Return which reference runs were made, and what they cost."""
    found, unit = status["reference"], status["cost"]["shown_in"]
    points = ", ".join(str(Point.of(point)) for point in found["points"])
    return f"reference runs: {found['measured']} measured at {points}, {hours_in(found['cost'], unit)} {unit}"


def standing(status: Mapping[str, Any]) -> str:
    """Return the state in a word; ``interrupted`` where no controller runs a campaign that is not over."""
    idle = status["controller"]["state"] == "nobody" and status["state"] in ("running", "stopping")
    return "interrupted" if idle else str(status["state"])


def _controller_lines(status: Mapping[str, Any], directory: Path | None) -> list[str]:
    """Return which controller is running, or how to continue a campaign that is not over."""
    controller = status["controller"]
    host = controller["host"]
    known = f"the controller on {host}, pid {controller['pid']}," if host else "a controller"
    when = "" if controller["since"] is None else instant(controller["since"], status["virtual"])
    since = f" since {when}" if when else ""
    if controller["state"] == "at work":
        # On a full disk it cannot write into the journal that it waits.
        full = "" if directory is None or status["outages"] else shortage(directory)
        waits = f", and waits: the disk is full ({full}); free some space, and it goes on" if full else ""
        return [f"{known} is running{since}{waits}"]
    if status["state"] == "stopped":
        return []
    if controller["state"] == "unknown":
        return [f"{known} wrote last at {when}; only that host shows whether it still runs"]
    resume = "" if directory is None else f"; to continue: orchestrator resume {shlex.quote(str(directory))}"
    if host is None:
        return [f"no controller is running{since}{resume}"]
    killed = f"{known} was killed or its machine failed after {when}"
    return [f"no controller is running: {killed}{resume}"]


def runs_line(status: Mapping[str, Any]) -> str:
    """Return how many runs there are in each status, and at how many points was measured."""
    return f"runs: {_numbers(status['runs']) or 'none yet'}; {count(status['points'], 'point')} measured"


def _numbers(counted: dict[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counted.items() if number)


def _effort_line(found: dict[str, float | int]) -> str:
    counted, share = count(int(found["callpaths"]), "call path"), plain(found["unmatched_percent"], 2)
    return (
        f"effort: {counted} counted, {found['irreproducible']} of them irreproducible; "
        f"{share} % of the basic blocks belong to no timed call path; their models: status --json"
    )


def _jobs_line(jobs: dict[str, Any]) -> str:
    line = f"jobs: {count(jobs['runs_that_shared_one'], 'measured run')} shared a job with others"
    if jobs["overhead_seconds"] is None:
        return line
    line += f"; in a job of its own, a run is charged {jobs['overhead_seconds']:.3g} s beside its own time"
    # Where all runs shared jobs, no run has shown how long it waits in a job of its own.
    return line if jobs["wait_seconds"] is None else f"{line} and waits {jobs['wait_seconds']:.3g} s"


def _stop_lines(status: Mapping[str, Any], directory: Path | None) -> list[str]:
    """Return why the campaign has stopped or pauses, with the remedy, or how near the stop rules are."""
    reason, paused = status["stop_reason"], status["paused"]
    lines = [
        f"stop rule: {reason['rule']} ({reason['detail']})"
        if reason
        else f"stop rules: {status['nearest_rule']}"
    ]
    early = reason if status["state"] == "stopped" else None
    if paused is not None:
        lines.insert(0, f"paused: {paused['cause']} ({paused['detail']}); nothing more is begun")
        early = {"rule": paused["cause"], "detail": paused["detail"]}
    where = _place(directory)
    what = "" if early is None else advice.remedy(StopReason(early["rule"], early["detail"]), where)
    lines += _trouble_lines(status)
    if status["decides_again"] and status["state"] == "stopped":
        lines.append(f"{advice.OTHER_VALUES} since then: orchestrator resume {where} decides again")
    if what:
        then = "" if directory is None else f", then: orchestrator resume {where}"
        lines.append(f"remedy: {what}{then}")
    return lines


def _trouble_lines(status: Mapping[str, Any]) -> list[str]:
    """Return what does not answer, and what is waited for after failures of the infrastructure."""
    if status["state"] in ("stopped", "paused"):
        return []
    now = time.time()
    lines = []
    for item in status["outages"]:
        since = datetime.fromisoformat(item["since"]).timestamp()
        lasted = max(0.0, now - since)
        lines.append(outage(item["what"], since, item["jobs"], item["blocking"], lasted, item["reason"]))
    trouble = status["infrastructure"]
    until = trouble["waits_until"]
    if until is not None and datetime.fromisoformat(until).timestamp() > now:
        lines.append(
            f"{trouble['tries_in_a_row']} tries in a row failed because of the infrastructure "
            f"({trouble['reason']}); nothing is begun before {moment(until)}"
        )
    return lines


def _reason_lines(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why the runs of the last round were chosen, and what the strategy could not use for that.

    Runs at one point have one reason; points with the same reason share a line.
    """
    points: dict[str, dict[str, None]] = {}
    for item in items:
        points.setdefault(item["reason"], {})[point_of(item["run"])] = None
    lines = [f"{' '.join(names)}: {reason}" for reason, names in points.items() if reason]
    return ["last round:", *(f"  {line}" for line in _first(lines, "reason"))] if lines else []


def _loss_lines(status: Mapping[str, Any]) -> list[str]:
    """Return what is not known exactly, no longer used, or given up."""
    lines = [
        f"node {item['node']} is no longer used: {'; '.join(item['reasons'])}"
        for item in status["suspect_nodes"]
        if item["excluded"]
    ]
    unit = status["cost"]["shown_in"]
    if unconfirmed := status["cost"]["unconfirmed"]:
        lines.insert(
            0,
            f"{hours_in(unconfirmed, unit)} of the {unit} spent are upper bounds: the scheduler has not "
            "confirmed yet what those attempts cost",
        )
    if status["no_validation"] is not None:
        lines.append(status["no_validation"])
    lines += discarded_lines(status["discarded"])
    lines += status["left_out"]
    return lines + _given_up_lines(status["given_up"])


def _given_up_lines(items: Sequence[Mapping[str, str]]) -> list[str]:
    """Return what was given up: runs with the same reason, but for numbers in it, share a line."""
    lines = []
    groups = alike([(item["reason"], item["run"]) for item in items])
    for reason, runs in groups[:_GIVEN_UP]:
        more = f" and {count(len(runs) - 1, 'other run')}, alike" if len(runs) > 1 else ""
        lines.append(f"given up: {runs[0]}{more}: {reason}")
    if left := sum(len(runs) for _, runs in groups[_GIVEN_UP:]):
        lines.append(f"and {count(left, 'other run')} given up: orchestrator log")
    return lines


def _first(lines: Sequence[str], what: str) -> list[str]:
    """Return the first lines, and how many more there are."""
    rest = count(len(lines) - _REASONS, f"other {what}")
    return [*lines[:_REASONS], *[f"and {rest}: status --json"] * (len(lines) > _REASONS)]


def _left_out_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the notes of models that were fitted to a part of their values."""
    notes = [
        f"note: {label(row)} {row['metric']}: {note}"
        for row in rows
        for note in row["notes"]
        if "were left out" in note
    ]
    return _first(notes, "note")


def _large(rows: Sequence[dict[str, Any]], values: Sequence[float | None]) -> list[dict[str, Any]]:
    """Return the rows for which a screen has space: all, or those whose value is not small for their metric.

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


def plain_text(status: Mapping[str, Any], directory: Path | None = None) -> str:
    """Return the document as text without colours."""
    stream = io.StringIO()
    Console(file=stream, width=WIDTH, color_system=None, emoji=False, markup=False).print(
        render(status, directory)
    )
    return stream.getvalue().rstrip()


def print_status(status: Mapping[str, Any], directory: Path | None = None) -> None:
    """Print the document for a human."""
    console().print(render(status, directory))
