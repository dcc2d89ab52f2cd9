"""Synthetic performance functions: drawn from the normal form, or read from a file of expressions."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from orchestrator import expressions
from orchestrator.errors import CampaignError
from orchestrator.models.hypotheses import PAPER
from orchestrator.types import Parameter, Point, format_value

Factors = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Function:
    """A function of the parameters, in seconds, as an expression that Python and we can evaluate."""

    text: str

    @cached_property
    def _expression(self) -> expressions.Expression:
        return expressions.parse(self.text)

    def __call__(self, point: Point) -> float:
        """Return the time at a point; raise `ExpressionError` where it cannot be evaluated."""
        return self._expression.number(point.as_dict())

    def terms(self) -> list[Factors]:
        """Return the exponents of every term of the normal form, without the constant one.

        Raises
        ------
        ValueError
            When the expression is not a sum of products of powers and logarithms.
        """
        terms = [_factors(term) for term in _operands(ast.parse(self.text, mode="eval").body, ast.Add)]
        return [term for term in terms if term]


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
    middle = {p.name: float(np.sqrt(float(p.values[0]) * float(p.values[-1]))) for p in parameters}
    weights = np.exp(rng.uniform(0.0, np.log(30.0), size=len(groups) + 1))
    seconds = float(np.exp(rng.uniform(np.log(0.1), np.log(1000.0)))) * weights / weights.sum()
    texts = [f"{seconds[0]:.6g}"]
    for share, factors in zip(seconds[1:], groups, strict=True):
        scale = np.prod([middle[name] ** i * np.log2(middle[name]) ** j for name, (i, j) in factors.items()])
        powers = [f"{n}**{format_value(i)}*log2({n})**{format_value(j)}" for n, (i, j) in factors.items()]
        texts.append("*".join([f"{share / scale:.6g}", *powers]))
    return Function("+".join(texts))


def read(path: Path) -> list[Function]:
    """Read functions: JSON with a list ``functions``, or text with one expression per line (# comments).

    Raises
    ------
    CampaignError
        When the file cannot be read, holds no functions, or an expression is malformed.
    """
    try:
        text = path.read_text(encoding="utf-8")
        entries = json.loads(text)["functions"] if path.suffix == ".json" else text.splitlines()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CampaignError(
            f'{path}: {error!r}; a functions file is JSON with a list "functions", or text with one '
            "expression per line"
        ) from None
    lines = [str(entry).split("#")[0].strip() for entry in entries]
    functions = [Function(line) for line in lines if line]
    if not functions:
        raise CampaignError(f"{path}: no functions in it")
    for function in functions:
        expressions.parse(function.text)
    return functions


def _operands(node: ast.expr, operator: type[ast.operator]) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, operator):
        yield from _operands(node.left, operator)
        yield from _operands(node.right, operator)
    else:
        yield node


def _factors(term: ast.expr) -> Factors:
    found: dict[str, tuple[float, float]] = {}
    for node in _operands(term, ast.Mult):
        base, power = node, 1.0
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            base, power = node.left, expressions.parse(ast.unparse(node.right), ()).number({})
        name, exponents = _base(base, power)
        if name:
            i, j = found.get(name, (0.0, 0.0))
            found[name] = (i + exponents[0], j + exponents[1])
    return {name: exponents for name, exponents in found.items() if any(exponents)}


def _base(node: ast.expr, power: float) -> tuple[str, tuple[float, float]]:
    match node:
        case ast.Name(id=name):
            return name, (power, 0.0)
        case ast.Call(func=ast.Name(id="log2"), args=[ast.Name(id=name)]):
            return name, (0.0, power)
        case ast.Constant(value=int() | float()):
            return "", (0.0, 0.0)
    raise ValueError(f"{ast.unparse(node)!r} is not a power of a parameter or of its logarithm")
