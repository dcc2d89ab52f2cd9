"""Hypotheses in one form each, and each of them once: ``a + b`` and ``b + a`` are the same; their sizes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.compiled import compiled
from orchestrator.models.hypotheses import Integers

_BLOCKS = 1000  # more than a parameter has


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
                result[h, place] = result[h, place - 1]
                place -= 1
            code[h, place] = number
            result[h, place] = terms[h, t]
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
def first_of_each(row: Integers, code: Integers) -> Integers:
    """Return where each combination of a call path and of numbers of terms occurs first, by a hash table.

    Parameters
    ----------
    row
        Call path, shape (hypotheses,).
    code
        Numbers of its terms from `canonical`, shape (hypotheses, terms).
    """
    size = 16
    while size < 2 * len(row):
        size *= 2
    table, found = np.full(size, -1, dtype=np.intp), np.empty(len(row), dtype=np.intp)
    count = 0
    for h in range(len(row)):
        mixed = np.uint64(row[h])
        for t in range(code.shape[1]):
            mixed = (mixed ^ np.uint64(code[h, t])) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        place = np.intp(mixed & np.uint64(size - 1))
        while table[place] >= 0 and not _same(row, code, table[place], h):
            place = (place + 1) % size
        if table[place] < 0:
            table[place] = h
            found[count] = h
            count += 1
    return found[:count].copy()


@compiled
def _same(row: Integers, code: Integers, one: int, other: int) -> bool:
    equal: bool = row[one] == row[other]
    for t in range(code.shape[1]):
        equal = equal and code[one, t] == code[other, t]
    return equal
