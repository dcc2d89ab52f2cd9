r"""Numbers as programs print them: what a pattern captured, and whether that is a whole number. Pure.

A pattern such as ``time: ([\d.]+)`` captures 1.25 of ``1.25e-05``, and 1 of ``1,020,200``: figures that look
right and are wrong by orders of magnitude. So a captured text that stops within a number is refused, unless
the pattern itself goes on there.
"""

from __future__ import annotations

import math
import re
from functools import cache

from orchestrator.units import PRINTED_MINUTES, PRINTED_SECONDS, PRINTED_UNITS, printed_duration

_NUMBER_ENDS = re.compile(r"[\d.]\Z", re.ASCII)
_NUMBER_BEGINS = re.compile(r"\.?\d", re.ASCII)
_GOES_ON = re.compile(r"[eEdD][+-]?\d|\.?\d", re.ASCII)
# A word may end in a hyphen or a full stop: `step-12`, `No.5`. So may a line of dots before a number.
_BEGAN = re.compile(r"(?:\d(?:[eEdD][+-]?)?|(?<![\w.)\]])-|(?<![.A-Za-z])\.)\Z", re.ASCII)
# Of numbers in groups of three digits; @ stands for what may separate the groups.
_GROUP_FOLLOWS = r"[@]\d{3}(?!\d)"
_GROUPS_END = r"[+-]?\d{1,3}(?:[@]\d{3})*"
_GROUP_BEFORE = r"\d[@]\Z"
_GROUP_BEGINS = re.compile(r"\d{3}(?!\d)", re.ASCII)
_REST = r"(?:[@.,]?\d+)*(?:[eEdD][+-]?\d+)?"
_BEGINNING = r"[+-]?[@\d.,]*(?:(?<=\d)[eEdD][+-]?)?\Z"
_WITH_THOUSANDS = r"[+-]?[1-9]\d{0,2}(?:[@]\d{3})+(?:[,.]\d*)?(?:[eEdD][+-]?\d+)?"

# As locales print them: typographic apostrophes, and spaces that do not break.
_SEPARATORS = {",": ",", ".": ".", "'": "'\u2019", " ": " \u00a0\u202f", "_": "_"}
_NOTHING_ELSE = ",'\u2019"  # what stands between digits and three more digits in such numbers only
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eEdD][+-]?\d+)?", re.ASCII)
_DURATION = re.compile(rf"(?<![\w.]){PRINTED_MINUTES}{PRINTED_SECONDS}\b", re.ASCII)
_UNIT = "|".join(PRINTED_UNITS)
_WITH_UNIT = re.compile(rf"(.*[\d.]) *({_UNIT}) *", re.ASCII)
_UNIT_BEHIND = re.compile(rf"[ \t]*[(\[]?({_UNIT})(?![\w/])")
_PLAIN = re.compile(r"\d+(?:\.\d*)?", re.ASCII)
_LONGEST = 40  # characters before a captured text that may belong to its number


def number(match: re.Match[str], thousands: str | None = None) -> float:
    """Return the number that a pattern captured, in its group ``value`` or its first one.

    A duration of several parts, such as ``1m23.4s``, is a number of seconds, and so are ``59.9s`` and
    ``850 ms``: programs that print the one print the other of a shorter run.

    Parameters
    ----------
    match
        Of the pattern, in what the program printed.
    thousands
        What separates groups of three digits; None where nothing may. Beside points commas are decimal.

    Raises
    ------
    ValueError
        For what is no finite number, or only a part of one; with the text and the remedy.
    """
    group = "value" if "value" in match.re.groupindex else 1
    text = match[group] or ""
    what = f"{text!r}, matched by '{match.re.pattern}',"
    span, duration, unit = match.span(group), printed_duration(text.strip()), 1.0
    if duration is None and (found := _WITH_UNIT.fullmatch(text)):  # as if the pattern named the unit
        text, span, unit = found[1], (span[0], span[0] + len(found[1])), PRINTED_UNITS[found[2]]
    if duration is not None:
        whole = _duration(match, *span, duration) or text
    else:
        plain = _PLAIN.fullmatch(text)
        within = _duration(match, *span, float(text)) if plain else ""
        whole = within or _whole(match, *span, thousands)
    if whole != text:
        separator = _separator(whole)
        grouped = f', with thousands: "{separator}"' if separator and separator != thousands else ""
        raise ValueError(
            rf"{what} is only a part of {whole!r}: let the group take the whole number, such as (\S+)"
            f"{grouped}; if this part is meant, let the pattern itself go on beyond the group"
        )
    if duration is not None:
        return duration
    try:
        value = float(re.sub("[dD]", "e", _joined(text, thousands)))  # Fortran writes 1.0D+03
    except ValueError:
        raise ValueError(f"{what} is not a number{_remedy(text, thousands)}") from None
    if not math.isfinite(value):
        raise ValueError(f"{what} is not finite")
    return value * unit


