"""Campaigns that are interrupted, resumed, stopped and continued with other rules."""

from __future__ import annotations

import json
import resource
import shlex
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestrator.journal.file import FILE_NAME
from tests.cli.running import COMMAND, LOCAL, PROGRAM, SIMULATED, run, start, tree, write_campaign

# Runs last until the file "go" is there; then they end at once.
WAITING = """\
#!/bin/sh
while [ ! -e {folder}/go ]; do sleep 0.05; done
echo "time: $1.5 s"
"""


def started_campaign(text: str = LOCAL) -> subprocess.Popen[str]:
    """Start a campaign of waiting programs; return when the first of them runs."""
    write_campaign(Path.cwd(), text, WAITING.format(folder=Path.cwd()))
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it, and so would every child
    process = start("run", "campaign.yaml", "--json")
    for _ in range(3000):
        if list(Path("tiny").glob("runs/*/*/*/attempt.json")):
            return process
        if process.poll() is not None:
            break
        time.sleep(0.05)
    process.kill()
    raise AssertionError(f"no run began: {process.communicate()}")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_campaign_exits_with_3_and_is_completed_by_resume(number: signal.Signals) -> None:
    process = started_campaign()
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 3, err
    assert "orchestrator resume tiny" in err
    assert "Traceback" not in err
    status = json.loads(out)
    assert status["state"] == "running"
    assert status["runs"]["in flight"] == 1
    cost = status["cost"]
    assert cost["reserved"] > 0
    assert cost["spent"] + cost["reserved"] + cost["left"] == pytest.approx(cost["budget"])
    Path("go").touch()
    resumed = run("resume", "tiny", "--json")
    assert resumed.code == 0, resumed.err
    first = resumed.err.splitlines()[0]
    assert first.startswith("round 1 as it stands: ") and " measured, 1 in flight, " in first, resumed.err
    assert "as it stands" not in err
    assert resumed.document["state"] == "stopped"
    assert resumed.document["runs"]["measured"] == 10
    assert resumed.document["attempts"] == 10, "a run that was in flight is adopted, not repeated"
    assert resumed.document["cost"]["reserved"] == 0


@pytest.mark.slow
def test_a_second_signal_ends_at_once_and_the_campaign_can_still_be_resumed() -> None:
    process = started_campaign()
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)  # two SIGINT might be merged into one
    _, err = process.communicate(timeout=300)
    assert process.returncode == 3, err
    assert "Traceback" not in err
    Path("go").touch()
    assert run("resume", "tiny", "--json").document["runs"]["measured"] == 10


@pytest.mark.slow
def test_a_killed_campaign_is_completed_by_run_as_well() -> None:
    process = started_campaign()
    process.kill()
    process.communicate()
    Path("go").touch()
    status = run("run", "campaign.yaml", "--json").document
    assert status["runs"]["measured"] == 10
    assert status["attempts"] == 10


@pytest.mark.slow
def test_a_second_controller_is_refused_with_the_pid_of_the_first() -> None:
    process = started_campaign()
    try:
        for command in (("run", "campaign.yaml"), ("resume", "tiny")):
            second = run(*command)
            assert second.code == 1
            assert f"pid {process.pid}" in second.err
            assert second.out == ""
        assert run("status", "tiny", "--json").document["runs"]["in flight"] == 1, "reading needs no lock"
        assert process.poll() is None
    finally:
        Path("go").touch()
        process.communicate(timeout=300)
    assert process.returncode == 0


# Else a process whose disk is full leaves modules half compiled, and no other can import them.
UNCOMPILED = {"PYTHONDONTWRITEBYTECODE": "1"}


@pytest.mark.slow
def test_a_campaign_whose_journal_may_not_grow_is_completed_as_if_nothing_had_happened() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    whole = run("run", "campaign.yaml", "--directory", "whole", "--json").document
    full = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (12_000, 12_000))
    process = start("run", "campaign.yaml", "--directory", "full", environment=UNCOMPILED, preexec_fn=full)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 3, err
    assert out == ""
    assert "journal.jsonl: File too large" in err and "(ulimit -f" in err
    resumed = run("resume", "full", "--json").document
    assert comparable(resumed) == comparable(whole)


