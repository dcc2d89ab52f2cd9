"""Compilers that a program names."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.control.compilers import compiler


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\x7fELF\0..GCC: (Debian 12.2.0-14) 12.2.0\0..", "GCC: (Debian 12.2.0-14) 12.2.0"),
        (
            b"\x7fELF\0GCC: (GNU) 8.5.0\0clang version 17.0.6 (x)\0clang version 17.0.6 (x)\0",
            "clang version 17.0.6 (x), GCC: (GNU) 8.5.0",
        ),
        (b"\x7fELF\0.AMD clang version 17.0.0 (roc-6)\0", "AMD clang version 17.0.0 (roc-6)"),
        (b"\x7fELF\0nothing", None),
        (b"#!/bin/sh\necho GCC: (no) 1.0", None),
        (b"", None),
    ],
)
def test_names_in_a_program(tmp_path: Path, content: bytes, expected: str | None) -> None:
    path = tmp_path / "program"
    path.write_bytes(content)
    assert compiler(path) == expected


def test_no_program_has_no_compiler(tmp_path: Path) -> None:
    assert compiler(tmp_path / "missing") is None
