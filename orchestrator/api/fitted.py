"""Fitted models: what they say, predict and draw; see `orchestrator.api.fit`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

from orchestrator.api.arguments import optional_mapping
from orchestrator.api.points import plain, point_of
from orchestrator.errors import MeasurementError
from orchestrator.models.base import Model, holds_at, key_of
from orchestrator.models.intervals import checked_levels, predictive
from orchestrator.readers.entries import timed
from orchestrator.report.models_document import describe, label, shown
from orchestrator.types import Measurement, Measurements, Point, format_value
from orchestrator.units import count, did_you_mean

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from orchestrator.api.speedup import Speedup

_COLUMNS = ("callpath", "metric", "value", "low", "high")
_INTERVAL_COLUMNS = ("callpath", "metric", "level", "kind", "low", "high")
_PLACES = {
    "points": "the first argument of predict(frame), and the second of intervals([90], frame)",
    "runs": "the third argument of intervals([90], None, 5, p=4)",
}
_Rows = Callable[[Model, Sequence[Point]], Iterator[tuple[Any, ...]]]
"""Yields, of a model at points, the position of a point and what to tell of it; any number of times."""


@dataclass(frozen=True)
class FittedModel:
    """The model of one metric at one call path (and, with categorical parameters, in one category)."""

    model: Model
    measurements: Measurements

    @property
    def callpath(self) -> str:
        """The code region."""
        return self.model.callpath

    @property
    def metric(self) -> str:
        """What was measured."""
        return self.model.metric

    @property
    def category(self) -> dict[str, str]:
        """The values of the categorical parameters for which the model holds; empty without any."""
        return dict(self.model.category)

    @property
    def label(self) -> str:
        """What names the model among others: ``main``, or ``main [solver=cg]``."""
        return label(self._document)

    @property
    def expression(self) -> str:
        """The model as text, such as ``0.3 + 0.002 * p**0.5 * n``."""
        return str(self._document["expression"])

    @property
    def smape(self) -> float:
        """SMAPE (0..200 %) on the measurements that the model was fitted to."""
        return self.model.smape

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know before trusting the model."""
        return self.model.notes

    def predict(self, points: pd.DataFrame | None = None, /, **values: object) -> pd.DataFrame:
        """Predict at a point or a table of points; see `Models.predict`. The category may be left out."""
        return self._alone.predict(self._rows(points), **self._values(points, values))

    def intervals(
        self,
        levels: Iterable[float],
        points: pd.DataFrame | None = None,
        runs: int = 1,
        /,
        **values: object,
    ) -> pd.DataFrame:
        """Return intervals of several levels; see `Models.intervals`. The category may be left out."""
        return self._alone.intervals(levels, self._rows(points), runs, **self._values(points, values))

    def plot(
        self, along: str | None = None, at: Mapping[str, object] | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw measurements, model and its 90 % interval; see `Models.plot`."""
        from orchestrator.report import figures

        numeric = [
            name for name in self.measurements.parameters if not self.measurements.is_categorical(name)
        ]
        name = numeric[0] if along is None and numeric else along
        if name not in numeric:
            raise MeasurementError(f"cannot draw along {name!r}: {did_you_mean(str(name), numeric)}")
        given = {**self.category, **optional_mapping(at, "at", "{'p': 256, 'n': 50}")}
        point = None if at is None else point_of(given, self.measurements)
        return figures.draw(self.model, self._measured(), name, point, ax)

    @property
    def _alone(self) -> Models:
        return Models(self.measurements, (self.model,))

    def _rows(self, points: pd.DataFrame | None) -> pd.DataFrame | None:
        """Return a table of points with the category, where it has no columns of its own for that."""
        columns = getattr(points, "columns", self.category)
        missing = {name: own for name, own in self.category.items() if name not in columns}
        return points if points is None or not missing else points.assign(**missing)

    def _values(self, points: pd.DataFrame | None, values: Mapping[str, object]) -> dict[str, object]:
        """Return the values of one point with the category; refuse another one."""
        if points is not None:
            return dict(values)
        for name, own in self.category.items():
            given = values.get(name, own)
            if format_value(plain(given)) != own:
                raise MeasurementError(
                    f"{self.label} is of {name}={own} and says nothing of {name}={given}: choose another "
                    "model, or ask all of them: models.predict(...)"
                )
        return {**self.category, **values}

    def __hash__(self) -> int:
        return hash(key_of(self.model))

    def _measured(self) -> Measurement:
        for item in self.measurements.items:
            if (item.callpath, item.metric) == (self.callpath, self.metric):
                return item
        raise MeasurementError(f"{self.label} {self.metric}: there are no measurements to draw")

    @property
    def _document(self) -> dict[str, Any]:
        return describe(self.model, [])

    def __repr__(self) -> str:
        return f"{self.label} {self.metric}: {shown(self._document)}"

    def _repr_html_(self) -> str:
        return self._alone._repr_html_()


@dataclass(frozen=True)
class Models:
    """Models of many call paths and metrics, in the order of measurement; iterates over `FittedModel`."""

    measurements: Measurements
    models: tuple[Model, ...]

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> Iterator[FittedModel]:
        return (FittedModel(model, self.measurements) for model in self.models)

    def __hash__(self) -> int:
        return hash(tuple(map(key_of, self.models)))

    def __contains__(self, key: object) -> bool:
        """Return whether there is a model of this name, as of ``models[key]``, or this model."""
        return any(key == model for model in self) if isinstance(key, FittedModel) else bool(self._named(key))

    def _named(self, key: object) -> list[FittedModel]:
        """Return the models of a call path or label, or of that and a metric."""
        name, metric = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        metrics = (metric, timed(metric)[0]) if isinstance(metric, str) else (metric,)
        return [
            model
            for model in self
            if name in (model.label, model.callpath) and (metric is None or model.metric in metrics)
        ]

    def __getitem__(self, key: str | tuple[str, str]) -> FittedModel:
        """Return the model of ``"callpath"`` or ``("callpath", "metric")``.

        A model of one category is named like ``"main [solver=cg]"``.

        Raises
        ------
        KeyError
            For a call path without a model, and where several models have this name.
        """
        found = self._named(key)
        if len(found) == 1:
            return found[0]
        if found:
            keys = [repr((model.label, model.metric)) for model in found]
            raise NoSuchModel(f"{len(found)} models are of {key!r}; choose one of {', '.join(keys)}")
        labels = list(dict.fromkeys(model.label for model in self))
        name = key[0] if isinstance(key, tuple) and key else key
        inner = " or ".join(repr(label) for label in labels if label.endswith(f"->{name}"))
        hint = f"did you mean {inner}?" if inner else did_you_mean(str(name), labels)
        raise NoSuchModel(f"no model of {key!r}: {hint}")

    def predict(self, points: pd.DataFrame | None = None, /, **values: object) -> pd.DataFrame:
        """Predict at a point, or at every row of a table of points.

        Parameters
        ----------
        points
            A table with a column per parameter.
        values
            A value per parameter: ``models.predict(p=1024, n=35)``.

        Returns
        -------
        DataFrame
            ``callpath``, ``metric``, ``value``, and ``low`` and ``high`` of the 90 % interval. For a table of
            points the parameters come first, and rows have the index of their points. A model appears only at
            points of its category.

        Raises
        ------
        MeasurementError
            For unknown or missing parameters, and for values at which no model holds.
        """
        return self._table(_COLUMNS, _predictions, points, values)

    def intervals(
        self,
        levels: Iterable[float],
        points: pd.DataFrame | None = None,
        runs: int = 1,
        /,
        **values: object,
    ) -> pd.DataFrame:
        """Return intervals of several levels at a point, or at every row of a table of points.

        Parameters
        ----------
        levels
            In percent: ``models.intervals([50, 80, 95], p=1024, n=35)``.
        points, values
            As of `predict`.
        runs
            Intervals of kind ``measured`` hold the mean of so many further runs, made together.

        Returns
        -------
        DataFrame
            ``callpath``, ``metric``, ``level``, ``kind`` (``mean``: of the true mean; ``measured``: of
            further runs, with their noise), ``low`` and ``high``. For a table of points the parameters come
            first, and rows have the index of their points.

        Raises
        ------
        CampaignError
            For levels that are no percentages from 1 to below 100.
        MeasurementError
            As of `predict`, and for fewer than one run.
        """
        checked = checked_levels(levels)
        if not isinstance(runs, Integral) or runs < 1:
            raise MeasurementError(f"runs is {runs!r}: the mean of further runs needs at least 1")
        return self._table(_INTERVAL_COLUMNS, partial(_intervals, checked, runs), points, values)

    def _table(
        self,
        columns: Sequence[str],
        rows_of: _Rows,
        points: pd.DataFrame | None,
        values: Mapping[str, object],
    ) -> pd.DataFrame:
        """Return a table of what ``rows_of`` gives per model, point by point."""
        import numpy as np
        import pandas as pd

        from orchestrator.api import frames

        self._refuse_named(values)
        if points is not None and values:
            raise MeasurementError("give either a table of points or the parameters of one point, not both")
        chosen = (
            [point_of(values, self.measurements)]
            if points is None
            else frames.to_points(points, self.measurements)
        )
        names = () if points is None else self.measurements.parameters
        with np.errstate(all="ignore"):  # far out, there may be no number: `_tell_endless` says so
            rows: list[tuple[Any, ...]] = [
                (place, number, *(chosen[place][name] for name in names), *row)
                for number, model in enumerate(self.models)
                for place, row in _where_it_holds(model, chosen, rows_of)
            ]
        _tell_endless(rows, chosen, self.models)
        rows.sort(key=lambda row: row[:2])
        index = None if points is None else points.index[[row[0] for row in rows]]
        return pd.DataFrame([row[2:] for row in rows], columns=[*names, *columns], index=index)

    def _refuse_named(self, values: Mapping[str, object]) -> None:
        """Refuse arguments by name: values are by name, and a parameter may be called so."""
        for name, place in _PLACES.items():
            if name in values and name not in self.measurements.parameters:
                raise MeasurementError(f"{name} is {place}, without its name: a parameter may be called so")

    def plot(
        self,
        key: str | tuple[str, str],
        along: str | None = None,
        at: Mapping[str, object] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the measurements of a call path, its model and the 90 % interval along a parameter.

        Parameters
        ----------
        key
            As of ``models[key]``.
        along
            The parameter (default: the first numeric one). The others keep the values at which most points
            were measured.
        at
            A point up to which to draw, also beyond the measurements: a value for every parameter. The other
            parameters keep its values, and only measurements that have these are shown.
        ax
            Where to draw; by default a figure of its own.
        """
        return self[key].plot(along, at, ax)

    def speedup(self, processes: str | Sequence[str] = "auto", scaling: str = "auto") -> Speedup:
        """Return speedup, efficiency and cost over processes, from the models of times.

        Parameters
        ----------
        processes
            The parameters whose product is the number of processes: names, or a text such as
            ``nodes * ppn``; ``auto`` goes by names.
        scaling
            ``strong``: the other parameters describe the whole problem; ``weak``: that of one process;
            ``auto``: weak if the measured times hardly fall with processes.

        Raises
        ------
        ModelError
            Where no parameter counts processes, all runs have one number of them, or scaling is unknown.
        MeasurementError
            Where no model is of times in seconds.
        """
        from orchestrator.api.speedup import Speedup

        return Speedup.of(self.measurements, self.models, processes, scaling)

    def to_frame(self) -> pd.DataFrame:
        """Return a row per model: callpath, metric, categories, expression, smape (0..200 %), notes."""
        import pandas as pd

        return pd.DataFrame(
            {
                "callpath": model.callpath,
                "metric": model.metric,
                **model.category,
                "expression": model.expression,
                "smape": model.smape,
                "notes": "; ".join(model.notes),
            }
            for model in self
        )

    def __repr__(self) -> str:
        return "\n".join(map(repr, self)) or "no models"

    def _repr_html_(self) -> str:
        from orchestrator.report import html_sections

        return html_sections.models_section([describe(model, []) for model in self.models])


class NoSuchModel(MeasurementError, KeyError):
    """A name that no model, or more than one, has."""

    __str__ = Exception.__str__  # KeyError would quote the message


def _tell_endless(rows: Iterable[tuple[Any, ...]], points: Sequence[Point], models: Sequence[Model]) -> None:
    """Warn where a value or an end of an interval is no finite number, and name the first such."""
    endless = [row[:2] for row in rows if not all(math.isfinite(x) for x in row[2:] if isinstance(x, float))]
    if not endless:
        return
    place, number = endless[0]
    others = len(set(endless)) - 1
    model = models[number]
    warnings.warn(
        f"{model.callpath} {model.metric} at {points[place]}"
        + (f", and {count(others, 'other prediction')}" if others else "")
        + ": values or ends of intervals are no finite numbers, as the point is so far from the measurements",
        UserWarning,
        stacklevel=4,
    )


def _where_it_holds(
    model: Model, points: Sequence[Point], rows_of: _Rows
) -> Iterator[tuple[int, tuple[object, ...]]]:
    """Yield the position of a point, and callpath, metric and a row, where the model holds."""
    places = [place for place, point in enumerate(points) if holds_at(model, point)]
    if places:
        for k, *row in rows_of(model, [points[place] for place in places]):
            yield places[k], (model.callpath, model.metric, *row)


def _predictions(model: Model, points: Sequence[Point]) -> Iterator[tuple[Any, ...]]:
    """Yield position, value, low, high."""
    predicted = model.predict(points)
    for k, ends in enumerate(zip(predicted.value, predicted.low, predicted.high, strict=True)):
        yield (k, *map(float, ends))


def _intervals(
    levels: Sequence[float], runs: int, model: Model, points: Sequence[Point]
) -> Iterator[tuple[Any, ...]]:
    """Yield position, level, kind, low, high."""
    intervals = predictive(model, points).intervals(levels, runs)
    for k in range(len(points)):
        for item in intervals:
            yield k, item.level, item.kind, float(item.low[k]), float(item.high[k])
