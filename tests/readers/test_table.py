from __future__ import annotations

import io
from collections.abc import Sequence

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.api.frames import to_measurements
from orchestrator.errors import ReadError
from orchestrator.readers.reading import Reading
from orchestrator.readers.table import read_csv, read_parquet
from orchestrator.types import Measurement, Measurements, Point

A, B = Point.of(p=1, s=10), Point.of(p=2, s=10)


def read(text: str, parameters: Sequence[str] | None = None, responses: Sequence[str] = ()) -> Measurements:
    return read_csv(text, "in.csv", Reading(parameters=parameters, responses=responses))


def test_a_long_table_has_a_row_per_value() -> None:
    got = read("p,s,callpath,metric,value\n1,10,main,time,1.5\n1,10,main,time,2\n\n2,10,main,visits,3\n")
    assert got == Measurements(
        ("p", "s"),
        (Measurement("main", "time", {A: (1.5, 2.0)}), Measurement("main", "visits", {B: (3.0,)})),
    )


def test_call_path_metric_and_repetition_are_optional_in_a_long_table() -> None:
    got = read("p,s,repetition,value\n1,10,1,1.5\n1,10,2,2\n")
    assert got == Measurements(("p", "s"), (Measurement("<root>", "<default>", {A: (1.5, 2.0)}),))


def test_in_a_wide_table_the_call_path_parts_parameters_from_metrics() -> None:
    got = read("p,s,rep,callpath,time,visits\n1,10,1,main,1.5,3\n1,10,2,main,2,3\n2,10,1,main,,4\n")
    assert got == Measurements(
        ("p", "s"),
        (
            Measurement("main", "time", {A: (1.5, 2.0)}),
            Measurement("main", "visits", {A: (3.0, 3.0), B: (4.0,)}),
        ),
    )


def test_tables_as_spreadsheets_write_them() -> None:
    """Decimal commas beside semicolons, empty columns at the end, headings with capitals and units."""
    text = "p;Repetition;Callpath;time [ms];;\n1,5;1;f(a, b);1500,5;;\n1,5;2;f(a, b);1000;;\n"
    got = read(text)
    assert got.items == (Measurement("f(a, b)", "time", {Point.of(p=1.5): (1.5005, 1.0)}),)
    assert got.notes == (
        "in.csv: commas in numbers are taken for decimal points",
        "in.csv: values of time [ms] are in seconds from here on",
    )


def test_blanks_around_fields_do_not_count() -> None:
    got = read('p, callpath, time [ms]\n1, "f(a, b)", 1500\n1, main ,1000\n1,main, 2000\n')
    assert got.items == (
        Measurement("f(a, b)", "time", {Point.of(p=1): (1.5,)}),
        Measurement("main", "time", {Point.of(p=1): (1.0, 2.0)}),
    )


@pytest.mark.parametrize("sign", [";", "\t"])
def test_decimal_commas_do_not_separate_fields_without_a_header(sign: str) -> None:
    text = f"0,5{sign}4{sign}1,25\n1,5{sign}8{sign}2,25\n"
    got = read_csv(text, "in.csv", Reading(names=["x", "p", "time"], responses=["time"]))
    assert got.items == (
        Measurement("<root>", "time", {Point.of(x=0.5, p=4): (1.25,), Point.of(x=1.5, p=8): (2.25,)}),
    )


@pytest.mark.parametrize(
    ("response", "name", "value"),
    [
        ("solve", "solve", 2.5e-6),
        ("solve (us)", "solve", 2.5e-6),
        ("solve (us)=x", "x", 2.5e-6),
        ("1", "solve", 2.5e-6),
        ("rate [1/s]", "rate [1/s]", 3.0),
        ("level (max)", "level (max)", 4.0),
        ("io [s]", "io", 5.0),
        ("setup [hours]", "setup", 21600.0),
        ("copy (min)", "copy (min)", 7.0),
    ],
)
def test_times_are_in_seconds_whatever_their_heading_says(response: str, name: str, value: float) -> None:
    text = "p,solve (us),rate [1/s],level (max),io [s],setup [hours],copy (min)\n1,2.5,3,4,5,6,7\n"
    got = read(text, ["p"], [response])
    [item] = got.items
    assert item.metric == name
    assert item.values[Point.of(p=1)] == pytest.approx((value,))


