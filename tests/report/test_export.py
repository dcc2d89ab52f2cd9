from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.errors import OrchestratorError
from orchestrator.readers.load import load
from orchestrator.report.export import FORMATS, export
from orchestrator.types import Measurement, Measurements, Point, Value

A, B = Point.of(p=8, layout="DGZ"), Point.of(p=27, layout="ZGD")
DEMO = Measurements(
    ("p", "layout"),
    (
        Measurement("main->f(int, int)", "time", {A: (1.5, 0.1 + 0.2), B: (3.0,)}),
        Measurement("main", "bytes_sent", {B: (1e300,)}),
    ),
)
SUFFIX = {"extrap-jsonl": "jsonl", "csv": "csv", "parquet": "parquet"}

names = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="#"), min_size=1
)
labels = names.filter(lambda text: not text[:1].isdecimal() and text[:1] not in "+-.")
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def measurements(draw: st.DrawFn) -> Measurements:
    """Any measurements: gaps, unequal repetitions, categories."""
    taken = {"callpath", "metric", "value", "repetition", "rep"}
    parameters = draw(
        st.lists(names.filter(lambda name: name not in taken), min_size=1, max_size=3, unique=True)
    )
    kinds: list[st.SearchStrategy[Value]] = [
        draw(st.sampled_from([labels, st.integers(-(2**53), 2**53), finite])) for _ in parameters
    ]
    points = [
        Point(tuple(zip(parameters, values, strict=True)))
        for values in draw(st.lists(st.tuples(*kinds), min_size=1, max_size=4, unique=True))
    ]
    keys = draw(st.lists(st.tuples(names, names), min_size=1, max_size=3, unique=True))
    values = st.lists(finite, min_size=1, max_size=3).map(tuple)
    some = st.lists(st.sampled_from(points), min_size=1, unique=True)
    items = tuple(
        Measurement(callpath, metric, {point: draw(values) for point in draw(some)})
        for callpath, metric in keys
    )
    return Measurements(tuple(parameters), items)


@pytest.fixture(params=FORMATS)
def file_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def reread(folder: Path, content: bytes, file_format: str) -> Measurements:
    path = folder / f"export.{SUFFIX[file_format]}"
    path.write_bytes(content)
    return load([path])


def test_an_export_is_read_back_unchanged(tmp_path: Path, file_format: str) -> None:
    assert reread(tmp_path, export(DEMO, file_format), file_format) == DEMO


@given(data=measurements())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_every_export_is_lossless(tmp_path: Path, file_format: str, data: Measurements) -> None:
    assert reread(tmp_path, export(data, file_format), file_format) == data


def test_json_lines_are_those_of_extrap() -> None:
    first, *_ = export(DEMO, "extrap-jsonl").decode().splitlines()
    assert json.loads(first) == {
        "params": {"p": 8, "layout": "DGZ"},
        "callpath": "main->f(int, int)",
        "metric": "time",
        "value": [1.5, 0.1 + 0.2],
    }


def test_csv_has_a_row_per_repetition() -> None:
    assert export(DEMO, "csv").decode().splitlines()[:3] == [
        "p,layout,callpath,metric,repetition,value",
        '8,DGZ,"main->f(int, int)",time,1,1.5',
        '8,DGZ,"main->f(int, int)",time,2,0.30000000000000004',
    ]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused(file_format: str, value: float) -> None:
    broken = Measurements(("p", "layout"), (Measurement("main", "time", {A: (1.0, value)}),))
    with pytest.raises(OrchestratorError, match=rf"{value} \(time at main, P\(p=8, layout=DGZ\)\)"):
        export(broken, file_format)


def test_nothing_measured_is_refused(file_format: str) -> None:
    with pytest.raises(OrchestratorError, match="nothing to export"):
        export(Measurements(("p",), ()), file_format)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(OrchestratorError, match="'xls': known are extrap-jsonl, csv, parquet"):
        export(DEMO, "xls")


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_parameter_named_like_a_column_is_refused(file_format: str) -> None:
    data = Measurements(("value",), (Measurement("main", "time", {Point.of(value=1): (1.0,)}),))
    with pytest.raises(OrchestratorError, match="parameter value is named like a column"):
        export(data, file_format)
