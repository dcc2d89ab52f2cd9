"""The process that owns one attempt: what it records, what it kills, what kills it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator import __version__
from orchestrator.executors import attempt, files, processes
from orchestrator.types import AttemptRecord, AttemptRequest
from tests.executors.conftest import Prepared
from tests.executors.under_test import ExecutorUnderTest, processes_of, wait_for_file
from tests.processes import wait_until_dead
from tests.requirements import need

ROOT = str(Path(__file__).parents[2])

# A program that ignores SIGTERM and whose daemon has left its session and process group.
STUBBORN = """\
trap '' TERM
setsid sh -c 'trap "" TERM; echo $$ > daemon; sleep 600; sleep 600' &
while [ ! -s daemon ]; do sleep 0.01; done
echo begun
sleep 600
sleep 600
"""


def start(request: AttemptRequest, patch: str = "", **variables: str) -> subprocess.Popen[bytes]:
    """Start attempt.py as executors do, with the mark; ``patch`` is Python executed before."""
    command = attempt.command(str(request.directory))
    if patch:
        command[-2] = (
            f"import sys; sys.path.append({ROOT!r})\nfrom orchestrator.executors import attempt, processes\n"
            f"{patch}\nattempt.main()"
        )
    environment = {**os.environ, processes.MARK: str(request.directory), **variables}
    return subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.PIPE)


def execute(request: AttemptRequest, patch: str = "", **variables: str) -> AttemptRecord:
    with start(request, patch, **variables) as process:
        _, complaints = process.communicate(timeout=60)
    assert process.returncode == attempt.DONE, complaints
    record = files.read_record(request.directory)
    assert record is not None
    return record


def document(request: AttemptRequest) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((request.directory / "attempt.json").read_text())
    return result


def owners(request: AttemptRequest) -> tuple[int, int]:
    """Return the pids of guard and worker."""
    (guard, _), (worker, _) = document(request)["processes"]
    return guard, worker


def charged(record: AttemptRecord | None) -> float:
    assert record is not None and record.finished is not None
    return record.finished - record.started


FAST = """
attempt.TERM_GRACE = attempt.GUARD_SLACK = 0.2
attempt.KILL_WAIT = processes.KILL_WAIT = 0.5
"""


# --- the record ---------------------------------------------------------------------------------------


def test_the_record_says_who_where_and_when(prepared: Prepared) -> None:
    request = prepared("sleep 0.2\n")
    before = time.time()
    record = execute(request)
    assert before <= record.started <= time.time()
    assert 0.2 <= charged(record) < 30
    assert record.host == os.uname().nodename
    assert record.nodes == (record.host,)
    assert document(request)["started"].endswith("+00:00")


def test_the_record_says_where_exactly_and_with_what(prepared: Prepared, machine: ExecutorUnderTest) -> None:
    request = replace(machine.request("true\n"), executable=sys.executable)
    files.prepare(request)
    with start(request, f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})") as process:
        process.communicate(timeout=60)
    found = document(request)
    assert found["version"] == __version__
    assert found["kernel"] == os.uname().release
    assert found["cpus"] == str(min(os.sched_getaffinity(0)))
    status = Path(sys.executable).stat()
    expected = {"path": sys.executable, "size": status.st_size, "mtime_ns": status.st_mtime_ns}
    assert found["executable"] == expected


def test_numbers_of_cpus_are_written_as_ranges() -> None:
    assert attempt._ranges([0, 1, 2, 5, 8, 9]) == "0-2,5,8-9"


def test_while_it_runs_the_record_has_no_end(prepared: Prepared) -> None:
    request = prepared("echo begun\nwhile [ ! -e go ]; do sleep 0.02; done\n")
    with start(request) as process:
        wait_for_file(request.directory / "stdout")
        record = files.read_record(request.directory)
        assert record is not None and record.finished is None and record.exit_code is None
        assert record.pid == process.pid
        (request.directory / "go").touch()
    assert charged(files.read_record(request.directory)) > 0


def test_secrets_of_the_environment_are_masked(prepared: Prepared) -> None:
    request = prepared('echo "$MY_TOKEN"\n')
    execute(
        request,
        MY_TOKEN="hunter2",
        AWS_secret="hunter2",
        db_passwd="hunter2",
        PROXY="http://me:hunter2@proxy:80/",
        PLAIN='tab\t "quoted" \\ ü',
    )
    text = (request.directory / "attempt.json").read_text()
    assert "hunter2" not in text
    environment = document(request)["environment"]
    assert environment["MY_TOKEN"] == "***"
    assert environment["PROXY"] == "http://***@proxy:80/"
    assert environment["PLAIN"] == 'tab\t "quoted" \\ ü'
    assert (request.directory / "stdout").read_text() == "hunter2\n"


def test_an_environment_that_is_not_utf8_is_recorded(prepared: Prepared) -> None:
    request = prepared()
    execute(request, ODD=os.fsdecode(b"\xff\xfe"))
    assert document(request)["environment"]["ODD"] == "\ufffd\ufffd"


def test_nodes_of_a_slurm_job_are_recorded(prepared: Prepared) -> None:
    record = execute(prepared(), SLURM_JOB_NODELIST="n[08-10],login")
    assert record.nodes == ("n08", "n09", "n10", "login")


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_clock_that_is_set_changes_no_charge(prepared: Prepared, jump: float) -> None:
    clock = f"import time\nreal, n = time.time, iter(range(9))\ntime.time = lambda: real() + next(n) * {jump}"
    assert 0 <= charged(execute(prepared("sleep 0.1\n"), clock)) < 30


def test_the_script_gets_the_environment_of_a_shell(prepared: Prepared) -> None:
    request = prepared(
        "grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | wc -w; readlink /proc/self/fd/0\n"
        "ps -o sid= -p $$ | tr -d ' '; echo $$; pwd; echo $PWD\n"
    )
    execute(request)
    blocked, ignored, descriptors, stdin, session, pid, *where = (
        (request.directory / "stdout").read_text().splitlines()
    )
    assert int(blocked.split()[1], 16) == 0
    ignored_by_python = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1
    assert int(ignored.split()[1], 16) & ignored_by_python == 0
    assert descriptors == "4"  # 0, 1, 2 and ls's own
    assert stdin == os.devnull
    assert session == pid
    assert where == [str(request.directory)] * 2


def test_a_parent_that_ignores_its_children_hides_no_exit_code(prepared: Prepared) -> None:
    ignoring = "import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    assert execute(prepared("exit 7\n"), ignoring).exit_code == 7


def test_starting_imports_nothing_slow() -> None:
    code = attempt.command("")[-2].replace("main()", "print(*sys.modules)")
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "orchestrator.executors.attempt" in loaded
    slow = {"json", "re", "enum", "signal", "subprocess", "pathlib", "typing", "dataclasses", "numpy", "site"}
    assert not slow & set(loaded)


def test_it_runs_as_a_script_too(prepared: Prepared) -> None:
    request = prepared("exit 3\n")
    assert subprocess.run([sys.executable, "-I", "-S", attempt.__file__, request.directory]).returncode == 0
    record = files.read_record(request.directory)
    assert record is not None and record.exit_code == 3


# --- the claim ----------------------------------------------------------------------------------------


def test_of_many_at_once_one_executes(prepared: Prepared) -> None:
    request = prepared("echo once >> times\n")
    ghosts = [start(request) for _ in range(6)]
    codes = []
    for ghost in ghosts:
        with ghost:
            assert ghost.communicate(timeout=60)[1] == b""
        codes.append(ghost.returncode)
    assert sorted(codes) == [attempt.DONE, *[attempt.CLAIMED] * 5]
    assert (request.directory / "times").read_text() == "once\n"


def test_a_controller_can_bar_what_was_never_prepared(tmp_path: Path) -> None:
    directory = tmp_path / "runs" / "attempt-1"
    assert attempt.claim(directory, "controller")
    assert not attempt.claim(directory, "another")
    holder = files.owners(directory)
    assert holder is not None and holder.who == "controller"
    assert holder.alive() == (os.getpid(),)


def test_without_a_request_nothing_is_claimed(tmp_path: Path) -> None:
    for content in (None, "", "[]", '{"run": "r"}', '{"run": "r", "attempt": 1, "limit": "soon"}'):
        if content is not None:
            (tmp_path / "request.json").write_text(content)
        done = subprocess.run(attempt.command(str(tmp_path)), capture_output=True, text=True, check=False)
        assert done.returncode == attempt.BROKEN
        assert str(tmp_path) in done.stderr
        assert not (tmp_path / "claim").exists()


# --- limits and cancellation --------------------------------------------------------------------------


def test_at_the_limit_everything_ends_within_what_is_reserved(prepared: Prepared) -> None:
    request = prepared(STUBBORN, limit=0.5)
    record = execute(request, FAST)
    assert record.timed_out and not record.cancelled
    assert record.exit_code == 128 + signal.SIGKILL
    assert not processes_of(request.directory)
    assert charged(record) <= request.limit + attempt.OVERRUN


def test_a_limit_may_be_longer_than_any_timer(prepared: Prepared) -> None:
    assert execute(prepared(limit=1e100)).exit_code == 0


def test_a_program_may_clean_up_at_the_limit(prepared: Prepared) -> None:
    request = prepared("trap 'sleep 0.1; echo clean; exit 9' TERM\nwhile :; do sleep 0.02; done\n", limit=0.3)
    record = execute(request)
    assert record.timed_out
    assert record.exit_code == 9
    assert (request.directory / "stdout").read_text() == "clean\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_cancels(prepared: Prepared, number: int) -> None:
    request = prepared("echo begun\nsleep 600\n")
    with start(request) as process:
        wait_for_file(request.directory / "stdout")
        process.send_signal(number)
    record = files.read_record(request.directory)
    assert record is not None and record.cancelled and not record.timed_out
    assert record.exit_code == 128 + signal.SIGTERM
    assert not processes_of(request.directory)


@pytest.mark.parametrize(("code", "variables"), [(1, {}), (0, {"SLURM_JOB_ID": "7"})])
def test_a_signal_that_ends_the_script_first_cancels_too(
    prepared: Prepared, code: int, variables: dict[str, str]
) -> None:
    request = prepared(f"trap 'exit {code}' TERM\necho $$\nwhile :; do sleep 0.01; done\n")
    with start(request, "processes._AFTERMATH = 30.0", **variables) as process:
        script = int(wait_for_file(request.directory / "stdout"))
        os.kill(script, signal.SIGTERM)
        wait_until_dead(script)
        process.terminate()
    record = files.read_record(request.directory)
    assert record is not None and record.cancelled
    assert record.exit_code == code


def test_leftovers_are_counted(prepared: Prepared) -> None:
    request = prepared("(setsid sleep 600 &)\n(setsid sleep 600 &)\n")
    assert execute(request).exit_code == 0
    assert document(request)["leftover"] == 2
    assert not processes_of(request.directory)


def test_a_fork_bomb_of_bounded_size_ends(prepared: Prepared) -> None:
    bomb = "import os, time\nfor _ in range(5): os.fork()\nif os.getpid() % 2: os.setsid()\ntime.sleep(600)"
    request = prepared(f"{sys.executable} -c '{bomb}' & sleep 0.5\n")
    execute(request, FAST)
    assert not processes_of(request.directory)


# --- sudden deaths ------------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", ["guard", "worker"])
def test_if_one_of_the_two_is_killed_the_other_ends_and_records_it(prepared: Prepared, victim: str) -> None:
    request = prepared(STUBBORN)
    with start(request, FAST) as process:
        wait_for_file(request.directory / "stdout")
        guard, worker = owners(request)
        assert guard == process.pid
        os.kill(guard if victim == "guard" else worker, signal.SIGKILL)
        process.wait(60)
        wait_until_dead(worker)
    record = files.read_record(request.directory)
    assert record is not None and record.cancelled
    assert record.exit_code == 128 + signal.SIGKILL
    assert 0 < charged(record) <= request.limit + attempt.OVERRUN
    assert not processes_of(request.directory)


def test_if_the_worker_is_killed_after_it_wrote_the_end_that_stands(prepared: Prepared) -> None:
    record = execute(
        prepared("exit 5\n"),
        """
