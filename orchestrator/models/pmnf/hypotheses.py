"""The hypotheses of the performance model normal form: exponents, blocks, and ways to combine them.

A *block* is one factor ``x**i * log2(x)**j`` of one parameter. A *term* is a product of at most one
block per parameter. A *hypothesis* is a constant plus up to a few terms (de Morais et al., Denoising
Application Performance Models with Noise-Resilient Priors, eq. 1). Inside the modeler a hypothesis is an
integer array ``(terms, parameters)`` of block numbers; block 0 is the factor 1.
Since ``a + b`` and ``b + a`` are the same, `canonical` gives one form of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats, Integers
from orchestrator.models.machine_code import compiled

Exponents = tuple[float, float]

# de Morais et al., eq. (2a) and (2b).
_POWERS = "0 1/4 1/3 1/2 2/3 3/4 4/5 1 5/4 4/3 3/2 5/3 7/4 2 9/4 7/3 5/2 8/3 11/4 3"
POLYNOMIAL = tuple(float(Fraction(text)) for text in _POWERS.split())
LOGARITHMIC = (0.0, 1.0, 2.0)
PAPER: tuple[Exponents, ...] = tuple((i, j) for i in POLYNOMIAL for j in LOGARITHMIC if i or j)

# The pairs that Extra-P 4.2 tries by default: fewer logarithms than the full product above.
_EXTRAP_LOGS = {
    0: _POWERS,
    1: "0 1/4 1/3 1/2 2/3 3/4 1 5/4 4/3 3/2 2 5/2 3",
    2: "0 1/4 1/3 1/2 2/3 3/4 1 3/2 2 5/2",
}
EXTRAP: tuple[Exponents, ...] = tuple(
    sorted(
        (float(Fraction(i)), float(j))
        for j, texts in _EXTRAP_LOGS.items()
        for i in texts.split()
        if i != "0" or j
    )
)

# Falling blocks for strong scaling: powers, and powers slowed down by one logarithm (log2(p)/p).
FALLING: tuple[Exponents, ...] = tuple((-i, j) for i in POLYNOMIAL if i for j in (0.0, 1.0))

# Beyond the sets: a cubic grid whose number of iterations grows with its edge takes n**4.
HIGHER: tuple[Exponents, ...] = tuple(
    (float(Fraction(i)), j) for i in ["10/3", "7/2", "11/3", "4", "9/2", "5"] for j in (0.0, 1.0)
)

# How a block grows in the end: it falls (``log2(x)/x``, too), is the factor 1, grows at most in proportion to
# its parameter, or faster.
FALLS, NO_BLOCK, IN_PROPORTION, FASTER = -1, 0, 1, 2

SETS = {"paper": PAPER, "extra-p": EXTRAP}


# Base in which the block numbers of a term make one number: more blocks than a parameter has.
_BLOCKS = 1000


def exponent_set(choice: str | Iterable[Sequence[float]]) -> tuple[Exponents, ...]:
    """Return the ``(exponent, log exponent)`` pairs named or listed by the option ``exponents``.

    Raises
    ------
    ModelError
        For an unknown name, a pair that is not two numbers, or a set without a usable pair.
    """
    if isinstance(choice, str):
        if choice not in SETS:
            raise ModelError(
                f"unknown exponent set {choice!r}: use one of {', '.join(SETS)}, or list pairs [i, j]"
            )
        return SETS[choice]
    pairs: list[Exponents] = []
    for pair in choice:
        if len(pair) != 2 or not all(np.isfinite(float(e)) for e in pair):
            raise ModelError(f"exponents: {pair!r} is not a pair [exponent, log exponent] of finite numbers")
        pairs.append((float(pair[0]), float(pair[1])))
    unique = tuple(sorted({pair for pair in pairs if pair != (0.0, 0.0)}))
    if not unique:
        raise ModelError("exponents: the list holds no pair besides (0, 0); a model needs one to grow")
    return unique


def block_values(x: Floats, exponents: Floats) -> Floats:
    """Evaluate blocks ``x**i * log2(x)**j``; below 1 the logarithm counts as 0, instead of turning negative.

    Parameters
    ----------
    x
        Values of one parameter, shape (n,), not negative.
    exponents
        Pairs (i, j), shape (b, 2).

    Returns
    -------
    Array of shape (b, n).
    """
    power, log_power = exponents[:, :1], exponents[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        values = np.where(power == 0, 1.0, np.power(x, power))
        return np.where(log_power == 0, values, values * np.power(np.log2(np.maximum(x, 1.0)), log_power))


def growth_of(blocks: Iterable[Floats]) -> tuple[Integers, ...]:
    """Return how the blocks of each parameter grow in the end: one of the numbers above, shape (blocks,)."""
    return tuple(_growth(pairs[:, 0], pairs[:, 1]) for pairs in blocks)


def _growth(power: Floats, log_power: Floats) -> Integers:
    grows = np.where((power < 1) | ((power == 1) & (log_power == 0)), IN_PROPORTION, FASTER)
    return np.where(power < 0, FALLS, np.where((power == 0) & (log_power == 0), NO_BLOCK, grows))


def partitions(items: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield every way to divide items into groups: each group becomes one product term.

    >>> list(partitions((0, 1)))
    [((0, 1),), ((0,), (1,))]
    """
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for partition in partitions(rest):
        for k, group in enumerate(partition):
            yield (*partition[:k], (first, *group), *partition[k + 1 :])
        yield ((first,), *partition)


