"""One model and its prior: fitted to the same times, then put together.

De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, sections III-C
and VII.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.models import data
from orchestrator.models.asymptotics import growth
from orchestrator.models.base import Model, is_of
from orchestrator.models.hypotheses import Floats
from orchestrator.models.model import PmnfModel
from orchestrator.models.noise import Located, locate
from orchestrator.models.posterior import Posterior
from orchestrator.models.swc_fit import Fit, Times, fit
from orchestrator.models.swc_posterior import Seen, joined, member
from orchestrator.models.swc_prior import Column, evaluate, names
from orchestrator.models.swc_skeleton import Skeleton
from orchestrator.models.text import power_text
from orchestrator.models.trend import remarks
from orchestrator.types import Measurements, Point, format_value

_UNKNOWN = "no effort was counted here or below: modelled from times alone"
_IMPOSSIBLE = "the prior cannot be evaluated at every point (a logarithm of 0?): modelled from times alone"

Key = tuple[str, str, data.Category]


def locate_times(timed: Measurements, aggregate: str) -> dict[Key, Seen]:
    """Locate all times by (call path, metric, category), with the coordinates of all numeric parameters."""
    found: dict[Key, Seen] = {}
    points = {(item.callpath, item.metric): tuple(item.values) for item in timed.items}
    for group in data.groups(timed)[0]:
        located = locate(group.values, aggregate)
        # An aggregate that was asked for is what coefficients are fitted to; otherwise every run counts.
        runs = np.log(group.values) if aggregate in ("auto", "none") else located.log_value[:, :, None]
        noted = remarks(group.parameters, group.points, located)
        chosen = dict(group.category)
        numeric = [name for name in timed.parameters if name not in chosen]
        for row, label in enumerate(group.labels):
            point = next(p for p in points[label] if is_of(p, group.category))
            x = np.stack([_column(group, name, point) for name in numeric], axis=1)
            told = (*group.notes[row], *noted[row])
            found[(*label, group.category)] = Seen(tuple(numeric), x, _times(located, row, runs[row]), told)
    return found


def _column(group: data.Group, name: str, point: Point) -> NDArray[np.float64]:
    if name in group.parameters:
        return np.array(group.points[:, group.parameters.index(name)])
    return np.full(len(group.points), point.number(name))


def _times(located: Located, row: int, runs: NDArray[np.float64]) -> Times:
    size = located.log_value.shape[1]
    point, _ = there = np.nonzero(np.isfinite(runs))
    return Times(
        located.log_value[row],
        located.count[row],
        float(located.sigma[row]),
        float(located.freedom[row]),
        np.zeros((size, size)),
        runs[there],
        point,
    )


def inform(
    model: Model,
    priors: Mapping[str, Mapping[data.Category, Skeleton]],
    seen: Mapping[Key, Seen],
    trust: float | None,
) -> Model:
    """Return a model that knows its prior; without a prior the same model, with a word why.

    Parameters
    ----------
    model
        Fitted to times alone.
    priors
        Per call path and category, see `orchestrator.models.swc_skeleton.skeletons`.
    seen
        The located times, see `locate_times`.
    trust
        Probability of the prior's form before looking at times; None where it is the only one.
    """
    return informed(model, priors, seen, (trust,))[0]


def informed(
    model: Model,
    priors: Mapping[str, Mapping[data.Category, Skeleton]],
    seen: Mapping[Key, Seen],
    trusts: Sequence[float | None],
) -> tuple[Model, ...]:
    """Return what `inform` does, for several values of ``trust``: the prior is fitted once."""
    if not isinstance(model, PmnfModel) or (model.callpath, model.metric, model.category) not in seen:
        return (model,) * len(trusts)
    prior = priors.get(model.callpath, {})
    skeleton = prior.get(model.category, prior.get(()))
    if skeleton is None:
        return (replace(model, notes=(*model.notes, _UNKNOWN)),) * len(trusts)
    if not skeleton.columns:
        return (replace(model, notes=(*model.notes, *skeleton.notes)),) * len(trusts)
    known = _relevant(seen[model.callpath, model.metric, model.category], model, skeleton.columns)
    design = evaluate(skeleton.columns, known.parameters, known.x)
    if not np.all(np.isfinite(design)):
        return (replace(model, notes=(*model.notes, *skeleton.notes, _IMPOSSIBLE)),) * len(trusts)
    columns = skeleton.columns
    if len(columns) > 1 and np.any(np.ptp(design[:, 1:], axis=0) <= 1e-9 * design[:, 1:].max(axis=0)):
        columns, design = columns[1:], design[:, 1:]  # where times do not vary, effort is no constant
    fitted = _Fitted.of(columns, design, known)
    return tuple(_with_prior(model, skeleton, fitted, trust) for trust in trusts)


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A prior with its coefficients: columns at the measured points, their fit, and it as a posterior."""

    design: Floats
    fit: Fit
    posterior: Posterior
    seen: Seen

    @classmethod
    def of(cls, columns: Sequence[Column], design: Floats, seen: Seen) -> Self:
        counted = np.array([column.counted for column in columns])
        floored = np.array([not column.constant for column in columns])
        found = fit(design, counted, floored, seen.times)
        return cls(design, found, member(columns, found, seen.parameters), seen)

    @property
    def smape(self) -> float:
        return float(200 * np.mean(np.tanh(np.abs(self.fit.residuals) / 2)))


