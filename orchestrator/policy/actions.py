"""What a decision may ask of the loop: to journal an event, or to do what then becomes events."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.journal import events
from orchestrator.resources import Reservation
from orchestrator.types import Attempt


@dataclass(frozen=True, slots=True)
class Submit:
    """Journal an intent with its reservation, then submit the attempt.

    Attempts with the same ``pack`` share a job in this order; ``pack`` is the first of them.
    """

    attempt: Attempt
    reservation: Reservation
    pack: Attempt | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """Refit the models: the round is complete."""

    round: int


@dataclass(frozen=True, slots=True)
class Assess:
    """Journal how good the models are of what is left after values of measurements changed."""


@dataclass(frozen=True, slots=True)
class Propose:
    """Ask the strategy for a round."""

    round: int


Decided = (
    events.RunGivenUp
    | events.RunSkipped
    | events.ValidationProposed
    | events.StopWithdrawn
    | events.CampaignPaused
    | events.StopRuleReached
    | events.CampaignStopped
)
"""Events that are decisions: journaled as they are."""
Single = Fit | Assess | Propose | Decided
"""What the loop does one by one; attempts are submitted together."""
Action = Submit | Single
