"""The law alone: the time on one process, divided by the speedup of equation 2.

With T for times, w for the ratio of problem sizes and p for the parallel fraction,
``T(N, m) = T(1, m) (1 - p + p/N)`` in strong scaling; N times as much in weak scaling, where the problem
grows with N; and ``T(1, m0) / w (1 - p + p/N)`` in hybrid scaling, where one problem m0 stands for all
(section 2.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats
from orchestrator.models.regression.samples import Samples, where_known
from orchestrator.models.regression.trend import Trend, fit_trend
from orchestrator.models.speedup.amdahl import fit_fraction, fit_fractions, relative_time
from orchestrator.models.speedup.layout import Layout, References
from orchestrator.models.speedup.nearby import Nearby

SCALINGS = ("strong", "weak", "hybrid")
VARIANTS = ("aggregate", "optimal", "full-data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the law is fitted."""

    # Whose runs give p (section 5.1): ``aggregate`` one p from all runs within both cut-offs; ``optimal`` one
    # for every problem, from its runs up to ``most_processes``; ``full-data`` the same from all runs.
    variant: str
    scaling: str  # ``strong``, ``weak`` or ``hybrid``
    # By which power of a size the work grows, for ``hybrid``; 1 where nothing is said, as in the paper.
    exponents: Mapping[str, float]
    # most_processes, largest: the paper's cut-offs c_f, and w_f of every size that is named.
    most_processes: float
    largest: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Law:
    """The law, fitted to samples."""

    layout: Layout  # what the coordinates mean
    weak: bool  # whether the problem grows with N
    fraction: float  # p where one was fitted for all problems, and the mean where one was for each
    fractions: Floats | None  # logarithms of ``1 - p`` by problem; None where one p is for all
    nearby: Nearby  # looks up the measured problems
    trend: Trend  # of the logarithm of the time on one process along problems
    rest: Floats  # what the trend leaves at the measured problems, shape (problems,)

    @property
    def text(self) -> str:
        """What it is."""
        which = "parallel fraction" if self.fractions is None else "mean parallel fraction"
        return f"Amdahl's law, {which} {self.fraction:.6g}"

    def serial(self, x: Floats) -> Floats:
        """Return the logarithm of the time on one process at coordinates (n, axes), shape (n,)."""
        problem = self.layout.problem(x)
        return self.trend.at(problem) + self.nearby.mean(problem, self.rest)

    def parallel(self, x: Floats) -> Floats:
        """Return p at coordinates, shape (n,)."""
        if self.fractions is None:
            return np.full(len(x), self.fraction)
        return 1 - np.exp(self.nearby.mean(self.layout.problem(x), self.fractions))

    def at(self, x: Floats) -> Floats:
        """Return logarithms of times at coordinates (n, axes), shape (n,); NaN at unknown categories."""
        return where_known(x, self._known_at)

    def _known_at(self, x: Floats) -> Floats:
        n = self.layout.processes(x)
        return self.serial(x) + np.log(time_by_law(n, self.parallel(x), self.weak))


def time_by_law(processes: Floats, fraction: Floats | float, weak: bool) -> Floats:
    """Return the time on N processes over that on one by the law; the problem is N times as large if weak."""
    return relative_time(processes, fraction) * (processes if weak else 1.0)


def fit_law(samples: Samples, layout: Layout, settings: Settings) -> Law:
    """Fit the law to samples.

    Raises
    ------
    ModelError
        When no problem was measured on two numbers of processes.
    """
    weak = settings.scaling == "weak"
    references = References.of(samples, layout)
    fraction, fractions = _fractions(samples, layout, references, settings)
    p = fraction if fractions is None else fractions
    # The time on one process: that of the reference run, by the law where it had more.
    serial = samples.y[references.row] - np.log(time_by_law(references.processes, p, weak))
    if settings.scaling == "hybrid":
        serial = _proportional(serial, references, layout, settings.exponents)
    axes = layout.problem_axes
    problems = Samples(axes=axes, x=references.problems, y=serial, runs=np.ones(len(serial)))
    trend = fit_trend(problems)
    return Law(
        layout=layout,
        weak=weak,
        fraction=fraction,
        fractions=None if fractions is None else np.log(np.maximum(1 - fractions, 1e-12)),
        nearby=Nearby.of(axes, references.problems),
        trend=trend,
        rest=serial - trend.at(references.problems),
    )


def _fractions(
    samples: Samples, layout: Layout, references: References, settings: Settings
) -> tuple[float, Floats | None]:
    """Return p of all problems, and of every problem where the variant says so."""
    n = layout.processes(samples.x)
    n0 = references.processes[references.index]
    speedups = np.exp(np.clip(samples.y[references.row][references.index] - samples.y, -300, 300))
    ratio = n0 / n if settings.scaling == "weak" else np.ones(len(n))
    near = np.ones(len(n), bool) if settings.variant == "full-data" else n <= settings.most_processes
    if settings.variant == "aggregate":
        here = near & within(samples.x, layout, settings.largest)
        if not np.any(n[here] > n0[here]):
            raise ModelError(
                "no run within the cut-offs has more processes than the run that it is compared with: raise "
                "most_processes or largest"
            )
        return fit_fraction(n[here], ratio[here], speedups[here], n0[here]), None
    by_problem = fit_fractions(n[near], ratio[near], speedups[near], references.index[near], n0[near])
    if not by_problem:
        raise ModelError(
            "no run up to most_processes has more processes than the run that it is compared with: raise it"
        )
    # A problem with one number of processes has the p of the nearest one that has more.
    known = np.array(sorted(by_problem), dtype=np.intp)
    nearest = Nearby.of(layout.problem_axes, references.problems[known]).nearest(references.problems)
    each = np.array([by_problem[int(k)] for k in known])[nearest]
    return float(np.mean(list(by_problem.values()))), each


def within(x: Floats, layout: Layout, largest: Mapping[str, float]) -> NDArray[np.bool_]:
    """Return which coordinates have no size above its cut-off, shape (n,)."""
    inside = np.ones(len(x), bool)
    for k in layout.others:
        axis = layout.axes[k]
        if axis.name in largest:
            inside &= x[:, k] <= axis.of_value(np.array([largest[axis.name]]))[0] + 1e-12
    return inside


def _proportional(
    serial: Floats, references: References, layout: Layout, exponents: Mapping[str, float]
) -> Floats:
    """Return the time on one process as the original problem and the ratio of sizes give it.

    The original problem is the smallest one in its category.
    """
    axes = layout.problem_axes
    numeric = [k for k, axis in enumerate(axes) if axis.logarithmic]
    categorical = [k for k, axis in enumerate(axes) if axis.is_categorical]
    power = np.array([float(exponents.get(axes[k].name, 1.0)) for k in numeric])
    work = references.problems[:, numeric] @ power if numeric else np.zeros(len(serial))
    groups = references.problems[:, categorical]
    _, group = np.unique(groups, axis=0, return_inverse=True) if categorical else (0, np.zeros(len(serial)))
    result = np.empty_like(serial)
    for number in np.unique(group):
        rows = np.flatnonzero(np.asarray(group).reshape(-1) == number)
        # Of several smallest ones, the one that was measured on the fewest processes.
        original = rows[np.lexsort((references.processes[rows], work[rows]))[0]]
        result[rows] = serial[original] + work[rows] - work[original]
    return result
