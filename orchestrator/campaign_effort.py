"""Runs that count effort: which executable they start, and what is wrong with it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator import campaign_resolve, counting
from orchestrator.campaign_schema import Measure, ModelChoice
from orchestrator.campaign_yaml import Problem, Tree
from orchestrator.models import swc_foretold
from orchestrator.models.base import Modeler
from orchestrator.types import Application, Measurements

if TYPE_CHECKING:
    from orchestrator.campaign import Campaign

KEY = ("measure", "effort")
SUFFIX = "-effort"
METRICS = ("visits", "basic_blocks", "bytes_sent", "bytes_received", "communicator_size")
"""What effort runs are read for. Times measured in them are those of counting."""

_MARK = b"liborchestrator-effort.so"  # what a program is linked with that counts
_HOW = 'CXX="$(orchestrator effort compiler mpicxx)" make'


def resolved(measure: Measure, executable: str, base: Path, tree: Tree) -> Measure:
    """Return the section with the effort runs' executable and template as absolute paths.

    ``effort: true`` means the program beside the campaign's executable whose name ends in ``-effort``.
    """
    effort = measure.effort
    if effort is None:
        return measure
    update: dict[str, str] = {}
    try:
        wanted = effort.executable or _beside(executable)
        update["executable"] = campaign_resolve.executable(wanted, base)
    except ValueError as error:
        tree.problems.append(Problem((*KEY, "executable") if effort.executable else KEY, str(error)))
    if effort.template is not None and campaign_resolve.is_path(effort.template, base):
        try:
            update["template"] = campaign_resolve.file(effort.template, base)
        except ValueError as error:
            tree.problems.append(Problem((*KEY, "template"), str(error)))
    return measure.model_copy(update={"effort": effort.model_copy(update=update)})


def defaults(measure: Measure, model: ModelChoice, written: Mapping[str, Any]) -> tuple[Measure, ModelChoice]:
    """Return what a campaign that counts effort means where it does not say otherwise.

    The modeler that knows priors, and one timed run of a point: the paper's section V-A.4, "a single
    noise-sensitive measurement per configuration".
    """
    if "model" not in written:
        model = ModelChoice(name="swc")
    section = written.get("measure")
    repetitions = section.get("repetitions") if isinstance(section, Mapping) else None
    if not isinstance(repetitions, Mapping) or "initial" not in repetitions:
        once = measure.repetitions.model_copy(update={"initial": 1})
        measure = measure.model_copy(update={"repetitions": once})
    return measure, model


def rule(campaign: Campaign, application: Application) -> counting.Rule | None:
    """Return the rules of counting; None where no effort is counted."""
    effort = campaign.measure.effort
    if effort is None:
        return None
    return counting.Rule(
        effort.repetitions,
        effort.when == "always",
        campaign.parameters,
        lambda point: application.ranks(campaign.values(point)) > 1,
    )


def verdicts(campaign: Campaign, modeler: Modeler, known: Measurements) -> counting.Verdicts:
    """Judge whether effort models foretell counts; nothing where it makes no difference."""
    effort, options = campaign.measure.effort, campaign.model.options
    if effort is None or effort.when == "always":
        return {}
    chosen = {key: options[key] for key in ("times", "tolerance", "ranks") if key in options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return swc_foretold.foretold(known, campaign.parameters, modeler, **chosen)


def _beside(executable: str) -> str:
    path = f"{executable}{SUFFIX}"
    if not executable or Path(path).is_file():
        return path
    raise ValueError(
        f"there is no {path}: times and effort need a build each. Build that one with {_HOW}, or name it "
        "under measure.effort.executable; see docs/effort.md"
    )


def problems(campaign: Campaign) -> Iterator[Problem]:
    """Yield what is wrong with effort runs as a whole."""
    effort = campaign.measure.effort
    if effort is None:
        return
    both = [metric for metric in campaign.measure.metrics if metric in METRICS]
    if both:
        yield Problem(
            ("measure", "metrics"),
            f"{', '.join(both)} would be measured by time runs and counted by effort runs: drop it here, "
            "or write effort: false",
        )
    if campaign.executor.name == "simulated":
        if campaign.executor.dataset is None:
            yield Problem(
                KEY, "executor.truth states times, no counts: give executor.dataset, or write effort: false"
            )
    elif effort.profiler == "effort" and not is_instrumented(Path(effort.executable)):
        key = KEY if effort.executable == f"{campaign.executable}{SUFFIX}" else (*KEY, "executable")
        yield Problem(
            key, f"{effort.executable} was not built to count effort (with {_HOW}): its runs would be in vain"
        )


def is_instrumented(path: Path) -> bool:
    """Tell whether a program is linked with the counters' library. Scripts are taken at their word."""
    try:
        content = path.read_bytes()
    except OSError:
        return True  # what is wrong with the file is said elsewhere
    return not content.startswith(b"\x7fELF") or _MARK in content


def counts_for_sure(path: Path) -> bool:
    """Tell whether a file is a program that is linked with the counters' library."""
    return is_instrumented(path) and path.read_bytes().startswith(b"\x7fELF")
