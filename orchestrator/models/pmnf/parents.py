"""Hypotheses of the shape ``c0 + f(x) (c1 + c2 g(y))``: a call path whose parts grow alike in one parameter.

A parent is the sum of its children: where one computes ``f(n)`` and another communicates ``f(n) log(p)``, the
sum repeats the block of n, which no hypothesis with one term per parameter does.
"""

from __future__ import annotations

import itertools

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.pmnf.candidates import Candidates, Searched, by_callpath, lowest
from orchestrator.models.pmnf.sweep import Problem, problems, sweep

# Best hypotheses of a call path that are kept for every pair of parameters, as starts of a search.
_KEPT = 4
# Call paths swept at a time: keeps the arrays within the cache. Chosen by hand; not derived.
_TOGETHER = 64


def shared(searched: Searched) -> tuple[Candidates, Floats]:
    """Find the best hypotheses whose two terms share the block of one parameter.

    Parameters
    ----------
    searched
        Values over two and more parameters.

    Returns
    -------
    Hypotheses ordered by call path, and their weighted residual sums of squares.
    """
    parts = []
    for begin, problem in problems(searched, wide=False, together=_TOGETHER):
        parts += [
            _pair(problem, k, j, begin) for k, j in itertools.permutations(range(len(searched.tables)), 2)
        ]
    return by_callpath(parts)


def _pair(problem: Problem, k: int, j: int, begin: int) -> tuple[Candidates, Floats]:
    """Return the best hypotheses of which both terms have one block of parameter k, and one also j."""
    rows, blocks = len(problem.variance), len(problem.factors[k].table) - 1
    terms = np.zeros((rows * blocks, len(problem.factors), len(problem.factors)), dtype=np.int16)
    terms[:, :2, k] = np.tile(np.arange(1, blocks + 1), rows)[:, None]
    row = np.repeat(np.arange(rows), blocks)
    rss = sweep(problem, row, terms, 1, (j,), (False,))
    rss[:, 0] = np.inf  # the second term would repeat the first
    flat = rss.reshape(rows, -1)
    chosen, found = lowest(flat, _KEPT)
    state, block = np.divmod(found, rss.shape[1])
    result = terms[chosen * blocks + state]
    result[:, 1, j] = block
    return Candidates(chosen + begin, result), flat[chosen, found]
