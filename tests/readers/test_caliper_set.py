"""Folders of Caliper profiles: the point is in names of folders, or in globals."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import ReadError
from orchestrator.readers.caliper_set import read
from orchestrator.readers.load import load
from orchestrator.readers.reading import Reading
from orchestrator.types import Point

SPOT = Path(__file__).parents[1] / "data" / "caliper" / "halo-spot.cali"


def put(path: Path, size: int = 1000, ranks: int = 2, start: int = 1) -> None:
    """Write a profile with other globals, as a run with another size would."""
    text = SPOT.read_text()
    lines = [
        line.replace("data=1000", f"data={size}") if ",attr=17,data=1000" in line else line
        for line in text.splitlines()
    ]
    lines = [
        line.replace(",attr=18,data=2,", f",attr=18,data={ranks},").replace(
            "starttime.sec", f"starttime.sec{start}"
        )
        for line in lines
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def test_the_globals_that_differ_are_the_parameters(tmp_path: Path) -> None:
    for size in (1000, 2000):
        for ranks in (2, 4):
            put(tmp_path / f"run-{size}-{ranks}" / "a.cali", size, ranks)
    found = read([tmp_path], metrics=["visits"])
    assert found.parameters == ("p", "problem_size")
    report = next(item for item in found.items if item.callpath == "main->report")
    # One rank of two, and of four, enters the region.
    assert report.values == {
        Point.of(p=ranks, problem_size=size): (1 / ranks,) for ranks in (2, 4) for size in (1000, 2000)
    }


def test_globals_that_change_together_are_one_parameter(tmp_path: Path) -> None:
    for ranks in (2, 4, 8):
        put(tmp_path / f"run-{ranks}" / "a.cali", 100 * ranks, ranks)
    assert read([tmp_path]).parameters == ("p",)


def test_profiles_of_one_point_are_repetitions_at_any_depth(tmp_path: Path) -> None:
    put(tmp_path / "experiments" / "halo" / "first" / "a.cali", 1000)
    put(tmp_path / "experiments" / "halo" / "second" / "a.cali", 1000)
    put(tmp_path / "b.cali", 2000)
    put(tmp_path / ".hidden.cali", 3000)
    [compute] = [item for item in read([tmp_path], ["visits"]).items if item.callpath == "main->compute"]
    assert compute.values == {Point.of(problem_size=1000): (3, 3), Point.of(problem_size=2000): (3,)}


def test_named_folders_say_it_before_globals_do(tmp_path: Path) -> None:
    put(tmp_path / "halo.p2.n5.r1" / "a.cali", 1000)
    put(tmp_path / "halo.p4.n5.r1" / "a.cali", 2000)
    assert read([tmp_path]).points == (Point.of(p=2), Point.of(p=4))


def test_a_shape_of_paths_says_it_before_both(tmp_path: Path) -> None:
    put(tmp_path / "halo-2ranks" / "a.cali", 1000)
    put(tmp_path / "halo-4ranks" / "a.cali", 2000)
    assert load([tmp_path], Reading(named="-{p}ranks")).points == (Point.of(p=2), Point.of(p=4))


def test_files_that_say_their_points_themselves_have_no_shape(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,time\n1,2\n")
    with pytest.raises(ReadError, match=r"a\.csv: --named is for folders of profiles and for outputs"):
        load([tmp_path / "a.csv"], Reading(named="{n}"))


def test_named_globals_are_the_parameters_whatever_they_are(tmp_path: Path) -> None:
    put(tmp_path / "a.cali", 1000)
    put(tmp_path / "b.cali", 2000)
    found = load([tmp_path], Reading(parameters=["problem_size", "p"]))
    assert found.parameters == ("problem_size",)  # all had two ranks
    with pytest.raises(ReadError, match=r"a\.cali: no global 'n'; there are p, problem_size"):
        load([tmp_path], Reading(parameters=["n"]))


def test_without_a_difference_the_globals_are_listed(tmp_path: Path) -> None:
    put(tmp_path / "a.cali")
    put(tmp_path / "b.cali")
    with pytest.raises(ReadError, match=r"name globals \(--parameters\): p, problem_size$"):
        read([tmp_path])


def test_one_truncated_profile_is_named(tmp_path: Path) -> None:
    put(tmp_path / "a.cali", 1000)
    put(tmp_path / "b.cali", 2000)
    (tmp_path / "c.cali").write_text(SPOT.read_text()[:5000])
    with pytest.raises(ReadError, match=r"c\.cali: truncated"):
        load([tmp_path])


def test_a_single_profile_says_no_point(tmp_path: Path) -> None:
    put(tmp_path / "a.cali")
    with pytest.raises(ReadError, match="give its folder"):
        load([tmp_path / "a.cali"])
