"""Parameters that act exponentially, such as levels of refinement: models of 2 to their power.

With ``level: [3, 4, 5, 6]`` or ``scale: [18, 20, 22, 24]`` every step multiplies the time. No power of the
parameter grows like that, so formulas and curves of it are far too low beyond the measured values. Of
``2**level`` they are as of any other size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models import data, processes
from orchestrator.models.around import Around
from orchestrator.models.base import Floats, Label, Model, Modeler, document, key_of, label_of
from orchestrator.models.belief import Belief, HasAnswer, LogBelief, ModelWithBelief, has_belief
from orchestrator.models.callpaths import callers
from orchestrator.models.intervals import Predictive, predictive
from orchestrator.models.sums import with_sums
from orchestrator.models.uncertainty import RELEVANT_SHARE
from orchestrator.types import Measurement, Measurements, Point, Value

# Largest value that may be a level, and largest distance of two that follow one another: 16, 32, 64 are
# sizes. Values on a line that show how the time grows, at least. Chosen by hand.
_LARGEST, _APART, _SHOWN_BY = 60, 4, 4
# Power of the parameter as which the time grows in the last step, at least: no formula has a larger one, and
# hardly any program. Share of that with which it grows in the step before, at least: one step is a jump. How
# much more probable an exponential must be than a power, natural logarithm: little, as so steep powers are
# rare, and less for every power more. Chosen by hand (docs/families.md).
_STEEP, _BEFORE, _CLEARLY, _LESS = 5.0, 0.5, 0.5, 0.1
_NEAR_ZERO = 1e-3  # stands for zero where logarithms are taken
_LARGEST_POWER = 100.0  # of 2, of which further powers are numbers, too
_TINY = 1e-300  # keeps logarithms of zero finite


def with_levels(modeler: Modeler) -> Modeler:
    """Return a modeler that models call paths in ``2**level`` where a parameter acts exponentially.

    Each call path is looked at for itself: of what does not grow so, levels are a parameter as any other.
    What includes a call path that grows so does in the end, too: a whole run, say, of which starting takes
    most of the time at small levels. Callers may be the sums of their parts, which nobody can find later,
    when powers of 2 are out of sight.
    """

    def model(measurements: Measurements) -> tuple[Model, ...]:
        possible = _may_be_levels(measurements)
        found = {label_of(item): levels(item, possible) for item in measurements.items}
        if not any(found.values()):
            return modeler(measurements)
        found = _with_what_includes_them(found, measurements)
        models, errors = [], []
        for names in dict.fromkeys(found.values()):
            items = tuple(i for i in measurements.items if found[label_of(i)] == names)
            fit = with_sums(modeler) if names else modeler
            try:
                fitted = fit(_powers(replace(measurements, items=items), names))
            except ModelError as error:
                errors.append(error)
            else:
                models += [_of_levels(one, measurements, names) if names else one for one in fitted]
        if not models:
            raise errors[0]
        return data.in_order(measurements, {key_of(one): one for one in models})

    return model


def levels(item: Measurement, possible: Sequence[str]) -> tuple[str, ...]:
    """Return which of some parameters act exponentially on a call path.

    Along such a parameter the time grows steeper in the end than any power does, and an exponential follows
    the last values better than a power. Lines that take longer count for more: on the others, what
    does not depend on the parameter may take most of the time.
    """
    if not possible:
        return ()
    # A zero is less than a clock can show: from it, one tick is no growth.
    logs = {point: float(np.log(v).mean()) for point, v in item.values.items() if len(v) and min(v) > 0}
    return tuple(name for name in possible if _is_level(name, logs))


def _with_what_includes_them(
    found: Mapping[Label, tuple[str, ...]], measurements: Measurements
) -> dict[Label, tuple[str, ...]]:
    """Return which parameters act exponentially on call paths, those that include others among them."""
    acting = [item for item in measurements.items if found[label_of(item)]]
    called: dict[Label, list[Measurement]] = {}
    for part in acting:
        for caller in callers(part.callpath)[1:]:
            called.setdefault((caller, part.metric), []).append(part)
    timed = [part for part in acting if part.metric == "time"]
    result = {}
    for whole in measurements.items:
        key = label_of(whole)
        parts = timed if whole.metric == "elapsed" else called.get(key, [])
        names = {*found[key], *(n for p in parts if _includes(whole, p) for n in found[label_of(p)])}
        result[key] = tuple(name for name in measurements.parameters if name in names)
    return result


def _includes(whole: Measurement, part: Measurement) -> bool:
    """Return whether values are those of one that is included, and relevant, and of more.

    The time of a caller may be that of itself alone.
    """
    common = [point for point in part.values if len(part.values[point]) and len(whole.values.get(point, ()))]
    if not common:
        return False
    inner, outer = (np.array([np.mean(item.values[p]) for p in common]) for item in (part, whole))
    return bool((inner <= outer).all() and (inner[last := outer.argmax()] > RELEVANT_SHARE * outer[last]))


def _may_be_levels(measurements: Measurements) -> list[str]:
    """Return the parameters that have values as levels have them, and count no processes."""
    counting = processes.found(measurements.parameters)
    others = frozenset[str]() if counting is None else counting.all_names
    return [
        name
        for name in measurements.parameters
        if name not in others
        and not measurements.is_categorical(name)
        and _are_levels(np.sort(np.array(measurements.values_of(name), dtype=float)))
    ]


def _are_levels(values: Floats) -> bool:
    """Return whether different values of a parameter, in ascending order, may be levels."""
    if len(values) < _SHOWN_BY or values[0] < 0 or values[-1] > _LARGEST or (values % 1).any():
        return False
    close = np.diff(values) <= _APART
    return bool((close[1:] & close[:-1]).any())


def _is_level(name: str, logs: Mapping[Point, float]) -> bool:
    """Return whether a parameter acts exponentially, by logarithms of the time."""
    lines = [line[-_SHOWN_BY:] for line in _lines(name, logs) if len(line) >= _SHOWN_BY]
    ends = np.array([line for line in lines if line[-1][0] - line[-2][0] <= _APART])
    if not len(ends):
        return False
    x, log = ends[..., 0], ends[..., 1]
    log_x = np.log(np.maximum(x, _NEAR_ZERO))
    weight = np.exp(log[:, -1] - log[:, -1].max())
    rise, wide = (weight @ np.diff(part[:, -3:]) for part in (log, log_x))
    if np.any(rise < _STEEP * wide * [_BEFORE, 1.0]):
        return False
    freedom = (_SHOWN_BY - 2) * weight.sum()
    left = [float(weight @ _left_over(part, log)) + _TINY for part in (log_x, x)]
    needed = _CLEARLY - _LESS * float(rise[-1] / wide[-1] - _STEEP)
    return bool(freedom / 2 * np.log(left[0] / left[1]) > needed)


def _left_over(x: Floats, log: Floats) -> Floats:
    """Return the squares that straight lines leave, shape (lines,), of values of shape (lines, points)."""
    x, log = (part - part.mean(axis=1, keepdims=True) for part in (x, log))
    explained = (x * log).sum(axis=1) ** 2 / (x**2).sum(axis=1)
    return np.asarray(np.maximum((log**2).sum(axis=1) - explained, 0.0))


def _lines(name: str, logs: Mapping[Point, float]) -> Iterator[list[tuple[float, float]]]:
    """Yield the values of a parameter, with logarithms of the time, where all others are the same."""
    lines: dict[tuple[tuple[str, Value], ...], list[tuple[float, float]]] = {}
    for point, log in logs.items():
        others = tuple(part for part in point.items if part[0] != name)
        lines.setdefault(others, []).append((point.number(name), log))
    return map(sorted, lines.values())


def _power_of(name: str) -> str:
    """Return what the power of a level is called, which Python can evaluate in an expression."""
    return f"(2**{name})"


def _in_levels(note: str, names: Collection[str]) -> str:
    """Return a note that gives levels instead of powers of 2: ``level=3`` for ``(2**level)=8``."""
    for name in names:
        power = _power_of(name)
        before, *others = re.split(re.escape(power) + r"(\s?=\s?)([\d.]+(?:e[+-]?\d+)?)", note)
        for sign, value, after in zip(others[::3], others[1::3], others[2::3], strict=True):
            before += f"{name}{sign}{round(math.log2(float(value)), 1):g}{after}"
        note = before.replace(power, f"2**{name}")
    return note


def _place(point: Point, names: Collection[str]) -> Point:
    """Return a point with 2 to the power of some parameters instead of these."""
    return Point(
        tuple(
            (_power_of(name), 2.0 ** min(float(value), _LARGEST_POWER)) if name in names else (name, value)
            for name, value in point.items
        )
    )


def _powers(measurements: Measurements, names: Collection[str]) -> Measurements:
    """Return measurements over 2 to the power of some parameters instead of these."""
    if not names:
        return measurements
    places = {point: _place(point, names) for point in measurements.points}
    items = tuple(
        replace(
            item,
            values={places[point]: v for point, v in item.values.items()},
            origins={places[point]: v for point, v in item.origins.items()},
        )
        for item in measurements.items
    )
    parameters = tuple(_power_of(name) if name in names else name for name in measurements.parameters)
    return replace(measurements, parameters=parameters, items=items)


def _of_levels(model: Model, measurements: Measurements, names: tuple[str, ...]) -> Model:
    numeric = tuple(name for name in measurements.parameters if not measurements.is_categorical(name))
    if has_belief(model):
        return LevelModelWithBelief(model, numeric, names)
    return LevelModel(model, numeric, names)


@dataclass(frozen=True, slots=True, eq=False)
class LevelModel(Around):
    """A model of 2 to the power of some parameters, as a model of these."""

    model: Model
    parameters: tuple[str, ...]
    levels: tuple[str, ...]  # those that act exponentially

    @property
    def expression(self) -> str:
        """That of the model, with powers such as ``(2**level)**3``."""
        text = self.model.expression
        for name in self.levels:
            text = text.replace(f"log2({_power_of(name)})", name)
        return text

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of the model, and of what it is one."""
        acting = (f"{name} acts exponentially: this is a model of 2**{name}" for name in self.levels)
        return (*(_in_levels(note, self.levels) for note in self.model.notes), *acting)

    def predictive(self, points: Sequence[Point]) -> Predictive:
        """Return that of the model."""
        return predictive(self.model, self._places(points))

    def value(self, points: Sequence[Point]) -> Floats:
        """Return the values of the model."""
        return self.model.value(self._places(points))

    def expected(self, points: Sequence[Point]) -> Floats:
        """Return the means of the model."""
        return self.model.expected(self._places(points))

    def document(self) -> dict[str, Any]:
        """Return the model as a JSON-ready object."""
        return document(self)

    def _places(self, points: Sequence[Point]) -> list[Point]:
        return [_place(point, self.levels) for point in points]


@dataclass(frozen=True, slots=True, eq=False)
class LevelModelWithBelief(LevelModel):
    """The same of a model that knows how its predictions vary together."""

    model: ModelWithBelief

    def belief(self, points: Sequence[Point]) -> LogBelief:
        """Return that of the model."""
        return self.model.belief(self._places(points))

    @property
    def answer(self) -> Model | None:
        """The formula alone, where it is the answer of the model."""
        found = self.model.answer if isinstance(self.model, HasAnswer) else None
        if not isinstance(found, Belief):
            return None
        return LevelModelWithBelief(cast(ModelWithBelief, found), self.parameters, self.levels)
