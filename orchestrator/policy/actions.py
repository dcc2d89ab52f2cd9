"""What a decision may ask of the loop."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.resources import Reservation
from orchestrator.types import Attempt, Run


@dataclass(frozen=True, slots=True)
class Submit:
    """Journal an intent with its reservation, then submit the attempt.

    Attempts with the same ``pack`` share a job in this order; ``pack`` is the first of them.
    """

    attempt: Attempt
    reservation: Reservation
    pack: Attempt | None = None


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No further attempt at this run."""

    run: Run
    reason: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Do not begin this run; ``unaffordable``: because the budget left cannot hold it."""

    run: Run
    reason: str
    unaffordable: bool = False


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


@dataclass(frozen=True, slots=True)
class Validate:
    """Propose one run at the evaluation point."""

    run: Run


@dataclass(frozen=True, slots=True)
class Pause:
    """Begin nothing more until somebody resumes the campaign."""

    cause: str
    detail: str


@dataclass(frozen=True, slots=True)
class BeginStop:
    """A stop rule holds: propose nothing more."""

    rule: str
    detail: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Everything is settled: end the campaign."""

    rule: str
    detail: str


Single = GiveUp | Skip | Fit | Assess | Propose | Validate | Pause | BeginStop | Stop
"""What the loop does one by one; attempts are submitted together."""
Action = Submit | Single