@pytest.mark.parametrize(
    ("text", "options", "parameters"),
    [
        ("date,p,time\n2026-11-27,1,2\n2026-11-28,1,3\n", {"responses": ["time"]}, ("p",)),
        ("p,when,callpath,time\n1,27.11.2026 8:05,main,2\n1,28.11.2026 8:06,main,3\n", {}, ("p",)),
        ("p,when,metric,value\n1,2026-11-27T08:05:00Z,time,2\n1,2026-11-28 08:06,time,3\n", {}, ("p",)),
        ("p,when,time\n1,11/27/2026,2\n1,11/28/2026,3\n", {"parameters": ["p"]}, ("p",)),
        ("p,when,time\n1,v2026.11,2\n1,v2026-11-28,3\n", {"responses": ["time"]}, ("p", "when")),
        ("p,d,time\n1,2026-11-27,2\n", {"parameters": ["p", "d"], "responses": ["time"]}, ("p", "d")),
    ],
)
def test_dates_are_no_parameters_unless_the_user_says_so(
    text: str, options: dict[str, list[str]], parameters: tuple[str, ...]
) -> None:
    got = read(text, **options)
    assert got.parameters == parameters
    assert got.metrics() == ("time",)
    said = "which holds dates; --parameters makes them parameters" in "".join(got.notes)
    assert said == ("d" not in parameters and "when" not in parameters and "parameters" not in options)
    if parameters == ("p",):
        assert list(got.items[0].values.values()) == [(2.0, 3.0)], "repetitions, not points of their own"


def test_a_parameter_may_be_called_like_a_repetition_if_the_user_says_so() -> None:
    assert read("Rep,time\n1,2\n", ["Rep"]).parameters == ("Rep",)


def test_a_column_says_in_what_the_values_of_a_long_table_are() -> None:
    text = "p,metric,Unit,value\n1,time,ms,1500\n2,time,min,2\n1,energy,J,3\n1,calls,,4\n"
    expected = Measurements(
        ("p",),
        (
            Measurement("<root>", "time", {Point.of(p=1): (1.5,), Point.of(p=2): (120.0,)}),
            Measurement("<root>", "energy [J]", {Point.of(p=1): (3.0,)}),
            Measurement("<root>", "calls", {Point.of(p=1): (4.0,)}),
        ),
        notes=("in.csv: values of time [ms], time [minutes] are in seconds from here on",),
    )
    assert read(text) == read(text, ["p"]) == expected
    assert read(text, responses=["time"]).items == expected.items[:1]
    frame = pd.DataFrame([row.split(",") for row in text.split()[1:]], columns=text.split()[0].split(","))
    frame[["p", "value"]] = frame[["p", "value"]].apply(pd.to_numeric)
    frame["Unit"] = frame["Unit"].replace("", None).astype("category")
    stream = io.BytesIO()
    frame.to_parquet(stream)
    assert read_parquet(stream.getvalue(), "in.csv") == expected
    assert to_measurements(frame, None, None, None).items == expected.items


def test_a_parameter_may_be_called_unit() -> None:
    assert read("unit,metric,value\ngpu,time,1\ncpu,time,2\n").parameters == ("unit",)
    assert read("p,unit,metric,value\n1,ms,time,1\n", ["p", "unit"]).items[0].metric == "time"


def test_units_of_time_are_not_left_out_without_a_word() -> None:
    text = "p,real_time,time_unit\n1,15,ns\n2,1,us\n"
    (note,) = read(text, ["p"], ["real_time"]).notes
    assert note.startswith("in.csv: time_unit was left out, though it holds units of time (ns, us): ")
    assert read(text.replace("ns", "s").replace("us", "s"), ["p"], ["real_time"]).notes == ()
    frame = pd.read_csv(io.StringIO(text))
    assert to_measurements(frame, "p", "real_time", None).notes == (note.removeprefix("in.csv: "),)


@pytest.mark.parametrize("heading", ["callpath,metric,value", "callpath,time"])
def test_a_column_that_numbers_runs_is_that_of_repetitions(heading: str) -> None:
    cells = "main,time" if "metric" in heading else "main"
    text = f"p,Run,{heading}\n1,1,{cells},5\n1,2,{cells},6\n2,1,{cells},7\n2,4,{cells},8\n"
    got = read(text)
    assert got.items == (Measurement("main", "time", {Point.of(p=1): (5.0, 6.0), Point.of(p=2): (7.0, 8.0)}),)
    assert got.notes == (
        "in.csv: Run is taken for the number of the repetition; --parameters p,Run makes it a parameter",
    )
    assert read(text, ["p", "Run"]).parameters == ("p", "Run")
    other = text.replace(heading, f"rep,{heading}").replace(",main", ",1,main")
    assert read(other).parameters == ("p", "Run")


