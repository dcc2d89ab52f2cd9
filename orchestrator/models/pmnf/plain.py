"""Search and fit hypotheses, supposing that noise is all there is beside them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.noise import Located
from orchestrator.models.pmnf.beam import Extent, search
from orchestrator.models.pmnf.candidates import PENALTY, Candidates, Searched, reach_with
from orchestrator.models.pmnf.exhaustive import EXHAUSTIVE, screen
from orchestrator.models.pmnf.fit import fit
from orchestrator.models.pmnf.hypotheses import canonical, first_occurrences, terms_used
from orchestrator.models.pmnf.overheads import overheads
from orchestrator.models.pmnf.solution import EXCESS, Solution, Task, joined, ordered
from orchestrator.models.pmnf.start import start
from orchestrator.models.pmnf.weighting import Weighting, weighting

# Blocks per parameter for the start of a search, by number of parameters, and for the second search of call
# paths that none fits. As many as keep the number of combinations in the thousands; chosen by hand.
_REPRESENTATIVES = {3: 6, 4: 5, 5: 4, 6: 3}
_MORE_REPRESENTATIVES = {3: 14, 4: 8, 5: 5, 6: 4}
_THOROUGH = Extent(rounds=6, first=16, beam=16, paired=8, joined=True, products=True)
# Largest factor by which the variance may be larger than estimated. Chosen by hand; not derived.
_MOST_NOISE = 300.0


def without_correction(task: Task, located: Located) -> Solution:
    """Search and fit, supposing that noise is all there is."""
    weights = weighting(
        located.count, located.sigma, located.freedom, np.zeros(len(located.sigma)), task.features
    )
    noise = _possible_noise(weights, located.log_value.shape[1])
    searched = Searched(task.tables, located.log_value, weights.weights, noise)
    if len(task.tables) <= EXHAUSTIVE:
        candidates = screen(searched, keep=task.keep)
    else:
        candidates = _search(searched, task.keep)
    candidates = task.with_expected(_with_constant(candidates, len(located.sigma)))
    fits = fit(candidates, task.tables, located.log_value, weights, task.log_prior(candidates), task.growth)
    found = Solution(*ordered(candidates, fits), located, weights)
    # Of one parameter, screening finds every two terms.
    return _with_overheads(task, found) if task.wide and len(task.tables) > 1 else found


def _with_overheads(task: Task, solution: Solution) -> Solution:
    """Let parameters along which the best hypotheses fall grow in a further term: noise may hide it."""
    index = solution.leading()
    best, rss = solution.candidates.take(index), solution.fits.rss[index]
    searched = solution.searched(task)
    more = overheads(searched, best, rss, task.growth)
    if not len(more.row):
        return solution
    fits = fit(more, task.tables, searched.log_value, solution.weighting, task.log_prior(more), task.growth)
    candidates, fits = joined([(more, fits), (solution.candidates, solution.fits)])
    # Other campaigns may have expected some of them.
    once = first_occurrences(candidates.row, canonical(candidates.terms)[1])
    return replace(solution, candidates=candidates.take(once), fits=fits.take(once))


def _possible_noise(weights: Weighting, points: int) -> Floats:
    """Variance with which hypotheses are searched: larger where few repetitions and points determine it.

    The search ranks by squares in units of a known variance. With few degrees of freedom the likelihood has
    the tails of Student's t: at the edge of what is searched for, the residuals may be this much larger.
    """
    freedom = weights.freedom
    edge = 2 * (reach_with(points) + PENALTY)
    larger = freedom * np.expm1(edge / (freedom + max(points - 2, 1))) / edge
    return weights.variance * np.clip(larger, 1.0, _MOST_NOISE)


def _with_constant(candidates: Candidates, rows: int) -> Candidates:
    """Add the constant where it is missing: it is always possible."""
    missing = np.ones(rows, dtype=bool)
    missing[candidates.row[terms_used(candidates.terms) == 0]] = False
    constant = np.zeros((np.count_nonzero(missing), *candidates.terms.shape[1:]), dtype=np.int16)
    return Candidates.concatenate([candidates, Candidates(np.flatnonzero(missing), constant)])


def _search(searched: Searched, keep: int) -> Candidates:
    """Search for hypotheses of three and more parameters; harder for call paths that none fits."""
    count, (callpaths, points) = len(searched.tables), searched.log_value.shape
    first = start(searched, _REPRESENTATIVES.get(count, 2), 2)
    candidates, rss = search(searched, first, keep=keep)
    best = np.full(callpaths, np.inf)
    np.minimum.at(best, candidates.row, rss)
    lost = np.flatnonzero(best > EXCESS * searched.variance * max(points - count - 1, 1))
    if not len(lost):
        return candidates
    again = searched.rows(lost)
    first = start(again, _MORE_REPRESENTATIVES.get(count, 2), 4)
    more, _ = search(again, first, keep=keep, extent=_THOROUGH)
    return Candidates.join([candidates, Candidates(lost[more.row], more.terms)])
