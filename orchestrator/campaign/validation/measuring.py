"""What runs measure and count: something that is there, and nothing twice."""

from __future__ import annotations

from pathlib import Path

from orchestrator import registry
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.effort import (
    BUILD_WITH_COUNTERS,
    EFFORT_KEY,
    EFFORT_METRICS,
    EFFORT_SUFFIX,
    is_instrumented,
)
from orchestrator.campaign.schema import ProgramSection, SimulatedOptions
from orchestrator.campaign.yaml import Problem, Problems


def measurement(campaign: Campaign) -> Problems:
    """Repetitions, effort and output do not contradict each other."""
    measure = campaign.measure
    yield from _effort(campaign)
    if measure.repetitions.initial > measure.repetitions.maximum:
        initial, maximum = measure.repetitions.initial, measure.repetitions.maximum
        yield Problem(
            ("measure", "repetitions"), f"initial {initial} exceeds maximum {maximum}; raise maximum"
        )
    yield from _no_output(campaign)


def _effort(campaign: Campaign) -> Problems:
    """Effort runs can count, and nothing is both measured and counted."""
    effort = campaign.measure.effort
    if effort is None:
        return
    both = [metric for metric in campaign.measure.measured if metric in EFFORT_METRICS]
    if both:
        yield Problem(
            ("measure", "metrics"),
            f"{', '.join(both)} would be measured by time runs and counted by effort runs: drop it here, "
            "or write effort: false",
        )
    simulated = isinstance(campaign.executor, SimulatedOptions)  # a rehearsal counts by itself
    if not simulated and effort.profiler == "effort" and not is_instrumented(Path(effort.executable)):
        beside = effort.executable == f"{campaign.executable}{EFFORT_SUFFIX}"
        key = EFFORT_KEY if beside else (*EFFORT_KEY, "executable")
        yield Problem(
            key,
            f"{effort.executable} was not built to count effort (with {BUILD_WITH_COUNTERS}): its runs "
            "would measure nothing",
        )


def _no_output(campaign: Campaign) -> Problems:
    """A generic program whose output is read says what to read in it."""
    if campaign.measure.profiler == "stdout" and campaign.program is not None and not campaign.program.output:
        others = [name for name in registry.names("reader") if name not in ("stdout", "effort")]
        yield Problem(
            ("program",),
            "has no output, so profiler stdout finds nothing; add program.output, "
            f"or set measure.profiler to {' or '.join(others)}",
        )


def outputs(campaign: Campaign) -> Problems:
    """The values that are read from a generic program's output can be named and used."""
    for index, rule in enumerate(campaign.program.output if campaign.program is not None else ()):
        path = ("program", "output", index)
        if not rule.callpath.strip():
            yield Problem((*path, "callpath"), "is empty; name what the value belongs to, such as main")
        if not rule.metric.strip():
            yield Problem((*path, "metric"), "is empty; name what the value is, such as time")
        if rule.scale <= 0:
            yield Problem(
                (*path, "scale"),
                "must be greater than 0, as values are never negative and all zero says nothing; "
                f"write 1, or 0.001 for milliseconds (value: {rule.scale:g})",
            )


def metrics(campaign: Campaign) -> Problems:
    """Some run produces every metric that is to be kept."""
    known, remedy = _readable_metrics(campaign)
    if known is None:
        return
    missing = [metric for metric in campaign.measure.measured if metric not in known]
    if missing:
        there = f"runs produce only {', '.join(known)}"
        yield Problem(
            ("measure", "metrics"), f"no run produces metric {', '.join(missing)}: {there}; {remedy}"
        )


def _readable_metrics(campaign: Campaign) -> tuple[tuple[str, ...] | None, str]:
    """Return the metrics that runs produce (None where only a run can show that), and the remedy."""
    executor, profiler, program = campaign.executor, campaign.measure.profiler, campaign.program
    if isinstance(executor, SimulatedOptions):  # a data set is read when the rehearsal begins
        return (("time",) if executor.truth else None), "write metrics: [time], or give a dataset"
    if profiler == "time":
        printed = () if program is None else _of_outputs(program)
        there = tuple(dict.fromkeys(("time", *printed)))
        return there, "write metrics: [time], or choose another measure.profiler"
    if profiler == "stdout" and program is not None and program.output:
        return _of_outputs(program), "correct it, or add an item with this metric to program.output"
    return None, ""


def _of_outputs(program: ProgramSection) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rule.metric for rule in program.output))
