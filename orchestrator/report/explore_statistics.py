"""How parameters and responses hang together, without any model: ranks, intervals, clusters.

Lee et al., Methods of Inference and Learning for Performance Modeling of Parallel Applications, section 2.4:
hierarchical clustering by correlation, association by intervals, and Spearman's rank correlation. Categories
have no ranks. What they explain of the ranks of numbers is a correlation ratio (Kruskal and Wallis 1952), and
what two of them have in common is Cramér's V squared; both are corrected for what chance explains (Kelley
1935; Bergsma 2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import cluster, spatial, stats

from orchestrator.models.base import Floats
from orchestrator.report.explore_samples import FEWEST, Column
from orchestrator.types import format_value

INTERVALS = 4
_LEVELS = 12  # categories that an association shows, those with the most points


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """How much one parameter says about one response."""

    rho: float | None  # Spearman's correlation, -1 to 1; None for categories
    # Share of the variance of the response's ranks that the parameter's ranks (or categories) explain.
    explained: float
    # The same with the squares of the parameter's ranks, too: larger than ``explained`` where the response
    # rises and falls. For categories the same as ``explained``.
    bent: float
    p_value: float  # probability of as much by chance (F test of the ranks)
    points: int  # at which both are known


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The response in one interval of a parameter (its smallest and largest value there), or one category."""

    label: str
    points: int
    mean: float
    median: float
    lower_quartile: float
    upper_quartile: float


@dataclass(frozen=True, slots=True)
class Merge:
    """One step of hierarchical clustering: members of the new cluster, and how similar its parts are."""

    members: tuple[str, ...]
    similarity: float


def association(parameter: Column, response: Column) -> Association:
    """Return how much a parameter explains of the ranks of a response (equation 1 and figure 4)."""
    both = np.isfinite(response.values) & np.isfinite(parameter.values)
    x, y = parameter.values[both], stats.rankdata(response.values[both])
    n = len(y)
    if n < FEWEST or np.ptp(y) == 0 or np.ptp(x) == 0:
        return Association(rho=None, explained=0.0, bent=0.0, p_value=1.0, points=n)
    if parameter.categorical:
        share, groups = _between(x, y)
        return Association(
            rho=None,
            explained=_adjusted(share, n, groups),
            bent=_adjusted(share, n, groups),
            p_value=_chance(share, n, groups),
            points=n,
        )
    ranks = stats.rankdata(x)
    rho = _correlation(ranks, y)
    return Association(
        rho=rho, explained=rho**2, bent=_bent(ranks, y), p_value=_chance(rho**2, n, 2), points=n
    )


def similarity(columns: Sequence[Column]) -> Floats:
    """Return the shares of variance that columns have in common, shape (columns, columns), 1 on the diagonal.

    Squared rank correlations between numbers, as in the paper.
    """
    ranks = {column.name: stats.rankdata(column.values) for column in columns if _complete(column)}
    shares = np.eye(len(columns))
    for i, first in enumerate(columns):
        for j in range(i):
            shares[i, j] = shares[j, i] = _common(first, columns[j], ranks)
    return shares


def merges(columns: Sequence[Column], shares: Floats) -> tuple[tuple[Merge, ...], Floats]:
    """Return how columns cluster, the most similar first, and the same as SciPy's linkage matrix.

    The similarity of two clusters is the largest of their members' (single linkage, section 2.4.1).

    Parameters
    ----------
    columns
        At least two.
    shares
        Of `similarity`.
    """
    distances = spatial.distance.squareform(np.clip(1.0 - shares, 0.0, 1.0), checks=False)
    tree = np.asarray(cluster.hierarchy.linkage(distances, method="single"), dtype=float)
    members: list[tuple[str, ...]] = [(column.name,) for column in columns]
    steps = []
    for first, second, distance, _ in tree:
        members.append((*members[int(first)], *members[int(second)]))
        steps.append(Merge(members[-1], 1.0 - float(distance)))
    return tuple(steps), tree


