"""Oliveira's speedup model: Amdahl's law with a parallel share and an overhead that depend on problem size.

    S = 1 / ((1 - f) + f / p + Q),  f = clip(f1 + f2 / p + f3 f4^n, 0, 1),  Q = f5 + f6 p / f7^n

with p processes and problem size n (Oliveira et al., Application Speedup Characterization, ICPE 2018
Companion; the contender of section 5.6 of Alasandagutti et al., Grey-Box Machine Learning Prediction of
Parallel Application Scaling). Strong scaling only: speedups are relative to one process at the same size.

Two fits minimise the mean squared error of speedups: particle swarms as in the papers, and least squares from
many starts. Both search the same box, so that both can reach the same model. In place of the law it is an
overhead of the law: the ratio of both speedups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult, least_squares

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats
from orchestrator.models.regression.learner import Fitted
from orchestrator.models.regression.samples import Samples
from orchestrator.models.speedup.amdahl import relative_time
from orchestrator.models.speedup.law import Law, Settings, within
from orchestrator.models.speedup.layout import Layout

PARTICLES, ITERATIONS = 100, 1000  # of the grey-box paper, section 5.6
STARTS = 40  # of the search, as the law has many local optima. Chosen by hand; not derived
# Evaluations of each start, of which the best go on, with so many: more, or all to the end, change nothing.
_FIRST, _KEPT, _EVALUATIONS = 10, 5, 50
# Places of which the best is a start: much of the box is flat, because the share is cut off there.
_TRIED = 50

# What is searched: f1, f2, f3, log f4, f5, log f6, log f7. Bases and f6 are positive and of unknown
# magnitude, so their logarithms are searched. With n in units of the largest fitted size, f4 <= 1 keeps f
# between f1 and f1 + f3 however large n grows. Q >= 0 keeps the denominator positive. The box is our own.
_LOW = np.array([0.0, -1.0, -1.0, -14.0, 0.0, -25.0, -7.0])
_HIGH = np.array([1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 14.0])
_LOGARITHMIC = [3, 5, 6]
_LARGEST = 500.0  # of exponents: powers stay finite far beyond the fitted sizes

# Clerc and Kennedy's constriction: swarms converge, and still explore.
_INERTIA, _ATTRACTION = 0.7298, 1.49618
_FASTEST = 0.5  # share of the box that a particle crosses in one step


@dataclass(frozen=True, slots=True, eq=False)
class Oliveira:
    """A fitted model."""

    coefficients: Floats  # f1 to f7, for problem sizes in units of ``unit``
    # The largest problem size that was fitted. Another unit only changes f4 and f7.
    unit: float

    @property
    def text(self) -> str:
        """The model on one line."""
        f1, f2, f3, f4, f5, f6, f7 = (f"{value:.4g}" for value in self.coefficients)
        size = f"(n / {self.unit:.6g})"
        share = f"clip({f1} + {f2} / p + {f3} * {f4}**{size}, 0, 1)".replace("+ -", "- ")
        return f"1 / (1 - f + f / p + Q), f = {share}, Q = {f5} + {f6} * p / {f7}**{size}"

    def speedup(self, processes: Floats, size: Floats) -> Floats:
        """Return speedups over one process.

        Parameters
        ----------
        processes, size
            Numbers of processes, and problem sizes in the unit that was fitted; shape (n,) or scalars.
        """
        return _speedup(self.coefficients, np.asarray(processes, float), np.asarray(size, float) / self.unit)


def _speedup(f: Floats, p: Floats, n: Floats) -> Floats:
    """Return speedups of coefficients (7, ...) that broadcast with processes and relative sizes."""
    share = np.clip(_share(f, p, n), 0.0, 1.0)
    return np.asarray(1 / (1 - share + share / p + f[4] + f[5] * p * _power(f[6], -n)))


def _share(f: Floats, p: Floats, n: Floats) -> Floats:
    """Return the parallel share before it is cut to [0, 1]."""
    return np.asarray(f[0] + f[1] / p + f[2] * _power(f[3], n))


def _power(base: Floats, exponent: Floats) -> Floats:
    return np.asarray(np.exp(np.clip(np.log(base) * exponent, -_LARGEST, _LARGEST)))


def _coefficients(place: Floats) -> Floats:
    """Return f1 to f7 at a place in the searched box, shape (7, ...)."""
    found = place.copy()
    found[_LOGARITHMIC] = np.exp(place[_LOGARITHMIC])
    return found


def oliveira_swarm(
    processes: Floats,
    size: Floats,
    speedups: Floats,
    rng: np.random.Generator,
    *,
    particles: int = PARTICLES,
    iterations: int = ITERATIONS,
) -> Oliveira:
    """Fit by particle swarm optimisation: every particle is drawn to its own best place and to the swarm's.

    Parameters
    ----------
    processes, size, speedups
        Measured speedups over one process at the same problem size, shape (n,) each.
    rng
        Of the places where particles begin and of their steps.
    particles, iterations
        Of the swarm.

    Raises
    ------
    ModelError
        For no or unusable samples.
    """
    p, n, s, unit = _checked(processes, size, speedups)
    width = (_HIGH - _LOW)[:, None]
    place = _drawn(particles, rng)
    step = width * rng.uniform(-_FASTEST, _FASTEST, place.shape)
    own, own_error = place.copy(), _errors(place, p, n, s)
    for _ in range(iterations):
        leader = own[:, [np.argmin(own_error)]]
        pulls = rng.random((2, *place.shape))
        step = _INERTIA * step + _ATTRACTION * (pulls[0] * (own - place) + pulls[1] * (leader - place))
        step = np.clip(step, -_FASTEST * width, _FASTEST * width)
        moved = place + step
        place = np.clip(moved, _LOW[:, None], _HIGH[:, None])
        step = np.where(moved == place, step, 0.0)  # particles that reach a wall stop there
        error = _errors(place, p, n, s)
        better = error < own_error
        own[:, better], own_error[better] = place[:, better], error[better]
    return Oliveira(_coefficients(own[:, np.argmin(own_error)]), unit)


def oliveira_least_squares(
    processes: Floats, size: Floats, speedups: Floats, rng: np.random.Generator, *, starts: int = STARTS
) -> Oliveira:
    """Fit by nonlinear least squares from many starts, each the best of some random places.

    After a few steps the best ones go on: of six drawn sets the squared error rose by 2 % in one, and fits
    take less than half the time.

    Parameters and errors are those of `oliveira_swarm`.
    """
    p, n, s, unit = _checked(processes, size, speedups)

    def errors(place: Floats) -> Floats:
        return _speedup(_coefficients(place), p, n) - s

    def slopes(place: Floats) -> Floats:
        return _jacobian(_coefficients(place), p, n)

    def improved(place: Floats, most: int) -> OptimizeResult:
        width = _HIGH - _LOW
        return least_squares(errors, place, jac=slopes, bounds=(_LOW, _HIGH), x_scale=width, max_nfev=most)

    first = sorted(
        (improved(start, _FIRST) for start in _starts(starts, p, n, s, rng)), key=lambda fit: float(fit.cost)
    )
    best = min((improved(fit.x, _EVALUATIONS) for fit in first[:_KEPT]), key=lambda fit: float(fit.cost))
    return Oliveira(_coefficients(best.x), unit)


def _checked(processes: Floats, size: Floats, speedups: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Return processes, sizes in units of the largest, speedups, and this unit."""
    p, n, s = (np.asarray(values, dtype=float) for values in (processes, size, speedups))
    if not len(p) == len(n) == len(s) or not len(p):
        raise ModelError(
            f"Oliveira's model: {len(p)} numbers of processes, {len(n)} sizes and {len(s)} speedups; "
            "give one of each per run, and at least one run"
        )
    for name, values in (("processes", p), ("size", n), ("speedup", s)):
        wrong = ~(np.isfinite(values) & (values > 0))
        if wrong.any():
            raise ModelError(
                f"Oliveira's model: {name} is {values[wrong][0]:g} in sample {int(np.argmax(wrong))}: "
                "finite positive numbers are needed; leave such runs out"
            )
    unit = float(n.max())
    return p, n / unit, s, unit


