"""Fit models to existing measurements: campaign directories, Extra-P files, sets of profiles, CSV tables."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from orchestrator.api.fit import fit_measurements
from orchestrator.api.inputs import of_metrics
from orchestrator.cli import common, inputs, modeling
from orchestrator.errors import CampaignError, ModelError
from orchestrator.models import scaling
from orchestrator.models.base import Model
from orchestrator.models.intervals import checked_levels
from orchestrator.report import extrapolation, scaling_document
from orchestrator.report.callpath_names import named, selected
from orchestrator.report.models_document import describe, label, without_number
from orchestrator.report.tables import configuration, console, interval, intervals_table, models_table
from orchestrator.types import Measurements, Point, format_value

_EACH = 5  # models of which each has a line for the same note
_FIGURE = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


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
    parser.add_argument(
        "--interval",
        metavar="LEVELS",
        default=(),
        type=_levels,
        help="give intervals of these levels in percent, too, e.g. --interval 50,80,95: of the mean, and "
        "of further runs",
    )
    parser.add_argument(
        "--runs",
        metavar="N",
        default=1,
        type=common.whole(1),
        help="intervals of further runs are of the mean of so many runs, made together (default 1)",
    )
    parser.add_argument("--metric", action="append", help="model only this metric (repeatable)")
    parser.add_argument(
        "--callpath", action="append", help="show only call paths with this text (repeatable)"
    )
    modeling.add_modeler(parser)
    parser.add_argument(
        "--prior",
        metavar="INPUT",
        action="append",
        default=[],
        type=Path,
        help="an earlier campaign, or a file of measurements, whose forms and noise are a prior (repeatable)",
    )
    _add_speedup(parser)
    common.add_json(parser)


def _add_speedup(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "speedup and efficiency", "of models of times by any modeler, where parameters count processes"
    )
    group.add_argument(
        "--speedup",
        metavar="POINT",
        action="append",
        default=[],
        help="time, speedup, efficiency and core-hours of a run up to there, from the fewest measured "
        "processes on, e.g. --speedup p=1024,s=35 (repeatable)",
    )
    group.add_argument(
        "--efficiency",
        metavar="SHARE",
        type=common.number("a share between 0 and 1, such as 0.5", lambda share: 0 < share < 1),
        help="the processes beyond which efficiency is below this share (default 0.5), at the points of "
        "--speedup or at the largest measured values",
    )
    modeling.add_processes(group)


def run(arguments: argparse.Namespace) -> int:
    """Run the command. All call paths are fitted together, whichever of them are shown."""
    if arguments.interval and not arguments.predict:
        raise CampaignError("--interval needs a point: say with --predict where, such as --predict p=1024")
    known = inputs.read(arguments)
    points = [common.parse_point(text, known) for text in arguments.predict]
    chosen = known if arguments.metric is None else of_metrics(known, arguments.metric)
    paths = selected((item.callpath for item in chosen.items), arguments.callpath)
    priors = {path.name: inputs.read(arguments, [path]) for path in arguments.prior}
    study = _study(chosen, arguments)
    problems = [common.parse_point(text, known) for text in arguments.speedup] or list(scaling.corners(known))
    with modeling.shown_progress():
        fitted = fit_measurements(known, modeling.modeler(arguments, known, priors), arguments.metric)
    metrics = chosen.metrics()
    models = [model for model in fitted if model.callpath in paths and model.metric in metrics]
    described = [describe(model, points, arguments.interval, arguments.runs) for model in models]
    if not described:
        names = ", ".join(sorted(paths))
        raise ModelError(f"no usable measurement: every value of {names} is missing, negative or not finite")
    if study is not None:
        described = _with_speedup(models, described, study, problems, arguments.efficiency)
    if arguments.json:
        common.print_json({"models": described})
    else:
        _print(described, arguments.interval, arguments.runs)
        far = (note for point in points for note in extrapolation.of_measured(point, known, str(point)))
        for note in (*far, *extrapolation.steep(described, extrapolation.counts(known))):
            console().print(f"note: {note}", style="dim")
        if study is not None:
            _print_speedup(described, study)
    return 0


def _study(known: Measurements, arguments: argparse.Namespace) -> scaling.Study | None:
    """Return how runs on different numbers of processes are compared, where that was asked for."""
    if not arguments.speedup and arguments.efficiency is None:
        return None
    return modeling.study(known, arguments)


def _with_speedup(
    models: Sequence[Model],
    described: Sequence[dict[str, Any]],
    study: scaling.Study,
    problems: Sequence[Point],
    efficiency: float | None,
) -> list[dict[str, Any]]:
    """Add speedups to described models; one at least must be of times."""
    if not any(map(scaling.has_speedup, models)):
        metrics = ", ".join(dict.fromkeys(model.metric for model in models))
        raise ModelError(f"speedup and efficiency are of times in seconds; these are models of {metrics}")
    target = scaling_document.DEFAULT_TARGET if efficiency is None else efficiency
    return [
        {**item, "speedup": scaling_document.describe(model, study, problems, target)}
        for model, item in zip(models, described, strict=True)
    ]


def _print_speedup(described: Sequence[dict[str, Any]], study: scaling.Study) -> None:
    screen = console()
    assumed = f" ({study.reason}: say otherwise with --scaling)" if study.reason else ""
    screen.print(f"\n{study.text}{assumed}")
    for item in named(described):
        for found in item["speedup"]:
            screen.print(scaling_document.table(item, found))
            for sentence in scaling_document.sentences(item, found):
                screen.print(sentence)


def _levels(text: str) -> tuple[float, ...]:
    """Read ``50,80,95``."""
    try:
        return checked_levels([float(level) for level in text.split(",")])
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} are no levels in percent, such as 50,80,95") from None
    except CampaignError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _print(described: Sequence[dict[str, Any]], levels: Sequence[float], runs: int) -> None:
    screen = console()
    described = named(described)
    screen.print(models_table(described))
    for item in described:
        for prediction in item["predictions"][1:]:
            text = f"{label(item)} {item['metric']} at {configuration(prediction)}: {interval(prediction)}"
            screen.print(text)
    if levels:
        screen.print(intervals_table(described, runs))
    for line in _notes(described):
        screen.print(f"note: {line}", style="dim")


def _notes(described: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the notes on models; those that many share, but for their figures, once with their number."""
    own = [
        (f"{label(item)} {item['metric']}", note, _FIGURE.sub("", note))
        for item in described
        for note in [*item["notes"], *_silences(item)]
    ]
    alike: dict[str, list[str]] = {}
    for _, note, kind in own:
        alike.setdefault(kind, []).append(note)
    shared = set[str]()
    for name, note, kind in own:
        same = alike[kind]
        if len(same) <= _EACH:
            yield f"{name}: {note}"
        elif kind not in shared:
            shared.add(kind)
            differ = " (others with other figures)" if len(set(same)) > 1 else ""
            yield f"{name} and {len(same) - 1} others: {note}{differ}"
    if shared:
        yield "all notes of a call path: --callpath NAME; all of them: --json"


def _silences(item: dict[str, Any]) -> Iterator[str]:
    """Say where a model, though it is for the category, gives no number."""
    for prediction in item["predictions"]:
        there = {name: format_value(value) for name, value in prediction["point"].items()}
        if item["category"].items() <= there.items() and (said := without_number(prediction)):
            yield f"at {configuration(prediction)} {said}"
