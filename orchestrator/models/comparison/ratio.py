"""The ratio B / A of one call path over all points, and the probability that it is not simply 1.

Hypotheses: nothing changed; the ratio is one constant; it is a power of some parameters; it bends. Each
has a probability beforehand, and the pairs decide (Bayes factors; Kass and Raftery 1995). So a difference
must be more probable with a change than without: that a test of significance would just reject "no change"
is not enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations, combinations_with_replacement

import numpy as np
from numpy.polynomial.legendre import legvander
from scipy.special import expit, logsumexp

from orchestrator.models.base import Floats
from orchestrator.models.comparison.evidence import Evidence, evidence, scatters
from orchestrator.models.comparison.mixtures import Mixture
from orchestrator.models.comparison.pairs import Pairs

CHANGED = 0.5
"""Probability beforehand that a call path changed."""
# Typical changes, as logarithms of ratios: 2, 10, 65 % and 4.5 times (another algorithm). Each is as probable
# as the others beforehand, and so is one over the measured range of a parameter. Chosen by hand; not derived.
_SCALES = (0.02, 0.1, 0.5, 1.5)
# Given a change: probabilities that the ratio is constant, a product of powers, or bent. Chosen by hand; not
# derived.
_SHARES = {0: 0.5, 1: 0.25, 2: 0.25}
# What is bent: the largest degree of its polynomial, and how much smaller coefficients of each further degree
# are beforehand. Chosen by hand; not derived.
_CURVED, _SMOOTH = 3, 1 / 3
# Probability that what differs from point to point beyond repetitions is the code, where the ratio depends on
# parameters: a sum whose terms change is neither a power nor a polynomial. Else it is the job or the node.
_CODE = 0.5
_STEP = 1e-3  # of the measured range, to both sides: the difference that stands for a slope
# Standard deviations to which differences are moved where call paths are compared with each other: a few
# that changed much are no common disturbance. Chosen by hand; not derived.
_FARTHEST = 5.0
_MOST_TOGETHER = 4  # parameters of which all subsets are considered


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """The parameters that the ratio depends on, and whether by powers (1) or bent (2); none: a constant.

    What is bent is a polynomial of the logarithms with products of parameters, so that the slope in one may
    depend on the others.
    """

    parameters: tuple[int, ...] = ()
    degree: int = 0

    def design(self, scaled: Floats) -> Floats:
        """Return the columns at points, shape (points, coefficients).

        ``scaled``: coordinates as of `Axes.scaled`, shape (points, parameters).
        """
        chosen = scaled[:, list(self.parameters)]
        columns = [np.ones((len(scaled), 1)), chosen]
        if self.degree == 2:
            # Legendre polynomials, whose argument is -1 to 1 where coordinates are -1/2 to 1/2.
            legendre = legvander(2 * chosen, _CURVED)
            for degrees in _bends(len(self.parameters)):
                factors = legendre[:, range(len(degrees)), degrees]
                column = _SMOOTH ** (sum(degrees) - 1) / 2 * factors.prod(axis=1)
                columns.append(column[:, None])
        return np.hstack(columns)

    @property
    def fewest(self) -> int:
        """The number of coefficients of a parabola without products, or of powers: fewer than points."""
        return 1 + self.degree * len(self.parameters)

    def slope(self, scaled: Floats, parameter: int) -> Floats | None:
        """Return the columns' slopes in one parameter at one point; None where the ratio has none."""
        if parameter not in self.parameters:
            return None
        step = np.zeros_like(scaled)
        step[:, parameter] = _STEP
        ends = self.design(np.vstack([scaled - step, scaled + step]))
        result: Floats = (ends[1] - ends[0]) / (2 * _STEP)
        return result


@cache
def _bends(parameters: int) -> tuple[tuple[int, ...], ...]:
    """Return the degrees in every parameter of the terms of a polynomial that are not linear.

    Of many parameters there are no products: their number grows with the third power.
    """
    given = range(parameters)
    every = (
        places
        for degree in range(2, _CURVED + 1)
        for places in combinations_with_replacement(given, degree)
        if parameters <= _MOST_TOGETHER or len(set(places)) == 1
    )
    return tuple(tuple(places.count(k) for k in given) for places in every)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """Coordinates in which ratios are powers: logarithms, whose measured range has length 1.

    All have the shape (parameters,).
    """

    logarithmic: tuple[bool, ...]  # whether all values are positive; else the value itself is taken
    # centre, width: mean and range of these, by which they are shifted and divided.
    centre: Floats
    width: Floats
    # low, high: the smallest and the largest measured value.
    low: Floats
    high: Floats

    @classmethod
    def of(cls, points: Floats) -> Axes:
        """Find them for points of shape (points, parameters)."""
        logarithmic = tuple(bool(np.all(column > 0)) for column in points.T)
        values = _transformed(points, logarithmic)
        width = np.ptp(values, axis=0)
        return cls(
            logarithmic=logarithmic,
            centre=values.mean(axis=0),
            width=np.where(width > 0, width, 1.0),
            low=points.min(axis=0),
            high=points.max(axis=0),
        )

    def scaled(self, points: Floats) -> Floats:
        """Return the coordinates of points."""
        result: Floats = (_transformed(points, self.logarithmic) - self.centre) / self.width
        return result

    def hold(self, point: Floats) -> bool:
        """Return whether a point, shape (parameters,), is within the measured range."""
        slack = 1e-9 * np.maximum(np.abs(self.low), np.abs(self.high))
        return bool(np.all((point >= self.low - slack) & (point <= self.high + slack)))


