"""Tables whose header says too little: which columns are what, by name and by position."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import ReadError
from orchestrator.readers.load import load
from orchestrator.readers.reading import Reading
from orchestrator.readers.table import read_csv
from orchestrator.types import Measurement, Measurements, Point, Value
from tests.requirements import measurement_data

# The defects of published tuning data: a header without the name of the row numbers, one with a name too
# few among the others, and none at all.
UNNUMBERED = "m,n,avg,std\n17,40,2937,0.0117,0.0096\n3,1459,2531,0.1587,0.0496\n0,40,2531,0.0100,0.0001\n"
SHIFTED = ",ppn,shape,order,fast,slow\n0,8,cube,3,7,0.5,0.25\n0,16,cube,3,7,0.75,0.5\n"
HEADLESS = "0008\t01\t37\t368.13\n0010\t08\t5\tinf\n0015\t15\t4\t237.31\n"

NAMES = st.lists(
    st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True).filter(
        lambda name: name not in ("callpath", "metric", "value", "rep", "repetition", "inf", "nan")
    ),
    min_size=2,
    max_size=6,
    unique=True,
)
CELLS = st.integers(0, 10**6) | st.floats(1e-6, 1e6)


def read(
    text: str,
    parameters: Sequence[str] | None = None,
    responses: Sequence[str] = (),
    names: Sequence[str] | None = None,
) -> Measurements:
    return read_csv(text, "in.csv", Reading(parameters=parameters, responses=responses, names=names))


def values_of(known: Measurements) -> list[tuple[dict[str, Value], tuple[float, ...]]]:
    (item,) = known.items
    return [(point.as_dict(), values) for point, values in item.values.items()]


def test_row_numbers_without_a_name_are_left_out_with_a_note() -> None:
    got = read(UNNUMBERED, ["m", "n"], ["avg"])
    assert values_of(got)[:2] == [({"m": 40, "n": 2937}, (0.0117,)), ({"m": 1459, "n": 2531}, (0.1587,))]
    assert got.notes == (
        "in.csv: rows have 5 fields but the header 4 names: the first column (17, 3, 0) is taken for row "
        "numbers",
    )


def test_row_numbers_may_begin_anew_at_every_row() -> None:
    assert values_of(read("p,time\n0,8,1.5\n0,16,2\n", ["p"])) == [({"p": 8}, (1.5,)), ({"p": 16}, (2.0,))]


@pytest.mark.parametrize(
    "rows",
    ["8,1.5,1.6\n8,1.4,1.5\n", "0.5,8,1.5\n0.7,16,2\n", "8,1.5,\n16,2,\n"],
    ids=["repeated", "not whole", "a delimiter too many"],
)
def test_a_first_column_that_does_not_number_the_rows_is_not_guessed_at(rows: str) -> None:
    with pytest.raises(ReadError, match=r"in\.csv:2: 3 fields, but 2 columns \(p, time\).*--names"):
        read("p,time\n" + rows, ["p"])


def test_a_response_leaves_other_columns_out_and_those_before_it_are_parameters() -> None:
    got = read(UNNUMBERED, responses=["avg"])
    assert got.parameters == ("m", "n")
    assert got.metrics() == ("avg",)
    assert "in.csv: parameters are the columns before avg: m, n; --parameters names others" in got.notes


def test_several_responses_are_several_metrics() -> None:
    assert read("p,a,b,c\n1,2,3,4\n", ["p"], ["c", "a"]).metrics() == ("c", "a")


def test_columns_get_other_names() -> None:
    got = read("procs,avg,std\n8,1.5,0.1\n", ["procs=p"], ["avg=time"])
    assert got.items == (Measurement("<root>", "time", {Point.of(p=8): (1.5,)}),)


def test_a_header_that_does_not_fit_is_not_used_for_columns_by_position() -> None:
    got = read(SHIFTED, ["1=ppn", "3=level"], ["6=slow"])
    assert values_of(got) == [({"ppn": 8, "level": 3}, (0.25,)), ({"ppn": 16, "level": 3}, (0.5,))]
    assert got.metrics() == ("slow",)
    assert read(SHIFTED, ["1", "2"], ["6"]).parameters == ("column1", "column2")


@pytest.mark.parametrize(
    ("parameters", "responses"), [(["ppn"], ["slow"]), (["1"], ["slow"]), (["ppn"], ["6"]), (["1"], [])]
)
def test_a_header_that_does_not_fit_is_refused_where_a_name_of_it_is_needed(
    parameters: list[str], responses: list[str]
) -> None:
    with pytest.raises(ReadError, match=r"in\.csv:2: 7 fields, but 6 columns \(, ppn, shape, order, fast"):
        read(SHIFTED, parameters, responses)


def test_names_replace_a_wrong_header() -> None:
    got = read(SHIFTED, ["ppn", "shape"], ["slow"], ["k", "ppn", "shape", "level", "order", "fast", "slow"])
    assert values_of(got)[0] == ({"ppn": 8, "shape": "cube"}, (0.25,))


def test_names_stand_for_a_missing_header_and_padded_integers_are_numbers() -> None:
    got = read(HEADLESS, ["p", "n"], ["time"], ["p", "n", "k", "time"])
    assert values_of(got) == [({"p": 8, "n": 1}, (368.13,)), ({"p": 15, "n": 15}, (237.31,))]


def test_values_of_a_response_that_are_not_finite_are_left_out_with_a_note() -> None:
    got = read(HEADLESS, ["0=p"], ["3=time"])
    assert [values for _, values in values_of(got)] == [(368.13,), (237.31,)]
    assert got.notes == ("in.csv: left out: 1 value of runs that failed, the first at in.csv:2",)


def test_without_a_header_columns_are_called_by_their_position() -> None:
    got = read(HEADLESS, ["0", "2"], ["3"])
    assert (got.parameters, got.metrics()) == (("column0", "column2"), ("column3",))


@pytest.mark.parametrize(
    ("parameters", "responses", "reason"),
    [
        (
            ["m"],
            ["time"],
            r"in\.csv:1: no column for response time; found 1=m, 2=n, 3=avg, 4=std",
        ),
        (["5"], ["avg"], r"in\.csv:1: no column for parameter 5; found"),
        (["-1"], ["avg"], r"in\.csv:1: no column for parameter -1; found"),
        (["m="], ["avg"], r"in\.csv:1: no column for parameter m=; found"),
        (["m", "3"], ["avg", "m"], r"in\.csv:1: avg, m cannot be both a parameter and a response"),
        (["m=x", "n=x"], ["avg"], r"in\.csv: every parameter needs a name of its own, not x, x"),
        (["m"], ["avg=x", "std=x"], r"in\.csv:1: every response needs a name of its own, not x, x"),
        (["m"], ["std", "nothing"], r"no column for response nothing"),
    ],
)
def test_columns_that_are_not_there_or_used_twice_are_refused(
    parameters: list[str], responses: list[str], reason: str
) -> None:
    with pytest.raises(ReadError, match=reason):
        read(UNNUMBERED, parameters, responses)


def test_the_response_of_a_long_table_is_its_metric() -> None:
    text = "p,metric,value\n1,time,2\n1,visits,3\n"
    assert read(text, responses=["visits"]).metrics() == ("visits",)
    with pytest.raises(ReadError, match=r"in\.csv: no measurements of flops; there are time, visits"):
        read(text, responses=["flops"])


@given(NAMES, st.data())
def test_however_columns_are_named_the_same_is_read(names: list[str], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(*(CELLS for _ in names)), min_size=1, max_size=5))
    lines = [",".join(map(repr, row)) for row in rows]
    text = "\n".join([",".join(names), *lines])
    numbered = "\n".join([",".join(names), *(f"{k},{line}" for k, line in enumerate(lines))])
    order = data.draw(st.permutations(range(len(names))))
    chosen, response = order[:-1], order[-1]
    parameters, wanted = [names[k] for k in chosen], [names[response]]
    expected = read(text, parameters, wanted)
    by_position = [f"{k}={names[k]}" for k in chosen], [f"{response}={names[response]}"]
    assert read(text, [str(k) for k in chosen], [str(response)]) == expected
    assert read("\n".join(lines), *by_position) == expected
    assert read("\n".join(lines), parameters, wanted, names) == expected
    assert read(text, parameters, wanted, names) == expected
    assert read(numbered, parameters, wanted) == expected
    assert read(numbered, [str(k + 1) for k in chosen], [str(response + 1)]) == expected
    shifted = numbered.replace(",".join(names), ",".join(["", *names[1:]]))
    later = [f"{k + 1}={names[k]}" for k in chosen], [f"{response + 1}={names[response]}"]
    assert read(shifted, *later) == expected


@given(
    st.text(',;\t\n"#01.e-pinf', max_size=60),
    st.none() | st.lists(st.sampled_from(["0", "1", "p", "1=n", "p=q", ""]), max_size=3),
    st.lists(st.sampled_from(["0", "2", "n", "2=time"]), max_size=2),
    st.none() | st.just(["p", "n", "time"]),
)
def test_garbage_gives_measurements_or_a_read_error(
    text: str, parameters: list[str] | None, responses: list[str], names: list[str] | None
) -> None:
    try:
        got = read(text, parameters, responses, names)
    except ReadError as error:
        assert "in.csv" in str(error)
    else:
        assert got.items


EXAFMM = "2=ppn,3=nthreads,4=nbodies,6=ncrit,7=level,8=order"
LAMMPS = "processes,per_node,threads,output,melting,solid,time"


@pytest.mark.parametrize(
    ("file", "options", "number", "first", "value"),
    [
        ("gemm/1-thread_test.csv", {"responses": ["avg"]}, 1000, (40, 2937, 1001), 0.0116661),
        ("geqrf/1threads_test.csv", {"responses": ["avg"]}, 1000, (9523, 138), 0.0495007),
        ("bcast/kt1_st1_test.csv", {"responses": ["avg"]}, 10484, (3596179, 32, 32), 0.00383642),
        (
            "kripke/kt0_nnodes1_test.csv",
            {"responses": ["25=time"], "parameters": ["2", "3", "4", "5", "6", "10", "11", "15", "16"]},
            8745,
            (8, 8, 5, 56, 8, 8, 56, 1, 1),
            0.796174,
        ),
        (
            "exafmm/kt1_nnodes1_test.csv",
            {"responses": ["15=time"], "parameters": EXAFMM.split(",")},
            2512,
            (8, 16, 8216, 123, 3, 7),
            0.23774,
        ),
        (
            "exafmm/kt1.csv",
            {"responses": ["15=time"], "parameters": EXAFMM.split(",")},
            35280,
            (64, 1, 4160, 169, 2, 15),
            0.963817,
        ),
        (
            "../autotuner/lammps.csv",
            {"responses": ["time"], "names": LAMMPS.split(",")},
            923,
            (8, 1, 37, 200, 16000, 20000),
            368.13,
        ),
        (
            "../autotuner/gray-scott.csv",
            {"responses": ["4=time"], "parameters": ["0", "1", "2", "3"]},
            2795,
            (4, 2, 512, 500),
            722.25,
        ),
    ],
)
def test_published_tuning_data_are_read(
    file: str, options: dict[str, list[str]], number: int, first: tuple[int, ...], value: float
) -> None:
    reading = Reading(**options)  # type: ignore[arg-type]
    known = load([measurement_data() / "stampede2" / file], reading)
    (item,) = known.items
    assert sum(map(len, item.values.values())) == number
    point, values = next(iter(item.values.items()))
    assert tuple(found for _, found in point.items) == first
    assert values[0] == value


def test_numbers_that_stand_for_categories() -> None:
    path = measurement_data() / "stampede2" / "kripke" / "kt0_nnodes1_test.csv"
    known = load(
        [path],
        Reading(parameters=["order", "solver", "ngroups"], responses=["k9"], categorical=["order", "solver"]),
    )
    assert [known.is_categorical(name) for name in known.parameters] == [True, True, False]
    with pytest.raises(ReadError, match="layout cannot be categorical, as the parameters are ngroups"):
        load([path], Reading(parameters=["ngroups"], responses=["k9"], categorical=["layout"]))


GRID = "p,n,time\n" + "".join(f"{p},{n},{0.1 + n / p}\n" for p in (2, 4, 8) for n in (100, 200, 400))
LINES = "p,n,time\n2,100,5\n4,100,6\n8,100,7\n2,200,9\n2,400,8\n"


@pytest.mark.parametrize("text", [GRID, LINES], ids=["grid", "lines"])
def test_a_column_that_looks_like_a_forgotten_parameter_is_named(text: str) -> None:
    (note,) = read(text, ["p"]).notes
    assert note == (
        "in.csv: column n was taken as a metric beside time; is it a parameter? --parameters p,n says so; if "
        "not, --response time chooses what is modelled"
    )
    assert read(text, ["p", "n"]).notes == read(text, ["p"], ["time", "n"]).notes == ()


KERNELS = "n,function,sizeof,runtime\n" + "".join(
    f"{n},{name},8,{n * cost}\n" for n in (10, 20, 40) for name, cost in (("Copy", 1), ("Add", 2.5))
)


def test_a_column_of_names_tells_the_call_paths_of_a_table_that_has_none() -> None:
    known = read(KERNELS, ["n"])
    assert {(item.callpath, item.metric) for item in known.items} == {
        (name, metric) for name in ("Copy", "Add") for metric in ("sizeof", "runtime")
    }
    (note,) = known.notes
    assert note == (
        "in.csv: function is taken for the call paths; --parameters n,function makes it a category"
    )
    assert read(KERNELS, ["n", "function=callpath"]).items == known.items
    assert read(KERNELS, ["n", "1=callpath"], ["runtime"]).notes == ()
    assert read(KERNELS, ["n", "function"], ["runtime"]).parameters == ("n", "function")


def test_of_several_columns_of_names_the_user_says_what_they_are() -> None:
    both = KERNELS.replace("Copy,8", "Copy,gcc").replace("Add,8", "Add,clang")
    with pytest.raises(ReadError, match=r"function, sizeof hold names, not numbers: --parameters n,function"):
        read(both, ["n"])
    assert read(both, ["n", "function=callpath", "sizeof"]).parameters == ("n", "sizeof")


def test_rows_of_several_names_are_not_pooled_without_a_word() -> None:
    (note,) = read(KERNELS, ["n"], ["runtime"]).notes
    assert note == (
        "in.csv: function was left out, though rows of the same point differ in it: --parameters n,function "
        "makes it a category, and --parameters n,function=callpath says that it names the call paths"
    )
    hosts = "n,host,time\n10,n1,1\n10,n2,1.1\n20,n3,2\n20,n1,2.1\n40,n5,4\n"
    assert read(hosts, ["n"], ["time"]).notes == ()


def test_several_forgotten_parameters_are_named_together() -> None:
    rows = [(p, n, m, p + n * m) for p in (2, 4) for n in (100, 200) for m in (1, 3)]
    text = "p,n,m,time\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    (note,) = read(text, ["0=p"]).notes
    assert "columns n, m were taken as metrics beside time; are they parameters? --parameters 0=p,n,m" in note


@pytest.mark.parametrize("repetitions", [(3, 3, 3), (9, 1, 1)])
def test_metrics_of_repeated_runs_are_no_forgotten_parameters(repetitions: tuple[int, ...]) -> None:
    runs = [(p, k) for p, most in zip((2, 4, 8), repetitions, strict=True) for k in range(most)]
    text = "p,time,visits\n" + "".join(f"{p},{p + k / 7},12\n" for p, k in runs)
    assert read(text, ["p"]).notes == ()


def test_numbers_that_differ_at_a_point_as_a_parameter_are_not_pooled_without_a_word() -> None:
    rows = [(n, steps, k, n * steps + k) for n in (10, 20) for steps in (1, 2, 4) for k in (0, 1)]
    text = "n,steps,trial,time\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    (note,) = read(text, ["n"], ["time"]).notes
    assert note == (
        "in.csv: steps was left out, though rows of the same point differ in it: --parameters n,steps "
        "makes it a parameter"
    )
    assert read(text, ["n", "steps"], ["time"]).notes == ()  # trial numbers the rows of every point


@pytest.mark.parametrize("cell", ["N/A", "NA", "null", "failed"])
def test_what_tools_write_for_runs_that_failed_is_left_out_of_a_response(cell: str) -> None:
    got = read(f"n,time\n10,1\n10,{cell}\n20,2\n", ["n"], ["time"])
    assert got.notes == ("in.csv: left out: 1 value of runs that failed, the first at in.csv:3",)
    with pytest.raises(ReadError, match=f"'{cell}' is not a number; if the run failed, leave the cell empty"):
        read(f"n,time\n10,1\n10,{cell}\n20,2\n", ["n"])


def test_a_unit_behind_a_number_belongs_into_the_header() -> None:
    with pytest.raises(
        ReadError, match=r"in\.csv:2: time: '1\.6 ms' is not a number; write 1\.6, and .*\[ms\]$"
    ):
        read("n,time\n10,1.6 ms\n", ["n"], ["time"])
    with pytest.raises(ReadError, match=r"'12 parsecs' is not a number$"):
        read("n,time\n10,12 parsecs\n", ["n"], ["time"])
