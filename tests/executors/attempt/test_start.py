"""The process that owns one attempt: how it starts, what its script is given, and that it is the only one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from orchestrator.executors.attempt import worker
from orchestrator.executors.attempt.record import owners
from tests.executors.attempt.attempts import execute, start
from tests.executors.conftest import Prepared


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


def test_starting_needs_only_the_standard_library() -> None:
    code = worker.command("")[-2].replace("main()", "print(*sys.modules)")
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    ours = {name for name in loaded if name.split(".")[0] == "orchestrator"}
    assert worker.__name__ in ours and len(ours) <= 7, ours
    foreign = {name.split(".")[0] for name in loaded} - {"orchestrator", "__main__", *sys.stdlib_module_names}
    assert {name for name in foreign if not name.startswith("__")} == set()
    assert "site" not in loaded


# --- the claim ----------------------------------------------------------------------------------------


def test_of_many_at_once_one_executes(prepared: Prepared) -> None:
    request = prepared("echo once >> times\n")
    contenders = [start(request) for _ in range(6)]
    codes = []
    for contender in contenders:
        with contender:
            assert contender.communicate(timeout=300)[1] == b""
        codes.append(contender.returncode)
    assert sorted(codes) == [worker.DONE, *[worker.CLAIMED] * 5]
    assert (request.directory / "times").read_text() == "once\n"


def test_a_controller_can_revoke_what_was_never_prepared(tmp_path: Path) -> None:
    directory = tmp_path / "runs" / "attempt-1"
    assert worker.claim(directory, "controller")
    assert not worker.claim(directory, "another")
    holder = owners(directory)
    assert holder is not None and holder.who == "controller"
    assert holder.alive() == (os.getpid(),)


def test_without_a_request_nothing_is_claimed(tmp_path: Path) -> None:
    for content in (None, "", "[]", '{"run": "r"}', '{"run": "r", "attempt": 1, "limit": "soon"}'):
        if content is not None:
            (tmp_path / "request.json").write_text(content)
        done = subprocess.run(worker.command(str(tmp_path)), capture_output=True, text=True, check=False)
        assert done.returncode == worker.BROKEN
        assert str(tmp_path) in done.stderr
        assert not (tmp_path / "claim").exists()
