"""Plug-ins of other distributions, checked where they are called: what they raise, and what they return.

Without a check the mistake of a plug-in is a traceback of the program that called it, or is believed: a round
of the evaluation point, arguments that are single letters. Each mistake is a `PluginError` instead, which
names the plug-in, what it returned and the remedy. It comes before anything of it is journaled, so a campaign
continues with a corrected plug-in where it was. Of a reader it is a `ReadError`, which fails its attempt.
"""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from orchestrator.errors import OrchestratorError, PluginError, ReadError
from orchestrator.types import Application, Measurements, Observation, Point, Sample

_REMEDY = "correct or update it, then repeat the command, or resume the campaign: nothing is lost"
_REREAD = "correct or update it, then: orchestrator reread DIR"
_PROBED = 10  # models of a fit that are tried: a mistake is mostly in all of them

Part = Callable[..., Any]
Result = Callable[..., Any]
"""What becomes of a returned value, given it and the arguments; raises ``ValueError`` with a reason."""


def guarded(kind: str, part: Any, who: str) -> Any:
    """Return a plug-in whose mistakes are errors that name it as ``who``."""
    match kind:
        case "application":
            return _application(part, who)
        case "reader":
            return _called(part, who, _samples, remedy=_REREAD, raises=ReadError)
        case "strategy":
            return _called(part, who, _making(who, _choices), through=_OPTIONS)
        case "model":
            return _called(part, who, _making(who, _models), through=_OPTIONS)
        case _:
            return _called(part, who, lambda made, *_, **__: _Executor(made, who))


def returning_models(modeler: Part, who: str) -> Part:
    """Return a modeler that need not be installed, whose models are checked; what it raises stays."""
    return _called(modeler, who, _models, through=(Exception,), remedy="correct it")


_OPTIONS = (TypeError, ValueError)
"""What a factory raises for options that it does not like; `registry.build` says so."""


def _called(
    part: Part,
    who: str,
    result: Result,
    *,
    doing: str = "",
    through: tuple[type[Exception], ...] = (),
    remedy: str = _REMEDY,
    raises: type[OrchestratorError] = PluginError,
) -> Part:
    """Return a function that calls another one, and checks what it raises and returns."""
    named = f"{who}{doing}"

    @wraps(part)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            returned = part(*arguments, **options)
        except (Exception, SystemExit) as error:
            if isinstance(error, (OrchestratorError, *through)):
                raise
            raise raises(f"{named} failed with {_failure(error)}: {remedy}") from error
        try:
            return result(returned, *arguments, **options)
        except ValueError as error:
            raise raises(f"{named} {error}: {remedy}") from error

    return call


def _failure(error: BaseException) -> str:
    """Return what was raised, and the last line of the plug-in that led to it, if any did."""
    text = f"{type(error).__name__}: {error}"
    frames = [item for item in traceback.extract_tb(error.__traceback__) if item.filename != __file__]
    if not frames:
        return text
    home = Path(frames[0].filename).parent
    last = [item for item in frames if Path(item.filename).is_relative_to(home)][-1]
    return f"{text} ({last.filename}, line {last.lineno})"


def _wrong(returned: object, wanted: str) -> ValueError:
    text = repr(returned)
    return ValueError(f"returned {text if len(text) <= 80 else text[:77] + '...'}, not {wanted}")


def _making(who: str, result: Result) -> Result:
    """Return what checks that a factory returns a function, and then what that function returns."""

    def check(made: Any, *_: Any, **__: Any) -> Part:
        if not callable(made):
            raise _wrong(made, "a function")
        return _called(made, who, result)

    return check


