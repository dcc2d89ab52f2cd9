"""From weighed hypotheses to a model: the members of its posterior, and what a reader should know."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats, Integers, smape_of
from orchestrator.models.data import Group
from orchestrator.models.noise import GUESSED
from orchestrator.models.pmnf.candidates import log_prior
from orchestrator.models.pmnf.correction import ROUGH, Correction, Features
from orchestrator.models.pmnf.fit import columns
from orchestrator.models.pmnf.hypotheses import block_values, terms_used
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.models.pmnf.representatives import representatives
from orchestrator.models.pmnf.solution import Solution, Task, best_residuals, poorly_fitted
from orchestrator.types import Point, format_value
from orchestrator.units import count

# Members less probable than the best one by this factor (natural logarithm) are left out: 3 in 10,000.
_NEGLIGIBLE = 8.0
# Where noise is skewed, its mean, median and mode differ by a share of its standard deviation, and which of
# them is the true time is a matter of definition: no interval is narrower than that. Chosen by hand; not
# derived.
_AMBIGUITY = 0.05
# How notes begin that are of the best hypothesis and not of the measurements.
UNFIT, AT_EDGE, SCATTERED = "no form fits within the noise", "the exponent", "points scatter by"
# How the note begins that says what other campaigns did to a model.
STRUCTURE = "structure"
# Probability from which a form counts as that of several categories.
_LIKELY = 0.5
# A location with less than this share of its weight left counts as an outlier. Chosen by hand; not derived.
_OUTLIER = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Call paths of a group that were solved together."""

    group: Group  # all call paths with these points
    rows: NDArray[np.intp]  # which of them, in the order of ``solution``
    # task, features, blocks: what was searched; blocks are (blocks, 2) per parameter.
    task: Task
    features: Features
    blocks: tuple[Floats, ...]
    solution: Solution  # the weighed hypotheses
    members: int  # most members of a posterior, which stand for all that is possible
    together: Together | None = None  # what else decides about the form: measurements of other categories


@dataclass(frozen=True, slots=True)
class Together:
    """Categories that may share their form."""

    categories: int  # their number
    points: Floats  # the points of all of them, shape (points, parameters)
    probability: Floats  # with which a call path shares its form here, shape (call paths of the case,)

    @property
    def likely(self) -> NDArray[np.bool_]:
        """Whether a call path more likely shares its form than not, shape (call paths of the case,)."""
        return np.asarray(self.probability > _LIKELY)


@dataclass(frozen=True, slots=True)
class Solved:
    """A group whose call paths are all solved."""

    group: Group  # the call paths
    # Those solved together, and which of each are the answer, as positions in `Case.rows`.
    cases: list[tuple[Case, NDArray[np.intp]]]
    notes: list[list[str]]  # remarks from the data, per row of the group


def models(case: Case, chosen: NDArray[np.intp], remarks: list[list[str]]) -> dict[int, PmnfModel]:
    """Build models, by row of the group.

    Parameters
    ----------
    case
        Solved call paths.
    chosen
        Which of them, as positions in ``case.rows``.
    remarks
        Notes from the data, per row of the group.
    """
    residuals = best_residuals(case.task, case.solution)
    smape = smape_of(residuals)
    possible = _Possible.of(case)
    signs = _Signs.of(case, possible)
    few = _few_values(case.group.parameters, case.group.points)
    fewer = few if case.together is None else _few_values(case.group.parameters, case.together.points)
    remarkable = signs.any()
    learned = _Learned.of(case, possible)
    result = {}
    for k in map(int, chosen):
        row = int(case.rows[k])
        posterior = _posterior(case, possible, k, learned.share)
        if posterior.correction is not None:
            smape[k] = smape_of(residuals[k] - case.task.features @ posterior.correction.coefficients[0])
        shared = case.together is not None and bool(case.together.likely[k])
        notes = (*case.group.notes[row], *remarks[row], *(fewer if shared else few))
        if remarkable[k]:
            notes += tuple(_notes(case, k, posterior, signs))
        notes += learned.notes.get(k, ())
        callpath, metric = case.group.labels[row]
        result[row] = PmnfModel(
            callpath=callpath,
            metric=metric,
            parameters=case.group.parameters,
            category=case.group.category,
            smape=float(smape[k]),
            noise=float(case.solution.located.sigma[k]),
            notes=notes,
            posterior=posterior,
            shared_noise=float(case.solution.located.shared_sigma[k]),
            unvaried=case.group.unvaried,
            outliers=tuple(np.flatnonzero(signs.outlying[k]).tolist()),
        )
    return result


