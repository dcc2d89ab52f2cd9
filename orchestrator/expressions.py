"""Expressions of a campaign file: a safe, small and fast subset of Python's.

The text is parsed to a syntax tree, every node is checked against a white list and rewritten (names
become look-ups, powers become guarded calls), and the rewritten tree is compiled once. So an expression
can neither reach anything outside its values, nor hang, nor fill the memory.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from orchestrator.errors import ExpressionError
from orchestrator.types import Value
from orchestrator.units import did_you_mean

MOST_CHARACTERS = 2000
MOST_BITS = 4096  # of the integer that a power may yield

Kind = Literal["truth", "number", "text"]
Result = bool | int | float | str


def _power(base: float, exponent: float) -> float:
    if isinstance(base, int) and isinstance(exponent, int) and exponent * base.bit_length() > MOST_BITS:
        raise OverflowError("the power is too large")
    result: float | complex = base**exponent
    if isinstance(result, complex):
        raise ValueError("a negative number to a fractional power")
    return result


def _round(number: float, digits: int | None = None) -> float:
    if digits is not None and (not isinstance(digits, int) or abs(digits) > 300):
        raise ValueError("round() takes a whole number of at most 300 digits")
    return round(number, digits)


FUNCTIONS: Mapping[str, tuple[Callable[..., float], int, int]] = MappingProxyType(
    {
        "abs": (abs, 1, 1),
        "min": (min, 2, 99),
        "max": (max, 2, 99),
        "round": (_round, 1, 2),
        "floor": (math.floor, 1, 1),
        "ceil": (math.ceil, 1, 1),
        "sqrt": (math.sqrt, 1, 1),
        "cbrt": (math.cbrt, 1, 1),
        "log": (math.log, 1, 2),
        "log2": (math.log2, 1, 1),
        "log10": (math.log10, 1, 1),
        "exp": (math.exp, 1, 1),
        "int": (int, 1, 1),
        "float": (float, 1, 1),
    }
)
"""Name -> (function, fewest arguments, most arguments)."""

_GLOBALS = {"__builtins__": {}, "**": _power, **{name: entry[0] for name, entry in FUNCTIONS.items()}}
_VALUES = "values of the names"  # not an identifier: no expression can write this name
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_ALLOWED = (
    "an expression has numbers, names, + - * / // % **, comparisons, and/or/not, if-else and the functions "
    + ", ".join(FUNCTIONS)
)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression. Equal to another one with the same text.

    Attributes
    ----------
    text
        As written.
    names
        The names that it uses.
    kind
        Whether it yields a truth value, a number or text.
    """

    text: str
    names: frozenset[str]
    kind: Kind
    _function: Callable[[Mapping[str, Value]], Result] = field(repr=False, compare=False)

    def __call__(self, values: Mapping[str, Value]) -> Result:
        """Evaluate; raise `ExpressionError` for a missing name or an impossible operation."""
        try:
            return self._function(values)
        except KeyError as error:
            name = str(error.args[0])
            raise ExpressionError(
                f"expression {self.text!r}: unknown name {name!r}; {did_you_mean(name, values)}"
            ) from None
        except (ArithmeticError, ValueError, TypeError) as error:
            used = ", ".join(f"{name}={values[name]!r}" for name in sorted(self.names))
            raise ExpressionError(
                f"expression {self.text!r} cannot be evaluated{' at ' * bool(used)}{used}: {error}"
            ) from None

    def number(self, values: Mapping[str, Value]) -> float:
        """Evaluate to a finite number, or raise `ExpressionError`."""
        result = self(values)
        if isinstance(result, str) or not abs(result) < math.inf:
            raise ExpressionError(f"expression {self.text!r} gives {result!r}, not a finite number")
        return result


def parse(text: str, names: Collection[str] | None = None, texts: Collection[str] = ()) -> Expression:
    """Parse, check and compile an expression.

    Parameters
    ----------
    text
        For example ``"round(p ** (1/3)) ** 3 == p"``.
    names
        Every name that may be used; None allows any.
    texts
        Those names whose values are text: they can be compared and chosen, not computed with.

    Raises
    ------
    ExpressionError
        Naming the expression, what is wrong in it, and the closest known name or function.
    """
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(f"expression of {len(text)} characters; at most {MOST_CHARACTERS} are allowed")
    used: set[str] = set()
    try:
        tree = ast.parse(text.strip(), mode="eval")
        body, kind = _check(tree.body, _Scope(names, frozenset(texts), used))
        function = _function(body)
    except SyntaxError as error:
        raise ExpressionError(f"expression {text!r}: {error.msg}") from None
    except _Refused as refusal:
        raise ExpressionError(f"expression {text!r}: {refusal}") from None
    except (RecursionError, MemoryError):
        raise ExpressionError(f"expression {text!r} is nested too deeply; write it flatter") from None
    except ValueError as error:  # a null character, an integer of too many digits
        raise ExpressionError(f"expression {text!r}: {error}") from None
    return Expression(text, frozenset(used), kind, function)


class _Refused(Exception):
    """A node that is not allowed; the text says why and what is."""


@dataclass(frozen=True, slots=True)
class _Scope:
    names: Collection[str] | None
    texts: frozenset[str]
    used: set[str]


