"""Expressions such as ``p + n * log2(n * p)`` as sums of products of powers and logarithms."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from math import e, log2

from orchestrator import expressions
from orchestrator.generate.complexity import multiplied

Monomial = tuple[tuple[str, tuple[float, float]], ...]
"""Parameters, each with its exponent and that of its logarithm."""
_Sum = dict[Monomial, float]

_ROOTS = {"sqrt": 1 / 2, "cbrt": 1 / 3}
_LOGARITHMS = {"log2": 1.0, "log": log2(e), "log10": log2(10)}
_MOST_POWER = 8  # of a sum: it is multiplied out


def sum_of(text: str) -> Mapping[Monomial, float]:
    """Return the coefficients of an expression, products multiplied out; logarithms are of base 2.

    Raises
    ------
    ValueError
        For an expression that is no such sum.
    """
    return _sum(ast.parse(text, mode="eval").body)


def _sum(node: ast.expr) -> _Sum:
    match node:
        case ast.Constant(value=int() | float() as value):
            return {(): float(value)}
        case ast.Name(id=name):
            return {((name, (1.0, 0.0)),): 1.0}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return {m: -c for m, c in _sum(operand).items()}
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _plus(_sum(left), _sum(right))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _plus(_sum(left), {m: -c for m, c in _sum(right).items()})
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _times(_sum(left), _sum(right))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _times(_sum(left), _power(_sum(right), -1.0))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_sum(left), expressions.parse(ast.unparse(right), ()).number({}))
        case ast.Call(func=ast.Name(id=name), args=[argument]) if name in _ROOTS:
            return _power(_sum(argument), _ROOTS[name])
        case ast.Call(func=ast.Name(id=name), args=[argument]) if name in _LOGARITHMS:
            return _logarithm(_sum(argument), _LOGARITHMS[name])
    raise ValueError(f"{ast.unparse(node)!r} is not part of such a sum")


def _plus(first: _Sum, second: _Sum) -> _Sum:
    total = dict(first)
    for monomial, coefficient in second.items():
        total[monomial] = total.get(monomial, 0.0) + coefficient
    return total


def _times(first: _Sum, second: _Sum) -> _Sum:
    total: _Sum = {}
    for left, a in first.items():
        for right, b in second.items():
            total = _plus(total, {_joined(left, right): a * b})
    return total


def _joined(left: Monomial, right: Monomial) -> Monomial:
    return tuple(sorted(multiplied([dict(left), dict(right)]).items()))


def _power(base: _Sum, exponent: float) -> _Sum:
    if len(base) == 1:
        [(monomial, coefficient)] = base.items()
        if coefficient <= 0 and not (coefficient and float(exponent).is_integer()):
            raise ValueError("a division by zero, or a root of something negative, is no time")
        raised = tuple((name, (i * exponent, j * exponent)) for name, (i, j) in monomial)
        return {_joined(raised, ()): coefficient**exponent}
    if not float(exponent).is_integer() or not 0 <= exponent <= _MOST_POWER:
        raise ValueError(f"a sum to the power {exponent:g} has no exponents that could be compared")
    total: _Sum = {(): 1.0}
    for _ in range(int(exponent)):
        total = _times(total, base)
    return total


def _logarithm(argument: _Sum, bits: float) -> _Sum:
    """Return the logarithm of a product of powers as a sum of logarithms; ``bits`` is log2 of its base."""
    if len(argument) != 1:
        raise ValueError("a logarithm of a sum has no exponents that could be compared")
    [(monomial, coefficient)] = argument.items()
    if coefficient <= 0 or any(j for _, (_, j) in monomial):
        raise ValueError("a logarithm of anything but a product of powers has no such exponents")
    total: _Sum = {(): log2(coefficient) / bits} if coefficient != 1 else {}
    for name, (i, _) in monomial:
        total = _plus(total, {((name, (0.0, 1.0)),): i / bits})
    return total
