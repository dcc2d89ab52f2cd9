"""Speedup and efficiency of fitted models, as tables and plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from orchestrator.api.points import point_of
from orchestrator.errors import MeasurementError
from orchestrator.models import processes as counting
from orchestrator.models.base import Model, holds_at
from orchestrator.models.scaling import Band, Curve, Study, corners, curve, curve_and_limit, has_speedup
from orchestrator.types import Measurements, Point
from orchestrator.units import count

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_BANDS = ("seconds", "speedup", "efficiency", "core_hours")


@dataclass(frozen=True)
class Speedup:
    """Speedups of the models of times among some models.

    They are relative to the fewest measured processes. Points say the problem, and the processes up to which
    curves go; without any it is the largest measured value of every parameter.
    """

    measurements: Measurements
    models: tuple[Model, ...]
    study: Study

    @classmethod
    def of(
        cls,
        measurements: Measurements,
        models: Sequence[Model],
        processes: str | Sequence[str],
        scaling: str,
    ) -> Speedup:
        """Find the parameters that count processes; see `orchestrator.api.fitted.Models.speedup`."""
        numeric = [name for name in measurements.parameters if not measurements.is_categorical(name)]
        study = Study.of(measurements, counting.required(numeric, processes), scaling)
        timed = tuple(model for model in models if has_speedup(model))
        if not timed:
            raise MeasurementError("speedup and efficiency are of times in seconds: no model is of a time")
        return cls(measurements, timed, study)

    @property
    def scaling(self) -> str:
        """``weak`` or ``strong``."""
        return "weak" if self.study.weak else "strong"

    def curve(self, **values: object) -> pd.DataFrame:
        """Return time, speedup, efficiency and core-hours up to a point, by numbers of processes that double.

        Parameters
        ----------
        values
            A value per parameter: ``curve(p=1024, n=35)``.

        Returns
        -------
        DataFrame
            ``callpath``, ``metric``, the parameters, ``processes``, and ``seconds``, ``speedup``,
            ``efficiency`` (a share) and ``core_hours`` of a run, each with the ends of its 90 % interval.

        Raises
        ------
        MeasurementError
            For unknown or missing parameters, and for values at which no model holds.
        """
        import pandas as pd

        columns = [f"{band}{end}" for band in _BANDS for end in ("", "_low", "_high")]
        rows = [
            (model.callpath, model.metric, *(there[name] for name in self._names), *row)
            for model, point in self._pairs(values)
            for there, row in _rows(curve(model, self.study, self.study.path(point)))
        ]
        return pd.DataFrame(rows, columns=["callpath", "metric", *self._names, "processes", *columns])

    def limit(self, efficiency: float = 0.5, /, **values: object) -> pd.DataFrame:
        """Return the processes beyond which efficiency is below a share, for the problem of a point.

        Returns
        -------
        DataFrame
            ``callpath``, ``metric``, the parameters of the problem, ``efficiency``, ``processes`` and the
            ends ``low`` and ``high`` of its 90 % interval: NaN where efficiency is not below up to
            ``searched``.

        Raises
        ------
        ModelError
            For an efficiency that is not between 0 and 1.
        MeasurementError
            As of `curve`.
        """
        import pandas as pd

        if "efficiency" in values and "efficiency" not in self._names:
            raise MeasurementError("efficiency is the first argument of limit(0.5, p=1024), without its name")
        rest = [name for name in self._names if name != self.study.along]
        rows = []
        for model, point in self._pairs(values):
            _, found = curve_and_limit(model, self.study, point, efficiency)
            problem = [point[name] for name in rest]
            ends = [found.processes, found.low, found.high, found.searched]
            rows.append((model.callpath, model.metric, *problem, efficiency, *ends))
        columns = ["callpath", "metric", *rest, "efficiency", "processes", "low", "high", "searched"]
        return pd.DataFrame(rows, columns=columns).astype(
            dict.fromkeys(("processes", "low", "high", "searched"), float)
        )

    def plot(self, callpath: str, ax: Axes | None = None, /, **values: object) -> Axes:
        """Draw the speedup of a call path, its 90 % interval, measured speedups, and the ideal.

        Raises
        ------
        MeasurementError
            As of `curve`, and for a call path without a model of times.
        """
        from orchestrator.report import scaling_figures

        pair = next(((m, point) for m, point in self._pairs(values) if m.callpath == callpath), None)
        if pair is None:
            known = ", ".join(dict.fromkeys(model.callpath for model in self.models))
            raise MeasurementError(f"no model of the times of {callpath!r}: there are those of {known}")
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots(layout="constrained")[1]
        model, point = pair
        item = next(
            item for item in self.measurements.items
            if (item.callpath, item.metric) == (model.callpath, model.metric)
        )  # fmt: skip
        scaling_figures.draw_speedup(ax, model, item, self.study, point)
        return ax

    @property
    def _names(self) -> tuple[str, ...]:
        return self.measurements.parameters

    def _pairs(self, values: dict[str, object]) -> Iterator[tuple[Model, Point]]:
        points = [point_of(values, self.measurements)] if values else list(corners(self.measurements))
        for model in self.models:
            for point in points:
                if holds_at(model, point):
                    yield model, point

    def __repr__(self) -> str:
        return f"{count(len(self.models), 'model')}; {self.study.text}"


def _rows(found: Curve) -> Iterator[tuple[Point, list[float]]]:
    bands: list[Band] = [getattr(found, name) for name in _BANDS]
    for k, point in enumerate(found.points):
        ends: list[Any] = [getattr(band, item.name)[k] for band in bands for item in fields(Band)]
        yield point, [float(found.processes[k]), *map(float, ends)]
