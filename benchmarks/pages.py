"""Figures of benchmarks on pages of the documentation: tables and lists in Markdown, in marked blocks."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

Cells = Sequence[Sequence[str]]
"""A header and rows of a table; a cell in two asterisks is emphasised."""


def as_markdown(cells: Cells) -> str:
    """Return a table in Markdown."""
    header, *rows = cells
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)) + "\n"


def as_list(sentences: Sequence[str]) -> str:
    """Return sentences as a list in Markdown that fits a page."""
    together = (text.replace(" %", "\u00a0%") for text in sentences)  # never broken there
    filled = (
        textwrap.fill(text, 100, initial_indent="- ", subsequent_indent="  ", break_long_words=False)
        for text in together
    )
    return "".join(text.replace("\u00a0", " ") + "\n" for text in filled)


@dataclass(frozen=True)
class Block:
    """The part of a page between ``<!-- NAME -->`` and ``<!-- end of KIND -->``; the kind is the name."""

    name: str
    kind: str = ""

    def check(self, page: Path) -> None:
        """Raise ``ValueError`` unless a page has the block once."""
        count = len(re.findall(self._pattern, page.read_text()))
        if count != 1:
            raise ValueError(f"{page} has {count} blocks {self._begin} ... {self._end}: one is needed")

    def rewrite(self, page: Path, text: str) -> None:
        """Replace what the block of a page holds; raises as `check`."""
        self.check(page)
        new = f"{self._begin}\n\n{text}\n{self._end}"
        page.write_text(re.sub(self._pattern, lambda _: new, page.read_text()))

    @property
    def _begin(self) -> str:
        return f"<!-- {self.name} -->"

    @property
    def _end(self) -> str:
        return f"<!-- end of {self.kind or self.name} -->"

    @property
    def _pattern(self) -> str:
        return f"(?s){re.escape(self._begin)}\n.*?{re.escape(self._end)}"
