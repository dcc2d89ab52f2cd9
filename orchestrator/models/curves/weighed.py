"""How probable formulas are beside curves, and how probable draws of the process are given a formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.curves.design import Design, Precisions, Process
from orchestrator.models.curves.evidence import Columns, Formulas, normalised, of_formulas
from orchestrator.models.curves.prior import Draws, beside, exact, log_price
from orchestrator.models.curves.regimes import Regimes
from orchestrator.models.curves.regimes import columns as columns_of_regimes
from orchestrator.models.curves.scatter import Scatter, log_plausible

# Formulas that are weighed with every draw; further ones have the sizes of the most probable formula.
_WEIGHED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class AllDraws:
    """Draws of the process: of curves alone, of curves beside a formula, of scatter around an exact one."""

    process: Process  # all draws, in this order
    # beside, exact: the last two.
    beside: Draws
    exact: Draws
    # precisions_beside, precisions_exact: what projected values are weighed with, by these.
    precisions_beside: Precisions
    precisions_exact: Precisions

    @classmethod
    def of(cls, design: Design, alone: Draws) -> Self:
        """Add draws that formulas are weighed with to those of curves alone."""
        points, parameters = design.points.shape
        small, none = beside(parameters), exact(parameters, points)
        return cls(
            process=Process.of(design, (alone, small, none)),
            beside=small,
            exact=none,
            precisions_beside=Precisions.of(design, small),
            precisions_exact=Precisions.without_curves(design, none.noise),
        )

    @property
    def alone(self) -> int:
        """Number of draws of curves alone."""
        return len(self.process.draws.noise) - len(self.beside.noise) - len(self.exact.noise)

    @property
    def noise_of_formulas(self) -> Floats:
        """Scatter of the draws that formulas are weighed with."""
        return np.concatenate([self.beside.noise, self.exact.noise])

    def weighed(self, columns: Columns, plausible: Floats, alike: int | None = None) -> tuple[Floats, Floats]:
        """Return probabilities of draws given a formula (draws, formulas), and its log probability.

        ``plausible`` are log probabilities of draws beforehand, in the same shape; ``alike`` is as in
        `of_formulas`.
        """
        # As probable beforehand: that a formula is exact, and that curves change it.
        precisions = self.precisions_beside, self.precisions_exact
        logs = [of_formulas(each, columns, alike) - np.log(2 * len(each.packed)) for each in precisions]
        return normalised(np.concatenate(logs) + plausible)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedFormulas:
    """Formulas of some call paths: those of its posterior, then its regimes, for one after the other."""

    columns: Columns  # the formulas at the measured points
    begin: Integers  # where those of each call path begin, and the end, shape (call paths + 1,)
    log_mass: Floats  # log probability of each, up to a constant per call path, shape (formulas,)
    given: Floats  # probabilities of draws given a formula, shape (draws, patterns)
    pattern: Integers  # which of them each formula has, shape (formulas,)

    @classmethod
    def none(cls, callpaths: int, rank: int, points: int) -> Self:
        """Return that call paths have no formulas."""
        columns = Columns(
            scale=np.empty((0, 0)),
            weighted=np.empty((0, 1, points)),
            onto=np.empty((0, 1, rank)),
            log_price=np.empty(0),
        )
        return cls(
            columns=columns,
            begin=np.zeros(callpaths + 1, dtype=np.intp),
            log_mass=np.empty(0),
            given=np.empty((0, 0)),
            pattern=np.empty(0, dtype=np.intp),
        )

    def of_callpath(self, number: int) -> WeighedFormulas:
        """Return those of one call path, without copies of what is large."""
        own = slice(*self.begin[number : number + 2].tolist())
        return WeighedFormulas(
            columns=self.columns.rows(own),
            begin=self.begin[number : number + 2] - self.begin[number],
            log_mass=self.log_mass[own],
            given=self.given,
            pattern=self.pattern[own],
        )


def weigh(
    draws: AllDraws,
    log_value: Floats,
    scatter: Sequence[Scatter],
    formulas: Sequence[Formulas],
    regimes: Sequence[Regimes] | None,
    doubts: Floats,
) -> WeighedFormulas:
    """Weigh formulas, and regimes as further ones.

    How probable formulas are among each other was found with thousands of them; here only how probable the
    first one is beside curves, and which draws each of a few is probable with. The sizes of terms count for
    all.

    Parameters
    ----------
    draws
        What they are weighed with.
    log_value
        Logarithm of the location of the values, shape (call paths, points).
    scatter, formulas, regimes
        Of every call path.
    doubts
        As `orchestrator.models.curves.sharing.doubt` returns them.
    """
    design = draws.process.design
    plausible = log_plausible(draws.noise_of_formulas, design, scatter)
    number = np.array([len(item.weights) for item in formulas])
    begin = np.concatenate([[0], np.cumsum(number)])
    callpath = np.repeat(np.arange(len(number)), number)
    first = begin[callpath]
    every = formulas[0].followed_by(formulas[1:])
    columns = Columns.of(design, every, log_value[callpath])
    few = np.arange(len(callpath)) - first < _WEIGHED
    given, log_of_few = draws.weighed(columns.rows(np.flatnonzero(few)), plausible[:, callpath[few]])
    pattern = np.cumsum(few) - 1
    pattern = np.where(few, pattern, pattern[first])
    odds = np.log(np.maximum(every.weights, 1e-300) / every.weights[first])
    price = log_price(every.factors, len(log_value[0]), design.points.shape[1], every.learned)
    result = WeighedFormulas(
        columns=columns,
        begin=begin,
        log_mass=(
            log_of_few[pattern[first]] + odds + columns.log_price - price + price[first] + doubts[callpath]
        ),
        given=given,
        pattern=pattern,
    )
    return result if regimes is None else _with_regimes(draws, result, log_value, plausible, regimes)


def _with_regimes(
    draws: AllDraws,
    formulas: WeighedFormulas,
    log_value: Floats,
    plausible: Floats,
    regimes: Sequence[Regimes],
) -> WeighedFormulas:
    """Put the regimes of every call path, of which all have as many, behind its formulas."""
    columns = columns_of_regimes(draws.process.design, regimes, log_value)
    laws = len(regimes[0].changes)
    of_formula = np.repeat(np.arange(len(regimes)), np.diff(formulas.begin))
    of_regime = np.repeat(np.arange(len(regimes)), laws)
    given, log_mass = draws.weighed(columns, plausible[:, of_regime], laws)
    places = np.arange(len(of_formula)) + of_formula * laws
    places_of_regimes = np.arange(len(of_regime)) + formulas.begin[of_regime + 1]
    order = np.argsort(np.concatenate([places, places_of_regimes]))
    patterns = formulas.given.shape[1] + np.arange(len(of_regime))
    return WeighedFormulas(
        columns=formulas.columns.joined(places, columns, places_of_regimes),
        begin=formulas.begin + np.arange(len(formulas.begin)) * laws,
        log_mass=np.concatenate([formulas.log_mass, log_mass + columns.log_price])[order],
        given=np.concatenate([formulas.given, given], axis=1),
        pattern=np.concatenate([formulas.pattern, patterns])[order],
    )
