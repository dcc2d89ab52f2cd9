"""The PMNF modeler: joint choice of one hypothesis over all parameters, for all call paths at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models import data
from orchestrator.models.base import Model, Modeler
from orchestrator.models.correction import ROUGH, Features
from orchestrator.models.fitting import columns
from orchestrator.models.hypotheses import FALLING, Exponents, Floats, block_values, exponent_set
from orchestrator.models.model import PmnfModel
from orchestrator.models.noise import AGGREGATES, locate
from orchestrator.models.posterior import Posterior
from orchestrator.models.solver import Solution, Task, solve
from orchestrator.models.trend import falling
from orchestrator.types import Measurements


@dataclass(frozen=True, slots=True)
class Options:
    """How to search; see `modeler`."""

    exponents: tuple[Exponents, ...]
    negative: str
    aggregate: str
    members: int
    wide: bool


def modeler(
    *,
    exponents: str | Iterable[Sequence[float]] = "paper",
    negative_exponents: str | bool = "auto",
    aggregate: str = "auto",
    members: int = 200,
    wide: bool = True,
) -> Modeler:
    """Return a modeler of the performance model normal form.

    Parameters
    ----------
    exponents
        ``"paper"``, ``"extra-p"``, or pairs [exponent, log exponent].
    negative_exponents
        True, False, or ``"auto"``: where the values fall along a parameter.
    aggregate
        How repetitions become one value: ``auto``, ``none``, ``mean``, ``median`` or ``min``.
    members
        Most hypotheses kept per model.
    wide
        Search beyond one term per parameter where the data bear it.
    """
    options = Options(exponent_set(exponents), str(negative_exponents).lower(), aggregate, members, wide)
    if options.negative not in ("auto", "true", "false"):
        raise ModelError(f"negative_exponents is {negative_exponents!r}: use true, false or auto")
    if aggregate not in AGGREGATES:
        raise ModelError(f"aggregate is {aggregate!r}: use one of {', '.join(AGGREGATES)}")

    def model(measurements: Measurements) -> tuple[Model, ...]:
        found, zeros = data.groups(measurements)
        models: dict[tuple[str, str, data.Category], Model] = {}
        for group in found:
            for fitted in _fit_group(group, options):
                models[fitted.callpath, fitted.metric, fitted.category] = fitted
        for label in zeros:
            models[label] = _zero(*label)
        order = {(item.callpath, item.metric): k for k, item in enumerate(measurements.items)}
        return tuple(models[key] for key in sorted(models, key=lambda key: (order[key[:2]], key[2])))

    return model


def _zero(callpath: str, metric: str, category: data.Category) -> PmnfModel:
    none = np.zeros((1, 0))
    posterior = Posterior(
        weights=np.ones(1),
        exponents=np.zeros((1, 1, 1, 2)),
        coefficients=np.zeros((1, 2)),
        covariance=np.zeros((1, 2, 2)),
        misfit=np.zeros(1),
        features=Features.of(np.ones((1, 1))),
        correction=none,
        coupling=np.zeros((1, 0, 2)),
        correction_covariance=np.zeros((1, 0, 0)),
        smooth=np.zeros(1),
    )
    return PmnfModel(callpath, metric, (), category, 0.0, 0.0, ("every value is zero",), posterior)


def _fit_group(group: data.Group, options: Options) -> list[PmnfModel]:
    points = group.points if group.parameters else np.ones((len(group.points), 1))
    features = Features.of(points)
    located = locate(group.values, options.aggregate)
    if options.negative == "auto":
        falls = falling(features, points, located)
    else:
        falls = np.full((len(group.labels), points.shape[1]), options.negative == "true")
    models: list[PmnfModel | None] = [None] * len(group.labels)
    for pattern in np.unique(falls, axis=0):
        rows = np.flatnonzero((falls == pattern).all(axis=1))
        blocks = tuple(_blocks(points[:, k], options, falls=bool(f)) for k, f in enumerate(pattern))
        tables = tuple(block_values(points[:, k], b) for k, b in enumerate(blocks))
        task = Task(tables, features(points), 256, options.wide)
        solution = solve(task, group.values[rows], located.rows(rows))
        for k, row in enumerate(rows):
            models[row] = _model(group, task, features, blocks, solution, k, int(row), options)
    return [m for m in models if m is not None]


def _blocks(x: Floats, options: Options, *, falls: bool) -> Floats:
    """Blocks that can be evaluated at all values of a parameter; the constant comes first."""
    if np.all(x == x[0]):
        return np.zeros((1, 2))
    pairs = [(0.0, 0.0), *options.exponents]
    if falls:
        pairs += [pair for pair in FALLING if pair not in pairs]
    if x.min() < 1:
        pairs = [p for p in pairs if p[1] == 0]
    if x.min() <= 0:
        pairs = [p for p in pairs if p[0] >= 0]
    return np.array(pairs)


def _model(
    group: data.Group,
    task: Task,
    features: Features,
    blocks: tuple[Floats, ...],
    solution: Solution,
    row: int,
    place: int,
    options: Options,
) -> PmnfModel:
    begin, end = np.searchsorted(solution.candidates.row, [row, row + 1])
    score = solution.fits.score[begin:end]
    index = begin + np.flatnonzero(score > score[0] - 8)[: options.members]
    posterior = _posterior(task, features, blocks, solution, row, index)
    predicted = np.exp(
        np.log(_values(task, solution, index[:1])[0]) + task.features @ posterior.correction[0]
    )
    measured = np.exp(solution.located.log_value[row])
    smape = float(np.mean(200 * np.abs(measured - predicted) / (measured + predicted)))
    callpath, metric = group.labels[place]
    return PmnfModel(
        callpath,
        metric,
        group.parameters,
        group.category,
        smape,
        float(solution.located.sigma[row]),
        group.notes[place],
        posterior,
    )


def _values(task: Task, solution: Solution, index: np.ndarray) -> Floats:
    z = columns(solution.candidates.terms[index], task.tables)
    c = solution.fits.coefficients[index]
    values: Floats = c[:, :1] + np.einsum("tcn,ct->cn", z, c[:, 1:])
    return values


def _posterior(
    task: Task,
    features: Features,
    blocks: tuple[Floats, ...],
    solution: Solution,
    row: int,
    index: np.ndarray,
) -> Posterior:
    fits, weighting, terms = solution.fits.take(index), solution.weighting, solution.candidates.terms[index]
    weights = np.exp(fits.score - fits.score.max())
    weights /= weights.sum()
    exponents = np.stack([b[terms[:, :, k]] for k, b in enumerate(blocks)], axis=2)
    z = np.concatenate([np.ones((1, len(index), task.features.shape[0])), columns(terms, task.tables)])
    z[1:][~terms.any(axis=2).T] = 0.0
    value = np.einsum("tkn,kt->kn", z, fits.coefficients)
    residual = solution.located.log_value[row] - np.log(value)
    gain = weighting.spread[row] @ (task.features * weighting.weights[row][:, None]).T
    lack = np.maximum(fits.variance - weighting.variance[row], 0)
    smooth = np.sqrt(weighting.smooth[row] * fits.variance)
    rough = ROUGH * smooth**2
    return Posterior(
        weights=weights,
        exponents=exponents,
        coefficients=fits.coefficients,
        covariance=fits.covariance * fits.variance[:, None, None],
        misfit=np.sqrt(rough if weighting.smooth[row] > 0 else lack),
        features=features,
        correction=residual @ gain.T,
        coupling=np.einsum("rn,tkn->krt", gain, z / value),
        correction_covariance=weighting.spread[row] * fits.variance[:, None, None],
        smooth=smooth,
    )
