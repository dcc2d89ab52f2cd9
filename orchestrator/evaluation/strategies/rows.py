"""From the outcomes of many campaigns to the rows of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypedDict

import numpy as np

from orchestrator.evaluation.aligned import aligned
from orchestrator.evaluation.strategies.trial import Outcome


class Row(TypedDict):
    """One strategy at one budget.

    ``accurate_percent`` counts models within the tolerance at P₊ among all functions. A function without a
    model (its starting set is over budget) counts as inaccurate; ``feasible_percent`` counts functions with a
    model. The medians and the coverage of 90 % intervals are over functions with a model; NaN without one.
    """

    strategy: str
    budget_percent: float
    functions: int
    accurate_percent: float
    feasible_percent: float
    median_error_percent: float
    median_cost_percent: float
    median_runs: float
    interval_coverage_percent: float


def rows(outcomes: Iterable[Outcome], tolerance: float = 5.0) -> list[Row]:
    """Aggregate outcomes per strategy and budget, in order of first appearance; ``tolerance`` in percent."""
    groups: dict[tuple[str, float], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.strategy, outcome.budget_percent), []).append(outcome)
    return [_row(*key, members, tolerance) for key, members in groups.items()]


def _row(strategy: str, budget: float, members: Sequence[Outcome], tolerance: float) -> Row:
    modelled = [outcome for outcome in members if outcome.feasible]
    errors = np.abs([outcome.error_percent for outcome in modelled])
    return Row(
        strategy=strategy,
        budget_percent=budget,
        functions=len(members),
        accurate_percent=100.0 * float(np.count_nonzero(errors <= tolerance)) / len(members),
        feasible_percent=100.0 * len(modelled) / len(members),
        median_error_percent=_median([float(error) for error in errors]),
        median_cost_percent=_median([outcome.cost_percent for outcome in modelled]),
        median_runs=_median([float(outcome.runs) for outcome in modelled]),
        interval_coverage_percent=100.0 * float(np.mean([outcome.covered for outcome in modelled]))
        if modelled
        else float("nan"),
    )


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if values else float("nan")


def _shown(value: float, form: str, unit: str = "") -> str:
    """Return a number with its unit, or a dash where no function has a model."""
    return "-" if math.isnan(value) else f"{value:{form}}{unit}"


def table(results: Sequence[Row]) -> str:
    """Return rows as aligned text, a header first."""
    heads = (
        "strategy",
        "budget",
        "accurate",
        "feasible",
        "median error",
        "cost",
        "runs",
        "coverage",
        "functions",
    )
    lines = [heads]
    for row in results:
        numbers = (
            f"{row['budget_percent']:g} %",
            f"{row['accurate_percent']:.1f} %",
            f"{row['feasible_percent']:.1f} %",
            _shown(row["median_error_percent"], ".2f", " %"),
            _shown(row["median_cost_percent"], ".2f", " %"),
            _shown(row["median_runs"], "g"),
            _shown(row["interval_coverage_percent"], ".1f", " %"),
            str(row["functions"]),
        )
        lines.append((row["strategy"], *numbers))
    return "\n".join(aligned(lines))
