"""From a campaign file to models of times and counts, with real programs on this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.cli.main import main
from orchestrator.control import overview, session
from orchestrator.journal.state import RunStatus
from tests.instrumentation import tools

CAMPAIGN = """
name: square
application: generic
executable: ./square
program: {arguments: ["{n}"], output: [{callpath: main->solve, pattern: 'solve: (\\S+) s'}]}
parameters: {n: [100, 200, 300, 400, 500]}
evaluation_point: {n: 1000}
measure: {effort: true, time_limit: 20 s, repetitions: {initial: 1, maximum: 1}}
strategy: full
stop: {budget: 1 core-hours, patience: 5}
executor: {name: local, slots: 2}
"""


@pytest.fixture
def folder(cache: Path, tmp_path: Path) -> Path:
    source = str(tools.PROGRAMS / "square.c")
    subprocess.run(["gcc", "-O2", source, "-o", str(tmp_path / "square")], check=True)
    tools.compile_program(tools.compiler("gcc", cache), "square.c", tmp_path / "square-effort")
    return tmp_path


@pytest.mark.slow
def test_counts_become_models_beside_those_of_times(folder: Path) -> None:
    chosen = loader.loads(CAMPAIGN, "square.yaml", folder)
    state = session.run(chosen, folder / "measured")
    assert {item.status for item in state.runs.values()} == {RunStatus.MEASURED}
    assert len(state.runs) == 10
    models = {(m["callpath"], m["metric"]): m for m in overview.status_of(chosen, state)["models"]}
    blocks, times = models["main->solve", "basic_blocks"], models["main->solve", "time"]
    assert "n**2" in blocks["normal_form"]
    predicted = blocks["predictions"][0]["value"]
    tools.start([folder / "square-effort", "1000"], folder / "far")
    counted = tools.counts(folder / "far")["basic_blocks"]["main->solve"]
    assert predicted == pytest.approx(counted, rel=0.001)
    assert "n**2" in times["normal_form"]  # the prior, whatever noise there was


@pytest.mark.slow
def test_counting_that_fails_leaves_the_times(folder: Path) -> None:
    subprocess.run(["strip", str(folder / "square-effort")], check=True)
    chosen = loader.loads(CAMPAIGN, "square.yaml", folder)
    state = session.run(chosen, folder / "measured")
    by_kind = {
        kind: {i.status for r, i in state.runs.items() if r.kind == kind} for kind in ("time", "effort")
    }
    assert by_kind == {"time": {RunStatus.MEASURED}, "effort": {RunStatus.GIVEN_UP}}
    reasons = [item.reason for run, item in state.runs.items() if run.kind == "effort"]
    assert "have no names: link it without -s" in reasons[0]
    models = overview.status_of(chosen, state)["models"]
    assert ("main->solve", "time") in {(m["callpath"], m["metric"]) for m in models}


def test_the_plan_shows_runs_and_scripts_of_both_kinds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "square.yaml").write_text(CAMPAIGN)
    assert main(["plan", str(folder / "square.yaml")]) == 0
    printed = capsys.readouterr().out
    assert "n=100 (effort)" in printed
    assert "--- script of n=100/time-1 ---" in printed and f"{folder}/square 100" in printed
    assert "--- script of n=100/effort-1 ---" in printed and f"{folder}/square-effort 100" in printed
