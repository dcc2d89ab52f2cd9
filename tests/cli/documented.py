"""The commands that a page has: in its blocks of commands, one by one, and within its sentences."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
NAME = "orchestrator"
BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_SHELL = {"sh", "bash"}
_SPAN = re.compile(r"`(orchestrator [^`]+)`")
_SCRIPT = re.compile(rf"^ *- ({NAME} .*)$", re.MULTILINE)  # of a YAML file, for continuous integration
_ENDS = "|&;<>"  # of a command: what follows is not its own


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a console, each with its output; lines that go on are one command."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        end = 1
        while lines[end - 1].endswith("\\\n") or (lines[end:] and lines[end].startswith("> ")):
            end += 1
        yield "".join(lines[:end]).removesuffix("\n"), "".join(lines[end:])


def pieces(command: str) -> list[list[str]]:
    """Return the words of the lines with this program, and of what divides them: pipes, redirections."""
    text = re.sub(r"\\\n(?:> )?", " ", command)
    found = []
    for line in text.splitlines():
        if NAME not in line:
            continue
        lexer = shlex.shlex(line.removeprefix("> "), posix=True, punctuation_chars=_ENDS)
        lexer.whitespace_split = True
        groups = groupby(lexer, key=lambda word: set(word) <= set(_ENDS))
        found += [list(words) for _, words in groups]
    return found


def shown(page: str) -> Iterator[Sequence[str]]:
    """Yield the words of every command of this program that stands in a block of a page."""
    for block in BLOCK.finditer(page):
        texts: list[str] = []
        if block["kind"] == "console":
            texts = [command for command, _ in commands(block["text"])]
        elif block["kind"] in _SHELL:
            texts = [block["text"]]
        elif block["kind"] == "yaml":
            texts = _SCRIPT.findall(block["text"])
        for words in (piece for text in texts for piece in pieces(text)):
            if NAME in words:
                yield words[words.index(NAME) :]


def mentioned(page: str) -> Iterator[Sequence[str]]:
    """Yield the words of every command of this program within the sentences of a page."""
    for text in _SPAN.findall(BLOCK.sub("", page)):
        yield shlex.split(" ".join(text.split()))
