"""Write one self-contained HTML page about a campaign, or about measurements in files."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.api import campaign_paths
from orchestrator.api.fit import fit_measurements
from orchestrator.api.inputs import campaign_among, of_metrics
from orchestrator.cli import common, inputs, modeling
from orchestrator.control import reporting
from orchestrator.errors import CampaignError, ModelError
from orchestrator.journal.file import require_campaign
from orchestrator.models.effort import EFFORT, has_effort
from orchestrator.models.scaling import Study
from orchestrator.readers.reading import SUFFIXES
from orchestrator.report.page import document as page_document
from orchestrator.report.page import priors
from orchestrator.report.page.render import page
from orchestrator.report.page.subject import Subject
from orchestrator.storage import YAML_SUFFIXES, iso
from orchestrator.types import Measurements
from orchestrator.units import listed

FILE_NAME = "report.html"
_NAMED = 3  # files in a title
# What a campaign says itself.
_OF_FILES = ("modeler", "option", "metric", "predict", "processes")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_inputs(parser)
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help=f"where to (default: {FILE_NAME} in the campaign directory; of files, in the current one)",
    )
    group = parser.add_argument_group("models of files", "a campaign says these itself")
    group.add_argument(
        "--predict",
        metavar="POINT",
        help="the point that the report answers for, e.g. p=1024,s=35 (default: the largest measured values)",
    )
    group.add_argument("--metric", action="append", help="model only this metric (repeatable)")
    modeling.add_modeler(group)
    modeling.add_processes(group)
    parser.add_argument(
        "--json", action="store_true", help="print what the page shows as one JSON document; write no file"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command; it only reads a campaign, also while a controller is running."""
    directory = _campaign(arguments.inputs)
    output: Path = arguments.output or (directory or Path()) / FILE_NAME
    inputs.refuse_as_output(output, arguments.inputs)
    if directory is None:
        document = _of_files(arguments)
    else:
        _refuse_models(arguments, directory)
        document = reporting.document(directory, output.parent)
    if arguments.json:
        common.print_json(document)
        return 0
    common.write(output, page(document))
    print(output)
    return 0


def _campaign(paths: Sequence[Path]) -> Path | None:
    """Return the campaign directory among the inputs, also by its name; None where they are files."""
    found = [campaign_paths.campaign_directory(str(path)) for path in paths]
    directory = campaign_among(found)
    if directory is None and len(paths) == 1 and _is_of_campaign(paths[0]):
        require_campaign(found[0])
    return directory


def _is_of_campaign(path: Path) -> bool:
    """Return whether an input that is no campaign directory was meant as one; a file may just be missing."""
    return path.suffix in YAML_SUFFIXES or not (path.exists() or path.suffix in SUFFIXES)


def _refuse_models(arguments: argparse.Namespace, directory: Path) -> None:
    for name in _OF_FILES:
        if getattr(arguments, name):
            raise CampaignError(
                f"--{name} is for measurements in files; {directory} is a campaign, which says it itself: "
                f"export it first (orchestrator export {directory} --format csv)"
            )


def _of_files(arguments: argparse.Namespace) -> dict[str, Any]:
    known = inputs.read(arguments)
    point = None if arguments.predict is None else common.parse_point(arguments.predict, known)
    chosen = known if arguments.metric is None else of_metrics(known, arguments.metric)
    with modeling.shown_progress():
        models = fit_measurements(known, modeling.modeler(arguments), arguments.metric)
    names = [path.name for path in arguments.inputs]
    return page_document.of_measurements(
        Subject(
            known=chosen,
            models=models,
            point=point,
            study=_study(chosen, arguments),
            is_exclusive=False if arguments.inclusive else None,
            **_without_priors(known, arguments),
        ),
        title=listed(names, _NAMED),
        generated=iso(time.time()),
        sources=[str(path) for path in arguments.inputs],
        modeler=arguments.modeler or modeling.DEFAULT,
    )


def _without_priors(known: Measurements, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return models without the counts that were used as priors, and what the priors are; nothing else."""
    metrics = [name for name in arguments.metric or known.metrics() if name not in EFFORT]
    if arguments.modeler != priors.COUNTING or not has_effort(known) or not metrics:
        return {}
    plain = fit_measurements(priors.largest(known), modeling.modeler(arguments), metrics)
    return {"unaided": plain, "priors": priors.sources([], counted=True)}


def _study(known: Measurements, arguments: argparse.Namespace) -> Study | None:
    """Return how runs on different numbers of processes are compared; None where nothing counts them."""
    try:
        return modeling.study(known, arguments)
    except ModelError:
        if arguments.processes is not None:
            raise
        return None
