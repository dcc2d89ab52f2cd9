"""What is at stake at P₊: the variance that runs can lower, and the uncertainty that readers see of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from orchestrator import units
from orchestrator.models import uncertainty
from orchestrator.models.base import Floats
from orchestrator.models.belief import ModelWithBelief
from orchestrator.strategies.base import View
from orchestrator.strategies.information.gain import known
from orchestrator.strategies.information.price import Price
from orchestrator.strategies.information.unseen_terms import UnseenTerms
from orchestrator.types import Point


@dataclass(frozen=True, slots=True)
class Weighted:
    """A model of a relevant call path, and the weight of the call path."""

    model: ModelWithBelief
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stakes:
    """What a round of choices is about."""

    # Of relevant call paths, with terms that they may lack in ``hidden`` and the factors of what they believe
    # at ``aims`` in ``goals``.
    models: tuple[Weighted, ...]
    hidden: tuple[UnseenTerms, ...]
    goals: tuple[Floats, ...]
    aims: tuple[Point, ...]  # P₊; without one, the upper corners
    price: Price  # of runs
    # total, fixed: relative variance at P₊, summed over aims and weighted by call path; what of it no run
    # lowers.
    total: float
    fixed: float
    # The uncertainty at P₊ (`orchestrator.models.uncertainty`), the mean over aims; None if unknown.
    width: float | None

    @classmethod
    def of(cls, view: View, models: Sequence[Weighted], aims: Sequence[Point], overhead: float) -> Self:
        """Return what is at stake before a round."""
        hidden = tuple(UnseenTerms.of(entry.model, view.done) for entry in models)
        believed = [known(entry.model, aims, terms) for entry, terms in zip(models, hidden, strict=True)]
        fixed = sum(entry.share * float(b.rough.sum()) for entry, b in zip(models, believed, strict=True))
        lowered = (
            entry.share * float(np.sum(b.factor**2)) for entry, b in zip(models, believed, strict=True)
        )
        widths = [
            found.width for aim in aims if (found := uncertainty.at(view.models, aim)).width is not None
        ]
        return cls(
            models=tuple(models),
            hidden=hidden,
            goals=tuple(item.factor for item in believed),
            aims=tuple(aims),
            price=Price.of(view, overhead),
            total=sum(lowered, fixed),
            fixed=fixed,
            width=sum(widths) / len(widths) if widths else None,
        )

    def effect(self, before: float, after: float) -> str:
        """Say by how much the uncertainty at P₊ falls with the variance there.

        Intervals narrow as the root of the variance. The belief bounds how far a hypothesis may be off, so
        its variance is no width. Only the ratio of two variances is taken from it.
        """
        where = str(self.aims[0]) if len(self.aims) == 1 else "the upper corners"
        total = self.total or 1.0  # 0 where the models are certain
        ratios = [math.sqrt(max(part, 0.0) / total) for part in (before, after)]
        if self.width is None or not math.isfinite(self.width):
            fall = 100 * (1 - ratios[1] / ratios[0]) if ratios[0] else 0.0
            return f"lowers the uncertainty at {where} by {fall:.3g} %"
        first, last = (units.uncertainty(self.width * ratio) for ratio in ratios)
        if first == last:  # in so many digits
            return f"hardly lowers the uncertainty at {where} ({last})"
        return f"lowers the uncertainty at {where} from {first} to {last}"
