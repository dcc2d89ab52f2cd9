"""Where two sets of measurements come from, side by side: machines, compilers, versions, inputs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator import storage
from orchestrator.journal import events
from orchestrator.journal import file as journal
from orchestrator.journal.codec import Entry
from orchestrator.report.dossier import environment_of, modules_in
from orchestrator.report.wording import last_event
from orchestrator.storage import iso
from orchestrator.types import Measurements, format_value

_LONG = 60  # characters of a fact that is not worth showing where both agree
_MOST = 6  # nodes, modules and values that are named
# Of a campaign file: what is measured, and how.
_INPUTS = ("application", "settings", "program", "constraints")
_MEASURED = ("profiler", "aggregate", "inclusive")
_MACHINE = ("name", "partition", "account", "constraint", "launcher", "mpi", "modules", "environment")
_REHEARSED = ("truth", "dataset", "models", "noise", "failure_rate", "fails_where")
EXECUTOR = "executor: name"
INSTANTS = ("measured from", "measured until")
"""Labels of the kind of executor, and of instants by the clock of a campaign."""
DISTURBED = ("busy machine", "busy host", "drift")
"""Labels of what disturbed the runs of a campaign, by `orchestrator.policy.machine.findings`."""

Facts = Mapping[str, str]
"""What is known of one side, as text by label."""


def side_by_side(first: Facts, second: Facts) -> list[dict[str, Any]]:
    """Return the facts of A and B in one table, JSON-ready: ``label``, ``a``, ``b``, ``same``."""
    labels = dict.fromkeys([*first, *second])
    return [
        {
            "label": label,
            "a": first.get(label),
            "b": second.get(label),
            "same": first.get(label) == second.get(label),
        }
        for label in labels
    ]


def shown(facts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what a reader is shown of a table of `side_by_side`: no long texts in which both agree.

    Instants of a rehearsal are of a clock that begins in 1970, so they are times since its start.
    """
    rehearsed = {
        side for item in facts for side in "ab" if item["label"] == EXECUTOR and item[side] == "simulated"
    }
    kept = (item for item in facts if not item["same"] or len(item["a"]) <= _LONG)
    return [
        {**item, **{side: last_event(item[side], True) for side in rehearsed if item[side]}}
        if item["label"] in INSTANTS
        else dict(item)
        for item in kept
    ]


def disturbances(first: Facts, second: Facts, names: tuple[str, str]) -> tuple[str, ...]:
    """Return a note where what disturbed one of two campaigns may be the difference between them.

    Two executables of one campaign were disturbed alike, so nothing is said of them.
    """
    if first.get("from") == second.get("from"):
        return ()
    disturbed = {
        name: [label for label in DISTURBED if label in side]
        for name, side in zip(names, (first, second), strict=True)
    }
    said = "; ".join(f"{name}: {', '.join(labels)}" for name, labels in disturbed.items() if labels)
    if not said:
        return ()
    return (
        f"runs were disturbed ({said}; see where they come from), which may be what differs: measure again "
        "without it, or both in one campaign (compare in its file)",
    )


def facts(path: Path, known: Measurements, other: bool = False) -> Facts:
    """Return what is known of a campaign directory, or of a file or folder of measurements.

    ``other``: of the runs of the other executable, where a campaign compares two.
    """
    found = of_campaign(path, other) if journal.holds_campaign(path) else of_file(path)
    return {**found, **of_measurements(known)}


def of_measurements(known: Measurements) -> Facts:
    """Return what was measured: values of parameters, points and values."""
    values = sum(len(values) for item in known.items for values in item.values.values())
    ranges = {f"values of {name}": _values(known, name) for name in known.parameters}
    return {**ranges, "measured": f"{len(known.points)} points, {values} values"}


def of_file(path: Path) -> Facts:
    """Return what identifies a file."""
    facts = {"from": str(path)}
    if path.is_file():
        digest = storage.file_hash(path)
        facts |= {"written": iso(path.stat().st_mtime)} | ({"content": _short(digest)} if digest else {})
    return facts


