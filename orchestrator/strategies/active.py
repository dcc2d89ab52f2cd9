"""Active learning in large spaces: the runs that lower the error over the whole space most per core-second.

The criterion is the expected reduction of the variance of the log prediction, as a mean over random points of
the space, per price of the run (integrated variance: Cohn, Ghahramani and Jordan, Active Learning with
Statistical Models, 1996). With an evaluation point `information` is better: it lowers the variance where the
models are wanted.

What a model does not know has two parts. One follows from its explanations, where these are a posterior, as
of the normal form: covariances between any two points, near or far. The other are errors of which only the
size is known: lack of fit, the spread of a few refits or folds, the width of intervals. Between distant
points these say nothing, so they are a local field: points share errors with their surroundings, and less
where points were measured nearby.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from orchestrator.models.base import Floats, Model, holds_at
from orchestrator.models.belief import ModelWithBelief, has_belief, of_answer
from orchestrator.strategies.base import Choice, Strategy, View
from orchestrator.strategies.candidates import (
    Candidate,
    affordable,
    cost_text,
    kind_of_run,
    open_points,
    run_cost,
    single_runs,
    within_budget,
)
from orchestrator.strategies.drawing import Law, drawn_runs
from orchestrator.strategies.information.choosing import Pick
from orchestrator.strategies.information.price import Price
from orchestrator.strategies.relevance import relevant
from orchestrator.strategies.sample import new_runs
from orchestrator.strategies.surrogate import encode
from orchestrator.types import Point

# Points per parameter before models choose, as in `hybrid`.
_START = 8
# Deviation of the logarithm beyond which an explanation is wrong, however far off it is: one extreme one must
# not attract all runs. Chosen by hand; not derived.
_WRONG = 1.0
# Measured points among the candidates, as a share of the drawn ones. Chosen by hand.
_REPEATED = 0.25
# Width of the central 90 % of a normal distribution, in standard deviations.
_CENTRAL = 3.29
_TINY = 1e-12
_LEAST_NOISE = 1e-6  # relative; counters repeat exactly, but no run is worth infinitely much
_EQUAL = 1e-9  # weights of members that differ by less are equal
# Share of the variance of the local field that no other point shares. Chosen by hand; not derived.
_OWN = 0.1
_CONDITIONED = 1000  # measured points that the local field is conditioned on at most
# Least price of a run as a share of the mean of all candidates, beside its cost. See docs/strategies.md.
_LEAST_PRICE = 0.5
# Most runs of a round that is larger than the batch because its runs are nearly free: each makes the
# covariances of all candidates anew, and may not know what the others will show. Chosen by hand.
_MOST_OF_ROUND = 32


@dataclass(frozen=True, slots=True)
class _Field:
    """What one model does not know.

    ``share`` is the weight of its call path, ``covariance`` that of log predictions at candidates and
    targets, ``noise`` the variance with which one more run shows the value at each candidate.
    """

    share: float
    covariance: Floats
    noise: Floats


def strategy(
    *,
    uniform: Sequence[str] = (),
    log: Sequence[str] = (),
    start: int | None = None,
    candidates: int = 512,
    targets: int = 256,
    overhead: float = 0.0,
) -> Strategy:
    """Return active learning.

    Parameters
    ----------
    uniform, log
        As of `orchestrator.strategies.sample.strategy`: candidates and targets are drawn like its points.
    start
        Points that are drawn before models choose, in round 1; None: eight per parameter.
    candidates, targets
        Points that are drawn in every round: those that may be measured, and those at which the variance is
        to fall.
    overhead
        Core-seconds added to the expected cost of every run, if that is more than its share of the price of a
        round; see `orchestrator.strategies.information.price`.
    """

    def propose(view: View, rng: np.random.Generator) -> Sequence[Choice]:
        law = Law.of(view.space.parameters, uniform, log)
        wanted = start if start is not None else _START * len(view.space.parameters)
        missing = wanted - len(view.done)
        most = wanted if view.round == 1 else view.batch_size
        if view.round == 1 or not view.models or missing > 0:
            return _drawn(view, law, min(most, max(missing, view.batch_size)), rng)
        pool = _pool(view, law, candidates, rng)
        aims = [point for point, _ in zip(law.points(view.space, rng), range(targets), strict=False)]
        return _chosen(view, pool, aims, rng, overhead)

    return propose


def _drawn(view: View, law: Law, number: int, rng: np.random.Generator) -> list[Choice]:
    """Return points drawn at random; where all were measured, further runs at some of them."""
    runs = new_runs(view, law, number, rng) or drawn_runs(view, law, number, rng, new=False)
    return within_budget(view, runs, lambda run: f"{law.describe()}: {cost_text(view, run)}")


def _pool(view: View, law: Law, number: int, rng: np.random.Generator) -> list[Candidate]:
    """Return one more run at each of some drawn points, and of some measured ones."""
    pool = drawn_runs(view, law, number, rng, new=True)
    if view.maximum_repetitions < 2:
        return pool
    measured = [point for point in view.done if view.done[point] and point in view.space]
    order = rng.permutation(len(measured))[: max(1, round(_REPEATED * number))]
    return [*pool, *single_runs(view, list(open_points(view, (measured[index] for index in order))))]


def _chosen(
    view: View, pool: Sequence[Candidate], aims: Sequence[Point], rng: np.random.Generator, overhead: float
) -> list[Choice]:
    """Return the runs of a round, chosen jointly; runs at the same point are one choice."""
    if not pool:
        return []
    points = [*(run.point for run in pool), *aims]
    fields, modelled, remark = _fields(view, points, len(pool), rng)
    blank = np.flatnonzero(~modelled[: len(pool)])
    first = _of_unknown(view, blank, modelled[len(pool) :], rng)
    picks = _pick(view, pool, fields, first, overhead)
    choices = []
    for index in dict.fromkeys(pick.index for pick in picks):
        mine = [pick for pick in picks if pick.index == index]
        repetitions = len(mine)
        run = Candidate(pool[index].point, repetitions, run_cost(view, pool[index].point, repetitions))
        why = _reason(view, run, mine, index in first, len(aims))
        choices.append(Choice(run.point, repetitions, f"{why}{remark}"))
    return choices


def _of_unknown(
    view: View, blank: NDArray[np.intp], modelled: NDArray[np.bool_], rng: np.random.Generator
) -> list[int]:
    """Return candidates in categories that no model is for: as large a share of the batch as of targets."""
    if not len(blank):
        return []
    share = float(np.mean(~modelled)) if len(modelled) else 1.0
    number = min(len(blank), max(1, round(share * view.batch_size)))
    return [int(index) for index in rng.choice(blank, size=number, replace=False)]


def _fields(
    view: View, points: Sequence[Point], candidates: int, rng: np.random.Generator
) -> tuple[list[_Field], NDArray[np.bool_], str]:
    """Return what the models of relevant call paths do not know at points, and at which there are models.

    The text is a remark on models without a belief.
    """
    shared = correlation(view, points, rng)
    fields = []
    modelled = np.zeros(len(points), bool)
    plain = number = 0
    for entry in relevant(view):
        number += bool(entry.models)
        plain += bool(entry.models) and not any(map(has_belief, entry.models))
        for model in entry.models:
            here = np.flatnonzero([holds_at(model, point) for point in points])
            if here.size:
                modelled[here] = True
                fields.append(_field(model, entry.share, points, here, shared, candidates))
    remark = f"; {plain} of {number} relevant call paths have models with intervals only" if plain else ""
    return fields, modelled, remark


def _field(
    model: Model,
    share: float,
    points: Sequence[Point],
    here: NDArray[np.intp],
    shared: Floats,
    candidates: int,
) -> _Field:
    """Return what one model does not know; zeros at points of other categories."""
    there = [points[int(index)] for index in here]
    if has_belief(model):
        factor, local, noise = _of_belief(model, there)
    else:
        factor, local = np.zeros((len(there), 0)), _of_intervals(model, there)
        noise = model.noise
    square = np.ix_(here, here)
    covariance = np.zeros((len(points), len(points)))
    covariance[square] = factor @ factor.T + np.outer(local, local) * shared[square]
    scatter = np.full(len(points), max(noise, _LEAST_NOISE) ** 2)
    scatter[here] += _OWN * local**2
    return _Field(share, covariance, scatter[:candidates])


def _of_belief(model: ModelWithBelief, points: Sequence[Point]) -> tuple[Floats, Floats, float]:
    """Return the factor of the covariance by explanations, the deviation of the local field, and the noise.

    Members with equal weights are refits or folds: what they say of distant points is chance, so they count
    for the local field.
    """
    found = of_answer(model, points)
    deviation = np.clip(found.mean - found.centre, -_WRONG, _WRONG)
    root = np.sqrt(found.weights)
    within = (root[:, None, None] * found.factor).reshape(-1, len(points))
    local = found.weights @ found.rough**2
    parts = [within]
    if np.ptp(found.weights) < _EQUAL:
        local = local + found.weights @ deviation**2
    else:
        parts.append(root[:, None] * deviation)
    factor = np.concatenate(parts).T
    return np.nan_to_num(factor), np.minimum(np.sqrt(np.nan_to_num(local)), _WRONG), found.noise


def _of_intervals(model: Model, points: Sequence[Point]) -> Floats:
    """Return standard deviations of log predictions by the width of the 90 % intervals."""
    predicted = model.predict(points)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.maximum(predicted.low, _TINY * np.abs(predicted.value))
        deviation = np.log(predicted.high / low) / _CENTRAL
    return np.where(np.isfinite(deviation), np.clip(deviation, 0.0, _WRONG), 0.0)


def correlation(view: View, points: Sequence[Point], rng: np.random.Generator) -> Floats:
    """Return the covariance of a local field of unit variance at points, given the measured ones.

    A Gaussian process with a Matérn kernel (nu = 3/2). Its length is half of the median distance of all
    pairs, with parameters scaled as in `orchestrator.strategies.surrogate.encode`.

    Returns
    -------
    Floats
        Shape (points, points).
    """
    parameters = view.space.parameters
    measured = [point for point in view.measurements.points if point in view.space]
    if len(measured) > _CONDITIONED:
        some = rng.choice(len(measured), size=_CONDITIONED, replace=False)
        measured = [measured[index] for index in sorted(some)]
    x, known = encode(parameters, points), encode(parameters, measured) if measured else None
    distance = _distances(x, x)
    length = float(np.median(distance)) / 2 or 1.0
    prior = _matern(distance / length)
    if known is None:
        return prior
    runs = np.array([max(view.done.get(point, 1), 1) for point in measured])
    inner = _matern(_distances(known, known) / length) + np.diag(_OWN / runs)
    root = np.linalg.cholesky(inner)
    rows = solve_triangular(root, _matern(_distances(known, x) / length), lower=True)
    return np.asarray(prior - rows.T @ rows, np.float64)


def _distances(one: Floats, other: Floats) -> Floats:
    square = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
    return np.asarray(np.sqrt(np.maximum(square, 0.0)), np.float64)


def _matern(distance: Floats) -> Floats:
    scaled = math.sqrt(3.0) * distance
    return np.asarray((1 + scaled) * np.exp(-scaled), np.float64)


def _pick(
    view: View, pool: Sequence[Candidate], fields: Sequence[_Field], first: Sequence[int], overhead: float
) -> list[Pick]:
    """Return the runs of a round; after each, everything is updated as if it had been measured.

    They are n_b, or more where these cost less than a round is priced at, see
    `orchestrator.strategies.information.price`: fitting and choosing takes longer than runs that are nearly
    free, however few they are.
    """
    size = len(pool)
    price = Price.of(view, overhead)
    prices = _prices(price, pool)
    counts = np.array([view.done.get(run.point, 0) for run in pool])
    fields = list(fields)
    picks: list[Pick] = []
    forced = list(first)
    spent = 0.0
    while len(picks) < view.batch_size or (spent < price.of_round and len(picks) < _MOST_OF_ROUND):
        closed = np.array([not affordable(view, spent + run.seconds) for run in pool])
        closed |= counts >= view.maximum_repetitions
        if closed.all():
            break
        gains = sum((item.share * _gains(item, size) for item in fields), np.zeros(size))
        before = sum(item.share * float(np.mean(np.diag(item.covariance)[size:])) for item in fields)
        values = np.where(closed, -1.0, gains / prices)
        best = next((index for index in forced if not closed[index]), int(np.argmax(values)))
        forced = [index for index in forced if index != best]
        picks.append(Pick(best, before, max(before - float(gains[best]), 0.0)))
        spent += pool[best].seconds
        fields = [_after(item, best) for item in fields]
        counts[best] += 1
    return picks


def _prices(price: Price, pool: Sequence[Candidate]) -> Floats:
    """Return the price of each run in core-seconds, never less than a share of that of a drawn point.

    Cheap runs alone say little of expensive points, however far the models are trusted to carry that.
    """
    costs = np.array([run.seconds for run in pool])
    return np.maximum(price.of_runs(pool), _LEAST_PRICE * float(costs.mean()) + costs)


def _gains(field: _Field, size: int) -> Floats:
    """Return by how much a run at each candidate lowers the mean variance at the targets."""
    covariance = field.covariance[:size, size:]
    variance = np.diag(field.covariance)[:size]
    return np.asarray((covariance**2).mean(axis=1) / (variance + field.noise), np.float64)


def _after(field: _Field, index: int) -> _Field:
    """Return what is not known after one more run at a candidate."""
    row = field.covariance[index]
    change = np.outer(row, row) / (row[index] + field.noise[index])
    return replace(field, covariance=field.covariance - change)


def _reason(view: View, run: Candidate, picks: Sequence[Pick], unknown: bool, targets: int) -> str:
    what = kind_of_run(view, run.point)
    if unknown:
        return f"{what}: no model is for its categories yet ({cost_text(view, run)})"
    first, last = (100 * math.sqrt(max(value, 0.0)) for value in (picks[0].before, picks[-1].after))
    return (
        f"{what}: lowers the typical error over {targets} random points most per cost, from {first:.4g} % to "
        f"{last:.4g} % ({cost_text(view, run)})"
    )
