"""Tables that are unusual but possible: models of them, or an error that says what to do."""

import datetime
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import orchestrator as mo
from orchestrator import expressions
from orchestrator.errors import OrchestratorError

NO_PROCESSES = pd.DataFrame({"p": [0, 1, 2, 4, 8, 16] * 2, "time": [3.0, 2.0, 1.5, 1.2, 1.1, 1.0] * 2})
UNCHECKED: Any = mo  # calls that no type checker would pass
FALLING = pd.DataFrame({"p": [1, 2, 4, 8], "time": [4.0, 2.0, 1.0, 0.6]})


@pytest.mark.parametrize("modeler", ["auto", "formulas", "curves", "pmnf"])
def test_a_number_of_processes_may_be_zero(modeler: str) -> None:
    (found,) = mo.fit(NO_PROCESSES, "p", "time", modeler=modeler).predict(p=32).to_dict("records")
    assert 0 < found["low"] <= found["value"] <= found["high"] < np.inf


def test_speedup_needs_processes_above_zero() -> None:
    with pytest.raises(OrchestratorError, match=r"p counts processes and has the value 0: .* leave"):
        mo.fit(NO_PROCESSES, "p", "time", modeler="pmnf").speedup()


BELOW_ZERO = pd.DataFrame(
    [
        (t, x, (10 + abs(t) / 10) * x * (1 + k / 100))
        for t in (-40, -20, 0, 20, 40)
        for x in (1, 2, 4, 8)
        for k in (0, 1)
    ],
    columns=["t", "x", "time"],
)


def test_a_parameter_below_zero_is_predicted_where_it_was_measured() -> None:
    models = mo.fit(BELOW_ZERO, ["t", "x"], "time")
    assert models.predict(BELOW_ZERO)["value"].to_numpy() == pytest.approx(BELOW_ZERO["time"], rel=0.05)
    with pytest.raises(OrchestratorError, match=r"x=-1: .* greater than 0"):
        models.predict(t=-30, x=-1)


