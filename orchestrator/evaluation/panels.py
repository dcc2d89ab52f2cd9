"""Figures of panels with one legend below all of them, as PNG files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def empty(width: float, height: float) -> Figure:
    """Return a figure without panels, of a width and a height in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def legend_below(figure: Figure, handles: Sequence[Artist], labels: Sequence[str], most: int = 6) -> None:
    """Name what was drawn, in ``most`` columns at most; nothing where nothing was drawn."""
    if labels:
        columns = min(len(labels), most)
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize="small")


def save(figure: Figure, path: Path, dpi: int = 150) -> Path:
    """Write a figure, the same bytes for the same figure, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi, metadata={"Software": None})
    return path
