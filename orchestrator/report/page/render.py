"""From the document of a report to one self-contained HTML file: style, scripts, library and data inside.

The scripts are plain modules, so that editors and other tools understand them; in the page they become one.
The page's own policy allows exactly these scripts and no network: whatever a name in the document contains,
it is text.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import orjson

_ASSETS = Path(__file__).parent / "assets"
# In the order in which they need each other.
_SCRIPTS = (
    "format", "dom", "data", "theme", "charts", "sides", "head", "sliders", "tree", "model", "scaling",
    "points", "attempts", "effort", "downloads", "comparison", "main",
)  # fmt: skip
_PLAIN = 200_000  # bytes of JSON up to which the document is readable in the file; beyond it is compressed
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_HOLE = re.compile(r"\{\{(\w+)\}\}")
_KINDS = {"campaign": "Campaign", "measurements": "Measurements", "comparison": "Comparison"}


def page(document: Mapping[str, Any]) -> str:
    """Return the report page of a document: one HTML file that needs nothing else.

    Parameters
    ----------
    document
        What the page shows, ready for JSON; sections that are absent or None are left out.

    Raises
    ------
    TypeError
        When the document holds something that JSON cannot.
    """
    kind, data = _embedded(
        orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)
    )
    program = str(document.get("program", "orchestrator"))
    parts = {
        "policy": _policy(),
        "program": escape(program),
        "title": escape(str(document.get("title", "Report"))),
        "overline": _KINDS.get(str(document.get("kind")), "Report"),
        "made": escape(f"Made {_said(str(document.get('generated', '')))} by {program}"),
        "style": _asset("page.css"),
        "document_type": kind,
        "document": data,
        "library": library(),
        "script": script(),
    }
    return _HOLE.sub(lambda hole: parts[hole[1]], _asset("page.html"))


def _embedded(text: bytes) -> tuple[str, str]:
    """Return the type and content of the element that holds the document."""
    if len(text) <= _PLAIN:
        # "<" occurs in strings only: no string can end the element.
        return "application/json", text.decode().replace("<", "\\u003c")
    packed = gzip.compress(text, compresslevel=9, mtime=0)
    return "application/gzip", base64.b64encode(packed).decode()


def _said(moment: str) -> str:
    """Return an ISO time as people write it; what is none stays."""
    try:
        found = datetime.fromisoformat(moment)
    except ValueError:
        return moment
    return f"on {found.day} {found:%B %Y, %H:%M %Z}".rstrip()


@cache
def script() -> str:
    """Return the page's modules as one: each a function that returns what the module exports."""
    return "\n".join(_module(name, _asset(f"{name}.js")) for name in _SCRIPTS)


def _module(name: str, text: str) -> str:
    exported = ", ".join(match[2] for match in _EXPORT.finditer(text))
    inner = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = module_\2;", text))
    return f"const module_{name} = (() => {{\n{inner}return {{ {exported} }};\n}})();"


@cache
def library() -> str:
    """Return the plotting library, Apache ECharts: see `assets/library/README.md`."""
    return _asset("library/echarts.min.js")


@cache
def _policy() -> str:
    """Return what the page may do: run its own scripts, and reach nothing."""
    allowed = " ".join(f"'sha256-{_digest(text)}'" for text in (library(), script()))
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