def by_intervals(parameter: Column, response: Column, count: int = INTERVALS) -> tuple[Interval, ...]:
    """Return the response over intervals of a parameter (figure 3), those without points left out.

    Few values, up to twice ``count``, are an interval each; otherwise intervals hold equally many points.
    The most frequent categories are given, at most twelve.
    """
    both = np.isfinite(response.values)
    x, y = parameter.values[both], response.values[both]
    if parameter.categorical:
        often = sorted(np.unique(x), key=lambda value: -int(np.count_nonzero(x == value)))[:_LEVELS]
        return tuple(_interval(parameter.levels[int(value)], y[x == value]) for value in sorted(often))
    places = _places(x, count)
    return tuple(_interval(_label(x[places == k]), y[places == k]) for k in np.unique(places))


def _places(x: Floats, count: int) -> NDArray[np.intp]:
    values = np.unique(x)
    edges = values[1:] if len(values) <= 2 * count else np.quantile(x, np.arange(1, count) / count)
    return np.searchsorted(np.unique(edges), x, side="right")


def _label(x: Floats) -> str:
    low, high = (format_value(float(f"{value:.4g}")) for value in (x.min(), x.max()))
    return low if low == high else f"{low} to {high}"


def _interval(label: str, y: Floats) -> Interval:
    lower, median, upper = (float(value) for value in np.quantile(y, (0.25, 0.5, 0.75)))
    return Interval(
        label=label,
        points=len(y),
        mean=float(y.mean()),
        median=median,
        lower_quartile=lower,
        upper_quartile=upper,
    )


def _complete(column: Column) -> bool:
    return not column.categorical and bool(np.all(np.isfinite(column.values)))


def _common(first: Column, second: Column, ranks: dict[str, Floats]) -> float:
    if first.name in ranks and second.name in ranks:
        return _correlation(ranks[first.name], ranks[second.name]) ** 2
    if first.categorical and second.categorical:
        return _cramer(first.values, second.values)
    parameter, response = (first, second) if first.categorical else (second, first)
    return association(parameter, response).explained


def _correlation(first: Floats, second: Floats) -> float:
    return float(np.clip(np.corrcoef(first, second)[0, 1], -1.0, 1.0))


def _between(groups: Floats, ranks: Floats) -> tuple[float, int]:
    """Return the share of the variance that lies between groups, and how many groups there are."""
    _, places = np.unique(groups, return_inverse=True)
    sizes = np.bincount(places)
    means = np.bincount(places, ranks) / sizes
    between = float(sizes @ (means - ranks.mean()) ** 2)
    return between / float(np.sum((ranks - ranks.mean()) ** 2)), len(sizes)


def _bent(ranks: Floats, y: Floats) -> float:
    """Return the share of the variance that a parabola in the ranks explains."""
    x = (ranks - ranks.mean()) / ranks.std()
    design = np.stack([np.ones_like(x), x, x**2], axis=1)
    left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return float(1.0 - (left @ left) / np.sum((y - y.mean()) ** 2))


def _adjusted(share: float, n: int, groups: int) -> float:
    """Return a share of variance less what ``groups`` explain by chance; 0 where each point has its own."""
    return max(0.0, 1.0 - (1.0 - share) * (n - 1) / (n - groups)) if n > groups else 0.0


def _chance(share: float, n: int, groups: int) -> float:
    if n <= groups:
        return 1.0
    if share >= 1.0:
        return 0.0
    ratio = share / (groups - 1) / ((1.0 - share) / (n - groups))
    return float(stats.f.sf(ratio, groups - 1, n - groups))


def _cramer(first: Floats, second: Floats) -> float:
    """Return Cramér's V squared, with the correction of Bergsma (2013)."""
    table = np.asarray(stats.contingency.crosstab(first, second).count, dtype=float)
    n, (rows, columns) = table.sum(), table.shape
    expected = stats.contingency.expected_freq(table)
    phi = float(np.sum((table - expected) ** 2 / expected)) / n
    less = max(0.0, phi - (rows - 1) * (columns - 1) / (n - 1))
    size = min(rows - (rows - 1) ** 2 / (n - 1), columns - (columns - 1) ** 2 / (n - 1)) - 1
    return min(1.0, less / size) if size > 0 else 0.0
