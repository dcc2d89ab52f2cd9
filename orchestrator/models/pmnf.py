"""The PMNF modeler: joint choice of one hypothesis over all parameters, for all call paths at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models import data
from orchestrator.models.base import Model, Modeler
from orchestrator.models.fitting import Fits, columns, fit
from orchestrator.models.hypotheses import FALLING, Exponents, Floats, block_values, exponent_set
from orchestrator.models.model import PmnfModel, Posterior
from orchestrator.models.noise import Located, locate
from orchestrator.models.screening import Candidates, screen
from orchestrator.models.sweeping import sweep_search
from orchestrator.types import Measurements


@dataclass(frozen=True, slots=True)
class Options:
    """How to search; see `modeler`."""

    exponents: tuple[Exponents, ...]
    negative: str
    members: int


def modeler(
    *,
    exponents: str | Iterable[Sequence[float]] = "paper",
    negative_exponents: str | bool = "auto",
    members: int = 64,
) -> Modeler:
    """Return a modeler of the performance model normal form.

    Parameters
    ----------
    exponents
        ``"paper"``, ``"extra-p"``, or pairs [exponent, log exponent].
    negative_exponents
        True, False, or ``"auto"``: where the values fall along a parameter.
    members
        Most hypotheses kept per model.
    """
    options = Options(exponent_set(exponents), str(negative_exponents).lower(), members)
    if options.negative not in ("auto", "true", "false"):
        raise ModelError(f"negative_exponents is {negative_exponents!r}: use true, false or auto")

    def model(measurements: Measurements) -> tuple[Model, ...]:
        found, zeros = data.groups(measurements)
        models: dict[tuple[str, str, data.Category], Model] = {}
        for group in found:
            for fitted in _fit_group(group, options):
                models[fitted.callpath, fitted.metric, fitted.category] = fitted
        for item, category in zeros:
            models[item.callpath, item.metric, category] = _zero(item.callpath, item.metric, category)
        order = {(item.callpath, item.metric): k for k, item in enumerate(measurements.items)}
        return tuple(models[key] for key in sorted(models, key=lambda key: (order[key[:2]], key[2])))

    return model


def _zero(callpath: str, metric: str, category: data.Category) -> PmnfModel:
    posterior = Posterior(
        np.ones(1), np.zeros((1, 1, 0, 2)), np.zeros((1, 2)), np.zeros((1, 2, 2)), np.zeros(1)
    )
    return PmnfModel(callpath, metric, (), category, 0.0, 0.0, ("every value is zero",), posterior)


def _fit_group(group: data.Group, options: Options) -> list[PmnfModel]:
    located = locate(group.values)
    blocks = tuple(_blocks(group.points[:, k], options) for k in range(len(group.parameters)))
    if not blocks:
        blocks = (np.zeros((1, 2)),)
        points = np.ones((1, 1))
    else:
        points = group.points
    tables = tuple(block_values(points[:, k], b) for k, b in enumerate(blocks))
    weights = located.count / located.count.mean(axis=1, keepdims=True)
    variance = located.sigma**2 / located.count.mean(axis=1)
    if len(tables) <= 2:
        candidates = screen(tables, located.log_value, weights, variance, keep=4 * options.members)
    else:
        start = tuple(int(np.argmin(np.abs(b - [1.0, 0.0]).sum(axis=1))) for b in blocks)
        candidates = sweep_search(tables, located.log_value, weights, variance, start=start)
    prior = _log_prior(candidates, tables)
    fits = fit(candidates, tables, located.log_value, weights, variance, located.freedom, prior)
    return _models(group, located, tables, blocks, candidates, fits, variance, options)


def _blocks(x: Floats, options: Options) -> Floats:
    pairs = [(0.0, 0.0), *options.exponents]
    if options.negative == "true":
        pairs += FALLING
    if x.min() < 1:
        pairs = [p for p in pairs if p[1] == 0]
    if x.min() <= 0:
        pairs = [p for p in pairs if p[0] >= 0]
    return np.array(pairs)


def _log_prior(candidates: Candidates, tables: tuple[Floats, ...]) -> Floats:
    """Every set of parameters and way to combine them is equally probable; so is each choice of blocks."""
    present = candidates.terms.astype(bool)
    sizes = np.array([max(len(t) - 1, 1) for t in tables])
    prior: Floats = -np.sum(present * np.log(sizes), axis=(1, 2))
    return prior


def _models(
    group: data.Group,
    located: Located,
    tables: tuple[Floats, ...],
    blocks: tuple[Floats, ...],
    candidates: Candidates,
    fits: Fits,
    variance: Floats,
    options: Options,
) -> list[PmnfModel]:
    order = np.lexsort((-fits.score, candidates.row))
    starts = np.searchsorted(candidates.row[order], np.arange(len(group.labels) + 1))
    models = []
    for row, (callpath, metric) in enumerate(group.labels):
        index = order[starts[row] : starts[row + 1]][: options.members]
        score = fits.score[index]
        index = index[score > score[0] - 8]
        weights = np.exp(fits.score[index] - score[0])
        weights /= weights.sum()
        exponents = np.stack([b[candidates.terms[index, :, k]] for k, b in enumerate(blocks)], axis=2)
        spread = fits.covariance[index] * fits.variance[index, None, None]
        misfit = np.sqrt(np.maximum(fits.variance[index] - variance[row], 0))
        if not group.parameters:
            exponents = exponents[:, :, :0]
        posterior = Posterior(weights, exponents, fits.coefficients[index], spread, misfit)
        z = columns(candidates.terms[index[:1]], tables)[:, 0]
        c = fits.coefficients[index[0]]
        predicted = c[0] + c[1:] @ z
        measured = np.exp(located.log_value[row])
        smape = float(np.mean(200 * np.abs(measured - predicted) / (measured + predicted)))
        models.append(
            PmnfModel(
                callpath,
                metric,
                group.parameters,
                group.category,
                smape,
                float(located.sigma[row]),
                group.notes[row],
                posterior,
                tuple(group.points.min(axis=0)),
                tuple(group.points.max(axis=0)),
            )
        )
    return models
