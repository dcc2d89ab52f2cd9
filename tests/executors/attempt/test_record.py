"""The process that owns one attempt: what it records."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import __version__
from orchestrator.executors.attempt import worker
from orchestrator.executors.attempt.directory import prepare
from orchestrator.executors.attempt.processes import load_between
from orchestrator.executors.attempt.record import _shares, read_record
from tests.executors.attempt.attempts import charged, document, execute, start
from tests.executors.conftest import Prepared
from tests.executors.under_test import ExecutorUnderTest, wait_for_file


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
    prepare(request)
    with start(request, f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})") as process:
        process.communicate(timeout=300)
    found = document(request)
    assert found["version"] == __version__
    assert found["kernel"] == os.uname().release
    assert found["cpus"] == str(min(os.sched_getaffinity(0)))
    status = Path(sys.executable).stat()
    expected = {"path": sys.executable, "size": status.st_size, "mtime_ns": status.st_mtime_ns}
    assert found["executable"] == expected


def test_numbers_of_cpus_are_written_as_ranges() -> None:
    assert worker._ranges([0, 1, 2, 5, 8, 9]) == "0-2,5,8-9"


def test_while_it_runs_the_record_has_no_end(prepared: Prepared) -> None:
    request = prepared("echo begun\nwhile [ ! -e go ]; do sleep 0.02; done\n")
    with start(request) as process:
        wait_for_file(request.directory / "stdout")
        record = read_record(request.directory)
        assert record is not None and record.finished is None and record.exit_code is None
        assert record.pid == process.pid
        (request.directory / "go").touch()
    assert charged(read_record(request.directory)) > 0


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


BURN = "exec 3< /dev/zero; head -c 3000000000 <&3 > /dev/null\n"


def test_the_record_says_what_else_ran_on_its_cpus(prepared: Prepared) -> None:
    """A process that shares the only CPU of an attempt takes about half. Its own work does not count."""
    cpu = max(os.sched_getaffinity(0))
    bind = f"import os; os.sched_setaffinity(0, {{{cpu}}})"
    burn = f"{bind}\nprint(flush=True)\nwhile True: pass"
    # In a session of its own, as the attempt: Linux shares CPUs among sessions (autogroups) first.
    other = subprocess.Popen([sys.executable, "-c", burn], stdout=subprocess.PIPE, start_new_session=True)
    assert other.stdout is not None
    try:
        other.stdout.readline()  # on a busy machine the attempt would have ended before it begins
        disturbed = execute(prepared(BURN), bind)
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    assert disturbed.load["others"] > 0.2
    assert set(disturbed.load) == {"others", "stolen"}


def test_the_load_is_unknown_where_slurm_starts_the_ranks(prepared: Prepared) -> None:
    request = prepared("true\n")
    record = execute(request, SLURM_JOB_ID="7")
    assert set(record.load) <= {"stolen"}
    assert document(request)["load"]["own"] is None


@given(
    st.dictionaries(
        st.sampled_from(["cpus", "busy", "own", "stolen", "elsewhere"]),
        st.none() | st.floats(0, 1e9) | st.text() | st.booleans(),
    )
    | st.text()
)
def test_a_strange_load_never_makes_a_record_unreadable(load: object) -> None:
    shares = _shares(load, 2.0)
    assert set(shares) <= {"others", "stolen"}
    assert all(0 <= share <= 1 for share in shares.values())


def test_load_between_two_readings_counts_only_the_given_cpus() -> None:
    before = {0: (10.0, 0.0), 1: (20.0, 1.0), 2: (0.0, 0.0)}
    after = {0: (11.5, 0.5), 1: (22.0, 1.0), 3: (5.0, 5.0)}
    found = load_between(before, after, {0, 3})
    assert found == {"cpus": 1, "busy": 1.5, "stolen": 0.5, "elsewhere": 2.0}
    assert load_between({}, {}, {0})["cpus"] == 0
