"""How probable explanations are: of all call paths that were measured at the same points, together.

Sizes of the process are not chosen: every draw of the prior counts with its evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.curves.additive import Additive
from orchestrator.models.curves.design import Design, Precisions, Process
from orchestrator.models.curves.evidence import (
    Columns,
    Formulas,
    normalised,
    of_curves,
    of_formulas,
    posterior_of_coefficients,
)
from orchestrator.models.curves.explanations import LIKELY, Explanations, standing_for_all
from orchestrator.models.curves.kinds import Curves, every
from orchestrator.models.curves.prior import Draws, Sizes, alone, beside, exact, log_price
from orchestrator.models.curves.regimes import Regimes
from orchestrator.models.curves.regimes import columns as columns_of_regimes
from orchestrator.models.curves.regimes import fit as fit_regimes
from orchestrator.models.curves.scatter import Scatter, log_plausible
from orchestrator.models.unseen import per_doubling

# Explanations that a model keeps: they stand for all.
_KEPT = 64
# The same for how far measured values are from the mean curve, which no one reads closely.
_FEW = 8
# Formulas that are weighed with every draw; further ones have the sizes of the most probable formula.
_WEIGHED = 8
# Call paths that are weighed at once: so many, fewer where their matrices have more numbers than that.
_TOGETHER, _NUMBERS = 64, 4_000_000
# Probability below which a formula is left out.
_NEGLIGIBLE = 1e-15


@dataclass(frozen=True, slots=True, kw_only=True)
class _Banks:
    """Draws of the process, and what formulas are weighed with beside those that belong to them.

    Attributes
    ----------
    process
        Draws alone, then beside formulas, then those of exact formulas.
    around, sharp
        The last two.
    precisions, exact
        Of those.
    """

    process: Process
    around: Draws
    sharp: Draws
    precisions: Precisions
    exact: Precisions

    @classmethod
    def of(cls, design: Design, curves: Draws) -> _Banks:
        points, parameters = design.points.shape
        around, sharp = beside(parameters), exact(parameters, points)
        return cls(
            process=Process.of(design, (curves, around, sharp)),
            around=around,
            sharp=sharp,
            precisions=Precisions.of(design, around),
            exact=Precisions.without_curves(design, sharp.noise),
        )

    @property
    def alone(self) -> int:
        """Number of draws of curves alone."""
        return len(self.process.draws.noise) - len(self.around.noise) - len(self.sharp.noise)

    def weighed(self, columns: Columns, plausible: Floats, alike: int | None = None) -> tuple[Floats, Floats]:
        """Return probabilities of all draws given a formula (draws, formulas), and its log probability.

        ``plausible`` are log probabilities of draws beforehand, in the same shape; ``alike`` is as in
        `of_formulas`.
        """
        # As probable beforehand: that a formula is exact, and that curves change it.
        banks = self.precisions, self.exact
        logs = [of_formulas(bank, columns, alike) - np.log(2 * len(bank.packed)) for bank in banks]
        return normalised(np.concatenate(logs) + plausible)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """Formulas of some call paths: those of its posterior, then its regimes, for one after the other.

    Attributes
    ----------
    columns
        They.
    begin
        Where those of each call path begin, and the end, shape (call paths + 1,).
    log_mass
        Log probability of each, up to a constant per call path, shape (formulas,).
    given
        Probabilities of draws given a formula, shape (draws, patterns).
    pattern
        Which of them each formula has, shape (formulas,).
    """

    columns: Columns
    begin: Integers
    log_mass: Floats
    given: Floats
    pattern: Integers


def explain(
    design: Design,
    log_value: Floats,
    scatter: Sequence[Scatter],
    formulas: Sequence[Formulas] | None,
    sizes: Sizes,
    counting: Sequence[int] = (),
) -> list[Explanations]:
    """Weigh the explanations of call paths that were measured at the points of a design.

    Parameters
    ----------
    design
        Points and features.
    log_value
        Logarithm of the location of the values, shape (call paths, points).
    scatter, formulas
        Of every call path; None where there are no formulas.
    sizes
        Of curves alone.
    counting
        Columns of the points whose product is the number of processes; none where nothing counts them.
    """
    curves = alone(design.points.shape[1], sizes)
    logs = of_curves(design, curves, log_value) + log_plausible(curves.noise, design, scatter)
    logs -= np.log(len(curves.noise))
    banks = _Banks.of(design, curves)
    regimes = None if formulas is None else fit_regimes(design, log_value, counting)
    step = int(np.clip(_NUMBERS // (_KEPT * len(design.projection) ** 2), 1, _TOGETHER))
    result: list[Explanations] = []
    for begin in range(0, len(log_value), step):
        part = slice(begin, begin + step)
        result += _explained(
            banks,
            logs[:, part],
            log_value[part],
            scatter[part],
            None if formulas is None else formulas[part],
            None if regimes is None else regimes[part],
        )
    return result


def _weigh(
    banks: _Banks,
    log_value: Floats,
    scatter: Sequence[Scatter],
    formulas: Sequence[Formulas],
    regimes: Sequence[Regimes] | None,
) -> _Around:
    """Weigh formulas and regimes.

    How probable formulas are among each other was found with thousands of them; here only how probable the
    first one is beside curves, and which draws each of a few is probable with. The sizes of terms count for
    all.
    """
    design = banks.process.design
    noise = np.concatenate([banks.around.noise, banks.sharp.noise])
    plausible = log_plausible(noise, design, scatter)
    number = np.array([len(item.weights) for item in formulas])
    begin = np.concatenate([[0], np.cumsum(number)])
    row = np.repeat(np.arange(len(number)), number)
    first = begin[row]
    every = formulas[0].followed_by(formulas[1:])
    columns = Columns.of(design, every, log_value[row])
    few = np.arange(len(row)) - first < _WEIGHED
    draws, each = banks.weighed(columns.rows(np.flatnonzero(few)), plausible[:, row[few]])
    pattern = np.cumsum(few) - 1
    pattern = np.where(few, pattern, pattern[first])
    odds = np.log(np.maximum(every.weights, 1e-300) / every.weights[first])
    price = log_price(every.factors, len(log_value[0]), design.points.shape[1], every.learned)
    mass = each[pattern[first]] + odds + columns.log_price - price + price[first]
    if regimes is None:
        return _Around(columns=columns, begin=begin, log_mass=mass, given=draws, pattern=pattern)
    own = columns_of_regimes(design, regimes, log_value)
    laws = len(regimes[0].changes)
    own_row = np.repeat(np.arange(len(regimes)), laws)
    more, own_each = banks.weighed(own, plausible[:, own_row], laws)
    places = np.arange(len(row)) + row * laws
    own_places = np.arange(len(own_row)) + begin[own_row + 1]
    order = np.argsort(np.concatenate([places, own_places]))
    return _Around(
        columns=columns.joined(places, own, own_places),
        begin=begin + np.arange(len(begin)) * laws,
        log_mass=np.concatenate([mass, own_each + own.log_price])[order],
        given=np.concatenate([draws, more], axis=1),
        pattern=np.concatenate([pattern, draws.shape[1] + np.arange(len(own_row))])[order],
    )


def _nothing(callpaths: int, rank: int, points: int) -> _Around:
    """Return that there are no formulas."""
    columns = Columns(
        scale=np.empty((0, 0)),
        weighted=np.empty((0, 1, points)),
        onto=np.empty((0, 1, rank)),
        log_price=np.empty(0),
    )
    return _Around(
        columns=columns,
        begin=np.zeros(callpaths + 1, dtype=np.intp),
        log_mass=np.empty(0),
        given=np.empty((0, 0)),
        pattern=np.empty(0, dtype=np.intp),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picked:
    """Members of one call path as in `Explanations`, and the probability of every formula."""

    formula: Integers
    additive: tuple[Additive, ...]
    added: Integers
    draws: Integers
    weights: Floats
    odds: Floats

    @classmethod
    def of(cls, curves: Sequence[Curves], around: _Around, own: slice) -> _Picked:
        """Pick members that stand for curves, the first of which multiply each other, and own formulas."""
        log_mass = np.append(around.log_mass[own], [item.log_mass for item in curves])
        odds, of_curves = np.split(normalised(log_mass)[0], [-len(curves)])
        kept = np.flatnonzero(odds > _NEGLIGIBLE)
        beside = around.given.T[around.pattern[own][kept]] * odds[kept, None]
        weights = [item.given * share for item, share in zip(curves, of_curves, strict=True)]
        sizes = [*map(len, weights), *[beside.shape[1]] * len(beside)]
        group = np.repeat(np.arange(len(sizes)), sizes)
        picked, each = standing_for_all(np.concatenate([*weights, beside.ravel()]), _KEPT, group)
        begin = np.cumsum([0, *map(len, weights)])
        kind = np.searchsorted(begin, picked, side="right") - 1
        draws, formula, added = picked - begin[kind], np.full(len(picked), -1), kind - 1
        of_formula = kind == len(curves)
        row, draw = np.divmod(draws[of_formula], beside.shape[1])
        formula[of_formula], added[of_formula] = kept[row], -1
        draws[of_formula] = len(curves[0].given) + draw
        used = np.unique(added[added >= 0])
        return cls(
            formula=formula,
            additive=tuple(item for k in used if (item := curves[k + 1].additive) is not None),
            added=np.where(added < 0, -1, np.searchsorted(used, added)),
            draws=draws,
            weights=each,
            odds=odds,
        )


def _explained(
    banks: _Banks,
    curves: Floats,
    log_value: Floats,
    scatter: Sequence[Scatter],
    formulas: Sequence[Formulas] | None,
    regimes: Sequence[Regimes] | None,
) -> list[Explanations]:
    """Explain some call paths; ``curves`` are log probabilities of them alone, (draws, call paths)."""
    design, noise = banks.process.design, banks.process.draws.noise
    around = (
        _nothing(len(log_value), *design.projection.shape)
        if formulas is None
        else _weigh(banks, log_value, scatter, formulas, regimes)
    )
    own = [slice(*ends) for ends in pairwise(around.begin.tolist())]
    picked = [
        _Picked.of(_kinds(banks, column, around, mine, log_value[k], scatter[k]), around, mine)
        for k, (column, mine) in enumerate(zip(curves.T, own, strict=True))
    ]
    posterior = _coefficients(banks, around, picked)
    centre = log_value.mean(axis=1)
    centred, projected = design.weighted(log_value - centre[:, None])
    slopes, residuals, scale = around.columns.onto[:, :-1], around.columns.onto[:, -1], around.columns.scale
    result = []
    for k, (mine, item, (shift, root)) in enumerate(zip(own, picked, posterior, strict=True)):
        number = 0 if formulas is None else len(formulas[k].weights)
        share = float(item.odds[:number].sum())
        weighted = around.columns.weighted[mine]
        left = weighted[0, -1] if share >= LIKELY else _left_over(banks, item, weighted, centred[k], shift)
        # Without repetitions, nobody can tell noise from what points have of their own: all of it counts.
        location = 0.0 if scatter[k].is_guess else scatter[k].sigma / np.sqrt(design.typical)
        # Of hundreds of formulas few are members: only these have to be evaluated at every prediction.
        used = np.unique(np.append(item.formula[(item.formula >= 0) & (item.formula < number)], 0))
        kept = np.append(used[:number], np.arange(number, len(item.odds)))
        curved = banks.process.draws.sizes[item.draws].any(axis=1)
        result.append(
            Explanations(
                process=banks.process,
                formulas=None if formulas is None else formulas[k].rows(used),
                regimes=None if regimes is None else regimes[k],
                formula=np.where(item.formula < 0, -1, np.searchsorted(kept, item.formula)),
                additive=item.additive,
                added=item.added,
                draws=item.draws,
                weights=item.weights,
                rough=np.sqrt(np.maximum(noise[item.draws] ** 2 - location**2, 0)),
                unseen=np.where(curved | (not scatter[k].is_guess), 0.0, per_doubling(noise[item.draws])),
                inexact=curved | scatter[k].is_exceeded(noise[item.draws], design.typical),
                centre=float(centre[k]),
                left_over=left / np.sqrt(design.precision),
                residuals=np.concatenate([residuals[mine][kept], projected[k : k + 1]]),
                slopes=slopes[mine][kept],
                scale=scale[mine][kept],
                shift=shift,
                root=root,
                share=share,
                odds=item.odds[number:],
            )
        )
    return result


def _kinds(
    banks: _Banks, curves: Floats, around: _Around, own: slice, log_value: Floats, scatter: Scatter
) -> list[Curves]:
    """Return the kinds of curves of a call path; only one where formulas are the answer anyway."""
    given, log_curves = normalised(curves)
    multiplied = Curves(additive=None, given=given, log_mass=float(log_curves))
    log_formulas = float(np.logaddexp.reduce(around.log_mass[own]))
    if log_formulas > log_curves and not scatter.is_guess and not _misfits(banks, around, own, scatter):
        return [multiplied]
    return every(banks.process, multiplied, log_value, scatter, max(log_formulas, float(log_curves)))


def _misfits(banks: _Banks, around: _Around, own: slice, scatter: Scatter) -> bool:
    """Return whether points scatter around the most probable formula far more than repetitions say."""
    noise = np.concatenate([banks.around.noise, banks.sharp.noise])
    best = around.pattern[own][around.log_mass[own].argmax()]
    exceeded = scatter.is_exceeded(noise, banks.process.design.typical)
    return float(around.given[:, best] @ exceeded) >= LIKELY


def _left_over(banks: _Banks, picked: _Picked, weighted: Floats, centred: Floats, shift: Floats) -> Floats:
    """Weighted logarithms of the measured values over those of the mean curve, shape (points,).

    Parameters
    ----------
    banks, picked
        Draws, and which of them with which formulas.
    weighted
        As in `Columns`, of the formulas of the call path.
    centred
        Weighted logarithms of the values around their mean, shape (points,).
    shift
        As in `Explanations`.
    """
    design, draws = banks.process.design, banks.process.draws
    few, weights = standing_for_all(picked.weights, _FEW)
    form, draw = picked.formula[few], picked.draws[few]
    left = np.tile(centred, (len(few), 1))
    beside = np.flatnonzero(form >= 0)
    columns = weighted[form[beside]]
    left[beside] = columns[:, -1] - np.einsum("mc,mcn->mn", shift[few[beside]], columns[:, :-1])
    onto, noise = left @ design.projection.T, draws.noise[draw]
    covariance = design.covariance(Draws(draws.sizes[draw], noise))
    unexplained = noise[:, None] ** 2 * np.linalg.solve(covariance, onto[..., None])[..., 0]
    left -= (onto - unexplained) @ design.projection
    sums = np.flatnonzero(picked.added[few] >= 0)
    if len(sums):
        phi = design.features(design.points)
        for k in sums:
            additive = picked.additive[picked.added[few[k]]]
            mean, _ = additive.mean(phi, additive.design.gains(draws.rows(draw[k : k + 1])))
            left[k] = centred - design.weighted(mean[0] - additive.centre)[0]
    return weights @ left


def _coefficients(
    banks: _Banks, around: _Around, picked: Sequence[_Picked]
) -> Iterator[tuple[Floats, Floats]]:
    """Yield changes of coefficients and factors of their covariance of the members of every call path."""
    counts = [len(item.draws) for item in picked]
    form, draw = (np.concatenate([getattr(item, name) for item in picked]) for name in ("formula", "draws"))
    size = around.columns.scale.shape[1]
    shift, root = np.zeros((len(form), size)), np.zeros((len(form), size, size))
    some = np.flatnonzero(form >= 0)
    if len(some):
        columns = around.columns.rows((form + np.repeat(around.begin[:-1], counts))[some])
        beside = draw[some] - banks.alone
        beside[beside >= len(banks.around.noise)] = -1
        noise = banks.process.draws.noise[draw[some]]
        shift[some], root[some] = posterior_of_coefficients(banks.precisions, columns, beside, noise)
    ends = np.cumsum(counts)[:-1]
    yield from zip(np.split(shift, ends), np.split(root, ends), strict=True)
