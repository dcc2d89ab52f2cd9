"""How much repeated runs differ: the range of deviation of every call path at every point.

Ritter et al., Cost-Effective Empirical Performance Modeling, section V-E and figure 8: the noise of a kernel
at a point is the range of the repetitions' relative deviations from their mean, in percent. Of two
repetitions the range is on average 1.13 standard deviations, of five 2.33 (Tippett 1925). So the pooled
standard deviation is given, too: it does not depend on how often runs were repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats
from orchestrator.report.callpath_names import shortened
from orchestrator.report.figures import literal
from orchestrator.types import Measurement, Measurements, Point
from orchestrator.units import count

SHARE = 0.01  # of the application's time, below which the paper leaves a kernel out
_DRAWN = 24  # call paths that a figure has, the largest
_LONG = 30  # characters of a name below an axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """How much the runs of one call path differ."""

    name: str  # as shown
    # callpath, metric: what was measured; empty for all call paths together.
    callpath: str
    metric: str
    ranges: Mapping[Point, float]  # per point that was repeated, the range of relative deviations in percent
    # Standard deviation of a run around the mean of its point, in percent, pooled over points.
    deviation: float

    @property
    def values(self) -> Floats:
        """The ranges as an array, shape (points,)."""
        return np.array(list(self.ranges.values()))


@dataclass(frozen=True, slots=True)
class NoiseReport:
    """The call paths with their noise, the largest first; `levels` are all ranges together."""

    kernels: tuple[Kernel, ...]
    levels: Floats
    notes: tuple[str, ...]


def noise_report(known: Measurements, share: float = SHARE) -> NoiseReport:
    """Return the noise of all call paths that take at least a share of the application's time.

    Parameters
    ----------
    known
        Measurements of one metric. The application's time at a point is that of its largest call path.
    share
        Of that time, over all points.

    Raises
    ------
    ModelError
        When no call path was measured more than once at any point.
    """
    names = shortened(item.callpath for item in known.items)
    totals = _totals(known)
    kernels, small, once = [], 0, 0
    for item in sorted(known.items, key=lambda item: -_time(item)):
        whole = sum(totals[point] for point in item.values)
        if whole <= 0 or _time(item) < share * whole:
            small += 1
        elif (found := _kernel(item, names[item.callpath])) is None:
            once += 1
        else:
            kernels.append(found)
    if not kernels:
        raise ModelError(
            "no call path was measured more than once at a point: the noise shows only where runs are "
            "repeated"
        )
    notes = []
    if small:
        notes.append(f"left out: {count(small, 'call path')} below {100 * share:g} % of the time")
    if once:
        notes.append(f"left out: {count(once, 'call path')}, measured once at every point")
    return NoiseReport(tuple(kernels), np.concatenate([kernel.values for kernel in kernels]), tuple(notes))


def _time(item: Measurement) -> float:
    return sum(_mean(values) for values in item.values.values())


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if np.isfinite(value)]
    return float(np.mean(finite)) if finite else 0.0


def _totals(known: Measurements) -> dict[Point, float]:
    totals: dict[Point, float] = {}
    for item in known.items:
        for point, values in item.values.items():
            totals[point] = max(totals.get(point, 0.0), _mean(values))
    return totals


def _kernel(item: Measurement, name: str) -> Kernel | None:
    """Return the noise of a call path; None where nothing positive was repeated."""
    ranges: dict[Point, float] = {}
    squares, freedom = 0.0, 0
    for point, values in item.values.items():
        runs = np.array([value for value in values if np.isfinite(value)])
        if len(runs) > 1 and runs.mean() > 0:
            relative = 100.0 * (runs / runs.mean() - 1.0)
            ranges[point] = float(np.ptp(relative))
            squares += float(relative @ relative)
            freedom += len(runs) - 1
    if not ranges:
        return None
    deviation = float(np.sqrt(squares / freedom))
    return Kernel(name=name, callpath=item.callpath, metric=item.metric, ranges=ranges, deviation=deviation)


def document(report: NoiseReport) -> dict[str, Any]:
    """Return the report as a JSON-ready document; all figures are percentages."""
    return {
        "all": _statistics(report.levels),
        "kernels": [
            {
                "callpath": kernel.callpath,
                "metric": kernel.metric,
                **_statistics(kernel.values),
                "deviation": kernel.deviation,
                "points": [
                    {"point": point.as_dict(), "range": value} for point, value in kernel.ranges.items()
                ],
            }
            for kernel in report.kernels
        ],
        "notes": list(report.notes),
    }


def _statistics(levels: Floats) -> dict[str, float]:
    return {
        "mean": float(levels.mean()),
        "median": float(np.median(levels)),
        "least": float(levels.min()),
        "most": float(levels.max()),
    }


def table(report: NoiseReport) -> Table:
    """Return a line per call path, and one for all, for a terminal."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("noise: range of deviation", overflow="fold")
    for head in ("points", "mean", "median", "min", "max", "of a run"):
        shown.add_column(head, justify="right")
    shown.add_column("noisiest at")
    for kernel in report.kernels:
        worst = max(kernel.ranges, key=lambda point: kernel.ranges[point])
        deviation = f"{kernel.deviation:.2f} %"
        shown.add_row(kernel.name, *_cells(kernel.values), deviation, str(worst))
    if len(report.kernels) > 1:
        shown.add_row("all", *_cells(report.levels), "", "")
    return shown


def _cells(levels: Floats) -> list[str]:
    return [str(len(levels)), *(f"{value:.2f} %" for value in _statistics(levels).values())]


def violins(report: NoiseReport) -> Figure:
    """Draw how the ranges are distributed, for all call paths and for the largest of them (figure 8).

    Lines are the mean (long), the median (short), the smallest and the largest range.
    """
    shown = report.kernels[:_DRAWN]
    names = ["all", *(kernel.name for kernel in shown)] if len(shown) > 1 else [shown[0].name]
    levels = [report.levels, *(kernel.values for kernel in shown)] if len(shown) > 1 else [report.levels]
    figure = Figure(figsize=(max(3.0, 0.9 + 0.55 * len(names)), 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.violinplot(levels, widths=0.8, showmeans=True, showextrema=True)
    places = np.arange(1, len(names) + 1)
    medians = [float(np.median(values)) for values in levels]
    axes.hlines(medians, places - 0.12, places + 0.12, color="C1")
    short = [name if len(name) <= _LONG else f"...{name[-_LONG:]}" for name in names]
    axes.set_xticks(places, list(map(literal, short)), rotation=60, ha="right", fontsize="x-small")
    axes.set_ylabel("range of deviation [%]", fontsize="small")
    axes.set_ylim(bottom=0.0)
    axes.grid(True, axis="y", alpha=0.3)
    return figure
