"""The document of a report: everything that its page shows, JSON-ready.

`of_measurements` and `of_campaign` put together what the other files of this package find. A section of which
nothing is known is None, or absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator import __version__
from orchestrator.report.page import (
    course,
    downloads,
    effort,
    head,
    noise,
    points,
    priors,
    runs,
    speedup,
    validation,
)
from orchestrator.report.page.answer import Cores, answer
from orchestrator.report.page.callpaths import CallPaths, call_paths
from orchestrator.report.page.grid import grid_of
from orchestrator.report.page.history import History
from orchestrator.report.page.runs import Runs
from orchestrator.report.page.subject import Subject
from orchestrator.resources import core_hours
from orchestrator.types import Point
from orchestrator.units import campaign_budget, campaign_unit, plain

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """What a report says of a campaign beside its measurements and models."""

    history: History  # the course of the campaign
    status: Mapping[str, Any]  # its status document
    text: str  # content of its file
    files: str | None  # the path of its directory as seen from the report; None in a rehearsal
    excluded: Iterable[tuple[Point, str]]  # points that its space excludes, with the reasons
    space: Iterable[Point]  # the points of its space; none where they are too many to be shown
    cores: Cores  # how many cores a run at a point is charged for
    # What else the budget could have done beside one run at P₊: ``text`` and ``core_hours``.
    alternatives: Sequence[Mapping[str, Any]]
    missing: Sequence[str] = ()  # why plug-ins that models or the space need cannot be used


@np.errstate(all="ignore")  # far out, there may be no number: the page shows a dash
def of_measurements(
    subject: Subject, *, title: str, generated: str, sources: Sequence[str], modeler: str
) -> dict[str, Any]:
    """Return the document of measurements without a campaign.

    Parameters
    ----------
    subject
        Measurements and models.
    title, generated
        Of the report, and when it was made (ISO 8601).
    sources, modeler
        Names of the files, and the kind of models.
    """
    measured = runs.of_measurements(subject.known)
    paths = call_paths(subject, measured, grid_of(subject))
    study = subject.study

    def cores(point: Point) -> float | None:
        return None if study is None else study.number(point)

    return {
        **frame("measurements", title, generated),
        "head": {
            "facts": head.of_measurements(subject, sources, modeler),
            "answer": answer(subject, paths, cores, note="a core per process"),
            "warnings": head.warnings(subject),
        },
        **_models(subject, paths, measured),
        "noise": noise.of_measurements(subject),
        "downloads": downloads.downloads(subject, paths.models, None),
    }


def of_campaign(subject: Subject, campaign: Campaign, *, generated: str) -> dict[str, Any]:
    """Return the document of a campaign; ``generated``: when it was made (ISO 8601)."""
    history = campaign.history
    unit = campaign_unit(history.state.campaign)
    measured = runs.of_state(history.state)
    facts = head.of_campaign(subject, history, campaign.status)
    warned = [*campaign.missing, *head.campaign_warnings(subject, campaign.status)]
    begin = frame("campaign", str(history.state.campaign["name"]), generated)
    course_of_it = {
        "cost_unit": unit,
        "points": points.points(history, campaign.excluded, campaign.space),
        "rounds": course.rounds(history),
        "attempts": course.attempts(history),
        "ledger": course.spending(history),
        "noise": noise.of_state(history.state),
        "failures": course.failures(history, campaign.files),
        "unmeasured": course.unmeasured(history),
        "status": {key: campaign.status[key] for key in ("state", "validation", "fastest", "pace")},
    }
    if not subject.models:
        why = [] if campaign.missing else ["there are no models yet"]
        top = {"facts": facts, "answer": None, "warnings": [*why, *warned]}
        return {**begin, "head": top, **nothing(), **course_of_it}
    paths = call_paths(subject, measured, grid_of(subject))
    answered = answer(subject, paths, campaign.cores, checked=_checked(subject, campaign), unit=unit)
    return {
        **begin,
        "head": {
            "facts": facts,
            "answer": answered,
            "warnings": [*head.warnings(subject), *warned],
        },
        **_models(subject, paths, measured),
        **course_of_it,
        "alternatives": _alternatives(answered, campaign) or None,
        "downloads": downloads.downloads(subject, paths.models, campaign.text),
    }


def _alternatives(found: Mapping[str, Any] | None, campaign: Campaign) -> list[dict[str, Any]]:
    """Return what else the budget could have done; a run at P₊ costs what the answer says, to the digit."""
    rows = list(campaign.alternatives)
    if found is not None and found["is_evaluation_point"] and found["launched"] and found["cost"]:
        there = f"one run at {Point.of(found['point'])} itself"
        rows.insert(0, {"text": there, "core_hours": found["cost"]["core_hours"]})
    budget = core_hours(campaign_budget(campaign.history.state.campaign))
    return [
        {**row, "text": f"{row['text']}: {plain(100 * row['core_hours'] / budget)} % of the budget"}
        for row in rows
    ]


def _checked(subject: Subject, campaign: Campaign) -> validation.Checked | None:
    """Return what the validation says of a whole run at P₊, if there is one."""
    there = [row for row in campaign.status["validation"] if Point.of(row["point"]) == subject.point]
    return validation.of_run(there, subject.whole, subject.metric)


def frame(kind: str, title: str, generated: str) -> dict[str, Any]:
    """Return what every document begins with."""
    return {
        "schema": SCHEMA,
        "kind": kind,
        "title": title,
        "generated": generated,
        "program": f"orchestrator {__version__}",
    }


def nothing() -> dict[str, Any]:
    """Return the sections of `_models` where nothing was fitted."""
    empty = ("parameters", "lines", "runs", "whole", "parts", "callpaths", "downloads")
    return {**{name: [] for name in empty}, "grid": {"names": [], "shape": []}}


def _models(subject: Subject, paths: CallPaths, measured: Runs) -> dict[str, Any]:
    """Return the sections on parameters, call paths, speedup, effort and priors."""
    return {
        "parameters": [axis.document() for axis in paths.grid.axes],
        "grid": {"names": list(paths.grid.names), "shape": list(paths.grid.shape)},
        "lines": [line.document() for line in paths.lines],
        "runs": list(measured.documents),
        "whole": paths.ids(subject.whole, subject.metric),
        "parts": paths.ids(subject.parts, subject.metric),
        "callpaths": list(paths.documents),
        "speedup": speedup.document(subject, paths),
        "effort": effort.document(subject, paths),
        "priors": priors.document(subject, paths),
    }