@pytest.mark.parametrize("modeler", ["auto", "cpr", "curves", "learned", "splines"])
def test_no_interval_is_without_a_number_or_a_word(modeler: str) -> None:
    models = mo.fit(BELOW_ZERO, ["t", "x"], "time", modeler=modeler)
    with pytest.warns(UserWarning, match=r"<root> time at P\(t=1e\+300, x=1e\+300\): .* no finite numbers"):
        found = models.predict(t=1e300, x=1e300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        intervals = models.intervals([50, 99], t=1e300, x=1e300)
    if found["value"].notna().all():
        assert np.isinf(found["high"]).all()
        assert not intervals[["low", "high"]].isna().any(axis=None)


def test_predictions_that_are_numbers_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mo.fit(FALLING, "p", "time").predict(p=64)


@pytest.mark.parametrize("modeler", ["auto", "pmnf", "swc"])
def test_categories_with_few_points_far_apart_have_models(modeler: str) -> None:
    """A variance that rounding made negative made a matrix singular here."""
    table = pd.DataFrame(
        {
            "p": [2, 4, 1, 0, 1],
            "q": [4, 0, 3, 4, 0],
            "r": list("aacaa"),
            "time": [3.21e-8, 1.275e-7, 6.079e-9, 4.764e-6, 4.052e-6],
        }
    )
    assert len(mo.fit(table, ["p", "q", "r"], "time", modeler=modeler)) == 2


def test_a_narrow_range_of_large_numbers_has_an_expression() -> None:
    """Exponents are so large there that often no number is the coefficient of a power law."""
    year = np.array([2020, 2021, 2022, 2023, 2024, 2025] * 2)
    time = (100 / (year - 2019) + 2) * np.exp(np.random.default_rng(1).normal(0, 0.03, 12))
    models = mo.fit(pd.DataFrame({"year": year, "time": time}), "year", "time")
    last = float(models.predict(year=2025)["value"][0])
    expression = expressions.parse(models["<root>"].expression, ["year"])
    assert expression.number({"year": 2025}) == pytest.approx(last, rel=0.3)
    steep = np.arange(100_000, 100_051, 10)
    models = mo.fit(pd.DataFrame({"n": steep, "time": np.exp((steep - 1e5) / 10)}), "n", "time")
    assert float(models["<root>"].expression) > 1


def test_a_note_about_a_formula_that_is_not_believed_is_not_told() -> None:
    x = np.array([0, 1, 2, 4, 8, 16] * 2)
    (model,) = mo.fit(pd.DataFrame({"x": x, "time": 100 / (x + 1) + 2}), "x", "time")
    assert model.smape < 5 and not any("scatter by" in note for note in model.notes)


@pytest.mark.parametrize("modeler", ["cpr", "splines", "learned"])
def test_the_order_of_rows_does_not_matter_with_categories(modeler: str) -> None:
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"p": rng.integers(1, 40, 90), "kind": rng.choice(list("dbac"), 90)})
    table["time"] = (1 + table["p"] ** 0.7) * table["kind"].map({"a": 1.0, "b": 2.0, "c": 0.4, "d": 3.0})
    table = table.groupby(["p", "kind"], as_index=False).mean()
    found = [
        mo.fit(rows, ["p", "kind"], "time", modeler=modeler).predict(p=30, kind="b")
        for rows in (table, table[::-1])
    ]
    one, other = (rows[["value", "low", "high"]].to_numpy(float) for rows in found)
    np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda models: models.intervals(90, p=3), "90 are no levels of intervals"),
        (lambda models: models.intervals(["x"], p=3), "are no levels of intervals"),
        (lambda models: models.intervals([90], None, "2", p=3), "runs is '2'"),
        (lambda _: suggested(seed=-1), "seed=-1: give a whole number from 0"),
        (lambda _: suggested(batch_size=1.5), "batch_size=1.5: give a whole number from 1"),
        (lambda _: suggested(values={"p": 5}), "p=5 is no list of values"),
        (lambda _: suggested(values={"p": np.array(5)}), "is no list of values"),
        (lambda _: suggested(values=[1]), "values is of type list: give a dictionary such as"),
        (lambda _: suggested(options="x"), "options is of type str: give a dictionary"),
        (lambda _: suggested(constraints=3), "constraints: 3 is no text; give expressions such as"),
        (lambda _: suggested(constraints=[len]), "constraints: <built-in function len> is no text"),
        (lambda _: suggested(target=FALLING), "target is of type DataFrame: give a dictionary"),
        (lambda _: suggested(strategy=None), "strategy None is no name: give one of active"),
        (lambda _: suggested(processes=None), "processes=None: give a number, or an expression"),
        (lambda _: suggested(budget=10**400), "budget: "),
        (
            lambda _: UNCHECKED.fit(FALLING, "p", "time", modeler=None),
            "model None is no name: give one of auto",
        ),
        (lambda _: UNCHECKED.fit(FALLING, "p", "time", modeler=3), "model 3 is no name"),
        (
            lambda _: UNCHECKED.fit(FALLING, "p", "time", priors=[FALLING]),
            "priors is of type list: give a dict",
        ),
        (lambda _: UNCHECKED.fit(FALLING, "p", "time", priors=FALLING), "priors is of type DataFrame"),
        (lambda models: models["a", "b", "c"], r"no model of \('a', 'b', 'c'\): known: <root>"),
        (lambda models: models.speedup(3), "processes: 3 is no name of a parameter; name some of p"),
        (lambda models: models.speedup(None), "processes: None is no name of a parameter"),
        (lambda models: models.speedup("p").limit("a"), "efficiency 'a' is no share"),
        (lambda models: models.speedup("p").limit(efficiency=0.5), "efficiency is the first argument"),
        (lambda models: models.predict(points=FALLING), r"points is the first argument of predict\(frame\)"),
        (lambda models: models["<root>"].intervals([90], points=FALLING), "points is the first argument"),
        (lambda models: models.intervals([90], runs=5, p=3), "runs is the third argument of intervals"),
        (lambda models: models.intervals("90", p=3), "'90' are no levels of intervals"),
        (lambda _: UNCHECKED.read(["a.csv"]), r"read takes paths, not list: .*read\(\*paths\)"),
        (lambda _: UNCHECKED.read(3), "read takes paths, not int"),
        (lambda _: UNCHECKED.load(3), "directory is of type int: give a path"),
        (lambda _: UNCHECKED.run(3), "campaign is of type int: give a path"),
        (
            lambda _: UNCHECKED.simulate("generic", overrides=["a"]),
            "overrides is of type list: give a dictionary",
        ),
        (
            lambda _: UNCHECKED.simulate("generic", overrides={"stop.budget": len}),
            "is nothing that a campaign file",
        ),
        (
            lambda _: UNCHECKED.simulate("generic", truth={"main": len}),
            "truth: main is <built-in function len>: .* give texts and numbers",
        ),
        (lambda _: UNCHECKED.simulate("generic", noise=len), "noise is <built-in function len>"),
        (lambda _: UNCHECKED.simulate("generic", truth="n"), "truth is of type str: give a dictionary"),
        (
            lambda _: UNCHECKED.simulate("generic", dataset=FALLING),
            "dataset is of type DataFrame: give a path",
        ),
    ],
)
def test_wrong_arguments_are_told(call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(OrchestratorError, match=message):
        call(mo.fit(FALLING, "p", "time", modeler="pmnf"))


def test_one_constraint_is_a_text() -> None:
    assert list(suggested(values={"p": [16]}, constraints="p < 40")["p"]) == [16]


def test_lists_and_numbers_of_numpy_and_pandas_are_as_good() -> None:
    wanted = suggested(values={"p": [16]})
    for values in (np.array([16]), pd.Series([16]), pd.Index([16]), range(16, 17)):
        assert suggested(values={"p": values}, budget=np.int64(1), constraints=None).equals(wanted)


def suggested(**more: Any) -> pd.DataFrame:
    asked: dict[str, Any] = {"target": {"p": 64}, "budget": 1, "modeler": "pmnf", **more}
    return mo.suggest(FALLING, "p", "time", **asked)


def test_one_name_of_a_column_is_a_text(tmp_path: Path) -> None:
    FALLING.assign(other=1).to_csv(path := tmp_path / "a.csv", index=False)
    read = mo.read(path, parameters="p", responses="time", categorical="p")
    assert list(read["metric"].unique()) == ["time"] and str(read["p"].dtype) == "category"
    assert mo.read(path, parameters="p", metrics="time")["value"].tolist() == FALLING["time"].tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (0, "time"),
            "parameters: 0 is no text; column names must be text: frame.columns = frame.columns.map",
        ),
        (([0], "time"), "parameters: 0 is no text"),
        ((["0"], "time"), "column 0 has a name that is a number or the like: column names must be text"),
        (("time", 0), "response: 0 is no text"),
        (("time", [0]), "response: 0 is no text"),
        (("p", "time", 0), "callpath=0: give the name of one column"),
        (("p", "time", ["r"]), r"callpath=\['r'\]: give the name of one column"),
        (({"time", "q"}, "r"), "parameters is a set, which has no order"),
    ],
)
def test_names_of_columns_are_text(arguments: tuple[Any, ...], message: str) -> None:
    """Expressions had no parameter whose name was a number."""
    with pytest.raises(mo.MeasurementError, match=message):
        mo.fit(FALLING.rename(columns={"p": 0}), *arguments)


