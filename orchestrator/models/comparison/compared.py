"""All call paths of two sets of measurements, with their models: what changed, and what it amounts to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from orchestrator.models.base import Category, Key, Model, is_of, key_of, label_of
from orchestrator.models.comparison.mixtures import Mixture
from orchestrator.models.comparison.pairs import Aligned, Pairs, pairs
from orchestrator.models.comparison.ratio import Ratio, false_discoveries, independent_callpaths, ratio
from orchestrator.models.intervals import LEVEL, lognormal, predictive
from orchestrator.types import Measurements, Point, Value, format_value

# From so many pairs on, they say how the ratio continues beyond them.
_CONTINUED = 3
_SHOWN = 0.05  # least share of a ratio for which it is said where it comes from
_MOST_POINTS = 100  # at which models alone are compared
_FREEDOM = 30.0  # degrees of freedom of what models say


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """The logarithm of B / A at a point, given that something changed, and where it is known from.

    ``basis``: ``pairs``, ``models``, or ``pairs and models``.
    """

    point: Point
    ratio: Mixture
    basis: str


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One call path and metric, in one category."""

    key: Key  # which one
    # first, second: the models of A and B; None where none was fitted.
    first: Model | None
    second: Model | None
    ratio: Ratio | None  # what is known of B / A; None where neither common points nor two models tell it
    # Whether there are common points; otherwise ``ratio`` is what the models say where they are surest.
    paired: bool

    @property
    def probability(self) -> float | None:
        """The probability that something changed."""
        return None if self.ratio is None else self.ratio.probability()

    def at(self, point: Point) -> At | None:
        """Return the ratio at a point; None where nothing is known, or at points of another category."""
        if not is_of(point, self.key[2]):
            return None
        models = _of_models(self.first, self.second, point)
        if self.ratio is None or not self.paired:
            return None if models is None else At(point=point, ratio=models, basis="models")
        place = {name: point.number(name) for name in self.ratio.pairs.parameters}
        within = self.ratio.axes.hold(np.array(list(place.values())))
        if models is not None and not within and len(self.ratio.pairs.difference) < _CONTINUED:
            return At(point=point, ratio=models, basis="models")
        bent = 0.0 if models is None else self.ratio.bent
        agreement = self._agreement if within else 1.0
        basis = "pairs and models" if bent * agreement >= _SHOWN else "pairs"
        return At(point=point, ratio=self.ratio.at(place, models, agreement), basis=basis)

    @cached_property
    def _agreement(self) -> float:
        """The probability that a bent ratio is that of the models where it was measured."""
        if self.ratio is None or self.first is None or self.second is None or self.ratio.bent < _SHOWN:
            return 0.0
        names, category = self.ratio.pairs.parameters, dict(self.key[2])
        points = [
            Point.of(**dict(zip(names, row, strict=True)), **category)
            for row in self.ratio.pairs.points.tolist()
        ]
        a, b = (np.array(_log(model, points))[:, 0] for model in (self.first, self.second))
        return self.ratio.agreement(b - a)

    def posterior(self, there: At) -> Mixture:
        """Return the logarithm of the ratio with the possibility that nothing changed."""
        changed = self.probability
        if changed is None:
            return there.ratio
        return Mixture.joined([(changed, there.ratio), (1 - changed, Mixture.zero())])


def compared(
    both: Aligned, first: Iterable[Model], second: Iterable[Model], metrics: Iterable[str] | None = None
) -> list[Compared]:
    """Compare all that was measured in both, in the order of A.

    Parameters
    ----------
    both
        From `orchestrator.models.comparison.pairs.aligned`.
    first, second
        Models of A and of B (fitted to ``both``); none are needed where there are common points.
    metrics
        The wanted ones; None for all.
    """
    a, b = ({key_of(model): model for model in side} for side in (first, second))
    found = pairs(both.first, both.second, both.together)
    wanted = None if metrics is None else set(metrics)
    order = {label_of(item): k for k, item in enumerate(both.first.items)}
    in_categories = {key[:2] for key in found if key[2]}  # a model for all categories is that of each of them
    keys = dict.fromkeys([*found, *(k for k in a if k in b and (k[2] or k[:2] not in in_categories))])
    rows = []
    for key in sorted((k for k in keys if k[:2] in order), key=lambda k: (order[k[:2]], k[2])):
        if wanted is not None and key[1] not in wanted:
            continue
        mine, yours = _model(a, key), _model(b, key)
        pair = found.get(key)
        paired = pair is not None
        if pair is None and mine is not None and yours is not None:
            pair = _pair_of_models(mine, yours, both, key[2])
        rows.append(
            Compared(
                key=key,
                first=mine,
                second=yours,
                ratio=None if pair is None else ratio(pair),
                paired=paired,
            )
        )
    return rows


