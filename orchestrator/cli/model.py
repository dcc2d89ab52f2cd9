"""Fit models to existing measurements: campaign directories, Extra-P files, CUBE sets, CSV tables."""

from __future__ import annotations

import argparse

from orchestrator import registry
from orchestrator.cli import common, inputs
from orchestrator.errors import CampaignError
from orchestrator.models.base import Model
from orchestrator.models.swc_effort import EFFORT
from orchestrator.models.swc_names import names
from orchestrator.report.models_document import describe, label
from orchestrator.report.status_text import console, interval, models_table
from orchestrator.types import Measurements


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_inputs(parser)
    parser.add_argument(
        "--predict",
        metavar="POINT",
        action="append",
        default=[],
        help="predict there, with a 90 %% interval, e.g. --predict p=1024,s=35 (repeatable)",
    )
    parser.add_argument("--metric", action="append", help="model only this metric (repeatable)")
    parser.add_argument("--callpath", action="append", help="only call paths with this text (repeatable)")
    parser.add_argument("--modeler", default="pmnf", choices=registry.names("model"))
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    known = inputs.read(arguments)
    points = [common.parse_point(text, known) for text in arguments.predict]
    chosen = _select(known, arguments.metric, arguments.callpath)
    models: tuple[Model, ...] = registry.load("model", arguments.modeler)()(_with_effort(chosen, known))
    wanted = {(item.callpath, item.metric) for item in chosen.items}
    described = [describe(model, points) for model in models if (model.callpath, model.metric) in wanted]
    if arguments.json:
        common.print_json({"models": described})
        return 0
    screen = console()
    screen.print(models_table(described))
    for item in described:
        for prediction in item["predictions"][1:]:
            where = ", ".join(f"{name}={value}" for name, value in prediction["point"].items())
            text = f"{label(item)} {item['metric']} at {where}: {interval(prediction)}"
            screen.print(text, markup=False)
    for item in described:
        for note in item["notes"]:
            screen.print(f"note: {label(item)} {item['metric']}: {note}", markup=False, style="dim")
    return 0


def _with_effort(chosen: Measurements, known: Measurements) -> Measurements:
    """Add what was counted at the chosen call paths and below them: modelers may know how to use it."""
    there = {(item.callpath, item.metric) for item in chosen.items}
    effort = [item for item in known.items if item.metric in EFFORT]
    paths = names({item.callpath for item in chosen.items}, {item.callpath for item in effort})
    more = tuple(
        item for item in effort if (item.callpath, item.metric) not in there and paths.callers(item.callpath)
    )
    return Measurements(known.parameters, (*chosen.items, *more))


def _select(known: Measurements, metrics: list[str] | None, callpaths: list[str] | None) -> Measurements:
    items = tuple(
        item
        for item in known.items
        if (metrics is None or item.metric in metrics)
        and (callpaths is None or any(text in item.callpath for text in callpaths))
    )
    if not items:
        raise CampaignError(
            f"nothing to model: the inputs have the metrics {', '.join(known.metrics())} at "
            f"{len({item.callpath for item in known.items})} call paths"
        )
    return Measurements(known.parameters, items)