@pytest.mark.slow
def test_rules_that_cannot_be_written_exit_with_3_and_name_the_file() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    assert run("run", "campaign.yaml").code == 0
    before = Path("rehearsal/campaign.yaml").read_bytes()
    full = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (512, 512))
    process = start("resume", "rehearsal", "--set", "stop.budget=6", environment=UNCOMPILED, preexec_fn=full)
    err = process.communicate(timeout=300)[1]
    assert process.returncode == 3, err
    assert "campaign.yaml: File too large" in err and "(ulimit -f" in err
    assert Path("rehearsal/campaign.yaml").read_bytes() == before
    assert run("resume", "rehearsal", "--set", "stop.budget=6").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_harm_nothing(closed: str) -> None:
    write_campaign(Path.cwd())
    words = " ".join(map(shlex.quote, COMMAND))
    done = subprocess.run(
        ["sh", "-c", f"{words} run campaign.yaml {closed}"], capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert run("status", "tiny", "--json").document["state"] == "stopped"


@pytest.mark.slow
def test_a_directory_that_is_deleted_under_a_controller_stops_it() -> None:
    write_campaign(Path.cwd(), LOCAL, PROGRAM.replace("echo", "sleep 0.5; echo"))
    process = start("run", "campaign.yaml")
    while not list(Path("tiny").glob("runs/**/attempt.json")):
        assert process.poll() is None
    Path("tiny").rename("elsewhere")
    err = process.communicate(timeout=300)[1]
    assert process.returncode == 3, err
    assert "journal.jsonl was deleted or moved" in err and "resume it" in err
    Path("elsewhere").rename("tiny")
    assert run("resume", "tiny").code == 0


@pytest.mark.slow
def test_cancel_ends_what_an_interrupted_campaign_left_running() -> None:
    process = started_campaign()
    beside = run("cancel", "tiny")
    assert beside.code == 1 and "is held by another controller" in beside.err
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=300) == 3
    [record] = Path("tiny").glob("runs/*/*/*/attempt.json")
    cancelled = run("cancel", "tiny", "--json")
    assert cancelled.code == 0, cancelled.err
    assert len(cancelled.document["attempts"]) == 1 and cancelled.document["charged"] > 0
    assert json.loads(record.read_text())["finished"] is not None
    status = run("status", "tiny", "--json").document
    assert status["runs"]["in flight"] == 0 and status["cost"]["reserved"] == 0
    assert status["cost"]["left"] == pytest.approx(cancelled.document["left"])
    assert run("cancel", "tiny").out == "nothing was in flight\n"
    Path("go").touch()
    resumed = run("resume", "tiny", "--json").document
    assert resumed["state"] == "stopped" and resumed["runs"]["given up"] == 0


def comparable(status: dict[str, Any]) -> Any:
    """Return what no interruption may change; which runs share a job may, and the last digits with it."""
    kept = {key: value for key, value in status.items() if key not in ("id", "jobs")}
    return json.loads(json.dumps(kept), parse_float=lambda text: float(f"{float(text):.9g}"))


@pytest.mark.slow
def test_a_broken_pipe_does_not_stop_a_campaign() -> None:
    write_campaign(Path.cwd())
    process = start("run", "campaign.yaml", stderr=subprocess.STDOUT)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=300) == 0
    assert run("status", "tiny", "--json").document["state"] == "stopped"


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("doctor", "campaign.yaml"),
        ("doctor", "campaign.yaml", "--json"),
        ("init", "--command", "./program.sh -n {n}", "--values", "n=1,2", "--executor", "local"),
    ],
)
def test_a_broken_pipe_does_not_hide_what_an_exit_code_says(command: tuple[str, ...]) -> None:
    write_campaign(
        Path.cwd(), LOCAL.replace("launcher: none", "launcher: no-such-launcher"), "#!/bin/sh\nexit 7\n"
    )
    process = start(*command)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    process.stderr.read()
    assert process.wait(timeout=300) == 1


