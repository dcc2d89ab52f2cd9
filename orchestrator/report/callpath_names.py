"""Call paths as a reader wants them: C++ names demangled, without what does not tell them apart."""

from __future__ import annotations

import ctypes
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate, chain
from typing import Any

from orchestrator.errors import CampaignError
from orchestrator.models.callpaths import SEPARATOR, bare, parts, signature

_LONG = 60  # characters, beyond which outer callers are left out
# A bracket that follows a word and a space is a remark in the name of an annotated region.
_CPP = re.compile(r"<|::|\S\(")
# A return type stands only before a function with its parameters.
_PARAMETERS = re.compile(r"\S\(")
# How gfortran names the procedures of a module.
_FORTRAN = re.compile(r"__(\w+?)_MOD_(\w+)")
_LEFT_OUT = "..."
_EXAMPLES = 5  # call paths that an error names


def shortened(callpaths: Iterable[str]) -> dict[str, str]:
    """Return a short name of each call path, different ones for different call paths.

    Functions are shown by their qualified names, with parameters only where functions of one caller differ
    in these alone. Of long call paths the outer callers are left out as far as no other ends alike.

    Parameters
    ----------
    callpaths
        All that are shown together, with full names.
    """
    whole = list(dict.fromkeys(callpaths))
    names = _regions(tuple(parts(path)) for path in whole)
    paths = {path: names[tuple(parts(path))] for path in whole}
    ends = Counter(path[k:] for path in paths.values() for k in range(len(path)))
    return {path: _end(shown, ends) for path, shown in paths.items()}


def selected(callpaths: Iterable[str], texts: Sequence[str] | None) -> frozenset[str]:
    """Return the call paths that contain one of the texts, in full or as they are shown; without texts all.

    Raises
    ------
    CampaignError
        When a text is in no call path.
    """
    short = shortened(callpaths)
    if not texts:
        return frozenset(short)
    matching = {
        text: [path for path, name in short.items() if text in path or text in name] for text in texts
    }
    for text in texts:
        if not matching[text]:
            some = ", ".join([*short][:_EXAMPLES]) + ", ..." * (len(short) > _EXAMPLES)
            raise CampaignError(f"--callpath {text!r} is in none of the {len(short)} call paths: {some}")
    return frozenset(chain.from_iterable(matching.values()))


def named(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of a table with short names as ``callpath``."""
    shown = list(rows)
    names = shortened(row["callpath"] for row in shown)
    return [{**row, "callpath": names[row["callpath"]]} for row in shown]


def _regions(paths: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return each path with short names of its regions; siblings keep different ones."""
    children: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    known = list(paths)
    for path in known:
        for k, region in enumerate(path):
            children[path[:k]][region] = None
    short = {caller: _apart(list(regions)) for caller, regions in children.items()}
    return {path: tuple(short[path[:k]][region] for k, region in enumerate(path)) for path in known}


def _apart(regions: Sequence[str]) -> dict[str, str]:
    """Return the shortest names that tell the regions of one caller apart."""
    full = [demangled(region) for region in regions]
    levels = [[_shortest(text) for text in full], [_signature(text) for text in full], full]
    counts = [Counter(names) for names in levels]
    chosen = [
        next((names[k] for names, often in zip(levels, counts, strict=True) if often[names[k]] == 1), region)
        for k, region in enumerate(regions)
    ]
    return dict(zip(regions, chosen if len(set(chosen)) == len(chosen) else regions, strict=True))


def _shortest(region: str) -> str:
    return bare(region) if _is_function(region) else region


def _signature(region: str) -> str:
    return signature(region) if _is_function(region) else region


def _is_function(region: str) -> bool:
    """Whether this is a C++ function whose name can be told from what stands around it."""
    if _CPP.search(region) is None or "operator[" in region or not bare(region):
        return False
    return _PARAMETERS.search(region) is not None or not _has_words(region)


def _has_words(region: str) -> bool:
    """Whether a space stands outside of angle brackets, as in the name of an annotated region."""
    depths = accumulate((letter == "<") - (letter == ">") for letter in region)
    return any(letter == " " and depth == 0 for letter, depth in zip(region, depths, strict=True))


def _end(path: tuple[str, ...], ends: Counter[tuple[str, ...]]) -> str:
    """Return the last regions of a long path: as many as fit, and as make it the only one that ends so."""
    text = SEPARATOR.join(path)
    for k in range(1, len(path)):
        if len(text) <= _LONG:
            break
        if ends[path[k:]] > 1:
            break
        text = SEPARATOR.join((_LEFT_OUT, *path[k:]))
    return text


@lru_cache(maxsize=65536)
def demangled(region: str) -> str:
    """Return the function that a linker's name stands for; other names as they are.

    Those are names of C++ (``_ZN...``), and of modules of gfortran (``__solver_MOD_sweep``).
    """
    head, dot, _ = region.partition(".")  # compilers append .constprop.0 and the like
    if found := _FORTRAN.fullmatch(head):
        return f"{found[1]}::{found[2]}"
    if not head.startswith("_Z"):
        return region
    demangle = _demangler()
    return (demangle(head if dot else region) if demangle is not None else None) or region


@cache
def _demangler() -> Callable[[str], str | None] | None:
    """Return the demangler of the C++ library (``__cxa_demangle``); None where that is not installed."""
    try:
        function = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    release = ctypes.CDLL(None).free
    release.argtypes, release.restype = [ctypes.c_void_p], None

    def demangle(name: str) -> str | None:
        status = ctypes.c_int()
        text = function(name.encode(), None, None, ctypes.byref(status))
        if not text:
            return None
        try:
            return ctypes.string_at(text).decode(errors="replace")
        finally:
            release(text)

    return demangle