def test_other_columns_may_have_any_name() -> None:
    (model,) = mo.fit(FALLING.assign(more=1).rename(columns={"more": 0}), "p", "time", modeler="pmnf")
    assert "p" in model.expression


def test_tables_with_levels_of_columns_or_with_parameters_in_the_index() -> None:
    levels = FALLING.copy()
    levels.columns = pd.MultiIndex.from_tuples([("a", "p"), ("b", "time")])
    with pytest.raises(mo.MeasurementError, match="columns have 2 levels of names"):
        mo.fit(levels, [("a", "p")], [("b", "time")], modeler="pmnf")  # type: ignore[list-item]
    with pytest.raises(mo.MeasurementError, match=r"no column 'p', it is in the index: .*reset_index\(\)"):
        mo.fit(FALLING.set_index("p"), "p", "time", modeler="pmnf")


SECONDS = r"frame\['time'\].dt.total_seconds\(\)"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pd.to_timedelta(FALLING["time"], unit="s"), f"is a duration; .* = {SECONDS}$"),
        ([datetime.timedelta(seconds=x) for x in FALLING["time"]], "is a duration; make it seconds"),
        (pd.to_datetime(FALLING["time"], unit="s"), "is a time stamp and no duration"),
        (FALLING["time"] + 1j, "is not a real number; convert it to float"),
        (FALLING["time"] > 1, r"is a truth value; .*astype\(int\)"),
        (FALLING["time"].astype(str), "is not a number; convert it: .*to_numeric"),
        ([f"{x} ms" for x in range(4)], r"write 0, and the unit in the name of the column: time \[ms\]$"),
        (["1", "2", "failed", "4"], "'1' in row 0, which is not a number; convert it"),
        ([1.0, 2.0, "failed", 4.0], "'failed' in row 2, which is not a number; remove these rows$"),
        ([f"{x},5" for x in range(4)], r"if its comma is a decimal point, .*\.str\.replace\(',', '\.'\)"),
        (
            [f"{x},500" for x in range(1, 5)],
            r"decimal point, .*'\.'\).*; if its commas separate thousands, .*''\)",
        ),
        ([f"{x},500,200" for x in range(1, 5)], r"number; if its commas separate thousands, .*\(',', ''\)"),
        ([10**400] * 4, "row 0, 1, 2, 3: is infinite"),
    ],
)
def test_what_is_no_number_is_no_response(values: Any, message: str) -> None:
    """`pandas.to_numeric` makes nanoseconds of durations."""
    with pytest.raises(mo.MeasurementError, match=message):
        mo.fit(FALLING.assign(time=values), "p", "time", modeler="pmnf")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pd.to_timedelta(FALLING["p"], unit="s"), r"is a duration; .*total_seconds.*astype\(str\)"),
        (pd.to_datetime(FALLING["p"], unit="s"), "is a time stamp"),
        (FALLING["p"] + 1j, "is not a real number"),
        ([10**400] * 4, "row 0, 1, 2, 3: is not finite, or too large"),
    ],
)
def test_what_is_no_number_is_no_category_by_itself(values: Any, message: str) -> None:
    """Each value had become a category with a constant model of its own."""
    with pytest.raises(mo.MeasurementError, match=message):
        mo.fit(FALLING.assign(p=values), "p", "time", modeler="pmnf")


