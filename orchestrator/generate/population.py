"""Draw functions at random, in parts or as a whole, such that they can be run within the given range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.errors import CampaignError
from orchestrator.generate.complexity import (
    ARRANGEMENTS,
    OPERATIONS,
    RANKS,
    Communication,
    Computation,
    Element,
    Function,
    Product,
)
from orchestrator.models import LOGARITHMIC, POLYNOMIAL

_TRIES = 1000
# Probability that the number of MPI calls of a function grows, with messages of constant size.
_REPEATED_CALLS = 0.2


@dataclass(frozen=True, slots=True)
class Range:
    """Smallest and largest value of every parameter, MPI ranks ``p`` among them."""

    smallest: Mapping[str, float]
    largest: Mapping[str, float]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(self.smallest)

    def growth(self, product: Product) -> float:
        """How much larger a product is at the largest values than at the smallest."""
        total = 1.0
        for name, (i, j) in product.items():
            low, high = self.smallest[name], self.largest[name]
            total *= (high / low) ** i * (np.log2(high) / np.log2(low)) ** j
        return float(total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a user requests of generated functions; whatever is None or empty is drawn."""

    # arrangement, loops: of the computation.
    arrangement: str | None = None
    loops: tuple[Element, ...] = ()
    # operation, message, calls: of the communication; ``message`` may be () for messages of constant size.
    operation: str | None = None
    message: tuple[Element, ...] | None = None
    calls: Element | None = None
    # exponents, logs: I and J of eq. 2.
    exponents: tuple[float, ...] = POLYNOMIAL
    logs: tuple[float, ...] = LOGARITHMIC
    # most_work, most_bytes, most_calls: largest growth of loops, bytes and calls over the range; nothing that
    # grows more is drawn.
    most_work: float = 1000.0
    most_bytes: float = 100.0
    most_calls: float = 10.0


DEFAULT = Request()


def elements(parameter: str, request: Request) -> tuple[Element, ...]:
    """Return the elements of F in one parameter (eq. 3), without the constant."""
    powers = tuple(Element(parameter, exponent=i) for i in request.exponents if i)
    return (*powers, *(Element(parameter, log_exponent=j) for j in request.logs if j))


def draw(index: int, range_: Range, request: Request, rng: np.random.Generator) -> Function:
    """Draw one function.

    Raises
    ------
    CampaignError
        When nothing that may be drawn is small enough, or the request does not fit the range.
    """
    return Function(f"f{index:03d}", _computation(range_, request, rng), _communication(range_, request, rng))


def _computation(range_: Range, request: Request, rng: np.random.Generator) -> Computation:
    for _ in range(_TRIES):
        arrangement = request.arrangement or str(rng.choice(ARRANGEMENTS))
        found = Computation(arrangement, request.loops or _loops(arrangement, range_, request, rng))
        if request.loops or all(range_.growth(term) <= request.most_work for term in found.terms):
            return found
    raise CampaignError(
        f"no loops found whose work grows at most {request.most_work:g}-fold from {_text(range_.smallest)} "
        f"to {_text(range_.largest)}: allow more with --most-work, or give smaller exponents"
    )


def _loops(
    arrangement: str, range_: Range, request: Request, rng: np.random.Generator
) -> tuple[Element, ...]:
    """Draw one or two loops; two nested ones over one parameter are a power and a logarithm."""
    names = range_.parameters
    first = _pick(elements(str(rng.choice(names)), request), rng)
    if rng.random() < 0.5:
        return (first,)
    second = _pick(elements(str(rng.choice(names)), request), rng)
    if second.parameter != first.parameter:
        return (first, second)
    if arrangement == "nested" and bool(first.exponent) != bool(second.exponent):
        return (first, second) if first.exponent else (second, first)
    return (first,)


def _pick(choices: Sequence[Element], rng: np.random.Generator) -> Element:
    return choices[int(rng.integers(len(choices)))]


def _communication(range_: Range, request: Request, rng: np.random.Generator) -> Communication:
    for _ in range(_TRIES):
        operation = request.operation or str(rng.choice(OPERATIONS))
        message = _message(range_, request, rng) if request.message is None else request.message
        calls = request.calls
        if calls is None and request.message is None and rng.random() < _REPEATED_CALLS:
            calls = _pick(elements(str(rng.choice(range_.parameters)), request), rng)
            message = ()
        if operation == "barrier":
            message = ()
        found = Communication(operation, message, calls)
        requested = request.message is not None and request.calls is not None
        frequent = calls is not None and range_.growth(calls.product) > request.most_calls
        if requested or (not frequent and range_.growth(found.volume) <= request.most_bytes):
            return found
    raise CampaignError(
        f"no messages found that grow at most {request.most_bytes:g}-fold from {_text(range_.smallest)} to "
        f"{_text(range_.largest)}: allow more with --most-bytes, or give smaller exponents"
    )


def _message(range_: Range, request: Request, rng: np.random.Generator) -> tuple[Element, ...]:
    """Draw an element of F for none, some or all of the parameters."""
    chosen = [name for name in range_.parameters if rng.random() < 0.6]
    return tuple(_pick(elements(name, request), rng) for name in chosen)


def check(range_: Range) -> None:
    """Refuse a range in which loops or logarithms make no sense.

    Raises
    ------
    CampaignError
        Naming the parameter.
    """
    if RANKS not in range_.smallest:
        raise CampaignError(f"the range has no {RANKS}, the number of MPI ranks: --smallest {RANKS}=2,n=1000")
    if set(range_.smallest) != set(range_.largest):
        raise CampaignError("--smallest and --largest must name the same parameters")
    for name, low in range_.smallest.items():
        if not low >= 2:
            raise CampaignError(
                f"--smallest {name}={low:g}: at least 2, for log2(1) is 0 and would be no work"
            )
        if range_.largest[name] < low:
            raise CampaignError(
                f"{name}: the largest value {range_.largest[name]:g} is below the smallest, {low:g}"
            )


def _text(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in values.items())