def stacked(tables: tuple[Floats, ...]) -> tuple[Integers, Floats]:
    """Put the blocks of all parameters, each (blocks, points), one after another; say where each begins."""
    return np.cumsum([0, *map(len, tables)])[:-1], np.concatenate(tables)


def structures(parameters: int) -> int:
    """Return the number of ways to combine parameters: what the priors of all hypotheses sum to.

    Each set of parameters, divided into products in each way (Bell's numbers).
    """
    bell = [1]
    for n in range(parameters + 1):
        bell.append(sum(math.comb(n, k) * bell[k] for k in range(n + 1)))
    return bell[parameters + 1]


@compiled
def canonical(terms: NDArray[np.int16]) -> tuple[NDArray[np.int16], Integers]:
    """Sort the terms of each hypothesis, used ones first.

    Parameters
    ----------
    terms
        Block numbers, shape (hypotheses, terms, parameters).

    Returns
    -------
    The same with sorted terms, and a number for each term, shape (hypotheses, terms).
    """
    count, size, parameters = terms.shape
    result, code = np.empty_like(terms), np.empty((count, size), dtype=np.intp)
    for h in range(count):
        for t in range(size):
            number = 0
            for k in range(parameters):
                number = number * _BLOCKS + terms[h, t, k]
            place = t
            while place > 0 and code[h, place - 1] < number:
                code[h, place] = code[h, place - 1]
                for k in range(parameters):
                    result[h, place, k] = result[h, place - 1, k]
                place -= 1
            code[h, place] = number
            for k in range(parameters):
                result[h, place, k] = terms[h, t, k]
    return result, code


@compiled
def terms_used(terms: NDArray[np.int16]) -> Integers:
    """Count the terms of each hypothesis that have a block, of shape (hypotheses, terms, parameters)."""
    result = np.zeros(len(terms), dtype=np.intp)
    for h in range(len(terms)):
        for t in range(terms.shape[1]):
            for k in range(terms.shape[2]):
                if terms[h, t, k]:
                    result[h] += 1
                    break
    return result


@compiled
def blocks_used(terms: NDArray[np.int16]) -> Integers:
    """Count the blocks of each parameter in each hypothesis, shape (hypotheses, parameters)."""
    result = np.zeros((len(terms), terms.shape[2]), dtype=np.intp)
    for h in range(len(terms)):
        for t in range(terms.shape[1]):
            for k in range(terms.shape[2]):
                if terms[h, t, k]:
                    result[h, k] += 1
    return result


@compiled
def blocks_chosen(terms: NDArray[np.int16]) -> Integers:
    """Count the different blocks of each parameter in each hypothesis, shape (hypotheses, parameters).

    A block that terms share is chosen once.
    """
    result = np.zeros((len(terms), terms.shape[2]), dtype=np.intp)
    for h in range(len(terms)):
        for k in range(terms.shape[2]):
            for t in range(terms.shape[1]):
                new = terms[h, t, k] != 0
                for u in range(t):
                    new &= terms[h, u, k] != terms[h, t, k]
                if new:
                    result[h, k] += 1
    return result


def widened(terms: NDArray[np.int16], width: int) -> NDArray[np.int16]:
    """Return hypotheses with so many terms, of which those that are added are unused."""
    more = width - terms.shape[1]
    return np.pad(terms, ((0, 0), (0, more), (0, 0))) if more else terms


def begins(row: Integers) -> NDArray[np.bool_]:
    """Return where runs of equal numbers of call paths begin."""
    return np.asarray(np.diff(row, prepend=-1) != 0)


def places(row: Integers) -> Integers:
    """Return the place of every entry within its run of equal numbers of call paths."""
    return np.arange(len(row)) - np.maximum.accumulate(np.where(begins(row), np.arange(len(row)), 0))


def first_occurrences(row: Integers, code: Integers) -> Integers:
    """Return where each combination of a call path and of numbers of terms occurs first, ascending.

    Parameters
    ----------
    row
        Call path, shape (hypotheses,).
    code
        Numbers of its terms from `canonical`, shape (hypotheses, terms).
    """
    keys = np.column_stack([row, code])
    order = np.lexsort(keys.T)  # stable: of equal ones the first comes first
    new = np.ones(len(order), dtype=bool)
    new[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    return np.sort(order[new])
