from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator import registry
from orchestrator.launch import script
from orchestrator.types import Application

TEXT = (Path(__file__).parents[2] / "docs" / "applications.md").read_text()


@pytest.mark.parametrize("name", registry.names("application"))
def test_every_parameter_is_documented_as_the_adapter_says(name: str) -> None:
    application: Application = registry.load("application", name)
    section = next(part for part in TEXT.split("\n## ") if part.startswith(tuple(_titles(name))))
    rows = re.findall(r"^\| `(\w+)`( \(required\))? \| (.*) \|$", section, re.MULTILINE)
    assert {parameter: meaning for parameter, _, meaning in rows} == dict(application.parameters)
    assert {parameter for parameter, required, _ in rows if required} == set(application.required)
    assert f"{application.description}." in section


def _titles(name: str) -> list[str]:
    return [title for title in re.findall(r"^## (.*)$", TEXT, re.MULTILINE) if title.endswith(f": `{name}`")]


def test_every_placeholder_and_template_is_documented() -> None:
    documented = set(re.findall(r"`\{\{(\w+)\}\}`", TEXT))
    assert documented == {"prologue", "environment", "command", "exec", "epilogue", *script.OPTIONAL}
    for path in script.data_directory("templates").glob("*.sh"):
        assert f"`{path.stem}`" in TEXT
        assert set(re.findall(r"\{\{(\w+)\}\}", path.read_text())) <= documented


def test_every_ready_campaign_is_documented() -> None:
    for path in script.data_directory("campaigns").glob("*.yaml"):
        assert f"`{path.stem}`" in TEXT
