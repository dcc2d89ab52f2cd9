"""The run time that a rehearsal assumes for a campaign of which nothing is known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from orchestrator.control import planning
from orchestrator.control.assembly import Assembly
from orchestrator.control.execution import executor
from orchestrator.errors import CampaignError
from orchestrator.types import Point, Value

_SHARE = 0.1  # of the budget, for the first round
_OF_LIMIT = 0.5  # of the time limit, at most, for the longest run
_CONSTANT = 0.1  # of the mean run of the first round, which every run takes


def run_time(built: Assembly) -> tuple[str, str]:
    """Return a run time for a campaign of which none is known, as an expression, and its form in words.

    It grows with the product of the numeric parameters and is divided by those that decide about ranks and
    threads, with a constant part beside it. The first round costs a tenth of the budget, or less where the
    longest run would need more than half of its time limit.
    """
    campaign = built.campaign
    first = planning.first_round(built, executor(campaign, Path(campaign.name), 0.0))
    sizes, divisors = _roles(built)
    shape = " * ".join(sizes) or "1"
    if divisors:
        shape += "".join(f" / {name}" for name in divisors)
    form = campaign.expression(shape)
    timed = [
        (form.number(campaign.values(run.point)), cores, limit)
        for run, cores, limit in zip(first.runs, first.cores, first.limits, strict=True)
        if run.kind == "time"
    ]
    total = sum(cores for _, cores, _ in timed)
    mean = sum(value * cores for value, cores, _ in timed) / total
    values = {item.name: item.values for item in campaign.parameters}
    largest = math.prod(float(max(values[name])) for name in sizes)
    largest /= math.prod(float(min(values[name])) for name in divisors)
    longest = _CONSTANT + (1 - _CONSTANT) * max(largest, mean) / mean
    seconds = min(
        _SHARE * campaign.stop.budget / total, _OF_LIMIT * min(limit for _, _, limit in timed) / longest
    )
    slope = f"{(1 - _CONSTANT) * seconds / mean:.3g} * {shape}"
    words = f"a constant part, and one in proportion to {shape}" if sizes or divisors else "constant"
    price = f"the first round costs at most {100 * _SHARE:.0f} % of the budget"
    return f"{_CONSTANT * seconds:.3g} + {slope}", f"{words}; {price}"


def _roles(built: Assembly) -> tuple[list[str], list[str]]:
    """Return the positive numeric parameters: those of the problem's size, those of ranks and threads."""
    campaign = built.campaign
    sizes: list[str] = []
    divisors: list[str] = []
    for item in campaign.parameters:
        wanted = campaign.evaluation_point
        values = (*item.values, *(() if wanted is None else (wanted[item.name],)))
        if item.categorical or any(isinstance(value, str) or value <= 0 for value in values):
            continue
        (divisors if _decides_cores(built, item.name, item.values) else sizes).append(item.name)
    return sizes, divisors


def _decides_cores(built: Assembly, name: str, values: Sequence[Value]) -> bool:
    """Return whether runs that differ in one parameter alone occupy other ranks or threads."""
    application, campaign = built.application, built.campaign
    for point in itertools.islice(built.space, 5):
        shapes = set()
        for value in values:
            # Combinations that are no points: values may not follow from them, or contradict each other.
            with suppress(CampaignError, ValueError):
                there = campaign.values(Point.of({**point.as_dict(), name: value}))
                if application.check(there) is None:
                    shapes.add((application.ranks(there), application.threads(there)))
        if len(shapes) > 1:
            return True
    return False
