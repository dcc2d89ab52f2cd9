"""Figures of the noise study, like 4, 5, 7 and 8 of de Morais et al., Denoising Application Performance
Models with Noise-Resilient Priors: mean and standard deviation of exponent deviation and relative error.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from orchestrator.evaluation.noise.rows import Row
from orchestrator.evaluation.panels import empty, legend_below, save
from orchestrator.report.figures import literal

_WIDTH, _HEIGHT = 4.2, 3.0  # inches per panel
# Of a metric: what it is called, and the keys of its mean and its standard deviation in rows.
_METRICS = (
    ("exponent deviation", "deviation", "deviation_spread"),
    ("relative error [%]", "error_percent", "error_spread"),
)
_COLORS = {"classic": "C3", "swc": "C0", "combined": "C2"}


def write(results: Sequence[Row], folder: Path) -> None:
    """Write ``noise-K.png``, the metrics over the intensity of noise with the fewest and with the most (K)
    repetitions, as in figures 4 and 7; and ``repetitions.png``, over the number of repetitions at the largest
    intensity, as in figures 5 and 8. Of measured applications repetitions vary without artificial noise only.
    """
    levels = _varied(results, "repetitions", "noise_percent")
    for count in sorted({min(levels), max(levels)}):
        chosen = [row for row in results if row["repetitions"] == count]
        label = f"noise [%], {count:g} repetition{'s' if count > 1 else ''}"
        _draw(chosen, "noise_percent", label, folder / f"noise-{count:g}.png")
    if len({row["repetitions"] for row in results}) > 1:
        most = max(_varied(results, "noise_percent", "repetitions"))
        chosen = [row for row in results if row["noise_percent"] == most]
        _draw(chosen, "repetitions", f"repetitions, noise {most:g} %", folder / "repetitions.png")


def _varied(results: Sequence[Row], fixed: str, free: str) -> list[float]:
    """Return the values of one quantity for which another one has the most values."""
    found: dict[float, set[float]] = {}
    for row in results:
        found.setdefault(float(row[fixed]), set()).add(float(row[free]))  # type: ignore[literal-required]
    most = max(map(len, found.values()))
    return [value for value, others in found.items() if len(others) == most]


def _draw(results: Sequence[Row], quantity: str, label: str, path: Path) -> None:
    kinds = list(dict.fromkeys(row["kind"] for row in results))
    figure = empty(2 * _WIDTH, _HEIGHT * len(kinds))
    values = sorted({float(row[quantity]) for row in results})  # type: ignore[literal-required]
    for line, kind in enumerate(kinds):
        mine = [row for row in results if row["kind"] == kind]
        for column, (name, mean, spread) in enumerate(_METRICS):
            place = figure.add_subplot(len(kinds), 2, 2 * line + column + 1)
            _bars(place, mine, quantity, (mean, spread), values)
            place.set_title(f"{literal(kind)}: {name}")
            place.set_xlabel(label)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    legend_below(figure, handles, labels, most=len(labels))
    save(figure, path)


def _bars(
    place: Axes, rows: Sequence[Row], quantity: str, keys: tuple[str, str], values: list[float]
) -> None:
    """Draw a group of bars per value, one per modeler; whiskers are standard deviations, cut at 0."""
    modelers = list(dict.fromkeys(row["modeler"] for row in rows))
    width = 0.8 / len(modelers)
    for k, modeler in enumerate(modelers):
        mine = {float(row[quantity]): row for row in rows if row["modeler"] == modeler}  # type: ignore[literal-required]
        x = np.array([values.index(value) for value in mine]) + (k - (len(modelers) - 1) / 2) * width
        means, spread = (np.array([row[key] for row in mine.values()]) for key in keys)  # type: ignore[literal-required]
        whiskers = np.stack([np.minimum(spread, means), spread])
        place.bar(x, means, width, label=modeler, color=_COLORS.get(modeler, f"C{k}"))
        place.errorbar(x, means, yerr=whiskers, fmt="none", ecolor="black", elinewidth=0.7, capsize=1.5)
    place.set_xticks(range(len(values)), [f"{value:g}" for value in values])
    place.grid(True, axis="y", alpha=0.3)
