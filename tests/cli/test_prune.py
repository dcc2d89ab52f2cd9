"""``prune``: a dry run first; everything works afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import LOCAL, SIMULATED, run, tree, write_campaign

BULKY = '#!/bin/sh\necho "time: $1.5 s"\nhead -c 5000 /dev/zero > state.bin\necho 1 > result.dat\n'


@pytest.fixture
def measured() -> Path:
    write_campaign(Path.cwd(), LOCAL.replace("patience: 2", "patience: 1"), BULKY)
    assert run("run", "campaign.yaml").code == 0
    return Path("tiny")


def test_it_only_says_what_it_would_delete(measured: Path) -> None:
    before = tree(measured)
    result = run("prune", measured)
    assert result.code == 0
    assert "would delete" in result.out and "--delete" in result.out and "*.bin" in result.out
    assert tree(measured) == before


def test_resume_status_log_report_and_model_work_afterwards(measured: Path) -> None:
    status = run("status", measured, "--json").document
    told = run("log", measured).out
    found = run("prune", measured, "--delete", "--keep", "*.dat", "--json").document
    attempts = status["attempts"]
    assert (found["deleted"], found["files"], found["bytes"]) == (True, attempts, 5000 * attempts)
    assert not list(measured.rglob("state.bin")) and len(list(measured.rglob("result.dat"))) == attempts
    assert run("status", measured, "--json").document == status
    assert run("log", measured).out == told
    assert run("report", measured).code == 0
    assert run("model", measured).code == 0
    one = run("status", measured, "--json", "--run", "n=1/time-1").document["attempts"][0]
    assert one["script"] and one["record"]["exit_code"] == 0
    more = run("resume", measured, "--set", "stop.patience=5", "--set", "strategy.name=full", "--json")
    assert more.code == 0 and more.document["runs"]["measured"] >= status["runs"]["measured"]
    assert run("prune", measured).out.startswith("would delete")


def test_output_files_that_a_reader_wants_are_kept() -> None:
    output = "[{callpath: main, pattern: '(\\d+)', file: '*.dat'}]"
    write_campaign(Path.cwd(), LOCAL.replace("[{callpath: main, pattern: 'time: (\\S+) s'}]", output), BULKY)
    assert run("run", "campaign.yaml", "--json").document["runs"]["measured"] > 0
    run("prune", "tiny", "--delete")
    assert list(Path("tiny").rglob("result.dat")) and not list(Path("tiny").rglob("state.bin"))


def test_a_rehearsal_has_nothing_to_prune() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    assert run("prune", "rehearsal").out.startswith("would delete 0 files")
    assert run("prune", "nothing").code == 2
