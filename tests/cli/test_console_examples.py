"""Every page can be followed, command by command; what is not run is listed with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.console_examples import COLUMNS, GUIDES, Example, examples
from tests.cli.documented import BLOCK, NAME, commands
from tests.cli.taken_for_granted import NOT_RUN, OTHER_PROGRAMS, REFERENCE, TAKEN_FOR_GRANTED


@pytest.mark.slow
@pytest.mark.parametrize("page", [*GUIDES, *REFERENCE], ids=lambda page: page.stem)
def test_every_command_prints_what_the_page_says(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", COLUMNS)
    monkeypatch.setenv("HOME", str(Path.cwd()))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    found = list(examples(page))
    assert found or page in REFERENCE
    for example in found:
        assert example.holds, f"$ {example.command}\n{example.printed}"


def _commands(page: Path) -> list[str]:
    blocks = [block["text"] for block in BLOCK.finditer(page.read_text()) if block["kind"] == "console"]
    return [command for block in blocks for command, _ in commands(block)]


def test_what_is_not_run_stands_in_its_page() -> None:
    pages = {page.name: page for page in (*GUIDES, *REFERENCE)}
    assert {*NOT_RUN, *TAKEN_FOR_GRANTED} <= pages.keys()
    for name, starts in NOT_RUN.items():
        for start in starts:
            assert any(command.startswith(start) for command in _commands(pages[name])), f"{name}: {start}"
    others = {command.split()[0] for page in REFERENCE for command in _commands(page)}
    assert others - {NAME} == OTHER_PROGRAMS.keys()


@pytest.mark.parametrize(
    ("command", "code", "printed", "in_full", "holds"),
    [
        ("$ orchestrator x", 0, "something\n", False, True),
        ("$ orchestrator x", 1, "something\n", False, False),
        ("$ orchestrator x", 0, "something\n", True, False),
    ],
)
def test_a_reference_that_shows_no_output_must_succeed(
    command: str, code: int, printed: str, in_full: bool, holds: bool
) -> None:
    assert Example(command, "", code, printed, in_full).holds is holds


@pytest.mark.parametrize(
    ("expected", "printed", "holds"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nc\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n...\n", "a\nb\nc\n", True),
        ("...\nc\n", "a\nb\nc\n", True),
        ("...\nc\n", "a\nb\n", False),
        ("took ... s\n", "took 3.1 s\n", True),
        ("took ... s\n", "took 3.1\ns\n", False),
        ("12 runs: 0.5 * n\n", "7 runs: 2.1e-5 *  n\n", True),
        ("12 runs: 0.5 * n\n", "7 runs: 0.5 * p\n", False),
        ("━━╇━\n", "━━━━╇━━\n", True),
        ("", "", True),
        ("", "a\n", False),
    ],
)
def test_an_ellipsis_stands_for_what_differs_and_nothing_else_does(
    expected: str, printed: str, holds: bool
) -> None:
    assert Example("x", expected, 0, printed).holds is holds
