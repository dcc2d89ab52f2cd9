"""Effort runs in a campaign file: what they start, and what is refused before anything is spent."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.control import assembly, attempts
from orchestrator.errors import CampaignError
from orchestrator.types import Point

TEXT = """\
name: x
application: lulesh
executable: ./lulesh
parameters: {p: [1, 8], s: [10, 15]}
stop: {budget: 1}
measure: {time_limit: 10, effort: EFFORT}
"""


def program(path: Path, content: str = "#!/bin/sh\n") -> Path:
    path.write_text(content)
    path.chmod(0o755)
    return path


def load(folder: Path, effort: str, *overrides: str) -> Campaign:
    return loader.loads(TEXT.replace("EFFORT", effort), base_directory=folder, overrides=overrides)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program(tmp_path / "lulesh")
    return tmp_path


def test_true_means_the_program_beside_the_executable(folder: Path) -> None:
    program(folder / "lulesh-effort")
    loaded = load(folder, "true")
    assert loaded.measure.effort is not None
    assert loaded.measure.effort.executable == str(folder / "lulesh-effort")
    assert (loaded.measure.effort.repetitions, loaded.measure.effort.profiler) == (1, "effort")
    assert loaded.model.name == "swc"
    assert loaded.measure.repetitions.initial == 1 and loaded.measure.repetitions.maximum == 10
    assert loader.loads(loader.dump(loaded)) == loaded


def test_false_means_none_and_stays_false_in_the_file(folder: Path) -> None:
    loaded = load(folder, "false")
    assert loaded.measure.effort is None
    assert loaded.raw["measure"]["effort"] is False  # as campaigns of earlier versions have it
    assert loaded.model.name == "auto"
    assert loaded.measure.repetitions.initial == 2


def test_what_was_chosen_stays(folder: Path) -> None:
    program(folder / "lulesh-effort")
    loaded = load(folder, "true", "model=pmnf", "measure.repetitions.initial=4")
    assert (loaded.model.name, loaded.measure.repetitions.initial) == ("pmnf", 4)
    assert load(folder, "true", "measure.repetitions={maximum: 3}").measure.repetitions.initial == 1


def test_without_a_build_that_counts_it_is_refused(folder: Path) -> None:
    with pytest.raises(
        CampaignError, match=r":6: measure.effort: there is no .*/lulesh-effort: times and effort need a"
    ):
        load(folder, "true")


def test_of_a_variable_that_is_not_set_nothing_more_is_said(folder: Path) -> None:
    with pytest.raises(CampaignError) as raised:
        load(folder, "true", "executable=${NO_SUCH_VARIABLE}")
    assert "NO_SUCH_VARIABLE is not set" in str(raised.value)
    assert "measure.effort" not in str(raised.value)


def test_a_program_that_does_not_count_is_refused(folder: Path) -> None:
    program(folder / "lulesh-effort", "\x7fELF without the library")
    with pytest.raises(
        CampaignError, match=r"measure.effort: .*/lulesh-effort was not built to count effort"
    ):
        load(folder, "true")
    program(folder / "other", "\x7fELF without the library")
    with pytest.raises(CampaignError, match=r"measure.effort.executable: .* was not built to count effort"):
        load(folder, "{executable: ./other, repetitions: 2}")
    program(folder / "lulesh-effort", "\x7fELF liborchestrator-effort.so")
    assert load(folder, "true").measure.effort is not None


def test_profiles_of_scorep_need_no_library_of_ours(folder: Path) -> None:
    program(folder / "scorep-build", "\x7fELF")
    loaded = load(folder, "{executable: ./scorep-build, profiler: scorep}")
    assert loaded.measure.effort is not None and loaded.measure.effort.profiler == "scorep"


@pytest.mark.parametrize(
    ("effort", "message"),
    [
        ("{executable: ./gone}", r"measure.effort.executable: './gone' does not exist"),
        ("{executable: ./lulesh, slowdown: 0.5}", r"measure.effort.slowdown: .*at least 1"),
        ("{executable: ./lulesh, repetitions: 0}", r"measure.effort.repetitions: .*at least 1"),
        ("{executable: ./lulesh, profiler: vampir}", r"measure.effort.profiler: unknown reader"),
        (
            "{executable: ./lulesh, template: ./gone.sh}",
            r"measure.effort.template: './gone.sh' does not exist",
        ),
        ("{executible: ./lulesh}", r"measure.effort.executible: unknown key; did you mean 'executable'"),
        ("[1]", r"measure.effort: .*a mapping of keys to values"),
        ("maybe", r"measure.effort: .*a mapping of keys to values"),
    ],
)
def test_mistakes_are_named_with_their_key(folder: Path, effort: str, message: str) -> None:
    with pytest.raises(CampaignError, match=message):
        load(folder, effort)


def test_no_metric_comes_from_both_kinds_of_runs(folder: Path) -> None:
    program(folder / "lulesh-effort")
    with pytest.raises(
        CampaignError, match=r"measure.metrics: visits would be measured by time runs and counted"
    ):
        load(folder, "true", "measure.metrics=[time, visits]", "measure.profiler=scorep")


def test_a_rehearsal_counts_without_a_program_that_does(folder: Path) -> None:
    loaded = load(folder, "true", "executor={name: simulated, truth: {main: '1'}}")
    assert loaded.measure.effort is not None and loaded.model.name == "swc"


def test_effort_runs_have_a_script_of_their_own(folder: Path) -> None:
    program(folder / "lulesh-effort")
    (folder / "own.sh").write_text("# own\n{{prologue}}\n{{environment}}\n{{launcher}} {{command}}\n")
    loaded = load(folder, "{executable: ./lulesh-effort, template: own.sh, environment: {DEPTH: '3'}}")
    built = assembly.assemble(loaded)
    point = Point.of(p=1, s=10)
    timed = attempts.script(built, point, built.resources(point))
    counted = attempts.script(built, point, built.resources(point), "effort")
    assert f"{folder}/lulesh " in timed and "ORCHESTRATOR_EFFORT" not in timed and "DEPTH" not in timed
    assert counted.startswith("# own\n") and f"{folder}/lulesh-effort " in counted
    assert 'export ORCHESTRATOR_EFFORT_DIRECTORY="$PWD"/effort' in counted
    assert "export DEPTH=3" in counted
