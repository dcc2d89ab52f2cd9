"""Where no hypothesis fits within the noise: wider forms, and a smooth correction of what they miss."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.noise import Located
from orchestrator.models.pmnf.beam import Extent, search
from orchestrator.models.pmnf.candidates import Candidates, by_callpath
from orchestrator.models.pmnf.exhaustive import EXHAUSTIVE, screen
from orchestrator.models.pmnf.fit import fit
from orchestrator.models.pmnf.hypotheses import blocks_chosen, places
from orchestrator.models.pmnf.parents import shared
from orchestrator.models.pmnf.solution import Solution, Task, concatenated, log_sums, ordered, poorly_fitted
from orchestrator.models.pmnf.weighting import Weighting, weighting

# Standard deviations of the coefficients of the smooth correction that are tried: from invisible to 32 %, in
# steps of about two. Chosen by hand; not derived.
_MISFITS = (0.003, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
# Probability that lack of fit beyond the noise is smooth: mostly so of forms with one term per parameter, and
# of those with several as often a scatter of the points. Chosen by hand; not derived.
_SMOOTH, _SMOOTH_OF_WIDER = 0.95, 0.5
# Smallest correction that is looked for, as a share of the variance of the noise. Chosen by hand; not
# derived.
_VISIBLE = 0.1
# Natural logarithm of how much more probable wider forms must be than others with a correction, to do
# without one. Only those that choose one block per parameter may, unless the noise is below this: several
# blocks of one parameter follow any curve within the noise, and mislead beyond. By hand; not derived.
_WIDER, _EXACT = 8.0, 1e-4
# The same to have a correction of their own size. By hand; not derived.
_CORRECTED = 3.0
# Wider forms that are looked at before all of a call path are fitted. Chosen by hand; not derived.
_LOOKED_AT = 48
# With a correction, hypotheses are screened again with so many times the variance of the best one, and so
# many are kept. Chosen by hand; not derived.
_RELAXED = 4.0
_KEPT_RELAXED = 1000


@dataclass(frozen=True, slots=True)
class _Levels:
    """How much a smooth correction of some call paths may correct, each of shape (call paths,)."""

    misfit: Floats  # standard deviation of its coefficients; 0 for none
    sigma: Floats  # relative noise of one run
    evidence: Floats  # logarithm, of the best forms with it

    def rows(self, index: NDArray[np.intp]) -> _Levels:
        """Select call paths."""
        return _Levels(self.misfit[index], self.sigma[index], self.evidence[index])

    def where(self, mask: NDArray[np.bool_], other: _Levels) -> _Levels:
        """Take these where the mask says so, and others elsewhere."""
        misfit = np.where(mask, self.misfit, other.misfit)
        sigma = np.where(mask, self.sigma, other.sigma)
        return _Levels(misfit, sigma, np.where(mask, self.evidence, other.evidence))


@dataclass(frozen=True, slots=True)
class _Wider:
    """Hypotheses with several terms of a parameter, or negative coefficients."""

    found: Candidates
    rss: Floats  # weighted residual sums of squares, shape (hypotheses,)

    def take(self, index: NDArray[np.intp]) -> _Wider:
        """Select hypotheses."""
        return _Wider(self.found.take(index), self.rss[index])

    def rows(self, index: NDArray[np.intp]) -> _Wider:
        """Select call paths, in ascending order, and number them from 0."""
        inside, found = self.found.rows(index)
        return _Wider(found, self.rss[inside])

    def nearest(self) -> Candidates:
        """Return those of every call path that are nearest to the values, ordered by call path."""
        order = np.lexsort((self.rss, self.found.row))
        return self.found.take(order[places(self.found.row[order]) < _LOOKED_AT])


def with_correction(task: Task, solution: Solution) -> Solution:
    """Where the residuals exceed the noise, search wider, or else estimate a smooth correction."""
    excess = poorly_fitted(solution, len(task.tables))
    enough = solution.located.log_value.shape[1] > len(task.tables) + 3
    rows = np.flatnonzero(excess) if enough else np.array([], dtype=np.intp)
    if not len(rows) or not task.features.shape[1]:
        return solution
    part, own = solution.rows(rows), task.rows(rows)
    levels = _levels(own, part)
    if not task.wide:
        return solution.put(rows, _smoothed(own, part, _relaxed(own, part), levels))
    wider = _wider(own, part)
    explained, fitted = _explained(own, part, wider, levels.evidence + _WIDER)
    if len(explained):
        solution = solution.put(rows[explained], fitted)
    left = np.delete(np.arange(len(rows)), explained)
    if not len(left):
        return solution
    part, own, wider, levels = part.rows(left), own.rows(left), wider.rows(left), levels.rows(left)
    return solution.put(rows[left], _smoothed(own, part, *_corrected(own, part, wider, levels)))


def _smoothed(task: Task, part: Solution, candidates: Candidates, levels: _Levels) -> Solution:
    """Fit some call paths with a smooth correction of a size, and a noise."""
    located, misfit = part.located, levels.misfit
    freedom = np.where(misfit > 0, 4.0, located.freedom)
    new = weighting(located.count, levels.sigma, freedom, misfit, task.features)
    return _fitted(task, candidates, located, new)


def _explained(task: Task, part: Solution, wider: _Wider, least: Floats) -> tuple[NDArray[np.intp], Solution]:
    """Return which call paths wider forms explain with more than so much evidence, and these forms.

    Few forms of each tell that, and all are fitted only where they do.
    """
    alone = wider.take(np.flatnonzero(_may_do_without(wider.found, part.located)))
    few = Candidates.join([wider.nearest(), alone.nearest(), part.candidates.take(part.leading())])
    rows = np.flatnonzero(_evidence_alone(task, _fitted(task, few, part.located, part.weighting)) > least)
    if not len(rows):
        return rows, part
    some = part.rows(rows)
    candidates = Candidates.join([wider.rows(rows).found, some.candidates])
    return rows, _fitted(task.rows(rows), candidates, some.located, some.weighting)


def _corrected(task: Task, part: Solution, wider: _Wider, levels: _Levels) -> tuple[Candidates, _Levels]:
    """Add wider forms that are more probable because they leave less to correct, and what they leave.

    Without them ``c0 + n (c1 + c2 m)``, a loop in a loop, would be ``c0 + c1 n m**0.8`` with a large
    correction, which misleads beyond, as soon as its points are 1 % off.
    """
    simple = wider.take(np.flatnonzero(_one_per_parameter(wider.found)))
    few = Candidates.join([simple.nearest(), part.candidates.take(part.leading())])
    own = _levels(task, _fitted(task, few, part.located, part.weighting), _SMOOTH_OF_WIDER)
    better = own.evidence > levels.evidence + _CORRECTED
    added = simple.take(np.flatnonzero(better[simple.found.row])).found
    return Candidates.join([added, part.candidates]), own.where(better, levels)


def _may_do_without(candidates: Candidates, located: Located) -> NDArray[np.bool_]:
    """Return which hypotheses may do without a correction."""
    exact = located.sigma[candidates.row] < _EXACT
    return np.asarray(_one_per_parameter(candidates) | exact)


def _one_per_parameter(candidates: Candidates) -> NDArray[np.bool_]:
    """Return which hypotheses choose one block per parameter, which several terms may share."""
    return np.asarray((blocks_chosen(candidates.terms) <= 1).all(axis=1))


def _relaxed(task: Task, part: Solution) -> Candidates:
    """Return hypotheses that fit a little worse, too: they may fit better together with the correction."""
    if len(task.tables) > EXHAUSTIVE:
        return part.candidates
    larger = _RELAXED * part.fits.variance[part.first()]
    searched = replace(part.searched(task), variance=larger)
    return task.with_expected(screen(searched, keep=_KEPT_RELAXED))


def _evidence_alone(task: Task, found: Solution) -> Floats:
    """Return the evidence of hypotheses without a correction, of those that may do without one."""
    best = found.candidates.take(found.leading())
    may = np.flatnonzero(_may_do_without(best, found.located))
    return _total(task, best.take(may), found.located, found.weighting)


def _levels(task: Task, part: Solution, smooth: float = _SMOOTH) -> _Levels:
    """Return the most probable size of the smooth correction, given each call path's best forms.

    It is tried beside none, where points scatter; ``smooth`` is its probability where noise is known.
    """
    candidates = part.candidates.take(part.leading())
    rows = len(part.located.sigma)
    guessed = part.located.is_guess
    prior_misfit = np.where(guessed, 0.5, smooth)  # where noise is a guess, nothing is proven
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
    return _Levels(misfit, sigma, best)


def _wider(task: Task, part: Solution) -> _Wider:
    """Search hypotheses with several terms per parameter or negative coefficients."""
    index, searched = part.leading(), part.searched(task)
    first = part.candidates.take(index), part.fits.rss[index]
    if len(task.tables) > 1:
        first = by_callpath([first, shared(searched)])
    extent = Extent(rounds=3, beam=4, paired=2)
    return _Wider(*search(searched, first, keep=task.keep, wide=True, extent=extent))


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
