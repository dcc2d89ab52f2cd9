"""Power laws with a change: a step or another slope from some value of a parameter on, or a saturation.

Caches, protocols and block sizes make two regimes, which no sum of smooth terms follows. In the logarithms a
power law with a given change point is linear, so all change points are tried (segmented regression: Muggeo,
Statistics in Medicine 22, 2003, section 2, with the change point at a measured value instead of estimated).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.curves import saturation
from orchestrator.models.curves.design import Design
from orchestrator.models.curves.evidence import Columns
from orchestrator.models.curves.saturation import Saturation, saturations
from orchestrator.models.symbolic import power_law, power_law_through, power_text, sum_text
from orchestrator.types import format_value

# Measured values on each side of a change, at least; those at the change are above it.
_SIDE = 2
# Values of a parameter that are tried as change point, at most: of more the evenly spread ones.
_TRIED = 8
# Step and change of slope that are tried at each.
_KINDS = (True, False), (False, True), (True, True)
# Points beyond the coefficients, at least.
_SPARE = 2
# Standard deviation of slopes, steps and changes of slope, as of the constant in the logarithm.
_SIZE = 0.7
# Natural logarithm of how much less probable they are than curves beforehand: so much, and for every point.
# Of real measurements few are two exact power laws, and what the one at the end says goes far.
_PRICE, _POINT = 4.0, 0.1
# Probability of a change at a value from which a reader is told of it.
_LIKELY = 0.5
# Digits after the decimal point of exponents in texts.
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Change:
    """From a value of a parameter on (its column): a step, another slope, or both."""

    parameter: int
    value: float
    step: bool
    hinge: bool

    @property
    def place(self) -> tuple[int, float]:
        """Where it is, whatever changes there."""
        return self.parameter, self.value

    @property
    def used(self) -> tuple[bool, bool]:
        """Which of the two last coefficients it has."""
        return self.step, self.hinge

    def features(self, logs: Floats) -> tuple[Floats, Floats]:
        """Return what these are multiplied by, from logarithms of points (n, parameters), shape (n,) each."""
        beyond = logs[:, self.parameter] - np.log(self.value)
        return self.step * (beyond >= -1e-9), self.hinge * np.maximum(beyond, 0.0)


Kind = Change | Saturation


@dataclass(frozen=True, slots=True, kw_only=True)
class Regimes:
    """Power laws of one call path, the first without a change, around which there may be curves."""

    changes: tuple[Kind | None, ...]  # of every law; None for none, and for the first one
    middle: Floats  # mean logarithm of every parameter over the points, shape (parameters,)
    # Logarithm at the middle, slopes, height of the step, and change of the slope, shape (laws, parameters +
    # 3).
    fitted: Floats

    @property
    def weights(self) -> Floats:
        """Beforehand: half for no change, the rest for changes and saturations alike, shape (laws,)."""
        kinds = np.array([type(item).__name__ for item in self.changes])
        some = {kind: kinds == kind for kind in kinds[1:]}
        each = np.where(np.arange(len(kinds)) == 0, 0.5, 0.0)
        for here in some.values():
            each[here] = 0.5 / len(some) / here.sum()
        return each

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        """Return logarithms (laws, n), and their slopes by coefficients (laws, parameters + 3, n)."""
        slopes = _features(self.changes, self.middle, x)
        return np.einsum("kc,kcn->kn", self.fitted, slopes), slopes

    def likely(self, odds: Floats) -> tuple[int, float] | None:
        """Return which law with a change is most probable, from odds of shape (laws,), if one is likely.

        And the probability that something changes at the same value; None where it is below one half.
        """
        changed = np.where([change is not None for change in self.changes], odds, 0.0)
        law = int(changed.argmax())
        best = self.changes[law]
        if best is None:
            return None
        there = [item is not None and item.place == best.place for item in self.changes]
        together = float(odds[there].sum())
        return (law, together) if together >= _LIKELY else None

    def terms(self, law: int, names: Sequence[str], *, above: bool) -> list[dict[str, Any]]:
        """Return the power law on one side of a change as one term, which is JSON-ready."""
        size, change = len(self.middle), self.changes[law]
        slopes, middle = self.fitted[law, 1 : 1 + size].copy(), self.fitted[law, 0]
        if isinstance(change, Change) and above:
            step, hinge = self.fitted[law, 1 + size :]
            slopes[change.parameter] += hinge
            middle += step + hinge * (self.middle[change.parameter] - np.log(change.value))
        return power_law_through(middle, self.middle, names, slopes, _DIGITS)

    def text(self, law: int, change: Change, names: Sequence[str]) -> str:
        """Return both sides of a law with that change: ``p < 128: 0.2 * n**1.1, else 0.9 * n``."""
        below, beyond = (sum_text(self.terms(law, names, above=above)) for above in (False, True))
        return f"{names[change.parameter]} < {format_value(change.value)}: {below}, else {beyond}"

    def note(self, law: int, names: Sequence[str], probability: float) -> str:
        """Return where a law changes and how: ``changes at p = 128 (a step of x1.7), with ...``."""
        change = self.changes[law]
        assert change is not None
        size = len(self.middle)
        step, hinge = self.fitted[law, 1 + size :]
        if isinstance(change, Saturation):
            slopes = np.round(self.fitted[law, 1 : 1 + size], _DIGITS)
            before = sum_text(power_law(1.0, names, slopes)).removeprefix("1 * ")
            return (
                f"the speedup saturates: as {before} * {change.text(names)}**{hinge:.3g}, with a "
                f"probability of {probability:.2f}; the expression is its power law at the largest measured "
                "values"
            )
        name = names[change.parameter]
        before = self.fitted[law, 1 + change.parameter]
        parts = [f"a step of x{np.exp(step):.3g}"] if change.step else []
        if change.hinge:
            old, new = (
                power_text(name, round(float(e), _DIGITS)) or "flat" for e in (before, before + hinge)
            )
            parts.append(f"from {old} to {new}")
        where = f"{name} = {format_value(change.value)}"
        return f"changes at {where} ({', '.join(parts)}), with a probability of {probability:.2f}"


def fit(design: Design, log_value: Floats, counting: Sequence[int] = ()) -> list[Regimes] | None:
    """Fit all power laws with and without a change to logarithms of shape (call paths, points).

    ``counting`` are the columns of the points whose product is the number of processes. None where a
    parameter has values that are not positive, or where there are too few for a change.
    """
    points = design.points
    if (points <= 0).any():
        return None
    changes = (*_candidates(points), *saturations(points, counting))
    if len(changes) == 1:
        return None
    middle = np.log(points).mean(axis=0)
    weight = np.sqrt(design.precision)
    inverse = np.linalg.pinv(_features(changes, middle, points).swapaxes(1, 2) * weight[:, None], 1e-9)
    fitted = np.einsum("kcn,pn->pkc", inverse, log_value * weight)
    return [Regimes(changes=changes, middle=middle, fitted=row) for row in fitted]


def columns(design: Design, regimes: Sequence[Regimes], log_value: Floats) -> Columns:
    """Evaluate at the points of a design, with values of shape (call paths, points).

    Laws of a call path follow those of the one before; all have the same changes.
    """
    first = regimes[0]
    number, points = len(regimes), len(design.points)
    slopes = first.at(design.points)[1]
    fitted = np.array([item.fitted for item in regimes])
    residuals = log_value[:, None] - np.einsum("pkc,kcn->pkn", fitted, slopes)
    scale = _SIZE * _used(first.changes, len(first.middle)).astype(np.float64)
    sizes = (fitted[:, :, 1:] ** 2).sum(axis=2) / (2 * _SIZE**2)
    price = np.log(first.weights) - (_PRICE + _POINT * points) - sizes
    every = np.tile(np.arange(len(scale)), number)
    return Columns.around(
        design,
        residuals.reshape(-1, points),
        (slopes * scale[:, :, None])[every],
        scale[every],
        price.ravel(),
    )


def _candidates(points: Floats) -> tuple[Change | None, ...]:
    found: list[Change | None] = [None]
    for k in range(points.shape[1]):
        values = np.unique(points[:, k])
        inside = np.arange(_SIDE, len(values) - _SIDE + 1)
        tried = np.linspace(0, len(inside) - 1, min(_TRIED, len(inside))).round().astype(int)
        for place, (step, hinge) in product(inside[tried], _KINDS):
            # Another slope that only the last value shows may as well be a step, or an outlier.
            above = len(values) - place >= _SIDE + hinge
            if above and points.shape[1] + 1 + step + hinge + _SPARE <= len(points):
                found.append(Change(k, float(values[place]), step, hinge))
    return tuple(found)


def _used(changes: Sequence[Kind | None], parameters: int) -> Integers:
    """1 for every coefficient that a law has, shape (laws, parameters + 3)."""
    ends = [(False, False) if change is None else change.used for change in changes]
    return np.concatenate([np.ones((len(changes), parameters + 1)), ends], axis=1).astype(np.intp)


def _features(changes: Sequence[Kind | None], middle: Floats, x: Floats) -> Floats:
    """What the coefficients of every law are multiplied by, shape (laws, parameters + 3, n)."""
    logs = np.log(np.maximum(x, 1e-300))
    result = np.zeros((len(changes), len(middle) + 3, len(x)))
    result[:, 0], result[:, 1:-2] = 1.0, (logs - middle).T
    for k, change in enumerate(changes):
        if isinstance(change, Change):
            result[k, -2:] = change.features(logs)
    saturating = {k: change for k, change in enumerate(changes) if isinstance(change, Saturation)}
    if saturating:
        result[list(saturating), -2:] = saturation.features(list(saturating.values()), logs)
    return result