def test_a_column_that_numbers_runs_is_no_parameter_of_a_frame() -> None:
    frame = pd.DataFrame({"p": [1, 1, 2], "run": [1, 2, 1], "metric": "time", "value": [5.0, 6.0, 7.0]})
    got = to_measurements(frame, None, None, None)
    assert got.items == (Measurement("<root>", "time", {Point.of(p=1): (5.0, 6.0), Point.of(p=2): (7.0,)}),)
    assert "parameters=['p', 'run'] makes it a parameter" in got.notes[0]
    assert to_measurements(frame, ["p", "run"], None, None).parameters == ("p", "run")


def test_runs_that_failed_do_not_count_without_a_word() -> None:
    text = "p,state,time\n1,COMPLETED,2\n2,FAILED,0.1\n2,TIMEOUT,60\n"
    said = "state was left out, though it has 'FAILED' in 2 rows: values of runs that failed "
    said += "count like all others; "
    assert read(text, ["p"], ["time"]).notes == (f"in.csv: {said}remove these rows",)
    assert read(text.replace("FAILED", "OK").replace("TIMEOUT", "OK"), ["p"], ["time"]).notes == ()
    long = text.replace("time", "value")
    assert read(long, ["p"]).notes == (f"in.csv: {said}remove these rows",)
    assert read(long, ["p", "state"]).notes == ()
    frame = pd.read_csv(io.StringIO(text))
    assert to_measurements(frame, "p", "time", None).notes == (f"{said}remove these rows",)


def test_two_units_of_one_time_need_two_names() -> None:
    text = "p,time [ms],time [s]\n1,2,3\n"
    with pytest.raises(ReadError, match=r"a name of its own, not time, time: .*--response COLUMN=NAME"):
        read(text, ["p"])
    got = read(text, ["p"], ["time [ms]=a", "time [s]"])
    assert [(item.metric, *item.values.values()) for item in got.items] == [("a", (0.002,)), ("time", (3.0,))]


def test_named_parameters_settle_which_columns_are_metrics() -> None:
    got = read("time,p,s\n1.5,1,10\n", ["p", "s"])
    assert got == Measurements(("p", "s"), (Measurement("<root>", "time", {A: (1.5,)}),))


def test_named_parameters_leave_other_columns_of_a_long_table_out() -> None:
    assert read("p,s,host,value\n1,10,n17,3\n", ["p", "s"]).points == (A,)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_comments_and_row_numbers(delimiter: str) -> None:
    text = "# made by hand, with care\n,p,s,value\n0,1,10,1.5\n# the end\n1,2,10,2\n"
    head, *rest = text.split("\n")
    got = read("\n".join([head, *(line.replace(",", delimiter) for line in rest)]))
    assert got.items == (Measurement("<root>", "<default>", {A: (1.5,), B: (2.0,)}),)


def test_accounting_of_slurm_is_a_table_of_durations() -> None:
    text = "NTasks|Size|Elapsed|State|\n1|10|1-00:01:23|COMPLETED|\n2|10|00:00:42|COMPLETED|\n"
    got = read(text, ["NTasks", "Size"], ["Elapsed"])
    assert [list(item.values.values()) for item in got.items] == [[(86483.0,), (42.0,)]]
    assert got.notes == ("in.csv: values of Elapsed are in seconds from here on",)
    for wrong in ("12:30", "soon"):  # hours, or no duration
        with pytest.raises(ReadError, match=rf"in\.csv:3: Elapsed: '{wrong}' is not a number"):
            read(text.replace("00:00:42", wrong), ["NTasks", "Size"], ["Elapsed"])
    with pytest.raises(ReadError, match=r"'1-00:01:23' is not a number"):  # it may be when a run began
        read(text.replace("State", "n").replace("COMPLETED", "1"), ["NTasks", "Size"])


def test_a_bar_in_a_name_separates_nothing() -> None:
    got = read("|V|,|E|,time\n1,2,0.5\n", ["|V|", "|E|"])
    assert (got.parameters, got.metrics()) == (("|V|", "|E|"), ("time",))


def test_blanks_separate_fields_where_nothing_else_does() -> None:
    """As programs that plot read them, and as R writes them: aligned, or with quoted names of rows."""
    aligned = "  p   s  value\n  1  10    1.5\n\n 2 \t10   0.5  \n"
    of_r = '"p" "s" "value"\n"1" 1 10 1.5\n"2" 2 10 0.5\n'
    for text in (aligned, of_r, aligned.replace(".", ",")):
        got = read(text)
        assert got.items == (Measurement("<root>", "<default>", {A: (1.5,), B: (0.5,)}),)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " ", "   "])
