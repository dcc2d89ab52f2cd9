"""Tables of `far_corner.py`, and sentences about them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from far_corner_cases import LEVELS
from far_corner_scores import BASELINES, MAIN, RIVALS, Held, Row, Scores
from pages import Cells
from rich.table import Table
from rich.text import Text

from orchestrator.types import Point

TITLES = {
    "extrap": "Extra-P",
    "ridge2": "ridge2",
    "power": "power law",
    "endslope": "end slope",
    "gplin": "GP",
    "rf": "forest",
    "v1": "v1",
    "median": "median of six",
}
_MANY = 18  # test points from which the coverage of one set means something
# Local exponents between neighbouring values, below which a step of a shape falls, is flat, rises.
_FALLS, _RISES, _STEEP = -0.1, 0.1, 1.5


def accuracy(found: Mapping[str, Scores]) -> Cells:
    """Return MLogQ of the tool and of other methods per set; emphasised where the smallest."""
    rivals = "/".join(TITLES[name] for name in RIVALS)
    header = [
        "set",
        "n",
        "within 10/20 %",
        "MLogQ",
        "of the best",
        *TITLES.values(),
        f"smaller error than {rivals} %",
    ]
    return [header, *(_accuracy_row(name, scores) for name, scores in found.items())]


def _accuracy_row(name: str, scores: Scores) -> list[str]:
    others = {key: f"{found.mlogq:.3f}" for key, found in scores.baselines.items()}
    own, of_best = f"{scores.tool.mlogq:.3f}", ""
    if scores.best is not None:
        others[scores.best] = f"**{others[scores.best]}**"
        own = f"**{own}**" if scores.reaches_best() else own
        of_best = f"{scores.tool.mlogq / max(scores.baselines[scores.best].mlogq, 1e-9):.2f}"
    better = "/".join(f"{scores.baselines[r].better:.0f}" if r in scores.baselines else "-" for r in RIVALS)
    within = f"{scores.tool.within10:.0f}/{scores.tool.within20:.0f}"
    return [name, str(scores.n), within, own, of_best, *(others.get(key, "") for key in BASELINES), better]


def intervals(found: Mapping[str, Scores]) -> Cells:
    """Return coverage and width of intervals per set, beside those of conformal intervals."""
    levels = "/".join(f"{level:.0f}" for level in LEVELS)
    header = ["set", "n", f"mean: {levels} % hold", "high/low", f"runs: {levels} % hold", "high/low"]
    header += [f"conformal: {MAIN:.0f} % hold", "high/low"]
    rows = []
    for name, scores in found.items():
        row = [name, str(scores.n)]
        for kind in (scores.mean, scores.measured):
            row.append("/".join(f"{kind[level].holds:.0f}" for level in LEVELS))
            row.append("/".join(_factor(kind[level].width) for level in LEVELS))
        if scores.conformal is None:
            rows.append([*row, "", ""])
            continue
        rows.append([*row, f"{scores.conformal.holds:.0f}", _factor(scores.conformal.width)])
    return [header, *rows]


def _factor(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def worst(found: Mapping[str, Sequence[Row]], number: int) -> list[tuple[str, Row]]:
    """Return the cases with the largest log errors, each with its worst test point."""
    largest: dict[tuple[str, str], Row] = {}
    for name, rows in found.items():
        for row in rows:
            key = name, row.case.name
            if key not in largest or row.error > largest[key].error:
                largest[key] = row
    order = sorted(largest.items(), key=lambda item: -item[1].error)
    return [(name, row) for (name, _), row in order[:number]]


def worst_table(found: Sequence[tuple[str, Row]]) -> Cells:
    """Return how far off these cases are, and the shape of what was measured; no measured value."""
    header = ["set", "case", "predicted/measured", f"{MAIN:.0f} % interval/measured", "shape of the measured"]
    rows = []
    for name, row in found:
        if row.answer is None:
            said, ends = "-", "-"
        else:
            low, high = row.answer.mean[MAIN]
            said, ends = (
                f"{row.answer.value / row.truth:.3g}",
                f"{low / row.truth:.3g} .. {high / row.truth:.3g}",
            )
        shapes = ", ".join(f"{key} {shape(row, key)}" for key in row.case.parameters)
        shapes += f", beyond {beyond(row)}"
        rows.append([name, row.case.name.rpartition("->")[2].replace("|", ", "), said, ends, shapes])
    return [header, *rows]


def line(row: Row, parameter: str) -> list[tuple[float, float]]:
    """Return the measured means along a parameter, as (value, mean): on the line nearest to the test point.

    Of lines that differ in the other parameters only, the one with the most points is taken.
    """
    case = row.case
    target = list(case.test)[row.place]
    lines: dict[tuple[float, ...], dict[float, float]] = {}
    for point, values in {**case.train, **case.test}.items():
        others = tuple(point.number(name) for name in case.parameters if name != parameter)
        lines.setdefault(others, {})[point.number(parameter)] = statistics.fmean(values)
    there = tuple(target.number(name) for name in case.parameters if name != parameter)

    def rank(others: tuple[float, ...]) -> tuple[int, float]:
        return -len(lines[others]), sum(
            abs(math.log1p(a) - math.log1p(b)) for a, b in zip(others, there, strict=True)
        )

    return sorted(lines[min(lines, key=rank)].items())


def shape(row: Row, parameter: str) -> str:
    """Return how the measured values change along a parameter, step by step: falls, flat, rises, steep."""
    steps = pairwise(line(row, parameter))
    return "".join(_arrow(after / before, y / x) for (x, before), (y, after) in steps) or "one value"


def beyond(row: Row) -> str:
    """Return how the measured values change from the nearest point that was fitted to the held-out one."""
    target = list(row.case.test)[row.place]

    def steps(point: Point) -> list[float]:
        return [target.number(name) / point.number(name) for name in row.case.parameters]

    nearest = min(row.case.train, key=lambda point: sum(abs(math.log(step)) for step in steps(point)))
    return _arrow(row.truth / statistics.fmean(row.case.train[nearest]), max(steps(nearest)))


def _arrow(change: float, step: float) -> str:
    """Return how a value changes by a factor while a parameter changes by another."""
    if not (change > 0 and 0 < step != 1):
        return "?"
    slope = math.log(change) / math.log(step)
    return "↘" if slope < _FALLS else "→" if slope <= _RISES else "↗" if slope <= _STEEP else "↑"


def values_text(name: str, row: Row) -> Iterator[str]:
    """Yield lines with the measured values of a case, for a terminal."""
    target = list(row.case.test)[row.place]
    yield f"{name} {row.case.name} at {Point.of(target.as_dict())}: measured {row.truth:.4g}"
    for parameter in row.case.parameters:
        known = "  ".join(f"{x:g}: {value:.4g}" for x, value in line(row, parameter))
        yield f"  along {parameter}: {known}"
    if row.answer is not None:
        yield f"  model: {row.answer.model}"


def regions_table(found: Sequence[Row]) -> Cells:
    """Return a row per call path of one measured file."""
    total = sum(row.truth for row in found)
    header = ["call path", "share at the corner %", "error %", f"{MAIN:.0f} % interval %", "model"]
    rows = []
    for row in sorted(found, key=lambda row: -row.truth):
        cells = [row.case.name, f"{100 * row.truth / total:.2f}"]
        if row.answer is not None:
            low, high = (100 * (end / row.truth - 1) for end in row.answer.mean[MAIN])
            error = 100 * (row.answer.value / row.truth - 1)
            cells += [f"{error:+.1f}", f"{low:+.0f} .. {high:+.0f}", f"`{row.answer.model}`"]
        rows.append([*cells, "", "", ""][:5])
    return [header, *rows]


def summary(found: Mapping[str, Scores]) -> list[str]:
    """Return sentences on all sets that have baselines: means, and in how many the tool is good enough."""
    sets = {name: item for name, item in found.items() if "median" in item.baselines}
    if not sets:
        return []
    known, levels = list(sets.values()), "/".join(f"{level:.0f}" for level in LEVELS)
    rivals = {name: [s.baselines[name] for s in known if name in s.baselines] for name in BASELINES}
    own = statistics.fmean(s.tool.mlogq for s in known)
    own_there = {
        name: statistics.fmean(s.tool.mlogq for s in known if name in s.baselines)
        for name, items in rivals.items()
        if items
    }
    others = (
        f"{TITLES[name]} {statistics.fmean(item.mlogq for item in rivals[name]):.3f}"
        + f" (of {len(rivals[name])}, where ours is {there:.3f})" * (len(rivals[name]) < len(known))
        for name, there in own_there.items()
    )
    better = (
        f"{TITLES[name]} in {statistics.fmean(item.better for item in rivals[name]):.0f} %"
        for name in RIVALS
        if rivals[name]
    )
    least = min((s.mean[MAIN].holds for s in known if s.n >= _MANY), default=math.nan)
    compared = [s.is_narrow for s in known if s.conformal is not None]
    return [
        f"Mean MLogQ of {len(known)} sets with baselines: **{own:.3f}**; {', '.join(others)}.",
        f"At or below the best single method in {sum(s.reaches_best() for s in known)} of {len(known)} sets, "
        f"at most 15 % above it in {sum(s.reaches_best(1.15) for s in known)}.",
        f"Mean share of cases with a smaller error than {', '.join(better)}.",
        f"Means that intervals of {levels} % hold: {_mean_held([s.mean for s in known])} %; at {MAIN:.0f} % "
        f"the least of sets with {_MANY} and more points is {least:.0f} %. As intervals of runs: "
        f"{_mean_held([s.measured for s in known])} %.",
        f"At {MAIN:.0f} % they are at most twice as wide as conformal ones in {sum(compared)} of "
        f"{len(compared)} sets.",
    ]


def _mean_held(known: Sequence[Mapping[float, Held]]) -> str:
    return "/".join(f"{statistics.fmean(item[level].holds for item in known):.1f}" for level in LEVELS)


def as_table(cells: Cells, title: str) -> Table:
    """Return a table for a terminal."""
    header, *rows = cells
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    for column in header:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell.strip("*"), style="bold" if cell.startswith("**") else "") for cell in row))
    return table
