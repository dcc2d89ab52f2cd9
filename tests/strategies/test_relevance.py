from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.strategies.base import View
from orchestrator.strategies.relevance import noise_percent, relevant
from orchestrator.types import Measurement, Measurements, Parameter, Point
from tests.strategies.views import Box, TrueModel, make_view

PLUS = Point.of(p=8)
ONE, TWO = Point.of(p=1), Point.of(p=2)


def view_of(*items: Measurement, models: tuple[TrueModel, ...] = ()) -> View:
    view = make_view(Box((Parameter("p", (1, 2, 4)),)), evaluation_point=PLUS, models=models)
    return replace(view, measurements=Measurements(("p",), items))


def test_without_models_shares_come_from_the_measured_total() -> None:
    view = view_of(
        Measurement("main->large", "time", {ONE: (2.0, 2.0), TWO: (3.0,)}),
        Measurement("main->small", "time", {ONE: (3.0,)}),
        Measurement("main->tiny", "time", {ONE: (0.05,)}),
        Measurement("main->large", "visits", {ONE: (1000.0,)}),
    )

    assert {e.measurement.callpath: e.share for e in relevant(view)} == {
        "main->large": 0.7,
        "main->small": 0.3,
    }


def test_with_models_the_predicted_time_at_the_evaluation_point_counts() -> None:
    view = view_of(
        Measurement("main->a", "time", {ONE: (1.0,)}),
        Measurement("main->b", "time", {ONE: (1e6,)}),
        Measurement("main->c", "time", {ONE: (1.0,)}),
        models=(TrueModel("main->a", 3.0), TrueModel("main->b", 1.0), TrueModel("main->c", 0.02)),
    )

    assert {e.measurement.callpath: round(e.share, 9) for e in relevant(view)} == {
        "main->a": 0.75,
        "main->b": 0.25,
    }


def test_without_times_every_metric_counts() -> None:
    view = view_of(Measurement("main", "flops", {ONE: (5.0,)}))

    assert [e.measurement.metric for e in relevant(view)] == ["flops"]


def test_noise_is_the_mean_deviation_from_the_mean_in_percent() -> None:
    view = view_of(
        Measurement("main->a", "time", {ONE: (95.0, 105.0), TWO: (90.0, 110.0), PLUS: (7.0,)}),
        Measurement("main->b", "time", {ONE: (100.0, 100.0)}),
    )
    entries = relevant(view)

    shares = {e.measurement.callpath: e.share for e in entries}
    assert noise_percent(entries) == pytest.approx(7.5 * shares["main->a"])


def test_no_repetitions_show_no_noise() -> None:
    assert noise_percent(relevant(view_of(Measurement("main", "time", {ONE: (5.0,)})))) == 0.0
