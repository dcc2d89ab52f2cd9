"""The choice among the learners of a family: which of them predict, with what weights, and what beyond.

It takes many fits, which a refit with a few more measurements need not repeat: it depends on the first ones
only (`orchestrator.models.regression.first`). So the same measurements give the same choice, whether it is
remembered or made again after a restart.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats, Integers
from orchestrator.models.regression.cross_validation import (
    FAR_BEHIND,
    Beyond,
    beyond,
    compared,
    finalists,
    middle,
    mlogq,
    parts,
    weights,
)
from orchestrator.models.regression.errors import UNKNOWN, Growth
from orchestrator.models.regression.folds import LEAST_SAMPLES, folds
from orchestrator.models.regression.learner import Learner
from orchestrator.models.regression.samples import Samples
from orchestrator.models.regression.trend import fit_trend

Candidates = Callable[[Samples], Sequence[Learner]]

# What predicts wherever nothing better can be fitted.
TREND = Learner(family="trend", name="log-linear trend", fit=fit_trend)
# Choices that are kept for data that come again. By memory.
_REMEMBERED = 512
# How much worse the learner that is preferred where errors are equal may be. Chosen by hand; not derived.
_TIE = 1.02
# So many of those within the range are tried beyond it, too.
_AT_ENDS = 3
# The middle of so many predicts beyond it: of 16 held-out ends of six measured programs the error was 1.30
# times that of the best learner with one (at worst 2.2 times), 1.20 with five and 1.21 with nine (2.0 times).
_MOST_BEYOND = 5
# Opinions of families are weighed by so many bootstraps; those that are less probably the best are left out.
# Of fewer left-out rows the best opinion is taken: hardly any is improbable there. With weights, 21 ends of
# six measured programs with 25 rows had 1.012 times the error of the best, 13 ends with 200 rows 0.99 times.
_BOOTSTRAPS, _LEAST_SHARE, _LEAST_ROWS = 1000, 0.1, 50
# Opinions and the one that nothing changes beyond the edge are weighed by the inverse of this power of their
# errors there, and opinions have at least half of the weight. Chosen by hand with ends of 14
# measured programs and components (docs/experiments.md): from 3 to 6 it hardly matters.
_TRUST, _LEAST_TRUST = 5, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What a family of learners brings."""

    inside: Candidates  # candidates within the measured range
    outside: Candidates  # candidates beyond it
    combine: bool = False  # whether several may be combined, or the best one is taken alone
    # Whether changes beyond the range count only as far as left-out ends support them. A law, or a method
    # of a paper, goes on as it says.
    doubts: bool = False
    preferred: str = ""  # the family that wins where errors are as good as equal; empty for none
    # What predicts wherever nothing better can be fitted, and takes part everywhere.
    fallback: Learner = TREND
    # So many samples must lie on either side where the largest values of a parameter are left out.
    least_at_end: int = LEAST_SAMPLES
    # How many times as large errors are taken to be beyond the range as at the values that were left out:
    # those are errors of learners that were chosen for them there.
    caution: float = 1.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What learners of one family predict beyond the range of an axis: the mean of the middle ones."""

    # Each with whether it is shifted to meet the prediction inside at the edge of the range.
    learners: tuple[tuple[Learner, bool], ...]
    weight: float = 1.0  # of this opinion among those of all families


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What predicts beyond the range of an axis: a weighted mean of opinions."""

    # Of each family that may be the best, one from every part of the samples that were looked at.
    opinions: tuple[Opinion, ...]
    share: float  # of the change from the edge of the range on that they predict, see `_share_of_change`
    growth: Growth  # of the error


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was chosen, and why."""

    learners: tuple[Learner, ...]  # all finalists, the best first
    errors: Floats  # MLogQ of each, where it was not fitted, shape (learners,); infinite for one that failed
    weights: Floats  # of each in the prediction within the range, shape (learners,)
    error: float  # MLogQ of their weighted combination
    outside: dict[int, Outside]  # per numeric axis what predicts beyond its range

    @property
    def used(self) -> tuple[tuple[Learner, float], ...]:
        """The learners that have a weight, with it."""
        pairs = zip(self.learners, self.weights, strict=True)
        return tuple((learner, float(weight)) for learner, weight in pairs if weight)

    @property
    def text(self) -> str:
        """Why it was chosen, on one line: its error where it was not fitted, and those of the families."""
        best: dict[str, float] = {}
        for learner, error in zip(self.learners, self.errors, strict=True):
            if np.isfinite(error):
                best[learner.family] = min(best.get(learner.family, np.inf), float(error))
        alone = ", ".join(f"{family} {error:.3f}" for family, error in best.items())
        return (
            f"chosen for its error at points left out of fits: {self.error:.3f} (mean |log ratio|); the best "
            f"of every family alone: {alone}"
        )


class Memory:
    """Choices by the samples that they were made with, the latest ones."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Choice] = OrderedDict()

    def get(self, first: Samples) -> Choice | None:
        """Return the choice that was made for the same first measurements, if it is remembered."""
        return self._known.get(_key(first))

    def keep(self, first: Samples, choice: Choice) -> None:
        """Remember a choice."""
        self._known[_key(first)] = choice
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


