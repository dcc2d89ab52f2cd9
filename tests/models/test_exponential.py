"""Parameters that act exponentially: where they are found, and what their models say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.models.base import Model
from orchestrator.models.belief import HasAnswer, has_belief, of_answer
from orchestrator.models.exponential import LevelModel, levels, with_levels
from orchestrator.models.selection import modeler
from orchestrator.models.symbolic import terms_of
from orchestrator.types import Measurement, Measurements, Point

Form = Callable[[float, float], float]
LEVELS, RANKS = (3, 4, 5, 6, 7), (1, 2, 4, 8)


def measured(
    form: Form,
    levels: Sequence[float] = LEVELS,
    others: Sequence[float] = RANKS,
    *,
    noise: float = 0.02,
    callpath: str = "main",
    seed: int = 1,
) -> Measurement:
    """Two runs at every point of a grid."""
    rng = np.random.default_rng(seed)
    return Measurement(
        callpath,
        "time",
        {
            Point.of(level=level, p=p): tuple(form(level, p) * np.exp(rng.normal(0, noise, 2)))
            for level in levels
            for p in others
        },
    )


def fitted(*items: Measurement, names: tuple[str, ...] = ("level", "p")) -> tuple[Model, ...]:
    return modeler()(Measurements(names, items))


def refined(level: float, p: float) -> float:
    return float(1e-5 * 8**level / p + 1e-3 * p**0.5 + 1e-3)


@pytest.mark.parametrize("levels", [(1, 2, 3, 4, 5), LEVELS, (5, 6, 7, 8, 9), (0, 2, 4, 6, 8)])
@pytest.mark.parametrize("base", [4, 8])
def test_levels_are_modelled_as_powers_of_two(base: int, levels: tuple[int, ...]) -> None:
    def form(level: float, p: float) -> float:
        return float(1e-3 * base**level / p + 1e-3 * p**0.5)

    (found,) = fitted(measured(form, levels))
    assert isinstance(found, LevelModel) and found.parameters == ("level", "p")
    assert "level acts exponentially: this is a model of 2**level" in found.notes
    far = Point.of(level=levels[-1] + 2, p=16)
    prediction = found.predict([far])
    assert prediction.value[0] == pytest.approx(form(levels[-1] + 2, 16), rel=0.15)
    assert prediction.value == pytest.approx(found.value([far]))
    assert found.document()["expression"] == found.expression


def test_a_clock_that_shows_zero_at_first_shows_no_exponential() -> None:
    """From zero to one tick is not a growth by many orders of magnitude."""
    ticks = {128: "00 00 00 10 11", 192: "00 00 01 11 11", 256: "00 00 00 11 11"}  # of two runs at each step
    values = {
        Point.of(level=steps, n=n): tuple(1e-4 * float(tick) for tick in runs)
        for n, line in ticks.items()
        for steps, runs in zip((2, 4, 8, 12, 16), line.split(), strict=True)
    }
    assert levels(Measurement("main", "time", values), ("level",)) == ()


def test_a_power_far_beyond_is_a_number() -> None:
    (found,) = fitted(measured(refined))
    assert np.isfinite(found.value([Point.of(level=5000, p=1)])).all()


def test_the_expression_is_one_in_the_level() -> None:
    (found,) = fitted(measured(lambda level, p: 1e-5 * 4**level * level / p, noise=0.0))
    assert "(2**level)**2" in found.expression and "log2" not in found.expression
    value = eval(found.expression, {"level": 9, "p": 2})
    assert value == pytest.approx(float(found.value([Point.of(level=9, p=2)])[0]), rel=1e-3)
    assert value == pytest.approx(1e-5 * 4**9 * 9 / 2, rel=1e-2)


@pytest.mark.parametrize(
    ("note", "shown"),
    [
        (
            "jumps between (2**level)=64 and (2**level)=1.04858e+06: x",
            "jumps between level=6 and level=20: x",
        ),
        ("taken for outliers: P((2**level)=1, p=4)", "taken for outliers: P(level=0, p=4)"),
        ("changes at (2**level) = 90.5 (a step of x2)", "changes at level = 6.5 (a step of x2)"),
        ("not monotone in (2**level): rises", "not monotone in 2**level: rises"),
    ],
)
def test_notes_give_levels(note: str, shown: str) -> None:
    model = cast(Model, SimpleNamespace(notes=(note,)))
    assert LevelModel(model, ("level", "p"), ("level",)).notes[0] == shown


def test_strategies_see_how_levels_vary_together() -> None:
    (found,) = fitted(measured(refined))
    assert has_belief(found) and isinstance(found, HasAnswer)
    points = [Point.of(level=8, p=1), Point.of(level=9, p=16), Point.of(level=3, p=1)]
    for belief in (found.belief(points), of_answer(found, points)):
        assert np.exp(belief.centre) == pytest.approx(found.value(points), rel=0.1)
        shared = belief.covariance(1) / np.sqrt(belief.variance * belief.variance[1])
        assert shared[0] > shared[2]


OTHERS: dict[str, Form] = {
    "linear": lambda level, p: 0.1 * level / p + 0.1,
    "a power": lambda level, p: 1e-3 * level**4 / p + 1e-2,
    "a large power": lambda level, p: 1e-4 * level**6 / p,
    "a jump": lambda level, p: level * (9.0 if level >= LEVELS[-1] else 1.0),
    "doubling": lambda level, p: 1.0 + 0.01 * 2**level,
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("noise", [0.02, 0.05])
def test_what_grows_as_a_power_stays_as_it_is(name: str, noise: float) -> None:
    for seed in range(5):
        (found,) = fitted(measured(OTHERS[name], noise=noise, seed=seed))
        assert not isinstance(found, LevelModel)


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("ranks", LEVELS),  # processes multiply nothing
        ("level", (8, 16, 24, 32, 40)),  # sizes
        ("level", (3, 3.5, 4, 4.5, 5)),
        ("level", (5, 6, 7)),  # too few to show it
    ],
)
def test_what_cannot_be_levels(name: str, levels: tuple[float, ...]) -> None:
    item = measured(lambda level, p: 1e-5 * 8 ** (level % 8), levels, (1, 3, 9))
    values = {Point.of({name: point["level"], "q": point["p"]}): v for point, v in item.values.items()}
    (found,) = fitted(Measurement("main", "time", values), names=(name, "q"))
    assert not isinstance(found, LevelModel)


def test_each_call_path_is_looked_at_and_callers_are_sums() -> None:
    refine = measured(lambda level, p: 1e-5 * 8**level / p, callpath="main->refine")
    exchange = measured(lambda level, p: 1e-3 * level + 2e-3 * p, callpath="main->exchange", seed=2)
    total = {point: tuple(np.add(v, exchange.values[point]) + 1e-3) for point, v in refine.values.items()}
    found = fitted(exchange, Measurement("main", "time", total), refine)
    assert [item.callpath for item in found] == ["main->exchange", "main", "main->refine"]
    assert [isinstance(item, LevelModel) for item in found] == [False, True, True]
    assert terms_of(found[0])
    assert any(note.startswith("the sum of the models of its parts: ->refine") for note in found[1].notes)


def test_call_paths_that_cannot_be_fitted_cost_no_others() -> None:
    def only(measurements: Measurements) -> tuple[Model, ...]:
        if any(item.callpath != "main" for item in measurements.items):
            raise ModelError("not this one")
        return modeler()(measurements)

    steep, flat = measured(refined), measured(lambda level, p: 1.0, callpath="flat")
    measurements = Measurements(("level", "p"), (flat, steep))
    assert [item.callpath for item in with_levels(only)(measurements)] == ["main"]
    with pytest.raises(ModelError, match="not this one"):
        with_levels(only)(Measurements(("level", "p"), (flat,)))


def launched(item: Measurement, callpath: str, metric: str = "time", seconds: float = 1.0) -> Measurement:
    """What includes a call path, and takes so long itself whatever the level."""
    values = {point: tuple(seconds + v for v in values) for point, values in item.values.items()}
    return Measurement(callpath, metric, values)


@pytest.mark.parametrize(("callpath", "metric"), [("(run)", "elapsed"), ("main", "time")])
def test_what_includes_a_call_path_grows_as_that_does(callpath: str, metric: str) -> None:
    """Starting hides the growth at small levels: time limits two levels further were far too short."""
    part = measured(lambda level, p: 2e-7 * 8**level, callpath="main->refine")
    whole = launched(part, callpath, metric)
    far = Point.of(level=LEVELS[-1] + 2, p=1)
    (alone,) = fitted(whole)
    assert not isinstance(alone, LevelModel) and alone.value([far])[0] < 5
    both = {item.callpath: item for item in fitted(whole, part)}
    assert both[callpath].value([far])[0] == pytest.approx(1 + 2e-7 * 8**9, rel=0.2)


@pytest.mark.parametrize(("callpath", "metric"), [("main->exchange", "time"), ("main", "energy")])
def test_others_do_not(callpath: str, metric: str) -> None:
    part = measured(lambda level, p: 2e-7 * 8**level, callpath="main->refine")
    _, other = fitted(part, launched(part, callpath, metric))
    assert not isinstance(other, LevelModel)


@pytest.mark.parametrize("seconds", [0.05, 100.0])
def test_callers_without_the_time_of_what_they_call_stay_as_they_are(seconds: float) -> None:
    """Where times are those of call paths alone, or what grows takes less than a hundredth."""
    part = measured(lambda level, p: 2e-7 * 8**level, callpath="main->refine")
    whole = measured(lambda level, p: seconds + (2e-7 * 8**level if seconds > 1 else 0.0), seed=2)
    assert [isinstance(item, LevelModel) for item in fitted(whole, part)] == [False, True]


def test_the_steeper_the_less_likely_is_a_power() -> None:
    """What does not depend on the level hides which of both follows the values better."""
    sizes = (5, 6, 7, 8, 9)
    items = [measured(lambda level, p: 8 ** (level - 9) / p + 0.1, sizes, seed=k) for k in range(10)]
    assert all(levels(item, ["level"]) for item in items)
