"""What may explain the measurements of a call path: curves, formulas, and formulas times small curves.

Every explanation counts with its probability (Bayesian model averaging: Hoeting et al., Statistical Science,
1999). Sizes of the process are not chosen: every draw of the prior counts with its evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from scipy.special import logsumexp

from orchestrator.models.base import Floats, Integers
from orchestrator.models.curves.design import Design
from orchestrator.models.curves.prior import log_price

# Explanations that a model keeps: they stand for all, so that those of them that predict alike are enough.
_KEPT = 64
# Formulas whose draws are weighed each; further ones have the sizes of the most probable formula.
_WEIGHED = 8
_TOGETHER = 64  # call paths that are weighed at once
# Standard deviation of a term, relative to the whole: terms much larger than the sum cancel each other, which
# many of them can do to follow any bump.
_TERM = 2.0
# Freedom of a guess of the noise.
_GUESSED = 1.0


class Formulas(Protocol):
    """Formulas that remain possible, the most probable one first."""

    @property
    def weights(self) -> Floats:
        """Their probabilities among all formulas, shape (formulas,)."""
        ...

    @property
    def factors(self) -> int:
        """How many powers and logarithms the first one has."""
        ...

    @property
    def coefficients(self) -> Floats:
        """What their terms are multiplied by, shape (formulas, coefficients); 0 for one that is not there."""
        ...

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        """Return logarithms (formulas, n), and their slopes by coefficients (formulas, coefficients, n)."""
        ...


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
    design
        Shared with other call paths.
    formulas
        The formulas; None where there are none.
    formula
        Which one an explanation has; -1 for curves alone. Shape (members,).
    draws
        Which draw of the prior, shape (members,).
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
        Probability that a formula is part of the explanation.
    """

    design: Design
    formulas: Formulas | None
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

    def fewer(self, members: int) -> Self:
        """Return so many members that stand for all."""
        picked, weights = _standing_for_all(np.log(self.weights), members)
        chosen = {
            name: getattr(self, name)[picked] for name in ("formula", "draws", "rough", "shift", "root")
        }
        return replace(self, weights=weights, **chosen)

    def mean(self, x: Floats) -> Floats:
        """Mean logarithm of the truth of every member, shape (members, n)."""
        phi = self.design.features(x)
        base, slopes = self._formulas_at(x)
        gains = {draw: phi @ self.design.factors(draw).gain for draw in set(self.draws.tolist())}
        result = np.empty((len(self.draws), len(x)))
        for k, (draw, form) in enumerate(zip(self.draws.tolist(), self.formula.tolist(), strict=True)):
            result[k] = base[form] + gains[draw] @ self.residuals[form]
            if form >= 0:
                result[k] += self.shift[k] @ (slopes[form] - self.slopes[form] @ gains[draw].T)
        return result

    def factors(self, x: Floats) -> Floats:
        """Factor of the covariance of every member between points, shape (members, dimensions, n)."""
        phi = self.design.features(x)
        slopes = self._formulas_at(x)[1]
        size = phi.shape[1]
        parts = {draw: self.design.factors(draw) for draw in set(self.draws.tolist())}
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
        value, slopes = self.formulas.at(x)
        return np.concatenate([value, centre]), slopes * self.scale[:, :, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weighed:
    """Log probabilities of formulas times draws, and the coefficients of each.

    ``log_weight`` has shape (draws, formulas), ``shift`` (draws, formulas, coefficients) and ``precision``
    (draws, formulas, coefficients, coefficients).
    """

    log_weight: Floats
    shift: Floats
    precision: Floats


def explain(
    design: Design,
    log_value: Floats,
    scatter: Sequence[Scatter],
    formulas: Sequence[Formulas | None],
) -> list[Explanations]:
    """Weigh the explanations of call paths that were measured at the points of a design.

    Parameters
    ----------
    design
        Points and draws.
    log_value
        Logarithm of the location of the values, shape (call paths, points).
    scatter, formulas
        Of every call path; formulas only if the design has draws beside formulas.
    """
    bank = design.draws
    centre = log_value.mean(axis=1)
    root = np.sqrt(design.precision)
    weighted = (log_value - centre[:, None]) * root
    projected = weighted @ design.projection.T
    beyond = np.maximum((weighted**2).sum(axis=1) - (projected**2).sum(axis=1), 0)
    alone = np.empty((bank.alone, len(log_value)))
    for part, inverse, density in design.whitened(np.arange(bank.alone)):
        for some in np.array_split(np.arange(len(log_value)), -(-len(log_value) // _TOGETHER)):
            squares = ((inverse @ projected[some].T) ** 2).sum(axis=1)
            squares += beyond[some] / bank.noise[part, None] ** 2
            alone[np.ix_(part, some)] = density[:, None] - squares / 2
    beside = np.arange(bank.alone, len(bank.noise))
    pieces = list(design.whitened(beside)) if len(beside) else []
    halves = [np.concatenate([piece[k] for piece in pieces]) for k in (1, 2)] if pieces else []
    return [
        _explained(design, log_value[k], projected[k], alone[:, k], halves, scatter[k], formulas[k])
        for k in range(len(log_value))
    ]


def _explained(
    design: Design,
    log_value: Floats,
    projected: Floats,
    alone: Floats,
    halves: Sequence[Floats],
    scatter: Scatter,
    formulas: Formulas | None,
) -> Explanations:
    bank, location = design.draws, scatter.sigma / np.sqrt(design.typical)
    plausible = bank.log_prior + _log_plausible(bank.noise, location, max(scatter.freedom, _GUESSED))
    table = (alone + plausible[: bank.alone])[:, None]
    rank = len(projected)
    residuals, slopes, scale = projected[None], np.empty((0, 0, rank)), np.empty((0, 0))
    weighed, total = None, -np.inf
    if formulas is not None:
        value, tangents = formulas.at(design.points)
        size = np.sqrt((tangents**2).mean(axis=2))
        scale = np.where(size > 0, 1 / np.where(size > 0, size, 1.0), 0.0)
        columns = np.concatenate([tangents * scale[:, :, None], (log_value - value)[:, None]], axis=1)
        cancelling = -((formulas.coefficients * size) ** 2).sum(axis=1) / (2 * _TERM**2)
        weighed = _weigh(design, columns, halves, plausible[bank.alone :], formulas, cancelling)
        total = float(logsumexp(weighed.log_weight))
        onto = columns * np.sqrt(design.precision) @ design.projection.T
        residuals, slopes = np.concatenate([onto[:, -1], projected[None]]), onto[:, :-1]
    logs = np.concatenate([table.ravel(), *([] if weighed is None else [weighed.log_weight.ravel()])])
    picked, weights = _standing_for_all(logs, _KEPT)
    after = picked - bank.alone
    draw, form = np.divmod(np.maximum(after, 0), max(len(slopes), 1))
    form, draw = np.where(after < 0, -1, form), np.where(after < 0, picked, draw + bank.alone)
    shift, factor = _coefficients(weighed, form, draw - bank.alone, slopes.shape[1])
    return Explanations(
        design=design,
        formulas=formulas,
        formula=form,
        draws=draw,
        weights=weights,
        rough=np.sqrt(np.maximum(bank.noise[draw] ** 2 - location**2, 0)),
        centre=float(log_value.mean()),
        residuals=residuals,
        slopes=slopes,
        scale=scale,
        shift=shift,
        root=factor,
        share=float(np.exp(total - logsumexp(logs))),
    )


def _log_plausible(noise: Floats, location: float, freedom: float) -> Floats:
    """Log probability of what repetitions showed if their means scatter by ``noise``, relative to the best.

    Points may scatter more than repetitions say (they also have their own lack of fit), but not less.
    """
    ratio = np.minimum((noise / location) ** 2, 1.0)
    result: Floats = -freedom / 2 * (np.log(ratio) + 1 / ratio - 1)
    return result


def _weigh(
    design: Design,
    columns: Floats,
    halves: Sequence[Floats],
    plausible: Floats,
    formulas: Formulas,
    cancelling: Floats,
) -> _Weighed:
    """Weigh formulas, shape (formulas, coefficients + 1, points), the residuals last, with every draw.

    ``cancelling`` is the logarithm of how probable the sizes of their terms are, shape (formulas,).
    """
    inverse, density = halves
    noise = design.draws.noise[design.draws.alone :]
    columns = columns * np.sqrt(design.precision)
    onto = columns @ design.projection.T
    few = min(_WEIGHED, len(columns))
    whole = np.einsum("kan,kbn->kab", columns, columns)
    beyond = whole - np.einsum("kar,kbr->kab", onto, onto)
    flat = onto.reshape(-1, onto.shape[2]).T
    half = (inverse @ flat).reshape(len(noise), -1, len(columns), columns.shape[1]).swapaxes(1, 2)
    gram = half.swapaxes(2, 3) @ half + beyond / noise[:, None, None, None] ** 2
    size = columns.shape[1] - 1
    precision = gram[:, :, :size, :size] + np.eye(size)
    shift = np.linalg.solve(precision, gram[:, :, :size, size:])[..., 0]
    explained = np.einsum("dka,dka->dk", shift, gram[:, :, :size, size])
    evidence = (density + plausible)[:, None] - (gram[:, :, size, size] - explained) / 2
    evidence -= np.linalg.slogdet(precision)[1] / 2
    each = logsumexp(evidence, axis=0)
    # How probable formulas are among each other was found with thousands of them; here only how probable the
    # first one is beside curves.
    total = each[0] + log_price(formulas.factors, len(design.points))
    within = evidence - each
    within[:, few:] = within[:, :1]
    odds = np.log(np.maximum(formulas.weights, 1e-300) / formulas.weights[0])
    return _Weighed(log_weight=within + total + odds + cancelling, shift=shift, precision=precision)


def _coefficients(
    weighed: _Weighed | None, form: Integers, draw: Integers, size: int
) -> tuple[Floats, Floats]:
    shift, root = np.zeros((len(form), size)), np.zeros((len(form), size, size))
    if weighed is not None:
        some = form >= 0
        shift[some] = weighed.shift[draw[some], form[some]]
        lower = np.linalg.cholesky(weighed.precision[draw[some], form[some]])
        root[some] = np.linalg.inv(lower)
    return shift, root


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