@pytest.mark.slow
def test_a_broken_pipe_does_not_make_a_success_of_a_campaign_that_measured_nothing() -> None:
    write_campaign(Path.cwd(), program="#!/bin/sh\nexit 1\n")
    process = start("run", "campaign.yaml")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    process.stderr.read()
    assert process.wait(timeout=300) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("schema",),
        ("plan", "campaign.yaml", "--no-rehearsal"),
        ("plan", "campaign.yaml", "--no-rehearsal", "--json"),
        ("--help",),
        ("run", "--help"),
    ],
)
@pytest.mark.parametrize("unbuffered", ["1", ""])
def test_a_broken_pipe_is_quiet(command: tuple[str, ...], unbuffered: str) -> None:
    write_campaign(Path.cwd())
    process = start(*command, environment={"PYTHONUNBUFFERED": unbuffered})
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=300) == 0
    assert err == ""


def test_a_stopped_campaign_continues_with_a_larger_budget() -> None:
    write_campaign(Path.cwd(), SIMULATED.replace("5 core-hours", "0.3 core-hours"), None)
    first = run("run", "campaign.yaml", "--set", "stop.patience=99", "--json").document
    assert first["stop_reason"]["rule"] in ("budget", "exhausted")  # nothing affordable is left
    rules = ("--set", "stop.budget=1 core-hour", "--set", "stop.patience=99")
    resumed = run("resume", "rehearsal", *rules, "--json")
    assert "rules changed: stop.budget: 0.3 -> 1 core-hours" in resumed.err
    second = resumed.document
    assert second["cost"]["budget"] == 1
    assert second["cost"]["spent"] > first["cost"]["spent"]
    assert second["runs"]["measured"] > first["runs"]["measured"]
    assert second["state"] == "stopped"
    assert run("resume", "rehearsal", "--json").document == second, "the new rule is remembered"


@pytest.mark.parametrize(
    ("key", "section", "remedy"),
    [
        ("settings.r=3", "settings", "--directory"),
        ("name=other", "name", "--directory"),
        ("measure.aggregate=max", "measure", "reread"),
        ("seed=4", "seed", "--directory"),
    ],
)
def test_what_is_measured_may_not_change(key: str, section: str, remedy: str) -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    known = [path for path in Path("rehearsal").iterdir() if path.name != "controller.json"]
    before = [path.read_bytes() for path in known]
    result = run("run", "campaign.yaml", "--set", key, "--directory", "rehearsal")
    assert result.code == 2
    assert section in result.err
    assert remedy in result.err
    assert [path.read_bytes() for path in known] == before


@pytest.mark.parametrize("command", ["resume", "status"])
@pytest.mark.parametrize("folder", ["empty", "missing"])
def test_a_directory_without_a_campaign(command: str, folder: str) -> None:
    Path("empty").mkdir()
    before = tree(Path.cwd())
    result = run(command, folder)
    assert result.code == 2
    assert folder in result.err
    assert "orchestrator run" in result.err
    assert tree(Path.cwd()) == before


@pytest.mark.parametrize("command", ["resume", "status", "run", "model", "export"])
def test_an_unreadable_journal(command: str) -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    path = Path("rehearsal") / FILE_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], lines[3][: len(lines[3]) // 2] + b"\n", *lines[4:]]))
    damaged = path.read_bytes()
    options = {"run": ["campaign.yaml"], "export": ["rehearsal", "--format", "csv"]}
    result = run(command, *options.get(command, ["rehearsal"]))
    assert result.code == 1
    assert "line 4" in result.err
    assert "journal.jsonl" in result.err
    assert result.out == ""
    assert path.read_bytes() == damaged, "damage is never repaired silently"


def test_a_torn_last_line_is_no_damage() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    first = run("run", "campaign.yaml", "--json").document
    with (Path("rehearsal") / FILE_NAME).open("ab") as file:
        file.write(b'{"schema":1,"sequence":')
    assert run("status", "rehearsal", "--json").document == first
    assert run("resume", "rehearsal", "--json").document == first