def of_campaign(directory: Path, other: bool = False) -> Facts:
    """Return what a campaign says about its runs, from its journal and what its first attempts left.

    Raises
    ------
    JournalError
        If the journal cannot be read.
    """
    seen = _Seen()
    for entry in journal.read(directory / journal.FILE_NAME):
        seen.take(entry)
    rules, provenance = seen.campaign, seen.provenance
    executable = provenance.get("compared_executable" if other else "executable") or {}
    stated = {
        "from": str(directory),
        "campaign": str(rules.get("name", "")),
        INSTANTS[0]: iso(seen.first) if seen.first else "",
        INSTANTS[1]: iso(seen.last) if seen.last else "",
        "program of the campaign": f"orchestrator {seen.version}",
        "controller": ", ".join(seen.controllers),
        "nodes": _some(sorted(seen.nodes)),
        "executable": str(executable.get("path") or rules.get("executable") or ""),
        "content": _short(executable.get("sha256")),
        "version": str(executable.get("version") or ""),
        "source revision": str(executable.get("revision") or ""),
        "compiler": str(executable.get("compiler") or ""),
        "python": str(provenance.get("python") or ""),
        "modules": _some(_modules(directory, seen.attempts)),
        **{label: seen.machine.get(label, "") for label in DISTURBED},
    }
    executor, measure = rules.get("executor") or {}, rules.get("measure") or {}
    for label, section, keys in (
        ("", rules, _INPUTS),
        ("", measure, _MEASURED),
        ("executor: ", executor, _MACHINE),
        ("rehearsed: ", executor, _REHEARSED),
    ):
        stated |= {f"{label}{key}": _plain(section[key]) for key in keys if section.get(key)}
    return {label: text for label, text in stated.items() if text}


class _Seen:
    """What a journal says that concerns all runs."""

    def __init__(self) -> None:
        self.campaign: Mapping[str, Any] = {}
        self.provenance: Mapping[str, Any] = {}
        self.version = ""
        self.first = self.last = 0.0
        self.controllers: dict[str, None] = {}
        self.nodes: set[str] = set()
        self.attempts: list[str] = []
        self.machine: Mapping[str, str] = {}

    def take(self, entry: Entry) -> None:
        match entry.event:
            case events.CampaignStarted(campaign=campaign, version=version):
                self.campaign, self.version = campaign, version
            case events.CampaignChanged(campaign=campaign) | events.RereadCompleted(campaign=campaign):
                self.campaign = campaign
            case events.ControllerStarted(host=host, version=version, provenance=provenance):
                self.controllers[host] = None
                self.version, self.provenance = version, provenance or self.provenance
            case events.RoundCompleted(machine=machine):
                self.machine = machine
            case events.AttemptFinished() as event if event.failure is None:
                self.first = self.first or (event.started or entry.time)
                self.last = event.finished or entry.time
                self.nodes |= {event.host, *event.on} - {""}
                if len(self.attempts) < _MOST:
                    self.attempts.append(event.attempt.id)


def _modules(directory: Path, attempts: list[str]) -> list[str]:
    """Return the environment modules of the first attempt that left them."""
    left = (environment_of(directory / "runs" / attempt) for attempt in attempts)
    return modules_in(next(filter(None, left), {}))  # none where they were simulated, or pruned


def _values(known: Measurements, name: str) -> str:
    values = list(known.values_of(name))
    ordered = sorted(values, key=str) if known.is_categorical(name) else sorted(values, key=float)
    return _some(list(map(format_value, ordered)))


def _some(texts: list[str]) -> str:
    few = texts if len(texts) <= _MOST else [*texts[: _MOST - 2], "...", texts[-1]]
    return ", ".join(few) + (f" ({len(texts)})" if len(texts) > _MOST else "")


def _short(digest: object) -> str:
    return f"sha256 {str(digest)[:16]}" if digest else ""


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