def _function(body: ast.expr) -> Callable[[Mapping[str, Value]], Result]:
    arguments = ast.arguments([], [ast.arg(_VALUES)], kwonlyargs=[], kw_defaults=[], defaults=[])
    code = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, body)))
    # What is evaluated is the rewritten tree of checked nodes, never the text of the campaign file.
    function: Callable[[Mapping[str, Value]], Result] = eval(compile(code, "<expression>", "eval"), _GLOBALS)
    return function


def _check(node: ast.expr, scope: _Scope) -> tuple[ast.expr, Kind]:
    """Return the rewritten node and the kind of its value, or raise `_Refused`."""
    match node:
        case ast.Constant(value=bool()):
            return node, "truth"
        case ast.Constant(value=int() | float()):
            return node, "number"
        case ast.Constant(value=str()):
            return node, "text"
        case ast.Name(id=name):
            return _name(name, scope)
        case ast.UnaryOp(op=ast.Not() as op, operand=operand):
            return ast.UnaryOp(op, _number(operand, scope)), "truth"
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as op, operand=operand):
            return ast.UnaryOp(op, _number(operand, scope)), "number"
        case ast.BinOp(
            left=ast.Name() as left, op=ast.Pow() as op, right=ast.Constant(value=int(exponent)) as right
        ) if 0 <= exponent <= 16:  # cannot grow out of hand, so the guard and its time are saved
            return ast.BinOp(_number(left, scope), op, right), "number"
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            arguments = [_number(left, scope), _number(right, scope)]
            return ast.Call(ast.Name("**", ast.Load()), arguments, []), "number"
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _ARITHMETIC):
            return ast.BinOp(_number(left, scope), op, _number(right, scope)), "number"
        case ast.BoolOp(op=op, values=values):
            checked = [_check(value, scope) for value in values]
            if any(kind == "text" for _, kind in checked):
                raise _Refused(f"{ast.unparse(node)!r} takes text for a truth value; compare it with ==")
            kinds = {kind for _, kind in checked}
            return ast.BoolOp(op, [value for value, _ in checked]), "truth" if kinds == {
                "truth"
            } else "number"
        case ast.Compare():
            return _comparison(node, scope), "truth"
        case ast.IfExp(test=test, body=body, orelse=orelse):
            (first, kind), (second, other) = _check(body, scope), _check(orelse, scope)
            if (kind == "text") != (other == "text"):
                raise _Refused("both branches of 'if' must be numbers, or both text")
            return ast.IfExp(_number(test, scope), first, second), kind if kind == other else "number"
        case ast.Call():
            return _call(node, scope), "number"
    raise _Refused(f"{ast.unparse(node)!r} is not allowed; {_ALLOWED}")


def _name(name: str, scope: _Scope) -> tuple[ast.expr, Kind]:
    if scope.names is not None and name not in scope.names:
        if name in FUNCTIONS:
            raise _Refused(f"the function {name} needs arguments in parentheses")
        raise _Refused(f"unknown name {name!r}; {did_you_mean(name, scope.names)}")
    scope.used.add(name)
    values = ast.Name(_VALUES, ast.Load())
    return ast.Subscript(values, ast.Constant(name), ast.Load()), "text" if name in scope.texts else "number"


def _number(node: ast.expr, scope: _Scope) -> ast.expr:
    checked, kind = _check(node, scope)
    if kind == "text":
        raise _Refused(f"{ast.unparse(node)} is text: compare it with == or in, but do not compute with it")
    return checked


def _comparison(node: ast.Compare, scope: _Scope) -> ast.expr:
    left, kind = _check(node.left, scope)
    operands = []
    for op, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(op, ast.In | ast.NotIn):
            operand, other = _choices(right, scope)
        else:
            operand, other = _check(right, scope)
        if (kind == "text") != (other == "text"):
            raise _Refused(f"{ast.unparse(node)!r} compares text with a number")
        if kind == "text" and isinstance(op, _ORDER):
            raise _Refused(f"{ast.unparse(node)!r} orders text; only ==, != and in apply to it")
        if isinstance(op, ast.Is | ast.IsNot):
            raise _Refused("'is' is not allowed; write ==")
        operands.append(operand)
    return ast.Compare(left, node.ops, operands)


def _choices(node: ast.expr, scope: _Scope) -> tuple[ast.expr, Kind]:
    if not isinstance(node, ast.Tuple | ast.List) or not node.elts:
        raise _Refused("the right side of 'in' must be a list such as (8, 27, 64)")
    checked = [_check(element, scope) for element in node.elts]
    texts = [kind == "text" for _, kind in checked]
    if any(texts) and not all(texts):
        raise _Refused(f"{ast.unparse(node)} mixes text and numbers")
    return ast.Tuple([element for element, _ in checked], ast.Load()), checked[0][1]


def _call(node: ast.Call, scope: _Scope) -> ast.expr:
    name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
    if not isinstance(node.func, ast.Name) or name not in FUNCTIONS:
        raise _Refused(f"unknown function {name!r}; {did_you_mean(name, FUNCTIONS)}")
    _, fewest, most = FUNCTIONS[name]
    if node.keywords or not fewest <= len(node.args) <= most:
        wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
        raise _Refused(f"{name}() takes {wanted} arguments, none of them by keyword")
    return ast.Call(node.func, [_number(argument, scope) for argument in node.args], [])
