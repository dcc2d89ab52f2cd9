"""How models grow: comparison of leading behaviour, and the exponent deviation.

Growth is read from terms as models list them (``{"coefficient", "factors"}``), so any model that has terms
can be compared, also one that a user wrote down as a theoretical expectation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Term = Mapping[str, Any]
Growth = tuple[float, float]


def growth(terms: Sequence[Term], parameter: str) -> Growth:
    """Leading behaviour in one parameter, all others fixed: ``(exponent, log exponent)``.

    That of the fastest growing term with a coefficient other than zero; (0, 0) for a constant. Decreasing
    terms lead only where there is nothing else.

    Parameters
    ----------
    terms
        Terms as in `orchestrator.models.base.Model.terms`.
    parameter
        Name of the parameter.
    """
    leading = [_growth_of(term, parameter) for term in terms if term["coefficient"] != 0]
    return max(leading, default=(0.0, 0.0))


def _growth_of(term: Term, parameter: str) -> Growth:
    for factor in term["factors"]:
        if factor["parameter"] == parameter:
            return float(factor["exponent"]), float(factor["log_exponent"])
    return 0.0, 0.0


def compare(first: Sequence[Term], second: Sequence[Term], parameter: str) -> int:
    """Return 1 where the first model grows faster in a parameter, -1 where the second does, else 0."""
    a, b = growth(first, parameter), growth(second, parameter)
    return (a > b) - (a < b)


def exponent_deviation(first: Sequence[Term], second: Sequence[Term], parameter: str) -> float:
    """Difference of the leading exponents, ``|n1 - n2|``; logarithms and constants have exponent 0.

    De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, eq. (4).
    """
    return abs(growth(first, parameter)[0] - growth(second, parameter)[0])
