"""Columns of a prior: sums of powers and logarithms whose coefficients are not known yet.

De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section III-B: a prior
is a list of columns. Each has one unknown coefficient, not negative, and is a fixed sum of products of powers
and logarithms. A column of computation is one term of the basic-block model. A column of communication is
what follows α, β or γ in Table I, with the whole model of the transferred bytes as ``B(p, x)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.mpi_costs import Row
from orchestrator.models.pmnf.hypotheses import block_values
from orchestrator.models.symbolic import Term

Exponent = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Monomial:
    """``coefficient * Π name**i * log2(name)**j``; ``factors`` are (name, (i, j)), sorted by name."""

    coefficient: float
    factors: tuple[tuple[str, Exponent], ...] = ()

    def times(self, other: Monomial) -> Monomial:
        """Return the product."""
        exponents = dict(self.factors)
        for name, (i, j) in other.factors:
            old = exponents.get(name, (0.0, 0.0))
            exponents[name] = (old[0] + i, old[1] + j)
        kept = tuple(sorted((name, pair) for name, pair in exponents.items() if any(pair)))
        return Monomial(self.coefficient * other.coefficient, kept)


@dataclass(frozen=True, slots=True)
class Column:
    """A sum of monomials with one unknown coefficient.

    ``counted`` is its coefficient in the basic-block model. It is 0 for a constant and for communication,
    whose size no count of basic blocks gives.
    """

    monomials: tuple[Monomial, ...]
    counted: float = 0.0

    @property
    def constant(self) -> bool:
        """Whether the column depends on no parameter."""
        return not any(m.factors for m in self.monomials)


@dataclass(frozen=True, slots=True)
class Size:
    """Ranks of a communicator: ``name**exponent``; a constant without a name."""

    name: str = ""
    exponent: float = 1.0

    @property
    def inverse(self) -> Monomial:
        """One over the size."""
        return Monomial(1.0, ((self.name, (-self.exponent, 0.0)),) if self.name else ())

    @property
    def itself(self) -> Monomial:
        """The size."""
        return Monomial(1.0, ((self.name, (self.exponent, 0.0)),) if self.name else ())

    @property
    def log(self) -> Monomial:
        """What the logarithm of the size is proportional to, the constant aside."""
        return Monomial(1.0, ((self.name, (0.0, 1.0)),) if self.name else ())


CONSTANT = Column((Monomial(1.0),))


def monomials(terms: Iterable[Term]) -> tuple[Monomial, ...]:
    """Convert the terms of a model (`orchestrator.models.symbolic.Symbolic.terms`)."""
    return tuple(
        Monomial(
            term["coefficient"],
            tuple(sorted((f["parameter"], (f["exponent"], f["log_exponent"])) for f in term["factors"])),
        )
        for term in terms
    )


def computation(terms: Iterable[Term]) -> tuple[Column, ...]:
    """Return the prior of computation: the basic-block model without its coefficients (section III-B).

    A model with negative coefficients stays one column: its terms mean nothing on their own.
    """
    found = monomials(terms)
    if any(m.coefficient < 0 for m in found):
        return (Column(found, counted=1.0),)
    return tuple(
        Column((Monomial(1.0, m.factors),), m.coefficient) for m in found if m.factors and m.coefficient > 0
    )


def communication(
    row: Row, calls: Sequence[Monomial], volume: Sequence[Monomial], size: Size
) -> tuple[Column, ...]:
    """Return the prior of one MPI operation, Table I.

    Parameters
    ----------
    row
        The operation's row.
    calls
        How often it is called: every call has its latency.
    volume
        B(p, x), the model of the bytes of the whole vector; empty where there are none.
    size
        Of the communicator.
    """
    latency = size.log if row.tree else size.itself if row.partners else Monomial(1.0)
    columns = [Column(tuple(m.times(latency) for m in calls))]
    if row.partners and size.name:
        columns = [_less(columns[0].monomials, calls)]
    if volume:
        fraction = Column(tuple(volume))
        if size.name:
            fraction = _less(volume, [m.times(size.inverse) for m in volume])
        if row.rounds:
            fraction = Column(tuple(m.times(size.log) for m in volume))
        columns.append(fraction if row.fraction or row.rounds else Column(tuple(volume)))
        if row.reduces:
            columns.append(fraction)
    return tuple(columns)


def _less(whole: Sequence[Monomial], part: Sequence[Monomial]) -> Column:
    """Return a difference as one column."""
    return Column((*whole, *(Monomial(-m.coefficient, m.factors) for m in part)))


def distinct(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return a constant, then every other column once.

    Columns that differ only by a factor are one column, because regression cannot determine their
    coefficients separately. Of two such columns the one with the larger ``counted`` stays.
    """
    kept: dict[tuple[tuple[float, object], ...], Column] = {}
    for column in columns:
        if column.constant:
            continue
        scale = column.monomials[0].coefficient
        key = tuple((round(m.coefficient / scale, 9), m.factors) for m in column.monomials)
        if key not in kept or column.counted > kept[key].counted:
            kept[key] = column
    return (CONSTANT, *kept.values())


def evaluate(columns: Sequence[Column], parameters: Sequence[str], x: Floats) -> Floats:
    """Evaluate columns at coordinates (n, parameters): shape (n, columns)."""
    place = {name: k for k, name in enumerate(parameters)}
    result = np.zeros((len(x), len(columns)))
    for c, column in enumerate(columns):
        for monomial in column.monomials:
            value = np.full(len(x), monomial.coefficient)
            for name, pair in monomial.factors:
                value *= block_values(x[:, place[name]], np.array([pair]))[0]
            result[:, c] += value
    return result


def names(columns: Sequence[Column]) -> frozenset[str]:
    """Return the parameters that appear."""
    return frozenset(n for column in columns for m in column.monomials for n, _ in m.factors)
