from __future__ import annotations

import errno
import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.errors import ReadError
from orchestrator.readers.load import load
from orchestrator.readers.reading import Reading
from orchestrator.types import Measurement, Measurements, Point
from tests.readers.test_cube_set import make
from tests.requirements import measurement_data

TEXT = "# made by hand\nPARAMETER p\nPOINTS 1 2\nREGION main\nMETRIC time\nDATA 1.5 2\nDATA 3\n"
JSON = {
    "parameters": ["p"],
    "measurements": {"main": {"time": [{"point": [1], "values": [1.5, 2]}, {"point": [2], "values": [3]}]}},
}
LINES = (
    '{"params": {"p": 1}, "callpath": "main", "metric": "time", "value": [1.5, 2]}\n'
    '{"params": {"p": 2}, "callpath": "main", "metric": "time", "value": 3}\n'
)
CSV = "p,callpath,metric,value\n1,main,time,1.5\n1,main,time,2\n2,main,time,3\n"
EXPECTED = Measurements(
    ("p",), (Measurement("main", "time", {Point.of(p=1): (1.5, 2.0), Point.of(p=2): (3.0,)}),)
)
SPELLINGS = {
    "text": TEXT,
    "json": json.dumps(JSON),
    "json, indented": json.dumps(JSON, indent=2),
    "json lines": LINES,
    "csv": CSV,
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_every_format_is_recognised_by_its_content(
    tmp_path: Path, spelling: str, ending: str, mark: str
) -> None:
    path = tmp_path / "measurements"
    path.write_bytes((mark + SPELLINGS[spelling].replace("\n", ending)).encode())
    assert load([path]) == EXPECTED


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_utf_16_is_read(tmp_path: Path, spelling: str) -> None:
    path = tmp_path / "measurements"
    path.write_bytes(SPELLINGS[spelling].encode("utf-16"))
    assert load([path]) == EXPECTED


def test_a_file_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(CSV)
    with pytest.raises(ReadError, match=r"a\.csv: given twice"):
        load([path, tmp_path / "." / ".." / tmp_path.name / "a.csv"])


def test_a_single_json_line_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(LINES.split("\n")[0])
    assert load([path]).points == (Point.of(p=1),)


def test_values_of_one_point_in_several_files_are_repetitions(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("p,s,value\n1,10,1.5\n")
    (tmp_path / "b.csv").write_text("s,p,value\n10,1,2.5\n20,1,3\n")
    got = load([tmp_path / "a.csv", tmp_path / "b.csv"])
    values = {Point.of(p=1, s=10): (1.5, 2.5), Point.of(p=1, s=20): (3.0,)}
    assert got == Measurements(("p", "s"), (Measurement("<root>", "<default>", values),))


def test_files_and_cube_sets_go_together(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    for name in ("mm.p1", "mm.p2"):
        make(tmp_path / "set", name, 1.0)
    (tmp_path / "a.csv").write_text("p,callpath,time\n4,main,7\n")
    got = load([tmp_path / "a.csv", tmp_path / "set"])
    values = next(item.values for item in got.items if item.callpath == "main")
    assert values == {Point.of(p=1): (2,), Point.of(p=2): (2,), Point.of(p=4): (7,)}


def test_files_with_different_parameters_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("p,value\n1,1.5\n")
    (tmp_path / "b.csv").write_text("q,value\n1,1.5\n")
    with pytest.raises(ReadError, match=r"b\.csv: the files have different parameters: p and q"):
        load([tmp_path / "a.csv", tmp_path / "b.csv"])


def test_only_wanted_metrics_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("p,callpath,time,visits\n1,main,1.5,2\n")
    assert load([path], Reading(metrics=["visits"])).metrics() == ("visits",)
    with pytest.raises(ReadError, match=r"a\.csv: no measurements of energy; there are time, visits"):
        load([path], Reading(metrics=["energy"]))


def test_parameters_of_a_table_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("p,time\n1,1.5\n")
    assert load([path], Reading(parameters=["p"])).metrics() == ("time",)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"", "a.txt: the file is empty"),
        ("a.txt", b" \n\n", "a.txt: the file is empty"),
        ("a.txt", b"# nothing here\n", "a.txt: format not recognised from ''"),
        (
            "a.txt",
            b"Elapsed time = 7\n",
            "format not recognised from 'Elapsed time = 7'; tried Extra-P text (starts with PARAMETER, "
            "POINTS, METRIC, REGION, DATA), JSON and JSON Lines (start with '{'), tables (a header",
        ),
        ("a.txt", b"PARAMETER p\n\n\xff", "a.txt:3: not UTF-8 text (byte 0xff); convert it, for"),
        ("a.cubex", b"xyz", "a.cubex: one profile does not say at which point it was measured"),
        ("a.extra-p", b"PK\x03\x04...", "a.extra-p: a ZIP archive; if it is an Extra-P experiment"),
        ("a.parquet", b"PAR1...PAR1", "a.parquet: broken Parquet file"),
        ("a.jsonl", b'{"params": {"p": 1}\n', "a.jsonl:1: not JSON"),
        ("a.json", b'{"params": {"p": 1}\n', "a.json:2: not JSON"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_the_reason(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ReadError) as caught:
        load([tmp_path / name])
    assert reason in str(caught.value)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"nowhere\.txt: there is no such file"):
        load([tmp_path / "nowhere.txt"])
    with pytest.raises(ReadError, match="no files"):
        load([])


@given(
    st.binary(max_size=200)
    | st.sampled_from(list(SPELLINGS.values())).flatmap(
        lambda text: st.tuples(st.integers(0, len(text)), st.binary(max_size=3)).map(
            lambda change: text.encode()[: change[0]] + change[1] + text.encode()[change[0] + 1 :]
        )
    )
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
def test_arbitrary_bytes_give_measurements_or_a_read_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any"
    path.write_bytes(content)
    try:
        got = load([path])
    except ReadError as error:
        assert str(path) in str(error)
    else:
        assert got.items
        assert got.points


def test_all_of_extrap_s_example_files_are_loaded() -> None:
    folder = measurement_data() / "extrap-formats"
    files = [path for kind in ("txt", "jsonl") for path in folder.rglob(f"*.{kind}")]
    assert len(files) > 60
    for path in files:
        got = load([path])
        assert all(len(item.values) == len(got.points) for item in got.items), path


def test_the_case_study_has_its_grid_and_repetitions() -> None:
    got = load([measurement_data() / "relearn" / "relearn_data.txt"])
    assert (got.parameters, len(got.points), len(got.items)) == (("p", "n"), 25, 14)
    assert {len(values) for item in got.items for values in item.values.values()} == {2}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_times_with_their_unit_are_in_seconds_in_every_format(tmp_path: Path, spelling: str) -> None:
    path = tmp_path / "measurements"
    path.write_text(re.sub(r"\btime\b", "time [ms]", SPELLINGS[spelling]))
    for metric in (None, "time", "time [ms]"):
        known = load([path], Reading(metrics=None if metric is None else [metric]))
        assert known.metrics() == ("time",)
        found = {point: pytest.approx(values) for point, values in known.items[0].values.items()}
        assert found == {Point.of(p=1): (0.0015, 0.002), Point.of(p=2): (0.003,)}
        assert known.notes == (f"{path}: values of time [ms] are in seconds from here on",)
    path.write_text(path.read_text() + SPELLINGS["json lines"] if spelling == "json lines" else CSV)
    if spelling == "json lines":
        with pytest.raises(ReadError, match=r"time of main has two units at the same points, also as"):
            load([path])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(b"p,value\n1,2\n"), "is compressed: unpack it first"),
        (b"PK\x03\x04...xl/workbook.xml", "save its table as CSV"),
        (b"PK\x03\x04...", "a ZIP archive; if it is an Extra-P"),
    ],
    ids=["compressed", "workbook", "archive"],
)
def test_files_that_hold_files_say_what_to_do(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "a.bin").write_bytes(content)
    with pytest.raises(ReadError, match=words):
        load([tmp_path / "a.bin"])


