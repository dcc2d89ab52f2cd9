"""What a generated function costs: loops and messages whose sizes are elements of F.

De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section IV and eq. 3:
``F = {x**i, log2(x)**j}`` with i and j from eq. 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.models.mpi_costs import TABLE
from orchestrator.models.symbolic import power_text

RANKS = "p"
ARRANGEMENTS = ("nested", "sequential")
OPERATIONS = ("allgather", "allreduce", "barrier", "bcast", "gather", "reduce", "scatter", "send", "recv")

# A sum of products: each entry maps a parameter to its (exponent, log exponent).
Product = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Element:
    """An element of F: ``parameter**exponent``, or ``log2(parameter)**log_exponent``."""

    parameter: str
    exponent: float = 0.0
    log_exponent: float = 0.0

    @property
    def product(self) -> Product:
        """The element as a product of one factor."""
        return {self.parameter: (self.exponent, self.log_exponent)}


@dataclass(frozen=True, slots=True)
class Computation:
    """Loops over elements of F, one after the other or each inside the one before."""

    arrangement: str
    loops: tuple[Element, ...]

    @property
    def terms(self) -> tuple[Product, ...]:
        """Growth of the number of operations; nested loops work at every level: ``n + n*p`` (section IV)."""
        if self.arrangement == "sequential":
            return tuple(loop.product for loop in self.loops)
        return tuple(multiplied(loop.product for loop in self.loops[: k + 1]) for k in range(len(self.loops)))


@dataclass(frozen=True, slots=True)
class Communication:
    """An MPI function, called ``calls`` times (None: once), with a vector that grows like ``message``.

    A message without elements has a constant size.
    """

    operation: str
    message: tuple[Element, ...] = ()
    calls: Element | None = None

    @property
    def volume(self) -> Product:
        """Growth of the transferred bytes of all calls."""
        return multiplied(e.product for e in (*self.message, *((self.calls,) if self.calls else ())))

    @property
    def terms(self) -> tuple[Product, ...]:
        """Growth of the expected time: latency and transfer (Table I); (p-1)/p changes no growth."""
        row = TABLE[self.operation][0]
        calls: Product = self.calls.product if self.calls else {}
        latency = multiplied([calls, {RANKS: (0.0, 1.0)}]) if row.tree else calls
        return (latency, self.volume) if row.metric else (latency,)


@dataclass(frozen=True, slots=True)
class Function:
    """A generated function: computation, then communication."""

    name: str
    computation: Computation
    communication: Communication


def multiplied(products: Iterable[Product]) -> Product:
    """Multiply products by adding the exponents of each parameter."""
    total: dict[str, tuple[float, float]] = {}
    for product in products:
        for name, (i, j) in product.items():
            old = total.get(name, (0.0, 0.0))
            total[name] = (old[0] + i, old[1] + j)
    return {name: pair for name, pair in total.items() if any(pair)}


def model_terms(products: Sequence[Product]) -> list[dict[str, Any]]:
    """Return products as the terms of a model, each with coefficient 1."""
    return [
        {
            "coefficient": 1.0,
            "factors": [
                {"parameter": name, "exponent": i, "log_exponent": j}
                for name, (i, j) in sorted(product.items())
            ],
        }
        for product in products
    ]


def text(products: Sequence[Product]) -> str:
    """Return products as a readable sum, equal ones once: ``n + n * log2(p)``."""
    return " + ".join(dict.fromkeys(map(_product_text, products)))


def _product_text(product: Product) -> str:
    factors = (
        power_text(base, exponent)
        for name, pair in sorted(product.items())
        for base, exponent in zip((name, f"log2({name})"), pair, strict=True)
    )
    return " * ".join(filter(None, factors)) or "1"
