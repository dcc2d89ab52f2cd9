from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from orchestrator.errors import ExpressionError, MeasurementError
from orchestrator.evaluation.models import samples as models_samples
from orchestrator.evaluation.models import study as models_study
from orchestrator.evaluation.models.study import Study
from orchestrator.types import Measurement, Measurements, Point
from tests.evaluation.models.toys import nearest_point, refusing, samples, toy

TOYS = (toy(nearest_point), toy(refusing))


def study(**changes: Any) -> Study:
    return Study(
        **{"train": samples(), "contenders": TOYS, "source": "a.csv", "test_source": "b.csv", **changes}
    )


def constant(value: float) -> Measurements:
    values = {Point.of(m=m): (value,) for m in range(1, 9)}
    return Measurements(("m",), (Measurement("main", "t", values),))


def test_every_modeler_gets_the_same_points_and_small_sets_are_parts_of_large_ones() -> None:
    tasks = models_study.tasks(study(test=samples(10, seed=1), sizes=(20, 5, 20), seeds=2))
    assert [(t.size, t.seed, t.contender.label) for t in tasks[:2]] == [
        (5, 0, "nearest_point"),
        (5, 0, "refusing"),
    ]
    points = {(t.size, t.seed, t.contender.label): t.train.points for t in tasks}
    assert len(points) == 2 * 2 * 2 and all(len(found) == size for (size, _, _), found in points.items())
    assert points[20, 1, "nearest_point"] == points[20, 1, "refusing"]
    assert set(points[5, 1, "refusing"]) < set(points[20, 1, "refusing"])
    assert set(points[5, 0, "refusing"]) != set(points[5, 1, "refusing"])
    assert points == {
        (t.size, t.seed, t.contender.label): t.train.points
        for t in models_study.tasks(study(test=samples(10, seed=1), sizes=(5, 20), seeds=2))
    }


def test_without_test_samples_other_points_are_held_out_for_each_seed() -> None:
    tasks = models_study.tasks(study(seeds=2, share=0.25, contenders=TOYS[:1]))
    for task in tasks:
        assert len(task.test.points) == 10 and task.size == 30
        assert set(task.test.points) | set(task.train.points) == set(samples().points)
        assert not set(task.test.points) & set(task.train.points)
    assert set(tasks[0].test.points) != set(tasks[1].test.points)


def test_conditions_make_an_extrapolation() -> None:
    [task] = models_study.tasks(
        study(
            train_where=["m < 500"],
            test_where=["m >= 500", "n > 100"],
            where=["n > 50"],
            contenders=TOYS[:1],
        )
    )
    assert all(p.number("m") < 500 and p.number("n") > 50 for p in task.train.points)
    assert all(p.number("m") >= 500 and p.number("n") > 100 for p in task.test.points)
    assert len(task.train.points) == sum(p.number("m") < 500 and p.number("n") > 50 for p in samples().points)


def test_conditions_compare_categories() -> None:
    known = samples(texts=True)
    assert len(models_samples.where(known, ["solver == 'b'"], "a.csv").points) == 20


def test_test_points_are_never_fitted() -> None:
    shared = study(test=samples(10), contenders=TOYS[:1])
    assert models_study.overlap(shared) == 10
    [task] = models_study.tasks(shared)
    assert task.size == 30 and not set(task.train.points) & set(task.test.points)
    assert models_study.overlap(study(test=samples(10, seed=5))) == 0
    assert models_study.overlap(study()) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"sizes": (50,), "test": samples(9, seed=1)},
            "a.csv: a size of 50 is more than the 40 points .*--sizes",
        ),
        (
            {"where": ["m > 5000"]},
            r"a.csv: none of the 40 points satisfies m > 5000; there are m from \d+ to",
        ),
        (
            {"test": samples(10, seed=1), "test_where": ["m < 0"]},
            "b.csv: none of the 10 points satisfies m < 0",
        ),
        ({"test_where": ["m > 1"]}, "a.csv: all 40 points to fit are test points, too: let the conditions"),
        ({"test": samples()}, "a.csv: all 40 points to fit are test points, too: give other files"),
        ({"train": constant(2.0)}, "a.csv: t is 2 at all 6 points: there is nothing to model"),
        ({"test": constant(2.0)}, "a.csv has the parameters m, n, but b.csv has m: .*--parameters"),
        ({"share": 0.01}, "a share of 0.01 of 40 points is 0: nothing is left to test with"),
    ],
)
def test_samples_that_allow_no_comparison_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        models_study.tasks(study(**changes))


def test_test_values_must_be_positive() -> None:
    with pytest.raises(MeasurementError, match=r"b.csv: t is 0 at P\(m=1\): errors are relative"):
        models_samples.check_positive(constant(0.0), "b.csv")


def test_categories_on_one_side_only_are_refused() -> None:
    coded = Measurements(("m", "n"), samples().items, frozenset({"n"}))
    with pytest.raises(MeasurementError, match=r"parameter n has categories in one .* --categorical n"):
        models_study.tasks(study(test=coded))


def test_a_condition_of_unknown_names_is_refused() -> None:
    with pytest.raises(ExpressionError, match="unknown name 'nm'"):
        models_study.tasks(study(where=["nm < 4"]))


def test_one_response_at_one_call_path_is_compared() -> None:
    values = {Point.of(m=1): (1.0,)}
    several = [Measurement(path, name, values) for path in ("f", "g") for name in ("avg", "std")]
    known = Measurements(("m",), tuple(several))
    with pytest.raises(MeasurementError, match=r"a.csv: choose one of avg, std with --response"):
        models_samples.of_response(known, None, "a.csv")
    known = Measurements(("m",), tuple(item for item in several if item.metric == "avg"))
    with pytest.raises(MeasurementError, match=r"a.csv: choose one of the call paths f, g with --callpath"):
        models_samples.of_response(known, None, "a.csv")
    with pytest.raises(MeasurementError, match=r"a.csv: no call path 'h': known: f, g"):
        models_samples.of_response(known, "h", "a.csv")
    assert models_samples.of_response(known, "g", "a.csv").items == (several[2],)


def test_repetitions_of_a_point_stay_together() -> None:
    values = {Point.of(m=m): (1.0 * m, 1.1 * m) for m in range(1, 11)}
    known = Measurements(("m",), (Measurement("main", "t", values),))
    train, test = models_samples.split(known, 0.3, np.random.default_rng(0))
    assert len(train.points) == 7 and len(test.points) == 3
    assert all(len(found) == 2 for part in (train, test) for found in part.items[0].values.values())
