"""Hypotheses with a falling and a growing term of one parameter: work that is divided, and what that costs.

Where times fall with the processes, what every one of them computes falls, and what they exchange grows.
Among few processes noise hides what they exchange, among many there is hardly anything else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats, Integers
from orchestrator.models.pmnf.candidates import PENALTY, Candidates, Searched, lowest
from orchestrator.models.pmnf.hypotheses import FALLS, widened
from orchestrator.models.pmnf.sweep import Problem, problems, sweep

# Hypotheses that are kept for each one that gets a growing term. Chosen by hand; not derived.
_KEPT = 100
# Call paths swept at a time: keeps the arrays within the cache. Chosen by hand; not derived.
_TOGETHER = 64


def overheads(searched: Searched, first: Candidates, rss: Floats, growth: tuple[Integers, ...]) -> Candidates:
    """Give hypotheses a further term in which a parameter grows that falls in another one.

    Parameters
    ----------
    searched
        Values over two and more parameters.
    first, rss
        Hypotheses ordered by call path, and their weighted residual sums of squares.
    growth
        How the blocks of each parameter grow, see `hypotheses.growth_of`.

    Returns
    -------
    Those that explain a call path at least nearly as well as the hypothesis that they extend. The new term is
    the growing block alone, or that times a block of another parameter.
    """
    terms = widened(first.terms, first.terms.shape[1] + 1)
    found = [Candidates(first.row[:0], terms[:0])]
    for begin, problem in problems(searched, wide=False, together=_TOGETHER):
        mine = np.flatnonzero((first.row >= begin) & (first.row < begin + _TOGETHER))
        for k, kinds in enumerate(growth):
            falls = kinds == FALLS
            which = mine[falls[terms[mine, :, k]].any(axis=1)]
            states = Candidates(first.row[which] - begin, terms[which])
            if len(which):
                more = _with_growth(problem, states, rss[which], k, np.flatnonzero(~falls)[1:])
                found.append(Candidates(more.row + begin, more.terms))
    return Candidates.join(found)


def _with_growth(
    problem: Problem, states: Candidates, rss: Floats, k: int, growing: NDArray[np.intp]
) -> Candidates:
    """Return the best hypotheses with a last term of growing blocks of parameter k, and maybe another."""
    slot, count = states.terms.shape[1] - 1, len(states.row)
    energies, blocks = [], []
    for j in range(states.terms.shape[2]):
        # Two parameters that change together have no constant block, one alone has it.
        swept = (k,) if j == k else (k, j)
        sums = sweep(problem, states.row, states.terms, slot, swept, (False,) * len(swept))
        some = sums[:, growing] if j == k else sums[:, growing - 1]
        price = PENALTY * len(swept)
        energies.append(some.reshape(count, -1) / (2 * problem.variance[states.row, None]) + price)
        last = np.arange(1 if j == k else some.shape[2])
        pair = np.zeros((len(growing), len(last), states.terms.shape[2]), dtype=np.int16)
        pair[:, :, j] = last + 1
        pair[:, :, k] = growing[:, None]
        blocks.append(pair.reshape(-1, states.terms.shape[2]))
    energy, block = np.concatenate(energies, axis=1), np.concatenate(blocks)
    limit = rss / (2 * problem.variance[states.row]) + problem.reach
    state, chosen = lowest(energy, _KEPT, limit)
    terms = states.terms[state]
    terms[:, slot] = block[chosen]
    return Candidates(states.row[state], terms)
