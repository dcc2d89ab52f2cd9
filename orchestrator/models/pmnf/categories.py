"""Categories that share their form: the same terms in each, with coefficients of their own.

The same code with another data layout or another solver mostly grows alike. So the categories of a call path
are weighed together: a form that they share pays its prior once, and all their measurements decide about it.
With the probability `π` a category has the shared form h, else any form of its own:

    P(all data | h, π) = Π_k [π P(data_k | h) + (1 - π) P(data_k | a form of its own)]

h and π are unknown, and the sum over both gives every category the probabilities of its hypotheses (a mixture
prior with an atom: for `π = 0` all forms are independent, for `π = 1` there is one form).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats, Integers, Label
from orchestrator.models.data import Group
from orchestrator.models.pmnf.borrowing import Others, borrowed
from orchestrator.models.pmnf.build import Case, Solved, Together
from orchestrator.models.pmnf.candidates import Candidates
from orchestrator.models.pmnf.category import TOGETHER, OneCategory, Space
from orchestrator.models.pmnf.fit import Fits, fit
from orchestrator.models.pmnf.hypotheses import canonical, places, structures, terms_used, widened
from orchestrator.models.pmnf.solution import Solution, joined, log_sums

# Probabilities with which a category has the shared form, and how probable each of them is; prior probability
# that a shared form does not fit within the noise. Chosen by hand, so that categories without anything in
# common lose little (docs/families.md).
_SHARES = ((0.0, 0.9), (0.9, 0.05), (1.0, 0.05))
_MISFIT = 0.05
# Probability that a category with few points has a form that no other has, if these have forms of their own.
# Chosen by hand; not derived.
_OTHER = 0.3


def with_shared_forms(solved: Sequence[Solved]) -> list[Solved]:
    """Weigh the hypotheses of all categories of each call path together.

    Call paths that were measured in one category stay as they are.

    Parameters
    ----------
    solved
        Groups of any categories and call paths; those of one category and call path are in one group only.
    """
    changed: list[list[tuple[Case, NDArray[np.intp]]]] = [[] for _ in solved]
    left = [np.ones(len(item.group.labels), dtype=bool) for item in solved]
    for numbers, rows in _bundles([item.group for item in solved]):
        space = Space.of([solved[number] for number in numbers])
        if not space.parameters:
            continue
        for chunk in _chunks(len(rows[0]), space.keep * len(numbers)):
            parts = [
                OneCategory.of(solved[number], where[chunk], space)
                for number, where in zip(numbers, rows, strict=True)
            ]
            for number, where, case in zip(numbers, rows, _weighed(parts, space), strict=True):
                changed[number].append((case, np.arange(len(case.rows))))
                left[number][where[chunk]] = False
    result = []
    for item, cases, stays in zip(solved, changed, left, strict=True):
        kept = ((case, chosen[stays[case.rows[chosen]]]) for case, chosen in item.cases)
        result.append(replace(item, cases=[*((case, some) for case, some in kept if len(some)), *cases]))
    return result


def _bundles(groups: Sequence[Group]) -> Iterator[tuple[tuple[int, ...], list[NDArray[np.intp]]]]:
    """Yield groups of several categories, and the rows of the call paths that are in all of them."""
    found: dict[Label, list[tuple[int, int]]] = {}
    for number, group in enumerate(groups):
        for row, label in enumerate(group.labels):
            found.setdefault(label, []).append((number, row))
    alike: dict[tuple[int, ...], list[list[int]]] = {}
    for pairs in found.values():
        if len(pairs) > 1:
            numbers = tuple(number for number, _ in pairs)
            alike.setdefault(numbers, []).append([row for _, row in pairs])
    for numbers, rows in alike.items():
        yield numbers, list(np.array(rows, dtype=np.intp).T)


def _chunks(callpaths: int, size: int) -> Iterator[slice]:
    step = max(TOGETHER // size, 1)
    for begin in range(0, callpaths, step):
        yield slice(begin, begin + step)


def _weighed(parts: Sequence[OneCategory], space: Space) -> list[Case]:
    """Weigh the hypotheses of some call paths in all categories together."""
    able = [part for part in parts if part.can_have_a_form]
    if len(able) == len(parts) or not able:
        able = list(parts)
    candidates = _candidates(able, space)
    fits = [_fitted(part, candidates) for part in able]
    likelihood = np.stack([item.score for item in fits], axis=1)
    prior = able[0].task.log_prior(candidates) - math.log(structures(len(space.parameters)))
    odds = _Odds.of(candidates.row, likelihood, prior, np.stack([part.evidence for part in able], axis=1))
    points = np.concatenate([part.group.points for part in parts])
    cases = []
    for part in parts:
        if part in able:
            k = able.index(part)
            shared = candidates, replace(fits[k], score=odds.shared[:, k])
            weighed, sharing = _with_own(part, shared, odds.own[:, k]), 1 - np.exp(odds.own[:, k])
        else:
            others = _others(fits, odds, candidates.row, likelihood, prior)
            weighed, sharing = _borrowed(part, candidates, others), np.ones(len(part.rows))
        cases.append(_case(part, space, weighed, Together(len(parts), points, sharing)))
    return cases


def _fitted(part: OneCategory, candidates: Candidates) -> Fits:
    """Fit possible shared forms to a category; scores are without their prior."""
    solution, nothing = part.solution, np.zeros(len(candidates.row))
    values = part.task.tables, solution.located.log_value, solution.weighting
    return fit(candidates, *values, nothing, part.task.growth, misfit=_MISFIT)


def _others(fits: list[Fits], odds: _Odds, row: Integers, likelihood: Floats, prior: Floats) -> Others:
    """Return what the categories with enough points say of one with few."""
    different = (_OTHER * np.exp(odds.own).mean(axis=1))[row]
    probability = np.exp(odds.of_forms(row, likelihood + prior[:, None]))
    return Others(
        fits=fits, probability=probability * (1 - different)[:, None], prior=different * np.exp(prior)
    )


def _borrowed(part: OneCategory, candidates: Candidates, others: Others) -> tuple[Candidates, Fits]:
    """Return the hypotheses of a category with few points, weighed by what others say."""
    values = part.task.tables, part.solution.located.log_value, part.solution.weighting
    index, fits = borrowed(candidates, *values, others)
    return joined([(candidates.take(index), fits)])


def _candidates(parts: Sequence[OneCategory], space: Space) -> Candidates:
    """Return the hypotheses that together explain all categories best, as known from each category alone.

    Where a category lacks a hypothesis, it counts as the worst one that this category has. At least one
    category must have more points than a hypothesis has coefficients: it would fit whatever was measured.
    """
    points = max(len(part.group.points) for part in parts)
    width = max(part.solution.candidates.terms.shape[1] for part in parts)
    rows, terms, gains = [], [], []
    for part in parts:
        own, score = part.solution.candidates, part.solution.fits.score
        usable = np.isfinite(score) & (terms_used(own.terms) + 1 < points)
        for k, good in enumerate(space.everywhere):
            usable &= good[own.terms[:, :, k]].all(axis=1)
        some = np.flatnonzero(usable)
        gain = score[some] - part.task.log_prior(own.take(some))
        floor = np.zeros(len(part.rows))
        np.minimum.at(floor, own.row[some], gain)
        rows.append(own.row[some])
        terms.append(widened(own.terms[some], width))
        gains.append(gain - floor[own.row[some]])
    row, all_terms, gain = np.concatenate(rows), np.concatenate(terms), np.concatenate(gains)
    ordered, code = canonical(all_terms)
    _, first, inverse = np.unique(_numbers(row, code), return_index=True, return_inverse=True)
    union = Candidates(row[first], ordered[first])
    total = np.bincount(inverse, weights=gain) + parts[0].task.log_prior(union)
    order = np.lexsort((-total, union.row))
    return union.take(order[places(union.row[order]) < space.keep])


@dataclass(frozen=True, slots=True)
class _Odds:
    """How probable the shared forms are."""

    # Logarithm of the probability that a category has this form and shares it, shape (candidates,
    # categories).
    shared: Floats
    own: Floats  # logarithm of the probability that it has a form of its own, shape (call paths, categories)

    @classmethod
    def of(cls, row: Integers, likelihood: Floats, prior: Floats, evidence: Floats) -> Self:
        """Sum over the shared form and the probability of sharing.

        Parameters
        ----------
        row
            Call path of every form, shape (candidates,), ascending.
        likelihood
            Logarithm of the probability of the data of each category, given the form, shape (candidates,
            categories).
        prior
            Logarithm of the prior of each form, shape (candidates,).
        evidence
            Logarithm of the probability of the data, given a form of its own: (call paths, categories).
        """
        shared, count = np.full_like(likelihood, -np.inf), len(evidence)
        own = np.full_like(evidence, -np.inf)
        total = np.full(count, -np.inf)
        alone = evidence[row]
        for share, probability in _SHARES:
            if share == 0:
                whole = math.log(probability) + evidence.sum(axis=1)
                own, total = np.logaddexp(own, whole[:, None]), np.logaddexp(total, whole)
                continue
            with_form = math.log(share) + likelihood
            without = alone + (math.log(1 - share) if share < 1 else -np.inf)
            each = np.logaddexp(with_form, without)
            joint = math.log(probability) + prior + each.sum(axis=1)
            possible = np.isfinite(joint)
            split = np.where(possible[:, None], joint[:, None] - each, -np.inf)
            shared = np.logaddexp(shared, split + with_form)
            for k in range(evidence.shape[1]):
                own[:, k] = np.logaddexp(own[:, k], log_sums(row, (split + without)[:, k], count))
            total = np.logaddexp(total, log_sums(row, joint, count))
        return cls(shared - total[row][:, None], own - total[:, None])

    def of_forms(self, row: Integers, score: Floats) -> Floats:
        """Return logarithms of the probabilities of forms, shared or not, shape (candidates, categories).

        Parameters
        ----------
        row
            Call path of every form, shape (candidates,), ascending.
        score
            Logarithm of the posterior of each category alone, up to a constant: (candidates, categories).
        """
        result = np.empty_like(score)
        for k, each in enumerate(score.T):
            alone = each - log_sums(row, each, len(self.own))[row] + self.own[row, k]
            result[:, k] = np.logaddexp(self.shared[:, k], np.where(np.isfinite(each), alone, -np.inf))
        return result


def _with_own(part: OneCategory, shared: tuple[Candidates, Fits], own: Floats) -> tuple[Candidates, Fits]:
    """Return the hypotheses of a category, shared forms and own ones, with their probabilities as scores."""
    candidates, fits = shared
    alone, score = part.solution.candidates, part.solution.fits.score
    score = score - part.total[alone.row] + own[alone.row]
    possible = np.flatnonzero(np.isfinite(fits.score))
    kept = np.flatnonzero(np.isfinite(score))
    pairs = [
        (candidates.take(possible), fits.take(possible)),
        (alone.take(kept), replace(part.solution.fits.take(kept), score=score[kept])),
    ]
    return _merged(joined(pairs))


def _case(part: OneCategory, space: Space, weighed: tuple[Candidates, Fits], together: Together) -> Case:
    """Return the solved call paths of a category."""
    return Case(
        group=part.group,
        rows=part.rows,
        task=part.task,
        features=part.features,
        blocks=space.blocks,
        solution=Solution(*weighed, part.solution.located, part.solution.weighting),
        members=part.members,
        together=together,
    )


def _merged(weighed: tuple[Candidates, Fits]) -> tuple[Candidates, Fits]:
    """Add up the probabilities of hypotheses that are there twice, as shared form and as own form."""
    candidates, fits = weighed
    _, code = canonical(candidates.terms)
    negative = np.signbit(fits.coefficients[:, :1]).astype(np.intp)
    numbers = _numbers(candidates.row, np.hstack([code, negative]))
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    score = log_sums(inverse, fits.score, len(first))
    return joined([(candidates.take(first), replace(fits.take(first), score=score))])


def _numbers(row: Integers, code: Integers) -> Integers:
    """Return a number for every different combination of a call path and a row of numbers, shape (n,).

    Numbers ascend with the call path.
    """
    result = row
    for column in code.T:
        # To sort whole numbers is much faster than to sort rows.
        number = np.unique(column, return_inverse=True)[1]
        _, result = np.unique(result * (number.max(initial=0) + 1) + number, return_inverse=True)
    return np.asarray(result, dtype=np.intp)
