"""The report of a campaign, from its directory: as a document, and as one self-contained HTML page."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.control import counting, existing, overview
from orchestrator.control.assembly import Assembly, assemble, modeler
from orchestrator.control.fastest import fastest
from orchestrator.control.planning import DRAWING
from orchestrator.control.runtime import fit
from orchestrator.journal import file as journal
from orchestrator.journal.measurements import ELAPSED, measurements
from orchestrator.journal.state import is_rehearsal
from orchestrator.models.base import Model
from orchestrator.models.effort import has_effort
from orchestrator.readers.base import EXCLUSIVE
from orchestrator.report import metrics, status
from orchestrator.report.page import document as page_document
from orchestrator.report.page import priors
from orchestrator.report.page.history import History
from orchestrator.report.page.render import page
from orchestrator.report.page.subject import Subject
from orchestrator.resources import core_hours
from orchestrator.storage import iso
from orchestrator.types import Measurements, Point

_MOST_POINTS = 3_000  # of a space whose points are all in the report
_MOST_COMBINATIONS = 20_000  # of which those are looked for that the space excludes


def document(directory: Path, folder: Path | None = None) -> dict[str, Any]:
    """Return what the report of a campaign shows; fits its models, which may take minutes.

    Parameters
    ----------
    directory
        The campaign directory; it is only read.
    folder
        Where the report will be, for links to files of attempts; by default in the directory.

    Raises
    ------
    JournalError
        If the directory holds no readable campaign.
    CampaignError
        If its campaign file cannot be read.
    """
    chosen = existing.load(directory)
    history = History.of(journal.read(directory / journal.FILE_NAME))
    known = measurements(history.state, chosen.parameters)
    missing = chosen.missing
    models = () if "model" in missing else fit(modeler(chosen), known)
    built = None if "application" in missing else assemble(chosen)
    running = overview.seen(directory)[1]
    quickest = None if built is None else fastest(built, models, known, history.state)
    described = status.document(history.state, models, known, chosen.evaluation_point, running, quickest)
    subject = Subject(
        known=known,
        models=models,
        point=chosen.evaluation_point,
        fastest=_searched_for(chosen, quickest),
        study=counting.study(chosen, known),
        values={item.name: item.values for item in chosen.parameters},
        units=metrics.units(described["metrics"]),
        is_exclusive=_is_exclusive(chosen),
        **({} if "model" in missing else _without_priors(chosen, known)),
    )
    campaign = page_document.Campaign(
        history=history,
        status=described,
        text=(directory / loader.CAMPAIGN_FILE).read_text(encoding="utf-8"),
        files=None if is_rehearsal(history.state.campaign) else _seen_from(folder, directory),
        excluded=() if built is None else _excluded(built),
        space=() if built is None else _points(built),
        cores=lambda point: None if built is None else _cores(built, point),
        alternatives=() if built is None else list(_alternatives(built, models)),
        missing=[why for key, why in missing.items() if key in ("application", "model")],
    )
    return page_document.of_campaign(subject, campaign, generated=iso(time.time()))


def _searched_for(chosen: Campaign, quickest: Mapping[str, Any] | None) -> Point | None:
    """Return the fastest measured configuration of a campaign that draws points: it models a tuning space."""
    if quickest is None or chosen.strategy.name not in DRAWING:
        return None
    return Point.of(quickest["measured"][0]["point"])


def _seen_from(folder: Path | None, directory: Path) -> str:
    return "" if folder is None else os.path.relpath(directory.resolve(), folder.resolve())


def report(directory: Path) -> str:
    """Return the report of the campaign that a directory holds as one HTML page; raises as `document`."""
    return page(document(directory))


def _without_priors(chosen: Campaign, known: Measurements) -> dict[str, Any]:
    """Return models without priors, and where the priors of the campaign come from; nothing without any."""
    learned = None if chosen.learned is None else chosen.learned.document["campaigns"]
    counted = chosen.model.name == priors.COUNTING and has_effort(known)
    if not learned and not counted:
        return {}
    plain = modeler(replace(chosen, learned=None))
    campaigns = [item["name"] for item in learned or ()]
    borrowed = chosen.model.name == priors.COUNTING and any(item["effort"] for item in learned or ())
    return {
        "unaided": fit(plain, priors.largest(known)),
        "priors": priors.sources(campaigns, counted or borrowed),
    }


def _is_exclusive(campaign: Campaign) -> bool | None:
    """Return whether times exclude those of called regions; None where an application decides that."""
    measure = campaign.measure
    if measure.profiler in EXCLUSIVE:
        return not measure.inclusive
    return None


def _cores(built: Assembly, point: Point) -> float | None:
    try:
        return float(built.cores(point))
    except ValueError:  # the machine cannot hold it: nobody knows what it would cost
        return None


def _alternatives(built: Assembly, models: Sequence[Model]) -> Iterator[dict[str, Any]]:
    """Yield what else the budget could have done, and what that would cost by the models of durations.

    One run at the evaluation point is part of the answer already, with its cost: see
    `orchestrator.report.page.document`.
    """
    if not any(model.metric == ELAPSED for model in models) or built.space.combinations > _MOST_COMBINATIONS:
        return
    every = list(built.space)
    cost = float(sum(built.expected_costs(models)(every)))
    if math.isfinite(cost):
        yield {
            "text": f"one run at each of the {len(every)} points of the search space",
            "core_hours": core_hours(cost),
        }


def _points(built: Assembly) -> list[Point]:
    """Return the points of the search space; none where they are too many for a map."""
    if built.space.combinations > _MOST_COMBINATIONS:
        return []
    found = list(itertools.islice(built.space, _MOST_POINTS + 1))
    return found if len(found) <= _MOST_POINTS else []


def _excluded(built: Assembly) -> Iterator[tuple[Point, str]]:
    """Yield combinations of values that are no points of the search space; none of spaces that are large."""
    space = built.space
    if space.combinations > _MOST_COMBINATIONS:
        return
    reasons = list(space.describe().infeasible)
    reason = reasons[0] if len(reasons) == 1 else f"excluded by one of: {'; '.join(reasons)}"
    names = [item.name for item in space.parameters]
    for values in itertools.product(*(item.values for item in space.parameters)):
        point = Point(tuple(zip(names, values, strict=True)))
        if point not in space:
            yield point, reason
