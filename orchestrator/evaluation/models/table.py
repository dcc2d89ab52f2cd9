"""Rows of a comparison of modelers as text: means over seeds, and why fits failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.evaluation.aligned import aligned
from orchestrator.evaluation.models.fit import Row

_UNITS = ("B", "kB", "MB", "GB")


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one modeler at one size; ``fitted`` are those with a model."""

    modeler: str
    size: int
    rows: tuple[Row, ...]

    @property
    def fitted(self) -> list[Row]:  # noqa: D102
        return [row for row in self.rows if row["failure"] is None]

    def mean(self, key: str) -> float | None:
        """Return the mean over seeds of what is a number."""
        values = self._numbers(key)
        return float(np.mean(values)) if values else None

    def spread(self, key: str) -> float | None:
        """Return the standard deviation over seeds; None for fewer than two."""
        values = self._numbers(key)
        return float(np.std(values, ddof=1)) if len(values) > 1 else None

    def _numbers(self, key: str) -> list[float]:
        values = [row[key] for row in self.rows]  # type: ignore[literal-required]
        return [float(value) for value in values if value is not None]


def groups(rows: Iterable[Row]) -> list[Group]:
    """Return rows by modeler and size, in order of first appearance."""
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        found.setdefault((row["modeler"], row["size"]), []).append(row)
    return [Group(*key, tuple(members)) for key, members in found.items()]


def table(rows: Sequence[Row]) -> str:
    """Return means over seeds as aligned text, a header first, and then a line per failure."""
    heads = ["size", "modeler", "MLogQ", "±", "MAPE", "bytes", "fit", "predict", "holds", "high/low"]
    lines = [[*heads, "unpredicted", "fits"], *(_line(group) for group in groups(rows))]
    return "\n".join([*aligned(lines, left={1}), *failures(rows)])


def failures(rows: Iterable[Row]) -> list[str]:
    """Return a line per fit that failed."""
    return [
        f"{row['modeler']}, {row['size']} points, seed {row['seed']}: {row['failure']}"
        for row in rows
        if row["failure"] is not None
    ]


def _line(group: Group) -> list[str]:
    def cell(key: str, show: Callable[[float], str]) -> str:
        value = group.mean(key)
        return "-" if value is None else show(value)

    spread = group.spread("mlogq")
    return [
        str(group.size),
        group.modeler,
        cell("mlogq", lambda x: f"{x:.4f}"),
        "" if spread is None else f"{spread:.4f}",
        cell("mape", lambda x: f"{x:.2f} %"),
        cell("bytes", size_text),
        cell("fit_seconds", seconds_text),
        cell("predict_seconds", seconds_text),
        cell("coverage", lambda x: f"{100 * x:.1f} %"),
        cell("width", lambda x: f"{x:.2f}" if x < 100 else f"{x:.3g}"),
        cell("unpredicted", lambda x: f"{x:g}"),
        f"{len(group.fitted)}/{len(group.rows)}",
    ]


def size_text(count: float) -> str:
    """Return a number of bytes for readers: ``12.3 kB``."""
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.3g} {_UNITS[unit]}"


def seconds_text(seconds: float) -> str:
    """Return a duration for readers: ``12 µs``, ``3.4 s``."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
