"""Everything known about one run: what the journal says about its attempts, and what they left behind."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from orchestrator import storage
from orchestrator.errors import CampaignError
from orchestrator.executors.attempt.worker import RECORD, SCRIPT
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.file import FILE_NAME, about, proposals, read, require_campaign
from orchestrator.journal.snapshot import read_through
from orchestrator.launch.script import ENVIRONMENT
from orchestrator.report.log import LOG
from orchestrator.resources import core_hours
from orchestrator.storage import iso
from orchestrator.types import Attempt, Run
from orchestrator.units import CostUnit, campaign_unit, closest

_STDERR_READ = 1 << 20  # bytes; srun reports bindings before the program writes
_BINDING = re.compile(r"^cpu-bind\S*=.*$", re.MULTILINE)


def document(directory: Path, entries: Iterable[Entry], wanted: str) -> dict[str, Any]:
    """Return what is known of a run, JSON-ready; costs in core-hours, ``shown_in``: the unit of texts.

    Parameters
    ----------
    directory, entries
        The campaign directory, and its journal.
    wanted
        Id of a run (``p=64,s=20/time-1``) or attempt, or the path of its directory.

    Raises
    ------
    CampaignError
        If the campaign has no such run.
    """
    name = _id(wanted)
    history = _RunHistory()
    names: dict[str, None] = {}
    for entry in entries:
        history.take(entry, name, names)
    if history.run is None:
        meant = closest(name, names)
        hint = (
            f"did you mean {meant!r}?" if meant else f"its {len(names)} runs are called like p=64,s=20/time-1"
        )
        raise CampaignError(f"{directory} has no run {name!r}; {hint}")
    return {
        "run": history.run.id,
        "point": history.run.point.as_dict(),
        "proposed": history.proposed,
        "outcome": history.outcome,
        "shown_in": history.unit,
        "attempts": [
            _attempt(
                directory / "runs" / attempt.id,
                {**item, "shares_job_with": history.companions(item.get("pack", ""))},
            )
            for attempt, item in history.attempts.items()
        ],
    }


def document_in(directory: Path, wanted: str) -> dict[str, Any]:
    """Return what `document` does; of the journal only the lines that concern the run are interpreted.

    Raises
    ------
    JournalError
        If the directory holds no readable campaign.
    CampaignError
        If the campaign has no such run.
    """
    require_campaign(directory)
    read_through(directory, LOG)  # all lines are sound; with a snapshot they were, once
    path = directory / FILE_NAME
    run = _run_called(_id(wanted), proposals(path))
    return document(directory, read(path) if run is None else about(path, run), wanted)


def _run_called(name: str, proposed: Iterable[Entry]) -> Run | None:
    """Return the run of a name, from the events that propose runs; None where there is none."""
    last = name.rpartition("/")[2]  # the id of a run is longer to make than this
    for entry in proposed:
        event = entry.event
        runs = event.runs if isinstance(event, events.RoundProposed) else (getattr(event, "run", None),)
        for run in runs:
            if run is not None and last == f"{run.kind}-{run.repetition}" and run.id == name:
                return run
    return None


def _id(wanted: str) -> str:
    """Return the id of a run from an id or path of the run or of one of its attempts."""
    parts = [part for part in wanted.split("/") if part]
    if parts and parts[-1].startswith("attempt-"):
        parts.pop()
    return "/".join(parts[-2:])


class _RunHistory:
    """What the journal says about one run, collected entry by entry."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.proposed: dict[str, Any] = {}
        self.outcome = ""
        self.attempts: dict[Attempt, dict[str, Any]] = {}
        self.unit: CostUnit = "core-hours"
        self._controller: dict[str, Any] = {}
        self._packs: dict[str, list[str]] = {}
        self._reread: list[tuple[events.AttemptReread, str]] = []  # not completed, with the time

    def companions(self, pack: str) -> list[str]:
        """Return the attempts that share a job, in the order of execution."""
        return self._packs.get(pack, [])

    def take(self, entry: Entry, name: str, names: dict[str, None]) -> None:
        """Note what concerns the run called ``name``; add those of all runs to ``names``."""
        event, when = entry.event, iso(entry.time)
        if isinstance(event, events.AttemptIntended) and event.pack:
            self._packs.setdefault(event.pack, []).append(event.attempt.id)
        match event:
            case events.CampaignStarted() | events.CampaignChanged():
                self.unit = campaign_unit(event.campaign)
            case events.ControllerStarted():
                self._controller = {"time": when, **events.to_json(event)}
            case events.RoundProposed(number, runs, reasons):
                names.update(dict.fromkeys(run.id for run in runs))
                for run, reason in zip(runs, reasons, strict=True):
                    if run.id == name:
                        self.run, self.proposed = run, {"time": when, "round": number, "reason": reason}
            case events.ValidationProposed(run):
                names[run.id] = None
                if run.id == name:
                    self.run, self.proposed = run, {"time": when, "round": None, "reason": "validation"}
            case events.RereadBegan():
                self._reread.clear()
            case events.AttemptReread() if event.attempt.run == self.run:
                self._reread.append((event, when))
            case events.RereadCompleted():
                self._take_reread()
            case events.MeasurementsDiscarded(runs, reason) if self.run in runs:
                self.outcome = f"discarded: {reason}"
            case events.MeasurementsRestored(runs) if self.run in runs:
                self.outcome = "measured"
            case events.RunGivenUp(run, reason) | events.RunSkipped(run, reason) if run == self.run:
                word = "given up" if isinstance(event, events.RunGivenUp) else "skipped"
                self.outcome = f"{word}: {reason}"
            case _:
                attempt = getattr(event, "attempt", None)
                if attempt is not None and attempt.run == self.run:
                    self._take_attempt(event, attempt, when)

    def _take_reread(self) -> None:
        for event, when in self._reread:
            item = self.attempts[event.attempt]
            item.update(read_again=when, samples=events.to_json(event)["samples"])
            if event.recovered:
                item.update(failure=None, reason="")
                self.outcome = "measured"
        self._reread.clear()

    def _take_attempt(self, event: events.Event, attempt: Attempt, when: str) -> None:
        item = self.attempts.setdefault(attempt, {"controller": self._controller})
        data = {key: value for key, value in events.to_json(event).items() if key != "attempt"}
        match event:
            case events.AttemptIntended():
                item.update(intended=when, **data, reserved_core_hours=core_hours(data.pop("reserved")))
                item["controller"] = self._controller
            case events.AttemptSubmitted():
                item.update(submitted=when, **data)
            case events.AttemptStarted():
                item.update(seen_running=when, **{key: value for key, value in data.items() if value})
            case events.AttemptWithdrawn():
                item.update(withdrawn=when, **data)
            case events.AttemptFinished():
                item.update(settled=when, **data, cost_core_hours=core_hours(data.pop("cost")))
                for key in ("started", "finished"):
                    item[key] = None if item[key] is None else iso(item[key])
                self.outcome = (
                    "measured" if event.failure is None else f"failed: {event.failure}: {event.reason}"
                )
            case events.AttemptCharged():
                item.update(elapsed=event.elapsed, cost_core_hours=core_hours(event.cost), estimated=False)


