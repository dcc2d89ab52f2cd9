"""The modeler ``extra-p``: Extra-P's procedure on the measurements of a campaign."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import numpy as np

from orchestrator.models import data
from orchestrator.models.base import Floats, Modeler, one_of
from orchestrator.models.blas import one_blas_thread
from orchestrator.models.extrap.model import ExtrapModel, covariance_factor
from orchestrator.models.extrap.search import Form, line, search, smape
from orchestrator.models.groupwise import by_group
from orchestrator.models.noise import Located
from orchestrator.models.pmnf.modeler import check_parameters

# How repetitions become one value: the measures of Extra-P.
_MEASURES: Mapping[str, Callable[..., Floats]] = MappingProxyType(
    {"mean": np.nanmean, "median": np.nanmedian, "min": np.nanmin, "max": np.nanmax}
)
# Values of a parameter below which Extra-P warns.
_FEW = 5
# Least prediction as a share of the smallest measured value.
_LEAST = 1e-3
_ROUNDING = 1e-9  # of arithmetic: a term that falls by less is constant
_ALONE = "Extra-P has no intervals: this one is of the coefficients alone, as if the form were known"


def modeler(*, aggregate: str = "mean") -> Modeler:
    """Return a modeler with the procedure of Extra-P 4.2.5 (see `orchestrator.models.extrap.search`).

    Parameters
    ----------
    aggregate
        How repetitions become one value: ``"mean"`` (Extra-P's default), ``"median"``, ``"min"``, ``"max"``.

    Raises
    ------
    ModelError
        For an unknown aggregate; and by the modeler when no call path can be fitted.
    """
    one_of("aggregate", aggregate, _MEASURES)

    def fit(group: data.Group, located: Located) -> Iterator[ExtrapModel]:
        check_parameters(group)
        values = np.asarray(_MEASURES[aggregate](group.values, axis=2), np.float64)
        remarks = _remarks(group)
        with one_blas_thread(), np.errstate(all="ignore"):
            for row, y in enumerate(values):
                yield _model(group, located, row, y, remarks)

    return by_group(fit, "none")


def _model(group: data.Group, located: Located, row: int, y: Floats, remarks: tuple[str, ...]) -> ExtrapModel:
    callpath, metric = group.labels[row]
    form = search(group.points, y)
    fitted = form.at(group.points)
    freedom = len(y) - len(form.coefficients)
    return ExtrapModel(
        callpath=callpath,
        metric=metric,
        parameters=group.parameters,
        category=group.category,
        smape=smape(fitted, y),
        noise=float(located.sigma[row]),
        notes=(*group.notes[row], *remarks, *_negative(form, group.points, y), _ALONE),
        form=form,
        factor=covariance_factor(form, group.points, _deviation(y, fitted, located, row, freedom), freedom),
        least=_LEAST * float(y.min()),
        shared_noise=float(located.shared_sigma[row]),
    )


def _deviation(y: Floats, fitted: Floats, located: Located, row: int, freedom: int) -> Floats:
    """Return the standard deviation of every value, from noise and lack of fit, both relative; shape (n,)."""
    residual = np.sum(((y - fitted) / y) ** 2) / max(freedom, 1)
    noise = located.sigma[row] ** 2 / np.maximum(located.count[row], 1)
    return np.asarray(y * np.sqrt(np.maximum(residual, noise)), np.float64)


def _remarks(group: data.Group) -> tuple[str, ...]:
    """Return what the points of a group lack for Extra-P."""
    found = []
    for axis, name in enumerate(group.parameters):
        longest = len(line(group.points, np.ones(len(group.points)), axis)[0])
        if longest < _FEW:
            found.append(
                f"{longest} values of {name} on a line: Extra-P asks for {_FEW}"
                + (f", and takes the model not to depend on {name}" if longest == 1 else "")
            )
        if group.points[:, axis].min() < 1:
            found.append(f"values of {name} are below 1: its logarithm is not tried")
    return tuple(found)


def _negative(form: Form, points: Floats, y: Floats) -> tuple[str, ...]:
    """Say that a part of the function falls; a negative constant of rounding errors is none."""
    falls = (form.coefficients * form.design(points) < -_ROUNDING * y[:, None]).any()
    if not falls:
        return ()
    return ("a coefficient is negative: where the function is not positive, the prediction is next to zero",)
