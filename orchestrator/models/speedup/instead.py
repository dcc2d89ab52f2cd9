"""Oliveira's model in place of the law: as an overhead, it is the ratio of both speedups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats
from orchestrator.models.regression.learner import Fitted
from orchestrator.models.regression.samples import Samples
from orchestrator.models.speedup.amdahl import growth
from orchestrator.models.speedup.law import Law, Settings, within
from orchestrator.models.speedup.layout import Layout
from orchestrator.models.speedup.oliveira import Oliveira

Fit = Callable[[Floats, Floats, Floats, np.random.Generator], Oliveira]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Instead:
    """Oliveira's speedup over that of the law: the law corrected by it is Oliveira's model."""

    law: Law
    model: Oliveira

    @property
    def text(self) -> str:
        """What it is."""
        return f"Oliveira's model, S = {self.model.text}"

    def at(self, x: Floats) -> Floats:
        """Return logarithms of tau at coordinates (n, axes), shape (n,)."""
        n = self.law.layout.processes(x)
        found = self.model.speedup(n, _size(self.law.layout, x))
        return np.asarray(np.log(found * growth(n, self.law.parallel(x))))


def oliveira_by(fit: Fit) -> Callable[[Samples, Law, Settings, np.random.Generator], Fitted]:
    """Return what puts Oliveira's model, fitted by ``fit`` to runs within the cut-offs, in place of the law.

    Several problem sizes count as one, their product; categories do not count.
    """

    def fitted(samples: Samples, law: Law, settings: Settings, rng: np.random.Generator) -> Fitted:
        if settings.scaling != "strong":
            raise ModelError(f"Oliveira's model is for strong scaling, not for {settings.scaling} scaling")
        n = law.layout.processes(samples.x)
        here = (n > 1) & (n <= settings.most_processes) & within(samples.x, law.layout, settings.largest)
        if not here.any():
            raise ModelError("no run on several processes is within the cut-offs: raise them")
        x = samples.x[here]
        speedups = np.exp(np.clip(law.serial(x) - samples.y[here], -300, 300))
        return Instead(law=law, model=fit(n[here], _size(law.layout, x), speedups, rng))

    return fitted


def _size(layout: Layout, x: Floats) -> Floats:
    """Return the product of all problem sizes, 1 where there is none, shape (n,)."""
    logs = np.zeros(len(x))
    for k in layout.others:
        if layout.axes[k].logarithmic:
            logs += x[:, k]
    return np.asarray(np.exp(np.clip(logs, -500, 500)))