def _application(spec: Application, who: str) -> Application:
    def wrapped(name: str, result: Result, *through: type[Exception]) -> Part:
        return _called(
            getattr(spec, name), who, lambda it, *_: result(it), doing=f", {name}()", through=through
        )

    environment = wrapped("environment", _mapping) if callable(spec.environment) else spec.environment
    # Of ranks and threads a ValueError says that the machine or the program cannot run a point.
    return replace(
        spec,
        ranks=wrapped("ranks", _count, ValueError),
        threads=wrapped("threads", _count, ValueError),
        arguments=wrapped("arguments", _words),
        check=wrapped("check", _reason),
        files=wrapped("files", _mapping),
        values=wrapped("values", _mapping),
        environment=environment,
        output=_called(
            spec.output,
            who,
            _samples,
            doing=", output()",
            through=_UNEXPECTED,
            remedy=_REREAD,
            raises=ReadError,
        ),
    )


_UNEXPECTED = (ValueError, LookupError, ArithmeticError, AttributeError, TypeError)
"""What parsing an unexpected text tends to raise: `orchestrator.readers.stdout` says so, with the file."""


def _count(returned: Any) -> Any:
    if not isinstance(returned, Integral) or isinstance(returned, bool):
        raise _wrong(returned, "a whole number")
    return int(returned)


def _words(returned: Any) -> Any:
    if not isinstance(returned, list | tuple) or not all(isinstance(word, str) for word in returned):
        raise _wrong(returned, "a list of texts, one per argument")
    return list(returned)


def _reason(returned: Any) -> Any:
    if returned is not None and not isinstance(returned, str):
        raise _wrong(returned, "None or the reason as text")
    return returned


def _mapping(returned: Any) -> Any:
    if not isinstance(returned, Mapping):
        raise _wrong(returned, "a mapping")
    return returned


def _samples(returned: Any, *_: Any, **__: Any) -> list[Sample]:
    """Return samples with plain numbers, which the journal can hold."""
    if not isinstance(returned, Iterable):
        raise _wrong(returned, "a list of samples")
    samples: list[Sample] = []
    for item in returned:
        if not isinstance(item, Sample) or not isinstance(item.value, Real) or not math.isfinite(item.value):
            raise _wrong(item, "a Sample whose value is a finite number")
        samples.append(replace(item, value=float(item.value)))
    return samples


def _choices(returned: Any, view: Any, *_: Any) -> Any:
    """Return choices within the search space, with no more repetitions than the campaign permits."""
    if isinstance(returned, Sequence) and not returned:
        return returned  # which may say why it is empty
    if not isinstance(returned, Iterable):
        raise _wrong(returned, "a list of choices")
    choices = list(returned)
    proposed = dict(view.done)
    for choice in choices:
        point, repetitions = getattr(choice, "point", None), getattr(choice, "repetitions", None)
        if not isinstance(point, Point) or not isinstance(getattr(choice, "reason", None), str):
            raise _wrong(choice, "a Choice of a Point, repetitions and a reason as text")
        if not isinstance(repetitions, Integral) or repetitions < 1:
            raise _wrong(choice, "a whole number of repetitions from 1")
        if point not in view.space and point not in view.done:
            here = "the evaluation point, to which no model may be fitted"
            where = here if point == view.evaluation_point else "a point that is not in view.space"
            raise ValueError(f"returned {point}, {where}")
        proposed[point] = proposed.get(point, 0) + int(repetitions)
        if proposed[point] > view.maximum_repetitions:
            raise ValueError(
                f"returned {repetitions} repetitions at {point}, which then has {proposed[point]}, more than "
                f"view.maximum_repetitions, {view.maximum_repetitions}"
            )
    return choices


