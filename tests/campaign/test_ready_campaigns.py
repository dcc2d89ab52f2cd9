from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml

from orchestrator import space
from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import LocalOptions
from orchestrator.control import assembly, attempts
from orchestrator.launch.script import data_directory
from orchestrator.types import Point, RunKind, format_value
from tests.cli.running import run

READY = sorted(data_directory("campaigns").glob("*.yaml"))
STUDIES = [path for path in READY if path.with_name(f"{path.stem}-small.yaml") in READY]
SMALL = [path for path in READY if path.stem.endswith("-small")]
PAGE = Path(__file__).parents[2] / "docs" / "campaigns.md"
LOOKED_AT = 25  # points of each campaign whose scripts are rendered, at most


@pytest.fixture(autouse=True, scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The programs that ready campaigns name by variables exist, and those that count."""
    executable = tmp_path_factory.mktemp("programs") / "program"
    for path in (executable, executable.with_name("program-effort")):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        for path in READY:
            for variable in re.findall(r"\$\{(\w+)", path.read_text()):
                patch.setenv(variable, str(executable))
        yield
        load.cache_clear()  # of campaigns that name these programs


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=READY, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    """A ready campaign."""
    found: Path = request.param
    return found


def is_local(path: Path) -> bool:
    return bool(yaml.safe_load(path.read_text())["executor"]["name"] == "local")


@cache  # a large space takes seconds
def load(path: Path, *overrides: str) -> Campaign:
    """Load a campaign, on a machine with two cores if it is a local one."""
    return loader.load(path, [*(["executor.slots=2"] if is_local(path) else []), *overrides])


def points(chosen: Campaign) -> list[Point]:
    """Some points of the space, drawn by chance, and P₊ where there is one."""
    rng = np.random.default_rng(0)
    axes = [(p.name, p.values) for p in chosen.parameters]
    drawn = {
        Point(tuple((name, values[rng.integers(len(values))]) for name, values in axes)) for _ in range(2000)
    }
    inside = sorted((point for point in drawn if point in chosen.space), key=str)[:LOOKED_AT]
    assert inside
    return inside if chosen.evaluation_point is None else [*inside, chosen.evaluation_point]


def test_it_is_valid_and_named_like_its_file(path: Path) -> None:
    assert load(path).name == path.stem


def test_its_grid_suits_the_models(path: Path) -> None:
    """Five values of a parameter, and an evaluation point beyond the grid in at least one.

    A tuning space has none: there the models must hold everywhere.
    """
    chosen = load(path)
    numeric = [parameter for parameter in chosen.parameters if not parameter.categorical]
    assert any(len(parameter.values) >= 5 for parameter in numeric)
    if chosen.strategy.name == "active":
        assert chosen.evaluation_point is None and len(chosen.parameters) == 9
        return
    assert chosen.evaluation_point is not None and chosen.validate
    assert any(chosen.evaluation_point.number(p.name) > max(map(float, p.values)) for p in numeric)


def test_its_scripts_can_be_rendered(path: Path) -> None:
    """Of timed runs, and of those that count effort."""
    chosen = load(path, "executor.launcher='mpiexec -n {ranks}'")
    parts = assembly.assemble(chosen)
    kinds: tuple[RunKind, ...] = ("time", "effort") if chosen.measure.effort else ("time",)
    for point in points(chosen):
        assert chosen.application_spec.check(chosen.values(point)) is None
        for kind in kinds:
            script = attempts.script(parts, point, parts.resources(point), kind)
            assert "mpiexec" in script and "{{" not in script


def test_every_case_study_has_a_small_sibling() -> None:
    """And says so; with the same application and settings of effort."""
    assert {f"{path.stem}-small" for path in STUDIES} == {path.stem for path in SMALL}
    for path in STUDIES:
        small = path.with_name(f"{path.stem}-small.yaml")
        assert f"# On two cores: {small.stem}\n" in path.read_text()
        one, two = load(path), load(small)
        assert one.application == two.application
        assert bool(one.measure.effort) == bool(two.measure.effort)


@pytest.mark.parametrize("name", [path.stem for path in SMALL] + ["quickstart", "generic"])
def test_a_campaign_for_everyone_needs_two_cores_for_minutes(name: str) -> None:
    chosen = loader.load(data_directory("campaigns") / f"{name}.yaml")
    assert isinstance(chosen.executor, LocalOptions)
    slots = chosen.executor.slots
    assert slots <= 2
    assert chosen.stop.budget / slots <= 360


@pytest.mark.parametrize("name", ["lulesh", "kripke", "minife"])
def test_effort_and_priors_are_shown_where_programs_can_be_built_to_count(name: str) -> None:
    chosen = load(data_directory("campaigns") / f"{name}.yaml")
    assert chosen.measure.effort and chosen.model.name == "swc"


def test_the_page_names_it_with_its_evaluation_point(path: Path) -> None:
    text = PAGE.read_text()
    if path in STUDIES:
        row = next(line for line in text.splitlines() if line.startswith(f"| `{path.stem}` |"))
        point = load(path).evaluation_point
        stated = row.split("|")[3].replace("\\*", "").strip()
        wanted = [] if point is None else [f"{name}={format_value(value)}" for name, value in point.items]
        assert stated == (", ".join(wanted) or "none")
    else:
        assert f"`{path.stem.removesuffix('-small')}`" in text


@pytest.mark.slow
def test_it_can_be_planned_by_name_from_any_directory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first round is affordable, and its scripts are shown."""
    monkeypatch.setattr(space, "_MOST_VISITED", 20_000)  # the points of a large space are counted elsewhere
    slots = ["--set", "executor.slots=2"] if is_local(path) else []
    planned = run("plan", path.stem, "--no-rehearsal", "--json", *slots)
    assert planned.code == 0, planned.err
    assert planned.document["campaign"] == path.stem and planned.document["runs"]
    assert not list(Path().iterdir())