def _with_prior(model: PmnfModel, skeleton: Skeleton, prior: _Fitted, trust: float | None) -> Model:
    """Put the prior in the place of the model, or beside it as times and ``trust`` demand."""
    seen = prior.seen
    alone = replace(
        model,
        parameters=seen.parameters,
        posterior=prior.posterior,
        smape=prior.smape,
        notes=(*seen.notes, *skeleton.notes, *_misfit(skeleton, prior)),
    )
    if trust is None:
        return alone
    both, probability = joined(model, prior.posterior, seen, prior.fit, prior.design, trust)
    if probability >= both.posterior.weights[0]:
        doubt = f"times make the form of the counted effort no more than {100 * probability:.0f} % probable"
        return replace(both, smape=alone.smape, notes=(*alone.notes, *([doubt] if probability < 0.5 else [])))
    gap = _disagreement(model, alone, prior, probability)
    return replace(both, notes=(*model.notes, *skeleton.notes, gap, *skeleton.doubts))


def _misfit(skeleton: Skeleton, prior: _Fitted) -> tuple[str, ...]:
    lack = prior.fit.lack
    if lack <= max(2 * float(np.sqrt(prior.seen.times.variance)), 0.01):
        return ()
    text = f"times scatter by {100 * lack:.2g} % around the counted effort, beyond the noise"
    return (text, *skeleton.doubts)


def _relevant(seen: Seen, model: PmnfModel, columns: Sequence[Column]) -> Seen:
    """Keep the parameters that appear in the model or in the prior."""
    wanted = {*model.parameters, *names(columns)}
    kept = [k for k, name in enumerate(seen.parameters) if name in wanted]
    return replace(seen, parameters=tuple(seen.parameters[k] for k in kept), x=seen.x[:, kept])


def _disagreement(model: PmnfModel, alone: PmnfModel, prior: _Fitted, probability: float) -> str:
    """Say where times overrule the counted effort: that gap is waiting time (section VII)."""
    seen, residuals = prior.seen, prior.fit.residuals
    apart = [
        f"{name} (time {_growth(model, name)}, effort {_growth(alone, name)})"
        for name in seen.parameters
        if growth(model.terms, name) != growth(alone.terms, name)
    ]
    worst = int(np.argmax(residuals))
    share = 100 * (1 - float(np.exp(-residuals[worst])))
    where = ", ".join(
        f"{n}={format_value(float(v))}" for n, v in zip(seen.parameters, seen.x[worst], strict=True)
    )
    growths = f" in {', '.join(apart)}" if apart else ""
    return (
        f"time and counted effort disagree{growths}: the gap, up to {share:.0f} % of the time at P({where}), "
        f"is waiting time or a cost that counts do not see (probability of the prior {probability:.2g})"
    )


def _growth(model: PmnfModel, name: str) -> str:
    exponent, log_exponent = growth(model.terms, name)
    parts = [power_text(name, exponent), power_text(f"log2({name})", log_exponent)]
    return " * ".join(part for part in parts if part) or "constant"
