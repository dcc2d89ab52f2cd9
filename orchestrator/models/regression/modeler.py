"""A modeler from a family of learners: choose by what was left out, fit again to all, keep the errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models import data
from orchestrator.models.base import Floats, Key, Model, Modeler, finite, key_of, one_of, smape_of
from orchestrator.models.blas import one_blas_thread
from orchestrator.models.noise import AGGREGATES
from orchestrator.models.regression.choice import Choice, Family, Memory, choose, in_order
from orchestrator.models.regression.cross_validation import attempt
from orchestrator.models.regression.errors import UNKNOWN, Errors
from orchestrator.models.regression.folds import folds
from orchestrator.models.regression.learner import Learner, Streams, streams
from orchestrator.models.regression.model import Combination, Continuation, Extrapolation, RegressionModel
from orchestrator.models.regression.samples import Samples, Series, arranged
from orchestrator.models.regression.trend import fit_trend
from orchestrator.models.spread import spread
from orchestrator.models.zero import ZeroModel
from orchestrator.types import Measurements

# Samples below which nothing can be compared, and the standard deviation of the error that is then assumed.
# Chosen by hand; not derived.
_FEW, _UNKNOWN = 5, 1.0
# Errors fall about with this power of the number of samples: those of the fit to all are smaller than those
# of fits without a part. Between 1/5 and 1/3 on measured tuning spaces.
_LEARNING = 0.25
# Shares of changes beyond the range from which on nothing is said of them.
_WHOLE = 0.9
# What predicts beyond the range was chosen among few samples, and is fitted to no more than so many.
_MOST_BEYOND = 32_768


def modeler_of(family: Family, *, aggregate: str = "auto", seed: int = 0) -> Modeler:
    """Return a modeler that fits the learners of a family, one model per call path and metric.

    Raises
    ------
    ModelError
        For an unknown aggregate; and by the modeler when no call path can be fitted.
    """
    one_of("aggregate", aggregate, AGGREGATES)

    memory = Memory()

    def model(measurements: Measurements) -> tuple[Model, ...]:
        series, zeros = arranged(measurements, aggregate)
        models: dict[Key, Model] = {key: ZeroModel.of(key) for key in zeros}
        for item in fits(series, family, memory, seed):
            models[key_of(item)] = item
        return data.in_order(measurements, models)

    return model


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """A fit that needs nothing else."""

    series: Series
    family: Family
    first: Samples | None  # what learners are chosen with; None where points are too few for a choice
    choice: Choice | None  # the one that was made before with the same
    seed: int


def fits(series: Sequence[Series], family: Family, memory: Memory, seed: int) -> Iterator[RegressionModel]:
    """Fit the family's best to call paths, in their order; ``memory`` saves choices that were made before.

    Raises
    ------
    ModelError
        When no learner can be fitted.
    """
    tasks = [_task(item, family, memory, seed) for item in series]
    for task, (choice, model) in zip(tasks, spread(_fitted, tasks), strict=True):
        if task.first is not None and choice is not None:
            memory.keep(task.first, choice)
        yield model


def _task(series: Series, family: Family, memory: Memory, seed: int) -> _Task:
    samples = series.samples
    first = in_order(series.first()) if len(samples) >= _FEW and samples.axes else None
    choice = None if first is None else memory.get(first)
    # The function of the series knows all call paths that were measured with it: no process could get it.
    alone = replace(series, first=partial(_given, samples if first is None else first))
    return _Task(series=alone, family=family, first=first, choice=choice, seed=seed)


def _given(samples: Samples) -> Samples:
    return samples


def _fitted(task: _Task) -> tuple[Choice | None, RegressionModel]:
    """Return the model of a call path, and the choice behind it if there is one."""
    rng = np.random.default_rng(task.seed)
    with one_blas_thread():
        if task.first is None:
            return None, _of_few(task.series, task.family, rng)
        choice = task.choice
        if choice is None:
            try:
                choice = choose(task.first, task.family, np.random.default_rng(task.seed))
            except ModelError as error:
                raise ModelError(f"{task.series.callpath}: {error}") from error
        return choice, _of_choice(task.series, choice, rng)


def _of_choice(series: Series, choice: Choice, rng: np.random.Generator) -> RegressionModel:
    """Fit what was chosen to all samples, and to parts of them for its errors."""
    samples = in_order(series.samples)
    splits = folds(len(samples), rng)
    learners, weight = zip(*choice.used, strict=True)
    parts = [(samples.rows(split.fitted), streams(rng)) for split in splits]
    fits = list(spread(partial(_combination, learners, weight), parts))
    rows = np.concatenate([split.left_out for split in splits])
    predicted = [fold.at(samples.x[split.left_out]) for fold, split in zip(fits, splits, strict=True)]
    left_over = samples.y[rows] - np.concatenate(predicted)
    residuals = left_over * (1 - len(splits[0].left_out) / len(samples)) ** _LEARNING
    noise = _noise(series, left_over, samples.runs[rows])
    inside = _combination(learners, weight, (samples, streams(rng)))
    return RegressionModel(
        callpath=series.callpath,
        metric=series.metric,
        axes=samples.axes,
        inside=inside,
        # One fit without thousands of samples says nothing that all of them do not.
        folds=tuple(fits) if len(fits) > 1 else (),
        errors=Errors.of(residuals, _noise_of_samples(series, noise, samples.runs[rows])),
        outside=_outside(choice, samples, rng),
        noise=noise,
        shared_noise=min(series.shared_sigma, noise),
        smape=float(smape_of(samples.y - inside.at(samples.x))),
        notes=(*series.notes, *_doubted(choice, samples), choice.text),
        reasons=_reasons(choice),
        unvaried=series.unvaried,
    )


def _of_few(series: Series, family: Family, rng: np.random.Generator) -> RegressionModel:
    """Return the fallback, or else the trend, with an interval that says that nothing is known."""
    samples = series.samples
    fitted = attempt(family.fallback, samples, rng) or fit_trend(samples)
    return RegressionModel(
        callpath=series.callpath,
        metric=series.metric,
        axes=samples.axes,
        inside=Combination((fitted,), (1.0,)),
        folds=(),
        errors=Errors.of(np.array([-_UNKNOWN, _UNKNOWN]), 0.0),
        outside={
            axis: Extrapolation(
                opinions=((Continuation(fitted, False),),), weights=(1.0,), share=1.0, growth=UNKNOWN
            )
            for axis, item in enumerate(samples.axes)
            if not item.is_categorical
        },
        noise=series.sigma,
        shared_noise=series.shared_sigma,
        smape=float(smape_of(samples.y - fitted.at(samples.x))),
        notes=(
            *series.notes,
            f"points measured: {len(samples)}, too few to compare learners; the interval is a guess",
        ),
        reasons=(),
        unvaried=series.unvaried,
    )


def _combination(
    learners: Sequence[Learner], weight: tuple[float, ...], part: tuple[Samples, Streams]
) -> Combination:
    samples, own = part
    return Combination(tuple(learner.fitted(samples, own(learner)) for learner in learners), weight)


def _noise(series: Series, left_over: Floats, runs: Floats) -> float:
    """Return the noise of a repetition: at most what is left over where points were not fitted.

    A guess may be too much, and so may what two points show that were repeated by chance.
    """
    most = float(np.median(np.abs(left_over) * np.sqrt(runs)) / 0.6745)
    return min(series.sigma, most)


def _noise_of_samples(series: Series, noise: float, runs: Floats) -> float:
    """Return the root mean square of the noise of samples; a guess takes nothing from what was left over.

    Where nothing was repeated, nobody can tell noise from errors of the model.
    """
    return 0.0 if series.is_guess else float(np.sqrt(np.mean(noise**2 / runs)))


def _outside(choice: Choice, samples: Samples, rng: np.random.Generator) -> dict[int, Extrapolation]:
    """Fit what was chosen for beyond the range; a learner that was chosen for several axes once."""
    opinions = [opinion for item in choice.outside.values() for opinion in item.opinions]
    learners = dict.fromkeys(learner for opinion in opinions for learner, _ in opinion.learners)
    if len(samples) > _MOST_BEYOND:
        samples = samples.rows(np.sort(rng.choice(len(samples), _MOST_BEYOND, replace=False)))
    own = streams(rng)
    fitted = {learner: attempt(learner, samples, own(learner)) or fit_trend(samples) for learner in learners}
    return {
        axis: Extrapolation(
            opinions=tuple(
                tuple(Continuation(fitted[learner], anchored) for learner, anchored in opinion.learners)
                for opinion in item.opinions
            ),
            weights=tuple(opinion.weight for opinion in item.opinions),
            share=item.share,
            growth=item.growth,
        )
        for axis, item in choice.outside.items()
    }


def _doubted(choice: Choice, samples: Samples) -> Iterator[str]:
    """Say along which parameters changes beyond the range are not wholly believed."""
    shares = [
        f"{100 * item.share:.0f} % along {samples.axes[axis].name}"
        for axis, item in choice.outside.items()
        if item.share < _WHOLE
    ]
    if shares:
        yield (
            f"of the changes that are predicted beyond the measured range count {', '.join(shares)}: there "
            "values left out of fits were hardly nearer to what was predicted than to those at the edge"
        )


def _reasons(choice: Choice) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"name": learner.name, "mlogq": finite(error), "weight": float(weight)}
        for learner, error, weight in zip(choice.learners, choice.errors, choice.weights, strict=True)
    )