def test_without_a_header_a_comment_above_the_rows_may_name_the_columns(delimiter: str) -> None:
    """As `numpy.savetxt` writes its header."""
    text = "# by hand\n# p,s,time\n1.0e+00,1.0e+01,1.5e+00\n2,10,0.5\n# the end\n".replace(",", delimiter)
    got = read(text, responses=["time"])
    assert got.items == (Measurement("<root>", "time", {A: (1.5,), B: (0.5,)}),)
    assert got.notes[0] == "in.csv: the comment above the rows is taken for the header"
    assert read("#p,s,time\np,s,seconds\n1,10,1.5\n", responses=["seconds"]).points == (A,)


@pytest.mark.parametrize("comment", ["# p,s", "# 1,10,3", "# by hand", '# "p,s,value', ""])
def test_other_comments_are_no_header(comment: str) -> None:
    with pytest.raises(ReadError, match=r"in\.csv:\d: no header line naming the columns"):
        read(f"{comment}\n1,10,1.5\n2,10,0.5\n")


def test_quoted_call_paths_may_contain_delimiters_and_line_ends() -> None:
    got = read('p,callpath,metric,value\n1,"f(int, int)->g\nh",time,1\n2,"f",time,x\n'.replace("x", "2"))
    assert [item.callpath for item in got.items] == ["f(int, int)->g\nh", "f"]


def test_categories_are_texts() -> None:
    assert read("layout,p,value\nDGZ,1,2\nZGD,1,2\n").points[1] == Point.of(layout="ZGD", p=1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", r"in\.csv: no header"),
        ("value\n1\n", r"in\.csv:1: no header"),
        ("1,2,3\n4,5,6\n", r"in\.csv:1: no header line naming the columns; add one"),
        ("p,p,value\n", r"in\.csv:1: every column needs a name of its own"),
        ("p,,value\n", r"in\.csv:1: every column needs a name of its own"),
        ("p,s,time\n1,2,3\n", r"in\.csv:1: which columns are parameters\?.*; found 0=p, 1=s, 2=time;"),
        ("p,metric,time\n1,2,3\n", r"in\.csv:1: a column 'metric' needs a column 'value'"),
        ("p,callpath\n1,main\n", r"in\.csv:1: no column of values"),
        ("callpath,time\nmain,1\n", r"in\.csv: no parameters"),
        ("p,value\n", r"in\.csv: no measurements"),
        ("p,value\n1,2\n\n3\n", r"in\.csv:4: 1 fields, but 2 columns"),
        ("p   value\n1   2\n\n3\n", r"in\.csv:4: 1 fields, but 2 columns"),
        ("p,value\n1.5,2,3\n", r"in\.csv:2: 3 fields, but 2 columns \(p, value\), so it is not known"),
        ("p,value\n1,2\n2,2,3\n", r"in\.csv:3: 3 fields, but 2 columns"),
        ("p,value,flops\n1,2\n2,3,9\n4,5,9\n", r"in\.csv:2: 2 fields, but 3 columns"),
        ("p,value,flops\n1,2\n2,3,9\n", r"in\.csv:2: 2 fields, but 3 columns"),
        ("p,n,17,value\n1,2,3,4\n", r"in\.csv:1: no header line naming the columns"),
        ("p,value\n1,fast\n", r"in\.csv:2: value: 'fast' is not a number"),
        ("p,value\n1,\n", r"in\.csv:2: value: '' is not a number"),
        ("p,value\n1,inf\n", r"in\.csv:2: value: 'inf' is not a number"),
        ("p,value\n1,2\n2,nan\n", r"in\.csv:3: value: 'nan' is not a number"),
        ("p,value\n1,2\n2,nan\n", r"if the run failed, remove the row"),
        (
            "p,callpath,time\n1,a,2\n2,a,nan\n",
            r"in\.csv:3: time: 'nan' .* leave the cell empty, or give --response",
        ),
        ("p;value\n1;0,1\n2;0.2\n", r"in\.csv:2: value: '0,1' is not a number; write 0\.1, as commas"),
        ("p;value\n1;1,000\n", r"in\.csv:2: value: '1,000' is not a number; write 1000, or 1\.000"),
        (
            'p,value\n1,"1,000"\n',
            r"in\.csv:2: value: '1,000' is not a number; write 1000, or 1\.000, as commas",
        ),
        ('p,value\n1,2\n"1,000",2\n', r"in\.csv:3: parameter p .* all be names; write 1000, or 1\.000"),
        ("p;value\n500;1\n1 000;2\n", r"in\.csv:3: parameter p .* all be names; write 1000$"),
        ("p;value\n1;1.020.200\n", r"in\.csv:2: value: '1\.020\.200' is not a number; write 1020200$"),
        ("p,value\n,1\n", r"in\.csv:2: p: the value of the parameter is missing"),
        ("p,value\n1,1\nmany,1\n", r"in\.csv:3: parameter p is 'many' here but 1 before"),
        ('p,value\n1,"2\n', r"in\.csv:2: not CSV: "),
        ('p,callpath,metric,value\n1,"a\nb",t,2\n1,a,t,x\n', r"in\.csv:4: value: 'x'"),
    ],
)
def test_mistakes_are_told_with_file_and_line(text: str, reason: str) -> None:
    with pytest.raises(ReadError, match=reason):
        read(text)


