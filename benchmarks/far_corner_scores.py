"""Scores of `far_corner.py`: how close predictions are to what was held out; whether intervals hold it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from far_corner_cases import LEVELS, Answer, Case

BASELINES = ("extrap", "ridge2", "power", "endslope", "gplin", "rf", "v1", "median")
SINGLE = ("extrap", "ridge2", "power", "endslope", "gplin", "rf")  # methods that do not depend on the tool
RIVALS = ("extrap", "power", "endslope")  # beside which the share of smaller errors is reported
MAIN = 90.0
_COMBINED = ("v1", "extrap", "ridge2", "power", "endslope", "gplin")
_FEWEST = 3  # predictions of which a median is taken
_COMMON = 0.8  # share of test points that a baseline must have predicted
_MISSING = 5.0  # log error of a prediction that is none, and log width of an interval without an end


@dataclass(frozen=True, kw_only=True)
class Row:
    """One held-out point: the mean measured there, what the model says, and what other methods say."""

    case: Case
    place: int
    truth: float
    answer: Answer | None
    baselines: Mapping[str, float | None]

    @property
    def error(self) -> float:
        """The absolute log error."""
        return log_error(None if self.answer is None else self.answer.value, self.truth)


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Shares of cases in percent and mean absolute log error (MLogQ) of one method.

    ``better`` is the share of cases in which the tool's error is smaller; ties count half.
    """

    within10: float
    within20: float
    mlogq: float
    better: float = 50.0


@dataclass(frozen=True, kw_only=True)
class Held:
    """Share of held-out means in the intervals of a level in percent, and geometric mean of high/low."""

    holds: float
    width: float


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Scores of a set: of the tool, its intervals by level, other methods, and conformal intervals."""

    n: int
    tool: Accuracy
    mean: Mapping[float, Held]
    measured: Mapping[float, Held]
    baselines: Mapping[str, Accuracy]
    conformal: Held | None

    @property
    def best(self) -> str | None:
        """The single method with the smallest MLogQ."""
        some = {name: found.mlogq for name, found in self.baselines.items() if name in SINGLE}
        return min(some, key=lambda name: some[name]) if some else None

    def reaches_best(self, factor: float = 1.0) -> bool:
        """Return whether the tool's MLogQ is at most so many times that of the best single method."""
        return self.best is not None and (
            self.tool.mlogq <= factor * self.baselines[self.best].mlogq + 1e-9  # as written in tables
        )

    @property
    def is_narrow(self) -> bool:
        """Return whether intervals are at most twice as wide as the conformal ones."""
        return self.conformal is not None and self.mean[MAIN].width <= 2 * self.conformal.width


def rows(cases: Sequence[Case], found: Sequence[Sequence[Answer | None]]) -> list[Row]:
    """Pair what was measured with what is said, at all test points with a positive mean."""
    result = []
    for case, said in zip(cases, found, strict=True):
        for place, (values, answer) in enumerate(zip(case.test.values(), said, strict=True)):
            truth = sum(values) / len(values)
            if truth > 0:
                others = {name: list_[place] for name, list_ in case.baselines.items()}
                row = Row(case=case, place=place, truth=truth, answer=answer, baselines=_with_median(others))
                result.append(row)
    return result


def _with_median(others: dict[str, float | None]) -> dict[str, float | None]:
    """Add the unweighted median of the logarithms of six predictions, of as many as there are."""
    logs = [math.log(value) for name in _COMBINED if is_usable(value := others.get(name)) and value]
    return {**others, "median": math.exp(statistics.median(logs))} if len(logs) >= _FEWEST else others


def is_usable(value: float | None) -> bool:
    """Return whether a prediction has a logarithm."""
    return value is not None and value > 0 and math.isfinite(value)


def log_error(value: float | None, truth: float) -> float:
    """Return the absolute log error, as if far off where nothing usable was predicted."""
    return abs(math.log(value / truth)) if value is not None and is_usable(value) else _MISSING


def scores(found: Sequence[Row]) -> Scores:
    """Score all test points of a set."""
    own = [row.error for row in found]
    said = [row.answer.value if row.answer else None for row in found]
    return Scores(
        n=len(found),
        tool=_accuracy(said, found, own),
        mean={level: _held([_ends(row, "mean", level) for row in found], found) for level in LEVELS},
        measured={level: _held([_ends(row, "measured", level) for row in found], found) for level in LEVELS},
        baselines={
            name: _accuracy([row.baselines.get(name) for row in there], there, [row.error for row in there])
            for name in BASELINES
            if len(there := [row for row in found if row.baselines.get(name) is not None])
            > _COMMON * len(found)
        },
        conformal=_conformal(found),
    )


def _accuracy(values: Sequence[float | None], found: Sequence[Row], own: Sequence[float]) -> Accuracy:
    errors = [log_error(value, row.truth) for value, row in zip(values, found, strict=True)]
    relative = [
        abs(value / row.truth - 1) if value is not None and is_usable(value) else math.inf
        for value, row in zip(values, found, strict=True)
    ]
    return Accuracy(
        within10=_percent(e <= 0.1 for e in relative),
        within20=_percent(e <= 0.2 for e in relative),
        mlogq=statistics.fmean(errors),
        better=100 * statistics.fmean((m < e) + 0.5 * (m == e) for m, e in zip(own, errors, strict=True)),
    )


def _percent(hits: Iterable[bool]) -> float:
    return 100 * statistics.fmean(hits)


def _ends(row: Row, kind: str, level: float) -> tuple[float, float] | None:
    """Return the ends of an interval, which hold everything where the model has none."""
    if row.answer is None:
        return None
    low, high = (row.answer.mean if kind == "mean" else row.answer.measured)[level]
    return 0.0 if math.isnan(low) else low, math.inf if math.isnan(high) else high


def _held(ends: Sequence[tuple[float, float] | None], found: Sequence[Row]) -> Held:
    """Score intervals; one that is missing does not hold, and has no width."""
    inside = [e is not None and e[0] <= row.truth <= e[1] for e, row in zip(ends, found, strict=True)]
    widths = [_log_width(*e) for e in ends if e is not None]
    return Held(holds=_percent(inside), width=math.exp(statistics.fmean(widths)) if widths else math.nan)


def _log_width(low: float, high: float) -> float:
    return min(_MISSING, math.log(high / low)) if 0 < low <= high < math.inf else _MISSING


def _conformal(found: Sequence[Row]) -> Held | None:
    """Score split conformal intervals around the median of six, calibrated on the other cases of the set.

    Half the log width is the conformal quantile at 90 % of the absolute log errors of the median in all other
    cases (Lei et al., Distribution-free predictive inference for regression, 2018, section 2.2): the error of
    rank ``ceil(0.9 (n + 1))``, or the largest where n is too small for that.
    """
    there = [
        (row, log_error(row.baselines["median"], row.truth)) for row in found if "median" in row.baselines
    ]
    if len(there) <= _COMMON * len(found) or len({row.case.name for row, _ in there}) < 2:
        return None
    inside, widths = [], []
    for row, error in there:
        others = sorted(e for other, e in there if other.case.name != row.case.name)
        rank = math.ceil(MAIN / 100 * (len(others) + 1))
        half = others[min(rank, len(others)) - 1]
        inside.append(error <= half)
        widths.append(min(_MISSING, 2 * half))
    return Held(holds=_percent(inside), width=math.exp(statistics.fmean(widths)))
