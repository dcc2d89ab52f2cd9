"""What may explain the measurements of a call path: curves, formulas, and formulas times small curves.

Every explanation counts with its probability (Bayesian model averaging: Hoeting et al., Statistical Science,
1999). Sizes of the process are not chosen: every draw of the prior counts with its evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.curves.design import Design, Process
from orchestrator.models.curves.evidence import (
    Columns,
    Formulas,
    beside_formulas,
    exact_formulas,
    log_sum,
    of_curves,
    posterior_of_coefficients,
)
from orchestrator.models.curves.prior import Sizes, alone, beside, exact
from orchestrator.models.curves.regimes import Regimes
from orchestrator.models.curves.regimes import fit as fit_regimes
from orchestrator.models.noise import GUESS_WEIGHT

# Explanations that a model keeps: they stand for all.
_KEPT = 64
# Formulas that are weighed with every draw; further ones have the sizes of the most probable formula.
_WEIGHED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """What repetitions say of the scatter of one of them: standard deviation and degrees of freedom."""

    sigma: float
    freedom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanations:
    """Possible explanations of one call path, as a mixture of Gaussian processes around formulas or not.

    Attributes
    ----------
    process
        Shared with other call paths.
    formulas
        The formulas; None where there are none.
    regimes
        Power laws with a change, which count as further formulas; None where there are none.
    formula
        Which one an explanation has; -1 for curves alone. Shape (members,).
    draws
        Which draw of the process, shape (members,).
    weights
        Their probabilities, shape (members,).
    rough
        Standard deviation of the truth around each that is independent between points, shape (members,).
    centre
        Mean of the logarithms of the measured values: curves are around it.
    residuals
        Projected logarithms of measured over predicted values of every formula; the last one is for curves,
        around the centre. Shape (formulas + 1, rank).
    slopes
        Projected slopes by coefficients, shape (formulas, coefficients, rank).
    scale
        By which slopes were divided, shape (formulas, coefficients); 0 for a coefficient that is not there.
    shift, root
        Mean change of the scaled coefficients of a member, and factor of their covariance, shapes
        (members, coefficients) and (members, coefficients, coefficients).
    share
        Probability that a formula is part of the explanation, not counting regimes.
    odds
        Probability of each of the regimes, shape (laws,).
    """

    process: Process
    formulas: Formulas | None
    regimes: Regimes | None
    formula: Integers
    draws: Integers
    weights: Floats
    rough: Floats
    centre: float
    residuals: Floats
    slopes: Floats
    scale: Floats
    shift: Floats
    root: Floats
    share: float
    odds: Floats

    def fewer(self, members: int) -> Self:
        """Return so many members that stand for all."""
        picked, weights = _standing_for_all(np.log(self.weights), members)
        chosen = {
            name: getattr(self, name)[picked] for name in ("formula", "draws", "rough", "shift", "root")
        }
        return replace(self, weights=weights, **chosen)

    def formula_at(self, x: Floats) -> Floats:
        """Logarithm of the most probable formula alone, shape (n,)."""
        assert self.formulas is not None
        result: Floats = self.formulas.at(x)[0][0]
        return result

    def mean(self, x: Floats) -> Floats:
        """Mean logarithm of the truth of every member, shape (members, n)."""
        phi = self.process.design.features(x)
        base, slopes = self._formulas_at(x)
        gains = {draw: phi @ self.process.factors(draw).gain for draw in set(self.draws.tolist())}
        result = np.empty((len(self.draws), len(x)))
        for k, (draw, form) in enumerate(zip(self.draws.tolist(), self.formula.tolist(), strict=True)):
            result[k] = base[form] + gains[draw] @ self.residuals[form]
            if form >= 0:
                result[k] += self.shift[k] @ (slopes[form] - self.slopes[form] @ gains[draw].T)
        return result

    def factors(self, x: Floats) -> Floats:
        """Factor of the covariance of every member between points, shape (members, dimensions, n)."""
        phi = self.process.design.features(x)
        slopes = self._formulas_at(x)[1]
        size = phi.shape[1]
        parts = {draw: self.process.factors(draw) for draw in set(self.draws.tolist())}
        known = {draw: (phi @ part.gain, part.root @ phi.T) for draw, part in parts.items()}
        factor = np.zeros((len(self.draws), size + self.slopes.shape[1], len(x)))
        for k, (draw, form) in enumerate(zip(self.draws.tolist(), self.formula.tolist(), strict=True)):
            gain, root = known[draw]
            factor[k, : len(root)] = root
            if form >= 0:
                factor[k, size:] = self.root[k] @ (slopes[form] - self.slopes[form] @ gain.T)
        return factor

    def moments(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the logarithm of the truth of every member, (members, n) each."""
        factor = self.factors(x)
        variance = np.einsum("kqn,kqn->kn", factor, factor) + self.rough[:, None] ** 2
        return self.mean(x), np.sqrt(variance)

    def _formulas_at(self, x: Floats) -> tuple[Floats, Floats]:
        """Logarithms, the centre last, and scaled slopes."""
        centre = np.full((1, len(x)), self.centre)
        if self.formulas is None:
            return centre, np.empty((0, 0, len(x)))
        known = [self.formulas.at(x)] + ([] if self.regimes is None else [self.regimes.at(x)])
        slopes, begin = np.zeros((*self.scale.shape, len(x))), 0
        for value, part in known:
            slopes[begin : begin + len(value), : part.shape[1]] = part
            begin += len(value)
        return np.concatenate([*(value for value, _ in known), centre]), slopes * self.scale[:, :, None]