def _key(samples: Samples) -> bytes:
    numbers = (samples.x, samples.y, samples.runs)
    # Ranges and categories are those of all points.
    text = b"".join(item.tobytes() for item in numbers) + repr(samples.axes).encode()
    return hashlib.sha256(text).digest()


def in_order(samples: Samples) -> Samples:
    """Return samples by coordinates: the order of measurement must not matter for a fit."""
    return samples.rows(np.lexsort(samples.x.T[::-1])) if samples.axes else samples


def choose(samples: Samples, family: Family, rng: np.random.Generator) -> Choice:
    """Compare the candidates of a family on samples that they were not fitted to.

    Raises
    ------
    ModelError
        When no learner can be fitted.
    """
    # Streams of their own: how many draws a part takes depends on the number of candidates.
    first, parts, last, beyond_range = rng.spawn(4)
    chosen = finalists(_with_fallback(family.inside(samples), family), samples, first)
    comparison = compared(chosen, samples, folds(len(samples), parts), last)
    if not np.isfinite(comparison.errors[0]):
        raise ModelError(f"no learner can be fitted to {len(samples)} points: measure more")
    share = weights(comparison) if family.combine else np.eye(len(comparison.learners))[0]
    error = mlogq(share[share > 0] @ comparison.residuals[share > 0])
    for k, learner in enumerate(comparison.learners):
        if learner.family == family.preferred and comparison.errors[k] <= _TIE * error:
            share, error = np.eye(len(comparison.learners))[k], comparison.errors[k]
            break
    best = comparison.learners[int(np.argmax(share))]
    return Choice(
        learners=comparison.learners,
        errors=comparison.errors,
        weights=share,
        error=float(error),
        outside=_outside(comparison.learners[:_AT_ENDS], best, family, samples, error, beyond_range),
    )


def _with_fallback(learners: Sequence[Learner], family: Family) -> list[Learner]:
    """Return learners with the fallback of the family among them, each name once."""
    return list({item.name: item for item in [*learners, family.fallback]}.values())


def _outside(
    inside: Sequence[Learner],
    best: Learner,
    family: Family,
    samples: Samples,
    error: float,
    rng: np.random.Generator,
) -> dict[int, Outside]:
    """Return per axis those that predicted its left-out largest values best, plain or anchored at the edge.

    One end that is left out says little of the next one: the best there may be far off beyond. The middle of
    the best few seldom is, and neither is the mean of what several parts of many samples choose.
    """
    learners = list(dict.fromkeys([*_with_fallback(family.outside(samples), family), *inside]))
    seen: dict[int, list[Beyond]] = {}
    for part in parts(samples, rng):
        for item in beyond(learners, best, part, rng, family.least_at_end):
            if np.isfinite(item.errors.min()):
                seen.setdefault(item.axis, []).append(item)
    # Too few values to tell: the fallback is the safest, and little is known.
    alone = Outside(opinions=(Opinion(learners=((family.fallback, True),)),), share=1.0, growth=UNKNOWN)
    numeric = (axis for axis, item in enumerate(samples.axes) if not item.is_categorical)
    return {
        axis: _weighed(learners, seen[axis], family, error, rng) if axis in seen else alone
        for axis in numeric
    }