def _drawn(count: int, rng: np.random.Generator) -> Floats:
    """Return uniform places in the searched box, shape (7, count)."""
    return rng.uniform(_LOW[:, None], _HIGH[:, None], (len(_LOW), count))


def _starts(count: int, p: Floats, n: Floats, s: Floats, rng: np.random.Generator) -> Floats:
    """Return places from which least squares begin, shape (count, 7)."""
    places = _drawn(count * _TRIED, rng)
    best = _errors(places, p, n, s).reshape(count, _TRIED).argmin(axis=1)
    return np.asarray(places.reshape(len(_LOW), count, _TRIED)[:, np.arange(count), best].T)


def _errors(places: Floats, p: Floats, n: Floats, s: Floats) -> Floats:
    """Return mean squared errors at places (7, m), shape (m,)."""
    found = _speedup(_coefficients(places)[:, :, None], p, n)
    return np.asarray(np.mean((found - s) ** 2, axis=1))


def _jacobian(f: Floats, p: Floats, n: Floats) -> Floats:
    """Return derivatives of speedups with respect to what is searched, shape (n, 7).

    Where the share is cut off it does not change.
    """
    share = _share(f, p, n)
    free = ((share > 0) & (share < 1)) * (1 / p - 1)  # derivative of the denominator by the share
    level, overhead = f[2] * _power(f[3], n), f[5] * p * _power(f[6], -n)
    denominator = np.stack(
        [free, free / p, free * _power(f[3], n), free * level * n, np.ones_like(p), overhead, -overhead * n],
        axis=1,
    )
    return np.asarray(-(_speedup(f, p, n) ** 2)[:, None] * denominator)


