"""Work spread over processes: the results of this one, whatever happens to them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import cores
from tests.processes import wait_until_dead
from tests.slurm.daemons import wait_for


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_WORTH", 0.0)
    monkeypatch.setattr(cores, "_cores", lambda: 2)


def _where(number: int) -> tuple[int, int]:
    time.sleep(0.01)
    return number, os.getpid()


def test_results_are_in_order_and_from_other_processes() -> None:
    found = list(cores.spread(_where, range(6)))
    assert [number for number, _ in found] == [0, 1, 2, 3, 4, 5]
    assert found[0][1] == os.getpid()  # the first one tells how long they take
    assert os.getpid() not in {process for _, process in found[1:]}


def test_processes_wait_for_more_work() -> None:
    found = [process for _ in range(3) for _, process in cores.spread(_where, range(20))]
    assert 1 <= len({*found} - {os.getpid()}) <= 2


def test_what_takes_no_time_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_WORTH", 5.0)
    assert {process for _, process in cores.spread(_where, range(6))} == {os.getpid()}


def test_functions_that_are_made_here_can_be_spread() -> None:
    factor = 3
    assert list(cores.spread(lambda number: factor * number, range(4))) == [0, 3, 6, 9]


def test_what_a_killed_process_left_is_done_here() -> None:
    here = os.getpid()

    def killed_elsewhere(number: int) -> int:
        if os.getpid() != here and number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    assert list(cores.spread(killed_elsewhere, range(5))) == [0, 1, 2, 3, 4]


def test_an_error_of_a_task_is_raised_as_if_nothing_was_spread() -> None:
    def fails(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    spread: Iterator[int] = cores.spread(fails, range(5))
    assert [next(spread) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(spread)


def test_processes_do_not_spread_further() -> None:
    assert list(cores.spread(_cores_there, range(3)))[1:] == [1, 1]


def _cores_there(_: int) -> int:
    return cores._cores()


ORPHANED = """
import os, sys, time
from pathlib import Path
from orchestrator import cores

def wait(number):
    Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(0.1 if number == 0 else 600)

cores._WORTH, cores._cores = 0.0, lambda: 2
list(cores.spread(wait, range(3)))
"""


def test_processes_end_with_the_one_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "seen").mkdir()
    script = tmp_path / "script.py"
    script.write_text(ORPHANED.replace("sys.argv[1]", repr(str(tmp_path / "seen"))))
    parent = subprocess.Popen([sys.executable, script])
    try:
        wait_for(lambda: len(list((tmp_path / "seen").iterdir())) == 3, "processes")
    finally:
        parent.kill()
        parent.wait()
    started = {int(path.name) for path in (tmp_path / "seen").iterdir()} - {parent.pid}
    wait_until_dead(*started)