def discoveries(rows: Sequence[Compared]) -> list[float | None]:
    """Return `false_discoveries` of all rows; None where nothing is known."""
    known = [row.ratio for row in rows if row.ratio is not None]
    shares: Iterator[float] = iter(())
    if known:
        worth = independent_callpaths([item.pairs for item in known])
        shares = iter(false_discoveries([item.evidence for item in known], worth).tolist())
    return [None if row.ratio is None else next(shares) for row in rows]


def largest_common(rows: Sequence[Compared], both: Aligned) -> Point:
    """Return the common point with the largest values, or where there is none, such a point inside of both.

    Categories are those of the first row, or the first ones that both have.
    """
    names = _numeric(both)
    categories = {name: _first_common(both, name) for name in both.first.parameters if name not in names}
    categories |= dict(rows[0].key[2]) if rows else {}
    places = [
        tuple(point)
        for row in rows
        if row.ratio is not None and row.paired
        for point in row.ratio.pairs.points.tolist()
    ]
    if places and names:
        table = np.array(sorted(set(places)), dtype=float).reshape(-1, len(names))
        widths = np.maximum(np.ptp(table, axis=0), 1e-300)
        chosen = table[int(np.argmax(((table - table.min(axis=0)) / widths).sum(axis=1)))]
    else:
        sides = (both.first, both.second)
        chosen = np.array([min(max(map(float, side.values_of(n))) for side in sides) for n in names])
    values = categories | dict(zip(names, map(_plain, chosen.tolist()), strict=True))
    return Point.of({name: values[name] for name in both.first.parameters})


def in_category(point: Point, category: Category, known: Measurements) -> Point:
    """Return a point with the categories of a row: the values that were measured."""
    values = {
        name: next(value for value in known.values_of(name) if format_value(value) == text)
        for name, text in category
    }
    return Point.of({**point.as_dict(), **values})


def common_factor(rows: Sequence[Compared]) -> float | None:
    """Return the factor by which all call paths with common points differ alike; None where they do not.

    Nine of ten, of at least five, have a mean ratio within a quarter of the median's distance from 1.
    """
    means = np.array(
        [float(np.median(row.ratio.pairs.difference)) for row in rows if row.ratio and row.paired]
    )
    if len(means) < 5:
        return None
    middle = float(np.median(means))
    changed = np.mean([(row.probability or 0.0) for row in rows if row.ratio and row.paired])
    alike = np.mean(np.abs(means - middle) < abs(middle) / 4)
    return math.exp(middle) if alike >= 0.9 and changed >= 0.5 else None


def _numeric(both: Aligned) -> tuple[str, ...]:
    return tuple(name for name in both.first.parameters if not both.first.is_categorical(name))


def _first_common(both: Aligned, name: str) -> Value:
    """Return the first category of a parameter that both have; empty if there is none."""
    return next((value for value in both.first.values_of(name) if value in both.second.values_of(name)), "")


def _plain(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _model(models: Mapping[Key, Model], key: Key) -> Model | None:
    """Return the model of a category, or the one for all."""
    return models.get(key) or models.get((key[0], key[1], ()))


def _of_models(first: Model | None, second: Model | None, point: Point) -> Mixture | None:
    """Return the logarithm of the ratio of two models at a point; their errors are taken as independent."""
    if first is None or second is None:
        return None
    (a, c), (b, d) = (_log(model, [point])[0] for model in (first, second))
    found = (b - a, math.hypot(c, d))
    return Mixture.normal(*found) if all(map(math.isfinite, found)) else None


def _log(model: Model, points: Sequence[Point]) -> list[tuple[float, float]]:
    """Return logarithm and its standard deviation at points, from value and interval; NaN where unknown."""
    known = predictive(model, points)
    _, spread = lognormal(*known.of_mean(LEVEL))
    with np.errstate(all="ignore"):
        return list(zip(np.log(known.value).tolist(), spread.tolist(), strict=True))


def _pair_of_models(first: Model, second: Model, both: Aligned, category: Category) -> Pairs | None:
    """Return what two models say where they are surest, as if it were one pair of measurements."""
    points = [
        point
        for side in (both.first, both.second)
        for point in side.points[:: max(1, len(side.points) // _MOST_POINTS)]
        if is_of(point, category)
    ]
    if not points:
        return None
    table = [
        (b - a, c * c + d * d, point)
        for (a, c), (b, d), point in zip(_log(first, points), _log(second, points), points, strict=True)
        if math.isfinite(b - a) and math.isfinite(c + d)
    ]
    if not table:
        return None
    difference, variance, point = min(table, key=lambda row: row[1])
    names = _numeric(both)
    return Pairs(
        parameters=names,
        points=np.array([[point.number(name) for name in names]], dtype=float),
        difference=np.array([difference]),
        variance=np.array([max(variance, 1e-14)]),
        freedom=_FREEDOM,
        noise=(first.noise, second.noise),
    )
