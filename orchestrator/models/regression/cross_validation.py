"""Which learners predict best what they were not fitted to, and with what errors.

Candidates are many and fits are slow, so they are compared on few samples first, and those that remain on
more (successive halving: Jamieson and Talwalkar 2016, Non-stochastic best arm identification and
hyperparameter optimization). Errors are MLogQ: the mean absolute logarithm of predicted over measured values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats
from orchestrator.models.regression.folds import LEAST_SAMPLES, End, Split, ends
from orchestrator.models.regression.learner import Fitted, Learner, Streams, streams
from orchestrator.models.regression.samples import Samples
from orchestrator.models.spread import spread

# Samples to fit to in the first comparison, and by how much they grow in each further one.
_FIRST, _GROWTH = 512, 4
# Of the candidates this share goes on, and no fewer than so many; the best of every family always does.
_KEPT, _LEAST_KEPT = 3, 6
# Candidates that are compared on all samples.
FINALISTS = 6
# Largest number of samples for a comparison beyond the measured range, and most comparisons, each of others.
_MOST_AT_ENDS, _PARTS = 1024, 3
# A learner is far behind with an error so many times that of the best: it is not fitted to further parts.
FAR_BEHIND = 1.5
# This share of several predictions is left out at either end.
_CUT = 0.34
# A member of a combination with less weight is not worth its fit.
_LEAST_WEIGHT = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """What learners predict where they were not fitted."""

    learners: tuple[Learner, ...]  # in the order of ``errors``, the best first
    # MLogQ of each, shape (learners,); infinite for one that failed. For one that was far behind in the first
    # part: what it would be if it were as far behind in all of them.
    errors: Floats
    # Logarithms of measured over predicted values at the rows that were left out, shape (learners, rows).
    residuals: Floats


def mlogq(residuals: Floats) -> float:
    """Return the mean absolute log ratio; infinite where a prediction is missing."""
    error = float(np.abs(residuals).mean()) if residuals.size else np.inf
    return error if np.isfinite(error) else np.inf


def compared(
    learners: Sequence[Learner], samples: Samples, splits: Sequence[Split], rng: np.random.Generator
) -> Compared:
    """Fit learners to the fitted part of every split and predict the rest.

    Those that are far behind after the first split are not fitted again: their other residuals are NaN.
    """
    residuals = np.full((len(learners), sum(len(split.left_out) for split in splits)), np.nan)
    running = list(range(len(learners)))
    end = 0
    for split in splits:
        begin, end = end, end + len(split.left_out)
        left_out = samples.rows(split.left_out)
        predicted = _predictions(
            [learners[k] for k in running], samples.rows(split.fitted), (left_out.x,), streams(rng)
        )
        for k, (there,) in zip(running, predicted, strict=True):
            residuals[k, begin:end] = left_out.y - there
        so_far = {k: mlogq(residuals[k, :end]) for k in running}
        running = [k for k in running if so_far[k] <= FAR_BEHIND * min(so_far.values())]
    complete = np.isfinite(residuals).all(axis=1)
    error = _comparable(residuals, complete, len(splits[0].left_out))
    # Among those that were not fitted everywhere none is better than one that was.
    order = np.lexsort((error, ~complete))
    return Compared(tuple(learners[k] for k in order), error[order], residuals[order])


def _comparable(residuals: Floats, complete: NDArray[np.bool_], seen: int) -> Floats:
    """Return MLogQ of every row; of incomplete ones as they compare with the best where both are known.

    The first part may be easier than the others, and an error there smaller than that of the best in all.
    """
    whole = np.array([mlogq(row) for row in residuals])
    first = np.array([mlogq(row[:seen]) for row in residuals])
    if not complete.any():
        return first
    best = int(np.argmin(whole))
    ratio = whole[best] / first[best] if first[best] > 0 else 1.0
    return np.where(complete, whole, first * ratio)


def _predictions(
    learners: Sequence[Learner],
    samples: Samples,
    places: tuple[Floats, ...],
    own: Streams,
) -> list[tuple[Floats, ...]]:
    """Fit every learner and return what it predicts at each of the places; NaN where the fit fails."""
    tasks = [(learner, own(learner)) for learner in learners]
    return list(spread(partial(_predicted, samples, places), tasks))


def _predicted(
    samples: Samples, places: tuple[Floats, ...], task: tuple[Learner, np.random.Generator]
) -> tuple[Floats, ...]:
    fitted = attempt(task[0], samples, task[1])
    return tuple(np.full(len(x), np.nan) if fitted is None else fitted.at(x) for x in places)


def attempt(learner: Learner, samples: Samples, rng: np.random.Generator) -> Fitted | None:
    """Fit a learner; None where the samples are not enough for it."""
    try:
        return learner.fitted(samples, rng)
    except (ModelError, ValueError, np.linalg.LinAlgError):
        return None


def finalists(learners: Sequence[Learner], samples: Samples, rng: np.random.Generator) -> tuple[Learner, ...]:
    """Return the few candidates that predict best when fitted to growing parts of the samples."""
    remaining = tuple(learners)
    order = rng.permutation(len(samples))
    part = _FIRST
    while len(remaining) > FINALISTS:
        fitted = min(part, len(samples) * 3 // 4)
        left_out = order[fitted : fitted + max(256, fitted // 2)]
        split = Split(np.sort(order[:fitted]), np.sort(left_out))
        comparison = compared(remaining, samples, [split], rng)
        last = fitted < part or part * _GROWTH >= len(samples)
        keep = FINALISTS if last else max(len(remaining) // _KEPT, _LEAST_KEPT)
        ranked = comparison.learners
        best = {*ranked[:keep], *_first_of_families(ranked)}
        remaining = tuple(learner for learner in ranked if learner in best)
        part *= _GROWTH
        if last:
            break
    return remaining


def _first_of_families(learners: Sequence[Learner]) -> list[Learner]:
    first: dict[str, Learner] = {}
    for learner in learners:
        first.setdefault(learner.family, learner)
    return list(first.values())


def weights(comparison: Compared) -> Floats:
    """Return weights of learners whose combination of logarithms predicts best what was left out.

    Stacked regression (Breiman 1996) by MLogQ itself, a linear program: squares would have to be bounded
    against outliers, and a bound makes learners that are far off look better than they are. Weights are
    nonnegative and sum to 1; small ones are dropped.

    Returns
    -------
    Shape (learners,), in the order of ``comparison``.
    """
    from scipy.optimize import linprog

    usable = np.flatnonzero(np.isfinite(comparison.residuals).all(axis=1))
    alone: Floats = np.eye(len(comparison.learners))[0]
    if len(usable) < 2 or not comparison.errors[0]:
        return alone
    # In units of the least error: the solver's tolerance is absolute. The sum of absolute residuals is
    # the largest sum over signs from -1 to 1; weights are what the bounds by each learner cost (duality).
    residuals = comparison.residuals[usable] / comparison.errors[0]
    members, rows = residuals.shape
    solved = linprog(
        np.append(np.zeros(rows), -1.0),
        A_ub=np.column_stack([-residuals, np.ones(members)]),
        b_ub=np.zeros(members),
        bounds=[*[(-1.0, 1.0)] * rows, (None, None)],
    )
    if not solved.success:
        return alone
    some = -solved.ineqlin.marginals
    some[some < _LEAST_WEIGHT] = 0
    combined = np.zeros_like(alone)
    combined[usable] = some / some.sum()
    return combined


def middle(values: Floats) -> Floats:
    """Return the mean of the middle ones over the first axis: three of five values, one of three.

    It varies less than the median, and what is far off does not count either.
    """
    from scipy.stats import trim_mean

    return np.asarray(trim_mean(values, _CUT, axis=0), np.float64)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Beyond:
    """How learners predict the largest values of one axis from the others."""

    axis: int
    # How far beyond the fitted range the left-out samples are, in coordinates, shape (rows,).
    distances: Floats
    # Logarithms of measured over predicted values: of every learner, then of every learner shifted to meet
    # the prediction inside at the edge, shape (2 * learners, rows).
    residuals: Floats
    errors: Floats  # MLogQ, shape (2 * learners,)
    # Logarithms of measured values over the prediction inside at the edge, shape (rows,).
    changes: Floats


def parts(samples: Samples, rng: np.random.Generator) -> list[Samples]:
    """Return the samples, or of many a few random parts without a common one, for `beyond`."""
    if len(samples) <= _MOST_AT_ENDS:
        return [samples]
    number = min(len(samples) // _MOST_AT_ENDS, _PARTS)
    rows = rng.choice(len(samples), number * _MOST_AT_ENDS, replace=False)
    return [samples.rows(np.sort(part)) for part in np.split(rows, number)]


def beyond(
    learners: Sequence[Learner],
    inside: Learner,
    samples: Samples,
    rng: np.random.Generator,
    least: int = LEAST_SAMPLES,
) -> tuple[Beyond, ...]:
    """Compare learners at the end of every numeric axis that has enough values.

    Parameters
    ----------
    learners
        What may predict there; each also shifted to meet ``inside`` at the edge of the range.
    inside
        What predicts within the range.
    samples
        What was measured, or one of its `parts`.
    rng
        Of the fits.
    least
        So many samples must lie on either side of an end.
    """
    results: list[Beyond] = []
    running = np.ones(len(learners), bool)
    for end in ends(samples, least):
        results.append(_beyond(end, learners, running, inside, samples, rng))
        errors = np.mean([item.errors.reshape(2, -1).min(axis=0) for item in results], axis=0)
        running = errors <= FAR_BEHIND * errors.min()
    return tuple(results)


def _beyond(
    end: End,
    learners: Sequence[Learner],
    running: NDArray[np.bool_],
    inside: Learner,
    samples: Samples,
    rng: np.random.Generator,
) -> Beyond:
    fitted, left_out = samples.rows(end.split.fitted), samples.rows(end.split.left_out)
    low, edge = float(fitted.x[:, end.axis].min()), float(fitted.x[:, end.axis].max())
    # Learners must take what is left out for what it is: beyond the range.
    fitted = fitted.within(end.axis, low, edge)
    clamped = left_out.x.copy()
    clamped[:, end.axis] = samples.axes[end.axis].nearest(left_out.x[:, end.axis], low, edge)
    still = np.flatnonzero(running).tolist()
    (_, at_edge), *predicted = _predictions(
        [inside, *(learners[k] for k in still)], fitted, (left_out.x, clamped), streams(rng)
    )
    ahead, at_own_edge = np.full((2, len(learners), len(left_out)), np.nan)
    for k, there in zip(still, predicted, strict=True):
        ahead[k], at_own_edge[k] = there
    residuals = np.concatenate([left_out.y - ahead, left_out.y - (ahead + at_edge - at_own_edge)])
    return Beyond(
        axis=end.axis,
        distances=left_out.x[:, end.axis] - edge,
        residuals=residuals,
        errors=np.array([mlogq(row) for row in residuals]),
        changes=left_out.y - at_edge,
    )
