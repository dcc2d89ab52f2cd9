"""What self-contained HTML files are made of: a style, tables, and figures that are part of the file."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # drawing is expensive to import
    from matplotlib.figure import Figure

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 68em; padding: 0 1em; color: #222 }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em; border-bottom: 1px solid #ddd }
table { border-collapse: collapse; width: 100%; font-size: 0.92em }
th, td { text-align: left; padding: 0.25em 0.8em 0.25em 0; border-bottom: 1px solid #eee }
th, td { vertical-align: top }
th.number, td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
code { font-size: 0.95em } .note { color: #777 }
.wide { overflow-x: auto } img { max-width: 100%; height: auto }
@media screen and (max-width: 40em) { img { max-width: 34em } }
"""


class Number(str):
    """A figure that is formatted already."""


_NUMBERS = (int, float, Number)


def document(title: str, parts: Sequence[str]) -> str:
    """Return a whole file from its parts in HTML; empty ones are left out."""
    body = "\n".join(part for part in parts if part)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def image(figure: Figure, alt: str) -> str:
    """Return a figure whose content is part of the file."""
    from orchestrator.report import figures

    content = base64.b64encode(figures.png(figure)).decode()
    return _wide(f'<img alt="{escape(alt, quote=True)}" src="data:image/png;base64,{content}">')


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table; fractions are given four digits, columns of numbers aligned right, None is a dash."""
    numeric = [any(isinstance(value, _NUMBERS) for value in column) for column in zip(*rows, strict=True)]
    kinds = [' class="number"' if right else "" for right in numeric] or [""] * len(heads)
    head = "".join(f"<th{kind}>{escape(text)}</th>" for kind, text in zip(kinds, heads, strict=True))
    body = "\n".join(
        "<tr>"
        + "".join(f"<td{kind}>{_text(value)}</td>" for kind, value in zip(kinds, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return _wide(f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>")


def _wide(content: str) -> str:
    """Return what a narrow window moves sideways by itself: the page stays, and letters stay legible."""
    return f'<div class="wide">{content}</div>'


def _text(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str("-" if value is None else value)
    return escape(text)
