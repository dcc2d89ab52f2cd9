"""Which compiler made an executable: it leaves its name there (section ``.comment`` of ELF files)."""

from __future__ import annotations

import mmap
import re
from pathlib import Path

_ELF = b"\x7fELF"
_NAMES = re.compile(
    rb"GCC: \([^)\0]{1,80}\) [0-9][0-9.]*|clang version [0-9][^\0\n]{0,80}"
    rb"|Intel\(R\)[^\0\n]{0,80}Compiler[^\0\n]{0,80}|NVC\+?\+?[^\0\n]{0,20} [0-9][^\0\n]{0,40}"
)
# Words before a name, as of a vendor: looked for where a name is, as programs have 100 MB and more.
_VENDOR = re.compile(rb"[A-Za-z ]{0,40}\Z")
_MOST = 3  # that are named: start-up code often comes from another one


def compiler(path: Path) -> str | None:
    """Return the compilers that a program names, the most frequent kind first; None where none is found."""
    try:
        with path.open("rb") as file:
            if file.read(len(_ELF)) != _ELF:
                return None
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                found = [_whole_name(content, match) for match in _NAMES.finditer(content)]
    except (OSError, ValueError):
        return None
    names = sorted(dict.fromkeys(found), key=lambda name: -found.count(name))
    return ", ".join(names[:_MOST]) or None


def _whole_name(content: mmap.mmap, match: re.Match[bytes]) -> str:
    begin = match.start()
    vendor = _VENDOR.search(content[max(0, begin - 40) : begin]) if match[0].startswith(b"clang") else None
    return ((vendor[0] if vendor else b"") + match[0]).decode(errors="replace").strip()
