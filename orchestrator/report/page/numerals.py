"""Numbers in sentences as the page's tables write them: see `number` in `assets/format.js`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_DIGITS = 4
_SMALL, _LARGE = 1e-3, 1e7  # sizes below and from which on a power of ten is split off
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_POWER = re.compile(r"(?<=\d)e([+-]\d{2,})\b")


def figure(value: float | None) -> str:
    """Return a number with four digits: ``1.36``, ``12 346``, ``3.864×10⁻⁶``; None is a dash."""
    if value is None:
        return "–"
    size = abs(value)
    if size and (size < _SMALL or size >= _LARGE):
        text = f"{value:.{_DIGITS - 1}e}"
    else:
        kept = max(_DIGITS, len(str(int(size))))
        text = f"{float(f'{value:.{kept}g}'):,.{kept}g}".replace(",", "\u202f")
    return powers(text).replace("-", "\N{MINUS SIGN}")


def powers(text: str) -> str:
    """Return a text with powers of ten where numbers have an exponent: ``9×10⁻¹⁴`` for ``9e-14``."""
    return _POWER.sub(lambda found: f"×10{str(int(found[1])).translate(_RAISED)}", text)


def interval(prediction: Mapping[str, Any], unit: str) -> str:
    """Return a predicted value and its interval as text; a dash where the model says nothing."""
    if prediction["value"] is None:
        return "–"
    value, low, high = (figure(prediction[key]) for key in ("value", "low", "high"))
    return with_unit(f"{value} [{low}, {high}]", unit)


def with_unit(text: str, unit: str) -> str:
    """Return a figure with its unit, if there is one."""
    return f"{text} {unit}" if unit else text
