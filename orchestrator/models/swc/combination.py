"""A model of times combined with its prior from counted effort.

De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, sections III-C and
VII.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from orchestrator.models.base import Category, Floats, Key, Model, key_of, smape_of
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.models.swc.columns import Column, evaluate, names
from orchestrator.models.swc.posterior import joined, member
from orchestrator.models.swc.regression import Fit, fit
from orchestrator.models.swc.skeleton import Skeleton
from orchestrator.models.swc.times import TimedPoints
from orchestrator.models.symbolic import growth, power_text
from orchestrator.types import format_value

Priors = Mapping[str, Mapping[Category, Skeleton]]
"""The prior per call path and category, see `orchestrator.models.swc.skeleton.skeletons`."""

# Constants are chosen by hand.
_CONSTANT = 1e-9  # a column that varies by less than this share is constant
_LEAST_NOTED_MISFIT = 0.01  # lack of fit around the prior, as a share of the time, that is worth a note
_NOTED_MISFIT_PER_NOISE = 2.0  # the same in standard deviations of the located times
# Probability, per doubling of the time, that times begin to grow more than counts, as where data no longer
# fit into a cache; and from which probability on intervals allow for it.
_BEGINS, _DOUBTFUL = 0.1, 0.2

NO_EFFORT = "no effort was counted here or below: modelled from times alone"
_UNDEFINED = "the prior cannot be evaluated at every point (a logarithm of 0?): modelled from times alone"


def with_prior(
    model: Model, priors: Priors, located: Mapping[Key, TimedPoints], trusts: Sequence[float | None]
) -> tuple[Model, ...]:
    """Return a model combined with its prior, once per ``trust``; the prior is fitted once for all of them.

    Without a prior the model stays as it is, with a note that says why there is none.

    Parameters
    ----------
    model
        Fitted to times alone.
    priors
        Per call path and category, see `orchestrator.models.swc.skeleton.skeletons`.
    located
        The located times, see `orchestrator.models.swc.times.locate_times`.
    trusts
        Probabilities of the prior's form before looking at times. None where the prior is the only
        hypothesis.
    """
    if not isinstance(model, PmnfModel) or key_of(model) not in located:
        return (model,) * len(trusts)
    prior = priors.get(model.callpath, {})
    skeleton = prior.get(model.category, prior.get(()))
    if skeleton is None:
        return (replace(model, notes=(*model.notes, NO_EFFORT)),) * len(trusts)
    if not skeleton.columns:
        return (replace(model, notes=(*model.notes, *skeleton.notes)),) * len(trusts)
    relevant = frozenset({*model.parameters, *names(skeleton.columns)})
    timed = located[key_of(model)].only(relevant)
    design = evaluate(skeleton.columns, timed.parameters, timed.x)
    if not np.all(np.isfinite(design)):
        return (replace(model, notes=(*model.notes, *skeleton.notes, _UNDEFINED)),) * len(trusts)
    columns = skeleton.columns
    if len(columns) > 1 and np.any(np.ptp(design[:, 1:], axis=0) <= _CONSTANT * design[:, 1:].max(axis=0)):
        columns, design = columns[1:], design[:, 1:]  # another column is constant at these points
    fitted = _FittedPrior.of(columns, design, timed)
    return tuple(_combined(model, skeleton, fitted, trust) for trust in trusts)


@dataclass(frozen=True, slots=True)
class _FittedPrior:
    """A prior with coefficients: its columns at the measured points, their fit, and both as a posterior."""

    design: Floats
    fit: Fit
    posterior: Posterior
    timed: TimedPoints

    @classmethod
    def of(cls, columns: Sequence[Column], design: Floats, timed: TimedPoints) -> Self:
        counted = np.array([column.counted for column in columns])
        floored = np.array([not column.constant for column in columns])
        found = fit(design, counted, floored, timed.times)
        return cls(design, found, member(columns, found, timed.parameters), timed)

    @property
    def smape(self) -> float:
        return float(smape_of(self.fit.residuals))


def _combined(model: PmnfModel, skeleton: Skeleton, prior: _FittedPrior, trust: float | None) -> Model:
    """Replace the model by the prior (no ``trust``), or weigh both by how well they explain the times."""
    timed = prior.timed
    alone = replace(
        model,
        parameters=timed.parameters,
        posterior=prior.posterior,
        beyond=None,
        unseen=_unconfirmed(prior),
        smape=prior.smape,
        notes=(*timed.notes, *skeleton.notes, *_misfit(skeleton, prior)),
    )
    if trust is None:
        return alone
    both, probability = joined(model, prior.posterior, timed, prior.fit, prior.design, trust)
    if probability >= both.posterior.weights[0]:
        doubt = f"times make the form of the counted effort no more than {100 * probability:.0f} % probable"
        return replace(
            both,
            smape=alone.smape,
            unseen=alone.unseen,
            notes=(*alone.notes, *([doubt] if probability < 0.5 else [])),
        )
    gap = _disagreement(model, alone, prior, probability)
    return replace(both, notes=(*model.notes, *skeleton.notes, gap, *skeleton.doubts))


@dataclass(frozen=True, slots=True, eq=False)
class _Unconfirmed:
    """What longer runs may take beyond the counted effort, where all of the longest were disturbed."""

    posterior: Posterior  # the prior, fitted
    longest: float  # seconds that it says of the longest point with an undisturbed run
    per_doubling: float  # standard deviation of the logarithm of the time, per doubling of that

    def causes(self, x: Floats) -> Floats:
        """Return what it moves the logarithm by at coordinates (n, parameters): one cause, shape (1, n)."""
        longer = np.log2(np.maximum(self.posterior.best(x) / self.longest, 1.0))
        return np.asarray(self.per_doubling * longer, np.float64)[None]


def _unconfirmed(prior: _FittedPrior) -> _Unconfirmed | None:
    """Return what longer runs may take if no run of the longest points is undisturbed.

    Either all of them were disturbed by chance, or they take longer than counts tell. Then what the least
    disturbed point exceeds the fit by, per doubling, goes on.
    """
    fit, times = prior.fit, prior.timed.times
    expected = np.exp(times.log_value - fit.residuals)
    if not fit.confirmed.any():
        return None
    longest = float(expected[fit.confirmed].max())
    longer = expected > longest
    if not longer.any():
        return None
    doublings = np.log2(expected[longer] / longest)
    begins = 1 - (1 - _BEGINS) ** float(doublings.max())
    chance = fit.disturbed ** np.count_nonzero(longer[times.point])
    growth = float(np.min(fit.excess[longer] / doublings))
    if growth <= 0 or begins < _DOUBTFUL * (begins + (1 - begins) * chance):
        return None
    return _Unconfirmed(prior.posterior, longest, growth)


def _misfit(skeleton: Skeleton, prior: _FittedPrior) -> tuple[str, ...]:
    lack, times = prior.fit.lack, prior.timed.times
    if lack <= max(_NOTED_MISFIT_PER_NOISE * float(np.sqrt(times.variance)), _LEAST_NOTED_MISFIT):
        return ()
    text = f"times scatter by {100 * lack:.2g} % around the counted effort, beyond the noise"
    return (text, *skeleton.doubts)


def _disagreement(model: PmnfModel, alone: PmnfModel, prior: _FittedPrior, probability: float) -> str:
    """Return a note on where times overrule the counted effort: the gap is waiting time (section VII)."""
    timed, residuals = prior.timed, prior.fit.residuals
    differing = [
        f"{name} (time {_growth(model, name)}, effort {_growth(alone, name)})"
        for name in timed.parameters
        if growth(model.terms, name) != growth(alone.terms, name)
    ]
    worst = int(np.argmax(residuals))
    share = 100 * (1 - float(np.exp(-residuals[worst])))
    where = ", ".join(
        f"{n}={format_value(float(v))}" for n, v in zip(timed.parameters, timed.x[worst], strict=True)
    )
    growths = f" in {', '.join(differing)}" if differing else ""
    return (
        f"time and counted effort disagree{growths}: the gap, up to {share:.0f} % of the time at P({where}), "
        f"is waiting time or a cost that counts do not see (probability of the prior {probability:.2g})"
    )


def _growth(model: PmnfModel, name: str) -> str:
    exponent, log_exponent = growth(model.terms, name)
    parts = [power_text(name, exponent), power_text(f"log2({name})", log_exponent)]
    return " * ".join(part for part in parts if part) or "constant"