def _models(returned: Any, measurements: Measurements) -> tuple[Any, ...]:
    """Return models that predict at a measured point, and at one twice as far out."""
    if not isinstance(returned, Iterable):
        raise _wrong(returned, "a tuple of models")
    models = tuple(returned)
    if not models and measurements.items:
        raise ValueError("returned no model: where none can be fitted, raise ModelError with the reason")
    measured = {(item.callpath, item.metric): item for item in measurements.items}
    seen = set()
    for number, model in enumerate(models):
        absent = [name for name in _MODEL if not hasattr(model, name)]
        if absent:
            raise ValueError(f"returned a {type(model).__name__} without {', '.join(absent)}")
        key = model.callpath, model.metric, model.category
        if key[:2] not in measured:
            raise ValueError(f"returned a model of {model.callpath} {model.metric}, which was not measured")
        if key in seen:
            raise ValueError(f"returned two models of {model.callpath} {model.metric}")
        seen.add(key)
        if number < _PROBED:
            last = list(measured[key[:2]].values)[-1]
            further = {name: x if isinstance(x, str) else 2 * x for name, x in last.items}
            _probe(model, [last, Point.of(further)])
    return models


_MODEL = (
    *("callpath", "metric", "parameters", "category", "expression", "noise", "smape", "notes"),
    *("predict", "value", "expected", "document"),
)
"""What every model has: see `orchestrator.models.base.Model`."""


def _probe(model: Any, points: Sequence[Point]) -> None:
    """Raise ``ValueError`` for a model that cannot be used."""
    asked = f"returned a {type(model).__name__} of which"
    try:
        predicted = model.predict(points)
        arrays = {f"predict().{name}": getattr(predicted, name) for name in ("value", "low", "high")}
        arrays |= {"value()": model.value(points), "expected()": model.expected(points)}
        shapes = {name: getattr(array, "shape", type(array).__name__) for name, array in arrays.items()}
        json.dumps(model.document())
    except Exception as error:
        raise ValueError(f"{asked} a function fails with {_failure(error)}") from error
    for name, shape in shapes.items():
        if shape != (len(points),):
            raise ValueError(f"{asked} {name} is {shape}, not an array with a number per point")
    if any(low > high for low, high in zip(predicted.low, predicted.high, strict=True)):
        raise ValueError(f"{asked} predict().low is greater than predict().high")


class _Executor:
    """An executor whose methods are checked; everything else of it is as it was."""

    def __init__(self, executor: Any, who: str) -> None:
        absent = [name for name in (*_RESULTS, "name", "cancel", "wait") if not hasattr(executor, name)]
        if absent:
            raise ValueError(f"returned {type(executor).__name__} without {', '.join(absent)}")
        self._executor = executor
        self._who = who

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._executor, name)
        if not callable(found):
            return found
        return _called(found, self._who, _RESULTS.get(name, _anything), doing=f", {name}()")


def _anything(returned: Any, *_: Any, **__: Any) -> Any:
    return returned


def _number(returned: Any, *_: Any) -> float:
    if not isinstance(returned, Real) or not math.isfinite(returned) or returned < 0:
        raise _wrong(returned, "a finite number of seconds")
    return float(returned)


def _observations(returned: Any, requests: Sequence[Any]) -> Any:
    """Return one observation per request, in order: of `charged`, None where nothing is known."""
    if not isinstance(returned, Sequence) or len(returned) != len(requests):
        raise _wrong(returned, f"a list of {len(requests)} observations, one per attempt")
    for item, request in zip(returned, requests, strict=True):
        if item is None:
            continue
        if not isinstance(item, Observation) or item.attempt != request.attempt:
            raise _wrong(item, f"an Observation of {request.attempt}")
        for number in (item.elapsed, item.cores):
            if number is not None and not (math.isfinite(number) and number >= 0):
                raise _wrong(item, "an Observation with a possible charge")
    return returned


def _known(returned: Any, requests: Sequence[Any]) -> Any:
    if isinstance(returned, Sequence) and None in returned:
        raise _wrong(returned, "a list of observations, one per attempt")
    return _observations(returned, requests)


_RESULTS: Mapping[str, Result] = {
    "now": _number,
    "ready": lambda returned: _reason(returned),
    "reserved_seconds": _number,
    "submit": _known,
    "poll": _known,
    "find": _known,
    "charged": _observations,
}
