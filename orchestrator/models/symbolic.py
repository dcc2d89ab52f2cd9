"""Models that are sums of terms: what such models offer, how they read, and how they grow.

A term is JSON-ready: ``{"coefficient", "factors": [{"parameter", "exponent", "log_exponent"}]}``. It stands
for ``coefficient * Π parameter**exponent * log2(parameter)**log_exponent``. Everything here works on such
terms, so any model that has terms can be compared, also one that a user wrote down as an expectation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from inspect import getattr_static
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from orchestrator.types import format_value

Term = Mapping[str, Any]
Growth = tuple[float, float]

LARGEST_LOG = 700.0
"""Largest logarithm that is not infinite as a number, 709.8, with a margin for sums."""
# Exponents are written as fractions up to twelfths: the sets in use have thirds, quarters and fifths, and a
# mean of two of them has at most this denominator. Fractions with the second denominators are short decimals.
_LARGEST_DENOMINATOR = 12
_READABLE_AS_DECIMALS = (1, 2, 4, 5, 8, 10)
_SIGNIFICANT = 0.01  # of the sum of the absolute values of all terms


@runtime_checkable
class Symbolic(Protocol):
    """The ability to be read as a sum of terms, and hence to be compared by growth."""

    @property
    def normal_form(self) -> str:
        """The sum of terms as text, without any correction for what the terms do not fit."""
        ...

    @property
    def terms(self) -> list[dict[str, Any]]:
        """JSON-ready terms; a constant has no factors."""
        ...


def terms_of(model: object) -> list[dict[str, Any]]:
    """Return the terms of a model; none if it is not a sum of terms."""
    # `isinstance` would find all terms, to see that they are there, and again in the text of their sum.
    offered = all(getattr_static(model, name, None) is not None for name in ("terms", "normal_form"))
    return model.terms if offered else []  # type: ignore[attr-defined]


def growth(terms: Sequence[Term], parameter: str) -> Growth:
    """Return the leading behaviour in one parameter, all others fixed: ``(exponent, log exponent)``.

    That of the fastest growing term with a coefficient other than zero; (0, 0) for a constant. Decreasing
    terms lead only where there is nothing else.

    Parameters
    ----------
    terms
        Terms as in `Symbolic.terms`.
    parameter
        Name of the parameter.
    """
    leading = [_growth_of(term, parameter) for term in terms if term["coefficient"] != 0]
    return max(leading, default=(0.0, 0.0))


def significant(terms: Sequence[Term], table: Mapping[str, NDArray[np.float64]]) -> list[Term]:
    """Return the terms that make up more than 1 % of the terms' sizes at one of some points at least.

    Parameters
    ----------
    terms
        Terms as in `Symbolic.terms`.
    table
        Values of the parameters at the points, shape (n,) each.
    """
    with np.errstate(all="ignore"):
        sizes = np.abs([term_values(term, table) for term in terms])
        shares = sizes / sizes.sum(axis=0)
    # Where nothing can be said (an overflow, no term), a term counts.
    return [term for term, own in zip(terms, shares, strict=True) if not np.all(own <= _SIGNIFICANT)]


def falls(terms: Sequence[Term], parameter: str) -> bool:
    """Return whether some term decreases in a parameter, all others fixed."""
    return any(_growth_of(term, parameter) < (0.0, 0.0) for term in terms if term["coefficient"] != 0)


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
    """Return the difference of the leading exponents, ``|n1 - n2|``; logarithms and constants count as 0.

    De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, eq. (4).
    """
    return abs(growth(first, parameter)[0] - growth(second, parameter)[0])


def power_law(coefficient: float, names: Iterable[str], exponents: Iterable[float]) -> list[dict[str, Any]]:
    """Return a product of powers as one JSON-ready term; exponents of 0 are left out."""
    factors = [
        {"parameter": name, "exponent": float(exponent), "log_exponent": 0.0}
        for name, exponent in zip(names, exponents, strict=True)
        if exponent
    ]
    return [{"coefficient": coefficient, "factors": factors}]


def power_law_through(
    log_value: float,
    log_point: NDArray[np.float64],
    names: Sequence[str],
    exponents: NDArray[np.float64],
    digits: int,
) -> list[dict[str, Any]]:
    """Return the power law that has a value at a point, as one JSON-ready term.

    Over a narrow range, as of years, exponents may be so large that no number is its coefficient: then it is
    the constant that has this value.

    Parameters
    ----------
    log_value, log_point
        Logarithms of the value, and of the point, shape (parameters,).
    names, exponents, digits
        Of the parameters; exponents are rounded to so many digits in the term.
    """
    log_coefficient = log_value - float(exponents @ log_point)
    if abs(log_coefficient) > LARGEST_LOG:
        return power_law(math.exp(min(max(log_value, -LARGEST_LOG), LARGEST_LOG)), (), ())
    return power_law(math.exp(log_coefficient), names, np.round(exponents, digits).tolist())


def sum_text(terms: Sequence[Term]) -> str:
    """Return a sum of terms as text that Python can evaluate: ``0.3 + 2.1e-4 * p**0.5 * log2(p) * n``."""
    return " + ".join(term_text(term) for term in terms).replace("+ -", "- ")


def term_text(term: Term) -> str:
    """Return one term as text: ``2.1e-4 * p**0.5 * log2(p)``."""
    factors = [
        factor
        for f in term["factors"]
        for factor in (
            power_text(f["parameter"], f["exponent"]),
            power_text(f"log2({f['parameter']})", f["log_exponent"]),
        )
        if factor
    ]
    return " * ".join([number_text(term["coefficient"]), *factors])


def power_text(base: str, exponent: float) -> str:
    """Return a power as text, with thirds and the like as fractions; empty for exponent 0."""
    if exponent == 0:
        return ""
    if exponent == 1:
        return base
    fraction = Fraction(exponent).limit_denominator(_LARGEST_DENOMINATOR)
    if fraction.denominator in _READABLE_AS_DECIMALS or abs(float(fraction) - exponent) > 1e-9:
        plain = format_value(exponent)
        return f"{base}**{plain}" if exponent > 0 else f"{base}**({plain})"
    return f"{base}**({fraction})"


def number_text(value: float) -> str:
    """Return four significant digits: ``2.1e-4``, ``0.3``, ``1780``."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    rounded = float(f"{value:.4g}")
    if 1e-3 <= abs(rounded) < 1e6:
        return np.format_float_positional(rounded, trim="-")
    mantissa, exponent = f"{rounded:.3e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def term_values(term: Term, table: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the values of one term where parameters have the values of a table, shape (n,) each.

    Without parameters there is one place, where all terms are constants.
    """
    places = len(next(iter(table.values()))) if table else 1
    result = np.full(places, float(term["coefficient"]))
    for factor in term["factors"]:
        x = table[factor["parameter"]]
        result = result * x ** factor["exponent"]
        if factor["log_exponent"]:
            result = result * np.log2(x) ** factor["log_exponent"]
    return result