def test_sizes_with_units_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "p,n,value\n" + "".join(f"{p},{n},{p}.5\n" for p in (1, 2, 4) for n in ("1k", "2k", "4 MiB"))
    )
    (note,) = load([path]).notes
    assert note.startswith(f"{path}: n has sizes with units, which are text, so it is a category")
    assert load([path], Reading(categorical=["n"])).notes == ()


def test_a_document_without_line_ends_is_no_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "benchmark.json"
    path.write_text('{"context": {"cpus": 2}, "benchmarks": []}')
    with pytest.raises(ReadError, match="found context, benchmarks; other JSON is not read: write a table"):
        load([path])


def test_numbers_that_are_written_as_texts_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(LINES.replace('"p": 1', '"p": "1"').replace('"p": 2', '"p": "2"'))
    assert load([path]).notes == (
        f"{path}: p has numbers that are written as texts, so it is a category: write them without quotes, "
        "or, if it is one, --categorical p says so",
    )
    assert load([path], Reading(categorical=["p"])).notes == ()


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ('p,value\n"1,000",1\n"2,000",2\n', "write 1000, or 1.000, as commas are not read in numbers"),
        ("p;value\n0,5;1\n1.234,5;2\n", "write 0.5, as commas are not read in numbers"),
        ("p;value\n1 000;1\n2 000;2\n", "write 1000"),
        ("p,value\n1 nodes,1\n2 nodes,2\n", "write 1"),
        ("p,value\n2.5%,1\n1e1%,2\n", "write 2.5"),
        ("p;value\n1\u202f000,5;1\n2\u202f000,5;2\n", "write 1000.5"),
        ("p;value\n1'000'000;1\n2'000'000;2\n", "write 1000000"),
        ('{"params": {"p": "500"}, "value": 1}\n{"params": {"p": "1 000"}, "value": 2}\n', "write 1000"),
    ],
)
def test_names_that_look_like_numbers_are_noted(tmp_path: Path, text: str, remedy: str) -> None:
    path = tmp_path / "in"
    path.write_text(text)
    (note,) = load([path]).notes
    assert note.startswith(f"{path}: parameter p is taken for a category, with names such as ")
    assert note.endswith(f"; if they are numbers, {remedy}")
    assert load([path], Reading(categorical=["p"])).notes == ()