def scale_of_unit(match: re.Match[str]) -> float | None:
    """Return the factor that makes seconds of what `number` returns, by the unit that was printed.

    1 where the pattern captured the unit, which `number` knows; None without one, and where the pattern
    itself goes on behind the number.
    """
    group = "value" if "value" in match.re.groupindex else 1
    if _WITH_UNIT.fullmatch(match[group] or ""):
        return 1.0
    behind = _UNIT_BEHIND.match(match.string, match.end()) if match.end(group) == match.end() else None
    return PRINTED_UNITS[behind[1]] if behind else None


def _duration(match: re.Match[str], start: int, end: int, seconds: float) -> str:
    """Return the duration of several parts of which a pattern captured a part; empty if there is none.

    That the pattern goes on means that minutes are meant, and nothing where seconds were captured: they are
    all of a time below a minute, so the pattern looks right until a run takes longer.
    """
    output = match.string
    for found in _DURATION.finditer(output, max(0, start - _LONGEST), end + _LONGEST):
        ahead = found.start() < start
        if found.start() <= start and end <= found.end() and (ahead or end == match.end()):
            return found[0] if printed_duration(found[0]) != seconds else ""
    return ""


@cache
def _form(pattern: str, thousands: str | None) -> re.Pattern[str]:
    """Return a pattern of numbers in groups: apart by ``thousands``, or by what can be nothing else."""
    separators = _NOTHING_ELSE if thousands is None else _NOTHING_ELSE + _SEPARATORS[thousands]
    return re.compile(pattern.replace("@", re.escape(separators)), re.ASCII)


@cache
def _grouped(thousands: str) -> re.Pattern[str]:
    """Return the pattern of whole numbers whose groups are apart by ``thousands`` alone."""
    point = "," if thousands == "." else r"\."
    form = _WITH_THOUSANDS.replace("[,.]", point).replace("@", re.escape(_SEPARATORS[thousands]))
    return re.compile(form, re.ASCII)


def _separator(text: str) -> str:
    """Return what is apart groups of three digits in a text that is no number otherwise; empty for others."""
    return next((name for name in _SEPARATORS if _grouped(name).fullmatch(text.strip())), "")


def _whole(match: re.Match[str], start: int, end: int, thousands: str | None) -> str:
    """Return the number that a captured text belongs to, as far as the pattern does not go on itself."""
    output = match.string
    text = output[start:end] if start >= 0 else ""
    before = after = ""
    if end == match.end() and _NUMBER_ENDS.search(text):
        follows = _form(_GROUP_FOLLOWS, thousands).match(output, end)
        grouped = follows and _form(_GROUPS_END, thousands).fullmatch(text)
        if grouped or _GOES_ON.match(output, end):
            after = _matched(_form(_REST, thousands).match(output, end))
    if start == match.start() and _NUMBER_BEGINS.match(text):
        earlier = output[max(0, start - _LONGEST) : start]
        grouped = _GROUP_BEGINS.match(text) and _form(_GROUP_BEFORE, thousands).search(earlier)
        if grouped or _BEGAN.search(earlier):
            before = _matched(_form(_BEGINNING, thousands).search(earlier))
    return f"{before}{text}{after}"


def _matched(match: re.Match[str] | None) -> str:
    return match[0] if match else ""


def _joined(text: str, thousands: str | None) -> str:
    """Return a number without what separates its groups of three digits, and with a decimal point."""
    if thousands is None:
        return text
    text = text.strip()
    if _grouped(thousands).fullmatch(text):
        text = re.sub(f"[{re.escape(_SEPARATORS[thousands])}]", "", text)
    elif thousands in text:
        raise ValueError(text)
    return text.replace(",", ".") if thousands == "." else text


def _remedy(text: str, thousands: str | None) -> str:
    if thousands is None and (separator := _separator(text)):
        return f'; write thousands: "{separator}" beside the pattern, if that is apart groups of three digits'
    if thousands is not None and thousands in text:
        example = thousands.join(("1", "020", "200"))
        return f'; thousands: "{thousands}" joins groups of three digits, as in {example}'
    if _DECIMAL_COMMA.fullmatch(text):
        return '; where commas are decimal points, write thousands: "." beside the pattern'
    return ""
