"""The modeler of Gaussian processes in the logarithms, alone or around formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models import data
from orchestrator.models.base import Category, Modeler
from orchestrator.models.blas import one_thread
from orchestrator.models.curves.design import Design
from orchestrator.models.curves.evidence import Formulas
from orchestrator.models.curves.explanations import Explanations, Scatter, explain
from orchestrator.models.curves.model import CurveModel
from orchestrator.models.noise import AGGREGATES, GUESS_WEIGHT, Located, locate
from orchestrator.models.symbolic import Symbolic
from orchestrator.types import Measurements

Found = tuple[Formulas | None, Symbolic | None]
"""Formulas of a call path, and the most probable one as a model."""


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

    def model(measurements: Measurements) -> tuple[CurveModel, ...]:
        return fit(measurements, aggregate, lambda label, category: (None, None))

    return model


def fit(
    measurements: Measurements,
    aggregate: str,
    formulas: Callable[[tuple[str, str], Category], Found],
) -> tuple[CurveModel, ...]:
    """Weigh curves, and formulas where there are some, for every call path.

    Parameters
    ----------
    measurements
        What was measured.
    aggregate
        As in `modeler`.
    formulas
        Gives those of a call path with its metric, in a category.
    """
    found, zeros = data.groups(measurements, positive=True)
    models: dict[tuple[str, str, Category], CurveModel] = {}
    with one_thread():
        for group in found:
            for fitted in _fit_group(
                group, aggregate, [formulas(label, group.category) for label in group.labels]
            ):
                models[fitted.callpath, fitted.metric, fitted.category] = fitted
    for callpath, metric, category in zeros:
        models[callpath, metric, category] = CurveModel(
            callpath=callpath,
            metric=metric,
            parameters=(),
            category=category,
            smape=0.0,
            noise=0.0,
            remarks=("every value is zero",),
        )
    return data.in_order(measurements, models)


def _fit_group(group: data.Group, aggregate: str, found: Sequence[Found]) -> list[CurveModel]:
    located = locate(group.values, aggregate, group.origins)
    # One matrix for all call paths: robust weights differ between them by little.
    count = np.maximum(located.count.mean(axis=0), 1e-3)
    formulas = [item for item, _ in found]
    design = Design.of(group.points, count)
    scatter = [
        Scatter(sigma=float(sigma), freedom=float(freedom))
        for sigma, freedom in zip(located.sigma, located.freedom, strict=True)
    ]
    explained = explain(design, located.log_value, scatter, formulas)
    return [_model(group, located, k, item, found[k][1]) for k, item in enumerate(explained)]


def _model(
    group: data.Group, located: Located, row: int, explained: Explanations, form: Symbolic | None
) -> CurveModel:
    callpath, metric = group.labels[row]
    residuals = located.log_value[row] - explained.weights @ explained.mean(group.points)
    guessed = ("no point was repeated: the noise is a guess",) if located.freedom[row] <= GUESS_WEIGHT else ()
    return CurveModel(
        callpath=callpath,
        metric=metric,
        parameters=group.parameters,
        category=group.category,
        smape=float(200 * np.tanh(np.abs(residuals) / 2).mean()),
        noise=float(located.sigma[row]),
        remarks=(*group.notes[row], *guessed),
        corner=tuple(map(float, group.points.max(axis=0))) if group.parameters else (),
        explained=explained,
        form=form,
        shared_noise=float(located.shared_sigma[row]),
    )
