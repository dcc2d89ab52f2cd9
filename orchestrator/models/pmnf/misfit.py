"""Where no hypothesis fits within the noise: wider forms, and a smooth correction of what they miss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats, Integers
from orchestrator.models.noise import Located
from orchestrator.models.pmnf.beam import Extent, search
from orchestrator.models.pmnf.candidates import Candidates, with_sums
from orchestrator.models.pmnf.exhaustive import EXHAUSTIVE, screen
from orchestrator.models.pmnf.fit import fit
from orchestrator.models.pmnf.hypotheses import blocks_chosen, places
from orchestrator.models.pmnf.parents import shared
from orchestrator.models.pmnf.solution import Solution, Task, concatenated, log_sums, ordered, poorly_fitted
from orchestrator.models.pmnf.weighting import Weighting, weighting

# Standard deviations of the coefficients of the smooth correction that are tried: from invisible to 32 %, in
# steps of about two. Chosen by hand; not derived.
_MISFITS = (0.003, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
# Smallest correction that is looked for, as a share of the variance of the noise. Chosen by hand; not
# derived.
_VISIBLE = 0.1
# Natural logarithm of how much more probable wider forms must be than others with a correction, to do
# without one. Only those that choose one block per parameter may, unless the noise is below this: several
# blocks of one parameter follow any curve within the noise, and mislead beyond. By hand; not derived.
_WIDER, _EXACT = 8.0, 1e-4
# Wider forms that are looked at before all of a call path are fitted. Chosen by hand; not derived.
_LOOKED_AT = 48
# With a correction, hypotheses are screened again with so many times the variance of the best one, and so
# many are kept. Chosen by hand; not derived.
_RELAXED = 4.0
_KEPT_RELAXED = 1000


def with_correction(task: Task, solution: Solution) -> Solution:
    """Where the residuals exceed the noise, search wider, or else estimate a smooth correction."""
    excess = poorly_fitted(solution, len(task.tables))
    enough = solution.located.log_value.shape[1] > len(task.tables) + 3
    rows = np.flatnonzero(excess) if enough else np.array([], dtype=np.intp)
    if not len(rows) or not task.features.shape[1]:
        return solution
    part, own = solution.rows(rows), task.rows(rows)
    misfit, sigma, evidence = _levels(own, part)
    if not task.wide:
        return _smoothed(task, solution, rows, misfit, sigma)
    explained, wider = _explained(own, part, evidence + _WIDER)
    if len(explained):
        solution = solution.put(rows[explained], wider)
    left = np.delete(np.arange(len(rows)), explained)
    return _smoothed(task, solution, rows[left], misfit[left], sigma[left]) if len(left) else solution


def _smoothed(
    task: Task, solution: Solution, rows: NDArray[np.intp], misfit: Floats, sigma: Floats
) -> Solution:
    """Fit some call paths with a smooth correction of a size, and a noise."""
    part, own = solution.rows(rows), task.rows(rows)
    candidates = part.candidates if task.wide else _relaxed(own, part)
    located = part.located
    new = weighting(located.count, sigma, np.where(misfit > 0, 4.0, located.freedom), misfit, task.features)
    return solution.put(rows, _fitted(own, candidates, located, new))


def _explained(task: Task, part: Solution, least: Floats) -> tuple[NDArray[np.intp], Solution]:
    """Return which call paths wider forms explain with more than so much evidence, and these forms.

    Few forms of each tell that, and all are fitted only where they do.
    """
    found, rss = _wider(task, part)
    may = np.flatnonzero(_may_do_without(found, part.located))
    near = found.take(_nearest(found.row, rss)), found.take(may[_nearest(found.row[may], rss[may])])
    few = Candidates.join([*near, part.candidates.take(part.best())])
    rows = np.flatnonzero(_evidence_alone(task, _fitted(task, few, part.located, part.weighting)) > least)
    if not len(rows):
        return rows, part
    some, own = part.rows(rows), task.rows(rows)
    inside = np.flatnonzero(np.isin(found.row, rows))
    kept = Candidates(np.searchsorted(rows, found.row[inside]).astype(np.intp), found.terms[inside])
    return rows, _fitted(own, Candidates.join([kept, some.candidates]), some.located, some.weighting)


def _nearest(row: Integers, rss: Floats) -> NDArray[np.intp]:
    """Return the hypotheses of every call path that are nearest to the values, ordered by call path."""
    order = np.lexsort((rss, row))
    return order[places(row[order]) < _LOOKED_AT]


def _may_do_without(candidates: Candidates, located: Located) -> NDArray[np.bool_]:
    """Return which hypotheses may do without a correction."""
    simple = (blocks_chosen(candidates.terms) <= 1).all(axis=1)
    return np.asarray(simple | (located.sigma[candidates.row] < _EXACT))


def _relaxed(task: Task, part: Solution) -> Candidates:
    """Return hypotheses that fit a little worse, too: they may fit better together with the correction."""
    if len(task.tables) > EXHAUSTIVE:
        return part.candidates
    larger = _RELAXED * part.fits.variance[part.first()]
    searched = replace(part.searched(task), variance=larger)
    return task.with_expected(screen(searched, keep=_KEPT_RELAXED))


def _evidence_alone(task: Task, found: Solution) -> Floats:
    """Return the evidence of hypotheses without a correction, of those that may do without one."""
    best = found.candidates.take(found.best())
    may = np.flatnonzero(_may_do_without(best, found.located))
    return _total(task, best.take(may), found.located, found.weighting)


def _levels(task: Task, part: Solution) -> tuple[Floats, Floats, Floats]:
    """Most probable size of the smooth correction, noise, and evidence, given each call path's best forms."""
    candidates = part.candidates.take(part.best())
    rows = len(part.located.sigma)
    guessed = part.located.is_guess
    # Beyond the noise, lack of fit is mostly smooth; where noise is a guess, nothing is proven.
    prior_misfit = np.where(guessed, 0.5, 0.95)
    best = np.full(rows, -np.inf)
    misfit, sigma = np.zeros(rows), part.located.sigma.copy()
    for factor in (1.0, 1 / 3, 1 / 10) if np.any(guessed) else (1.0,):
        noise = np.where(guessed, part.located.sigma * factor, part.located.sigma)
        for level in (0.0, *_MISFITS):
            freedom = np.where(guessed | (level > 0), 4.0, part.located.freedom)
            trial = weighting(part.located.count, noise, freedom, np.full(rows, level), task.features)
            total = _total(task, candidates, part.located, trial)
            total += np.log(1 - prior_misfit) if level == 0 else np.log(prior_misfit / len(_MISFITS))
            # A correction much smaller than the noise is none.
            total[(level > 0) & (level**2 < _VISIBLE * trial.noise)] = -np.inf
            better = total > best
            best = np.where(better, total, best)
            misfit, sigma = np.where(better, level, misfit), np.where(better, noise, sigma)
    return misfit, sigma, best


