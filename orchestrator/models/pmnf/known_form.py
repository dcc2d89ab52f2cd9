"""A modeler for known exponents: only the coefficients are fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import nnls

from orchestrator.errors import ModelError
from orchestrator.models.base import Model, Modeler
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.posterior import Posterior
from orchestrator.types import Measurement, Measurements

Factors = Mapping[str, tuple[float, float]]
"""The (exponent, log exponent) of every parameter in a term."""

# Residuals relative to the measured value first, then to the fitted one, which noise does not bias.
_STEPS = 2


def known_form(terms: Sequence[Factors]) -> Modeler:
    """Return a modeler that fits ``c0 + Σ c_k * term_k``, c >= 0, to relative errors.

    Comparisons use it with the true exponents: what remains is the error of the coefficients.
    """

    def model(measurements: Measurements) -> tuple[Model, ...]:
        return tuple(_fit(item, measurements.parameters, terms) for item in measurements.items)

    return model


def _fit(item: Measurement, parameters: tuple[str, ...], terms: Sequence[Factors]) -> PmnfModel:
    runs = [(point, value) for point, values in item.values.items() for value in values if value > 0]
    if not runs:
        raise ModelError(f"{item.callpath} {item.metric}: no positive value to fit")
    exponents = np.array([[[term.get(name, (0.0, 0.0)) for name in parameters] for term in terms]], float)
    size = len(terms) + 1
    blank = Posterior(
        weights=np.ones(1),
        exponents=exponents,
        coefficients=np.ones((1, size)),
        covariance=np.zeros((1, size, size)),
        misfit=np.zeros(1),
    )
    x = np.array([[point.number(name) for name in parameters] for point, _ in runs])
    values = np.array([value for _, value in runs])
    terms_at = blank.design(x)[0].T
    expected = values
    for _ in range(_STEPS):
        design = terms_at / expected[:, None]
        coefficients, distance = nnls(design, values / expected)
        expected = terms_at @ coefficients
    variance = distance**2 / max(len(runs) - size, 1)
    free = coefficients > 0  # a coefficient at its bound is not uncertain
    covariance = np.zeros((size, size))
    covariance[np.ix_(free, free)] = variance * np.linalg.pinv(design[:, free].T @ design[:, free])
    smape = float(np.mean(200.0 * np.abs(expected - values) / (expected + values)))
    noise = float(np.sqrt(variance))
    return PmnfModel(
        callpath=item.callpath,
        metric=item.metric,
        parameters=parameters,
        category=(),
        smape=smape,
        noise=noise,
        notes=(),
        posterior=replace(blank, coefficients=coefficients[None], covariance=covariance[None]),
    )