def test_empty_cells_are_counted_in_a_note() -> None:
    got = read("p,callpath,time,visits\n1,a,,2\n2,a,1,\n4,a,, \n8,a,1,2\n")
    assert got.notes == (
        "in.csv: left out as not measured: 2 empty cells of time, the first at in.csv:2",
        "in.csv: left out as not measured: 2 empty cells of visits, the first at in.csv:3",
    )


def test_a_point_is_named_because_of_which_commas_are_not_decimal() -> None:
    """A spreadsheet writes both: 219,27 ms, and 1.254.719 or 121.151 with points between thousands."""
    with pytest.raises(
        ReadError, match=r"in\.csv:2: time: '219,27' is not a number; .*in\.csv:3: words.*3791"
    ):
        read("p;time;words\n1;219,27;64\n2;119,5;3.791\n", ["p"])
    with pytest.raises(ReadError, match=r"as commas are not read in numbers$"):
        read('p,time\n1,"219,27"\n2,1.5\n', ["p"])


def test_a_parameter_that_is_the_product_of_two_others_is_noted() -> None:
    text = "p,nx,ny,points,time\n1,8,8,64,1\n1,8,16,128,2\n1,16,8,{},3\n"
    assert read(text.format(128), ["p", "nx", "ny", "points"]).notes == (
        "in.csv: points is nx * ny at all points: leave it out of the parameters, as it cannot vary alone",
    )
    assert read(text.format(129), ["p", "nx", "ny", "points"]).notes == ()
    assert read("p,per,n,time\n1,4,4,1\n1,8,8,2\n", ["p", "per", "n"]).notes == ()


def test_parameters_that_are_no_column_are_refused() -> None:
    with pytest.raises(ReadError, match=r"in\.csv:1: no column for parameter q; found 0=p, 1=value"):
        read("p,value\n1,2\n", ["p", "q"])


@settings(deadline=None)
@given(st.text() | st.text('pvalue,;\t"\n#01.e-', max_size=60).map("p,value\n1,2\n".__add__))
def test_garbage_gives_measurements_or_a_read_error(text: str) -> None:
    try:
        got = read(text)
    except ReadError as error:
        assert "in.csv" in str(error)
    else:
        assert got.items


def parquet(frame: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    frame.to_parquet(stream, engine="pyarrow")
    return stream.getvalue()


def test_parquet_has_the_columns_of_csv_and_keeps_texts_that_look_like_numbers() -> None:
    content = parquet(pd.DataFrame({"p": [1, 1], "layout": ["7", "7"], "value": [1.5, 2.5]}))
    got = read_parquet(content, "in.parquet")
    assert got == Measurements(
        ("p", "layout"), (Measurement("<root>", "<default>", {Point.of(p=1, layout="7"): (1.5, 2.5)}),)
    )


def test_missing_values_of_a_wide_parquet_table_are_not_measured() -> None:
    content = parquet(pd.DataFrame({"p": [1, 2], "callpath": ["a", "a"], "time": [1.5, None]}))
    assert read_parquet(content, "in.parquet").points == (Point.of(p=1),)


def test_missing_parameters_of_a_parquet_table_are_refused_by_row() -> None:
    content = parquet(pd.DataFrame({"p": [1, None], "value": [1.5, 2]}))
    with pytest.raises(ReadError, match=r"in\.parquet: row 2: p: None is not a number"):
        read_parquet(content, "in.parquet")


@settings(deadline=None)
@given(st.data())
def test_a_damaged_parquet_file_gives_measurements_or_a_read_error(data: st.DataObject) -> None:
    content = bytearray(parquet(pd.DataFrame({"p": [1, 2], "callpath": ["a", "b"], "time": [1.5, 2]})))
    place = data.draw(st.integers(4, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(4, len(content)))
    try:
        read_parquet(bytes(content[:cut]), "in.parquet")
    except ReadError as error:
        assert "in.parquet" in str(error)
