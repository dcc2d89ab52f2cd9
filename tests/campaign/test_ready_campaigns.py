from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import LocalOptions
from orchestrator.control import assembly, attempts
from orchestrator.launch.script import data_directory

READY = sorted(data_directory("campaigns").glob("*.yaml"))


@pytest.fixture(params=READY, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ready campaign whose executable, named by a variable, exists."""
    executable = tmp_path / "program"
    executable.write_text("#!/bin/sh\n")
    executable.chmod(0o755)
    found: Path = request.param
    for variable in re.findall(r"\$\{(\w+)", found.read_text()):
        monkeypatch.setenv(variable, str(executable))
    return found


def load(path: Path, *overrides: str) -> Campaign:
    """Load a campaign with room for its largest runs."""
    local = isinstance(loader.load(path).executor, LocalOptions)
    return loader.load(path, [*(["executor.slots=512"] if local else []), *overrides])


def test_a_ready_campaign_is_valid_and_named_like_its_file(path: Path) -> None:
    assert load(path).name == path.stem


def test_its_grid_suits_the_strategies(path: Path) -> None:
    """Five values per parameter, the evaluation point beyond all of them."""
    chosen = load(path)
    assert chosen.evaluation_point is not None
    for parameter in chosen.parameters:
        assert len(parameter.values) >= 5
        values = [float(value) for value in parameter.values]
        assert chosen.evaluation_point.number(parameter.name) > max(values)


def test_no_point_of_its_grid_is_lost_to_the_application(path: Path) -> None:
    chosen = load(path)
    application = chosen.application_spec
    points = list(chosen.space)
    assert points
    assert all(application.check(chosen.values(point)) is None for point in points)
    assert chosen.evaluation_point is not None
    assert application.check(chosen.values(chosen.evaluation_point)) is None


def test_its_scripts_can_be_rendered(path: Path) -> None:
    chosen = load(path, "executor.launcher='mpiexec -n {ranks}'")
    parts = assembly.assemble(chosen)
    for point in chosen.space:
        assert "mpiexec" in attempts.script(parts, point, parts.resources(point))


@pytest.mark.parametrize("name", ["quickstart", "generic"])
def test_a_campaign_for_everyone_needs_two_cores_for_at_most_three_minutes(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    executable = tmp_path / "program"
    executable.write_text("#!/bin/sh\n")
    executable.chmod(0o755)
    monkeypatch.setenv("LAMMPS", str(executable))
    chosen = loader.load(data_directory("campaigns") / f"{name}.yaml")
    assert isinstance(chosen.executor, LocalOptions)
    slots = chosen.executor.slots
    assert slots <= 2
    assert chosen.stop.budget / slots <= 180
