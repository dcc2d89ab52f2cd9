"""From located values to weighed hypotheses: search, fit, look for outliers and for lack of fit, repeat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtri

from orchestrator.models.base import Floats, Integers
from orchestrator.models.noise import Located, relocate
from orchestrator.models.pmnf.beam import Effort, search
from orchestrator.models.pmnf.candidates import PENALTY, REACH, REPEATED, Candidates
from orchestrator.models.pmnf.exhaustive import EXHAUSTIVE, screen
from orchestrator.models.pmnf.fit import Fits, columns, fit
from orchestrator.models.pmnf.hypotheses import FALLS, blocks_chosen, canonical, first_occurrences, terms_used
from orchestrator.models.pmnf.neighbours import Expected
from orchestrator.models.pmnf.overheads import overheads
from orchestrator.models.pmnf.parents import shared
from orchestrator.models.pmnf.start import start
from orchestrator.models.pmnf.weighting import Weighting, weighting

# A value this many standard deviations off is examined as an outlier. Chosen by hand; not derived.
_SUSPICIOUS = 5.0
# Standard deviations of the coefficients of the smooth correction that are tried: from invisible to 32 %, in
# steps of about two. Chosen by hand; not derived.
_MISFITS = (0.003, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
# A call path is examined for lack of fit where the residuals exceed the expected variance by this factor, and
# by so many standard deviations of their sum of squares; where the noise was estimated, chance does that with
# this probability at most. Chosen by hand; not derived.
_EXCESS = 1.5
_CHANCE = 4.0
_ERROR = 1e-4
# Best hypotheses of a call path from which lack of fit and overheads are explored. Chosen by hand; not
# derived.
_EXAMINED = 12
# Blocks per parameter for the start of a search, by number of parameters, and for the second search of call
# paths that none fits. As many as keep the number of combinations in the thousands; chosen by hand.
_REPRESENTATIVES = {3: 6, 4: 5, 5: 4, 6: 3}
_MORE_REPRESENTATIVES = {3: 14, 4: 8, 5: 5, 6: 4}
_THOROUGH = Effort(rounds=6, first=16, beam=16, paired=8, joined=True, products=True)
# Log posterior up to which hypotheses are searched for, and largest factor by which the variance may be
# larger than estimated. Chosen by hand; not derived.
_EDGE = REACH + PENALTY
_MOST_NOISE = 300.0
# Smallest correction that is looked for, as a share of the variance of the noise. Chosen by hand; not
# derived.
_VISIBLE = 0.1
# Natural logarithm of how much more probable wider forms must be than others with a correction, to do
# without one. Only those that choose one block per parameter may, unless the noise is below this: several
# blocks of one parameter follow any curve within the noise, and mislead beyond. By hand; not derived.
_WIDER, _EXACT = 8.0, 1e-4
# With a correction, hypotheses are screened again with so many times the variance of the best one, and so
# many are kept. Chosen by hand; not derived.
_RELAXED = 4.0
_KEPT_RELAXED = 1000


@dataclass(frozen=True, slots=True)
class Task:
    """What all call paths of a group share.

    Attributes
    ----------
    tables
        Block values per parameter at the points, shape (blocks, points).
    growth
        How the blocks of each parameter grow, see `hypotheses.growth_of`.
    features
        Monomials of the smooth correction at the points, shape (points, features).
    keep
        Most hypotheses per call path to fit.
    wide
        Search beyond one term per parameter, and negative coefficients, where there is lack of fit.
    expected
        What other campaigns make probable, by call path; empty where there are none.
    """

    tables: tuple[Floats, ...]
    growth: tuple[Integers, ...]
    features: Floats
    keep: int
    wide: bool
    expected: tuple[Expected | None, ...] = ()

    def rows(self, index: NDArray[np.intp]) -> Self:
        """Select call paths."""
        if not self.expected:
            return self
        return replace(self, expected=tuple(self.expected[row] for row in index))

    def log_prior(self, candidates: Candidates) -> Floats:
        """Return the log prior of hypotheses."""
        result = log_prior(candidates, self.growth)
        for expected, mine in self.informed(candidates):
            result[mine], _ = expected.mixed(result[mine], candidates.terms[mine])
        return result

    def informed(self, candidates: Candidates) -> Iterator[tuple[Expected, NDArray[np.intp]]]:
        """Yield what is expected of call paths with some candidates, and which these are."""
        order = np.argsort(candidates.row, kind="stable")
        begin = np.searchsorted(candidates.row[order], np.arange(len(self.expected) + 1))
        for row, expected in enumerate(self.expected):
            if expected is not None and begin[row] < begin[row + 1]:
                yield expected, order[begin[row] : begin[row + 1]]

    def with_expected(self, candidates: Candidates) -> Candidates:
        """Add the forms that are expected, where the search did not find them."""
        parts = [
            Candidates(np.full(len(terms), row, dtype=np.intp), terms)
            for row, terms in ((k, item.terms()) for k, item in enumerate(self.expected) if item is not None)
        ]
        return Candidates.join([candidates, *parts]) if parts else candidates


@dataclass(frozen=True, slots=True)
class Solution:
    """Weighed hypotheses of all call paths, ordered by call path and score."""

    candidates: Candidates
    fits: Fits
    located: Located
    weighting: Weighting

    def first(self) -> NDArray[np.intp]:
        """Index of the best hypothesis of every call path."""
        rows = len(self.located.sigma)
        return np.searchsorted(self.candidates.row, np.arange(rows)).astype(np.intp)

    def rows(self, index: NDArray[np.intp]) -> Self:
        """Select call paths, in ascending order, and number them from 0."""
        inside = np.flatnonzero(np.isin(self.candidates.row, index))
        chosen = self.candidates.take(inside)
        return type(self)(
            Candidates(np.searchsorted(index, chosen.row).astype(np.intp), chosen.terms),
            self.fits.take(inside),
            self.located.rows(index),
            self.weighting.rows(index),
        )

    def put(self, index: NDArray[np.intp], part: Solution) -> Self:
        """Replace what is known of some call paths."""
        stays = np.flatnonzero(~np.isin(self.candidates.row, index))
        old = self.candidates.take(stays), self.fits.take(stays)
        new = Candidates(index[part.candidates.row], part.candidates.terms), part.fits
        return type(self)(
            *joined([old, new]),
            self.located.put(index, part.located),
            self.weighting.put(index, part.weighting),
        )


def solve(task: Task, values: Floats, located: Located) -> Solution:
    """Weigh the hypotheses of every call path.

    Parameters
    ----------
    task
        What the call paths share.
    values
        Measured values, shape (call paths, points, repetitions).
    located
        Their locations.
    """
    solution = _plain(task, located)
    solution = _without_outliers(task, values, solution)
    return _with_misfit(task, solution)


def _plain(task: Task, located: Located) -> Solution:
    """Search and fit, supposing that noise is all there is."""
    weights = weighting(
        located.count, located.sigma, located.freedom, np.zeros(len(located.sigma)), task.features
    )
    noise = _possible_noise(weights, located.log_value.shape[1])
    if len(task.tables) <= EXHAUSTIVE:
        candidates = screen(task.tables, located.log_value, weights.weights, noise, keep=task.keep)
    else:
        candidates = _search(task, located.log_value, replace(weights, variance=noise))
    candidates = task.with_expected(_with_constant(candidates, len(located.sigma)))
    fits = fit(candidates, task.tables, located.log_value, weights, task.log_prior(candidates), task.growth)
    found = Solution(*_ordered(candidates, fits), located, weights)
    # Of one parameter, screening finds every two terms.
    return _with_overheads(task, found) if task.wide and len(task.tables) > 1 else found


def _with_overheads(task: Task, solution: Solution) -> Solution:
    """Let parameters along which the best hypotheses fall grow in a further term: noise may hide it."""
    index = _best(solution)
    args = (task.tables, task.growth, solution.located.log_value, solution.weighting.weights)
    best, rss = solution.candidates.take(index), solution.fits.rss[index]
    more = overheads(best, rss, *args, solution.weighting.variance)
    if not len(more.row):
        return solution
    fits = fit(more, task.tables, args[2], solution.weighting, task.log_prior(more), task.growth)
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
    edge = np.expm1(2 * _EDGE / (freedom + max(points - 2, 1)))
    return weights.variance * np.clip(freedom * edge / (2 * _EDGE), 1.0, _MOST_NOISE)


def _with_constant(candidates: Candidates, rows: int) -> Candidates:
    """Add the constant where it is missing: it is always possible."""
    missing = np.ones(rows, dtype=bool)
    missing[candidates.row[terms_used(candidates.terms) == 0]] = False
    constant = np.zeros((np.count_nonzero(missing), *candidates.terms.shape[1:]), dtype=np.int16)
    return Candidates(
        np.concatenate([candidates.row, np.flatnonzero(missing)]),
        np.concatenate([candidates.terms, constant]),
    )


def _search(task: Task, log_value: Floats, weights: Weighting) -> Candidates:
    """Search for hypotheses of three and more parameters; harder for call paths that none fits."""
    count, size = len(task.tables), log_value.shape[1]
    args = (task.tables, log_value, weights.weights, weights.variance)
    first, rss = start(*args[:3], _REPRESENTATIVES.get(count, 2), 2)
    candidates, found = search(*args, (first, rss), keep=task.keep)
    best = np.full(len(log_value), np.inf)
    np.minimum.at(best, candidates.row, found)
    lost = np.flatnonzero(best > _EXCESS * weights.variance * max(size - count - 1, 1))
    if not len(lost):
        return candidates
    some = (task.tables, log_value[lost], weights.weights[lost], weights.variance[lost])
    again, rss = start(*some[:3], _MORE_REPRESENTATIVES.get(count, 2), 4)
    more, _ = search(*some, (again, rss), keep=task.keep, effort=_THOROUGH)
    return Candidates.join([candidates, Candidates(lost[more.row], more.terms)])


def log_prior(candidates: Candidates, growth: tuple[Integers, ...]) -> Floats:
    """Log prior of hypotheses.

    Every set of parameters and way to combine them is equally probable, and so is each choice of blocks
    for it; a parameter that appears in a second term pays for its block once more, unless both share it.
    A second term costs more on top, except that it is the rule for one to fall and one to grow: work that is
    divided, and what dividing it costs.
    """
    again = np.zeros(len(candidates.terms), dtype=np.intp)
    for k, kinds in enumerate(growth):
        chosen = kinds[candidates.terms[:, :, k]]
        for alike in (chosen == FALLS, chosen > 0):
            again += np.maximum(np.count_nonzero(alike, axis=1) - 1, 0)
    sizes = np.log([max(len(kinds) - 1, 1) for kinds in growth])
    prior: Floats = -blocks_chosen(candidates.terms) @ sizes - REPEATED * again
    return prior


def best_residuals(task: Task, solution: Solution) -> Floats:
    """Log values minus the best hypothesis, shape (call paths, points)."""
    first = solution.first()
    z = columns(solution.candidates.terms[first], task.tables)
    c = solution.fits.coefficients[first]
    value = c[:, :1] + np.einsum("tcn,ct->cn", z, c[:, 1:])
    residuals: Floats = solution.located.log_value - np.log(np.maximum(value, 1e-300))
    return residuals


def poorly_fitted(solution: Solution, parameters: int) -> NDArray[np.bool_]:
    """Return for which call paths no hypothesis fits within the noise: beyond chance, and by much."""
    first, expected = solution.first(), solution.weighting.variance
    freedom = max(solution.located.log_value.shape[1] - parameters - 1, 1)
    chance = freedom + _CHANCE * np.sqrt(2 * freedom)
    rss = solution.fits.rss[first]
    poor = (solution.fits.variance[first] > _EXCESS * expected) & (rss > chance * expected)
    # Noise estimated from few repetitions may be far too small: the quotient has Fisher's distribution.
    some = np.flatnonzero(poor & ~solution.located.is_guess)
    # Its inverse survival function is that of scipy.stats.f, which would take a second to import.
    sure = freedom * fdtri(freedom, np.maximum(solution.located.freedom[some], 1.0), 1.0 - _ERROR)
    poor[some] = rss[some] > sure * expected[some]
    return np.asarray(poor)


def _robust_scale(residuals: Floats, parameters: int) -> Floats:
    points = residuals.shape[-1]
    scale = 1.4826 * np.median(np.abs(residuals), axis=-1)
    result: Floats = scale * np.sqrt(points / max(points - parameters - 1, 1))
    return result


def _without_outliers(task: Task, values: Floats, solution: Solution) -> Solution:
    """Give outlying values little weight, and search again for the call paths that have some."""
    located, points = solution.located, values.shape[1]
    if points < 6:
        return solution
    residuals = best_residuals(task, solution)
    size = len(task.tables) + 1
    spread = np.maximum(np.sqrt(solution.weighting.noise), _robust_scale(residuals, size))
    smooth, off = _smooth_residuals(
        task.features, located.log_value, poorly_fitted(solution, len(task.tables))
    )
    suspects = np.flatnonzero((np.abs(residuals).max(axis=1) > _SUSPICIOUS * spread) | off)
    if not len(suspects):
        return solution
    old, kept, some = located.rows(suspects), solution, task.rows(suspects)
    trial = smooth[suspects]
    expected = old.log_value - np.where(off[suspects][:, None], trial, residuals[suspects])
    for _ in range(2):
        scale = np.maximum(
            _robust_scale(old.log_value - expected, size), np.sqrt(solution.weighting.noise[suspects])
        )
        part = _plain(some, relocate(values[suspects], old, expected, scale))
        expected = part.located.log_value - best_residuals(some, part)
    before, after = _surprise(residuals[suspects]), _surprise(old.log_value - expected)
    better = after < before - 2
    if np.any(better):
        rows = np.flatnonzero(better)
        kept = solution.put(suspects[rows], part.rows(rows))
    return kept


def _surprise(residuals: Floats) -> Floats:
    """Negative log likelihood of residuals with heavy tails, at the best scale."""
    points = residuals.shape[1]
    result = np.full(len(residuals), np.inf)
    for factor in (0.7, 1.0, 1.4, 2.0, 3.0, 5.0):
        scale = np.maximum(factor * 1.4826 * np.median(np.abs(residuals), axis=1), 1e-9)
        density = 2.5 * np.log1p((residuals / scale[:, None]) ** 2 / 4).sum(axis=1) + points * np.log(scale)
        result = np.minimum(result, density)
    return result


def _smooth_residuals(
    features: Floats, log_value: Floats, asked: NDArray[np.bool_]
) -> tuple[Floats, NDArray[np.bool_]]:
    """Residuals of a robust quadratic surface, for asked call paths in which the plain one sees outliers."""
    points = log_value.shape[1]
    design = np.column_stack([np.ones(points), features])
    if points < design.shape[1] + 4 or not np.any(asked):
        return np.zeros_like(log_value), np.zeros(len(log_value), dtype=bool)
    hat = design @ np.linalg.pinv(design)
    left_out = (log_value - log_value @ hat.T) / np.maximum(1 - np.diag(hat), 0.05)
    scale = np.maximum(1.4826 * np.median(np.abs(left_out), axis=1), 1e-6)
    off = np.asarray(np.abs(left_out).max(axis=1) > _SUSPICIOUS * scale) & asked
    residuals = np.zeros_like(log_value)
    for row in np.flatnonzero(off):
        residuals[row] = _robust_surface(design, log_value[row])
    return residuals, off


def _robust_surface(design: Floats, target: Floats) -> Floats:
    """Residuals of a linear fit by iteratively reweighted least squares with Student t weights."""
    weights = np.ones(len(target))
    residuals = target - np.median(target)
    for _ in range(20):
        root = np.sqrt(weights)
        solution = np.linalg.lstsq(design * root[:, None], target * root, rcond=None)[0]
        residuals = target - design @ solution
        scale = max(1.4826 * float(np.median(np.abs(residuals))), 1e-9)
        weights = 1 / (1 + (residuals / scale) ** 2)
    result: Floats = residuals
    return result


def _with_misfit(task: Task, solution: Solution) -> Solution:
    """Where the residuals exceed the noise, search wider and estimate a smooth correction."""
    located = solution.located
    excess = poorly_fitted(solution, len(task.tables))
    enough = located.log_value.shape[1] > len(task.tables) + 3
    rows = np.flatnonzero(excess) if enough else np.array([], dtype=np.intp)
    if not len(rows) or not task.features.shape[1]:
        return solution
    part, task = solution.rows(rows), task.rows(rows)
    candidates = part.candidates
    if len(task.tables) <= EXHAUSTIVE:
        # A hypothesis that fits a little worse may fit better together with the correction.
        larger = _RELAXED * part.fits.variance[part.first()]
        candidates = screen(
            task.tables, part.located.log_value, part.weighting.weights, larger, keep=_KEPT_RELAXED
        )
        candidates = task.with_expected(candidates)
    misfit, sigma, evidence = _levels(task, part)
    if task.wide:
        candidates = _wider(task, part)
        wide = _examined(_fitted(task, candidates, part.located, part.weighting))
        simple = (blocks_chosen(wide.terms) <= 1).all(axis=1)
        exact = part.located.sigma[wide.row] < _EXACT
        alone = _total(task, wide.take(np.flatnonzero(simple | exact)), part.located, part.weighting)
        explained = alone > evidence + _WIDER
        misfit = np.where(explained, 0.0, misfit)
        sigma = np.where(explained, part.located.sigma, sigma)
    found = part.located
    new = weighting(found.count, sigma, np.where(misfit > 0, 4.0, found.freedom), misfit, task.features)
    return solution.put(rows, _fitted(task, candidates, found, new))


def _fitted(task: Task, candidates: Candidates, located: Located, weights: Weighting) -> Solution:
    """Fit hypotheses, with negative constants if the search is wide."""
    args = (candidates, task.tables, located.log_value, weights, task.log_prior(candidates), task.growth)
    pairs = [(candidates, fit(*args, free=free)) for free in ((False, True) if task.wide else (False,))]
    return Solution(*_ordered(*_concatenate(pairs)), located, weights)


def _wider(task: Task, part: Solution) -> Candidates:
    """Add hypotheses with several terms per parameter or negative coefficients."""
    index = _best(part)
    args = (task.tables, part.located.log_value, part.weighting.weights, part.weighting.variance)
    first = part.candidates.take(index), part.fits.rss[index]
    if len(task.tables) > 1:
        first = _merged(first, shared(*args))
    found, _ = search(*args, first, keep=task.keep, wide=True, effort=Effort(rounds=3, beam=4, paired=2))
    return Candidates.join([found, part.candidates])


def _merged(*parts: tuple[Candidates, Floats]) -> tuple[Candidates, Floats]:
    """Concatenate hypotheses with their residual sums of squares, ordered by call path."""
    width = max(c.terms.shape[1] for c, _ in parts)
    terms = [np.pad(c.terms, ((0, 0), (0, width - c.terms.shape[1]), (0, 0))) for c, _ in parts]
    row = np.concatenate([c.row for c, _ in parts])
    order = np.argsort(row, kind="stable")
    rss = np.concatenate([sums for _, sums in parts])
    return Candidates(row[order], np.concatenate(terms)[order]), rss[order]


def _examined(part: Solution) -> Candidates:
    """Return the best hypotheses of every call path, from which lack of fit is explored."""
    return part.candidates.take(_best(part))


def _best(part: Solution) -> NDArray[np.intp]:
    """Return which are the best hypotheses of every call path, from which further ones are explored."""
    place = _position(part.candidates.row)
    return np.flatnonzero((place < _EXAMINED) & np.isfinite(part.fits.score))


def _total(task: Task, candidates: Candidates, located: Located, weights: Weighting) -> Floats:
    """Logarithm of the evidence of some hypotheses of each call path, shape (call paths,)."""
    prior = task.log_prior(candidates)
    score = fit(candidates, task.tables, located.log_value, weights, prior, task.growth).score
    total = np.full(len(located.sigma), -np.inf)
    np.logaddexp.at(total, candidates.row, score)
    return total


def _levels(task: Task, part: Solution) -> tuple[Floats, Floats, Floats]:
    """Most probable size of the smooth correction, noise, and evidence, given each call path's best forms."""
    candidates = _examined(part)
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


