"""How runs are executed: simulation, options of jobs, launch script and files."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import suppress

from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import SharedJobOptions, SimulatedOptions, SlurmOptions
from orchestrator.campaign.yaml import Problem, Problems
from orchestrator.errors import CampaignError
from orchestrator.executors.attempt.directory import OURS
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.launch import script
from orchestrator.types import Resources, Value


def simulated(campaign: Campaign) -> Problems:
    """A rehearsal states in one way what runs would yield."""
    executor = campaign.executor
    if not isinstance(executor, SimulatedOptions):
        return
    given = [key for key in ("truth", "dataset", "models") if getattr(executor, key)]
    if not given:
        yield Problem(
            ("executor",),
            "the simulated executor needs executor.truth, executor.dataset or executor.models, for what "
            "runs would yield; 'orchestrator simulate' finds out by itself what is known",
        )
    elif len(given) > 1:
        yield Problem(
            ("executor", given[1]),
            f"is given beside {given[0]}, and both say what runs would yield; keep one of them",
        )


def jobs(campaign: Campaign) -> Problems:
    """The options of jobs do not contradict each other or the executor."""
    executor = campaign.executor
    if not isinstance(executor, SharedJobOptions):
        return
    if executor.pack.repetitions == "together" and executor.pack.most in ("off", 1):
        text = "off lets no runs share a job, so repetitions cannot be kept together; write auto or a number"
        yield Problem(("executor", "pack", "most"), text)
    if not isinstance(executor, SlurmOptions):
        return
    for name, value in executor.sbatch.items():
        try:
            JobOptions(sbatch={name: value})
        except CampaignError as error:
            yield Problem(("executor", "sbatch", name), str(error).partition(": ")[2])
    if executor.partition is not None and executor.by_size:
        yield Problem(("executor", "by_size"), "executor.partition is given, too; keep one of them")


def launch_script(campaign: Campaign) -> Problems:
    """The launch script can be written for every number of ranks, threads and nodes that a run has."""
    executor, effort = campaign.executor, campaign.measure.effort
    if executor.name == "simulated":
        return
    try:
        if effort is not None and effort.template is not None:
            script.find_frame(effort.template, executor.name)
        spec, frame = campaign.application_spec, campaign.frame()
        for shape, values in _shapes(campaign).items():
            script.launch_script(
                application=spec,
                executable=campaign.executable,
                settings=values,
                resources=shape,
                launcher=executor.launcher or "mpiexec",  # which one is there is looked up when runs begin
                frame=frame,
                template=campaign.launch,
            )
    except CampaignError as error:
        key, _, text = str(error).partition(": ")
        own = key.startswith("executor.")
        launch = campaign.launch
        of_launch = launch is not None and str(error).startswith(f"{launch.source}:")
        place = ("template",) if of_launch else ("executor", "template")
        yield Problem(tuple(key.split(".")) if own else place, text if own else str(error))


def _shapes(campaign: Campaign) -> dict[Resources, Mapping[str, Value]]:
    """Return what the runs of a campaign occupy, each with the settings of the first such run."""
    shapes: dict[Resources, Mapping[str, Value]] = {}
    validated = campaign.validation_point
    points = campaign.space.some()
    for point in itertools.chain(points, [] if validated is None else [validated]):
        # `points` reports a point that the machine cannot hold, or the application cannot run.
        with suppress(ValueError, CampaignError):
            values = campaign.values(point)
            if campaign.application_spec.check(values) is None:
                shapes.setdefault(campaign.resources_at(values), values)
    return shapes


def files(campaign: Campaign) -> Problems:
    """Files of a generic program do not replace those of the attempt."""
    for name in campaign.program.files if campaign.program is not None else ():
        if name in OURS:
            yield Problem(("program", "files", name), "is a file of the attempt's own; choose another name")


def template(campaign: Campaign) -> Problems:
    """The launch template is one, and the only place that says what the program's arguments are."""
    if campaign.template is None:
        return
    try:
        known = campaign.launch is not None
    except CampaignError as error:
        yield Problem(("template",), str(error))
        return
    if known and campaign.program is not None and campaign.program.arguments:
        yield Problem(
            ("program", "arguments"), "are in the template, too: write them there, and remove them here"
        )
