"""Kernel learners: Gaussian processes (Rasmussen and Williams 2006) and support vector regression."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from orchestrator.models.learned.distances import scaled_columns
from orchestrator.models.learned.fitted import estimated, learner, named, unit_response
from orchestrator.models.regression.learner import Fitted, Learner, seed
from orchestrator.models.regression.samples import Samples

# Samples that kernel matrices can be built for, and from which the parameters of a kernel are estimated.
_MOST_OF_PROCESS, _MOST_OF_KERNEL, _MOST_OF_VECTORS = 2000, 400, 6000
_PENALTY = 10.0  # of errors of support vector regression, its C

KERNELS = ("matern", "rbf", "rational quadratic", "dot product", "constant")
"""Covariances of Gaussian processes; each has noise beside it."""


def gaussian_process(
    kernel: str = "matern", *, own_lengths: bool = False, by_relevance: bool = True, **derived: bool
) -> Learner:
    """Return a Gaussian process with noise.

    Parameters
    ----------
    kernel
        One of `KERNELS`.
    own_lengths
        Whether every column has its own length (automatic relevance determination): for few columns, since
        each is estimated.
    by_relevance
        Whether columns are scaled by what extra trees find relevant.
    derived
        Derived columns, see `columns_of`.
    """
    what = f"Gaussian process ({kernel})"
    name = named(what, own_lengths and "own lengths", by_relevance and "by relevance", **derived)

    def build(samples: Samples, rng: np.random.Generator) -> Fitted:
        from sklearn.gaussian_process import GaussianProcessRegressor

        scaled = scaled_columns(samples, rng, by_relevance=by_relevance, **derived)
        unit, rescaled = unit_response(samples)
        lengths = scaled.shift.size if own_lengths else 1
        part = unit.rows(rng.permutation(len(unit))[:_MOST_OF_KERNEL])
        with warnings.catch_warnings():
            # A parameter at its bound is no mistake here.
            warnings.simplefilter("ignore")
            start = GaussianProcessRegressor(_covariance(kernel, lengths), random_state=seed(rng))
            estimated("", scaled, start, part)
            process = GaussianProcessRegressor(start.kernel_, optimizer=None, copy_X_train=False)
            fitted = estimated(name, scaled, process, unit)
        # What only standard deviations need: n x n numbers.
        process.L_ = None
        return rescaled(fitted)

    return learner(name, build, most=_MOST_OF_PROCESS)


def support_vectors(
    kernel: str = "rbf",
    *,
    degree: int = 3,
    by_relevance: bool = False,
    **derived: bool,
) -> Learner:
    """Return support vector regression; ``degree`` is that of the kernel ``poly``."""
    shape = f"poly, degree {degree}" if kernel == "poly" else kernel
    what = f"support vectors ({shape}), C {_PENALTY:g}"
    name = named(what, by_relevance and "by relevance", **derived)

    def build(samples: Samples, rng: np.random.Generator) -> Fitted:
        from sklearn.svm import SVR

        scaled = scaled_columns(samples, rng, by_relevance=by_relevance, **derived)
        unit, rescaled = unit_response(samples)
        estimator = SVR(
            kernel=kernel, degree=degree, C=_PENALTY, epsilon=0.05, gamma="scale", coef0=1.0, max_iter=200_000
        )
        with warnings.catch_warnings():
            # Too few iterations make a worse fit, which the choice sees.
            warnings.simplefilter("ignore")
            return rescaled(estimated(name, scaled, estimator, unit))

    return learner(name, build, most=_MOST_OF_VECTORS)


def _covariance(kernel: str, lengths: int) -> Any:
    from sklearn.gaussian_process import kernels as k

    length, bounds = np.ones(lengths) if lengths > 1 else 1.0, (0.05, 50.0)
    shapes = {
        "matern": lambda: k.Matern(length, bounds, nu=1.5),
        "rbf": lambda: k.RBF(length, bounds),
        "rational quadratic": lambda: k.RationalQuadratic(1.0, 1.0, bounds, (1e-2, 1e3)),
        "dot product": lambda: k.DotProduct(),
        "constant": lambda: k.ConstantKernel(),
    }
    noise = k.WhiteKernel(1e-2, (1e-6, 1.0))
    return k.ConstantKernel(1.0, (1e-3, 1e2)) * shapes[kernel]() + noise
