"""What an attempt is made from, and what it measured: the request, its script, the samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orchestrator import registry
from orchestrator.campaign.effort import EFFORT_METRICS
from orchestrator.control import preloading, success
from orchestrator.control.assembly import Assembly
from orchestrator.errors import ReadError
from orchestrator.journal import nodes
from orchestrator.journal.events import Samples
from orchestrator.journal.state import InFlight, State
from orchestrator.launch.mpi import launcher_for
from orchestrator.launch.script import launch_script
from orchestrator.policy.placement import nodelist
from orchestrator.readers.base import Reader
from orchestrator.readers.inverse import with_inverses
from orchestrator.readers.select import select
from orchestrator.types import Attempt, AttemptRequest, Point, Resources, RunKind, Sample

RUNS = "runs"
"""The folder of all attempts in a campaign directory."""


def request(
    assembly: Assembly, directory: Path, state: State, attempt: Attempt, flight: InFlight
) -> AttemptRequest:
    """Return everything an executor needs for an attempt."""
    campaign, application = assembly.campaign, assembly.application
    point = attempt.run.point
    values = campaign.values(point)
    resources = assembly.resources(point)
    simulated = campaign.executor.name == "simulated"
    rule = campaign.placement
    return AttemptRequest(
        attempt=attempt,
        name=flight.name,
        directory=directory / RUNS / attempt.id,
        resources=resources,
        limit=flight.limit,
        pack=flight.pack,
        likely=flight.likely,
        exclude=nodes.excluded(state.marks),
        nodelist=nodelist(rule, state, attempt.run, resources.nodes),
        placed=rule != "any",
        memory=flight.memory,
        script="" if simulated else script(assembly, point, resources, attempt.run.kind),
        files={} if simulated else dict(application.files(values)),
        executable="" if simulated else campaign.executable_at(point, attempt.run.kind),
        begun=flight.running,
    )


def script(assembly: Assembly, point: Point, resources: Resources, kind: RunKind = "time") -> str:
    """Render the launch script of a run."""
    campaign = assembly.campaign
    options, frame = campaign.executor, campaign.frame(kind)
    executable = campaign.executable_at(point, kind)
    return launch_script(
        application=assembly.application,
        executable=executable,
        settings=campaign.values(point),
        resources=resources,
        launcher=launcher_for(
            executable, options.launcher, options.name, resources, options.mpi, serial=campaign.serial
        ),
        frame=frame,
        preload=preloading.libraries(frame.profiler, executable),
        template=campaign.launch,
    )


def measured(
    assembly: Assembly, directory: Path, kind: RunKind, samples: Sequence[Sample] | None = None
) -> Samples:
    """Read what an attempt left in its directory, unless its samples are known; raise ``ReadError``."""
    measure = assembly.campaign.measure
    profiler, metrics, aggregate = measure.profiler, measure.measured, measure.aggregate
    effort = measure.effort if kind == "effort" else None
    if effort is not None:
        profiler, aggregate = effort.profiler, effort.aggregate or aggregate
    if samples is None:
        success.check(directory, measure.success, measure.failure)
        read: Reader = registry.load("reader", profiler)
        samples = tuple(read(directory, assembly.application, measure.inclusive))
        if effort is None:
            samples += _printed(assembly, directory, profiler, metrics, samples)
    if effort is not None:
        metrics = _counted(samples)
    values = select(samples, metrics, aggregate)
    if effort is None:
        values = with_inverses(values, measure.inverted, str(directory))
    chosen: dict[str, dict[str, float]] = {}
    for (callpath, metric), value in values.items():
        chosen.setdefault(metric, {})[callpath] = value
    return chosen


def _printed(
    assembly: Assembly, directory: Path, profiler: str, metrics: Sequence[str], samples: Sequence[Sample]
) -> tuple[Sample, ...]:
    """Return what the application prints of metrics that its profile lacks, such as a figure of merit."""
    missing = set(metrics) - {sample.metric for sample in samples}
    program = assembly.campaign.program
    if not missing or profiler == "stdout" or (program is not None and not program.output):
        return ()
    read: Reader = registry.load("reader", "stdout")
    try:
        printed = read(directory, assembly.application)
    except ReadError:
        return ()  # the missing metrics will be named, with those that there are
    return tuple(sample for sample in printed if sample.metric in missing)


def _counted(samples: Sequence[Sample]) -> tuple[str, ...]:
    """Return the effort metrics that a run has counted: without MPI, for example, there are no bytes."""
    there = {sample.metric for sample in samples}
    counted = tuple(metric for metric in EFFORT_METRICS if metric in there)
    if not set(counted) - {"visits"}:
        raise ReadError(
            f"no effort was counted ({' or '.join(EFFORT_METRICS[1:])}); this run has "
            f"{', '.join(sorted(there)) or 'nothing'}"
        )
    return counted
