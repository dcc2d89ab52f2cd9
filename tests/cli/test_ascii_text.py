"""Terminals and files that take ASCII only still get readable text."""

from __future__ import annotations

import io

from orchestrator.cli import ascii_text
from tests.cli.running import start


def test_signs_have_a_replacement_and_other_characters_a_code() -> None:
    stream = io.TextIOWrapper(raw := io.BytesIO(), encoding="ascii", errors=ascii_text.NAME)
    stream.write("noise of ±2 %, P₊±, 漢")
    stream.flush()
    assert raw.getvalue() == b"noise of +-2 %, P++-, \\u6f22"


def test_standard_error_is_readable() -> None:
    process = start("simulate", "generic", "--truth", "±", environment={"PYTHONIOENCODING": "ascii"})
    _, err = process.communicate()
    assert "--truth '+-': write CALLPATH=EXPRESSION" in err