@dataclass(frozen=True, slots=True)
class _Learned:
    """What other campaigns did: notes by call path of the case, and a share of each possible hypothesis.

    The weight of a campaign is the probability, after the measurements, that the form comes from it. The
    share is that part of a hypothesis' prior that comes from campaigns in which such forms fitted.
    """

    notes: dict[int, tuple[str, ...]]
    share: Floats | None

    @classmethod
    def of(cls, case: Case, possible: _Possible) -> Self:
        if not any(case.task.expected):
            return cls({}, None)
        candidates = case.solution.candidates.take(possible.index)
        standard = log_prior(candidates, case.task.growth)
        notes, share = {}, np.zeros(len(possible.index))
        for expected, mine in case.task.informed(candidates):
            _, parts = expected.mixed(standard[mine], candidates.terms[mine])
            weights = parts @ possible.weights[mine]
            notes[int(candidates.row[mine[0]])] = tuple(map(_learned_text, expected.sources, weights))
            share[mine] = parts[expected.fits].sum(axis=0)
        return cls(notes, share)


def _learned_text(source: str, weight: float) -> str:
    relation = "as in" if weight >= _LIKELY else "unlike in"
    return f"{STRUCTURE} {relation} {source} (weight {weight:.2f})"


def _few_values(parameters: tuple[str, ...], points: Floats) -> tuple[str, ...]:
    """Return notes on parameters with few values, of points of shape (points, parameters)."""
    return tuple(
        f"{name} has {count} value{'s' * (count > 1)}: its exponents are uncertain"
        for name, column in zip(parameters, points.T, strict=True)
        if (count := len(np.unique(column))) < 4
    )


def at_edge(case: Case) -> NDArray[np.bool_]:
    """Return which parameters of call paths without a fitting hypothesis want a larger exponent.

    Returns
    -------
    Array of shape (call paths of the case, parameters).
    """
    return _steep(case) & unfit(case)[:, None]


def _steep(case: Case) -> NDArray[np.bool_]:
    """Return where the best hypotheses grow in the end as the largest exponent, or faster.

    A smaller one with logarithms may stand for a larger one. Shape (call paths of the case, parameters).
    """
    terms = case.solution.candidates.terms[case.solution.first()]
    steep = np.zeros((len(terms), len(case.blocks)), dtype=bool)
    for k, x in enumerate(case.group.points.T):
        blocks, ends = case.blocks[k], np.unique(x)[-2:]
        before, last = block_values(ends, blocks).T[[0, -1]]
        growth = np.where(before > 0, last / before, 1.0)
        largest = growth[blocks[:, 0] == blocks[:, 0].max()].min()
        steep[:, k] = (growth[terms[:, :, k]].max(axis=1) >= largest) & (blocks[:, 0].max() > 0)
    return steep


def _edges(case: Case) -> NDArray[np.bool_]:
    """Return which exponents of the best hypotheses are the largest tried: (call paths, parameters)."""
    terms = case.solution.candidates.terms[case.solution.first()]
    edge = [
        (blocks[terms[:, :, k], 0].max(axis=1) >= blocks[:, 0].max()) & (blocks[:, 0].max() > 0)
        for k, blocks in enumerate(case.blocks)
    ]
    return np.stack(edge, axis=1)


def unfit(case: Case) -> NDArray[np.bool_]:
    """Return which call paths no hypothesis fits within the noise, shape (call paths of the case,)."""
    solution = case.solution
    return np.asarray((solution.weighting.smooth > 0) | poorly_fitted(solution, len(case.blocks)))


def _outlying(case: Case) -> NDArray[np.bool_]:
    """Return which points lost most of their weight: (call paths of the case, points)."""
    located = case.solution.located
    if located.aggregate != "none":
        return np.zeros(located.count.shape, dtype=bool)
    there = np.isfinite(case.group.values[case.rows])
    shared = located.shared
    available = np.sum(there, axis=2) if shared is None else shared.count(there.astype(float))
    return np.asarray(located.count < _OUTLIER * available)


