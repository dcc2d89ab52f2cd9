"""How good the models are, and whether a round improved them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.journal.measurements import ELAPSED
from orchestrator.journal.state import RunStatus, State
from orchestrator.models import uncertainty
from orchestrator.models.base import Model, finite, holds_at
from orchestrator.types import Point

# Factors by which SMAPE falls, and intervals narrow or widen, when that is not chance: on a noisy machine a
# round without new information changes SMAPE by 1 % and widths by 20 %.
_FITS, _NARROWS, _WIDENS = 1.02, 1.05, 1.5
_EXACT = 0.1  # %; a SMAPE below that cannot improve noticeably
_SURE = 0.01  # relative width; narrower intervals need not narrow further
_TOLERATED = 0.1  # relative width; wider intervals are not called narrow, however noisy the runs are


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """How well the relevant models fit, and how narrow their intervals are.

    ``smape`` in %: the mean over models. Relative width of an interval, (high - low) / value at P₊: ``width``
    is the mean, weighted by value; ``widest`` is the largest. ``noise`` is the width of the range that holds
    90 % of single runs. See `orchestrator.models.uncertainty`. Without P₊ these are medians over so many
    ``targets``, random points of the search space.
    """

    smape: float | None = None
    width: float | None = None
    widest: float | None = None
    noise: float | None = None
    targets: int = 0


def gain(now: Quality, before: Quality) -> str:
    """Return what a round improved: ``first``, ``surprise``, ``intervals``, ``fit``, or an empty text.

    A closer fit than in the round before is the papers' rule (Ritter et al., Cost-Effective Empirical
    Performance Modeling, figures 2 and 3). That rule alone misses rounds that narrow the intervals at P₊
    without fitting the data any closer. It also misses rounds after which the intervals are much wider
    (``surprise``): they show that the models are wrong and not final. A gain is a reason to go on, so
    intervals below 1 % are none, however they came about.

    Parameters
    ----------
    now
        The models after the round.
    before
        The SMAPE of the round before. The width of the last round with ``first``, ``surprise`` or
        ``intervals``, so that many small steps add up.
    """
    if now.smape is None:
        return ""
    if before.smape is None:
        return "first"
    old, new = (np.inf if item.width is None else item.width for item in (before, now))
    if new > _WIDENS * old:
        return "surprise"
    if new < _SURE:
        return ""
    if new * _NARROWS < old:
        return "intervals"
    return "fit" if before.smape > _EXACT and now.smape * _FITS < before.smape else ""


def fits_better(now: Quality, before: Quality) -> str:
    """Return the same by the papers' rule alone: ``first``, or ``fit`` where the SMAPE fell at all."""
    if now.smape is None:
        return ""
    if before.smape is None:
        return "first"
    return "fit" if now.smape < before.smape else ""


def assess(models: Sequence[Model], point: Point | None, targets: Sequence[Point] = ()) -> Quality:
    """Return the quality of a set of models at P₊; without one, over targets."""
    chosen = uncertainty.relevant_models(models, point)
    if not chosen:
        return Quality()
    smape = finite(float(np.mean([model.smape for model in chosen])))
    widths = uncertainty.over(models, targets) if point is None else uncertainty.at(models, point)
    number = len(targets) if point is None else 0
    return Quality(smape=smape, width=widths.width, widest=widths.widest, noise=widths.noise, targets=number)


def enough(noise: float | None) -> float:
    """Return the relative width from which on narrower intervals at P₊ show nothing that a run could confirm.

    Half of the range ``noise`` that holds 90 % of single runs: without any uncertainty of the model, the
    range in which a run at P₊ is expected would be a tenth narrower. Never less than 1 %, and never more than
    10 %, because the mean of many runs can be known better than one noisy run.
    """
    return _SURE if noise is None else min(max(noise / 2, _SURE), _TOLERATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeyondLimit:
    """A point at which all runs took longer than a model of whole runs permits; times in seconds.

    No run ended within ``limit``, which is longer than the ``high`` end of the interval of the ``value``.
    """

    callpath: str
    metric: str
    point: Point
    limit: float
    value: float
    high: float


def beyond_limits(state: State, models: Sequence[Model]) -> Iterator[BeyondLimit]:
    """Yield the points whose runs all reached a time limit that is longer than models say they may take.

    No model was fitted to these runs, so its interval may be narrow all the same.
    """
    timed = [(run.point, item) for run, item in state.runs.items() if run.kind == "time"]
    ended = {point for point, item in timed if item.status in (RunStatus.MEASURED, RunStatus.DISCARDED)}
    reached: dict[Point, float] = {}
    for point, item in timed:
        if item.reached and point not in ended:
            reached[point] = max(item.reached, reached.get(point, 0.0))
    for model in models:
        if model.metric != ELAPSED:
            continue
        for point, limit in sorted(reached.items(), key=lambda pair: pair[0].key):
            if not holds_at(model, point):
                continue
            predicted = model.predict([point])
            value, high = float(predicted.value[0]), float(predicted.high[0])
            if limit > high:
                yield BeyondLimit(
                    callpath=model.callpath,
                    metric=model.metric,
                    point=point,
                    limit=limit,
                    value=value,
                    high=high,
                )


def is_contradicted(state: State, models: Sequence[Model]) -> bool:
    """Return whether a run of the last round took longer than the models permit, until its time limit.

    Only of the last round: such a point is given up, and what the models say elsewhere may well converge.
    """
    tried = {run.point for run in state.queue}
    return any(item.point in tried for item in beyond_limits(state, models))
