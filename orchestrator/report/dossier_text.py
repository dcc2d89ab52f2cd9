"""Everything known about one run (see `orchestrator.report.dossier`) as text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.report.wording import instant
from orchestrator.units import CostUnit, count, hours_in


def render(dossier: Mapping[str, Any]) -> RenderableType:
    """Return the document as text, with times of this machine's time zone, or of a rehearsal's clock."""
    proposed = dossier["proposed"]
    virtual = any(item.get("host") == "simulated" for item in dossier["attempts"])
    where = (
        "as validation"
        if proposed["round"] is None
        else f"in round {proposed['round']}: {proposed['reason']}"
    )
    lines = [
        f"run {dossier['run']}: {dossier['outcome'] or 'not settled'}",
        f"proposed {instant(proposed['time'], virtual)} {where}",
    ]
    for attempt in dossier["attempts"]:
        lines += ["", *_attempt_lines(attempt, virtual, dossier["shown_in"])]
    return Group(Text("\n".join(lines)))


def _attempt_lines(item: Mapping[str, Any], virtual: bool, unit: CostUnit) -> list[str]:
    record, executable, controller = item["record"], item["executable"], item["controller"]
    ended = f"failed ({item['failure']}): {item['reason']}" if item.get("failure") else "accepted"
    pairs = {
        "directory": item["directory"],
        "outcome": ended if "settled" in item else item.get("reason", "in flight"),
        "intended": _when(item.get("intended"), virtual),
        "started": _when(item.get("started") or record.get("started"), virtual),
        "finished": _when(item.get("finished") or record.get("finished"), virtual),
        "exit code": record.get("exit_code"),
        "cost": _cost(item, unit),
        "job": item["job"],
        "in turn": ", ".join(item["shares_job_with"]),
        "name": item.get("name"),
        "host": record.get("host") or item.get("host"),
        "nodes": record.get("nodes"),
        "cpus": item["binding"]["cpus"],
        "binding": "; ".join(item["binding"]["ranks"]),
        "kernel": record.get("kernel"),
        "executable": executable.get("path"),
        "sha256": executable.get("sha256"),
        "version": executable.get("version"),
        "revision": executable.get("revision"),
        "changed": executable.get("changed"),
        "modules": ", ".join(item["modules"]),
        "site": item["site"],
        "orchestrator": record.get("version") or controller.get("version"),
        "controller": f"{controller['host']}, pid {controller['pid']}, since "
        f"{instant(controller['time'], virtual)}"
        if controller
        else None,
    }
    lines = [f"attempt {Path(item['directory']).name.removeprefix('attempt-')}"]
    lines += [f"  {name:<12} {value}" for name, value in pairs.items() if value not in (None, "")]
    if item["script"]:
        lines += ["  script", *(f"    {line}" for line in item["script"].splitlines())]
    if item["environment"]:
        lines += [
            "  environment",
            *(f"    {name}={value}" for name, value in sorted(item["environment"].items())),
        ]
    return lines


def _when(text: str | None, virtual: bool) -> str | None:
    return None if text is None else instant(text, virtual)


def _cost(item: Mapping[str, Any], unit: CostUnit) -> str:
    if "cost_core_hours" not in item:
        reserved = item.get("reserved_core_hours")
        return "" if reserved is None else f"{hours_in(reserved, unit)} {unit} reserved"
    most = " at most (its end was not observed)" if item.get("estimated") else ""
    duration = f"{item['elapsed']:.4g} s"
    if "cores" in item:
        duration += f" on {count(item['cores'], 'core')}"
    return f"{hours_in(item['cost_core_hours'], unit)} {unit}{most}, {duration}"
