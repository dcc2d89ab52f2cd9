"""Figures of a comparison, like figures 5, 6 and 7 of Ritter et al., Cost-Effective Empirical Performance
Modeling. Each panel holds the rows of one setting: a noise level, a tolerance, a case study.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orchestrator.evaluation.panels import empty, legend_below, save
from orchestrator.evaluation.strategies.rows import Row
from orchestrator.report.figures import label_logarithmic

_MARKERS = "osv^<>PX*"
_WIDTH, _HEIGHT = 4.2, 3.2  # inches per panel
_PANELS = 4  # side by side

Quantity = Callable[[Row], float]


def accuracy_figure(panels: Mapping[str, Sequence[Row]], path: Path) -> None:
    """Draw the percentage of accurate models over the budget (logarithmic), as in figures 5 and 6.

    Parameters
    ----------
    panels
        Title -> rows, e.g. per noise level, or per tolerance of the same outcomes.
    path
        PNG file to write.
    """
    width = min(_PANELS, len(panels))
    height = -(-len(panels) // width)
    figure, axes = _grid(height, width)
    for place, (title, results) in zip(axes, panels.items(), strict=False):
        _draw(place, results, lambda row: row["accurate_percent"], logarithmic=True)
        place.set_title(title)
        place.set_xlabel("budget [% of the full matrix]")
        place.set_ylabel("accurate models [%]")
        place.set_ylim(-2, 102)
    for place in axes[len(panels) :]:
        place.set_visible(False)
    legend_below(figure, *axes[0].get_legend_handles_labels())
    save(figure, path)


def usage_figure(panels: Mapping[str, Sequence[Row]], path: Path) -> None:
    """Draw accuracy, budget used and runs over the budget, one column per case study, as in figure 7.

    Parameters
    ----------
    panels
        Title -> rows.
    path
        PNG file to write.
    """
    quantities: list[tuple[str, Quantity]] = [
        ("accurate models [%]", lambda row: row["accurate_percent"]),
        ("budget used [%]", lambda row: row["median_cost_percent"]),
        ("runs (median)", lambda row: row["median_runs"]),
    ]
    figure, axes = _grid(len(quantities), len(panels))
    for column, (title, results) in enumerate(panels.items()):
        for line, (label, quantity) in enumerate(quantities):
            place = axes[line * len(panels) + column]
            _draw(place, results, quantity, logarithmic=False)
            place.set_ylabel(label)
        axes[column].set_title(title)
        axes[(len(quantities) - 1) * len(panels) + column].set_xlabel("budget [% of the full matrix]")
    legend_below(figure, *axes[0].get_legend_handles_labels())
    save(figure, path)


def _grid(height: int, width: int) -> tuple[Figure, list[Axes]]:
    figure = empty(_WIDTH * width, _HEIGHT * height)
    return figure, [figure.add_subplot(height, width, index + 1) for index in range(height * width)]


def _draw(place: Axes, results: Sequence[Row], quantity: Quantity, *, logarithmic: bool) -> None:
    """Draw a line per strategy; a strategy at a single budget (the full matrix) is a diamond."""
    labels = list(dict.fromkeys(row["strategy"] for row in results))
    for index, label in enumerate(labels):
        mine = sorted(
            (row for row in results if row["strategy"] == label), key=lambda row: row["budget_percent"]
        )
        x = [row["budget_percent"] for row in mine]
        y = [quantity(row) for row in mine]
        style = "D" if len(mine) == 1 else _MARKERS[index % len(_MARKERS)]
        color = "black" if label == "oracle" else f"C{index % 10}"
        place.plot(x, y, marker=style, markersize=4, linewidth=1.2, label=label, color=color)
    if logarithmic:
        place.set_xscale("log")
        label_logarithmic(place.xaxis)
    place.grid(True, alpha=0.3)
