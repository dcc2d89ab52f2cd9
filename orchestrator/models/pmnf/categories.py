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

from orchestrator.models.base import Floats, Integers
from orchestrator.models.data import Group
from orchestrator.models.noise import Located
from orchestrator.models.pmnf.borrowing import Others, borrowed
from orchestrator.models.pmnf.build import Case, Solved, Together
from orchestrator.models.pmnf.candidates import Candidates
from orchestrator.models.pmnf.correction import Features
from orchestrator.models.pmnf.fit import Fits, fit
from orchestrator.models.pmnf.hypotheses import block_values, canonical, growth_of, structures, terms_used
from orchestrator.models.pmnf.neighbours import Expected
from orchestrator.models.pmnf.solution import Solution, Task, joined
from orchestrator.models.pmnf.weighting import Weighting
from orchestrator.models.shared_noise import SharedNoise

# Probabilities with which a category has the shared form, and how probable each of them is; prior probability
# that a shared form does not fit within the noise. Chosen by hand, so that categories without anything in
# common lose little (docs/models.md).
_SHARES = ((0.0, 0.9), (0.9, 0.05), (1.0, 0.05))
_MISFIT = 0.05
# Probability that a category with few points has a form that no other has, if these have forms of their own.
# Chosen by hand; not derived.
_OTHER = 0.3
# A category has a form of its own if it has at least so many points more than there are parameters.
_LEAST_POINTS = 2
# Hypotheses of all categories that are weighed at a time, which keeps their arrays small, and least per call
# path. Chosen by hand.
_TOGETHER, _LEAST = 1_000_000, 100


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
        space = _Space.of([solved[number] for number in numbers])
        if not space.parameters:
            continue
        for chunk in _chunks(len(rows[0]), space.keep * len(numbers)):
            parts = [
                _Category.of(solved[number], where[chunk], space)
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
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for number, group in enumerate(groups):
        for row, label in enumerate(group.labels):
            found.setdefault(label, []).append((number, row))
    alike: dict[tuple[int, ...], list[list[int]]] = {}
    for places in found.values():
        if len(places) > 1:
            numbers = tuple(number for number, _ in places)
            alike.setdefault(numbers, []).append([row for _, row in places])
    for numbers, rows in alike.items():
        yield numbers, list(np.array(rows, dtype=np.intp).T)


def _chunks(callpaths: int, size: int) -> Iterator[slice]:
    step = max(_TOGETHER // size, 1)
    for begin in range(0, callpaths, step):
        yield slice(begin, begin + step)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Space:
    """The parameters and blocks of all categories.

    Attributes
    ----------
    parameters
        Those that vary in any category.
    blocks
        Per parameter those of any category, shape (blocks, 2); the constant comes first.
    everywhere
        Which of them have a value at the points of all categories.
    keep
        Most hypotheses per call path.
    """

    parameters: tuple[str, ...]
    blocks: tuple[Floats, ...]
    everywhere: tuple[NDArray[np.bool_], ...]
    keep: int

    @classmethod
    def of(cls, solved: Sequence[Solved]) -> Self:
        varying = {name for item in solved for name in item.group.parameters}
        parameters = tuple(name for name, _ in solved[0].group.fixed if name in varying)
        cases = [case for item in solved for case, _ in item.cases]
        pairs: dict[str, dict[tuple[float, ...], None]] = {name: {(0.0, 0.0): None} for name in parameters}
        for case in cases:
            for name, known in zip(case.group.parameters, case.blocks, strict=False):
                pairs[name].update(dict.fromkeys(map(tuple, known.tolist())))
        points = np.concatenate([coordinates(item.group, parameters) for item in solved])
        blocks = tuple(np.array(list(pairs[name])) for name in parameters)
        return cls(
            parameters=parameters,
            blocks=blocks,
            everywhere=tuple(
                ((b[:, 1] == 0) | (low >= 1)) & ((b[:, 0] >= 0) | (low > 0))
                for low, b in zip(points.min(axis=0), blocks, strict=True)
            ),
            keep=min(max(case.task.keep for case in cases), max(_TOGETHER // len(solved), _LEAST)),
        )


def coordinates(group: Group, parameters: Sequence[str]) -> Floats:
    """Return the values of parameters at the points, shape (points, parameters), constant ones, too."""
    varying = dict(zip(group.parameters, group.points.T, strict=True))
    fixed = dict(group.fixed)
    columns = [varying[n] if n in varying else np.full(len(group.points), fixed[n]) for n in parameters]
    return np.stack(columns, axis=1) if columns else np.empty((len(group.points), 0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Category:
    """Call paths in one category, with the hypotheses that were found for it alone.

    Attributes
    ----------
    group, rows, task, features
        As in `Case`, with the parameters and blocks of all categories.
    solution
        What was found, with the call paths numbered in the order of ``rows``.
    evidence
        Logarithm of the probability of the measurements if the category has a form of its own, and its part
        that is the sum over the hypotheses, shape (call paths,).
    """

    group: Group
    rows: NDArray[np.intp]
    task: Task
    features: Features
    solution: Solution
    evidence: Floats
    total: Floats
    members: int

    @property
    def can_have_a_form(self) -> bool:
        """Whether the points can show a form: they differ in every parameter, and are more than these."""
        points = self.group.points
        return bool(np.ptp(points, axis=0).all() and len(points) >= points.shape[1] + _LEAST_POINTS)

    @classmethod
    def of(cls, solved: Solved, rows: NDArray[np.intp], space: _Space) -> Self:
        points = coordinates(solved.group, space.parameters)
        features, case = Features.of(points), solved.cases[0][0]
        group = replace(
            solved.group,
            parameters=space.parameters,
            points=points,
            notes=tuple(_still_true(notes, space.parameters) for notes in solved.group.notes),
        )
        tables = tuple(block_values(x, b) for x, b in zip(points.T, space.blocks, strict=True))
        solution = _gathered(solved, rows, space)
        total = _log_sums(solution.candidates.row, solution.fits.score, len(rows))
        return cls(
            group=group,
            rows=rows,
            task=Task(
                tables,
                growth_of(space.blocks),
                features(points),
                space.keep,
                case.task.wide,
                _expected(solved, rows, space),
            ),
            features=features,
            solution=solution,
            evidence=total - math.log(structures(len(solved.group.parameters))),
            total=total,
            members=case.members,
        )


def _expected(solved: Solved, rows: NDArray[np.intp], space: _Space) -> tuple[Expected | None, ...]:
    """Return what other campaigns make probable for some call paths, in the blocks of all categories."""
    known = {
        int(case.rows[k]): case.task.expected[k].neighbours
        for case, chosen in solved.cases
        if case.task.expected
        for k in chosen
        if case.task.expected[k] is not None
    }
    if not known:
        return ()
    return tuple(Expected.of(known.get(int(row), ()), space.parameters, space.blocks) for row in rows)


def _still_true(notes: tuple[str, ...], parameters: Sequence[str]) -> tuple[str, ...]:
    """Return the notes of a group without those on parameters that vary in another category."""
    outdated = tuple(f"{name} has the one value" for name in parameters)
    return tuple(note for note in notes if not note.startswith(outdated))


def _gathered(solved: Solved, rows: NDArray[np.intp], space: _Space) -> Solution:
    """Return the hypotheses of some call paths of a group, with the blocks of all categories."""
    parts: list[tuple[NDArray[np.intp], Solution]] = []
    for case, chosen in solved.cases:
        mine = chosen[np.isin(case.rows[chosen], rows)]
        if len(mine):
            place = np.argsort(rows)[np.searchsorted(np.sort(rows), case.rows[mine])]
            part = case.solution.rows(mine)
            terms = _renumbered(part.candidates.terms, case, space)
            parts.append((place, replace(part, candidates=Candidates(part.candidates.row, terms))))
    order = np.argsort(np.concatenate([place for place, _ in parts]))
    found = [(Candidates(place[p.candidates.row], p.candidates.terms), p.fits) for place, p in parts]
    return Solution(
        *joined(found),
        _located([part.located for _, part in parts], order),
        _weighting([part.weighting for _, part in parts], order),
    )


def _located(parts: Sequence[Located], order: NDArray[np.intp]) -> Located:
    """Return the locations of several call paths in another order."""
    shared = [part.shared for part in parts if part.shared is not None]
    return Located(
        log_value=np.concatenate([part.log_value for part in parts])[order],
        count=np.concatenate([part.count for part in parts])[order],
        sigma=np.concatenate([part.sigma for part in parts])[order],
        freedom=np.concatenate([part.freedom for part in parts])[order],
        aggregate=parts[0].aggregate,
        shared=SharedNoise(np.concatenate([s.origins for s in shared])[order], shared[0].ratio)
        if shared
        else None,
    )


def _weighting(parts: Sequence[Weighting], order: NDArray[np.intp]) -> Weighting:
    """Return the distributions of values of several call paths in another order."""
    return Weighting(
        weights=np.concatenate([part.weights for part in parts])[order],
        variance=np.concatenate([part.variance for part in parts])[order],
        freedom=np.concatenate([part.freedom for part in parts])[order],
        noise=np.concatenate([part.noise for part in parts])[order],
        smooth=np.concatenate([part.smooth for part in parts])[order],
        features=parts[0].features,
        spread=np.concatenate([part.spread for part in parts])[order],
        log_scale=np.concatenate([part.log_scale for part in parts])[order],
    )


def _renumbered(terms: NDArray[np.int16], case: Case, space: _Space) -> NDArray[np.int16]:
    """Return terms with the parameters and blocks of all categories: (hypotheses, terms, parameters)."""
    result = np.zeros((*terms.shape[:2], len(space.parameters)), dtype=np.int16)
    for k, (name, blocks) in enumerate(zip(case.group.parameters, case.blocks, strict=False)):
        place = space.parameters.index(name)
        number = {tuple(pair): n for n, pair in enumerate(space.blocks[place].tolist())}
        result[:, :, place] = np.array([number[tuple(pair)] for pair in blocks.tolist()])[terms[:, :, k]]
    ordered, _ = canonical(result)
    return ordered


def _log_sums(row: Integers, score: Floats, rows: int) -> Floats:
    """Return logarithms of sums of exponentials, by call path: shape (rows,)."""
    total = np.full(rows, -np.inf)
    np.logaddexp.at(total, row, score)
    return total


def _weighed(parts: Sequence[_Category], space: _Space) -> list[Case]:
    """Weigh the hypotheses of some call paths in all categories together."""
    able = [part for part in parts if part.can_have_a_form]
    if len(able) == len(parts) or not able:
        able = list(parts)
    candidates = _candidates(able, space)
    nothing = np.zeros(len(candidates.row))
    fits = [
        fit(
            candidates,
            part.task.tables,
            part.solution.located.log_value,
            part.solution.weighting,
            nothing,
            part.task.growth,
            misfit=_MISFIT,
        )
        for part in able
    ]
    likelihood = np.stack([item.score for item in fits], axis=1)
    prior = able[0].task.log_prior(candidates) - math.log(structures(len(space.parameters)))
    odds = _Odds.of(candidates.row, likelihood, prior, np.stack([part.evidence for part in able], axis=1))
    different = (_OTHER * np.exp(odds.own).mean(axis=1))[candidates.row]
    others = Others(
        fits=fits,
        probability=np.exp(odds.of_forms(candidates.row, likelihood + prior[:, None]))
        * (1 - different)[:, None],
        prior=different * np.exp(prior),
    )
    points = np.concatenate([part.group.points for part in parts])
    cases = []
    for part in parts:
        if part in able:
            k = able.index(part)
            together = Together(len(parts), points, 1 - np.exp(odds.own[:, k]))
            shared = candidates, replace(fits[k], score=odds.shared[:, k])
            cases.append(_case(part, space, _with_own(part, shared, odds.own[:, k]), together))
        else:
            known = borrowed(
                candidates, part.task.tables, part.solution.located.log_value, part.solution.weighting, others
            )
            together = Together(len(parts), points, np.ones(len(part.rows)))
            cases.append(_case(part, space, joined([(candidates.take(known[0]), known[1])]), together))
    return cases


def _candidates(parts: Sequence[_Category], space: _Space) -> Candidates:
    """Return the hypotheses that together explain all categories best, as known from each category alone.

    Where a category lacks a hypothesis, it counts as the worst one that this category has. At least one
    category must have more points than a hypothesis has coefficients: it would fit whatever was measured.
    """
    points = max(len(part.group.points) for part in parts)
    width = max(part.solution.candidates.terms.shape[1] for part in parts)
    rows, terms, gains = [], [], []
    for part in parts:
        found, score = part.solution.candidates, part.solution.fits.score
        usable = np.isfinite(score) & (terms_used(found.terms) + 1 < points)
        for k, good in enumerate(space.everywhere):
            usable &= good[found.terms[:, :, k]].all(axis=1)
        some = np.flatnonzero(usable)
        gain = score[some] - part.task.log_prior(found.take(some))
        floor = np.zeros(len(part.rows))
        np.minimum.at(floor, found.row[some], gain)
        rows.append(found.row[some])
        terms.append(np.pad(found.terms[some], ((0, 0), (0, width - found.terms.shape[1]), (0, 0))))
        gains.append(gain - floor[found.row[some]])
    row, all_terms, gain = np.concatenate(rows), np.concatenate(terms), np.concatenate(gains)
    ordered, code = canonical(all_terms)
    _, first, inverse = np.unique(_numbers(row, code), return_index=True, return_inverse=True)
    union = Candidates(row[first], ordered[first])
    total = np.bincount(inverse, weights=gain) + parts[0].task.log_prior(union)
    order = np.lexsort((-total, union.row))
    place = np.arange(len(order)) - np.searchsorted(union.row[order], union.row[order])
    return union.take(order[place < space.keep])


@dataclass(frozen=True, slots=True)
class _Odds:
    """How probable the shared forms are.

    Attributes
    ----------
    shared
        Logarithm of the probability that a category has this form and shares it, shape (candidates,
        categories).
    own
        Logarithm of the probability that it has a form of its own, shape (call paths, categories).
    """

    shared: Floats
    own: Floats

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
                own[:, k] = np.logaddexp(own[:, k], _log_sums(row, (split + without)[:, k], count))
            total = np.logaddexp(total, _log_sums(row, joint, count))
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
            alone = each - _log_sums(row, each, len(self.own))[row] + self.own[row, k]
            result[:, k] = np.logaddexp(self.shared[:, k], np.where(np.isfinite(each), alone, -np.inf))
        return result


def _with_own(part: _Category, shared: tuple[Candidates, Fits], own: Floats) -> tuple[Candidates, Fits]:
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


def _case(part: _Category, space: _Space, found: tuple[Candidates, Fits], together: Together) -> Case:
    """Return the solved call paths of a category."""
    return Case(
        group=part.group,
        rows=part.rows,
        task=part.task,
        features=part.features,
        blocks=space.blocks,
        solution=Solution(*found, part.solution.located, part.solution.weighting),
        members=part.members,
        together=together,
    )


def _merged(found: tuple[Candidates, Fits]) -> tuple[Candidates, Fits]:
    """Add up the probabilities of hypotheses that are there twice, as shared form and as own form."""
    candidates, fits = found
    _, code = canonical(candidates.terms)
    negative = np.signbit(fits.coefficients[:, :1]).astype(np.intp)
    numbers = _numbers(candidates.row, np.hstack([code, negative]))
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    score = _log_sums(inverse, fits.score, len(first))
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
