"""The tutorial and the how-to guides can be followed, command by command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.console_examples import COLUMNS, PAGES, Example, followed


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_prints_what_the_page_says(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", COLUMNS)
    examples = list(followed(page.read_text()))
    assert examples
    for example in examples:
        assert example.holds, f"$ {example.command}\n{example.printed}"


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