Fit = Callable[[Floats, Floats, Floats, np.random.Generator], Oliveira]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Instead:
    """Oliveira's speedup over that of the law: the law corrected by it is Oliveira's model."""

    law: Law
    model: Oliveira

    @property
    def text(self) -> str:
        """What it is."""
        return f"Oliveira's model, S = {self.model.text}"

    def at(self, x: Floats) -> Floats:
        """Return logarithms of tau at coordinates (n, axes), shape (n,)."""
        n = self.law.layout.processes(x)
        found = self.model.speedup(n, _size(self.law.layout, x))
        return np.asarray(np.log(found * relative_time(n, self.law.parallel(x))))


def oliveira_by(fit: Fit) -> Callable[[Samples, Law, Settings, np.random.Generator], Fitted]:
    """Return what puts Oliveira's model, fitted by ``fit`` to runs within the cut-offs, in place of the law.

    Several problem sizes count as one, their product; categories do not count.
    """

    def fitted(samples: Samples, law: Law, settings: Settings, rng: np.random.Generator) -> Fitted:
        if settings.scaling != "strong":
            raise ModelError(f"Oliveira's model is for strong scaling, not for {settings.scaling} scaling")
        n = law.layout.processes(samples.x)
        here = (n > 1) & (n <= settings.most_processes) & within(samples.x, law.layout, settings.largest)
        if not here.any():
            raise ModelError("no run on several processes is within the cut-offs: raise them")
        x = samples.x[here]
        speedups = np.exp(np.clip(law.serial(x) - samples.y[here], -300, 300))
        return Instead(law=law, model=fit(n[here], _size(law.layout, x), speedups, rng))

    return fitted


def _size(layout: Layout, x: Floats) -> Floats:
    """Return the product of all problem sizes, 1 where there is none, shape (n,)."""
    logs = np.zeros(len(x))
    for k in layout.others:
        if layout.axes[k].logarithmic:
            logs += x[:, k]
    return np.asarray(np.exp(np.clip(logs, -500, 500)))