def _position(row: Integers) -> Integers:
    begin = np.searchsorted(row, row)
    return (np.arange(len(row)) - begin).astype(np.intp)


def joined(pairs: Sequence[tuple[Candidates, Fits]]) -> tuple[Candidates, Fits]:
    """Concatenate hypotheses with any numbers of terms, ordered by call path and score."""
    width = max(candidates.terms.shape[1] for candidates, _ in pairs)
    return _ordered(*_concatenate([_padded(*pair, width) for pair in pairs]))


def _padded(candidates: Candidates, fits: Fits, width: int) -> tuple[Candidates, Fits]:
    more = width - candidates.terms.shape[1]
    terms = np.pad(candidates.terms, ((0, 0), (0, more), (0, 0)))
    return Candidates(candidates.row, terms), replace(
        fits,
        coefficients=np.pad(fits.coefficients, ((0, 0), (0, more))),
        covariance=np.pad(fits.covariance, ((0, 0), (0, more), (0, more))),
    )


def _concatenate(pairs: list[tuple[Candidates, Fits]]) -> tuple[Candidates, Fits]:
    candidates = Candidates(
        np.concatenate([c.row for c, _ in pairs]), np.concatenate([c.terms for c, _ in pairs])
    )
    return candidates, Fits.concatenate([f for _, f in pairs])


def _ordered(candidates: Candidates, fits: Fits) -> tuple[Candidates, Fits]:
    order = np.lexsort((-fits.score, candidates.row))
    return candidates.take(order), fits.take(order)
