"""A machine that is busy, or whose times drift, is noticed; one that is only noisy is not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import immutables
import numpy as np
import pytest

from orchestrator.journal.state import RunState, RunStatus, State
from orchestrator.policy import machine
from orchestrator.types import Point, Run

HOUR = 3600.0


def measured(
    rng: np.random.Generator,
    repetitions: int,
    drift: Callable[[float], float],
    noise: float = 0.02,
    load: Mapping[str, float] | None = None,
) -> State:
    """Eight points of different times, each measured again and again in ten hours."""
    runs: dict[Run, RunState] = {}
    points = [Point.of(n=n) for n in range(1, 9)]
    for point in points:
        for k in range(1, repetitions + 1):
            began = rng.uniform(0, 10 * HOUR)
            seconds = point.number("n") ** 2 * drift(began) * math.exp(noise * rng.standard_normal())
            runs[Run(point, "time", k)] = RunState(
                status=RunStatus.MEASURED, elapsed=seconds, began=began, load=load or {}
            )
    last = immutables.Map(dict.fromkeys(points, repetitions))
    return State(runs=immutables.Map(runs), proposed=immutables.Map({"time": last}))


def test_a_drift_is_found_with_its_size() -> None:
    found = machine.drift(measured(np.random.default_rng(1), 3, lambda t: 1 + 0.2 * t / (10 * HOUR)))
    assert found is not None and found.certain
    assert found.low < 0.2 < found.high
    assert found.high - found.low < 0.1


def test_a_load_in_the_second_half_is_found() -> None:
    state = measured(np.random.default_rng(2), 3, lambda t: 1.3 if t > 5 * HOUR else 1.0)
    assert "slower" in machine.findings(state)["drift"]


def test_noise_alone_is_rarely_called_a_drift() -> None:
    """The chance that is stated is the one that is kept: 5 % of 400 campaigns, within four sigma."""
    rng = np.random.default_rng(3)
    trends = [machine.drift(measured(rng, 3, lambda t: 1.0, noise=0.1)) for _ in range(400)]
    alarms = sum(trend is not None and trend.chance < 0.05 for trend in trends)
    assert alarms <= 20 + 4 * math.sqrt(400 * 0.05 * 0.95)


def test_a_single_disturbed_run_is_no_drift() -> None:
    state = measured(np.random.default_rng(4), 3, lambda t: 1.0)
    run = max(state.runs, key=lambda run: state.runs[run].began or 0.0)
    item = state.runs[run]
    state = state._replace(runs=state.runs.set(run, item._replace(elapsed=10 * item.elapsed)))
    assert "drift" not in machine.findings(state)


@pytest.mark.parametrize("repetitions", [1, 2])
def test_nothing_is_said_where_nothing_can_be_known(repetitions: int) -> None:
    exact = measured(np.random.default_rng(5), repetitions, lambda t: 1.0, noise=0.0)
    assert machine.findings(exact) == {}
    assert machine.findings(State()) == {}


def test_metrics_of_which_every_value_is_zero_are_reported() -> None:
    def after(*times: float) -> dict[str, str]:
        runs = {
            Run(Point.of(n=n), "time", 1): RunState(
                status=RunStatus.MEASURED,
                samples={"time": {"main": seconds}, "rate": {"main": 0.0}, "bytes_sent": {"main": 0.0}},
            )
            for n, seconds in enumerate(times, start=1)
        }
        return machine.findings(State(runs=immutables.Map(runs)))

    assert after(0.0, 0.0)["only zeros"].startswith("every value of rate, time is zero: the program's timer")
    assert after(0.0, 0.1)["only zeros"].startswith("every value of rate is zero")
    assert after() == {}


def test_a_busy_machine_is_reported_with_numbers() -> None:
    rng = np.random.default_rng(6)
    busy = machine.findings(measured(rng, 2, lambda t: 1.0, load={"others": 0.4, "stolen": 0.0}))
    assert "took 40 % of the CPU time of timed runs (16 of 16 runs" in busy["busy machine"]
    stolen = machine.findings(measured(rng, 2, lambda t: 1.0, load={"stolen": 0.25}))
    assert set(stolen) == {"busy host"} and "25 %" in stolen["busy host"]
    assert machine.findings(measured(rng, 2, lambda t: 1.0, load={"others": 0.03, "stolen": 0.01})) == {}


def test_the_size_of_a_step_is_not_hidden_by_little_noise() -> None:
    """Eight points, each measured twice at once; one of them again, after a load of 46 % began."""
    rng, runs = np.random.default_rng(7), {}
    for n in range(1, 9):
        for k, hour in enumerate((n / 100, n / 100 + 0.01), start=1):
            seconds = n * math.exp(0.001 * rng.standard_normal())
            runs[Run(Point.of(n=n), "time", k)] = (seconds, hour)
    for k, hour in enumerate((8.0, 9.0, 10.0), start=3):
        runs[Run(Point.of(n=3), "time", k)] = (3 * 1.46, hour)
    items = {
        run: RunState(status=RunStatus.MEASURED, elapsed=seconds, began=HOUR * hour)
        for run, (seconds, hour) in runs.items()
    }
    last = {run.point: run.repetition for run in sorted(runs, key=lambda run: run.repetition)}
    known = immutables.Map({"time": immutables.Map(last)})
    found = machine.drift(State(runs=immutables.Map(items), proposed=known))
    assert found is not None and found.certain and 0.35 < found.change < 0.7


@pytest.mark.parametrize(
    ("seconds", "cost", "told"),
    [
        (500.0, 0.5, "1000"),
        (0.9, 2.0, ""),
        (0.4, 0.5, ""),
        (1.9, 1.0, ""),
        (3.9, 2.0, ""),
        (4.1, 2.0, "2.05"),
    ],
)
def test_times_that_are_longer_than_the_runs_are_reported(seconds: float, cost: float, told: str) -> None:
    """They may be sums over ranks: the core-seconds of a run are what it can take."""
    runs = {
        Run(Point.of(n=n), "time", 1): RunState(
            status=RunStatus.MEASURED,
            elapsed=0.5 * n,
            cost=cost * n,
            samples={"time": {"main->solve": seconds * n, "main": 0.4 * n}},
        )
        for n in range(1, 6)
    }
    one = next(iter(runs))
    found = machine.findings(State(runs=immutables.Map(runs)))
    assert found.get("wrong unit", "").startswith(f"main->solve takes {told} times as long") == bool(told)
    glitch = {**runs, one: runs[one]._replace(samples={"time": {"main": 1e6}})}
    assert ("wrong unit" in machine.findings(State(runs=immutables.Map(glitch)))) == bool(told)


@pytest.mark.parametrize(
    ("simulated", "origin", "told"),
    [
        (0.002277871, "n1 1", True),  # as it is printed by a program without noise
        (2277.871e-6, "n1 1", True),
        (0.002277871, "", False),  # a rehearsal
        (0.0023, "n1 1", False),  # rounded ones may be equal
    ],
)
def test_times_that_are_the_same_in_all_repetitions_are_no_measurements(
    simulated: float, origin: str, told: bool
) -> None:
    def after(repetitions: int, differs: float = 0.0) -> dict[str, str]:
        runs = {
            Run(Point.of(n=n), "time", k): RunState(
                status=RunStatus.MEASURED,
                elapsed=1.0,
                origin=origin,
                samples={"time": {"main": n * simulated + differs * k, "main->solve": 0.01234567 * k}},
            )
            for n in (1, 2, 3)
            for k in range(1, repetitions + 1)
        }
        return machine.findings(State(runs=immutables.Map(runs)))

    assert (
        after(3).get("no measured time", "").startswith("in all repetitions of a point the time of main is")
        == told
    )
    assert "no measured time" not in after(2)  # three pairs may be chance
    assert "no measured time" not in after(3, differs=1e-9)


@pytest.mark.parametrize(
    ("seconds", "origin", "told"),
    [
        ([0.0, 0.01, 0.01, 0.02, 0.03, 0.12], "n1 1", "0.01"),
        ([0.0, 0.01, 0.01, 0.02, 0.03, 0.12], "", ""),  # a rehearsal
        ([0.11, 0.13, 0.2, 0.3, 0.4], "n1 1", ""),
        ([0.01, 0.02, 0.0313, 0.04, 0.05], "n1 1", ""),
        ([0.01, 0.02, 0.03, 0.04], "n1 1", ""),  # may be round by chance
        ([3.0, 4.0, 4.0, 5.0, 7.0], "n1 1", "1"),
        ([0.0] * 6, "n1 1", ""),  # only zeros, which is said
    ],
)
def test_times_that_are_a_few_steps_of_their_last_digit_are_told(
    seconds: list[float], origin: str, told: str
) -> None:
    runs = {
        Run(Point.of(n=k), "time", 1): RunState(
            status=RunStatus.MEASURED,
            elapsed=10.0,
            origin=origin,
            samples={"time": {"main": value, "main->init": round(value / 5, 2)}},
        )
        for k, value in enumerate(seconds)
    }
    text = machine.findings(State(runs=immutables.Map(runs))).get("few digits", "")
    assert text.startswith(f"the times of main are multiples of {told} s,") == bool(told)
    assert bool(text) == bool(told)


def _as_long(seconds: list[float], varied: dict[str, list[float]], origin: str = "n1 round 1") -> str:
    runs = {
        Run(Point.of({name: values[k] for name, values in varied.items()}), "time", 1): RunState(
            status=RunStatus.MEASURED, elapsed=value, origin=origin
        )
        for k, value in enumerate(seconds)
    }
    return machine.findings(State(runs=immutables.Map(runs))).get("a given time", "")


def test_programs_that_work_for_a_given_time_are_told() -> None:
    seconds = [60.1, 60.4, 61.2, 60.8, 63.5]
    text = _as_long(seconds, {"n": [16, 32, 48, 64, 96], "p": [1, 1, 2, 2, 4]})
    assert text.startswith("all runs take 60.8 s within 10 %, whatever n is:")
    assert "n, steps are" in _as_long(seconds, {"steps": [10, 20, 40, 40, 80], "n": [16, 32, 48, 64, 96]})


@pytest.mark.parametrize(
    ("seconds", "varied"),
    [
        ([60.1, 60.4, 61.2, 60.8, 70.0], {"n": [16, 32, 48, 64, 96]}),  # one takes longer
        ([0.61, 0.62, 0.61, 0.62, 0.62], {"n": [16, 32, 48, 64, 96]}),  # the start of the program
        ([60.1, 60.4, 61.2, 60.8], {"n": [16, 32, 48, 96]}),  # few points
        ([60.1, 60.4, 61.2, 60.8, 61.5], {"n": [16, 18, 20, 22, 24]}),  # hardly varied
        ([60.1, 60.4, 61.2, 60.8, 61.5], {"ranks": [1, 2, 4, 8, 16]}),  # work that scales
    ],
)
def test_runs_that_may_well_take_as_long_are_not_told(
    seconds: list[float], varied: dict[str, list[float]]
) -> None:
    assert _as_long(seconds, varied) == ""


def test_rehearsals_may_be_of_constants() -> None:
    assert _as_long([60.0] * 5, {"n": [16, 32, 48, 64, 96]}, origin="") == ""
