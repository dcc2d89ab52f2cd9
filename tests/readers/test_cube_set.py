from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import ReadError
from orchestrator.readers.cube_set import read
from orchestrator.types import Point
from tests.readers.cubex_files import Cubex, Node, Stored
from tests.requirements import measurement_data


def make(folder: Path, name: str, value: float, file: str = "profile.cubex", region: str = "f") -> None:
    time = Stored("time", {0: (2 * value, 4 * value), 1: (value, value)}, "INCLUSIVE", "DOUBLE", "sec")
    metrics = [time, Stored("bytes_sent", None, unit="bytes")]
    (folder / name).mkdir(exist_ok=True)
    content = Cubex([Node("main", (Node(region),))], metrics, threads=(1, 1)).content()
    (folder / name / file).write_bytes(content)


def points_of(tmp_path: Path, *names: str) -> list[dict[str, object]]:
    for name in names:
        make(tmp_path, name, 1.0)
    return [dict(point.as_dict()) for point in read([tmp_path]).points]


def test_the_name_carries_point_and_repetition(tmp_path: Path) -> None:
    for name, value in (("lulesh.p8.s20.r10", 2.0), ("lulesh.p8.s20.r9", 1.0), ("lulesh.p27.s30.r1", 4.0)):
        make(tmp_path, name, value)
    got = read([tmp_path])
    assert got.parameters == ("p", "s")
    values = {(item.callpath, item.metric): item.values for item in got.items}
    a, b = Point.of(p=8, s=20), Point.of(p=27, s=30)
    assert values == {("main", "time"): {a: (2, 4), b: (8,)}, ("main->f", "time"): {a: (1, 2), b: (4,)}}


@pytest.mark.parametrize(
    "names",
    [
        ("mm.x1.5y2z3", "mm.x10y20z30"),
        ("x1.5y2z3", "x10y20z30"),
        ("x1.5.y2.z3", "x10.y20.z30"),
        ("mm.x1,5.y2,0.z3.r1", "mm.x10.y20.z30.r17"),
        ("mm.x1.5,y2,0,z3.0.r1", "mm.x10y20.z30"),
        ("my.app-2.x1.5y2z3", "my.app-2.x10y20z30"),
        ("mm2.x1.5y2z3", "mm2.x10y20z30"),
    ],
)
def test_the_spellings_of_extrap_are_understood(tmp_path: Path, names: tuple[str, str]) -> None:
    assert points_of(tmp_path, *names) == [{"x": 1.5, "y": 2, "z": 3}, {"x": 10, "y": 20, "z": 30}]


def test_values_may_stand_where_a_shape_says(tmp_path: Path) -> None:
    for name, value in (("scorep-8x20_a", 1.0), ("scorep-8x20_b", 2.0), ("scorep-27x30_a", 4.0)):
        make(tmp_path, name, value)
    got = read([tmp_path], shape="scorep-{p}x{s}_")
    assert got.parameters == ("p", "s")
    assert got.items[1].values == {Point.of(p=8, s=20): (1, 2), Point.of(p=27, s=30): (4,)}


def test_a_set_without_prefix_keeps_its_first_parameter(tmp_path: Path) -> None:
    assert points_of(tmp_path, "p8.s1.r1", "p27.s2.r1") == [{"p": 8, "s": 1}, {"p": 27, "s": 2}]


def test_a_parameter_may_begin_like_a_repetition(tmp_path: Path) -> None:
    assert points_of(tmp_path, "mm.ranks4.r1", "mm.ranks8.r1") == [{"ranks": 4}, {"ranks": 8}]


def test_constant_parameters_are_left_out_except_at_a_single_point(tmp_path: Path) -> None:
    assert points_of(tmp_path, "mm.p4.n2000.r1") == [{"p": 4, "n": 2000}]
    assert points_of(tmp_path, "mm.p8.n2000.r1") == [{"p": 4}, {"p": 8}]


def test_several_profiles_in_a_folder_are_repetitions(tmp_path: Path) -> None:
    make(tmp_path, "mm.x1", 1.0, "profile1.cubex")
    make(tmp_path, "mm.x1", 2.0, "profile2.cubex")
    make(tmp_path, "mm.x1", 9.0, ".profile3.cubex")
    assert next(iter(read([tmp_path]).items[1].values.values())) == (1, 2)