def _attempt(folder: Path, known: Mapping[str, Any]) -> dict[str, Any]:
    record = _json(folder / RECORD)
    first = record.pop("environment", {})
    environment = environment_of(folder) or first
    controller = dict(known["controller"])
    built = controller.pop("provenance", None) or {}
    return {
        **known,
        "controller": controller,
        "directory": str(folder),
        "job": _job(environment, known.get("handle", "")),
        "record": record,
        "executable": _executable(record.get("executable") or {}, built),
        "python": built.get("python"),
        "site": built.get("site"),
        "modules": modules_in(environment),
        "binding": {
            "cpus": record.get("cpus"),
            "ranks": _BINDING.findall(_text(folder / "stderr", _STDERR_READ)),
        },
        "script": _text(folder / SCRIPT),
        "environment": environment,
    }


def _executable(used: Mapping[str, Any], built: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of the file that an attempt started; ``built`` is what the controller found.

    The controller's hash is that of this file only if size and time agree; else the file as it is now may
    still be the one that was used.
    """
    found = [built.get(key) or {} for key in ("executable", "compared_executable", "effort_executable")]
    hashed = next((item for item in found if used and item.get("path") == used.get("path")), found[0])
    result = {**hashed, **used}
    same = all(used.get(key) == hashed.get(key) for key in ("path", "size", "mtime_ns"))
    if not used or same:
        return result
    for key in ("sha256", "version", "revision"):
        result.pop(key, None)
    path = Path(str(used.get("path")))
    now = storage.file_identity(path)
    if now is not None and all(used.get(key) == value for key, value in now.items()):
        result["sha256"] = storage.file_hash(path)
    result["changed"] = "the file was replaced after the controller started"
    return result


def _job(environment: Mapping[str, str], handle: str) -> str:
    job = environment.get("SLURM_JOB_ID", "")
    array, task = (environment.get(f"SLURM_ARRAY_{key}", "") for key in ("JOB_ID", "TASK_ID"))
    return f"{array}_{task} ({job})" if array and job else job or handle


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):  # never begun, or pruned, or damaged: the journal says what counts
        return {}
    return found if isinstance(found, dict) else {}


def _text(path: Path, most: int = -1) -> str:
    try:
        with path.open("rb") as file:
            return file.read(most).decode(errors="replace")
    except OSError:
        return ""


def environment_of(folder: Path) -> dict[str, str]:
    """Return the environment that an attempt left in its directory; empty where it left none."""
    pairs = (item.partition("=") for item in _text(folder / ENVIRONMENT).split("\0") if item)
    return {name: value for name, _, value in pairs}


def modules_in(environment: Mapping[str, str]) -> list[str]:
    """Return the environment modules that were loaded."""
    return [name for name in environment.get("LOADEDMODULES", "").split(":") if name]