def _wider(task: Task, part: Solution) -> tuple[Candidates, Floats]:
    """Search hypotheses with several terms per parameter or negative coefficients; also return their rss."""
    index, searched = part.best(), part.searched(task)
    first = part.candidates.take(index), part.fits.rss[index]
    if len(task.tables) > 1:
        first = with_sums([first, shared(searched)])
    extent = Extent(rounds=3, beam=4, paired=2)
    return search(searched, first, keep=task.keep, wide=True, extent=extent)


def _fitted(task: Task, candidates: Candidates, located: Located, weights: Weighting) -> Solution:
    """Fit hypotheses, with negative constants if the search is wide."""
    args = (candidates, task.tables, located.log_value, weights, task.log_prior(candidates), task.growth)
    pairs = [(candidates, fit(*args, free=free)) for free in ((False, True) if task.wide else (False,))]
    return Solution(*ordered(*concatenated(pairs)), located, weights)


def _total(task: Task, candidates: Candidates, located: Located, weights: Weighting) -> Floats:
    """Logarithm of the evidence of some hypotheses of each call path, shape (call paths,)."""
    prior = task.log_prior(candidates)
    score = fit(candidates, task.tables, located.log_value, weights, prior, task.growth).score
    return log_sums(candidates.row, score, len(located.sigma))