import os
write = attempt._write_final
def write_and_die(directory, record):
    write(directory, record)
    os.kill(os.getpid(), 9)
attempt._write_final = write_and_die
""",
    )
    assert record.exit_code == 5
    assert not record.cancelled


def test_if_the_worker_is_stopped_the_guard_keeps_the_limit(prepared: Prepared) -> None:
    request = prepared(STUBBORN, limit=1.0)
    with start(request, FAST) as process:
        wait_for_file(request.directory / "stdout")
        os.kill(owners(request)[1], signal.SIGSTOP)
        assert process.wait(60) == attempt.DONE
    record = files.read_record(request.directory)
    assert record is not None and record.timed_out
    assert request.limit <= charged(record) <= request.limit + attempt.OVERRUN
    assert not processes_of(request.directory)


def test_if_both_are_killed_the_script_dies_with_them(prepared: Prepared) -> None:
    request = prepared("echo $$\nexec sleep 600\n")
    with start(request) as process:
        script = int(wait_for_file(request.directory / "stdout"))
        for pid in reversed(owners(request)):
            os.kill(pid, signal.SIGKILL)
        process.wait(60)
        wait_until_dead(script)
    record = files.read_record(request.directory)
    assert record is not None and record.finished is None
    holder = files.owners(request.directory)
    assert holder is not None and holder.alive() == ()


def test_the_guard_gives_signs_of_life(prepared: Prepared) -> None:
    request = prepared("while [ ! -e go ]; do sleep 0.02; done\n")
    with start(request, "attempt.HEARTBEAT = 0.02"):
        claim = request.directory / "claim"
        while not claim.exists():
            time.sleep(0.01)
        first = claim.stat().st_mtime_ns
        deadline = time.monotonic() + 30
        while claim.stat().st_mtime_ns == first and time.monotonic() < deadline:
            time.sleep(0.02)
        assert claim.stat().st_mtime_ns > first
        (request.directory / "go").touch()


# --- full disks ---------------------------------------------------------------------------------------


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
        *attempt.command(str(disk)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    record, size_of_more = done.stdout.splitlines()
    assert json.loads(record)["exit_code"] == 6
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
    record = execute(prepared("exit 5\n"), FULL_DISK.replace("COUNT", "2"))
    assert record.exit_code == 5


def test_a_record_that_cannot_be_completed_stays_whole(prepared: Prepared) -> None:
    request = prepared("exit 5\n")
    with start(request, "attempt.WRITE_PATIENCE = 0.1" + FULL_DISK.replace("COUNT", "99")) as process:
        _, complaints = process.communicate(timeout=60)
    assert process.returncode == attempt.BROKEN
    assert b"No space left" in complaints
    record = files.read_record(request.directory)
    assert record is not None and record.finished is None


def test_where_the_beginning_cannot_be_recorded_nothing_starts(prepared: Prepared) -> None:
    request = prepared("touch started\n")
    (request.directory / "attempt.json.next").mkdir()
    with start(request) as process:
        _, complaints = process.communicate(timeout=60)
    assert process.returncode == attempt.BROKEN
    assert b"nothing was started" in complaints
    assert not (request.directory / "started").exists()
