"""What the validation says: every call path where there are few, and a summary with a list where many are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from orchestrator.report.models_document import is_inside, run_ends
from orchestrator.report.page.numerals import figure, interval, with_unit
from orchestrator.types import Point
from orchestrator.units import count

_FEW = 3  # rows of one point that are shown one by one

Row = Mapping[str, Any]
"""Of the status: ``point``, ``callpath``, ``metric``, ``measured``, ``predicted``, ``run_low``, ``run_high``,
``error_percent``."""

Unit = Callable[[str], str]
"""Of a metric; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a whole run took that was measured to check the models, and the predicted interval of a run."""

    measured: float
    low: float
    high: float

    def document(self) -> dict[str, Any]:
        """Return it as a JSON-ready object, with whether it is inside."""
        return {**asdict(self), "inside": self.low <= self.measured <= self.high}


def facts(rows: Sequence[Row], unit: Unit) -> Iterator[dict[str, Any]]:
    """Yield what is said at the top: per point a summary, with all its rows as a ``list`` to be folded away.

    Of few rows each is a fact of its own.
    """
    points: dict[Point, list[Row]] = {}
    for row in rows:
        points.setdefault(Point.of(row["point"]), []).append(row)
    for point, there in points.items():
        label = f"Validation at {point}"
        if len(there) <= _FEW:
            for row in there:
                value, detail = _texts(row, unit)
                yield {"label": label, "value": value, "detail": detail, "list": []}
        else:
            yield {"label": label, **_summary(there), "list": [": ".join(_texts(row, unit)) for row in there]}


def warnings(rows: Sequence[Row], unit: Unit) -> list[str]:
    """Return which measurements lie outside their intervals: each of few, a sentence on many."""
    outside = [row for row in rows if is_inside(row) is False]
    if len(outside) <= _FEW:
        return [
            f"validation: {row['callpath']} {row['metric']} was measured as {_measured(row, unit)}, outside "
            f"the {_ends(row, unit)} predicted for a run"
            for row in outside
        ]
    known = sum(is_inside(row) is not None for row in rows)
    farthest = max(outside, key=_size)
    return [
        f"validation: {len(outside)} of {known} measured values are outside the 90 % intervals predicted for "
        f"a run; farthest off is {farthest['callpath']} {farthest['metric']}: measured "
        f"{_measured(farthest, unit)}, predicted {_predicted(farthest, unit)}"
    ]


def of_run(rows: Sequence[Row], callpaths: Collection[str], metric: str | None) -> Checked | None:
    """Return what the validation says of a whole run, the sums over call paths; None if one is missing."""
    found = {row["callpath"]: row for row in rows if row["metric"] == metric}
    if not callpaths or not set(callpaths) <= found.keys():
        return None
    parts = [(found[name]["measured"], *run_ends(found[name])) for name in callpaths]
    if any(None in part for part in parts):
        return None
    # The ends are added, too: as if all models erred to one side.
    measured, low, high = (float(sum(column)) for column in zip(*parts, strict=True))
    return Checked(measured, low, high)


def _measured(row: Row, unit: Unit) -> str:
    return with_unit(figure(row["measured"]), unit(row["metric"]))


def _ends(row: Row, unit: Unit) -> str:
    low, high = run_ends(row)
    return with_unit(f"{figure(low)} to {figure(high)}", unit(row["metric"]))


def _predicted(row: Row, unit: Unit) -> str:
    """Return what is predicted of a run, with its interval."""
    low, high = run_ends(row)
    return interval({"value": row["predicted"], "low": low, "high": high}, unit(row["metric"]))


def _texts(row: Row, unit: Unit) -> tuple[str, str]:
    error = "" if row["error_percent"] is None else f", {row['error_percent']:+.1f} %"
    name = f"{row['callpath']} {row['metric']}"
    return f"{name}: measured {_measured(row, unit)}", f"predicted for a run {_predicted(row, unit)}{error}"


def _summary(rows: Sequence[Row]) -> dict[str, str | None]:
    """Return how many values are within their intervals, and the median and the largest error."""
    inside = [is_inside(row) for row in rows]
    known = sum(item is not None for item in inside)
    value = f"{sum(item is True for item in inside)} of {known} values within the 90 % interval of a run"
    errors = [row for row in rows if row["error_percent"] is not None]
    if not errors:
        return {"value": value if known else f"{count(len(rows), 'value')} measured", "detail": None}
    worst = max(errors, key=_size)
    detail = (
        f"median error {median(map(_size, errors)):.1f} %, largest {worst['error_percent']:+.1f} % "
        f"({worst['callpath']} {worst['metric']}); predicted minus measured"
    )
    return {"value": value, "detail": detail}


def _size(row: Row) -> float:
    return abs(float(row["error_percent"] or 0.0))
