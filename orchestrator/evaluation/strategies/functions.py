"""Synthetic performance functions: drawn from the normal form, or read from a file of expressions."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from orchestrator import expressions
from orchestrator.errors import CampaignError, ExpressionError
from orchestrator.evaluation.sums import sum_of
from orchestrator.models import PAPER
from orchestrator.types import Parameter, Point, format_value

Factors = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Function:
    """A function of the parameters, in seconds, as an expression that Python and we can evaluate."""

    text: str  # the expression
    source: str = field(default="", compare=False)  # file and line that errors name; empty if it was drawn

    def __reduce__(self) -> tuple[type[Function], tuple[str, str]]:
        """Travel to worker processes without the compiled expression, which cannot."""
        return Function, (self.text, self.source)

    @cached_property
    def _expression(self) -> expressions.Expression:
        return expressions.parse(self.text)

    def __call__(self, point: Point) -> float:
        """Return the time at a point; raise `ExpressionError` where it cannot be evaluated or is no time."""
        try:
            seconds = self._expression.number(point.as_dict())
        except ExpressionError as error:
            raise ExpressionError(f"{self._origin}{error}") from None
        if seconds <= 0:
            raise ExpressionError(
                f"{self._origin}expression {self.text!r} gives {seconds:g} at {point}, but a time is greater "
                "than 0"
            )
        return seconds

    def terms(self) -> list[Factors]:
        """Return the exponents of every term of the normal form, without the constant one.

        Raises
        ------
        CampaignError
            When the expression is not a sum of products of powers and logarithms.
        """
        try:
            total = sum_of(self.text)
        except (ExpressionError, ValueError) as error:
            raise CampaignError(
                f"{self._origin}expression {self.text!r}: {error}, so it has no exponents that a strategy of "
                "the kind 'oracle' could know; choose others (--strategy), or write a sum of such products"
            ) from None
        return [dict(monomial) for monomial, coefficient in total.items() if monomial and coefficient]

    @property
    def _origin(self) -> str:
        return f"{self.source}: " if self.source else ""


def draw(parameters: Sequence[Parameter], rng: np.random.Generator) -> Function:
    """Draw a function from the normal form (Ritter et al., equation 1).

    Each parameter appears once, with exponents drawn uniformly from the paper's sets; the parameters are
    grouped into product terms by a random partition. Every term, and the constant, takes a share of the time
    at the middle of the grid whose weight is log-uniform within a factor of 30, so that none is beyond
    measurement there. The time there is log-uniform between 0.1 s and 1000 s.
    """
    groups: list[dict[str, tuple[float, float]]] = []
    for parameter in parameters:
        group = int(rng.integers(len(groups) + 1))
        if group == len(groups):
            groups.append({})
        groups[group][parameter.name] = PAPER[int(rng.integers(len(PAPER)))]
    return of_terms(groups, parameters, rng)


def of_terms(terms: Sequence[Factors], parameters: Sequence[Parameter], rng: np.random.Generator) -> Function:
    """Draw the coefficients of a function with given exponents, as `draw` does."""
    middle = {p.name: float(np.sqrt(float(p.values[0]) * float(p.values[-1]))) for p in parameters}
    weights = np.exp(rng.uniform(0.0, np.log(30.0), size=len(terms) + 1))
    seconds = float(np.exp(rng.uniform(np.log(0.1), np.log(1000.0)))) * weights / weights.sum()
    texts = [f"{seconds[0]:.6g}"]
    for share, factors in zip(seconds[1:], terms, strict=True):
        scale = np.prod([middle[name] ** i * np.log2(middle[name]) ** j for name, (i, j) in factors.items()])
        powers = [f"{n}**{format_value(i)}*log2({n})**{format_value(j)}" for n, (i, j) in factors.items()]
        texts.append("*".join([f"{share / scale:.6g}", *powers]))
    return Function("+".join(texts))


def read(path: Path, names: Collection[str] | None = None) -> list[Function]:
    """Read functions: JSON with a list ``functions``, or text with one expression per line (# comments).

    Parameters
    ----------
    path
        The file.
    names
        Parameters that the functions may have; None allows any.

    Raises
    ------
    CampaignError
        When the file cannot be read, holds no functions, or an expression is malformed: naming its line.
    """
    try:
        text = path.read_text(encoding="utf-8")
        entries = _listed(text) if path.suffix == ".json" else text.splitlines()
    except OSError as error:
        raise CampaignError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise CampaignError(
            f'{path}: {error}; a functions file is JSON with a list "functions", or text with one '
            "expression per line"
        ) from None
    what = "function" if path.suffix == ".json" else "line"
    lines = [(entry.split("#")[0].strip(), f"{path}, {what} {k}") for k, entry in enumerate(entries, start=1)]
    functions = [Function(line, source) for line, source in lines if line]
    if not functions:
        raise CampaignError(f"{path}: no functions in it")
    for function in functions:
        try:
            expressions.parse(function.text, names)
        except ExpressionError as error:
            raise ExpressionError(f"{function.source}: {error}") from None
    return functions


def _listed(text: str) -> list[str]:
    """Return the list ``functions`` of a JSON document; raise ``ValueError`` if there is none."""
    document = json.loads(text)
    entries = document.get("functions") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise ValueError('no list "functions" of text in it')
    return entries
