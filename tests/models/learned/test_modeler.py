"""The options of the modeler; what it fits is tested by the contract of all families."""

import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.models.learned.modeler import modeler
from orchestrator.models.regression.model import RegressionModel
from orchestrator.types import Measurement, Measurements, Point


def known() -> Measurements:
    rng = np.random.default_rng(0)
    points = [Point.of(p=float(p), n=float(n)) for p, n in np.exp(rng.uniform(0, 4, (40, 2)))]
    values = {point: (point.number("p") * point.number("n") ** 0.5,) for point in points}
    return Measurements(("p", "n"), (Measurement("main", "time", values),))


def test_only_learners_of_a_name() -> None:
    [model] = modeler(only="nearest", combine=False)(known())
    assert isinstance(model, RegressionModel)
    assert {"nearest" in item["name"] or "trend" in item["name"] for item in model.reasons} == {True}
    assert any("nearest" in item["name"] for item in model.reasons)


def test_small_networks_are_fitted_where_they_are_named() -> None:
    rng = np.random.default_rng(0)
    points = [Point.of(p=float(p)) for p in np.exp(rng.uniform(0, 4, 20))]
    noisy = {point: (point.number("p") * float(np.exp(rng.normal(0, 0.3))),) for point in points}
    measured = Measurements(("p",), (Measurement("main", "time", noisy),))
    [model] = modeler(only="rprop", combine=False)(measured)
    assert isinstance(model, RegressionModel)
    names = {item["name"] for item in model.reasons}
    assert names == {f"rprop: 10 networks of 16 sigmoid units{how}" for how in ("", " on the trend")} | {
        "log-linear trend"
    }
    [plain] = modeler(only="nearest", combine=False)(measured)
    assert isinstance(plain, RegressionModel)
    assert not any("rprop" in item["name"] for item in plain.reasons)


def test_a_name_that_no_learner_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(ModelError, match=r"only is 'forrest', which no learner's name contains: .*boosted"):
        modeler(only="forrest")(known())


def test_an_unknown_grid_is_refused() -> None:
    with pytest.raises(ModelError, match="grid is 'full': use one of own, paper"):
        modeler(grid="full")


def test_the_grid_of_the_paper_has_its_neighbours() -> None:
    [model] = modeler(grid="paper", only="nearest")(known())
    assert isinstance(model, RegressionModel)
    assert sum("nearest" in item["name"] for item in model.reasons) >= 3
