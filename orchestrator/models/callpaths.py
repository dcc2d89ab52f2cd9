"""Call paths of two builds of a program: the build that is timed, and the build that counts.

Names of C++ functions differ between compilers and tools: return types (``void f(int)``), typedefs in
parameter lists (``f(Index_t)``), white space, ``[clone .constprop.0]``. Score-P names the root after the
program. So a call path that is not found by its full name is looked for by shorter and shorter names, as long
as these are unique.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

SEPARATOR = "->"
_SPLIT = re.compile(r"(?<!operator)->")
_CLONE = re.compile(r"\s*\[[^\]]*\]|\.(?:constprop|isra|part|cold|lto_priv|llvm)\b[.\d]*")
_TAIL = re.compile(r"\s*(?:const|volatile|noexcept|&&?)\s*$")
_OPERATOR = re.compile(r"operator\s*(?:\(\)|->\*?|<=>|<<=?|>>=?|<=?|>=?)")
_ANONYMOUS = ("(anonymous namespace)::", "{anonymous}::", "_GLOBAL__N_1::")
_ROOT = "main"


def parts(callpath: str) -> list[str]:
    """Return the regions of a call path; ``operator->`` is part of a name."""
    return _SPLIT.split(callpath)


def callers(callpath: str) -> list[str]:
    """Return the call path and all its callers, the nearest first."""
    names = parts(callpath)
    return [SEPARATOR.join(names[:k]) for k in range(len(names), 0, -1)]


@lru_cache(maxsize=65536)
def signature(region: str) -> str:
    """Return a name with its parameters, without return type, clones and white space."""
    name, arguments = _halves(region)
    return name + re.sub(r"\s+", "", arguments)


@lru_cache(maxsize=65536)
def bare(region: str) -> str:
    """Return a qualified name without parameters, template arguments, return type and clones."""
    return _without(_halves(region)[0], "<>")


def _halves(region: str) -> tuple[str, str]:
    """Return the qualified name, its template arguments included, and what stands in parentheses after it."""
    text = _CLONE.sub("", region.strip())
    for anonymous in _ANONYMOUS:
        text = text.replace(anonymous, "")
    operators: list[str] = []

    def hide(match: re.Match[str]) -> str:
        operators.append(match[0].replace(" ", ""))
        return f"operator\0{len(operators) - 1}\0"

    text = _OPERATOR.sub(hide, text)
    while (shorter := _TAIL.sub("", text)) != text:
        text = shorter
    begin = _opening(text) if text.endswith(")") else len(text)
    name, arguments = text[:begin], text[begin:]
    name = re.sub(r"\s*([<>,&*:])\s*", r"\1", name).strip()
    name = name if "operator" in name else name[_last_space(name) :]
    for number, operator in enumerate(operators):
        name = name.replace(f"operator\0{number}\0", operator)
    return name, arguments


def _opening(text: str) -> int:
    """Return where the parenthesis begins that closes at the end."""
    depth = 0
    for place in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[place], 0)
        if not depth:
            return place or len(text)
    return len(text)


def _last_space(name: str) -> int:
    """Return where the name begins after a return type: behind the last space outside of brackets."""
    depth, begin = 0, 0
    for place, letter in enumerate(name):
        depth += (letter in "<({") - (letter in ">)}")
        if letter == " " and depth == 0:
            begin = place + 1
    return begin


def _without(text: str, brackets: str) -> str:
    """Remove what stands in brackets, unless these are of an operator."""
    if "operator" in text:
        return text
    kept, depth = [], 0
    for letter in text:
        depth += letter == brackets[0]
        if not depth:
            kept.append(letter)
        depth -= letter == brackets[1] and depth > 0
    return "".join(kept)


def _path(callpath: str, short: Callable[[str], str], root: str) -> str:
    first, *rest = parts(callpath)
    return SEPARATOR.join(["" if first in (root, _ROOT) else short(first), *map(short, rest)])


def _last(callpath: str) -> str:
    return bare(parts(callpath)[-1]).rpartition("::")[2].casefold()


@dataclass(frozen=True, slots=True)
class Names:
    """Timed call paths by all names that the counting build may use for them."""

    exact: frozenset[str]  # the full names
    # Call paths by shorter names, the longer names first; None where a name stands for several call paths.
    levels: tuple[Mapping[str, str | None], ...]
    # Call paths that no counted call path matches in this way, by their last name alone: timers of a program
    # that have the names of functions.
    lone: Mapping[str, str | None]

    def find(self, callpath: str) -> str | None:
        """Return the timed call path that matches a counted one, or None."""
        return self._known(callpath) or self.lone.get(_last(callpath))

    def _known(self, callpath: str) -> str | None:
        if callpath in self.exact:
            return callpath
        for level, short in zip(self.levels, (signature, bare), strict=True):
            if found := level.get(_path(callpath, short, _ROOT)):
                return found
        return None

    def callers(self, callpath: str) -> Sequence[str]:
        """Return the timed call paths that match a counted one or its callers, the nearest first."""
        found = (self.find(caller) for caller in callers(callpath))
        return list(dict.fromkeys(path for path in found if path is not None))


def names(timed: Iterable[str], counted: Iterable[str]) -> Names:
    """Return the timed call paths by all names that counted call paths may use for them."""
    exact = frozenset(timed)
    roots = {parts(path)[0] for path in exact if not path.startswith("(")}
    root = next(iter(roots)) if len(roots) == 1 else _ROOT
    levels = tuple(
        _unique((_path(path, short, root), path) for path in sorted(exact)) for short in (signature, bare)
    )
    known = Names(exact, levels, {})
    found = {known._known(path) for path in counted}
    lone = [path for path in sorted(exact - found) if SEPARATOR in path]
    return Names(exact, levels, _unique((_last(path), path) for path in lone))


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for key, path in pairs:
        found[key] = None if key in found else path
    return found
