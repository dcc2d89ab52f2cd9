"""What a campaign says about runs that share a job, for the rule in `packing`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence

from orchestrator.campaign import Campaign
from orchestrator.executors.base import Executor
from orchestrator.measured import ELAPSED
from orchestrator.models.base import Model, expected_total
from orchestrator.packing import Packer, Rules
from orchestrator.state import State
from orchestrator.types import Run


def wanted(campaign: Campaign) -> bool:
    """Whether runs may share a job: where there are jobs, and more than one run is allowed in them."""
    options = campaign.executor
    return options.name in ("slurm", "simulated") and options.pack.most not in ("off", 1)


def rules(campaign: Campaign) -> Rules:
    """Return what the campaign says."""
    pack = campaign.executor.pack
    return Rules(pack.most if isinstance(pack.most, int) else None, pack.longest, pack.repetitions)


def packer(
    campaign: Campaign,
    state: State,
    executor: Executor,
    shape: Callable[[Run], Hashable],
    expected: Callable[[Run], float],
) -> Packer:
    """Return what the rule needs to know now; ``shape`` and ``expected`` as in `Packer`."""
    return Packer(
        rules(campaign),
        state.price,
        shape,
        functools.cache(expected),
        lambda limits: executor.reserved_seconds(*limits),
    )


def expected(campaign: Campaign, models: Sequence[Model], run: Run, overhead: float) -> float | None:
    """Return the seconds that the model of durations, or the user, expects of a run; None if neither does.

    Durations, as they are measured, have the ``overhead`` of a job.
    """
    slowdown = campaign.slowdown(run.kind)
    durations = [model for model in models if model.metric == ELAPSED]
    seconds = float(expected_total(durations, [run.point])[0]) if durations else math.nan
    if math.isfinite(seconds):
        return slowdown * max(0.0, seconds - overhead)
    stated = campaign.expected_time(run.point)
    return None if stated is None else slowdown * stated