def _transformed(points: Floats, logarithmic: Sequence[bool]) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(logarithmic, np.log(points), points)


@dataclass(frozen=True)
class Ratio:
    """What the pairs say about the ratio of one call path. See `ratio`."""

    # pairs, axes: what was measured, and where.
    pairs: Pairs
    axes: Axes
    # Every hypothesis with a change, its logarithmic weight, and its evidence.
    members: tuple[tuple[Hypothesis, float, Evidence], ...]
    # Logarithm of the Bayes factor: how much more probable the pairs are with a change than without.
    evidence: float

    def probability(self) -> float:
        """Return the probability that the call path changed; without the pairs it is `CHANGED`."""
        return float(expit(self.evidence + np.log(CHANGED / (1 - CHANGED))))

    def at(self, point: Mapping[str, float], models: Mixture | None = None, share: float = 1.0) -> Mixture:
        """Return the logarithm of the ratio at a point, given that something changed.

        Parameters
        ----------
        point
            A number for every parameter.
        models
            What the models of A and B say there, if there are any: they know the terms of sums.
        share
            Probability that a bent ratio is theirs. Outside of the measured range it is, as nothing continues
            a bend; within, it is as probable as `agreement` says.
        """
        scaled = self.axes.scaled(self._place(point)[None])
        parts = []
        for hypothesis, weight, found in self._weighed:
            known = _along(hypothesis.design(scaled)[0], weight, found)
            code = _CODE if hypothesis.parameters else 0.0
            of_pairs = [(1 - code, known), (code, _scattered(known, found))]
            if models is not None and hypothesis.degree == 2:
                parts.append((share * float(weight.sum()), models))
                of_pairs = [((1 - share) * part, mixture) for part, mixture in of_pairs]
            parts += of_pairs
        return Mixture.joined(parts)

    def agreement(self, of_models: Floats) -> float:
        """Return the probability that a bent ratio is that of the models of A and B, not a polynomial.

        They are as probable as polynomials beforehand. As they were fitted to the same measurements, the
        pairs can only count against them.

        Parameters
        ----------
        of_models
            Logarithm of the ratio of both models at every pair, shape (pairs,).
        """
        bent = [(prior, found.log_marginal) for item, prior, found in self.members if item.degree == 2]
        if not bent or not np.all(np.isfinite(of_models)):
            return 0.0
        of_polynomials = logsumexp(np.concatenate([prior + log for prior, log in bent]))
        of_polynomials -= logsumexp([prior for prior, _ in bent])
        missed = replace(self.pairs, difference=self.pairs.difference - of_models)
        theirs = logsumexp(_without_change(missed, scatters(missed)).log_marginal)
        return float(expit(min(0.0, theirs - of_polynomials)))

    def growth(self, parameter: str, point: Mapping[str, float]) -> Mixture:
        """Return the exponent by which the ratio grows with a parameter there, given that something changed.

        Of a parameter that is not always positive it is the slope of the ratio's logarithm.
        """
        x, place = self._place(point), self.pairs.parameters.index(parameter)
        scaled = self.axes.scaled(x[None])
        parts = []
        for hypothesis, share, found in self._weighed:
            row = hypothesis.slope(scaled, place)
            if row is None:
                parts.append((float(share.sum()), Mixture.zero()))
            else:
                parts.append((1.0, _along(row / self.axes.width[place], share, found)))
        return Mixture.joined(parts)

    @property
    def bent(self) -> float:
        """The probability, given a change, that the ratio is neither constant nor a product of powers."""
        return float(sum(share.sum() for item, share, _ in self._weighed if item.degree == 2))

    def depends(self, parameter: str) -> float:
        """Return the probability, given a change, that the ratio depends on a parameter."""
        place = self.pairs.parameters.index(parameter)
        return float(sum(share.sum() for item, share, _ in self._weighed if place in item.parameters))

    def _place(self, point: Mapping[str, float]) -> Floats:
        return np.array([point[name] for name in self.pairs.parameters], dtype=float)

    @cached_property
    def _weighed(self) -> tuple[tuple[Hypothesis, Floats, Evidence], ...]:
        """Every hypothesis with the probabilities of its members, given a change."""
        logs = [prior + found.log_marginal for _, prior, found in self.members]
        total = logsumexp(np.concatenate(logs))
        return tuple(
            (item, np.exp(log - total), found)
            for (item, _, found), log in zip(self.members, logs, strict=True)
        )


