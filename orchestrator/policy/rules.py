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
    """The campaign's rules."""

    budget: float  # core-seconds
    patience: int  # λ: rounds without gain after which the campaign may stop
    failures: int  # consecutive runs given up after which the campaign stops
    max_pending: int  # most jobs that are queued or running
    retries: Mapping[FailureClass, int]  # further attempts per class of failure
    wall_time: float | None = None  # seconds
    # What a gain is: ``uncertainty``, or ``smape``, the papers' rule. That has no further condition.
    rule: str = "uncertainty"
    # Share of the budget that must be spent without gain, too, before the campaign stops.
    without_gain: float = 0.0
    # Relative width of intervals at P₊ that is narrow enough; if given, nothing else is.
    width: float | None = None
    failure_rate: float | None = None  # share of failures among the last attempts that stops the campaign
    # Core-seconds of attempts that failed because of the infrastructure after which the campaign pauses.
    infrastructure: float = math.inf
    validation_point: Point | None = None  # where one run checks the models at the end
    # Which runs may share a job; None: every attempt has a job of its own.
    sharing: SharingRules | None = None
    placement: Placement = "any"  # which nodes runs are asked onto
    unit: CostUnit = "core-hours"  # in which messages give costs
