"""Stated theories: expressions such as ``p + n * log2(n * p)`` as sums of terms, to compare models with."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from orchestrator import expressions
from orchestrator.errors import CampaignError, ExpressionError
from orchestrator.evaluation.sums import sum_of
from orchestrator.models.callpaths import SEPARATOR
from orchestrator.models.symbolic import Term
from orchestrator.report.callpath_names import shortened
from orchestrator.types import Measurements
from orchestrator.units import did_you_mean

_FORM = "write a sum of products of powers and logarithms, such as p + n * log2(n * p)"


def stated(texts: Sequence[str], known: Measurements) -> dict[str, tuple[Term, ...]]:
    """Return the theory of every call path that one is stated for, ``CALLPATH=EXPRESSION``.

    Parameters
    ----------
    texts
        Call paths are given in full, as they are shown, or by a part that only one of them has.
    known
        What was measured.

    Raises
    ------
    CampaignError
        For a text without ``=``, an unknown or ambiguous call path, an unknown parameter, or an expression
        of another form.
    """
    found = {}
    for text in texts:
        name, equals, expression = text.rpartition("=")
        if not equals or not name.strip() or not expression.strip():
            raise CampaignError(f"theory {text!r}: write CALLPATH=EXPRESSION, such as 'main=n * log2(n)'")
        found[_callpath(name.strip(), known)] = terms(expression.strip(), known.parameters)
    return found


def _callpath(name: str, known: Measurements) -> str:
    short = shortened(item.callpath for item in known.items)
    for same in (
        [path for path in short if path == name],
        [path for path in short if short[path] == name],
        [path for path in short if short[path].rpartition(SEPARATOR)[2] == name],
        [path for path in short if name in path],
    ):
        if len(same) == 1:
            return same[0]
        if same:
            raise CampaignError(
                f"theory of {name!r}: {len(same)} call paths have this name: {', '.join(same)}"
            )
    raise CampaignError(f"theory of {name!r}: no such call path; {did_you_mean(name, short.values())}")


def terms(text: str, names: Collection[str]) -> tuple[Term, ...]:
    """Return an expression as JSON-ready terms (`orchestrator.models.symbolic`).

    Raises
    ------
    CampaignError
        For an expression that is malformed, or no sum of products of powers and logarithms.
    """
    try:
        expressions.parse(text, names)
        total = sum_of(text)
    except ExpressionError as error:
        raise CampaignError(f"theory {text!r}: {error}") from None
    except ValueError as error:
        raise CampaignError(f"theory {text!r}: {error}; {_FORM}") from None
    return tuple(
        {
            "coefficient": coefficient,
            "factors": [{"parameter": n, "exponent": i, "log_exponent": j} for n, (i, j) in monomial],
        }
        for monomial, coefficient in total.items()
        if coefficient
    )
