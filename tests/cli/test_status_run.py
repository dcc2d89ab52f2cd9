"""``status --run``: everything known of one run."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import LOCAL, SIMULATED, run, write_campaign, write_program

FAILING = """\
#!/bin/sh
[ "$1" = --version ] && { echo "tiny 1.2"; exit; }
echo "cpu-bind=MASK - here, task  0  0 [12]: mask 0x3 set" >&2
[ "$1" = 3 ] && exit 4
echo "time: $1.5 s"
"""
PROLOGUE = r"""["export LOADEDMODULES=gcc/12:mpi/4 MY_TOKEN=hunter2 URL=http://me:hunter2@x/ LINES='a
b'"]"""


@pytest.fixture
def measured() -> Path:
    text = LOCAL.replace("launcher: none", f"launcher: none, prologue: {PROLOGUE}")
    text = text.replace("application: 0", "application: 1") + "version_arguments: [--version]\n"
    write_campaign(Path.cwd(), text.replace("\nb'", r"\\nb'"), FAILING)
    assert run("run", "campaign.yaml").code == 0
    return Path("tiny")


def dossier(*arguments: str) -> Any:
    return run("status", "tiny", "--json", "--run", *arguments).document


def test_an_accepted_attempt(measured: Path) -> None:
    found = dossier("n=2/time-1")
    assert (found["run"], found["point"], found["outcome"]) == ("n=2/time-1", {"n": 2}, "measured")
    assert found["proposed"]["round"] == 1
    (attempt,) = found["attempts"]
    folder = measured / "runs/n=2/time-1/attempt-1"
    assert attempt["directory"] == str(folder)
    assert attempt["script"] == (folder / "run.sh").read_text()
    assert attempt["record"]["exit_code"] == 0
    assert attempt["record"]["version"] == attempt["controller"]["version"]
    assert attempt["cost_core_hours"] > 0
    executable = attempt["executable"]
    program = Path("program.sh")
    assert executable["path"] == str(program.absolute())
    assert executable["sha256"] == hashlib.sha256(program.read_bytes()).hexdigest()
    assert executable["version"] == "tiny 1.2"
    assert "changed" not in executable


def test_modules_and_environment_are_those_after_the_prologue_without_secrets(measured: Path) -> None:
    (attempt,) = dossier("n=2/time-1")["attempts"]
    assert attempt["modules"] == ["gcc/12", "mpi/4"]
    assert attempt["environment"]["MY_TOKEN"] == "***"
    assert attempt["environment"]["URL"] == "http://***@x/"
    assert attempt["environment"]["OMP_NUM_THREADS"] == "1"
    recorded = (measured / "runs/n=2/time-1/attempt-1/environment.recorded").read_text()
    assert "hunter2" not in recorded


def test_binding_is_what_the_launcher_reports(measured: Path) -> None:
    (attempt,) = dossier("n=2/time-1")["attempts"]
    assert attempt["binding"]["ranks"] == ["cpu-bind=MASK - here, task  0  0 [12]: mask 0x3 set"]
    assert attempt["binding"]["cpus"] == attempt["record"]["cpus"] != ""


def test_failed_attempts_and_what_became_of_the_run(measured: Path) -> None:
    found = dossier("n=3/time-1")
    assert found["outcome"].startswith("given up: application: exit code 4")
    assert [item["failure"] for item in found["attempts"]] == ["application", "application"]
    text = run("status", measured, "--run", "n=3/time-1").out
    assert re.search(r"proposed \d{4}-\d\d-\d\d \d\d:\d\d:\d\d in round 1", text)
    assert re.search(r"core-hours, 0\.\d+ s on 1 core\n", text) and "1 cores" not in text
    assert text.count("failed (application): exit code 4") == 2
    assert "version      tiny 1.2" in text and "exec" in text


@pytest.mark.parametrize(
    "name", ["n=2/time-1/attempt-1", "tiny/runs/n=2/time-1/", "tiny/runs/n=2/time-1/attempt-1"]
)
def test_paths_and_attempts_name_their_run(measured: Path, name: str) -> None:
    assert dossier(name)["run"] == "n=2/time-1"


def test_a_run_that_is_not_there_is_named_with_the_closest(measured: Path) -> None:
    result = run("status", measured, "--run", "n=9/time-1")
    assert result.code == 2
    assert "no run 'n=9/time-1'; did you mean 'n=1/time-1'?" in result.err


def test_an_executable_that_was_replaced_is_told() -> None:
    write_campaign(Path.cwd(), LOCAL.replace("patience: 2", "patience: 2, failures: 1"), FAILING)
    run("run", "campaign.yaml")
    write_program(Path.cwd(), FAILING.replace("exit 4", "exit 3"))
    run("resume", "tiny", "--set", "stop.failures=9")
    attempts = [item for n in range(1, 6) for k in (1, 2) for item in _attempts(f"n={n}/time-{k}")]
    hashes = {item["executable"]["sha256"] for item in attempts}
    assert len(hashes) == 2, "each attempt is ascribed to the file that it started"


def _attempts(name: str) -> list[Any]:
    result = run("status", "tiny", "--json", "--run", name)
    return list(result.document["attempts"]) if result.code == 0 else []


def test_a_file_replaced_under_the_controller_is_not_taken_for_the_hashed_one(measured: Path) -> None:
    record = measured / "runs/n=2/time-1/attempt-1/attempt.json"
    size = Path("program.sh").stat().st_size
    record.write_text(record.read_text().replace(f'"size": {size}', f'"size": {size + 1}'))
    (attempt,) = dossier("n=2/time-1")["attempts"]
    assert "sha256" not in attempt["executable"]
    assert "replaced" in attempt["executable"]["changed"]


def test_a_simulated_run_is_known_from_the_journal_alone() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    result = run("status", "rehearsal", "--run", "p=1,s=10/time-1")
    assert result.code == 0
    assert "run p=1,s=10/time-1: measured" in result.out


def test_costs_are_in_the_unit_of_the_budget_also_where_the_journal_is_searched() -> None:
    write_campaign(Path.cwd(), SIMULATED.replace("5 core-hours", "18000 core-seconds"), None)
    run("run", "campaign.yaml")
    said = run("status", "rehearsal", "--run", "p=1,s=10/time-1").out
    assert re.search(r"cost +\S+ core-seconds, ", said)
    assert "core-hours" not in said
