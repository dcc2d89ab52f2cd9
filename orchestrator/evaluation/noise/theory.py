"""Stated theories: expressions such as ``p + n * log2(n * p)`` as sums of terms, to compare models with."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from math import e, log2

from orchestrator import expressions
from orchestrator.errors import CampaignError, ExpressionError
from orchestrator.generate.complexity import multiplied
from orchestrator.models.callpaths import SEPARATOR
from orchestrator.models.symbolic import Term
from orchestrator.report.callpath_names import shortened
from orchestrator.types import Measurements
from orchestrator.units import did_you_mean

Factor = tuple[str, tuple[float, float]]
_Monomial = tuple[Factor, ...]
_Sum = dict[_Monomial, float]

_ROOTS = {"sqrt": 1 / 2, "cbrt": 1 / 3}
_LOGARITHMS = {"log2": 1.0, "log": log2(e), "log10": log2(10)}
_MOST_POWER = 8  # of a sum: it is multiplied out
_FORM = "write a sum of products of powers and logarithms, such as p + n * log2(n * p)"


def stated(texts: Sequence[str], known: Measurements) -> dict[str, tuple[Term, ...]]:
    """Return the theory of every call path that one is stated for, ``CALLPATH=EXPRESSION``.

    Parameters
    ----------
    texts
        Call paths are given in full, as they are shown, or by a part that only one of them has.
    known
        What was measured.

    Raises
    ------
    CampaignError
        For a text without ``=``, an unknown or ambiguous call path, an unknown parameter, or an expression
        of another form.
    """
    found = {}
    for text in texts:
        name, equals, expression = text.rpartition("=")
        if not equals or not name.strip() or not expression.strip():
            raise CampaignError(f"theory {text!r}: write CALLPATH=EXPRESSION, such as 'main=n * log2(n)'")
        found[_callpath(name.strip(), known)] = terms(expression.strip(), known.parameters)
    return found


def _callpath(name: str, known: Measurements) -> str:
    short = shortened(item.callpath for item in known.items)
    for same in (
        [path for path in short if path == name],
        [path for path in short if short[path] == name],
        [path for path in short if short[path].rpartition(SEPARATOR)[2] == name],
        [path for path in short if name in path],
    ):
        if len(same) == 1:
            return same[0]
        if same:
            raise CampaignError(
                f"theory of {name!r}: {len(same)} call paths have this name: {', '.join(same)}"
            )
    raise CampaignError(f"theory of {name!r}: no such call path; {did_you_mean(name, short.values())}")


def terms(text: str, names: Collection[str]) -> tuple[Term, ...]:
    """Return an expression as JSON-ready terms (`orchestrator.models.symbolic`).

    Raises
    ------
    CampaignError
        For an expression that is malformed, or no sum of products of powers and logarithms.
    """
    try:
        expressions.parse(text, names)
        total = _sum(ast.parse(text, mode="eval").body)
    except ExpressionError as error:
        raise CampaignError(f"theory {text!r}: {error}") from None
    except ValueError as error:
        raise CampaignError(f"theory {text!r}: {error}; {_FORM}") from None
    return tuple(
        {
            "coefficient": coefficient,
            "factors": [{"parameter": n, "exponent": i, "log_exponent": j} for n, (i, j) in monomial],
        }
        for monomial, coefficient in total.items()
        if coefficient
    )


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


def _joined(left: _Monomial, right: _Monomial) -> _Monomial:
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
