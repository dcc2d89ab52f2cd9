"""The process that owns one attempt: what it records where it cannot write."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from orchestrator.executors.attempt import worker
from orchestrator.executors.attempt.record import read_record
from tests.executors.attempt.attempts import execute, start
from tests.executors.conftest import Prepared
from tests.requirements import need


def test_the_end_is_recorded_on_a_disk_that_the_application_filled(
    prepared: Prepared, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = ["unshare", "-rm", "sh", "-ec", f'mount -t tmpfs -o size=64k none "{disk}"; "$@"', "sh"]
    usable = subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode == 0
    need(usable, "a small file system of one's own (unshare -rm, mount -t tmpfs)")
    request = prepared("cat /dev/zero > fill\necho nothing fits > more\nexit 6\n")
    inside = 'cp "$0"/* .; touch empty; "$@"; cat attempt.json; stat -c %s more'
    command = [
        *mounted,
        "sh",
        "-ec",
        f'cd "{disk}"; {inside}',
        str(request.directory),
        *worker.command(str(disk)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    record, size_of_more = done.stdout.splitlines()
    assert json.loads(record)["exit_code"] == 6
    assert json.loads(record)["full"] == "No space left on device"
    assert size_of_more == "0", "the disk was not full"


FULL_DISK = """
import errno, os
left, rename = [COUNT], os.rename
def fail(source, target):
    if source.endswith(".next") and left[0]:
        left[0] -= 1
        raise OSError(errno.ENOSPC, "No space left on device")
    rename(source, target)
os.rename = fail
"""


def test_writing_the_end_is_tried_again(prepared: Prepared) -> None:
    request = prepared("exit 5\n")
    record = execute(request, FULL_DISK.replace("COUNT", "2"))
    assert record.exit_code == 5
    assert record.full == "" and not (request.directory / worker._PROBE).exists()


def test_a_record_that_cannot_be_completed_stays_whole(prepared: Prepared) -> None:
    request = prepared("exit 5\n")
    with start(request, "attempt.WRITE_PATIENCE = 0.1" + FULL_DISK.replace("COUNT", "99")) as process:
        _, complaints = process.communicate(timeout=300)
    assert process.returncode == worker.BROKEN
    assert b"No space left" in complaints
    record = read_record(request.directory)
    assert record is not None and record.finished is None


def test_where_the_beginning_cannot_be_recorded_nothing_starts(prepared: Prepared) -> None:
    request = prepared("touch started\n")
    (request.directory / "attempt.json.next").mkdir()
    with start(request) as process:
        _, complaints = process.communicate(timeout=300)
    assert process.returncode == worker.BROKEN
    assert b"nothing was started" in complaints
    assert not (request.directory / "started").exists()