def test_other_files_and_folders_do_not_disturb(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "_archive").mkdir()
    assert points_of(tmp_path, "mm.x1", "mm.x2") == [{"x": 1}, {"x": 2}]


def test_folders_of_single_points_and_several_sets_are_one(tmp_path: Path) -> None:
    for name, value in (("mm.x1.r1", 1.0), ("mm.x2.r1", 2.0)):
        make(tmp_path, name, value)
    other = tmp_path / "more"
    other.mkdir()
    make(other, "mm.x4.r1", 4.0)
    got = read([tmp_path / "mm.x1.r1", tmp_path / "mm.x2.r1", other])
    assert [point["x"] for point in got.points] == [1, 2, 4]


def test_a_call_path_has_values_only_where_it_occurs(tmp_path: Path) -> None:
    make(tmp_path, "mm.x1", 1.0, region="f")
    make(tmp_path, "mm.x2", 1.0, region="g")
    where = {item.callpath: [point["x"] for point in item.values] for item in read([tmp_path]).items}
    assert where == {"main": [1, 2], "main->f": [1], "main->g": [2]}


def test_aggregate_inclusion_and_metrics_are_chosen(tmp_path: Path) -> None:
    make(tmp_path, "mm.x1", 1.0)
    got = read([tmp_path], ["time", "bytes_sent"], "max", inclusive=True)
    values = {(item.callpath, item.metric): next(iter(item.values.values())) for item in got.items}
    assert values["main", "time"] == (4,)
    assert values["main", "bytes_sent"] == (0,)  # zero everywhere, but asked for
    with pytest.raises(ReadError, match=r"mm\.x1/profile\.cubex: no samples of metric energy"):
        read([tmp_path], ["energy"])


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["mm.x1y1", "mm.y1x1"], r"mm\.y1x1: has the parameters y, x, but .*mm\.x1y1 has x, y"),
        (["mm.x1y1", "x1"], "has the parameters x, but"),
        (["mm"], r"mm: no parameters in the name of the folder; name folders like lulesh\.p64"),
        (["scorep-20260101_1200_12345"], "no parameters in the name"),
        (["mm.x1.2.3"], r"'1\.2\.3' is not a number"),
        ([], r"no \.cubex files in subfolders"),
    ],
)
def test_names_that_tell_no_point_are_refused(tmp_path: Path, names: list[str], reason: str) -> None:
    with pytest.raises(ReadError, match=reason):
        points_of(tmp_path, *names)


def test_a_folder_of_other_files_says_how_they_are_given(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "b.txt").touch()
    with pytest.raises(ReadError, match=r"Name files of other formats themselves: \S+/\*\.txt$"):
        read([tmp_path])


def test_a_broken_profile_is_named(tmp_path: Path) -> None:
    make(tmp_path, "mm.x1", 1.0)
    make(tmp_path, "mm.x2", 1.0)
    (tmp_path / "mm.x2" / "profile.cubex").write_bytes(b"")
    with pytest.raises(ReadError, match=r"mm\.x2/profile\.cubex: the file is empty"):
        read([tmp_path])


def test_extrap_s_own_sets_are_read_and_its_negative_examples_refused() -> None:
    folder = measurement_data() / "cubex" / "extrap-cubeset"
    expected = {
        "single_parameter": ("x",),
        "multi_parameter": ("x", "y", "z"),
        "allowed_formats": ("x", "y", "z"),
        "simple_threaded": ("f",),
        "extra_file": ("x",),
        "extra_folder": ("x",),
    }
    assert {name: read([folder / name]).parameters for name in expected} == expected
    assert len(read([folder / "multi_parameter"]).points) == 27
    points = {tuple(v for _, v in point.items) for point in read([folder / "allowed_formats"]).points}
    assert {(1.1, 1.1, 1.1), (20.5, 20.5, 1.5), (21.5, 21.5, 1.15), (22.5, 22.5, 1.25), (25, 25, 1)} <= points
    for name in ("negative_example", "negative_example2"):
        with pytest.raises(ReadError, match="names and order must agree"):
            read([folder / name])
