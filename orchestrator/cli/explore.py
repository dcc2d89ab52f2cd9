"""Explore measurements before modelling: which parameters matter, and what is redundant.

Parameters and responses are clustered by rank correlation, parameters are ranked by what they explain of each
response, and every response is drawn over intervals of every parameter.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from orchestrator.api.inputs import of_metrics
from orchestrator.cli import common, inputs
from orchestrator.errors import ModelError
from orchestrator.report import explore, explore_page, noise_report
from orchestrator.report.callpath_names import selected
from orchestrator.report.explore_statistics import INTERVALS
from orchestrator.report.tables import console
from orchestrator.types import Measurements

_FILE = Path("explore.html")
_TIME = "time"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_inputs(parser)
    parser.add_argument("--metric", action="append", help="explore only this metric (repeatable)")
    parser.add_argument(
        "--callpath", action="append", default=[], help="only call paths with this text (repeatable)"
    )
    parser.add_argument(
        "--responses",
        metavar="N",
        type=common.whole(1),
        default=explore.MOST,
        help=f"the N largest responses (default {explore.MOST})",
    )
    parser.add_argument(
        "--intervals",
        metavar="N",
        type=common.whole(2),
        default=INTERVALS,
        help=f"of a parameter with more than 2 N values (default {INTERVALS})",
    )
    parser.add_argument(
        "--output", metavar="FILE", type=Path, default=_FILE, help=f"page to write (default {_FILE})"
    )
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    output: Path = arguments.output
    inputs.refuse_as_output(output, arguments.inputs)
    known = inputs.read(arguments)
    known = known if arguments.metric is None else of_metrics(known, arguments.metric)
    paths = selected((item.callpath for item in known.items), arguments.callpath)
    items = tuple(item for item in known.items if item.callpath in paths)
    known = replace(known, items=items, notes=())  # notes are printed already
    exploration = explore.explored(known, arguments.responses, arguments.intervals)
    title = ", ".join(path.name or str(path.resolve()) for path in arguments.inputs)
    common.write(output, explore_page.page(exploration, title, _noise(known)))
    if arguments.json:
        common.print_json({**explore.document(exploration), "page": str(output)})
        return 0
    screen = console()
    screen.print(explore_page.overview(exploration))
    for text in exploration.findings:
        screen.print(text)
    for text in exploration.samples.notes:
        screen.print(f"note: {text}", style="dim")
    print(output)
    return 0


def _noise(known: Measurements) -> noise_report.NoiseReport | None:
    """Return the noise of the times, or of the only metric; None where nothing was repeated."""
    metrics = known.metrics()
    metric = metrics[0] if len(metrics) == 1 else _TIME
    try:
        return noise_report.noise_report(of_metrics(known, [metric])) if metric in metrics else None
    except ModelError:
        return None
