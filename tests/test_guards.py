"""Plug-ins of other distributions that make mistakes: each is an error that names the plug-in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.errors import CampaignError, PluginError, ReadError
from orchestrator.guards import guarded
from orchestrator.models.base import Prediction
from orchestrator.strategies.base import Choice, Nothing
from orchestrator.types import (
    Application,
    Attempt,
    AttemptState,
    Measurement,
    Measurements,
    Observation,
    Point,
    Run,
    Sample,
)

WHO = "the thing 'x' of lab 1.0"
HERE, THERE, FAR = Point.of(n=4), Point.of(n=8), Point.of(n=16)


def _raises(*_: Any, **__: Any) -> Any:
    raise KeyError("nnn")


def _exits(*_: Any, **__: Any) -> Any:
    raise SystemExit(3)


def _returns(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


# ---------------------------------------------------------------- applications


@pytest.mark.parametrize(
    ("function", "returned"),
    [("ranks", None), ("ranks", 1.5), ("arguments", "4 1"), ("arguments", [4]), ("check", 5), ("values", [])],
)
def test_what_an_application_may_not_return_is_named(function: str, returned: object) -> None:
    spec = Application(name="x", description="", parameters={}, ranks=lambda settings: 1)
    changed: dict[str, Any] = {function: _returns(returned)}
    found = guarded("application", replace(spec, **changed), WHO)
    with pytest.raises(PluginError, match=rf"lab 1\.0, {function}\(\) returned .*correct or update it"):
        getattr(found, function)({})


def test_an_application_that_fails_is_named_with_the_line_of_its_file() -> None:
    spec = Application(name="x", description="", parameters={}, ranks=lambda settings: 1, check=_raises)
    with pytest.raises(PluginError, match=r"check\(\) failed with KeyError: 'nnn' \(.*test_guards.py, line"):
        guarded("application", spec, WHO).check({})


def test_the_line_is_that_of_the_plug_in_also_where_something_else_raises() -> None:
    def ranks(settings: Any) -> int:
        return int(Point.of(solver="cg").number("solver"))

    spec = Application(name="x", description="", parameters={}, ranks=ranks)
    with pytest.raises(PluginError, match=r"is categorical .*\(.*test_guards.py, line"):
        guarded("application", spec, WHO).ranks({})


def test_a_point_that_the_ranks_of_an_application_refuse_stays_one_that_is_left_out() -> None:
    def ranks(settings: Any) -> int:
        raise ValueError("n must be a cube")

    spec = Application(name="x", description="", parameters={}, ranks=ranks)
    with pytest.raises(ValueError, match="must be a cube"):
        guarded("application", spec, WHO).ranks({})


@pytest.mark.parametrize("output", [_exits, _returns(None), _returns([Sample("main", "time", "3")])])  # type: ignore[arg-type]
def test_a_wrong_output_of_an_application_fails_the_attempt(output: Callable[..., Any]) -> None:
    spec = Application(name="x", description="", parameters={}, ranks=lambda settings: 1, output=output)
    with pytest.raises(ReadError, match=r"output\(\) .*orchestrator reread DIR"):
        guarded("application", spec, WHO).output({"stdout": ""})


def test_an_output_without_values_is_still_told_with_its_file() -> None:
    spec = Application(name="x", description="", parameters={}, ranks=lambda settings: 1)
    with pytest.raises(ValueError, match=r"\S"):
        guarded("application", spec, WHO).output({"stdout": ""})


# ---------------------------------------------------------------- readers


@pytest.mark.parametrize(
    "reader",
    [
        _raises,
        _exits,
        lambda directory: [],
        _returns(None),
        _returns([("main", "time", 1.0)]),
        _returns([Sample("main", "time", math.nan)]),
    ],
)
def test_a_reader_that_makes_a_mistake_fails_its_attempt(reader: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"lab 1\.0 .*orchestrator reread DIR"):
        guarded("reader", reader, WHO)(tmp_path, None, False)


def test_numbers_of_numpy_from_a_reader_can_be_journaled(tmp_path: Path) -> None:
    read = guarded("reader", _returns(iter([Sample("main", "time", np.float32(1.5))])), WHO)  # type: ignore[arg-type]
    [sample] = read(tmp_path, None)
    assert type(sample.value) is float


# ---------------------------------------------------------------- strategies


@dataclass(frozen=True)
class _View:
    space: tuple[Point, ...] = (HERE, THERE)
    done: Any = None
    evaluation_point: Point = FAR
    maximum_repetitions: int = 10


def _proposed(returned: Any, **done: int) -> Any:
    view = _View(done={Point.of(n=int(name[1:])): count for name, count in done.items()})
    return guarded("strategy", _returns(_returns(returned)), WHO)()(view, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (None, "returned None"),
        ([HERE], "not a Choice"),
        ([Choice(HERE, 1, None)], "reason as text"),  # type: ignore[arg-type]
        ([Choice(HERE, 0, "")], "whole number of repetitions"),
        ([Choice(HERE, 1.5, "")], "whole number of repetitions"),  # type: ignore[arg-type]
        ([Choice(HERE, 11, "")], "has 11, more than view.maximum_repetitions, 10"),
        ([Choice(HERE, 6, ""), Choice(HERE, 6, "")], "has 12, more than"),
        ([Choice(Point.of(n=5), 1, "")], "P.n=5., a point that is not in view.space"),
        ([Choice(FAR, 1, "")], "the evaluation point, to which no model may be fitted"),
    ],
)
def test_what_a_strategy_may_not_choose_is_named(returned: Any, why: str) -> None:
    with pytest.raises(PluginError, match=f"lab 1.0 .*{why}.*correct or update it"):
        _proposed(returned)


def test_choices_are_taken_from_a_generator_and_an_empty_proposal_keeps_its_reason() -> None:
    assert _proposed(Choice(HERE, 1, "") for _ in range(2)) == [Choice(HERE, 1, "")] * 2
    nothing = Nothing("converged", "enough")
    assert _proposed(nothing) is nothing
    assert _proposed([Choice(Point.of(n=7), 1, "")], n7=1), "a point that was left out since is settled later"


def test_a_factory_that_returns_no_function_is_named_and_its_options_are_refused_as_before() -> None:
    with pytest.raises(PluginError, match="returned 7, not a function"):
        guarded("strategy", _returns(7), WHO)()

    def picky(*, stride: int = 1) -> Any:
        raise ValueError(f"stride {stride} must be at least 1")

    with pytest.raises(ValueError, match="stride 0"):
        guarded("strategy", picky, WHO)(stride=0)


# ---------------------------------------------------------------- models

MEASURED = Measurements(("n",), (Measurement("main", "time", {HERE: (1.0, 1.1), THERE: (2.0,)}),))


@dataclass(frozen=True)
class _Model:
    callpath: str = "main"
    metric: str = "time"
    parameters: tuple[str, ...] = ("n",)
    category: tuple[tuple[str, str], ...] = ()
    expression: str = "c"
    noise: float = 0.0
    smape: float = 0.0
    notes: tuple[str, ...] = ()
    values: Any = None
    further: Any = None
    width: float = 0.0

    def value(self, points: Sequence[Point]) -> Any:
        return np.ones(len(points)) if self.values is None else self.values

    expected = value

    def predict(self, points: Sequence[Point]) -> Prediction:
        value = self.value(points)
        return Prediction(value, value, value + self.width if self.width else value)

    def document(self) -> dict[str, Any]:
        return {"further": self.further}


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (None, "returned None"),
        ((object(),), "returned a object without callpath"),
        ((_Model(), _Model()), "returned two models of main time"),
        ((_Model("other"),), "a model of other time, which was not measured"),
        ((_Model(values=[1.0, 1.0]),), "is list, not an array"),
        ((_Model(values=np.ones(1)),), "is .1,., not an array"),
        ((_Model(further=np.int64(1)),), "not JSON serializable"),
        ((_Model(width=-1.0),), "predict...low is greater than predict...high"),
        ((), "returned no model: where none can be fitted, raise ModelError"),
    ],
)
def test_models_that_cannot_be_used_are_named(returned: Any, why: str) -> None:
    with pytest.raises(PluginError, match=f"lab 1.0 .*{why}"):
        guarded("model", _returns(_returns(returned)), WHO)()(MEASURED)


def test_a_list_of_usable_models_becomes_a_tuple() -> None:
    assert guarded("model", _returns(_returns([_Model()])), WHO)()(MEASURED) == (_Model(),)


# ---------------------------------------------------------------- executors

ATTEMPT = Attempt(Run(HERE), 1)
GOOD = Observation(ATTEMPT, AttemptState.RUNNING)


@dataclass(frozen=True)
class _Request:
    attempt: Attempt = ATTEMPT


class _Executor:
    name = "x"

    def __init__(self, returned: Any) -> None:
        self._returned = returned

    def _answer(self, *_: Any) -> Any:
        if isinstance(self._returned, Exception):
            raise self._returned
        return self._returned

    now = ready = reserved_seconds = submit = poll = find = charged = cancel = wait = _answer


def _executor(returned: Any) -> Any:
    return guarded("executor", _returns(_Executor(returned)), WHO)(None)


@pytest.mark.parametrize("method", ["submit", "poll", "find", "charged"])
@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (None, "returned None, not a list of 1 observations"),
        ([], "not a list of 1 observations"),
        ([Observation(Attempt(Run(HERE), 2), AttemptState.RUNNING)], "not an Observation of"),
        ([replace(GOOD, elapsed=math.nan)], "possible charge"),
        (RuntimeError("boom"), "failed with RuntimeError: boom"),
    ],
)
def test_an_executor_answers_for_every_attempt(method: str, returned: Any, why: str) -> None:
    with pytest.raises(PluginError, match=rf"lab 1.0, {method}\(\) .*{why}"):
        getattr(_executor(returned), method)([_Request()])
    assert getattr(_executor([GOOD]), method)([_Request()]) == [GOOD]


def test_only_charges_may_be_unknown() -> None:
    assert _executor([None]).charged([_Request()]) == [None]
    with pytest.raises(PluginError, match="one per attempt"):
        _executor([None]).poll([_Request()])


def test_an_executor_that_is_none_is_named() -> None:
    with pytest.raises(PluginError, match="returned object without now, ready"):
        guarded("executor", _returns(object()), WHO)(None)
    assert not hasattr(_executor(None), "services"), "abilities that are optional stay so"
    with pytest.raises(PluginError, match=r"reserved_seconds\(\) returned nan"):
        _executor(math.nan).reserved_seconds(10.0)
    with pytest.raises(CampaignError, match="slots"):
        guarded("executor", _refuses, WHO)(None)


def _refuses(context: Any) -> Any:
    raise CampaignError("executor.slots: 0 must be a whole number from 1")
