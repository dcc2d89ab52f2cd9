"""The examples of the tutorial and the how-to guides: ``python -m tests.cli.console_examples`` renews them.

A page is followed from its top in an empty directory. A block that begins with ``# NAME`` and names a file
is written to it. Each ``$ orchestrator ...`` of a block ``console`` is run, and must print what stands below
it. A line ``...`` stands for any number of lines, and ``...`` within a line for any text. A number stands for
any number, because models depend on the machine in their last digits; tables may be wider or narrower.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from tests.cli.running import run

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (DOCS / "tutorial.md", *sorted((DOCS / "howto").glob("*.md")))
COLUMNS = "100"
_BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"\A# (?P<name>[\w./-]+\.\w+)\n")
_ANY = "..."


@dataclass(frozen=True)
class Example:
    """A command with the output that a page has for it, and the one that there was."""

    command: str
    expected: str
    code: int
    printed: str

    @property
    def holds(self) -> bool:
        """Whether the command printed what the page says."""
        return re.fullmatch(_pattern(self.expected), self.printed, re.DOTALL) is not None


def _pattern(expected: str) -> str:
    lines = []
    for line in expected.splitlines():
        inner = "[^\n]*".join(map(_text, line.split(_ANY)))
        lines.append("(?:[^\n]*\n)*?" if line == _ANY else f"{inner}\n")
    return "".join(lines)


def _text(piece: str) -> str:
    """Return a pattern of a piece of a line: its words as they are."""
    parts = re.split(r"(\d[\d.]*(?:e[-+]?\d+)?| +|━+)", piece)
    kinds = {" ": " +", "━": "━+"}
    number = r"\d[\d.]*(?:e[-+]?\d+)?"
    return "".join(
        re.escape(part) if k % 2 == 0 else kinds.get(part[0], number) for k, part in enumerate(parts)
    )


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a block, each with its output."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def followed(page: str) -> Iterator[Example]:
    """Do what a page says, in the current directory."""
    for block in _BLOCK.finditer(page):
        if block["kind"] == "console":
            for command, expected in commands(block["text"]):
                words = shlex.split(command, comments=True)
                if words[0] == "orchestrator":
                    result = run(*words[1:])
                    printed = "".join(f"{line.rstrip()}\n" for line in (result.err + result.out).splitlines())
                    yield Example(command, expected, result.code, printed)
        elif (name := _FILE.match(block["text"])) is not None:
            path = Path(name["name"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["text"])
            path.chmod(0o755)


def renewed(page: str) -> str:
    """Return a page with the present output of every command whose output is another one."""
    for example in followed(page):
        if not example.holds:
            old, new = (f"$ {example.command}\n{text}" for text in (example.expected, example.printed))
            page = page.replace(old, new, 1)
    return page


def main() -> int:
    """Rewrite the pages that the arguments name, or all."""
    os.environ["COLUMNS"] = COLUMNS
    for path in [Path(name).absolute() for name in sys.argv[1:]] or PAGES:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            path.write_text(renewed(path.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
