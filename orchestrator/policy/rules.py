"""The rules of a campaign, as decisions see them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.policy.packing import SharingRules
from orchestrator.policy.placement import Placement
from orchestrator.types import FailureClass, Point
from orchestrator.units import CostUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The campaign's rules.

    Attributes
    ----------
    budget
        Core-seconds.
    patience
        λ: rounds without gain after which the campaign may stop.
    failures
        Consecutive runs given up after which the campaign stops.
    max_pending
        Most jobs that are queued or running.
    retries
        Further attempts per class of failure.
    wall_time
        Seconds.
    rule
        What a gain is: ``uncertainty``, or ``smape``, the papers' rule. That has no further condition.
    without_gain
        Share of the budget that must be spent without gain, too, before the campaign stops.
    width
        Relative width of intervals at P₊ that is narrow enough; if given, nothing else is.
    failure_rate
        Share of failures among the last attempts that stops the campaign.
    infrastructure
        Core-seconds of attempts that failed because of the infrastructure after which the campaign pauses.
    validation_point
        Where one run checks the models at the end.
    sharing
        Which runs may share a job; None: every attempt has a job of its own.
    placement
        Which nodes runs are asked onto.
    unit
        In which messages give costs.
    """

    budget: float
    patience: int
    failures: int
    max_pending: int
    retries: Mapping[FailureClass, int]
    wall_time: float | None = None
    rule: str = "uncertainty"
    without_gain: float = 0.0
    width: float | None = None
    failure_rate: float | None = None
    infrastructure: float = math.inf
    validation_point: Point | None = None
    sharing: SharingRules | None = None
    placement: Placement = "any"
    unit: CostUnit = "core-hours"
