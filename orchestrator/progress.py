"""How good the models are, and whether a round made them better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Model
from orchestrator.types import Point

RELEVANT_SHARE = 0.01  # call paths below 1 % of the predicted time at P₊ do not steer a campaign
_NARROWER = 0.95


@dataclass(frozen=True, slots=True)
class Quality:
    """``smape`` in %, mean over relevant call paths; ``width``: mean (high - low) / value at P₊."""

    smape: float | None = None
    width: float | None = None

    def improves_on(self, previous: Quality) -> bool:
        """Tell whether a round was worth it: a better fit, or clearly narrower intervals at P₊.

        The SMAPE comparison is the papers' rule (Ritter et al., Cost-Effective Empirical Performance
        Modeling, figures 2 and 3). It alone would call a round useless that made extrapolation safer
        without fitting the data any closer.
        """
        if self.smape is None:
            return False
        if previous.smape is None or self.smape < previous.smape:
            return True
        return (
            self.width is not None and previous.width is not None and self.width < _NARROWER * previous.width
        )


def relevant(models: Sequence[Model], point: Point | None, metric: str = "time") -> tuple[Model, ...]:
    """Return the models of ``metric`` with more than 1 % of its sum predicted at ``point``."""
    chosen = tuple(model for model in models if model.metric == metric) or tuple(models)
    if point is None or not chosen:
        return chosen
    values = np.array([max(0.0, float(model.predict([point]).value[0])) for model in chosen])
    share = values / values.sum() if values.sum() > 0 else np.ones(len(chosen))
    return tuple(model for model, part in zip(chosen, share, strict=True) if part > RELEVANT_SHARE)


def assess(models: Sequence[Model], point: Point | None) -> Quality:
    """Return the quality of a set of models."""
    chosen = relevant(models, point)
    if not chosen:
        return Quality()
    smape = _finite(float(np.mean([model.smape for model in chosen])))
    if point is None:
        return Quality(smape)
    widths = []
    for model in chosen:
        prediction = model.predict([point])
        value = abs(float(prediction.value[0]))
        if value > 0:
            widths.append(float(prediction.high[0] - prediction.low[0]) / value)
    return Quality(smape, _finite(float(np.mean(widths))) if widths else None)


def _finite(value: float) -> float | None:
    """Return None for what is unknown: too few runs leave an interval without end."""
    return value if np.isfinite(value) else None
