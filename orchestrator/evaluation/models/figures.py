"""Figures of a comparison of modelers, like figures 6 and 7 of Hutter and Solomonik, High-Dimensional
Performance Modeling via Tensor Completion: error over the number of samples and over the size of models; and
the distribution of errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orchestrator.evaluation.models.fit import Row
from orchestrator.evaluation.models.scores import QUANTILES
from orchestrator.evaluation.models.table import Group, groups
from orchestrator.evaluation.panels import empty, legend_below, save

_MARKERS = "osv^<>PX*D"
_WIDTH, _HEIGHT = 4.2, 3.2  # inches per panel
_BOX = ("whislo", "q1", "med", "q3", "whishi")  # how matplotlib calls the quantiles

Panels = Mapping[str, Sequence[Row]]
"""Title -> rows, such as those of one set of samples."""


def write(panels: Panels, folder: Path) -> None:
    """Write ``error-size.png``, ``error-bytes.png`` and ``errors.png``, a panel each.

    Parameters
    ----------
    panels
        Title -> rows.
    folder
        Is created.
    """
    kept = {title: [group for group in groups(rows) if group.fitted] for title, rows in panels.items()}
    styles = _styles(kept)
    _draw(kept, styles, "size", "training points", folder / "error-size.png")
    _draw(kept, styles, "bytes", "size of the model [bytes]", folder / "error-bytes.png")
    figure, axes = _grid(len(kept))
    for place, (title, found) in zip(axes, kept.items(), strict=True):
        _boxes(place, found)
        place.set_title(title)
    save(figure, folder / "errors.png")


def _styles(panels: Mapping[str, Sequence[Group]]) -> dict[str, tuple[str, str]]:
    """Return a colour and a marker per modeler, the same in all panels."""
    labels = list(dict.fromkeys(group.modeler for found in panels.values() for group in found))
    return {label: (f"C{k % 10}", _MARKERS[k % len(_MARKERS)]) for k, label in enumerate(labels)}


def _draw(
    panels: Mapping[str, Sequence[Group]],
    styles: Mapping[str, tuple[str, str]],
    quantity: str,
    label: str,
    path: Path,
) -> None:
    figure, axes = _grid(len(panels))
    for place, (title, found) in zip(axes, panels.items(), strict=True):
        _lines(place, found, styles, quantity)
        place.set_title(title)
        place.set_xlabel(label)
        place.set_ylabel("MLogQ")
    # A modeler may be missing in one panel and drawn in another.
    drawn = {
        text: line for place in axes for line, text in zip(*place.get_legend_handles_labels(), strict=True)
    }
    legend_below(figure, list(drawn.values()), list(drawn), most=5)
    save(figure, path)


def _grid(count: int) -> tuple[Figure, list[Axes]]:
    width = min(3, max(1, count))
    height = -(-max(1, count) // width)
    figure = empty(max(_WIDTH * width, 6.0), _HEIGHT * height + 0.5)
    return figure, [figure.add_subplot(height, width, k + 1) for k in range(count)]


def _lines(place: Axes, found: Sequence[Group], styles: Mapping[str, tuple[str, str]], quantity: str) -> None:
    """Draw the mean error over a quantity, a line per modeler; bars are standard deviations over seeds."""
    for label, (color, marker) in styles.items():
        mine = [group for group in found if group.modeler == label]
        known = [
            (x, y, group.spread("mlogq") or 0.0)
            for group in sorted(mine, key=lambda group: group.size)
            if (x := group.mean(quantity)) is not None and (y := group.mean("mlogq"))
        ]
        if known:
            x, y, spread = np.array(known).T
            below = np.minimum(spread, 0.9 * y)  # the axis is logarithmic
            place.errorbar(
                x,
                y,
                yerr=np.stack([below, spread]),
                label=label,
                color=color,
                marker=marker,
                markersize=4,
                linewidth=1.2,
                capsize=2,
            )
    if place.lines:
        place.set_xscale("log")
        place.set_yscale("log")
    place.grid(True, which="both", alpha=0.3)


def _boxes(place: Axes, found: Sequence[Group]) -> None:
    """Draw the quantiles of log(predicted/measured) at the largest size, means over seeds."""
    largest = max((group.size for group in found), default=0)
    mine = [group for group in found if group.size == largest]
    boxes = []
    for group in mine:
        quantiles = [row["log_errors"] for row in group.fitted if row["log_errors"] is not None]
        if quantiles:
            means = np.mean(quantiles, axis=0)
            boxes.append({**dict(zip(_BOX, means, strict=True)), "label": group.modeler, "fliers": []})
    if boxes:
        place.bxp(boxes, showfliers=False)
        place.tick_params(axis="x", labelrotation=30)
    place.axhline(0.0, color="black", linewidth=0.6)
    place.set_ylabel("log(predicted/measured)")
    ends = f"{100 * QUANTILES[0]:g} to {100 * QUANTILES[-1]:g} %"
    place.set_xlabel(f"{largest} training points; whiskers: {ends}")
    place.grid(True, axis="y", alpha=0.3)
