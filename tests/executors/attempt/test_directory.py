"""The files of an attempt: prepared once, read whatever happened to them."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator import storage
from orchestrator.errors import ReadError, SubmitRejected
from orchestrator.executors.attempt import worker
from orchestrator.executors.attempt.directory import prepare
from orchestrator.executors.attempt.record import _record, expand_nodes, owners, read_record
from orchestrator.types import Attempt, AttemptRecord, AttemptRequest, Point, Resources, Run

RECORD: dict[str, Any] = {
    "run": "p=1/time-1",
    "attempt": 1,
    "pid": 4711,
    "started": "2025-01-02T03:04:05.000006+00:00",
    "host": "here",
    "boot": "b",
    "namespace": "pid:[1]",
    "processes": [[4711, 5], [4712, 6]],
    "nodes": "here",
    "environment": {"PATH": "/bin"},
    "finished": "2025-01-02T03:04:06.500006+00:00",
    "exit_code": 0,
    "timed_out": False,
    "cancelled": False,
    "leftover": 0,
}


def request_in(directory: Path, **changes: Any) -> AttemptRequest:
    request = AttemptRequest(
        attempt=Attempt(Run(Point.of(p=1))),
        name="name",
        directory=directory / "a" / "b",
        resources=Resources(ranks=1),
        limit=60.0,
        script="#!/bin/sh\n",
    )
    return replace(request, **changes)


# --- prepare ------------------------------------------------------------------------------------------


def test_points_with_long_names_have_directories_of_their_own(tmp_path: Path) -> None:
    attempts = [
        Attempt(Run(Point.of(p=1, k=mesh + end))) for mesh in ("x" * 260, "\u6d4b" * 30) for end in "ab"
    ]
    for item in attempts:
        prepare(replace(request_in(tmp_path), attempt=item, directory=tmp_path / item.id))
    assert len(list(tmp_path.iterdir())) == 4
    assert Point.of(k="x" * 253).key == "k=" + "x" * 253, "what fits stays as it was"


def test_nobody_else_can_write_what_is_prepared(tmp_path: Path) -> None:
    request = request_in(tmp_path, files={"in.txt": "x", "sub/in.txt": "y"})
    umask = os.umask(0)
    try:
        prepare(request)
    finally:
        os.umask(umask)
    for path in (request.directory.parent, request.directory, *request.directory.rglob("*")):
        assert not path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH), path
    assert stat.S_IMODE((request.directory / "run.sh").stat().st_mode) == 0o700


def test_preparing_again_changes_nothing(tmp_path: Path) -> None:
    request = request_in(tmp_path, files={"in.txt": "x"})
    prepare(request)

    def written() -> dict[str, tuple[int, int]]:
        return {
            path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in request.directory.iterdir()
        }

    before = written()
    prepare(request)
    assert written() == before
    assert set(before) == {"run.sh", "request.json", "in.txt"}


def test_what_has_not_begun_may_still_change_but_what_has_may_not(tmp_path: Path) -> None:
    prepare(request_in(tmp_path))
    other = request_in(tmp_path, script="#!/bin/sh\necho other\n")
    prepare(other)
    assert (other.directory / "run.sh").read_text() == other.script
    worker.claim(other.directory, "a test")
    prepare(other)
    with pytest.raises(SubmitRejected, match=r"another run\.sh"):
        prepare(request_in(tmp_path))
    assert (other.directory / "run.sh").read_text() == other.script


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    request = request_in(tmp_path)
    request.directory.mkdir(parents=True)
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (request.directory / "run.sh").symlink_to(precious)
    prepare(request)
    assert precious.read_text() == "precious"


def test_a_directory_that_everybody_can_write_is_refused(tmp_path: Path) -> None:
    request = request_in(tmp_path)
    request.directory.mkdir(parents=True)
    request.directory.chmod(0o777)
    with pytest.raises(SubmitRejected, match="chmod o-w"):
        prepare(request)


@pytest.mark.parametrize(
    "name", ["run.sh", "claim", "attempt.json", "../x", "/etc/x", "stdout", "", ".", "a/.."]
)
def test_input_files_cannot_replace_ours_or_leave_the_directory(tmp_path: Path, name: str) -> None:
    with pytest.raises(SubmitRejected, match="input file"):
        prepare(request_in(tmp_path, files={name: "x"}))


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan"), float("inf")])
def test_a_limit_must_be_a_positive_number(tmp_path: Path, limit: float) -> None:
    with pytest.raises(SubmitRejected, match="limit"):
        prepare(request_in(tmp_path, limit=limit))


def test_a_read_only_directory_is_named(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        directory = Path("/sys/kernel")  # where not even root may create a directory
    else:
        directory = tmp_path / "read-only"
        directory.mkdir(0o555)
    with pytest.raises(SubmitRejected, match=f"cannot write into {directory}.*make writable"):
        prepare(request_in(directory))


# --- reading ------------------------------------------------------------------------------------------


def test_a_record_reads_as_unix_seconds(tmp_path: Path) -> None:
    (tmp_path / "attempt.json").write_text(json.dumps(RECORD))
    record = read_record(tmp_path)
    assert record == AttemptRecord(
        run="p=1/time-1",
        attempt=1,
        host="here",
        pid=4711,
        started=1735787045.000006,
        finished=1735787046.500006,
        exit_code=0,
        nodes=("here",),
    )


def test_without_a_file_there_is_no_record(tmp_path: Path) -> None:
    assert read_record(tmp_path) is None
    assert read_record(tmp_path / "missing") is None
    assert owners(tmp_path) is None


def test_fields_of_later_versions_and_missing_extras_do_not_matter(tmp_path: Path) -> None:
    extras = ("boot", "namespace", "processes", "nodes", "environment", "timed_out", "cancelled", "leftover")
    document = {key: value for key, value in RECORD.items() if key not in extras} | {"news": [1]}
    (tmp_path / "attempt.json").write_text(json.dumps(document))
    record = read_record(tmp_path)
    assert record is not None and record.exit_code == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run", None),
        ("attempt", "1"),
        ("exit_code", True),
        ("exit_code", 0.0),
        ("started", 1735787045),
        ("started", "yesterday"),
        ("finished", "2025-01-02T03:04:04+00:00"),
        ("finished", ""),
        ("timed_out", "no"),
        ("nodes", 3),
    ],
)
def test_a_wrong_field_is_an_error_that_names_file_and_field(
    tmp_path: Path, field: str, value: object
) -> None:
    (tmp_path / "attempt.json").write_text(json.dumps(RECORD | {field: value}))
    with pytest.raises(ReadError, match=field) as caught:
        read_record(tmp_path)
    assert str(tmp_path / "attempt.json") in str(caught.value)


@pytest.mark.parametrize("field", ["run", "attempt", "host", "pid", "started", "exit_code"])
def test_a_missing_field_is_an_error_that_names_it(tmp_path: Path, field: str) -> None:
    document = {name: value for name, value in RECORD.items() if name != field}
    (tmp_path / "attempt.json").write_text(json.dumps(document))
    with pytest.raises(ReadError, match=f"'{field}' is missing"):
        read_record(tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(data=st.data())
def test_a_torn_or_damaged_file_is_an_error_and_never_a_wrong_record(
    tmp_path: Path, data: st.DataObject
) -> None:
    text = json.dumps(RECORD).encode()
    damaged = data.draw(
        st.one_of(
            st.binary(max_size=60),
            st.integers(0, len(text) - 1).map(lambda end: text[:end]),
            st.tuples(st.integers(0, len(text) - 1), st.binary(min_size=1, max_size=3)).map(
                lambda change: text[: change[0]] + change[1] + text[change[0] + len(change[1]) :]
            ),
        )
    )
    (tmp_path / "attempt.json").write_bytes(damaged)
    for read in (read_record, owners):
        try:
            result = read(tmp_path)
        except ReadError as error:
            assert str(tmp_path / "attempt.json") in str(error)
        else:
            assert json.loads(damaged) and result is not None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(changes=st.dictionaries(st.sampled_from(sorted(RECORD)), json_values, min_size=1, max_size=3))
def test_fields_of_any_type_give_a_record_or_an_error(tmp_path: Path, changes: dict[str, Any]) -> None:
    (tmp_path / "attempt.json").write_text(json.dumps(RECORD | changes))
    try:
        record = read_record(tmp_path)
        holder = owners(tmp_path)
    except ReadError:
        return
    assert record is not None and (record.finished is None or record.finished >= record.started)
    assert holder is not None and all(isinstance(pid, int) for pid, _ in holder.processes)


@given(st.floats(0, 4e9))
def test_instants_survive_writing_and_reading(instant: float) -> None:
    document = RECORD | {"started": storage.iso(instant), "finished": None}
    record = _record(document)
    assert abs(record.started - instant) <= 1e-6


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ("n1",)),
        ("n[1-3]", ("n1", "n2", "n3")),
        ("n[08-11,20],login", ("n08", "n09", "n10", "n11", "n20", "login")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("n[1-2]-ib", ("n1-ib", "n2-ib")),
        ("", ()),
    ],
)
def test_node_lists_of_slurm_are_expanded(text: str, names: tuple[str, ...]) -> None:
    assert expand_nodes(text) == names


@given(st.text(alphabet="n0123456789[]-,", max_size=30))
def test_any_text_is_expanded_and_without_ranges_names_stay_as_they_are(text: str) -> None:
    names = expand_nodes(text)
    if "[" not in text:
        assert names == tuple(name for name in text.split(",") if name)
    assert {*"".join(names)} <= {*text, *"0123456789"}
