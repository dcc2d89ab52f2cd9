"""No page names a command, an option or an argument that there is not."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.cli.main import COMMANDS, command_parser
from tests.cli.documented import PAGES, ROOT, mentioned, pieces, shown

PLUG_INS = {"power-law": "pmnf"}  # of the page about plug-ins, which a test of its own installs


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def plain(word: str) -> str:
    """Return a word as a user types it, who leaves out the brackets and has set the variable of a loop."""
    word = word.strip("[]") if word.startswith("[-") else word
    return re.sub(r"\$\w+", "2", PLUG_INS.get(word, word))


def parse(words: Sequence[str]) -> None:
    """Parse a command as the program does."""
    words = [plain(word) for word in words]
    assert words[1] in COMMANDS
    try:
        command_parser(words[1])[1].parse_args(words[2:])
    except SystemExit as end:
        assert end.code == 0, " ".join(words)


def options(words: Sequence[str]) -> set[str]:
    """The options of a command, or of that command of a command which the words name."""
    _, parser = command_parser(words[1])
    found = set(parser._option_string_actions)
    for word in words[2:]:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction) and word in action.choices:
                parser = action.choices[word]
                found |= set(parser._option_string_actions)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_that_a_page_shows_can_be_parsed(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in shown(page.read_text()):
        parse(words)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_option_within_a_sentence_is_one_of_the_command(page: Path) -> None:
    for words in mentioned(page.read_text()):
        assert words[1] in COMMANDS, words
        unknown = {word for word in words if re.match("--?[a-z]", word)} - options(words)
        assert not unknown, words


def test_there_are_commands_in_the_pages() -> None:
    assert len([words for page in PAGES for words in shown(page.read_text())]) > 100
    assert len([words for page in PAGES for words in mentioned(page.read_text())]) > 50


def test_an_option_that_is_gone_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError, match="--budgets"):
        parse(["orchestrator", "suggest", "a.csv", "--budgets", "5"])
    assert "--noise" not in options(["orchestrator", "evaluate"])
    assert "--noise" in options(["orchestrator", "evaluate", "synthetic"])


def test_what_follows_a_command_is_not_its_own() -> None:
    assert pieces("orchestrator export c --format csv | head -3") == [
        ["orchestrator", "export", "c", "--format", "csv"],
        ["|"],
        ["head", "-3"],
    ]
    assert pieces("export X=\norchestrator compare a --fail-if 'ratio > 1.1' \\\n>   --json  # why") == [
        ["orchestrator", "compare", "a", "--fail-if", "ratio > 1.1", "--json"]
    ]
