"""A call path that includes others takes as long as they and what it does itself: models as sums of models.

The time of a caller is the sum of several terms of its parts, mostly too many for a formula of its own. So
its parts are modelled, and added up, where that explains the measured values as well as its own model does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import median
from typing import TypeGuard

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats, Key, Label, Model, Modeler, is_of, key_of, label_of, smape_of
from orchestrator.models.belief import ModelWithBelief, has_belief
from orchestrator.models.callpaths import SEPARATOR
from orchestrator.models.consistency import children_of
from orchestrator.models.summed import Summed
from orchestrator.models.uncertainty import RELEVANT_SHARE
from orchestrator.types import ROOTS, Measurement, Measurements, Point

REST = f"{SEPARATOR}(rest)"
"""What a call path does itself, as a call path below it."""


# Shares of the value of a call path: what its parts may lack or exceed it by without a model of the rest, and
# the least that they must have together over all runs. Chosen by hand.
_NEGLIGIBLE = 0.005
_ROUNDING = 0.002
_LEAST = 0.5
# Natural logarithm of how much better its own model must explain the measurements than the sum: the form of
# the former was chosen for these very values. Chosen by hand: 2 to 15 give the same.
PRICE = 6.0
_TINY = 1e-300  # keeps logarithms and quotients of zero finite


def with_sums(modeler: Modeler) -> Modeler:
    """Return a modeler that models call paths as the sum of their parts where that is at least as probable.

    Parameters
    ----------
    modeler
        What to fit with. It is called once more, for what call paths do beside their parts; models without a
        belief, or that are no sums of terms, stay as they are, and so do those of a class with
        ``STANDS_ALONE``.
    """

    def model(measurements: Measurements) -> tuple[Model, ...]:
        models = modeler(measurements)
        keys = [key_of(item) for item in models]
        labels = {key[:2] for key in keys}
        found = {whole.label: whole for whole in inclusive(measurements) if whole.label in labels}
        rests = _rests(modeler, measurements, [whole.rest for whole in found.values()])
        chosen = {**rests, **dict(zip(keys, models, strict=True))}
        values = _Values({})
        for key in sorted(keys, key=lambda key: parts_first(key[0])):
            if (whole := found.get(key[:2])) is not None:
                chosen[key] = _chosen(whole, key, chosen, values)
        return tuple(chosen[key] for key in keys)

    return model


def parts_first(callpath: str) -> tuple[bool, int]:
    """Return a key that sorts parts before what includes them."""
    return callpath in ROOTS, -len(callpath.split(SEPARATOR))


@dataclass(frozen=True, slots=True)
class Whole:
    """A call path whose value was the sum of others in every run."""

    parent: Measurement  # the call path that includes the others
    # Measurements of those that it includes, and of what it does itself if that is not negligible.
    parts: tuple[Measurement, ...]
    # Value of the call path, relative to the sum of the parts: 1 but for what is negligible.
    scale: float = 1.0
    # Largest difference of the logarithm of ``scale`` in a run: as much as what is negligible varies.
    doubt: float = 0.0

    @property
    def label(self) -> Label:
        """Call path and metric."""
        return label_of(self.parent)

    @property
    def rest(self) -> Measurement | None:
        """What the call path does itself; None if that is negligible."""
        last = self.parts[-1]
        return last if last.callpath.endswith(REST) else None


def inclusive(measurements: Measurements) -> list[Whole]:
    """Return the call paths that include others by their values in every run, whatever their metric.

    Those that are not relevant are left out if the rest is not negligible.
    """
    metrics: dict[str, dict[str, Measurement]] = {}
    for item in measurements.items:
        metrics.setdefault(item.metric, {})[item.callpath] = item
    found: list[Whole] = []
    for items in metrics.values():
        known = [
            _whole(items[parent], [items[k] for k in names]) for parent, names in children_of(items).items()
        ]
        peak = max((_peak(item) for item in items.values()), default=0.0)
        found += [whole for whole in known if whole and _is_worth_it(whole, peak)]
    return found


def _peak(item: Measurement) -> float:
    return max(chain.from_iterable(item.values.values()), default=0.0)


def _is_worth_it(whole: Whole, peak: float) -> bool:
    """Return whether a sum needs no model of a rest, or the call path is relevant: fits take time."""
    return whole.rest is None or _peak(whole.parent) > RELEVANT_SHARE * peak


def _whole(parent: Measurement, children: Sequence[Measurement]) -> Whole | None:
    """Return the parts if the values of the parent are those of the children and a rest."""
    own = np.fromiter(chain.from_iterable(parent.values.values()), float)
    runs = [_runs(child, parent) for child in children]
    if not own.size or not (own > 0).all() or any(run is None for run in runs):
        return None
    values = np.array(runs)
    if not (np.isfinite(own).all() and np.isfinite(values).all() and (values >= 0).all()):
        return None
    kept = _kept(values / own)
    total = values[kept].sum(axis=0)
    share = (own - total) / own
    if share.min() < -_ROUNDING or total.sum() < _LEAST * own.sum():
        return None
    parts = tuple(child for child, large in zip(children, kept, strict=True) if large)
    if share.max() <= _NEGLIGIBLE:
        ratio = np.log(own / total)
        return Whole(parent, parts, float(np.exp(ratio.mean())), float(np.abs(ratio - ratio.mean()).max()))
    if share.min() <= 0:
        return None  # a model of the rest needs positive values
    return Whole(parent, (*parts, _rest(parent, own - total)))


def _runs(child: Measurement, parent: Measurement) -> Floats | None:
    """Return the values of a call path in the runs of another; None if they were measured apart."""
    values: list[float] = []
    for point, own in parent.values.items():
        there = child.values.get(point, ())
        if len(there) != len(own):
            return None
        values += there
    return np.array(values)


def _kept(shares: Floats) -> list[bool]:
    """Return which parts are kept: the small ones may together be negligible in every run."""
    largest = shares.max(axis=1)
    order = np.argsort(largest, kind="stable")
    dropped = order[np.cumsum(largest[order]) <= _NEGLIGIBLE / 2]
    return [k not in set(dropped.tolist()) for k in range(len(shares))]


def _rest(parent: Measurement, values: Floats) -> Measurement:
    left = iter(values.tolist())
    known = {point: tuple(next(left) for _ in own) for point, own in parent.values.items()}
    return Measurement(parent.callpath + REST, parent.metric, known, parent.origins)


def _rests(
    modeler: Modeler, measurements: Measurements, rests: Sequence[Measurement | None]
) -> dict[Key, Model]:
    items = tuple(item for item in rests if item is not None)
    try:
        models = modeler(replace(measurements, items=items)) if items else ()
    except ModelError:
        return {}
    return {key_of(item): item for item in models}


@dataclass(frozen=True, slots=True)
class _Values:
    """Values of models at measured points, which most call paths share."""

    known: dict[int, tuple[Model, list[Point], Floats]]

    def of(self, model: Model, points: list[Point]) -> Floats:
        """Return those of a model at points."""
        item = self.known.get(id(model))
        if item is None or item[1] != points:
            item = self.known[id(model)] = model, points, model.value(points)
        return item[2]


def _chosen(whole: Whole, key: Key, models: Mapping[Key, Model], values: _Values) -> Model:
    """Return the sum of the models of the parts, or the call path's own model if that explains more."""
    own, category = models[key], key[2]
    parts = [models.get((*label_of(part), category)) for part in whole.parts]
    known = [part for part in parts if part is not None and _can_be_added(part)]
    if not _can_be_added(own) or len(known) < len(parts):
        return own
    points = [point for point in whole.parent.values if is_of(point, category)]
    measured = np.array([_locations(part, points) for part in (whole.parent, *whole.parts)])
    modelled = np.array([values.of(part, points) for part in known])
    total = whole.scale * modelled.sum(axis=0)
    residuals = _log(measured[0]) - _log(np.array([values.of(own, points), total]))
    count = np.array([len(whole.parent.values[point]) for point in points])
    if not np.isfinite(residuals[1]).all() or advantage(residuals, count, own.noise) > PRICE:
        return own
    found = Summed(
        own=own,
        parts=tuple(known),
        scale=whole.scale,
        doubt=whole.doubt,
        correlation=correlation(measured[1:] - modelled),
        smape=float(smape_of(residuals[1])),
        points=tuple(points),
    )
    values.known[id(found)] = found, points, total
    return found