def _forecast(case: Case, members: Integers) -> Floats:
    """Predictions of hypotheses at twice the largest value of every parameter, shape (members,)."""
    corner = 2 * case.group.points.max(axis=0)
    far = tuple(block_values(corner[k : k + 1], blocks) for k, blocks in enumerate(case.blocks))
    terms, c = case.solution.candidates.terms[members], case.solution.fits.coefficients[members]
    result: Floats = c[:, 0] + np.einsum("tm,mt->m", columns(terms, far)[:, :, 0], c[:, 1:])
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Possible:
    """Hypotheses that are not negligible, of all call paths at once, and what posteriors need of them."""

    index: Integers  # which hypotheses of the solution, shape (possible,)
    begin: Integers  # where those of a call path begin, shape (call paths + 1,)
    # used, most: their numbers of terms, shape (possible,), and the largest of each call path, at least 1.
    used: Integers
    most: Integers
    weights: Floats  # their probabilities, which sum to 1 for each call path
    # exponents, coefficients, covariance, misfit: as in `Posterior`, with all terms; misfit without
    # correction.
    exponents: Floats
    coefficients: Floats
    covariance: Floats
    misfit: Floats

    @classmethod
    def of(cls, case: Case) -> Self:
        solution = case.solution
        behind = solution.fits.score - solution.fits.score[solution.first()][solution.candidates.row]
        index = np.flatnonzero(behind >= -_NEGLIGIBLE)
        row, fits = solution.candidates.row[index], solution.fits.take(index)
        terms = solution.candidates.terms[index]
        begin = np.searchsorted(row, np.arange(len(case.rows) + 1))
        odds, used = np.exp(behind[index]), terms_used(terms)
        exponents = [b.take(terms[:, :, k], axis=0) for k, b in enumerate(case.blocks)]
        lack = np.maximum(fits.variance - solution.weighting.variance[row], 0)
        return cls(
            index=index,
            begin=begin,
            used=used,
            most=np.maximum(np.maximum.reduceat(used, begin[:-1]), 1),
            weights=odds / np.add.reduceat(odds, begin[:-1])[row],
            exponents=np.stack(exponents, axis=2)[:, :, : len(case.group.parameters)],
            coefficients=fits.coefficients,
            covariance=fits.covariance * fits.variance[:, None, None],
            misfit=_misfit(lack, solution.located.sigma[row]),
        )


def _misfit(lack: Floats, sigma: Floats) -> Floats:
    """Standard deviation of the truth around a hypothesis, from the variance beyond the noise."""
    return np.asarray(np.sqrt(lack + (_AMBIGUITY * sigma) ** 2))


def _posterior(case: Case, possible: _Possible, row: int, learned: Floats | None) -> Posterior:
    members: slice | Integers = slice(possible.begin[row], possible.begin[row + 1])
    weights, width = possible.weights[members], possible.most[row]
    if len(weights) > case.members:
        places, weights = representatives(weights, _forecast(case, possible.index[members]), case.members)
        members = possible.begin[row] + places
        width = max(possible.used[members].max(), 1)
    correction, misfit = None, possible.misfit[members]
    if case.solution.weighting.smooth[row] > 0:
        correction = _correction(case, row, possible.index[members], width)
        misfit = _misfit(ROUGH * correction.smooth**2, case.solution.located.sigma[row])
    return Posterior(
        weights=weights,
        exponents=possible.exponents[members, :width],
        coefficients=possible.coefficients[members, : width + 1],
        covariance=possible.covariance[members, : width + 1, : width + 1],
        misfit=misfit,
        correction=correction,
        learned=None if learned is None else learned[members],
    )


