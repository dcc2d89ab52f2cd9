"""The examples of all pages: ``python -m tests.cli.console_examples`` renews what their commands print.

A page is followed from its top. A tutorial or guide begins in an empty directory, any other page where it
takes files and campaigns for granted (`tests.cli.taken_for_granted`). A block that begins with ``# NAME`` and
names a file is written to it. Each ``$ orchestrator ...`` of a block ``console`` is run, and must print what
stands below it; what a page of the second kind shows without any output must succeed. A line
``...`` stands for any number of lines, and ``...`` within a line for any text. A number stands for any
number, because models depend on the machine in their last digits; tables may be wider or narrower.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from tests.cli.documented import BLOCK, NAME, ROOT, commands, pieces
from tests.cli.running import run
from tests.cli.taken_for_granted import REFERENCE, TAKEN_FOR_GRANTED, reason

DOCS = ROOT / "docs"
GUIDES = (DOCS / "tutorial.md", *sorted((DOCS / "howto").glob("*.md")))
COLUMNS = "100"
_FILE = re.compile(r"\A# (?P<name>[\w./-]+\.\w+)\n")
_ANY = "..."


@dataclass(frozen=True)
class Example:
    """A command with the output that a page has for it, and the one that there was."""

    command: str
    expected: str
    code: int
    printed: str
    in_full: bool = True  # whether a page that shows no output says that there is none

    @property
    def holds(self) -> bool:
        """Whether the command printed what the page says."""
        if not self.expected and not self.in_full:
            return self.code == 0
        return re.fullmatch(_pattern(self.expected), self.printed, re.DOTALL) is not None


def _pattern(expected: str) -> str:
    return "".join(pattern for _, pattern in _parts(expected))


def _parts(expected: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a text, each with a pattern: a group where the text may be another one."""
    for line in expected.splitlines(keepends=True):
        if line == f"{_ANY}\n":
            yield line, "(?:[^\n]*\n)*?"
            continue
        for k, piece in enumerate(re.split(rf"({re.escape(_ANY)})", line)):
            if k % 2 == 1:
                yield piece, "[^\n]*"
            else:
                yield from _words(piece)


def _words(piece: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a piece of a line: its words are as they are."""
    number = r"\d[\d.]*(?:e[-+]?\d+)?"
    kinds = {" ": "( +)", "━": "(━+)"}
    for k, part in enumerate(re.split(rf"({number}| +|━+)", piece)):
        yield part, re.escape(part) if k % 2 == 0 else kinds.get(part[0], f"({number})")


def with_figures(expected: str, printed: str) -> str:
    """Return an expected text that holds with the numbers, and the widths of tables, that were printed."""
    parts = list(_parts(expected))
    found = re.fullmatch("".join(pattern for _, pattern in parts), printed, re.DOTALL)
    assert found is not None
    groups = iter(found.groups())
    return "".join(next(groups) if re.compile(pattern).groups else text for text, pattern in parts)


def followed(
    page: str, in_full: bool = True, left_out: Callable[[str], bool] = lambda command: False
) -> Iterator[Example]:
    """Do what a page says, in the current directory, but for the commands that are left out."""
    for block in BLOCK.finditer(page):
        if block["kind"] == "console":
            for command, expected in commands(block["text"]):
                if command.startswith(f"{NAME} ") and not left_out(command):
                    yield Example(command, expected, *_done(pieces(command)), in_full)
        elif (name := _FILE.match(block["text"])) is not None:
            path = Path(name["name"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["text"])
            path.chmod(0o755)


def _done(parts: Sequence[Sequence[str]]) -> tuple[int, str]:
    """Run a command; return its exit code, and what a terminal shows."""
    words, *rest = parts
    result = run(*map(os.path.expanduser, words[1:]))
    out = result.out
    match rest:
        case [[">"], [name]]:
            Path(name).write_text(out)
            out = ""
        case [["|"], ["head", count]]:
            out = "".join(out.splitlines(keepends=True)[: abs(int(count))])
        case [_, *_]:
            raise ValueError(f"a page pipes into {rest}, which this test does not know")
    return result.code, "".join(f"{line.rstrip()}\n" for line in (result.err + out).splitlines())


def renewed(page: str, examples: Iterable[Example]) -> str:
    """Return a page with the present output of every command: its figures, or all where it is another one."""
    for example in examples:
        now = example.printed
        if example.holds:
            now = with_figures(example.expected, now) if example.expected else ""
        old, new = (f"$ {example.command}\n{text}" for text in (example.expected, now))
        page = page.replace(old, new, 1)
    return page


def examples(path: Path) -> Iterator[Example]:
    """Follow a page in the current directory, which must be empty and the user's home."""
    TAKEN_FOR_GRANTED.get(path.name, lambda: None)()
    in_full = path not in REFERENCE
    return followed(path.read_text(), in_full, lambda command: reason(path, command) is not None)


def main() -> int:
    """Rewrite the pages that the arguments name, or all."""
    os.environ["COLUMNS"] = COLUMNS
    for path in [Path(name).absolute() for name in sys.argv[1:]] or (*GUIDES, *REFERENCE):
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            os.environ["HOME"] = folder
            path.write_text(renewed(path.read_text(), examples(path)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