def test_decimals_are_numbers() -> None:
    plain = mo.fit(FALLING, "p", "time", modeler="pmnf")
    table = FALLING.map(lambda value: Decimal(str(value)))
    assert mo.fit(table, "p", "time", modeler="pmnf")["<root>"].expression == plain["<root>"].expression
    found = [plain.predict(p=value)["value"][0] for value in (16, Decimal(16), np.array(16))]
    assert found[0] == found[1] == found[2]


def test_a_category_may_be_made_of_anything() -> None:
    table = pd.concat([FALLING.assign(when=datetime.timedelta(hours=k)) for k in (1, 2)])
    table["when"] = table["when"].astype("category")
    models = mo.fit(table, ["p", "when"], "time", modeler="pmnf")
    assert len(models) == 2
    assert len(models.predict(p=16, when=pd.Timedelta(hours=2))) == 1


def test_a_number_that_is_too_large_is_told() -> None:
    models = mo.fit(FALLING, "p", "time", modeler="pmnf")
    for exponent in (400, 5000):
        with pytest.raises(mo.MeasurementError, match=rf"p=10\*\*{exponent}: the largest number"):
            models.predict(p=10**exponent)


@pytest.mark.parametrize("response", ["time", "time [ms]"])
def test_times_are_in_seconds_whatever_their_column_says(response: str) -> None:
    table = pd.DataFrame({"p": FALLING["p"], "time [ms]": 1000 * FALLING["time"]})
    with pytest.warns(UserWarning, match=r"values of time \[ms\] are in seconds from here on") as warned:
        models = mo.fit(table, "p", response, modeler="pmnf")
    assert warned[0].filename == __file__
    wanted = mo.fit(FALLING, "p", "time", modeler="pmnf")
    assert models["<root>", "time"].expression == wanted["<root>", "time"].expression
    assert models["<root>", "time [ms]"].metric == "time"


def test_two_tables_with_other_units_are_put_together() -> None:
    seconds = FALLING.rename(columns={"time": "value"}).assign(metric="time", version="A")
    milliseconds = seconds.assign(metric="time [ms]", value=1000 * seconds["value"], version="B")
    with pytest.warns(UserWarning, match="in seconds"):
        models = mo.fit(pd.concat([seconds, milliseconds], ignore_index=True), modeler="pmnf")
    assert len({model.expression for model in models}) == 1 and len(models) == 2


def test_a_response_is_a_metric_of_a_long_table() -> None:
    parts = [FALLING.rename(columns={"time": "value"}).assign(metric=name) for name in ("time", "io")]
    table = pd.concat(parts, ignore_index=True)
    (model,) = mo.fit(table, response="io", modeler="pmnf")
    assert model.metric == "io"
    with pytest.raises(mo.MeasurementError, match="no measurements of oi; there are time, io"):
        mo.fit(table, response="oi")