def _along(row: Floats, share: Floats, found: Evidence) -> Mixture:
    """Return what is known of one combination of coefficients."""
    variance = np.einsum("i,rij,j->r", row, found.covariance, row)
    return Mixture(share, found.mean @ row, np.sqrt(variance), np.full(len(share), found.freedom))


def _scattered(known: Mixture, found: Evidence) -> Mixture:
    """Return what is known where what differs from point to point is part of it."""
    return replace(known, scale=np.sqrt(known.scale**2 + found.scatter))


def ratio(pairs: Pairs) -> Ratio:
    """Weigh all hypotheses about the ratio of a call path.

    Parameters
    ----------
    pairs
        At least one.
    """
    axes = Axes.of(pairs.points)
    scaled = axes.scaled(pairs.points)
    scatter = scatters(pairs)
    members = []
    for hypothesis, share in _hypotheses(pairs.points):
        design = hypothesis.design(scaled)
        members.append((hypothesis, float(np.log(share)), evidence(pairs, scatter, design, _SCALES)))
    unchanged = _without_change(pairs, scatter)
    with_change = logsumexp(np.concatenate([prior + found.log_marginal for _, prior, found in members]))
    return Ratio(pairs, axes, tuple(members), float(with_change - logsumexp(unchanged.log_marginal)))


def _without_change(pairs: Pairs, scatter: tuple[Floats, Floats]) -> Evidence:
    """Return the evidence that all differences are chance."""
    return evidence(pairs, scatter, np.empty((len(pairs.difference), 0)), (1.0,))


def _hypotheses(points: Floats) -> Iterator[tuple[Hypothesis, float]]:
    """Yield what the points can tell apart, with probabilities beforehand."""
    distinct = [len(np.unique(column)) for column in points.T]
    possible = {
        degree: [
            hypothesis
            for subset in _subsets([k for k, number in enumerate(distinct) if number > degree])
            if (hypothesis := Hypothesis(subset, degree)).fewest < len(points)
        ]
        for degree in (1, 2)
    }
    possible = {degree: found for degree, found in ({0: [Hypothesis()]} | possible).items() if found}
    total = sum(_SHARES[degree] for degree in possible)
    for degree, found in possible.items():
        for hypothesis in found:
            yield hypothesis, _SHARES[degree] / total / len(found)


def _subsets(parameters: Sequence[int]) -> Iterator[tuple[int, ...]]:
    sizes = range(1, len(parameters) + 1) if len(parameters) <= _MOST_TOGETHER else (1, len(parameters))
    for size in sizes:
        yield from combinations(parameters, size)


def false_discoveries(evidences: Sequence[float], independent: float) -> Floats:
    """Return, for every call path, the share of false alarms among all that are at least as probable.

    The share of call paths that changed is estimated from all of them together (one of two more is taken as
    changed), so that the more of them did not change, the more a single one needs to be believed (Scott and
    Berger 2010, Bayes and empirical-Bayes multiplicity adjustment in the variable-selection problem). The
    share is the mean probability of no change (Newton et al. 2004, Detecting differential gene expression
    with a semiparametric hierarchical mixture method, section 4.1).

    Parameters
    ----------
    evidences
        `Ratio.evidence` of every call path.
    independent
        How many independent ones they are worth (`independent_callpaths`). What disturbs a run disturbs all
        of its call paths: that they agree then does not show that many changed.
    """
    logs = np.asarray(evidences, dtype=float)
    worth = min(independent, len(logs))
    before = CHANGED
    for _ in range(200):
        changed = expit(logs + np.log(before / (1 - before)))
        share = float(changed.mean())
        before = min((1 + number * share) / (2 + number) for number in (worth, len(logs)))
    order = np.argsort(-changed, kind="stable")
    result = np.empty(len(logs))
    result[order] = np.cumsum(1 - changed[order]) / np.arange(1, len(logs) + 1)
    return result


def independent_callpaths(pairs: Sequence[Pairs]) -> float:
    """Return how many independent call paths some are worth, from 1 to their number.

    Where they are independent, their mean difference at a point, in standard deviations, has the variance of
    one divided by their number.

    Parameters
    ----------
    pairs
        One or more, of every call path.
    """
    points: dict[tuple[float, ...], list[float]] = {}
    for pair in pairs:
        scaled = np.clip(pair.difference / np.sqrt(pair.variance), -_FARTHEST, _FARTHEST)
        for point, value in zip(pair.points.tolist(), scaled.tolist(), strict=True):
            points.setdefault(tuple(point), []).append(value)
    together = sum(float(np.mean(values)) ** 2 for values in points.values())
    single = sum(float(np.mean(np.square(values))) for values in points.values())
    return single / max(together, single / len(pairs)) if single > 0 else float(len(pairs))
