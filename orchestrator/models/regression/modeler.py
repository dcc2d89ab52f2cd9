"""A modeler from a family of learners: choose by what was left out, fit again to all, keep the errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models import data
from orchestrator.models.base import Floats, Model, Modeler
from orchestrator.models.blas import one_thread
from orchestrator.models.noise import AGGREGATES
from orchestrator.models.regression.choosing import (
    Compared,
    attempt,
    beyond,
    compared,
    finalists,
    weights,
)
from orchestrator.models.regression.errors import Errors, growth
from orchestrator.models.regression.folds import Split, folds
from orchestrator.models.regression.learner import Learner
from orchestrator.models.regression.model import Combination, Extrapolation, RegressionModel
from orchestrator.models.regression.samples import Samples, Series, arranged
from orchestrator.models.regression.trend import fit_trend
from orchestrator.models.zero import Label, ZeroModel
from orchestrator.types import Measurements

Candidates = Callable[[Samples], Sequence[Learner]]

# What predicts wherever nothing better can be fitted.
TREND = Learner(family="trend", name="log-linear trend", fit=fit_trend)
# Samples below which nothing can be compared, and the standard deviation of the error that is then assumed.
# Chosen by hand; not derived.
_FEW, _UNKNOWN = 5, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What a family of learners brings.

    Attributes
    ----------
    inside
        Candidates within the measured range.
    outside
        Candidates beyond it.
    combine
        Whether several may be combined, or the best one is taken alone.
    """

    inside: Candidates
    outside: Candidates
    combine: bool = False


def modeler_of(family: Family, *, aggregate: str = "auto", seed: int = 0) -> Modeler:
    """Return a modeler that fits the learners of a family, one model per call path and metric.

    Raises
    ------
    ModelError
        For an unknown aggregate; and by the modeler when no call path can be fitted.
    """
    if aggregate not in AGGREGATES:
        raise ModelError(f"aggregate is {aggregate!r}: use one of {', '.join(AGGREGATES)}")

    def model(measurements: Measurements) -> tuple[Model, ...]:
        series, zeros = arranged(measurements, aggregate)
        models: dict[Label, Model] = {label: ZeroModel.of(label) for label in zeros}
        with one_thread():
            for item in series:
                models[item.callpath, item.metric, ()] = fit(item, family, np.random.default_rng(seed))
        return data.in_order(measurements, models)

    return model


def fit(series: Series, family: Family, rng: np.random.Generator) -> RegressionModel:
    """Fit the family's best to a call path."""
    samples = series.samples
    if len(samples) < _FEW:
        return _of_few(series)
    splits = folds(len(samples), rng)
    chosen = finalists([*family.inside(samples), TREND], samples, rng)
    found = compared(chosen, samples, splits, rng)
    share = weights(found) if family.combine else np.eye(1, len(found.learners))[0]
    used = [k for k in np.flatnonzero(share) if np.isfinite(found.errors[k])]
    learners, weight = [found.learners[k] for k in used], tuple(float(share[k]) for k in used)
    if not used:
        raise ModelError(f"{series.callpath}: no learner of the family can be fitted")
    inside = _combination(learners, weight, samples, rng)
    residuals = share[used] @ found.residuals[used]
    noise = _noise(series, residuals)
    errors = Errors.of(residuals, float(np.sqrt(np.mean(noise**2 / samples.runs[found.rows]))))
    return RegressionModel(
        callpath=series.callpath,
        metric=series.metric,
        axes=samples.axes,
        inside=inside,
        folds=_fold_fits(learners, weight, samples, splits, rng),
        errors=errors,
        outside=_outside(found.learners, learners[0], family, samples, errors, rng),
        noise=noise,
        shared_noise=series.shared_sigma,
        smape=float(200 * np.tanh(np.abs(samples.y - inside.at(samples.x)) / 2).mean()),
        notes=series.notes,
        reasons=_reasons(found, share),
    )


def _of_few(series: Series) -> RegressionModel:
    """Return the trend with an interval that says that nothing is known."""
    samples, trend = series.samples, fit_trend(series.samples)
    return RegressionModel(
        callpath=series.callpath,
        metric=series.metric,
        axes=samples.axes,
        inside=Combination((trend,), (1.0,)),
        folds=(),
        errors=Errors.of(np.array([-_UNKNOWN, _UNKNOWN]), 0.0),
        outside={},
        noise=series.sigma,
        shared_noise=series.shared_sigma,
        smape=float(200 * np.tanh(np.abs(samples.y - trend.at(samples.x)) / 2).mean()),
        notes=(*series.notes, f"{len(samples)} points: too few to compare learners; the interval is a guess"),
        reasons=(),
    )


def _combination(
    learners: Sequence[Learner], weight: tuple[float, ...], samples: Samples, rng: np.random.Generator
) -> Combination:
    return Combination(tuple(learner.fitted(samples, rng) for learner in learners), weight)


def _fold_fits(
    learners: Sequence[Learner],
    weight: tuple[float, ...],
    samples: Samples,
    splits: Sequence[Split],
    rng: np.random.Generator,
) -> tuple[Combination, ...]:
    if len(splits) < 2:
        return ()
    return tuple(_combination(learners, weight, samples.rows(split.fitted), rng) for split in splits)


def _noise(series: Series, residuals: Floats) -> float:
    """Return the noise of a repetition; what is left over bounds a guess."""
    if not series.noise_is_guessed:
        return series.sigma
    return float(min(series.sigma, np.median(np.abs(residuals)) / 0.6745))


def _outside(
    inside: Sequence[Learner],
    best: Learner,
    family: Family,
    samples: Samples,
    errors: Errors,
    rng: np.random.Generator,
) -> dict[int, Extrapolation]:
    """Return per axis what predicted its left-out largest values best, plain or anchored at the edge."""
    numeric = [k for k, axis in enumerate(samples.axes) if not axis.is_categorical]
    learners = list(dict.fromkeys([*family.outside(samples), TREND, *inside]))
    compared_there = {item.axis: item for item in beyond(learners, best, samples, rng)}
    found: dict[int, Extrapolation] = {}
    for axis in numeric:
        item = compared_there.get(axis)
        if item is None:  # too few values to tell: the trend is the safest, and little is known
            found[axis] = Extrapolation(fitted=fit_trend(samples), anchored=True, growth=1.0)
            continue
        place = int(np.argmin(item.errors))
        anchored, which = place >= len(learners), place % len(learners)
        fitted = attempt(learners[which], samples, rng) or fit_trend(samples)
        rate = growth(item.distances, item.residuals[place], errors.spread)
        found[axis] = Extrapolation(fitted=fitted, anchored=anchored, growth=rate)
    return found


def _reasons(found: Compared, share: Floats) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"name": learner.name, "mlogq": float(error) if np.isfinite(error) else None, "weight": float(weight)}
        for learner, error, weight in zip(found.learners, found.errors, share, strict=True)
    )
