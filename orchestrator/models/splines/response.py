"""How values enter the regression: their logarithm or square root (section 3.2.1), and with what weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Floats

RESPONSES = ("log", "sqrt")
"""Transformations of the response."""

# A square root cannot be predicted below this part of the smallest one that was measured.
_LEAST = 0.5
# Logarithms of the unit and of the square roots of values in it: what is farther away is no number.
_LARGEST = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A transformation of values, with the way back."""

    kind: str  # one of `RESPONSES`
    shift: float  # logarithm of the unit of the values, which keeps squares of squares within numbers
    # The smallest square root that is predicted, in that unit; its logarithm would not exist below zero.
    least: float = 0.0

    def of(self, y: Floats) -> Floats:
        """Return the response of logarithms of values, shape (n,)."""
        if self.kind == "log":
            return y - self.shift
        return np.exp(np.clip(y - self.shift, -_LARGEST, _LARGEST) / 2)

    def logarithm(self, response: Floats) -> Floats:
        """Return the logarithms of values, shape (n,)."""
        if self.kind == "log":
            return response + self.shift
        return 2 * np.log(np.maximum(response, self.least)) + self.shift

    def text(self, right: str) -> str:
        """Return the value as text, from that of the response."""
        unit = f"{np.exp(self.shift):.12g}"
        if self.kind == "log":
            return f"{unit} * exp({right})"
        return f"{unit} * max({right}, {self.least:.12g})**2"

    def label(self, right: str) -> str:
        """Return the value in short: ``exp(rcs(log(m), 4))``."""
        return f"exp({right})" if self.kind == "log" else f"({right})**2"


def response_of(y: Floats, kind: str) -> Response:
    """Return the transformation for logarithms of values, shape (n,); the unit is their median."""
    shift = float(np.median(y))
    plain = Response(kind=kind, shift=shift)
    return Response(kind=kind, shift=shift, least=_LEAST * float(plain.of(y).min()))


def strata(y: Floats) -> Floats:
    """Return the weights of stratification: inverse values, of mean one (section 3.1)."""
    weights = np.exp(np.clip(np.median(y) - y, -_LARGEST, _LARGEST))
    return np.asarray(weights / weights.mean(), np.float64)
