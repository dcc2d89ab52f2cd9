"""Figures of the comparison of speedups, like 2 to 6 of Alasandagutti et al., Grey-Box Machine Learning
Prediction of Parallel Application Scaling.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from orchestrator.evaluation.speedup_contenders import contender
from orchestrator.evaluation.speedup_study import Row

_WIDTH, _HEIGHT = 4.2, 3.2  # inches per panel
_MARKERS = "osv^<>PX*"
_LABELS = {"cutoff": "largest number of processes that is fitted, $c_f$", "size_share": "$w_f / w_{max}$"}

Quantity = Literal["cutoff", "size_share"]


def write(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write figures for every machine, scaling and number of levels, and return the files.

    ``errors-NAME.png`` has the distributions of errors (figures 2 and 3): boxes from the lower to the upper
    quartile, whiskers from the 5th to the 95th percentile. Where there are several cut-offs,
    ``cutoff-NAME.png`` and ``size-NAME.png`` have the error over them instead (figures 4 to 6).
    """
    folder.mkdir(parents=True, exist_ok=True)
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row["rmse"] is not None:
            groups.setdefault(_name(row), []).append(row)
    written = []
    for name, members in groups.items():
        by_cutoff, by_size = _varied(members, "cutoff"), _varied(members, "size_share")
        if by_cutoff:
            written.append(_sensitivity(by_cutoff, "cutoff", folder / f"cutoff-{name}.png"))
        if by_size:
            written.append(_sensitivity(by_size, "size_share", folder / f"size-{name}.png"))
        if not by_cutoff and not by_size:
            written.append(_boxes(members, folder / f"errors-{name}.png"))
    return written


def _name(row: Row) -> str:
    machine = "-".join(re.findall(r"[\w.]+", row["machine"])).lower()
    return f"{machine}-{row['scaling']}{'-levels' * (row['levels'] > 1)}"


def _varied(rows: Sequence[Row], quantity: Quantity) -> list[Row]:
    """Return the rows in which only this cut-off varies: those with the usual value of the other."""
    other: Quantity = "size_share" if quantity == "cutoff" else "cutoff"
    chosen: list[Row] = []
    for program in dict.fromkeys(row["program"] for row in rows):
        mine = [row for row in rows if row["program"] == program]
        values = [row[other] for row in mine]
        usual = [row for row in mine if row[other] == max(values, key=values.count)]
        chosen += usual if len({row[quantity] for row in usual}) > 1 else []
    return chosen


def _sensitivity(rows: Sequence[Row], quantity: Quantity, path: Path) -> Path:
    """Draw a panel per contender, a line per program, of the relative error over a cut-off."""
    names = list(dict.fromkeys(row["contender"] for row in rows))
    figure = Figure(figsize=(_WIDTH * len(names), _HEIGHT), layout="constrained")
    FigureCanvasAgg(figure)
    for k, name in enumerate(names):
        place = figure.add_subplot(1, len(names), k + 1)
        for index, program in enumerate(dict.fromkeys(row["program"] for row in rows)):
            mine = [row for row in rows if row["contender"] == name and row["program"] == program]
            mine.sort(key=lambda row: row[quantity])
            x, y = [row[quantity] for row in mine], [row["relative_rmse"] or 0.0 for row in mine]
            place.plot(x, y, marker=_MARKERS[index % len(_MARKERS)], markersize=4, label=program)
        place.set_title(contender(name).text)
        place.set_xlabel(_LABELS[quantity])
        place.set_ylabel("relative RMSE of speedups")
        place.set_yscale("log")
        place.grid(True, alpha=0.3)
    return _save(figure, path)


def _boxes(rows: Sequence[Row], path: Path) -> Path:
    """Draw a panel per program, a box per contender."""
    programs = list(dict.fromkeys(row["program"] for row in rows))
    figure = Figure(figsize=(_WIDTH * len(programs), _HEIGHT + 1), layout="constrained")
    FigureCanvasAgg(figure)
    for k, program in enumerate(programs):
        mine = [row for row in rows if row["program"] == program]
        place = figure.add_subplot(1, len(programs), k + 1)
        boxes = [
            dict(zip(("whislo", "q1", "med", "q3", "whishi"), row["relative_rse"], strict=True))
            | {"label": contender(row["contender"]).text, "fliers": []}
            for row in mine
        ]
        place.bxp(boxes, showfliers=False)
        place.set_yscale("log")
        place.tick_params(axis="x", labelrotation=90, labelsize="small")
        place.set_title(program)
        place.set_ylabel("relative error of speedups")
        place.grid(True, axis="y", alpha=0.3)
    return _save(figure, path)


def _save(figure: Figure, path: Path) -> Path:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if labels:
        figure.legend(
            handles, labels, loc="outside lower center", ncols=min(len(labels), 6), fontsize="small"
        )
    figure.savefig(path, dpi=150, metadata={"Software": None})
    return path
