"""Figures of the comparison of speedups, like 2 to 6 of Alasandagutti et al., Grey-Box Machine Learning
Prediction of Parallel Application Scaling.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from matplotlib.axes import Axes

from orchestrator.evaluation.panels import empty, legend_below, save
from orchestrator.evaluation.speedup.contenders import contender
from orchestrator.evaluation.speedup.draws import Cell, Quantity, Setup, by_setup, cells, varied
from orchestrator.evaluation.speedup.study import Row

_WIDTH, _HEIGHT = 4.2, 3.2  # inches per panel
_MARKERS = "osv^<>PX*"
_LABELS: Mapping[Quantity, str] = MappingProxyType(
    {"cutoff": "largest number of processes that is fitted, $c_f$", "size_share": "$w_f / w_{max}$"}
)
_WORDS: Mapping[Quantity, str] = MappingProxyType({"cutoff": "cutoff", "size_share": "size"})


def write(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write figures for every machine, scaling and number of levels, and return the files.

    ``errors-NAME.png`` has the distributions of errors (figures 2 and 3): boxes from the lower to the upper
    quartile, whiskers from the 5th to the 95th percentile. Where there are several cut-offs,
    ``cutoff-NAME.png`` and ``size-NAME.png`` have the error over them instead (figures 4 to 6).
    """
    written = []
    for setup, known in by_setup(_known(rows)).items():
        files = [
            _sensitivity({setup: found}, quantity, folder / f"{word}-{_name(setup)}.png")
            for quantity, word in _WORDS.items()
            if (found := varied(known, quantity))
        ]
        written += files or [_boxes(known, folder / f"errors-{_name(setup)}.png")]
    return written


def write_sensitivity(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write ``speedup-cutoff.png`` and ``speedup-size.png``: figures 4 to 6, a row per machine and number of
    levels; return the files.
    """
    groups = by_setup(_known(rows))
    written = []
    for quantity, word in _WORDS.items():
        found = {setup: varied(known, quantity) for setup, known in groups.items()}
        found = {setup: chosen for setup, chosen in found.items() if chosen}
        if found:
            written.append(_sensitivity(found, quantity, folder / f"speedup-{word}.png"))
    return written


def _known(rows: Sequence[Row]) -> list[Cell]:
    return [cell for cell in cells(rows) if cell.rmse is not None]


def _name(setup: Setup) -> str:
    machine = "-".join(re.findall(r"[\w.]+", setup.machine)).lower()
    return f"{machine}-{setup.scaling}{'-levels' * (setup.levels > 1)}"


def _sensitivity(known: Mapping[Setup, Sequence[Cell]], quantity: Quantity, path: Path) -> Path:
    """Draw a row per setup, a panel per contender, a line per program, of relative errors over a cut-off."""
    names = list(dict.fromkeys(cell.contender for found in known.values() for cell in found))
    programs = list(dict.fromkeys(cell.program for found in known.values() for cell in found))
    figure = empty(_WIDTH * len(names), _HEIGHT * len(known))
    places = figure.subplots(len(known), len(names), sharey="row", squeeze=False)
    for line, (setup, found) in zip(places, known.items(), strict=True):
        for place, name in zip(line, names, strict=True):
            for index, program in enumerate(programs):
                mine = [cell for cell in found if cell.contender == name and cell.program == program]
                _line(place, sorted(mine, key=lambda cell: getattr(cell, quantity)), quantity, index)
            place.set_title(f"{contender(name).text.strip('`')}\n{setup.title}", fontsize="small")
            place.set_xlabel(_LABELS[quantity])
            place.set_yscale("log")
            place.grid(True, alpha=0.3)
        line[0].set_ylabel("relative RMSE of speedups")
    legend_below(figure, *figure.axes[0].get_legend_handles_labels())
    return save(figure, path, 150 if len(known) == 1 else 90)


def _line(place: Axes, mine: Sequence[Cell], quantity: Quantity, index: int) -> None:
    """Draw medians over draws, and a band from the smallest to the largest."""
    x = [getattr(cell, quantity) for cell in mine]
    y, low, high = ([getattr(cell, name) for cell in mine] for name in ("relative_rmse", "low", "high"))
    label = mine[0].program if mine else None
    [drawn] = place.plot(x, y, marker=_MARKERS[index % len(_MARKERS)], markersize=4, label=label)
    place.fill_between(x, low, high, alpha=0.15, color=drawn.get_color(), linewidth=0)


def _boxes(known: Sequence[Cell], path: Path) -> Path:
    """Draw a panel per program, a box per contender."""
    programs = list(dict.fromkeys(cell.program for cell in known))
    figure = empty(_WIDTH * len(programs), _HEIGHT + 1)
    for k, program in enumerate(programs):
        place = figure.add_subplot(1, len(programs), k + 1)
        boxes = [
            dict(zip(("whislo", "q1", "med", "q3", "whishi"), cell.relative_rse, strict=True))
            | {"label": contender(cell.contender).text, "fliers": []}
            for cell in known
            if cell.program == program
        ]
        place.bxp(boxes, showfliers=False)
        place.set_yscale("log")
        place.tick_params(axis="x", labelrotation=90, labelsize="small")
        place.set_title(program)
        place.set_ylabel("relative error of speedups")
        place.grid(True, axis="y", alpha=0.3)
    return save(figure, path)