def test_dates_and_numbers_of_repetitions_are_no_parameters_of_a_long_table() -> None:
    when = pd.date_range("2026-11-27", periods=4)
    long = FALLING.rename(columns={"time": "value"}).assign(metric="time", rep=1)
    for dates in (when, when.astype(str)):
        with pytest.warns(UserWarning, match=r"left out: day, which holds dates; parameters=\['p', 'day'\]"):
            models = mo.fit(long.assign(day=dates), modeler="pmnf")
        assert models.measurements.parameters == ("p",)


def test_texts_that_are_numbers_are_noted() -> None:
    table = pd.concat([FALLING.assign(n=n) for n in ("1", "2")], ignore_index=True)
    with pytest.warns(UserWarning, match=r"frame\['n'\] = pandas.to_numeric\(frame\['n'\]\) makes them num"):
        assert len(mo.fit(table, ["p", "n"], "time", modeler="pmnf")) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mo.fit(table.astype({"n": "category"}), ["p", "n"], "time", modeler="pmnf")


def test_a_column_that_looks_like_a_parameter_is_not_left_out_without_a_word() -> None:
    table = pd.DataFrame(
        [
            {"p": p, "steps": steps, "phase": phase, "trial": k, "time": p * steps * (1 + k / 100)}
            for p in (1, 2, 4)
            for steps in (1, 2, 4)
            for phase in ("solve", "norm")
            for k in (0, 1)
        ]
    )
    with pytest.warns(UserWarning, match=r"steps was left out, .*parameters=\[\.\.\., 'steps'\] says so$"):
        mo.fit(table, "p", "time", "phase", modeler="pmnf")
    with pytest.warns(UserWarning, match=r"phase was left out, .*region, callpath='phase'$"):
        mo.fit(table, ["p", "steps"], "time", modeler="pmnf")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mo.fit(table, ["p", "steps"], "time", "phase", modeler="pmnf")


def test_messages_about_files_name_the_arguments_of_python(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("p,n,region,time\n" + "".join(f"{p},1,main,{p}\n" for p in (1, 2, 4)))
    with pytest.raises(
        mo.ReadError, match=r"Name them \(parameters=\['p', 's'\]\), .*\(responses=\['time'\]\)"
    ):
        mo.read(path)
    path.write_text("p,s,callpath,time\n1,100k,main,1\n2,200k,main,2\n")
    with pytest.warns(UserWarning, match=r"categorical=\['s'\] says so"):
        mo.read(path)


def test_what_reading_had_to_assume_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("p,time\n1,2\n2,nan\n")
    with pytest.warns(UserWarning, match="left out: 1 value of runs that failed"):
        assert len(mo.read(path, parameters="p", responses="time")) == 1


def test_texts_that_look_like_numbers_are_noted() -> None:
    frame = FALLING.assign(p=["1 000", "2 000", "4 000", "8 000"])
    with pytest.warns(UserWarning, match=r"with names such as '1 000'; if they are numbers, write 1000$"):
        mo.fit(frame, "p", "time", modeler="pmnf")


def test_categories_with_names_like_numbers_survive_parquet(tmp_path: Path) -> None:
    table = FALLING.rename(columns={"time": "value"}).assign(metric="time", p=list("1248"))
    table.astype({"p": "category"}).to_parquet(tmp_path / "a.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mo.read(tmp_path / "a.parquet")["p"].dtype == "category"
    table.to_parquet(tmp_path / "b.parquet")
    with pytest.warns(UserWarning, match="p has numbers that are written as texts"):
        mo.read(tmp_path / "b.parquet")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda models: models.predict(p=[2, 4]), r"p=\[2, 4\]: a point has one value .* give a table"),
        (lambda models: models.predict(p=FALLING["p"]), "a point has one value"),
        (lambda models: models.predict(pd.DataFrame({"p": ["2"]})), "p='2': p is a number"),
        (lambda _: UNCHECKED.fit(FALLING.set_index("p")["time"]), r"not Series; series\.reset_index\(\)"),
    ],
)
def test_several_points_and_series_become_tables(call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(mo.MeasurementError, match=message):
        call(mo.fit(FALLING, "p", "time", modeler="pmnf"))


def test_a_file_is_no_campaign_directory(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("p,time\n1,2\n")
    with pytest.raises(mo.JournalError, match=r"a\.csv holds no campaign: it is a file, no directory"):
        mo.load(tmp_path / "a.csv")
