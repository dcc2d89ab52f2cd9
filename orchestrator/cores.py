"""The cores that a run occupies, as an expression in the parameters says."""

from __future__ import annotations

from collections.abc import Callable, Collection

from orchestrator import expressions
from orchestrator.errors import CampaignError, ExpressionError
from orchestrator.types import Point

_OPTION = "--processes"


def of_expression(text: str, names: Collection[str], texts: Collection[str] = ()) -> Callable[[Point], float]:
    """Return the cores of a run at a point, from what ``--processes`` says.

    Parameters
    ----------
    text
        The expression.
    names, texts
        Parameters, and those of them that are categorical.

    Raises
    ------
    ExpressionError
        For a malformed expression; at a point for one that cannot be evaluated there.
    CampaignError
        At a point where it gives less than one core.
    """
    try:
        expression = expressions.parse(text, names, texts)
    except ExpressionError as error:
        raise ExpressionError(f"{_OPTION}: {error}") from None

    def cores(point: Point) -> float:
        try:
            found = expression.number(point.as_dict())
        except ExpressionError as error:
            raise ExpressionError(f"{_OPTION}: {error}") from None
        if found < 1:
            raise CampaignError(
                f"{_OPTION} {text!r} gives {found:g} at {point}: a run occupies at least one core"
            )
        return found

    return cores
