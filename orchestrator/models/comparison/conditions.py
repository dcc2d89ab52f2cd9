"""Conditions under which a comparison fails: ``ratio > 1.1 with 95 %``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.errors import CampaignError
from orchestrator.models.comparison.compared import At, Compared
from orchestrator.models.comparison.mixtures import Mixture
from orchestrator.models.symbolic import Term, exponent_deviation, growth, terms_of

_FORMS = (
    "write 'ratio > 1.1 with 95 %', 'growth > 0.1 with 90 %' (the exponent by which B/A grows with a "
    "parameter), 'change with 95 %', or 'theory > 0.2' (the exponent of B beyond that of --against-theory)"
)
_NUMBER = r"([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)"
_PATTERN = re.compile(
    rf"^\s*(?P<subject>ratio|growth|theory|change)(?:\s*(?P<relation>[<>])\s*(?P<bound>-?{_NUMBER}))?"
    rf"(?:\s+with\s+(?P<sure>{_NUMBER})\s*%)?\s*$"
)
_SURE = 95.0  # percent, where a condition does not say it


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What must not be: ``subject`` is ``ratio``, ``growth``, ``theory`` or ``change``.

    ``above``: whether it must not be above or below the ``bound``; ``sure``: the probability from which it
    counts; ``text``: as the user wrote it.
    """

    text: str
    subject: str
    above: bool
    bound: float
    sure: float

    @classmethod
    def of(cls, text: str) -> Condition:
        """Read a condition.

        Raises
        ------
        CampaignError
            For any other text.
        """
        match = _PATTERN.match(text)
        if match is None:
            raise CampaignError(f"condition {text!r}: {_FORMS}")
        subject, bound = match["subject"], match["bound"]
        if (bound is None) != (subject == "change"):
            raise CampaignError(
                f"condition {text!r}: {subject} {'needs no' if bound else 'needs a'} bound; {_FORMS}"
            )
        if subject == "theory" and match["sure"]:
            raise CampaignError(f"condition {text!r}: theory is without a probability; {_FORMS}")
        sure = float(match["sure"] or _SURE)
        if not 50 <= sure < 100:
            raise CampaignError(f"condition {text!r}: give a probability from 50 % to below 100 %")
        value = float(bound or 0.0)
        if subject == "ratio" and not value > 0:
            raise CampaignError(f"condition {text!r}: a ratio is greater than 0, such as 1.1")
        return cls(
            text=" ".join(text.split()),
            subject=subject,
            above=match["relation"] != "<",
            bound=value,
            sure=sure / 100,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A condition at one call path: ``probability`` that it holds (None where that is not known)."""

    condition: Condition
    probability: float | None
    failed: bool


def check(
    condition: Condition, row: Compared, there: Sequence[At], theory: Sequence[Term] | None = None
) -> Check | None:
    """Return whether a condition holds for a call path at any of the points; None where it is not about it.

    The probability of a ratio, or of its growth, includes that nothing changed.
    """
    if condition.subject == "theory":
        return None if theory is None else _against(condition, row, theory)
    if condition.subject == "change":
        found = row.probability
    elif condition.subject == "ratio":
        found = max(
            (_share(condition, row.posterior(at), math.log(condition.bound)) for at in there), default=None
        )
    else:
        found = max((share for at in there for share in _growths(condition, row, at)), default=None)
    return Check(condition=condition, probability=found, failed=found is not None and found >= condition.sure)


def _share(condition: Condition, known: Mixture, bound: float) -> float:
    return known.above(bound) if condition.above else known.below(bound)


def _growths(condition: Condition, row: Compared, at: At) -> list[float]:
    if row.ratio is None or not row.paired:
        return []
    point = {name: at.point.number(name) for name in row.ratio.pairs.parameters}
    changed = row.ratio.probability()
    unchanged = Mixture.zero()
    return [
        _share(
            condition,
            Mixture.joined([(changed, row.ratio.growth(name, point)), (1 - changed, unchanged)]),
            condition.bound,
        )
        for name in point
    ]


def _against(condition: Condition, row: Compared, theory: Sequence[Term]) -> Check | None:
    if row.second is None or not terms_of(row.second):
        return None
    terms, names = terms_of(row.second), row.second.parameters
    sign = {name: growth(terms, name) >= growth(theory, name) for name in names}
    beyond = [exponent_deviation(terms, theory, name) * (1 if sign[name] else -1) for name in names]
    failed = any(x > condition.bound if condition.above else x < condition.bound for x in beyond)
    return Check(condition=condition, probability=None, failed=failed)
