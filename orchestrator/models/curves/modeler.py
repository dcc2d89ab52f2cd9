"""The modeler of Gaussian processes in the logarithms: for code whose time is no sum of a few terms."""

from __future__ import annotations

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models import data
from orchestrator.models.base import Category, Model, Modeler
from orchestrator.models.curves.model import CurveModel
from orchestrator.models.curves.regression import Curves, fit
from orchestrator.models.noise import AGGREGATES, GUESS_WEIGHT, Located, locate
from orchestrator.types import Measurements

_NOTE = "a Gaussian process in the logarithms; the expression is its power law at the largest measured values"


def modeler(*, aggregate: str = "auto") -> Modeler:
    """Return a modeler of smooth and rough curves in the logarithms of time and parameters.

    The curve is a slope per parameter, bends, products of two parameters, and random walks, each of unknown
    size (`orchestrator.models.curves.prior`).

    Parameters
    ----------
    aggregate
        How repetitions become one value, as for ``pmnf``.

    Raises
    ------
    ModelError
        For an option that makes no sense; and by the modeler when no call path can be fitted.
    """
    if aggregate not in AGGREGATES:
        raise ModelError(f"aggregate is {aggregate!r}: use one of {', '.join(AGGREGATES)}")

    def model(measurements: Measurements) -> tuple[Model, ...]:
        found, zeros = data.groups(measurements, positive=True)
        models: dict[tuple[str, str, Category], Model] = {}
        for group in found:
            for fitted in _fit_group(group, aggregate):
                models[fitted.callpath, fitted.metric, fitted.category] = fitted
        for callpath, metric, category in zeros:
            models[callpath, metric, category] = CurveModel(
                callpath=callpath,
                metric=metric,
                parameters=(),
                category=category,
                smape=0.0,
                noise=0.0,
                notes=("every value is zero",),
            )
        return data.in_order(measurements, models)

    return model


def _fit_group(group: data.Group, aggregate: str) -> list[CurveModel]:
    located = locate(group.values, aggregate, group.origins)
    # One matrix for all call paths: robust weights differ between them by little.
    count = np.maximum(located.count.mean(axis=0), 1e-3)
    curves = fit(group.points, located.log_value, count)
    return [_model(group, k, found, located) for k, found in enumerate(curves)]


def _model(group: data.Group, row: int, curves: Curves, located: Located) -> CurveModel:
    callpath, metric = group.labels[row]
    residuals = located.log_value[row] - curves.log_value(group.points)
    guessed = ("no point was repeated: the noise is a guess",) if located.freedom[row] <= GUESS_WEIGHT else ()
    return CurveModel(
        callpath=callpath,
        metric=metric,
        parameters=group.parameters,
        category=group.category,
        smape=float(200 * np.tanh(np.abs(residuals) / 2).mean()),
        noise=float(located.sigma[row]),
        notes=(*group.notes[row], *guessed, _NOTE),
        corner=tuple(map(float, group.points.max(axis=0))) if group.parameters else (),
        curves=curves,
        shared_noise=float(located.shared_sigma[row]),
    )
