"""Exact values that follow a law of some parameters, times any function of the others.

A count may be proportional to the number of steps, exactly, and irregular in the size of a mesh. Further
numbers of steps then say nothing of the mesh, however many there are. So the law is divided out, what remains
is modelled over the other parameters alone, from as many values as there really are, and multiplied back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import (
    Category,
    Floats,
    Integers,
    Model,
    Modeler,
    coordinates,
    document,
    inside,
    label_of,
)
from orchestrator.models.belief import Belief, LogBelief
from orchestrator.models.data import Group, lines_along
from orchestrator.models.intervals import FromPredictive, Predictive, predictive
from orchestrator.models.noise import GUESSED, LEAST_NOISE
from orchestrator.models.pmnf.block_sets import COSTS
from orchestrator.models.symbolic import number_text, power_text, sum_text, terms_of
from orchestrator.models.unvaried import Unvaried
from orchestrator.types import Measurement, Measurements, Point
from orchestrator.units import count

Laws = tuple[float | None, ...]
"""Exponent of every parameter, None where there is no law."""

# Exponents that are tried, and those that two values are enough for: counts do not depend on most parameters,
# or are proportional to them. Other exponents fit two values whatever was measured.
_EXPONENTS = tuple(sorted((power for power, log_power in COSTS if log_power == 0), key=abs))
_USUAL, _FEW = (0.0, 1.0), 2
# Relative difference of values that agree exactly, but for arithmetic.
_AGREE = 1e-9


def laws_of(points: Floats, values: Floats) -> Laws:
    """Return with which power of each parameter alone values grow exactly, whatever the others are.

    Parameters
    ----------
    points
        Shape (points, parameters).
    values
        Positive, shape (points,).
    """
    return tuple(
        _law(column, [line for line in lines_along(points, k) if len(line) > 1], values)
        for k, column in enumerate(points.T)
    )


def _law(x: Floats, lines: list[Integers], values: Floats) -> float | None:
    # Every value of the parameter must be compared with others of it.
    if not lines or len(np.unique(x[np.concatenate(lines)])) < len(np.unique(x)) or x.min() < 0:
        return None
    enough = max(map(len, lines)) > _FEW
    for power in _EXPONENTS if enough else _USUAL:
        if power and x.min() == 0:
            continue
        rest = values / x**power
        if all(np.ptp(rest[line]) <= _AGREE * rest[line].max() for line in lines):
            return power
    return None


@dataclass(frozen=True, slots=True)
class Remainder:
    """What is left of exact values without the laws."""

    # Names of parameters with a law, each with its smallest value and its exponent.
    factors: tuple[tuple[str, float, float], ...]
    # By point of the other parameters: what was measured where parameters with laws are smallest.
    values: Mapping[Point, float]

    @classmethod
    def of(cls, parameters: Sequence[str], points: Floats, values: Floats, laws: Laws) -> Remainder:
        """Divide values at points (points, parameters) by laws."""
        kept = [k for k, law in enumerate(laws) if law is None]
        factors = tuple(
            (parameters[k], float(points[:, k].min()), law) for k, law in enumerate(laws) if law is not None
        )
        grown = np.ones(len(values))
        for k, law in enumerate(laws):
            if law:
                grown *= (points[:, k] / points[:, k].min()) ** law
        rest = values / grown
        # Whole numbers stay whole.
        near = np.rint(rest)
        rest = np.where((np.abs(rest - near) <= _AGREE * near) & (values == np.rint(values)), near, rest)
        names = [parameters[k] for k in kept]
        at: dict[Point, float] = {}
        for x, value in zip(points[:, kept], rest, strict=True):
            at.setdefault(Point.of(dict(zip(names, map(float, x), strict=True))), float(value))
        return cls(factors, at)


def models(group: Group, rows: Iterable[int], modeler: Modeler) -> dict[int, Model]:
    """Return models of call paths that follow laws of some parameters and not of all, by row of the group.

    Parameters
    ----------
    group
        Call paths that were measured at the same points.
    rows
        Those whose values are exact, and of which nothing is known that explains them everywhere.
    modeler
        Models what remains.
    """
    remainders: dict[Laws, dict[int, Remainder]] = defaultdict(dict)
    for row in rows:
        values = np.nanmedian(group.values[row], axis=1)
        laws = laws_of(group.points, values)
        if None in laws and any(law is not None for law in laws):
            remainders[laws][row] = Remainder.of(group.parameters, group.points, values, laws)
    by_row: dict[int, Model] = {}
    for laws, some in remainders.items():
        names = tuple(n for n, law in zip(group.parameters, laws, strict=True) if law is None)
        items = tuple(
            # Twice: these values repeat exactly.
            Measurement(*group.labels[row], {point: (value,) * 2 for point, value in rest.values.items()})
            for row, rest in some.items()
        )
        by_label = {label_of(m): m for m in modeler(Measurements(names, items))}
        for row, rest in some.items():
            if (model := by_label.get(group.labels[row])) is not None:
                by_row[row] = FactoredModel.of(group, row, rest, names, model)
    return by_row


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FactoredModel(FromPredictive):
    """A model of what remains, times powers of parameters."""

    callpath: str
    metric: str
    parameters: tuple[str, ...]  # numeric parameters in the model's coordinates
    category: Category  # value of each categorical parameter for which the model holds
    factors: tuple[tuple[str, float, float], ...]  # as in `Remainder`
    model: Model  # of what remains
    others: tuple[str, ...]  # its parameters
    # Their measured values, shape (points, others), and the logarithms of what remains there, (points,).
    known: tuple[Floats, Floats]
    remarks: tuple[str, ...]  # what a reader must know of the measurements
    unvaried: Unvaried  # parameters that were measured at one value

    @classmethod
    def of(
        cls, group: Group, row: int, remainder: Remainder, others: tuple[str, ...], model: Model
    ) -> FactoredModel:
        """Return the model of a call path of a group."""
        callpath, metric = group.labels[row]
        return cls(
            callpath=callpath,
            metric=metric,
            parameters=group.parameters,
            category=group.category,
            factors=remainder.factors,
            model=model,
            others=others,
            known=(
                coordinates(list(remainder.values), others),
                np.log(np.array(list(remainder.values.values()))),
            ),
            remarks=group.notes[row],
            unvaried=group.unvaried,
        )

    @property
    def noise(self) -> float:
        """None that is known: the values repeat exactly."""
        return LEAST_NOISE

    @property
    def smape(self) -> float:
        """That of what remains: laws are exact."""
        return self.model.smape

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know: where values are exact, and how others are found."""
        powers = [power_text(name, power) for name, _, power in self.factors if power]
        without = [name for name, _, power in self.factors if not power]
        says = [f"proportional to {' * '.join(powers)}"] if powers else []
        says += [f"independent of {', '.join(without)}"] if without else []
        where = f"{count(len(self.known[1]), 'measured value')} of {', '.join(self.others)}"
        others = (note for note in self.model.notes if note != GUESSED)
        return (*self.remarks, f"{' and '.join(says)}, exactly: known at the {where}", *others)

    @property
    def terms(self) -> list[dict[str, Any]]:
        """Those of what remains, each times the powers."""
        added = [
            {"parameter": name, "exponent": power, "log_exponent": 0.0}
            for name, _, power in self.factors
            if power
        ]
        scale = self._scale
        return [
            {"coefficient": term["coefficient"] * scale, "factors": [*term["factors"], *added]}
            for term in terms_of(self.model)
        ]

    @property
    def normal_form(self) -> str:
        """The same as text."""
        return sum_text(self.terms) if self.terms else self.expression

    @property
    def expression(self) -> str:
        """What remains, times the powers."""
        if self.terms:
            return sum_text(self.terms)
        powers = [power_text(name, power) for name, _, power in self.factors if power]
        scale = [number_text(self._scale)] if powers else []
        return " * ".join(
            [*scale, f"({self.model.expression})" if powers else self.model.expression, *powers]
        )

    @property
    def _scale(self) -> float:
        return float(np.prod([least**-power for _, least, power in self.factors if power]))

    def predictive(self, points: Sequence[Point]) -> Predictive:
        """Return the mixture of what remains, times the powers; certain where it is known."""
        rest, logs = predictive(self.model, points), self._log_factors(points)
        is_known, certain = self._certain(points)
        value = np.where(is_known, np.exp(certain), rest.value) * np.exp(logs)
        own = replace(
            rest,
            value=inside(points, self.category, value),
            mean=np.where(is_known, certain, rest.mean) + logs,
            spread=np.where(is_known, 0.0, rest.spread),
            noise=self.noise,
        )
        return self.unvaried.predictive(own, points)

    def value(self, points: Sequence[Point]) -> Floats:
        """Return the values of `predict`."""
        is_known, certain = self._certain(points)
        rest = np.where(is_known, np.exp(certain), self.model.value(points))
        return inside(points, self.category, rest * np.exp(self._log_factors(points)))

    def expected(self, points: Sequence[Point]) -> Floats:
        """Return the mean over all that may remain, times the powers."""
        is_known, certain = self._certain(points)
        rest = np.where(is_known, np.exp(certain), self.model.expected(points))
        return inside(points, self.category, rest * np.exp(self._log_factors(points)))

    def belief(self, points: Sequence[Point]) -> LogBelief:
        """Return what is believed of what remains, with the powers; nothing varies where it is known."""
        is_known, certain = self._certain(points)
        if not isinstance(self.model, Belief):
            raise TypeError(f"{type(self.model).__name__} has no belief")
        rest = self.model.belief(points)
        own = replace(
            rest,
            mean=np.where(is_known, certain, rest.mean) + self._log_factors(points),
            factor=np.where(is_known, 0.0, rest.factor),
            rough=np.where(is_known, 0.0, rest.rough),
            noise=self.noise,
        )
        return self.unvaried.belief(own, points)

    def document(self) -> dict[str, Any]:
        """Return the model as a JSON-ready object."""
        return document(self)

    def _log_factors(self, points: Sequence[Point]) -> Floats:
        """Return the logarithm of the powers, shape (n,)."""
        x = coordinates(points, [name for name, _, _ in self.factors])
        result = np.zeros(len(points))
        with np.errstate(divide="ignore"):
            for column, (_, least, power) in zip(x.T, self.factors, strict=True):
                if power:
                    result += power * np.log(column / least)
        return result

    def _certain(self, points: Sequence[Point]) -> tuple[NDArray[np.bool_], Floats]:
        """Return where what remains is known, and its logarithm there, shape (n,) each; 0 elsewhere."""
        at, logs = self.known
        same = (coordinates(points, self.others)[:, None] == at).all(axis=2)
        is_known = same.any(axis=1)
        return is_known, np.where(is_known, logs[same.argmax(axis=1)], 0.0)
