"""Which explanations of a call path stand for all, and what follows from them at the measured points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.curves.additive import Additive
from orchestrator.models.curves.evidence import normalised, posterior_of_coefficients
from orchestrator.models.curves.explanations import standing_for_all
from orchestrator.models.curves.kinds import Curves
from orchestrator.models.curves.prior import Draws
from orchestrator.models.curves.weighed import AllDraws, WeighedFormulas

# Explanations that a model keeps: they stand for all.
_KEPT = 64
# The same for how far measured values are from the mean curve, which no one reads closely.
_FEW = 8
# Probability below which a formula is left out.
_NEGLIGIBLE = 1e-15


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Explanations of one call path: those that are kept of curves, and of formulas with or without them."""

    # formula, additive, added, draws, weights: as in `orchestrator.models.curves.explanations.Explanations`;
    # ``formula`` counts all of the call path.
    formula: Integers
    additive: tuple[Additive, ...]
    added: Integers
    draws: Integers
    weights: Floats
    odds: Floats  # probability of every formula, shape (formulas,)

    @classmethod
    def of(cls, curves: Sequence[Curves], formulas: WeighedFormulas) -> Self:
        """Choose members that stand for curves, the first of which multiply each other, and for formulas."""
        log_mass = np.append(formulas.log_mass, [item.log_mass for item in curves])
        odds, of_curves = np.split(normalised(log_mass)[0], [-len(curves)])
        kept = np.flatnonzero(odds > _NEGLIGIBLE)
        # Every kept formula is weighed with every draw, shape (kept formulas, draws).
        beside = formulas.given.T[formulas.pattern[kept]] * odds[kept, None]
        weights = [item.given * share for item, share in zip(curves, of_curves, strict=True)]
        sizes = [*map(len, weights), *[beside.shape[1]] * len(beside)]
        group = np.repeat(np.arange(len(sizes)), sizes)
        picked, each = standing_for_all(np.concatenate([*weights, beside.ravel()]), _KEPT, group)
        # Back from places in all weights to a kind of curves, or to a formula, and to its draw.
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

    def left_over(self, draws: AllDraws, formulas: WeighedFormulas, centred: Floats, shift: Floats) -> Floats:
        """Weighted logarithms of the measured values over those of the mean curve, shape (points,).

        Parameters
        ----------
        draws, formulas
            What the members are chosen from.
        centred
            Weighted logarithms of the values around their mean, shape (points,).
        shift
            As in `orchestrator.models.curves.explanations.Explanations`.
        """
        design, all_draws = draws.process.design, draws.process.draws
        few, weights = standing_for_all(self.weights, _FEW)
        formula, draw = self.formula[few], self.draws[few]
        left = np.tile(centred, (len(few), 1))
        beside = np.flatnonzero(formula >= 0)
        columns = formulas.columns.weighted[formula[beside]]
        left[beside] = columns[:, -1] - np.einsum("mc,mcn->mn", shift[few[beside]], columns[:, :-1])
        onto, noise = left @ design.projection.T, all_draws.noise[draw]
        covariance = design.covariance(Draws(all_draws.sizes[draw], noise))
        unexplained = noise[:, None] ** 2 * np.linalg.solve(covariance, onto[..., None])[..., 0]
        left -= (onto - unexplained) @ design.projection
        sums = np.flatnonzero(self.added[few] >= 0)
        if len(sums):
            phi = design.features(design.points)
            for k in sums:
                additive = self.additive[self.added[few[k]]]
                mean, _ = additive.mean(phi, additive.design.gains(all_draws.rows(draw[k : k + 1])))
                left[k] = centred - design.weighted(mean[0] - additive.centre)[0]
        return weights @ left


def coefficients(
    draws: AllDraws, formulas: WeighedFormulas, members: Sequence[Members]
) -> Iterator[tuple[Floats, Floats]]:
    """Yield changes of coefficients and factors of their covariance, for the members of every call path."""
    counts = [len(item.draws) for item in members]
    formula = np.concatenate([item.formula for item in members])
    draw = np.concatenate([item.draws for item in members])
    size = formulas.columns.scale.shape[1]
    shift, root = np.zeros((len(formula), size)), np.zeros((len(formula), size, size))
    some = np.flatnonzero(formula >= 0)
    if len(some):
        columns = formulas.columns.rows((formula + np.repeat(formulas.begin[:-1], counts))[some])
        beside = draw[some] - draws.alone
        beside[beside >= len(draws.beside.noise)] = -1
        noise = draws.process.draws.noise[draw[some]]
        shift[some], root[some] = posterior_of_coefficients(draws.precisions_beside, columns, beside, noise)
    ends = np.cumsum(counts)[:-1]
    yield from zip(np.split(shift, ends), np.split(root, ends), strict=True)
