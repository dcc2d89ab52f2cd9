"""What was found in one category alone, in the parameters and blocks of all categories of its call paths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.data import Group
from orchestrator.models.noise import Located
from orchestrator.models.pmnf.build import Case, Solved
from orchestrator.models.pmnf.candidates import Candidates
from orchestrator.models.pmnf.correction import Features
from orchestrator.models.pmnf.hypotheses import block_values, canonical, growth_of, structures
from orchestrator.models.pmnf.neighbours import Expected
from orchestrator.models.pmnf.solution import Solution, Task, joined, log_sums
from orchestrator.models.pmnf.weighting import Weighting

# A category has a form of its own if it has at least so many points more than there are parameters.
_LEAST_POINTS = 2
# Hypotheses of all categories that are weighed at a time, which keeps their arrays small, and least per call
# path. Chosen by hand.
TOGETHER, _LEAST = 1_000_000, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The parameters and blocks of all categories."""

    parameters: tuple[str, ...]  # those that vary in any category
    # Per parameter those of any category, shape (blocks, 2); the constant comes first.
    blocks: tuple[Floats, ...]
    everywhere: tuple[NDArray[np.bool_], ...]  # which of them have a value at the points of all categories
    keep: int  # most hypotheses per call path

    @classmethod
    def of(cls, solved: Sequence[Solved]) -> Self:
        """Join those of some groups, one per category."""
        varying = {name for item in solved for name in item.group.parameters}
        parameters = tuple(name for name, _ in solved[0].group.fixed if name in varying)
        cases = [case for item in solved for case, _ in item.cases]
        pairs: dict[str, dict[tuple[float, ...], None]] = {name: {(0.0, 0.0): None} for name in parameters}
        for case in cases:
            for name, known in zip(case.group.parameters, case.blocks, strict=False):
                pairs[name].update(dict.fromkeys(map(tuple, known.tolist())))
        points = np.concatenate([item.group.coordinates(parameters) for item in solved])
        blocks = tuple(np.array(list(pairs[name])) for name in parameters)
        return cls(
            parameters=parameters,
            blocks=blocks,
            everywhere=tuple(
                ((b[:, 1] == 0) | (low >= 1)) & ((b[:, 0] >= 0) | (low > 0))
                for low, b in zip(points.min(axis=0), blocks, strict=True)
            ),
            keep=min(max(case.task.keep for case in cases), max(TOGETHER // len(solved), _LEAST)),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OneCategory:
    """Call paths in one category, with the hypotheses that were found for it alone."""

    # group, rows, task, features: as in `Case`, with the parameters and blocks of all categories.
    group: Group
    rows: NDArray[np.intp]
    task: Task
    features: Features
    solution: Solution  # what was found, with the call paths numbered in the order of ``rows``
    # evidence, total: logarithm of the probability of the measurements if the category has a form of its own,
    # and its part that is the sum over the hypotheses, shape (call paths,).
    evidence: Floats
    total: Floats
    members: int

    @property
    def can_have_a_form(self) -> bool:
        """Whether the points can show a form: they differ in every parameter, and are more than these."""
        points = self.group.points
        return bool(np.ptp(points, axis=0).all() and len(points) >= points.shape[1] + _LEAST_POINTS)

    @classmethod
    def of(cls, solved: Solved, rows: NDArray[np.intp], space: Space) -> Self:
        """Take some call paths of the group of a category."""
        points = solved.group.coordinates(space.parameters)
        features, case = Features.of(points), solved.cases[0][0]
        group = replace(
            solved.group,
            parameters=space.parameters,
            points=points,
            notes=tuple(_still_true(notes, space.parameters) for notes in solved.group.notes),
        )
        tables = tuple(block_values(x, b) for x, b in zip(points.T, space.blocks, strict=True))
        solution = _gathered(solved, rows, space)
        total = log_sums(solution.candidates.row, solution.fits.score, len(rows))
        return cls(
            group=group,
            rows=rows,
            task=Task(
                tables=tables,
                growth=growth_of(space.blocks),
                features=features(points),
                keep=space.keep,
                wide=case.task.wide,
                expected=_expected(solved, rows, space),
            ),
            features=features,
            solution=solution,
            evidence=total - math.log(structures(len(solved.group.parameters))),
            total=total,
            members=case.members,
        )


def _expected(solved: Solved, rows: NDArray[np.intp], space: Space) -> tuple[Expected | None, ...]:
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


def _gathered(solved: Solved, rows: NDArray[np.intp], space: Space) -> Solution:
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
        _located([part.located for _, part in parts]).rows(order),
        Weighting.concatenate([part.weighting for _, part in parts]).rows(order),
    )


def _located(parts: Sequence[Located]) -> Located:
    """Put the locations of several call paths one after another."""
    shared = [part.shared for part in parts if part.shared is not None]
    return replace(
        parts[0],
        log_value=np.concatenate([part.log_value for part in parts]),
        count=np.concatenate([part.count for part in parts]),
        sigma=np.concatenate([part.sigma for part in parts]),
        freedom=np.concatenate([part.freedom for part in parts]),
        shared=replace(shared[0], origins=np.concatenate([s.origins for s in shared])) if shared else None,
    )


def _renumbered(terms: NDArray[np.int16], case: Case, space: Space) -> NDArray[np.int16]:
    """Return terms with the parameters and blocks of all categories: (hypotheses, terms, parameters)."""
    result = np.zeros((*terms.shape[:2], len(space.parameters)), dtype=np.int16)
    for k, (name, blocks) in enumerate(zip(case.group.parameters, case.blocks, strict=False)):
        place = space.parameters.index(name)
        number = {tuple(pair): n for n, pair in enumerate(space.blocks[place].tolist())}
        result[:, :, place] = np.array([number[tuple(pair)] for pair in blocks.tolist()])[terms[:, :, k]]
    ordered, _ = canonical(result)
    return ordered
