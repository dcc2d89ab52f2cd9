import re

import pytest

from orchestrator.cli.main import COMMANDS, EXIT_CODES
from tests.cli.commands_document import COLUMNS, PATH, help_text, regenerated


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", COLUMNS)


@pytest.mark.parametrize("command", ["", *COMMANDS, "evaluate synthetic", "evaluate replay"])
def test_the_help_text_in_the_documentation_is_the_present_one(command: str) -> None:
    block = f"<!-- help: {command} -->\n```text\n{help_text(command)}```\n"
    assert block in PATH.read_text(), "run: python -m tests.cli.commands_document"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_section_with_an_example(command: str) -> None:
    sections = re.split(r"^## ", PATH.read_text(), flags=re.MULTILINE)
    (section,) = [text for text in sections if text.startswith(f"{command}\n")]
    assert f"$ orchestrator {command}" in section
    assert "```console" in section


def test_no_command_is_documented_that_does_not_exist() -> None:
    documented = re.findall(r"<!-- help: (\w+) -->", PATH.read_text())
    assert sorted(documented) == sorted(COMMANDS)


def test_every_exit_code_is_documented() -> None:
    document = PATH.read_text()
    for code, meaning in re.findall(r"^  (\d)  (.*)$", EXIT_CODES, re.MULTILINE):
        assert f"| {code} | {meaning} |" in document


def test_a_new_command_gets_a_section(monkeypatch: pytest.MonkeyPatch) -> None:
    without = PATH.read_text().split("\n## schema\n")[0]
    assert "\n## schema\n\nPrint the JSON schema" in regenerated(without)
