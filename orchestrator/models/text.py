"""Models as readable text that is a Python expression as well."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from orchestrator.models.correction import LINEAR
from orchestrator.models.posterior import Posterior
from orchestrator.types import format_value

# Parts of a correction that change the value by less within the fitted range are not worth reading.
_LEAST = 5e-4


def number(value: float) -> str:
    """Four significant digits: ``2.1e-4``, ``0.3``, ``1780``."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.4g}")
    if 1e-3 <= abs(rounded) < 1e6:
        return np.format_float_positional(rounded, trim="-")
    mantissa, exponent = f"{rounded:.3e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def term_text(term: Mapping[str, Any]) -> str:
    """One term: ``2.1e-4 * p**0.5 * log2(p)``."""
    factors = [
        factor
        for f in term["factors"]
        for factor in (
            power_text(f["parameter"], f["exponent"]),
            power_text(f"log2({f['parameter']})", f["log_exponent"]),
        )
        if factor
    ]
    return " * ".join([number(term["coefficient"]), *factors])


def power_text(base: str, exponent: float) -> str:
    """A power, with thirds and the like as fractions; empty for exponent 0."""
    if exponent == 0:
        return ""
    if exponent == 1:
        return base
    fraction = Fraction(exponent).limit_denominator(12)
    if fraction.denominator in (1, 2, 4, 5, 8, 10) or abs(float(fraction) - exponent) > 1e-9:
        plain = format_value(exponent)
        return f"{base}**{plain}" if exponent > 0 else f"{base}**({plain})"
    return f"{base}**({fraction})"


def correction_text(parameters: tuple[str, ...], posterior: Posterior) -> list[str]:
    """Factors of the smooth correction: powers whose exponents change with the logarithm."""
    if posterior.correction is None:
        return []
    features, coefficients = posterior.correction.features, posterior.correction.coefficients[0]
    scaled = {
        name: f"{name}/{number(float(np.exp(m)))}"
        for name, m in zip(parameters, features.middle, strict=True)
    }
    exponents: dict[str, list[tuple[float, str]]] = {}
    for (k, j), a in zip(features.pairs, coefficients, strict=True):
        if abs(a) < _LEAST:
            continue
        first = parameters[k]
        if j < 0:
            exponents.setdefault(first, []).append((LINEAR * a / features.half[k], ""))
        else:
            bend = a * np.log(2) / (features.half[k] * features.half[j])
            exponents.setdefault(first, []).append((bend, f"log2({scaled[parameters[j]]})"))
    factors = []
    for name, parts in exponents.items():
        sums = " + ".join(" * ".join(filter(None, [number(float(v)), f])) for v, f in parts)
        factors.append(f"({scaled[name]})**({sums.replace('+ -', '- ')})")
    return factors
