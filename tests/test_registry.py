"""Plug-ins of other distributions: who wins, and what is said of those that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from orchestrator import registry
from orchestrator.doctor import installation
from orchestrator.doctor.check import Status
from orchestrator.errors import CampaignError


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that Python finds distributions in."""
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.entry_points_of.cache_clear()
    yield tmp_path
    registry.entry_points_of.cache_clear()


def distribution(folder: Path, name: str, entry_points: str) -> None:
    information = folder / f"{name}-1.5.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (information / "entry_points.txt").write_text(entry_points)


def test_a_name_of_ours_is_never_shadowed(site: Path) -> None:
    distribution(site, "imposter", "[orchestrator.strategies]\ngpr = nowhere:strategy\n")
    assert registry.load("strategy", "gpr").__module__ == "orchestrator.strategies.gpr"
    [found] = [item for item in registry.plugins() if item.distribution == "imposter 1.5"]
    assert found.shadowed
    assert registry.names("strategy").count("gpr") == 1
    [check] = installation.plugins()
    assert check.status is Status.WARNING
    assert "nowhere:strategy of imposter 1.5 has the name of a part of" in check.detail


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise RuntimeError('no licence')", "cannot be imported: RuntimeError: no licence"),
        ("raise SystemExit('no licence')", "cannot be imported: SystemExit: no licence"),
        ("import nothing_like_this", "ModuleNotFoundError"),
        ("other = 1", "AttributeError"),
        ("strategy = 1", "is int, not a function: correct its entry point"),
    ],
)
def test_a_broken_plug_in_names_its_distribution(site: Path, source: str, message: str) -> None:
    module = f"broken_{abs(hash(source))}"
    (site / f"{module}.py").write_text(source)
    distribution(site, "broken", f"[orchestrator.strategies]\nbroken = {module}:strategy\n")
    with pytest.raises(CampaignError) as error:
        registry.load("strategy", "broken")
    assert f"the strategy 'broken' of broken 1.5 ({module}:strategy)" in str(error.value)
    assert message in str(error.value)
    [check] = installation.plugins()
    assert check.status is Status.WARNING


def test_an_application_is_not_just_any_function(site: Path) -> None:
    distribution(site, "broken", "[orchestrator.applications]\nmine = json:loads\n")
    with pytest.raises(CampaignError, match=r"is function, not an orchestrator.types.Application"):
        registry.load("application", "mine")


def test_two_distributions_with_one_name_are_both_named(site: Path) -> None:
    for name in ("first", "second"):
        distribution(site, name, "[orchestrator.readers]\nmine = json:loads\n")
    with pytest.raises(CampaignError, match=r"declared by first 1.5 and by second 1.5: uninstall one"):
        registry.load("reader", "mine")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"membres": 3}, "modeler 'auto' has no option 'membres'; did you mean 'members'?"),
        (
            {"members": "abc"},
            "modeler 'auto', option members: Input should be a valid integer (value: 'abc')",
        ),
        ({"members": True}, "option members: Input should be a valid integer"),
        (
            {"members": 3, "wide": 1, "q": 1},
            "option wide: Input should be a valid boolean (value: 1); modeler",
        ),
    ],
)
def test_options_are_checked_before_a_factory_has_them(options: dict[str, object], message: str) -> None:
    with pytest.raises(CampaignError) as error:
        registry.build("model", "auto", options, called="modeler")
    assert message in str(error.value)


def test_options_may_be_numbers_of_numpy() -> None:
    assert registry.build("model", "pmnf", {"members": np.int64(50), "exponents": np.array([[1.0, 0.0]])})


def test_a_factory_may_pass_options_on() -> None:
    def factory(*, known: int = 0, **further: object) -> None: ...

    assert list(registry.wrong_options(factory, "it", {"known": 1, "unknown": 2})) == []
    assert [name for name, _ in registry.wrong_options(factory, "it", {"known": ""})] == ["known"]


def test_every_part_is_listed_once_with_its_origin() -> None:
    found = registry.plugins()
    assert len({(item.kind, item.name, item.target) for item in found}) == len(found)
    assert {item.kind for item in found} == set(registry.GROUPS)
    assert all(
        item.distribution == registry.OURS for item in found if item.name in registry.TABLES[item.kind]
    )