def test_names_of_grids_do_not_look_like_numbers(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("grid,value\n2x2,1\n4x4,2\n")
    assert load([path]).notes == ()


@pytest.mark.parametrize("cut", [0, 1])
def test_a_folder_that_cannot_be_listed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    """Not left out: the models would lack its points, and nothing would say so."""
    for name in ("p1", "p2", "p4"):
        make(tmp_path, name, 1.0)
    locked = (tmp_path, tmp_path / "p2")[cut]
    scandir = os.scandir

    def refusing(path: str | Path) -> Any:
        if Path(path) == locked:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(
        ReadError, match=f"^{re.escape(str(locked))}: cannot be listed: Permission denied; get"
    ):
        load([tmp_path])


def test_a_profile_that_cannot_be_read_is_not_called_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("p1", "p2", "p4"):
        make(tmp_path, name, 1.0)

    def refuse(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ReadError, match=r"\.cubex: cannot be read: Permission denied$"):
        load([tmp_path])


def test_folders_that_no_set_has_need_not_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("p1", "p2", "p4"):
        make(tmp_path, name, 1.0)
    (tmp_path / ".trash").mkdir()
    (tmp_path / "p1" / "scorep" / "traces" / "rank0").mkdir(parents=True)
    scandir = os.scandir

    def refusing(path: str | Path) -> Any:
        if Path(path).name in (".trash", "rank0"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert len(load([tmp_path]).points) == 3
