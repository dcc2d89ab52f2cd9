"""Job arrays and their manifests: what an earlier version wrote is read, and has the names it had."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import ExecutorError
from orchestrator.executors.slurm.arrays import JobArray, JobArrays, groups, name_of, read
from orchestrator.types import Attempt, AttemptRequest, Point, Resources, Run

# Without the fields that the first versions did not write.
MANIFEST = {"attempts": ["lone", ["first", "second"]], "first": 5.0, "last": 7.5}


def request(number: int, directory: Path = Path("/c"), **changes: object) -> AttemptRequest:
    attempt = Attempt(Run(Point.of(p=number)))
    made = AttemptRequest(
        attempt=attempt,
        name=f"name-{number}",
        directory=directory / "runs" / attempt.id,
        resources=Resources(ranks=1),
        limit=60.0,
        script="",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_names_are_those_that_jobs_in_the_queue_have() -> None:
    packs = [[request(1)], [request(2), request(3)]]
    assert name_of(packs, Path("/c/lulesh weak ü")) == "lulesh-weak-8d97f28a19878de8"


def test_jobs_of_a_copied_campaign_are_no_duplicates_of_those_of_the_original(tmp_path: Path) -> None:
    """Both controllers ask Slurm for jobs by name, and cancel all but the first of an attempt."""
    names = [JobArrays(tmp_path / place / "study").begin([[request(1)]], 0.0).name for place in ("a", "b")]
    assert names[0] != names[1]
    assert {name.rpartition("-")[0] for name in names} == {"study"}


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    arrays = JobArrays(tmp_path)
    packs = [[request(number, tmp_path) for number in pack] for pack in ((1, 2), (3, 4))]
    array = arrays.begin(packs, 11.0)
    assert read(tmp_path / "batches" / f"{array.name}.json") == array
    again = JobArrays(tmp_path)
    assert again.elements("name-3") == [(array, 1)]
    companions = [(item.name, item.directory) for item in packs[1]]
    assert again.companions("name-3") == companions
    assert again.begin(packs, 20.0) == replace(array, last=20.0)
    again.drop(array)
    assert not again.elements("name-3") and not list((tmp_path / "batches").glob("*.json"))


def test_a_manifest_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    path = tmp_path / "c-0123456789abcdef.json"
    path.write_text(json.dumps(MANIFEST))
    assert read(path) == JobArray(
        name="c-0123456789abcdef",
        packs=(("lone",), ("first", "second")),
        first=5.0,
        last=7.5,
        minutes=0,
        directories={},
    )


@pytest.mark.parametrize("text", ["", "[]", "{", '{"attempts": [1]}', '{"attempts": ["a"], "first": "x"}'])
def test_a_damaged_manifest_is_named_with_the_remedy(tmp_path: Path, text: str) -> None:
    path = tmp_path / "batches" / "c-1.json"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(ExecutorError, match=rf"{path}: .*restore it from a backup"):
        JobArrays(tmp_path)


def test_an_array_has_jobs_with_equal_options_and_no_more_than_slurm_takes() -> None:
    packed = [request(number, pack="one") for number in (1, 2)]
    alone = [request(number) for number in (3, 4, 5)]
    other = [request(6, memory=2.0), request(7, exclude=("n1",)), request(8, resources=Resources(ranks=2))]
    found = [
        [[item.name for item in pack] for pack in group] for group in groups([*packed, *alone, *other], 2)
    ]
    assert found == [
        [["name-1", "name-2"]],
        [["name-3"], ["name-4"]],
        [["name-5"]],
        [["name-6"]],
        [["name-7"]],
        [["name-8"]],
    ]
