"""Checks of what a campaign is begun for: values that its runs can yield, rules that can hold.

What they refuse was once accepted: directories of such campaigns can be read, but not continued.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from orchestrator import registry
from orchestrator.campaign_yaml import Problem

if TYPE_CHECKING:
    from orchestrator.campaign import Campaign
    from orchestrator.campaign_schema import Program

Problems = Iterator[Problem]


def outputs(campaign: Campaign) -> Problems:
    """Yield what is wrong with the values that are read from a generic program's output."""
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
    """Yield a problem where runs cannot yield a metric that is to be kept."""
    known, remedy = _metrics(campaign)
    if known is None:
        return
    lacking = [metric for metric in campaign.measure.metrics if metric not in known]
    if lacking:
        there = f"runs yield only {', '.join(known)}"
        yield Problem(
            ("measure", "metrics"), f"{', '.join(lacking)} is measured by nothing: {there}; {remedy}"
        )


def _metrics(campaign: Campaign) -> tuple[tuple[str, ...] | None, str]:
    """Return the metrics that runs yield, None where that cannot be told, and what to do for others."""
    executor, profiler, program = campaign.executor, campaign.measure.profiler, campaign.program
    if executor.name == "simulated":  # a data set is read when the rehearsal begins
        return (("time",) if executor.dataset is None else None), "write metrics: [time], or give a dataset"
    if profiler == "time":
        return ("time",), "write metrics: [time], or choose another measure.profiler"
    if profiler == "stdout" and program is not None and program.output:
        return _of_outputs(program), "correct it, or add an item with this metric to program.output"
    return None, ""


def _of_outputs(program: Program) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rule.metric for rule in program.output))


def no_output(campaign: Campaign) -> Problems:
    """Yield a problem where a generic program's output is to be read, and nothing in it is described."""
    if campaign.measure.profiler == "stdout" and campaign.program is not None and not campaign.program.output:
        others = [name for name in registry.names("reader") if name not in ("stdout", "effort")]
        yield Problem(
            ("program",),
            "has no output, so profiler stdout finds nothing; add program.output, "
            f"or set measure.profiler to {' or '.join(others)}",
        )


def width(campaign: Campaign) -> Problems:
    """Yield a problem where a stop rule asks for intervals at a point that is not given."""
    if campaign.stop.width is not None and campaign.evaluation_point is None:
        yield Problem(
            ("stop", "width"),
            "is the width of intervals at the evaluation point, which is not given, so the rule never holds; "
            f"add evaluation_point, or remove it (value: {campaign.stop.width:g})",
        )
