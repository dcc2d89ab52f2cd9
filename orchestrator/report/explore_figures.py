"""Figures of an exploration: clusters, and each response over intervals of each parameter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from scipy.cluster import hierarchy

from orchestrator.report.explore import Exploration, Ranked
from orchestrator.report.explore_samples import Column
from orchestrator.report.figures import label_logarithmic, literal, with_seconds

_ACROSS = 4  # panels
_WIDTH, _HEIGHT = 2.6, 2.3  # inches of a panel
_LONG = 28  # characters of a name beside an axis
_CROWDED = 4  # labels of intervals from which on they are turned
_LEAST = 1e-9  # distance
_DECADE = 10.0  # ratio of largest to smallest from which on an axis is logarithmic


def clusters(exploration: Exploration) -> Figure:
    """Draw the tree of clusters: the more similar columns are, the nearer to their names they are joined.

    Lee et al., figure 2: the axis is the largest squared correlation between members of two clusters.
    """
    names = [_short(column.name) for column in exploration.columns]
    figure = Figure(figsize=(8, 0.9 + 0.24 * len(names)), layout="constrained")
    axes = figure.add_subplot()
    tree = exploration.tree.copy()
    tree[:, 2] = np.maximum(tree[:, 2], _LEAST)  # columns that are the same still need a line
    hierarchy.dendrogram(
        tree, labels=names, orientation="left", ax=axes, color_threshold=0, above_threshold_color="C0"
    )
    axes.set_xlim(1.0, -0.01)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda distance, _: f"{abs(1 - distance):.1f}"))
    axes.set_xlabel("similarity: share of variance of ranks in common (Spearman ρ²)", fontsize="small")
    axes.tick_params(axis="y", labelsize="small")
    responses = {_short(column.name) for column in exploration.samples.responses}
    for text in axes.get_yticklabels():
        text.set_color("C3" if text.get_text() in responses else "black")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    return figure


def associations(response: Column, ranks: Sequence[Ranked]) -> Figure:
    """Draw a response over the intervals of every parameter, the strongest first (Lee et al., figure 3).

    Points are means, dashes medians, bars the middle half of the points in an interval; the line is the mean
    of all.
    """
    lines = -(-len(ranks) // _ACROSS)
    across = min(len(ranks), _ACROSS)
    figure = Figure(figsize=(_WIDTH * max(across, 2), _HEIGHT * lines + 0.3), layout="constrained")
    places = figure.subplots(lines, across, squeeze=False, sharey=True).ravel()
    overall = float(np.nanmean(response.values))
    for place, item in zip(places, ranks, strict=False):
        _draw(place, item, overall)
    for place in places[len(ranks) :]:
        place.set_visible(False)
    quartiles = [i.lower_quartile for item in ranks for i in item.intervals]
    if min(quartiles) > 0 and max(i.mean for item in ranks for i in item.intervals) > _DECADE * min(
        quartiles
    ):
        places[0].set_yscale("log")
        label_logarithmic(places[0].yaxis)
    else:
        places[0].set_ylim(bottom=min(0.0, places[0].get_ylim()[0]))
    figure.supylabel(literal(with_seconds(response.metric)), fontsize="small")
    return figure


def _draw(place: Axes, item: Ranked, overall: float) -> None:
    x = np.arange(len(item.intervals))
    means = np.array([interval.mean for interval in item.intervals])
    lower = np.array([interval.lower_quartile for interval in item.intervals])
    upper = np.array([interval.upper_quartile for interval in item.intervals])
    place.axhline(overall, color="0.75", linewidth=0.8)
    place.vlines(x, lower, upper, color="C0", alpha=0.45, linewidth=5)
    place.plot(x, [interval.median for interval in item.intervals], "_", color="C0", markersize=7)
    line = "" if item.parameter.categorical else "-"
    place.plot(x, means, f"o{line}", color="C0", markersize=4, linewidth=0.9)
    turned = len(x) > _CROWDED or any(len(interval.label) > 8 for interval in item.intervals)
    place.set_xticks(x, [_short(interval.label) for interval in item.intervals], fontsize="x-small")
    if turned:
        place.tick_params(axis="x", labelrotation=60)
    place.set_xlim(-0.5, len(x) - 0.5)
    place.tick_params(axis="y", labelsize="x-small")
    place.set_title(f"{_short(item.parameter.name)}: {item.explained:.2f}", fontsize="small")


def _short(name: str) -> str:
    return literal(name if len(name) <= _LONG else f"...{name[-_LONG:]}")
