"""Models from tables."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest

import orchestrator as mo
from orchestrator.api.fit import chosen_modeler, fit_measurements
from orchestrator.models.base import Model
from orchestrator.models.pmnf.modeler import modeler
from orchestrator.readers.load import load
from orchestrator.types import Measurements

matplotlib.use("agg")


def table(**more: object) -> pd.DataFrame:
    rows = [
        {"p": p, "n": n, "region": region, "time": value * (1 + 0.01 * k), **more}
        for p in (2, 4, 8, 16, 32)
        for n in (10, 20, 30, 40, 50)
        for region, value in (("main", 0.1 + 1e-3 * p * n), ("main->f", 0.2 * np.sqrt(p)))
        for k in range(2)
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def models() -> mo.Models:
    return mo.fit(table(), parameters=["p", "n"], response="time", callpath="region")


def test_a_modeler_may_be_a_function_of_ones_own() -> None:
    seen = []

    def own(measurements: Measurements) -> tuple[Model, ...]:
        seen.append(measurements.parameters)
        return tuple(modeler()(measurements))

    frame = pd.DataFrame({"p": [1, 2, 4, 8, 16], "time": [2.0, 3.0, 5.0, 9.0, 17.0]})
    models = mo.fit(frame, ["p"], "time", modeler=own)
    assert seen and models.predict(p=32)["value"].tolist() == pytest.approx([33], rel=0.02)
    assert not mo.compare(frame, frame, ["p"], "time", modeler=own).empty
    with pytest.raises(mo.CampaignError, match="has its options already, but ridge was given too"):
        mo.fit(frame, ["p"], "time", modeler=own, ridge=1.0)
    with pytest.raises(mo.CampaignError, match="takes no priors"):
        mo.fit(frame, ["p"], "time", modeler=own, priors={"old": frame})


def test_a_function_that_is_no_modeler_is_named() -> None:
    frame = pd.DataFrame({"p": [1, 2, 4, 8, 16], "time": [2.0, 3.0, 5.0, 9.0, 17.0]})
    factory: Any = modeler
    with pytest.raises(
        mo.CampaignError, match=r"if it returns a modeler, call it, as in modeler=modeler\(\)"
    ):
        mo.fit(frame, ["p"], "time", modeler=factory)

    def forgetful(measurements: Measurements) -> Any:
        return None

    with pytest.raises(mo.PluginError, match="the modeler forgetful returned None, not a tuple of models"):
        mo.fit(frame, ["p"], "time", modeler=forgetful)

    def failing(measurements: Measurements) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        mo.fit(frame, ["p"], "time", modeler=failing)


def test_a_model_per_call_path(models: mo.Models) -> None:
    assert [model.callpath for model in models] == ["main", "main->f"]
    assert len(models) == 2
    assert "p * n" in models["main"].expression
    assert models["main", "time"].expression == models["main"].expression
    assert models["main"].smape < 2
    assert repr(models["main"]).startswith("main time: ")
    assert len(repr(models).splitlines()) == 2


def test_predictions_at_a_point_and_at_a_table_of_points(models: mo.Models) -> None:
    one = models.predict(p=64, n=100)
    assert list(one.columns) == ["callpath", "metric", "value", "low", "high"]
    assert list(one["callpath"]) == ["main", "main->f"]
    assert one["value"][0] == pytest.approx(6.5, rel=0.1)
    assert ((one["low"] <= one["value"]) & (one["value"] <= one["high"])).all()
    many = models.predict(pd.DataFrame({"n": [100, 50], "p": [64, 128]}))
    assert list(many.columns) == ["p", "n", "callpath", "metric", "value", "low", "high"]
    assert len(many) == 4
    assert many["value"].iloc[0] == one["value"][0]
    assert list(many.index) == [0, 0, 1, 1]
    assert models["main"].predict(p=64, n=100)["value"][0] == one["value"][0]


def test_intervals_of_several_levels(models: mo.Models) -> None:
    one = models["main"].intervals([50, 90], p=64, n=100)
    assert list(one.columns) == ["callpath", "metric", "level", "kind", "low", "high"]
    assert list(zip(one["level"], one["kind"], strict=True)) == [
        (level, kind) for level in (50, 90) for kind in ("mean", "measured")
    ]
    predicted = models["main"].predict(p=64, n=100)
    mean = one[(one["level"] == 90) & (one["kind"] == "mean")]
    assert list(mean[["low", "high"]].iloc[0]) == list(predicted[["low", "high"]].iloc[0])
    many = models.intervals([50], pd.DataFrame({"n": [100, 50], "p": [64, 128]}))
    assert list(many.columns)[:4] == ["p", "n", "callpath", "metric"]
    assert list(many["p"]) == [64] * 4 + [128] * 4
    five = models["main"].intervals([50], None, 5, p=64, n=100)
    assert five["high"][1] < one["high"][1]


def test_impossible_intervals(models: mo.Models) -> None:
    with pytest.raises(mo.CampaignError, match=r"0\.9 is no level of an interval"):
        models.intervals([0.9], p=64, n=100)
    with pytest.raises(mo.MeasurementError, match="runs is 0"):
        models.intervals([90], None, 0, p=64, n=100)


def test_a_table_of_models(models: mo.Models) -> None:
    found = models.to_frame()
    assert list(found["callpath"]) == ["main", "main->f"]
    assert {"metric", "expression", "smape", "notes"} <= set(found.columns)
    assert "<table>" in models._repr_html_()
    assert "main-&gt;f" in models["main->f"]._repr_html_()


def test_a_plot(models: mo.Models) -> None:
    axes = models.plot("main", along="n", at={"p": 64, "n": 100})
    assert axes.get_xlabel().startswith("n  (p=")
    assert axes.get_ylabel() == "time [s]"
    assert axes.get_xlim()[1] > 100
    assert models["main"].plot(ax=axes) is axes
    with pytest.raises(mo.MeasurementError, match="cannot draw along 'q'"):
        models.plot("main", along="q")
    with pytest.raises(mo.MeasurementError, match=r"^at is .*\{'p': 256, 'n': 50\}"):
        models.plot("main", at="n=100")  # type: ignore[arg-type]


def test_the_command_line_fits_the_same(models: mo.Models, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    table().rename(columns={"region": "callpath"})[["p", "n", "callpath", "time"]].to_csv(path, index=False)
    fitted = fit_measurements(load([path]), chosen_modeler("auto", {}))
    assert [m.expression for m in fitted] == [m.expression for m in models]


def test_what_read_returns_needs_no_further_words(models: mo.Models, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    table().rename(columns={"region": "callpath"})[["p", "n", "callpath", "time"]].to_csv(path, index=False)
    frame = mo.read(path)
    assert list(frame.columns) == ["p", "n", "callpath", "metric", "repetition", "value"]
    assert list(frame["repetition"][:2]) == [1, 2]
    assert [m.expression for m in mo.fit(frame)] == [m.expression for m in models]
    again = mo.fit(frame, parameters=["p", "n"], response="value", callpath="callpath")
    assert {m.metric for m in again} == {"time"}


def test_several_metrics_some_of_them_not_measured_everywhere() -> None:
    frame = table()
    frame["bytes"] = np.where(frame.index % 2, 100.0 * frame["p"], np.nan)
    models = mo.fit(frame, parameters=["p", "n"], response=["time", "bytes"], callpath="region")
    assert {model.metric for model in models} == {"time", "bytes"}
    assert models["main", "bytes"].predict(p=64, n=10)["value"][0] == pytest.approx(6400, rel=0.01)
    with pytest.raises(KeyError, match="2 models are of 'main'"):
        models["main"]


@pytest.mark.parametrize("kind", ["text", "category"])
def test_categories_have_models_of_their_own(kind: str) -> None:
    cg, mg = table(solver="cg"), table(solver="mg")
    mg["time"] *= 3
    frame = pd.concat([cg, mg], ignore_index=True)
    if kind == "category":
        frame["solver"] = frame["solver"].map({"cg": 1, "mg": 2}).astype("category")
    names = ("cg", "mg") if kind == "text" else ("1", "2")
    models = mo.fit(frame, parameters=["p", "n", "solver"], response="time", callpath="region")
    assert len(models) == 4
    one = models[f"main [solver={names[0]}]"]
    assert one.category == {"solver": names[0]}
    chosen = names[1] if kind == "text" else 2
    found = models.predict(p=64, n=100, solver=chosen)
    assert len(found) == 2
    assert found["value"][0] == pytest.approx(
        3 * one.predict(p=64, n=100, solver=names[0])["value"][0], rel=0.01
    )
    with pytest.raises(mo.MeasurementError, match="models exist only for"):
        models.predict(p=64, n=100, solver="lu")
    assert "solver" in models.to_frame()


def test_predictions_have_the_index_of_their_points(models: mo.Models) -> None:
    points = pd.DataFrame({"p": [64, 128, 64], "n": [100, 50, 70]}, index=["x", "y", "z"])
    points["predicted"] = models["main"].predict(points[points["p"] == 64])["value"]
    assert points["predicted"].isna().tolist() == [False, True, False]
    assert points["predicted"]["z"] == models["main"].predict(p=64, n=70)["value"][0]
    assert list(models["main"].intervals([50], points).index) == ["x", "x", "y", "y", "z", "z"]


def test_a_model_of_a_category_needs_no_category() -> None:
    rows = [{"p": p, "s": s, "time": c * (1 + p)} for p in (2, 4, 8, 16, 32) for s, c in (("a", 1), ("b", 2))]
    models = mo.fit(pd.DataFrame(rows), ["p", "s"], "time", modeler="pmnf")
    one = models["<root> [s=b]"]
    asked = models.predict(p=64, s="b")
    pd.testing.assert_frame_equal(one.predict(p=64), asked)
    pd.testing.assert_frame_equal(one.predict(p=64, s="b"), asked)
    assert list(one.predict(pd.DataFrame({"p": [64, 128]}))["s"]) == ["b", "b"]
    assert len(one.intervals([50], p=64)) == 2
    with pytest.raises(mo.MeasurementError, match=r"<root> \[s=b\] is of s=b and says nothing of s=a"):
        one.predict(p=64, s="a")
    with pytest.raises(mo.MeasurementError, match="no value for parameter p"):
        one.predict()
    assert one.predict(pd.DataFrame({"p": [64], "s": ["a"]})).empty


def test_a_parameter_with_one_value_may_be_left_out_of_a_point() -> None:
    rows = [{"p": p, "gpus": 0, "machine": "a", "time": 1 + p} for p in (2, 4, 8, 16, 32)]
    models = mo.fit(pd.DataFrame(rows), ["p", "gpus", "machine"], "time", modeler="pmnf")
    pd.testing.assert_frame_equal(models.predict(p=64), models.predict(p=64, gpus=0, machine="a"))
    with pytest.raises(mo.MeasurementError, match="no value for parameter p;"):
        models.predict(gpus=0)


def test_models_are_found_by_name_and_hashed(models: mo.Models) -> None:
    assert "main" in models and ("main", "time") in models and models["main"] in models
    assert "mian" not in models and ("main", "bytes") not in models
    assert hash(models) == hash(mo.Models(models.measurements, models.models))
    assert len({models["main"], models["main"], models["main->f"]}) == 2


def test_a_table_without_call_paths() -> None:
    frame = table()
    models = mo.fit(frame[frame["region"] == "main"], parameters=["p", "n"], response="time")
    assert [model.callpath for model in models] == ["<root>"]


def test_a_column_callpath_is_used_unasked(models: mo.Models) -> None:
    frame = table().rename(columns={"region": "callpath"})
    assert len(mo.fit(frame, parameters=["p", "n"], response="time")) == 2


def changed(column: str, value: Any, row: int = 3) -> pd.DataFrame:
    frame = table()
    frame[column] = frame[column].astype(object)
    frame.loc[row, column] = value
    return frame


@pytest.mark.parametrize(
    ("frame", "parameters", "response", "mistake"),
    [
        (table(), ["p", "m"], "time", "no column 'm'"),
        (table(), ["p", "n"], "tme", "no column 'tme': did you mean 'time'?"),
        (table(), None, "time", "which columns are parameters.*region"),
        (table(), ["p", "n"], None, "which column was measured"),
        (table(), ["p", "p"], "time", "named twice"),
        (table(), ["p", "time"], "time", "cannot be a parameter"),
        (table().iloc[:0], ["p", "n"], "time", "the table is empty: it needs at least one row"),
        (changed("time", None), ["p", "n"], "time", "row 3: has no value; remove these rows: .*dropna"),
        (changed("n", None), ["p", "n"], "time", "'n', row 3: has no value"),
        (changed("region", None), ["p", "n"], "time", "'region', row 3: has no value"),
        (changed("time", "fast"), ["p", "n"], "time", "'fast' in row 3.*remove these rows"),
        (changed("time", np.inf), ["p", "n"], "time", "row 3: is infinite"),
        (changed("n", np.inf), ["p", "n"], "time", "row 3: is not finite, or too large"),
        (changed("n", "ten"), ["p", "n"], "time", "'n' has numbers and texts"),
        (pd.concat([table(), table()["p"]], axis=1), ["p", "n"], "time", "two columns have the same name: p"),
        ([{"p": 1, "time": 2}], ["p"], "time", "expected a pandas DataFrame, not list"),
    ],
)
def test_tables_that_cannot_be_used(
    frame: pd.DataFrame, parameters: list[str] | None, response: str | None, mistake: str
) -> None:
    with pytest.raises(mo.MeasurementError, match=mistake):
        mo.fit(frame, parameters=parameters, response=response, callpath="region" if len(frame) > 1 else None)


def test_a_row_without_any_of_several_metrics() -> None:
    frame = table(bytes=1.0)
    frame.loc[3, ["time", "bytes"]] = np.nan
    with pytest.raises(mo.MeasurementError, match="row 3 has no value in any of the columns time, bytes"):
        mo.fit(frame, parameters=["p", "n"], response=["time", "bytes"], callpath="region")


@pytest.mark.parametrize(
    ("point", "mistake"),
    [
        ({}, "no point was given"),
        ({"p": 4}, "no value for parameter n"),
        ({"p": 4, "n": 5, "s": 1}, "unknown parameter 's'"),
        ({"p": -4, "n": 5}, "p=-4: .* greater than 0"),
        ({"p": 4, "n": 0}, "n=0: "),
        ({"p": "four", "n": 5}, "p=four: p is a number"),
        ({"p": 4, "n": float("nan")}, "n=nan: "),
    ],
)
def test_points_at_which_nothing_can_be_predicted(
    models: mo.Models, point: dict[str, object], mistake: str
) -> None:
    with pytest.raises(mo.MeasurementError, match=mistake):
        models.predict(**point)


def test_a_table_of_points_with_mistakes(models: mo.Models) -> None:
    with pytest.raises(mo.MeasurementError, match="no column 'n'"):
        models.predict(pd.DataFrame({"p": [1]}))
    with pytest.raises(mo.MeasurementError, match="not both"):
        models.predict(pd.DataFrame({"p": [1], "n": [1]}), p=3)
    with pytest.raises(mo.MeasurementError, match="'n', row 1: has no value"):
        models.predict(pd.DataFrame({"p": [1, 2], "n": [1, None]}))


def test_names_without_a_model(models: mo.Models) -> None:
    with pytest.raises(KeyError, match="no model of 'mian': did you mean 'main'"):
        models["mian"]
    with pytest.raises(KeyError, match="no model of 'f': did you mean 'main->f'\\?"):
        models["f"]
    with pytest.raises(mo.MeasurementError):
        models["main", "bytes"]


def test_modelers_and_their_options() -> None:
    with pytest.raises(mo.CampaignError, match="unknown model 'pnmf'"):
        mo.fit(table(), ["p", "n"], "time", "region", modeler="pnmf")
    with pytest.raises(mo.CampaignError, match="modeler 'auto'"):
        mo.fit(table(), ["p", "n"], "time", "region", colour="blue")


def test_too_little_to_model() -> None:
    frame = table()
    frame["time"] = -1.0
    with pytest.raises(mo.ModelError):
        mo.fit(frame, ["p", "n"], "time", "region")


def test_a_plot_of_speedup_names_the_call_path(models: mo.Models) -> None:
    study = models.speedup("p")
    assert study.plot("main->f").get_title() == "main->f"
    assert repr(study).startswith("2 models; ")


def test_metrics_that_are_not_asked_for_are_no_reason_to_warn() -> None:
    metrics = {"time [ms]": 3.0, "wait [us]": 5.0, "io": 2.0}
    long = pd.DataFrame(
        [
            {"p": p, "callpath": "main", "metric": metric, "value": value * p}
            for p in (1, 2, 4, 8, 16)
            for metric, value in metrics.items()
        ]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mo.fit(long, response="io")
    for response, converted in (("time", r"time \[ms\]"), (["wait", "io"], r"wait \[us\]")):
        with pytest.warns(UserWarning, match=f"^the table: values of {converted} are in seconds") as warned:
            mo.fit(long, response=response)
        assert len(warned) == 1
    with pytest.warns(UserWarning, match=r"values of time \[ms\], wait \[us\] are in seconds"):
        mo.fit(long)
