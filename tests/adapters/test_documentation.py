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
    _, launch, frames = re.split(r"^\| placeholder \|", TEXT, flags=re.MULTILINE)
    documented = set(re.findall(r"`\{\{(\w+)\}\}`", frames))
    assert documented == {"prologue", "environment", "command", "exec", "epilogue", *script.OPTIONAL}
    assert {*script.OPTIONAL, "executable"} <= set(re.findall(r"`\{\{(\w+)\}\}`", launch))
    for path in (script.data_directory("templates") / "frames").glob("*.sh"):
        assert f"`{path.stem}`" in TEXT
        assert set(re.findall(r"\{\{(\w+)\}\}", path.read_text())) <= documented


def test_of_every_template_is_said_whether_it_was_run() -> None:
    table = TEXT.partition("| template | application | was run")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([\w.-]+)`", "\n".join(row.split("|")[1] for row in table.splitlines()[2:])))
    assert named == {path.stem for path in script.data_directory("templates").glob("*.sh")}
