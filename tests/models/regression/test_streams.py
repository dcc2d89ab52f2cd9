"""Every learner has a random stream of its own: a further candidate changes no draw of the others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from orchestrator.models.base import Floats
from orchestrator.models.regression.choice import Family, choose
from orchestrator.models.regression.learner import Fitted, Learner, streams
from orchestrator.models.regression.modeler import modeler_of
from orchestrator.models.regression.samples import Axis, Samples
from orchestrator.types import Measurement, Measurements, Point

X = np.linspace(0.0, 3.0, 40)[:, None]
SAMPLES = Samples(axes=(Axis(name="x"),), x=X, y=X[:, 0], runs=np.ones(len(X)))


@dataclass(frozen=True, eq=False)
class Drawn:
    """The true line, but for a slope and a level that were drawn."""

    error: Floats

    @property
    def text(self) -> str:
        return "drawn"

    def at(self, x: Floats) -> Floats:
        result: Floats = x[:, 0] * (1 + self.error[0]) + self.error[1]
        return result


def drawn(name: str, size: float) -> Learner:
    def fit(samples: Samples, rng: np.random.Generator) -> Fitted:
        return Drawn(rng.normal(0, size, 2))

    return Learner(family="drawn", name=name, fit=fit)


GOOD = tuple(drawn(f"good {k}", 0.01) for k in range(3))


def with_others(number: int) -> tuple[Learner, ...]:
    """More candidates, which lose and stand before the others."""
    return (*(drawn(f"bad {k}", 2.0) for k in range(number)), *GOOD)


def family(learners: Sequence[Learner]) -> Family:
    return Family(
        inside=lambda samples: learners,
        outside=lambda samples: (),
        combine=True,
        fallback=drawn("last resort", 0.5),
    )


@pytest.mark.parametrize("number", [1, 9])  # nine more: candidates are compared on a part first
def test_a_further_candidate_leaves_the_errors_of_the_others_as_they_are(number: int) -> None:
    few, many = (
        choose(SAMPLES, family(learners), np.random.default_rng(0))
        for learners in (GOOD, with_others(number))
    )
    errors = [dict(zip((item.name for item in one.learners), one.errors, strict=True)) for one in (few, many)]
    assert all(errors[0][learner.name] == errors[1][learner.name] for learner in GOOD)
    assert few.outside[0].growth == many.outside[0].growth


def test_a_further_candidate_that_loses_leaves_the_model_as_it_is() -> None:
    values = {Point.of(x=float(x)): (float(np.exp(x)),) for x in np.linspace(1, 4, 40)}
    known = Measurements(("x",), (Measurement("main", "time", values),))
    points = [Point.of(x=2.05), Point.of(x=9.0)]
    few, many = (modeler_of(family(one))(known)[0].predict(points) for one in (GOOD, with_others(2)))
    for part in ("value", "low", "high"):
        assert np.array_equal(getattr(few, part), getattr(many, part)), part


def test_streams_differ_between_learners_and_calls_but_not_between_equal_seeds() -> None:
    one, same = np.random.default_rng(0), np.random.default_rng(0)
    first, again, later = streams(one), streams(same), streams(one)
    value = first(GOOD[0]).random()
    assert value == again(GOOD[0]).random()
    assert len({value, first(GOOD[1]).random(), later(GOOD[0]).random()}) == 3