def _can_be_added(model: Model) -> TypeGuard[ModelWithBelief]:
    # `Symbolic` would be asked for by computing all terms.
    return hasattr(type(model), "terms") and not hasattr(type(model), "STANDS_ALONE") and has_belief(model)


def _locations(item: Measurement, points: Sequence[Point]) -> list[float]:
    return [median(item.values[point]) for point in points]


def _log(values: Floats) -> Floats:
    return np.log(np.maximum(values, _TINY))


def advantage(residuals: Floats, count: Floats, noise: float) -> float:
    """Return by how much the first of two models explains measured values better, as a log ratio.

    Parameters
    ----------
    residuals
        Logarithm of measured over modelled values of both models, shape (2, points).
    count
        Repetitions at each point, shape (points,).
    noise
        Relative standard deviation of one repetition. Where neither model fits so closely, the deviations of
        the closer one count as noise.
    """
    squares = residuals**2 @ count
    closer = float(squares.min()) / residuals.shape[1]
    result: float = float(squares[1] - squares[0]) / (2 * max(noise**2, closer, _TINY))
    return result


def correlation(deviations: Floats) -> float:
    """Return how much the deviations of parts from their models vary together, 0 to 1.

    The mean correlation, weighted by size: with it the deviation of the sum is as large as was measured.

    Parameters
    ----------
    deviations
        Of measured from modelled values, in the unit of the metric, shape (parts, points).
    """
    products = deviations @ deviations.T
    size = np.sqrt(np.diag(products))
    most = float(np.square(size.sum()) - np.square(size).sum())
    found = float(products.sum() - np.square(size).sum()) / most if most > 0 else 0.0
    return min(max(found, 0.0), 1.0)
