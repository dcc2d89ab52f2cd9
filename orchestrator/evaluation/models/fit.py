"""One fit of one modeler to a training set, and what came of it at held-out points."""

from __future__ import annotations

import io
import pickle
import re
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np
import yaml

from orchestrator import registry
from orchestrator.cores import one_thread
from orchestrator.errors import CampaignError, OrchestratorError
from orchestrator.evaluation.models.samples import of_points
from orchestrator.evaluation.models.scores import Coverage, Errors, coverage, errors
from orchestrator.models.base import Floats, Model, Modeler, holds_at
from orchestrator.models.intervals import LEVEL, predictive
from orchestrator.types import Measurements, Point

_OPTION = re.compile(r",(?=\s*[A-Za-z_]\w*\s*=)")  # a comma before the next option, not one within a list
_CHUNK = 2000  # points whose intervals are computed at once: of large models they need much memory
_WARM = 40  # points of the fit that loads libraries and machine code
_warmed: set[str] = set()  # labels of modelers that this process has fitted before


@dataclass(frozen=True, slots=True)
class Contender:
    """A modeler with its options; ``label`` names it in tables."""

    label: str
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Contender:
        """Read ``pmnf`` or ``learned:only=trees,seed=1``; values are YAML.

        Raises
        ------
        CampaignError
            For an unknown modeler, and for options that are malformed or that it does not take.
        """
        name, _, rest = text.partition(":")
        found = cls(text, name.strip(), dict(_option(text, part) for part in _OPTION.split(rest) if rest))
        found.modeler()
        return found

    def modeler(self) -> Modeler:
        """Return the modeler; raises as `of`."""
        built: Modeler = registry.build("model", self.name, self.options, called="modeler")
        return built


def _option(text: str, part: str) -> tuple[str, Any]:
    key, equals, value = (piece.strip() for piece in part.partition("="))
    if not (equals and key and value):
        raise CampaignError(
            f"modeler {text!r}: {part!r} is no option; write NAME:key=value,key=value, such as "
            "pmnf:members=50"
        )
    try:
        return key, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise CampaignError(f"modeler {text!r}: the value of {key} is not YAML: {value}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A modeler, what to fit it to, and what to test it with; of ``size`` points drawn with a ``seed``."""

    contender: Contender
    size: int
    seed: int
    train: Measurements
    test: Measurements


class Place(TypedDict):
    """What is fitted: to ``size`` points of a ``seed``, tested at ``test`` points."""

    modeler: str
    size: int
    seed: int
    test: int


class Row(Place, Errors, Coverage):
    """What came of a task.

    ``unpredicted`` of the test points have no finite positive prediction; the errors (of the mean measured
    value at a point), ``coverage`` and ``width`` are of the others. Intervals are those of single further
    runs at 90 %.

    ``bytes`` is the length of what joblib writes of all models (one, or one per category: ``models``).
    ``fit_seconds`` is CPU time on one thread, and so is ``predict_seconds``, per point and without intervals.
    A fit to a few points comes first, so both are without loading libraries and compiling.

    ``expression`` is that of a single model. ``failure`` says why there is no model; then all else is None.
    """

    bytes: int | None
    fit_seconds: float | None
    predict_seconds: float | None
    unpredicted: int | None
    models: int | None
    expression: str | None
    failure: str | None


def fit(task: Task) -> Row:
    """Fit and test. A modeler that fails gives a row that says why."""
    try:
        # What a library warns about, once per fit of hundreds, would cover the progress.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _warm_up(task)
            with one_thread():
                modeler = task.contender.modeler()
                start = time.process_time()
                models = modeler(task.train)
                return _row(task, models, time.process_time() - start)
    except OrchestratorError as error:
        return failed(task, str(error))
    except Exception as error:  # noqa: BLE001 (the other modelers are compared all the same)
        return failed(task, f"{type(error).__name__}: {error}")


def failed(task: Task, reason: str) -> Row:
    """Return the row of a task without a model."""
    return Row(
        **_place(task),
        **errors(np.empty(0), np.empty(0)),
        **coverage(np.empty(0), np.empty(0), np.empty(0)),
        bytes=None,
        fit_seconds=None,
        predict_seconds=None,
        unpredicted=None,
        models=None,
        expression=None,
        failure=" ".join(reason.split()) or "no reason was given",
    )


def _place(task: Task) -> Place:
    return Place(
        modeler=task.contender.label,
        size=task.size,
        seed=task.seed,
        test=len(task.test.items[0].values),
    )


def _warm_up(task: Task) -> None:
    """Load libraries and machine code, once per modeler and process; a failure is left to the real fit."""
    if task.contender.label in _warmed:
        return
    _warmed.add(task.contender.label)
    few = of_points(task.train, list(task.train.items[0].values)[:_WARM])
    points = list(task.test.items[0].values)[:_WARM]
    try:
        for model in task.contender.modeler()(few):
            model.value([point for point in points if holds_at(model, point)])
    except Exception:  # noqa: BLE001 (a fit to so few points may well be impossible)
        pass


def _row(task: Task, models: Sequence[Model], seconds: float) -> Row:
    [item] = task.test.items
    points = list(item.values)
    start = time.process_time()
    value = _values(models, points)
    each = (time.process_time() - start) / len(points)
    low, high = _ends(models, points)
    measured = np.array([np.mean(item.values[point]) for point in points])
    runs = np.array([len(item.values[point]) for point in points])
    single = np.array([value for point in points for value in item.values[point]])
    with np.errstate(invalid="ignore"):
        there = np.isfinite(value) & (value > 0)
    kept = np.repeat(there, runs)
    held = coverage(np.repeat(low, runs)[kept], np.repeat(high, runs)[kept], single[kept])
    return Row(
        **_place(task),
        **errors(value[there], measured[there]),
        **held,
        bytes=_bytes(models),
        fit_seconds=seconds,
        predict_seconds=each,
        unpredicted=int(np.count_nonzero(~there)),
        models=len(models),
        expression=models[0].expression if len(models) == 1 else None,
        failure=None,
    )


def _values(models: Sequence[Model], points: Sequence[Point]) -> Floats:
    value = np.full(len(points), np.nan)
    for model in models:
        here = _here(model, points)
        if here:
            value[here] = model.value([points[k] for k in here])
    return value


def _ends(models: Sequence[Model], points: Sequence[Point]) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of a single further run."""
    low, high = np.full(len(points), np.nan), np.full(len(points), np.nan)
    for model in models:
        here = _here(model, points)
        for k in range(0, len(here), _CHUNK):
            part = here[k : k + _CHUNK]
            low[part], high[part] = predictive(model, [points[k] for k in part]).of_measured(LEVEL)
    return low, high


def _here(model: Model, points: Sequence[Point]) -> list[int]:
    """Return the places of points of the category that a model is for."""
    return [k for k, point in enumerate(points) if holds_at(model, point)]


def _bytes(models: Sequence[Model]) -> int | None:
    """Return the size of models as joblib writes them; None where they cannot be written."""
    import joblib  # which comes with scikit-learn

    content = io.BytesIO()
    try:
        joblib.dump(models, content)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    return len(content.getvalue())