def _weighed(
    learners: Sequence[Learner],
    seen: Sequence[Beyond],
    family: Family,
    error: float,
    rng: np.random.Generator,
) -> Outside:
    """Weigh the opinions of families by how they predicted what was left out: every part has the same say.

    ``error`` is that of the prediction inside.
    """
    share: dict[tuple[tuple[Learner, bool], ...], float] = {}
    residuals = []
    for item in seen:
        by_family = _best_of_families(learners, item)
        each = np.array([middle(item.residuals[places]) for places in by_family])
        probable = _probably_best(np.abs(each), rng)
        residuals.append(probable @ each)
        for places, weight in zip(by_family, probable, strict=True):
            members = _members(learners, places)
            share[members] = share.get(members, 0.0) + float(weight) / len(seen)
    combined, distances = np.concatenate(residuals), np.concatenate([item.distances for item in seen])
    changes = np.concatenate([item.changes for item in seen])
    kept = _share_of_change(combined, changes) if family.doubts else 1.0
    # Where all of the change counts, none may be known: nothing could be fitted within the range.
    missed = combined if kept == 1 else kept * combined + (1 - kept) * changes
    return Outside(
        opinions=tuple(
            Opinion(learners=members, weight=weight) for members, weight in share.items() if weight
        ),
        share=kept,
        growth=Growth.of(distances, missed, error).times(family.caution),
    )


def _share_of_change(residuals: Floats, changes: Floats) -> float:
    """Return how much of the change that is predicted beyond the edge of the range is believed.

    A parameter along which the values that were left out are predicted no better than by those at the edge
    is one of which nobody knows how it goes on: its effect may end, as that of more processes does.

    Parameters
    ----------
    residuals
        Logarithms of measured over predicted values at what was left out, shape (rows,).
    changes
        Logarithms of measured values over what is predicted at the edge, shape (rows,).
    """
    predicted, none = mlogq(residuals), mlogq(changes)
    if not predicted or not np.isfinite(none):
        return 1.0
    return float(max(_LEAST_TRUST, 1 / (1 + (predicted / none) ** _TRUST))) if none else _LEAST_TRUST


def _members(learners: Sequence[Learner], places: Integers) -> tuple[tuple[Learner, bool], ...]:
    """Return learners at places of `Beyond`, with whether they are shifted: all plain ones come first."""
    return tuple((learners[k % len(learners)], bool(k >= len(learners))) for k in places)


def _best_of_families(learners: Sequence[Learner], seen: Beyond) -> list[Integers]:
    """Return the places of the best learners of every family.

    Each family is one opinion, however many learners it has that agree: of the middle of the best of all,
    most can be of a family that is not the best.
    """
    families = np.tile([learner.family for learner in learners], 2)
    errors = [np.where(families == family, seen.errors, np.inf) for family in dict.fromkeys(families)]
    return [_best_forms(own) for own in errors if np.isfinite(own.min())]


def _probably_best(errors: Floats, rng: np.random.Generator) -> Floats:
    """Return how probable it is that opinions have the least mean error; of few rows, which has.

    By Bayesian bootstraps of the rows: pseudo-BMA+ of Yao, Vehtari, Simpson and Gelman, Using stacking to
    average Bayesian predictive distributions, 2018, section 3.4, with errors in place of log densities. Of
    opinions that are as good as equal chance shall not choose one.

    Parameters
    ----------
    errors
        Absolute errors of every opinion, shape (opinions, rows).
    rng
        Of the bootstraps.

    Returns
    -------
    Shape (opinions,).
    """
    if errors.shape[1] < _LEAST_ROWS:
        return np.asarray(np.eye(len(errors))[errors.mean(axis=1).argmin()], np.float64)
    best = (errors @ rng.dirichlet(np.ones(errors.shape[1]), _BOOTSTRAPS).T).argmin(axis=0)
    share = np.bincount(best, minlength=len(errors)) / _BOOTSTRAPS
    share = np.where(share >= min(_LEAST_SHARE, share.max()), share, 0.0)
    return np.asarray(share / share.sum(), np.float64)


def _best_forms(errors: Floats) -> Integers:
    """Return the places of the best learners, an odd number, each in its better form: plain or anchored.

    Those that are far behind the best do not take part.
    """
    forms = errors.reshape(2, -1)
    best, anchored = forms.min(axis=0), forms.argmin(axis=0)
    near = int(np.count_nonzero(best <= FAR_BEHIND * best.min()))
    order = np.argsort(best, kind="stable")[: min(near, _MOST_BEYOND)]
    order = order[: len(order) - (len(order) + 1) % 2]
    return np.asarray(order + anchored[order] * forms.shape[1], np.int64)