def _correction(case: Case, row: int, members: Integers, used: int) -> Correction:
    """Posterior of the smooth correction, given the coefficients of each member."""
    solution, features = case.solution, case.task.features
    fits, weighting, variance = solution.fits, solution.weighting, solution.fits.variance[members]
    terms = solution.candidates.terms[members, :used]
    z = np.concatenate([np.ones((1, len(terms), len(features))), columns(terms, case.task.tables)])
    value = np.einsum("tkn,kt->kn", z, fits.coefficients[members, : used + 1])
    z[1:][~terms.any(axis=2).T] = 0.0
    residual = solution.located.log_value[row] - np.log(value)
    gain = weighting.spread[row] @ (features * weighting.weights[row][:, None]).T
    return Correction(
        features=case.features,
        coefficients=residual @ gain.T,
        coupling=np.einsum("rn,tkn->krt", gain, z / value),
        covariance=weighting.spread[row] * variance[:, None, None],
        smooth=np.sqrt(weighting.smooth[row] * variance),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signs:
    """What there is to note, of all call paths at once: most have nothing."""

    # guessed, corrected, scattered: whether the noise is a guess, whether there is a correction, or without
    # one lack of fit worth a note.
    guessed: NDArray[np.bool_]
    corrected: NDArray[np.bool_]
    scattered: NDArray[np.bool_]
    coefficients: Integers  # how many the best hypothesis has, where the points are too few for them, else 0
    # outlying, edges: as from `_outlying` and `_edges`.
    outlying: NDArray[np.bool_]
    edges: NDArray[np.bool_]

    @classmethod
    def of(cls, case: Case, possible: _Possible) -> Self:
        first, weighting = possible.begin[:-1], case.solution.weighting
        corrected = weighting.smooth > 0
        misfit = possible.misfit[first]
        coefficients = np.count_nonzero(possible.coefficients[first], axis=1)
        return cls(
            guessed=case.solution.located.is_guess,
            corrected=corrected,
            scattered=~corrected & (misfit > 2 * np.sqrt(weighting.noise)) & (misfit > 0.01),
            coefficients=np.where(len(case.group.points) < coefficients + 2, coefficients, 0),
            outlying=_outlying(case),
            edges=_edges(case),
        )

    def any(self) -> NDArray[np.bool_]:
        """Return which call paths have anything to note."""
        alone = self.guessed | self.corrected | self.scattered | (self.coefficients > 0)
        return np.asarray(alone | self.outlying.any(axis=1) | self.edges.any(axis=1))


def _notes(case: Case, row: int, posterior: Posterior, signs: _Signs) -> list[str]:
    points, notes = case.group.points, []
    if signs.guessed[row]:
        notes.append(GUESSED)
    if coefficients := signs.coefficients[row]:
        few = f"{count(len(points), 'point')} for {count(coefficients, 'coefficient')}"
        if case.together is not None and case.together.likely[row]:
            notes.append(f"{few}: the form is that of {case.together.categories} categories together")
        else:
            notes.append(f"{few}: another form may fit as well")
    notes += _misfit_notes(case, row, posterior, signs)
    # The truth may be beyond what was tried.
    notes += [
        f"{AT_EDGE} of {name} is the largest tried; see the option exponents"
        for name, edge in zip(case.group.parameters, signs.edges[row], strict=False)
        if edge
    ]
    which = np.flatnonzero(signs.outlying[row])
    if len(which):
        where = ", ".join(str(_point(case.group, k)) for k in which[:3])
        more = f" and {len(which) - 3} more" if len(which) > 3 else ""
        notes.append(f"taken for outliers: {where}{more}")
    return notes


def _misfit_notes(case: Case, row: int, posterior: Posterior, signs: _Signs) -> list[str]:
    if posterior.correction is not None:
        noise = math.sqrt(case.solution.weighting.noise[row])
        change = posterior.correction.features(case.group.points) @ posterior.correction.coefficients[0]
        size = 100 * (float(np.exp(np.abs(change).max())) - 1)
        return [
            f"{UNFIT} ({_figure(100 * noise)} %): "
            f"a smooth correction of up to {_figure(size)} % is part of the expression"
        ]
    if signs.scattered[row]:
        scatter = _figure(100 * posterior.misfit[0])
        return [f"{SCATTERED} {scatter} % around the model, beyond the noise"]
    return []


def _figure(percent: float) -> str:
    """Return two digits of a percentage, never with an exponent: ``160``."""
    return format(Decimal(f"{percent:.2g}"), "f")


def _point(group: Group, k: int) -> Point:
    values = ((n, float(v)) for n, v in zip(group.parameters, group.points[k], strict=True))
    return Point(tuple((name, float(format_value(value))) for name, value in values))
