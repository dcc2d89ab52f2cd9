"""Extra-P's text format, as described in its documentation (``docs/file-formats.md`` of extra-p/extrap).

Unlike Extra-P's own reader, this one allows more than four parameters, and comments after blanks.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from orchestrator.errors import ReadError
from orchestrator.readers.entries import DEFAULT_METRIC, Entry, assemble, number
from orchestrator.types import Measurements, Value

KEYWORDS = ("PARAMETER", "POINTS", "METRIC", "REGION", "DATA")


def read_text(text: str, source: str) -> Measurements:
    """Read Extra-P's text format: PARAMETER, POINTS, then METRIC, REGION and one DATA line per point.

    Blank lines and lines that start with ``#`` are ignored. Repetitions may differ in number.

    Raises
    ------
    ReadError
        With file and line, for unknown keywords, texts that are no numbers, points with too few or too
        many values, and regions whose DATA lines do not match the POINTS.
    """
    parser = _Text(source)
    for line_number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if words and not words[0].startswith("#"):
            parser.line(f"{source}:{line_number}", words[0], line.strip()[len(words[0]) :])
    parser.end_of_block()
    return assemble(parser.parameters, parser.entries, source)


class _Text:
    """The state of the text reader between two lines."""

    def __init__(self, source: str) -> None:
        self.where = source
        self.parameters: list[str] = []
        self.points: list[tuple[Value, ...]] = []
        self.metric = DEFAULT_METRIC
        self.region = ""
        self.block: list[Entry] = []  # of the current region and metric
        self.seen: dict[tuple[str, str], str] = {}
        self.entries: list[Entry] = []

    def line(self, where: str, keyword: str, rest: str) -> None:
        self.where = where
        words = rest.split()
        if keyword not in KEYWORDS:
            close = get_close_matches(keyword.upper(), KEYWORDS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(KEYWORDS)}"
            raise ReadError(f"{where}: unknown keyword {keyword!r}: {hint}")
        if not words:
            raise ReadError(f"{where}: {keyword} without a value")
        if keyword == "PARAMETER":
            if self.points:
                raise ReadError(
                    f"{where}: PARAMETER {rest.strip()} after POINTS, which have no value for it: name all "
                    "parameters first; METRIC names what was measured"
                )
            self.parameters += words
        elif keyword == "POINTS":
            self._add_points(rest)
        elif keyword == "DATA":
            self._add_data(words)
        else:
            self.end_of_block()
            if keyword == "METRIC":
                self.metric = " ".join(words)
            else:
                self.region = " ".join(words)

    def _add_points(self, rest: str) -> None:
        if not self.parameters:
            raise ReadError(f"{self.where}: POINTS before PARAMETER")
        known = set(self.points)
        for group in _groups(rest, self.where):
            point = tuple(number(word, self.where) for word in group)
            if len(point) != len(self.parameters):
                raise ReadError(
                    f"{self.where}: point ({' '.join(group)}) has {len(point)} values for "
                    f"{len(self.parameters)} parameters ({', '.join(self.parameters)})"
                )
            if point in known:
                raise ReadError(f"{self.where}: point ({' '.join(group)}) is listed twice")
            known.add(point)
            self.points.append(point)

    def _add_data(self, words: list[str]) -> None:
        key = (self.region, self.metric)
        if not self.region:
            raise ReadError(f"{self.where}: DATA before the first REGION")
        if not self.block and key in self.seen:
            raise ReadError(
                f"{self.where}: region {self.region!r}, metric {self.metric!r} was given before, "
                f"at {self.seen[key]}"
            )
        self.seen.setdefault(key, self.where)
        if len(self.block) >= len(self.points):
            raise ReadError(
                f"{self.where}: more DATA lines for region {self.region!r}, metric {self.metric!r} "
                f"than there are POINTS ({len(self.points)})"
            )
        values = tuple(float(number(word, self.where)) for word in words)
        self.block.append(
            Entry(
                where=self.where,
                callpath=self.region,
                metric=self.metric,
                point=self.points[len(self.block)],
                values=values,
            )
        )

    def end_of_block(self) -> None:
        if self.block and len(self.block) != len(self.points):
            raise ReadError(
                f"{self.block[-1].where}: region {self.region!r}, metric {self.metric!r} ends after "
                f"{len(self.block)} DATA lines, but there are {len(self.points)} POINTS"
            )
        self.entries += self.block
        self.block = []


def _groups(text: str, where: str) -> list[list[str]]:
    """Split ``(1 2) (3 4)``, also with inner parentheses; without any, every word is a point."""
    words = re.findall(r"[()]|[^\s()]+", text)
    if "(" not in words and ")" not in words:
        return [[word] for word in words]
    groups: list[list[str]] = []
    depth = 0
    for word in words:
        if word == "(":
            groups += [[]] if depth == 0 else []
            depth += 1
        elif word == ")":
            depth -= 1
        elif depth > 0:
            groups[-1].append(word)
        if depth < 0 or (depth == 0 and word != ")"):
            raise ReadError(f"{where}: unbalanced parentheses at {word!r}")
    if depth:
        raise ReadError(f"{where}: a parenthesis is not closed")
    return groups
