"""How good the models are, and whether a round improved them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Model
from orchestrator.strategies.relevance import is_relevant
from orchestrator.types import Point

# Factors by which SMAPE falls, and intervals narrow or widen, when that is not chance: on a noisy machine a
# round without new information changes SMAPE by 1 % and widths by 20 %.
_FITS, _NARROWS, _WIDENS = 1.02, 1.05, 1.5
_EXACT = 0.1  # %; a SMAPE below that cannot improve noticeably
_SURE = 0.01  # relative width; narrower intervals need not narrow further


@dataclass(frozen=True, slots=True)
class Quality:
    """How well the relevant models fit, and how narrow their intervals are.

    ``smape`` in %: the mean over models. Relative width of an interval, (high - low) / value at P₊: ``width``
    is the mean, weighted by value; ``widest`` is the largest.
    """

    smape: float | None = None
    width: float | None = None
    widest: float | None = None


def gain(now: Quality, before: Quality) -> str:
    """Return what a round improved: ``first``, ``surprise``, ``intervals``, ``fit``, or an empty text.

    A closer fit than in the round before is the papers' rule (Ritter et al., Cost-Effective Empirical
    Performance Modeling, figures 2 and 3). That rule alone misses rounds that narrow the intervals at P₊
    without fitting the data any closer. It also misses rounds after which the intervals are much wider
    (``surprise``): they show that the models are wrong and not final.

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


def relevant_models(models: Sequence[Model], point: Point | None, metric: str = "time") -> tuple[Model, ...]:
    """Return the models of ``metric`` that predict a relevant share of its sum at ``point``."""
    chosen = tuple(model for model in models if model.metric == metric) or tuple(models)
    if point is None or not chosen:
        return chosen
    values = [max(0.0, float(model.predict([point]).value[0])) for model in chosen]
    return tuple(model for model, counts in zip(chosen, is_relevant(values), strict=True) if counts)


def assess(models: Sequence[Model], point: Point | None) -> Quality:
    """Return the quality of a set of models."""
    chosen = relevant_models(models, point)
    if not chosen:
        return Quality()
    smape = _finite(float(np.mean([model.smape for model in chosen])))
    if point is None:
        return Quality(smape)
    predicted = [model.predict([point]) for model in chosen]
    values = np.array([abs(float(item.value[0])) for item in predicted])
    spans = np.array([float(item.high[0] - item.low[0]) for item in predicted])
    if not values.all():
        return Quality(smape)
    return Quality(smape, _finite(float(spans.sum() / values.sum())), _finite(float((spans / values).max())))


def _finite(value: float) -> float | None:
    """Return None for an unknown figure: with too few runs an interval is infinite."""
    return value if np.isfinite(value) else None
