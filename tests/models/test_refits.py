from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.models.base import Model
from orchestrator.models.belief import ModelWithBelief, has_belief
from orchestrator.models.pmnf.modeler import modeler as pmnf_modeler
from orchestrator.models.refits import refitted, resampled
from orchestrator.models.symbolic import Symbolic
from orchestrator.types import Measurement, Measurements, Point
from tests.models import nearest


def measured(repetitions: int = 3, noise: float = 0.1) -> Measurements:
    rng = np.random.default_rng(5)
    values = {
        Point.of(p=p): tuple(float(p * np.exp(rng.normal(0, noise))) for _ in range(repetitions))
        for p in (2, 4, 8, 16, 32)
    }
    return Measurements(("p",), (Measurement("main", "time", values), Measurement("init", "time", values)))


def believing(model: Model) -> ModelWithBelief:
    assert has_belief(model)
    return model


def test_as_many_runs_are_drawn_the_same_for_all_call_paths() -> None:
    known = measured()
    drawn = resampled(known, np.random.default_rng(0))
    assert drawn.items[0].values == drawn.items[1].values != known.items[0].values
    assert sum(map(len, drawn.items[0].values.values())) == 15
    for point, values in drawn.items[0].values.items():
        assert set(values) <= set(known.items[0].values[point])


def test_the_variance_at_a_measured_point_is_that_of_its_mean() -> None:
    noise, repetitions = 0.1, 40
    model = believing(refitted(nearest.modeler(), refits=300)(measured(repetitions, noise))[0])
    belief = model.belief([Point.of(p=8), Point.of(p=9), Point.of(p=32)])
    assert belief.variance == pytest.approx(noise**2 / repetitions, rel=0.5)
    assert belief.covariance(0)[1] == pytest.approx(belief.variance[0])  # the same neighbour
    assert abs(belief.covariance(0)[2]) < 0.3 * belief.variance[0]  # another one


def test_the_same_measurements_give_the_same_models() -> None:
    points = [Point.of(p=8), Point.of(p=64)]
    first, second = (believing(refitted(nearest.modeler())(measured())[0]).belief(points) for _ in range(2))
    assert np.array_equal(first.mean, second.mean)
    other = believing(refitted(nearest.modeler(), seed=1)(measured())[0]).belief(points)
    assert not np.array_equal(first.mean, other.mean)


def test_a_model_that_is_a_sum_of_terms_stays_one() -> None:
    plain = pmnf_modeler()(measured())[0]
    model = refitted(pmnf_modeler(), refits=10)(measured())[0]
    assert isinstance(model, Symbolic) and isinstance(plain, Symbolic)
    assert (model.terms, model.normal_form) == (plain.terms, plain.normal_form)
    assert not isinstance(refitted(nearest.modeler(), refits=10)(measured())[0], Symbolic)


def test_without_enough_refits_a_model_has_no_belief() -> None:
    calls = []

    def fails_again(measurements: Measurements) -> tuple[Model, ...]:
        calls.append(measurements)
        if len(calls) > 1:
            raise ModelError("too few")
        return nearest.modeler()(measurements)

    (model, _) = refitted(fails_again)(measured())
    assert not has_belief(model)
    assert len(calls) == 51
    with pytest.raises(ModelError, match="at least 10"):
        refitted(fails_again, refits=3)


def test_a_model_is_never_asked_for_no_points() -> None:
    class Wary:
        def __init__(self, model: Model) -> None:
            self.model = model

        def __getattr__(self, name: str) -> Any:
            found = getattr(self.model, name)
            return partial(self.asked, found) if name in ("predict", "predictive", "value") else found

        def asked(self, function: Any, points: Sequence[Point]) -> Any:
            assert points, "functions of plug-ins need not take this"
            return function(points)

    def wary(measurements: Measurements) -> tuple[Any, ...]:
        return tuple(Wary(model) for model in nearest.modeler()(measurements))

    model = refitted(wary)(measured())[0]
    point = next(iter(measured().items[0].values))
    assert model.predict([point]).low[0] < model.predict([point]).high[0]