@dataclass(frozen=True, slots=True)
class _Around:
    """Formulas of a call path, those of the posterior first, then its regimes.

    ``logs`` are log probabilities of the draws beside formulas and the exact ones, each with every formula,
    shape (draws, formulas).
    """

    columns: Columns
    regimes: Regimes | None
    logs: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Log probabilities of explanations, up to a constant per call path.

    Attributes
    ----------
    process
        Draws alone, then beside formulas, then those of exact formulas.
    alone
        Of curves, shape (draws, call paths).
    around
        Of the formulas of every call path, if there are some.
    """

    process: Process
    alone: Floats
    around: list[_Around | None]


def explain(
    design: Design,
    log_value: Floats,
    scatter: Sequence[Scatter],
    formulas: Sequence[Formulas | None],
    sizes: Sizes,
) -> list[Explanations]:
    """Weigh the explanations of call paths that were measured at the points of a design.

    Parameters
    ----------
    design
        Points and features.
    log_value
        Logarithm of the location of the values, shape (call paths, points).
    scatter, formulas
        Of every call path.
    sizes
        Of curves alone.
    """
    columns = [
        None if item is None else Columns.of(design, item, values)
        for item, values in zip(formulas, log_value, strict=True)
    ]
    table = _weigh(design, log_value, scatter, columns, sizes)
    _, projected = design.weighted(log_value - log_value.mean(axis=1, keepdims=True))
    locations = [item.sigma / np.sqrt(design.typical) for item in scatter]
    return [
        _explained(table, k, float(log_value[k].mean()), projected[k], locations[k])
        for k in range(len(log_value))
    ]


def _weigh(
    design: Design,
    log_value: Floats,
    scatter: Sequence[Scatter],
    columns: Sequence[Columns | None],
    sizes: Sizes,
) -> _Table:
    parameters = design.points.shape[1]
    curves, around, sharp = alone(parameters, sizes), beside(parameters), exact(parameters)
    plausible = [log_plausible(bank.noise, design, scatter) for bank in (curves, around, sharp)]
    regimes = fit_regimes(design, log_value) if any(item is not None for item in columns) else None
    whitened = list(design.whitened(around))

    def weighed(row: int, item: Columns) -> Floats:
        # As probable beforehand: that a formula is exact, and that curves change it.
        smooth = beside_formulas(whitened, around.noise, item.onto, item.whole)
        smooth -= np.log(2 * len(around.noise))
        strict = exact_formulas(design, sharp.noise, item.whole) - np.log(2 * len(sharp.noise))
        return np.concatenate([smooth, strict]) + np.concatenate(plausible[1:])[:, [row]]

    def all_around(row: int, item: Columns) -> _Around:
        logs = item.spread(weighed(row, item.first(_WEIGHED)))
        if regimes is None:
            return _Around(item, None, logs)
        own = regimes[row].columns(design, log_value[row])
        logs = np.concatenate([logs, weighed(row, own) + own.log_price], axis=1)
        return _Around(item.joined(own), regimes[row], logs)

    return _Table(
        process=Process.of(design, (curves, around, sharp)),
        alone=of_curves(design, curves, log_value) + plausible[0] - np.log(len(curves.noise)),
        around=[None if item is None else all_around(k, item) for k, item in enumerate(columns)],
    )


def _explained(table: _Table, row: int, centre: float, projected: Floats, location: float) -> Explanations:
    process, first, around = table.process, len(table.alone), table.around[row]
    logs, odds = table.alone[:, row], np.empty(0)
    residuals, slopes, scale = projected[None], np.empty((0, 0, len(projected))), np.empty((0, 0))
    if around is not None:
        logs = np.concatenate([logs, around.logs.ravel()])
        odds = np.exp(log_sum(around.logs) - log_sum(logs))
        residuals = np.concatenate([around.columns.onto[:, -1], projected[None]])
        slopes, scale = around.columns.onto[:, :-1], around.columns.scale
    picked, weights = _standing_for_all(logs, _KEPT)
    draw, form = np.divmod(np.maximum(picked - first, 0), max(len(slopes), 1))
    form, draw = np.where(picked < first, -1, form), np.where(picked < first, picked, draw + first)
    columns = None if around is None else around.columns
    regimes = None if around is None else around.regimes
    shift, root = posterior_of_coefficients(process, columns, form, draw)
    number = len(odds) - (0 if regimes is None else len(regimes.changes))
    return Explanations(
        process=process,
        formulas=None if columns is None else columns.formulas,
        regimes=regimes,
        formula=form,
        draws=draw,
        weights=weights,
        rough=np.sqrt(np.maximum(process.draws.noise[draw] ** 2 - location**2, 0)),
        centre=centre,
        residuals=residuals,
        slopes=slopes,
        scale=scale,
        shift=shift,
        root=root,
        share=float(odds[:number].sum()),
        odds=odds[number:],
    )


def log_plausible(noise: Floats, design: Design, scatter: Sequence[Scatter]) -> Floats:
    """Log probability of what repetitions showed if their means scatter by ``noise``, relative to the best.

    Points may scatter more than repetitions say (they also have their own lack of fit), but not less.

    Parameters
    ----------
    noise
        Scatter of the mean of all repetitions of a typical point, shape (draws,).
    design
        Says how many repetitions that are.
    scatter
        Of every call path.

    Returns
    -------
    Shape (draws, call paths).
    """
    location = np.array([item.sigma for item in scatter]) / np.sqrt(design.typical)
    # A guess says nothing.
    freedom = np.array([item.freedom if item.freedom > GUESS_WEIGHT else 0.0 for item in scatter])
    ratio = np.minimum((noise[:, None] / location) ** 2, 1.0)
    result: Floats = -freedom / 2 * (np.log(ratio) + 1 / ratio - 1)
    return result


def _standing_for_all(log_weights: Floats, members: int) -> tuple[Integers, Floats]:
    """Return members that stand for equal shares of the probability, in their order, and their weights.

    Systematic sampling (Kitagawa, Monte Carlo filter and smoother, 1996, without the random start): the tails
    are kept, which the most probable members alone would cut off.
    """
    odds = np.exp(log_weights - log_weights.max())
    total = np.cumsum(odds)
    steps = (np.arange(members) + 0.5) / members * total[-1]
    picked, count = np.unique(np.searchsorted(total, steps), return_counts=True)
    return picked.astype(np.intp), count / members
