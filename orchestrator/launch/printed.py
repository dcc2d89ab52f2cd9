r"""Numbers as programs print them: what a pattern captured, and whether that is a whole number. Pure.

A pattern such as ``time: ([\d.]+)`` captures 1.25 of ``1.25e-05``, and 1 of ``1,020,200``: figures that look
right and are wrong by orders of magnitude. So a captured text that stops within a number is refused, unless
the pattern itself goes on there.
"""

from __future__ import annotations

import math
import re

from orchestrator.units import PRINTED_MINUTES, PRINTED_SECONDS, printed_duration

_NUMBER_ENDS = re.compile(r"[\d.]\Z", re.ASCII)
_NUMBER_BEGINS = re.compile(r"\.?\d", re.ASCII)
_GOES_ON = re.compile(r"[eEdD][+-]?\d|\.?\d", re.ASCII)
# A word may end in a hyphen or a full stop: `step-12`, `No.5`. So may a line of dots before a number.
_BEGAN = re.compile(r"(?:\d(?:[eEdD][+-]?)?|(?<![\w.)\]])-|(?<![.A-Za-z])\.)\Z", re.ASCII)
_GROUP_FOLLOWS = re.compile(r",\d{3}(?!\d)", re.ASCII)
_GROUPS_END = re.compile(r"[+-]?\d{1,3}(?:,\d{3})*", re.ASCII)
_GROUP_BEFORE = re.compile(r"\d,\Z", re.ASCII)
_GROUP_BEGINS = re.compile(r"\d{3}(?!\d)", re.ASCII)
_REST = re.compile(r"(?:[.,]?\d+)*(?:[eEdD][+-]?\d+)?", re.ASCII)
_BEGINNING = re.compile(r"[+-]?[\d.,]*(?:(?<=\d)[eEdD][+-]?)?\Z", re.ASCII)

_WITH_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?(?:[eEdD][+-]?\d+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eEdD][+-]?\d+)?", re.ASCII)
_DURATION = re.compile(rf"(?<![\w.]){PRINTED_MINUTES}{PRINTED_SECONDS}\b", re.ASCII)
_PLAIN = re.compile(r"\d+(?:\.\d*)?", re.ASCII)
_LONGEST = 40  # characters before a captured text that may belong to its number

THOUSANDS = ","


def number(match: re.Match[str], thousands: str | None = None) -> float:
    """Return the number that a pattern captured, in its group ``value`` or its first one.

    A duration of several parts, such as ``1m23.4s``, is a number of seconds.

    Parameters
    ----------
    match
        Of the pattern, in what the program printed.
    thousands
        What separates groups of three digits; None where nothing may.

    Raises
    ------
    ValueError
        For what is no finite number, or only a part of one; with the text and the remedy.
    """
    group = "value" if "value" in match.re.groupindex else 1
    text = match[group] or ""
    what = f"{text!r}, matched by '{match.re.pattern}',"
    span, duration = match.span(group), printed_duration(text.strip())
    if duration is not None:
        whole = _duration(match, *span, duration) or text
    else:
        plain = _PLAIN.fullmatch(text)
        whole = (_duration(match, *span, float(text)) if plain else "") or _whole(match, *span)
    if whole != text:
        grouped = f", with thousands: '{THOUSANDS}'" if _WITH_THOUSANDS.fullmatch(whole) else ""
        raise ValueError(
            rf"{what} is only a part of {whole!r}: let the group take the whole number, such as (\S+)"
            f"{grouped}; if this part is meant, let the pattern itself go on beyond the group"
        )
    if duration is not None:
        return duration
    try:
        found = float(re.sub("[dD]", "e", _joined(text, thousands)))  # Fortran writes 1.0D+03
    except ValueError:
        raise ValueError(f"{what} is not a number{_remedy(text, thousands)}") from None
    if not math.isfinite(found):
        raise ValueError(f"{what} is not finite")
    return found


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


def _whole(match: re.Match[str], start: int, end: int) -> str:
    """Return the number that a captured text belongs to, as far as the pattern does not go on itself."""
    output = match.string
    text = output[start:end] if start >= 0 else ""
    before = after = ""
    if end == match.end() and _NUMBER_ENDS.search(text):
        grouped = _GROUPS_END.fullmatch(text) and _GROUP_FOLLOWS.match(output, end)
        if grouped or _GOES_ON.match(output, end):
            after = _matched(_REST.match(output, end))
    if start == match.start() and _NUMBER_BEGINS.match(text):
        earlier = output[max(0, start - _LONGEST) : start]
        grouped = _GROUP_BEGINS.match(text) and _GROUP_BEFORE.search(earlier)
        if grouped or _BEGAN.search(earlier):
            before = _matched(_BEGINNING.search(earlier))
    return f"{before}{text}{after}"


def _matched(found: re.Match[str] | None) -> str:
    return found[0] if found else ""


def _joined(text: str, thousands: str | None) -> str:
    """Return a number without what separates its groups of three digits; another text as it is."""
    if thousands is None or not _WITH_THOUSANDS.fullmatch(text):
        return text
    return text.replace(thousands, "")


def _remedy(text: str, thousands: str | None) -> str:
    if thousands is None and _WITH_THOUSANDS.fullmatch(text):
        return f"; write thousands: '{THOUSANDS}' beside the pattern, if the commas separate thousands"
    if thousands is not None and thousands in text:
        return f"; thousands: '{thousands}' joins groups of three digits, as in 1,020,200"
    if _DECIMAL_COMMA.fullmatch(text):
        return "; commas are not read as decimal points: let the program print points, such as by LC_ALL: C"
    return ""
