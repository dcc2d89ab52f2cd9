"""Formulas of models in other languages: LaTeX, MathML, Python and C.

The expression of a model that is a formula is a Python expression of numbers, parameters, ``+ - * / **`` and
a few functions. It is parsed here, never evaluated. What is no such expression, such as ``forest of 200
trees``, has no formula.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Any

from orchestrator.models.symbolic import number_text

_FUNCTIONS = frozenset({"log2", "log", "exp", "sqrt"})
_LARGEST_DENOMINATOR = 12  # of exponents that are typeset as fractions
_PLAIN_DENOMINATORS = (1, 2, 4, 5, 8, 10)  # of those that are short decimals
# How tightly operators bind: a part that binds less tightly than what is around it needs brackets.
_SUM, _PRODUCT, _POWER, _ATOM = 1, 2, 3, 4

Node = ast.expr


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula as a parsed Python expression."""

    tree: Node

    @classmethod
    def of(cls, expression: str, names: Collection[str]) -> Formula | None:
        """Parse an expression of parameters; None if it is something else."""
        try:
            tree = ast.parse(expression, mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            return None
        return cls(tree) if _is_formula(tree, frozenset(names)) else None

    @property
    def latex(self) -> str:
        """As LaTeX, for math mode."""
        return _latex(self.tree)[0]

    @property
    def mathml(self) -> str:
        """As a MathML element."""
        return f"<math><mrow>{_mathml(self.tree)[0]}</mrow></math>"

    @property
    def python(self) -> str:
        """As a Python expression of the module ``math``."""
        return _python(self.tree)

    @property
    def c(self) -> str:
        """As a C expression of ``math.h``."""
        return _c(self.tree)[0]


def _is_formula(node: Node, names: frozenset[str]) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.Name(id=name):
            return name in names
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_formula(operand, names)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.Pow(), right=right):
            return _is_formula(left, names) and _is_formula(right, names)
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]):
            return name in _FUNCTIONS and _is_formula(argument, names)
    return False


def _constant(node: Node) -> float | None:
    """Return the value of a number, a negative one, or a fraction of two numbers."""
    match node:
        case ast.Constant(value=value):
            return float(value)  # type: ignore[arg-type]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _constant(operand)
            return None if inner is None else -inner
        case ast.BinOp(left=ast.Constant(value=above), op=ast.Div(), right=ast.Constant(value=below)):
            return float(above) / float(below)  # type: ignore[arg-type]
    return None


def _fraction(value: float) -> Fraction | None:
    """Return an exponent as a fraction, unless it is better read as a decimal."""
    found = Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)
    is_close = abs(float(found) - value) <= 1e-9
    return found if is_close and found.denominator not in _PLAIN_DENOMINATORS else None


def _bracketed(pair: tuple[str, int], least: int, brackets: tuple[str, str]) -> str:
    text, binding = pair
    return text if binding >= least else f"{brackets[0]}{text}{brackets[1]}"


def _latex(node: Node) -> tuple[str, int]:
    brackets = (r"\left(", r"\right)")

    def inner(part: Node, least: int) -> str:
        return _bracketed(_latex(part), least, brackets)

    match node:
        case ast.Constant(value=value):
            return _latex_number(float(value)), _ATOM  # type: ignore[arg-type]
        case ast.Name(id=name):
            return _latex_name(name), _ATOM
        case ast.UnaryOp(operand=operand):
            return f"-{inner(operand, _PRODUCT)}", _SUM
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            if (text := _power_of_log(left, right, _latex, r"\log_2^{{{1}}}{{{0}}}")) is not None:
                return text, _PRODUCT
            return f"{inner(left, _ATOM)}^{{{_latex_exponent(right)}}}", _POWER
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return rf"\frac{{{_latex(left)[0]}}}{{{_latex(right)[0]}}}", _ATOM
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            sign = r" \cdot " if _constant(right) is not None or _constant(left) is not None else r" \, "
            return f"{inner(left, _PRODUCT)}{sign}{inner(right, _PRODUCT)}", _PRODUCT
        case ast.BinOp(left=left, op=op, right=right):
            sign, least = (" - ", _PRODUCT) if isinstance(op, ast.Sub) else (" + ", _SUM)
            return f"{inner(left, _SUM)}{sign}{inner(right, least)}", _SUM
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            if name == "sqrt":
                return rf"\sqrt{{{_latex(argument)[0]}}}", _ATOM
            shown = {"log2": r"\log_2", "log": r"\ln", "exp": r"\exp"}[name]
            text, binding = _latex(argument)
            return (f"{shown}{{{text}}}" if binding == _ATOM else rf"{shown}\left({text}\right)"), _PRODUCT
    raise AssertionError(ast.dump(node))


def _power_of_log(left: Node, right: Node, write: Callable[[Node], tuple[str, int]], form: str) -> str | None:
    """Return a power of a logarithm of one parameter: the exponent stands behind the function."""
    match left:
        case ast.Call(func=ast.Name(id="log2"), args=[ast.Name() as argument]):
            value = _constant(right)
            if value is not None and value > 0:
                return form.format(write(argument)[0], _short(value))
    return None


def _short(value: float) -> str:
    found = _fraction(value)
    return number_text(value) if found is None else str(found)


def _latex_exponent(node: Node) -> str:
    value = _constant(node)
    if value is None:
        return _latex(node)[0]
    found = _fraction(value)
    return _latex_number(value) if found is None else str(found)


def _latex_number(value: float) -> str:
    mantissa, _, exponent = number_text(value).partition("e")
    return rf"{mantissa} \times 10^{{{exponent}}}" if exponent else mantissa


def _latex_name(name: str) -> str:
    if len(name) == 1:
        return name
    escaped = re.sub("([_&%$#])", r"\\\1", name)
    return rf"\mathrm{{{escaped}}}"


def _mathml(node: Node) -> tuple[str, int]:
    brackets = ("<mrow><mo>(</mo>", "<mo>)</mo></mrow>")

    def inner(part: Node, least: int) -> str:
        return _bracketed(_mathml(part), least, brackets)

    match node:
        case ast.Constant(value=value):
            return _mathml_number(float(value)), _ATOM  # type: ignore[arg-type]
        case ast.Name(id=name):
            return f"<mi>{escape(name)}</mi>", _ATOM
        case ast.UnaryOp(operand=operand):
            return f"<mo>−</mo>{inner(operand, _PRODUCT)}", _SUM
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            form = "<mrow><msubsup><mi>log</mi><mn>2</mn><mn>{1}</mn></msubsup><mo>&#8289;</mo>{0}</mrow>"
            if (text := _power_of_log(left, right, _mathml, form)) is not None:
                return text, _PRODUCT
            return f"<msup>{inner(left, _ATOM)}<mrow>{_mathml_exponent(right)}</mrow></msup>", _POWER
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            above, below = _mathml(left)[0], _mathml(right)[0]
            return f"<mfrac><mrow>{above}</mrow><mrow>{below}</mrow></mfrac>", _ATOM
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return f"{inner(left, _PRODUCT)}<mo>·</mo>{inner(right, _PRODUCT)}", _PRODUCT
        case ast.BinOp(left=left, op=op, right=right):
            sign, least = ("−", _PRODUCT) if isinstance(op, ast.Sub) else ("+", _SUM)
            return f"{inner(left, _SUM)}<mo>{sign}</mo>{inner(right, least)}", _SUM
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            if name == "sqrt":
                return f"<msqrt>{_mathml(argument)[0]}</msqrt>", _ATOM
            shown = {
                "log2": "<msub><mi>log</mi><mn>2</mn></msub>",
                "log": "<mi>ln</mi>",
                "exp": "<mi>exp</mi>",
            }[name]
            return f"<mrow>{shown}<mo>&#8289;</mo>{inner(argument, _ATOM)}</mrow>", _PRODUCT
    raise AssertionError(ast.dump(node))


def _mathml_exponent(node: Node) -> str:
    value = _constant(node)
    if value is None:
        return _mathml(node)[0]
    found = _fraction(value)
    return _mathml_number(value) if found is None else f"<mn>{found}</mn>".replace("-", "−")


def _mathml_number(value: float) -> str:
    mantissa, _, exponent = number_text(value).partition("e")
    shown = f"<mn>{mantissa}</mn>".replace("-", "−")
    if not exponent:
        return shown
    power = f"<msup><mn>10</mn><mn>{exponent}</mn></msup>".replace("-", "−")
    return f"<mrow>{shown}<mo>×</mo>{power}</mrow>"


def _python(node: Node) -> str:
    class Qualified(ast.NodeTransformer):
        def visit_Call(self, call: ast.Call) -> Any:
            self.generic_visit(call)
            assert isinstance(call.func, ast.Name)
            module = ast.Name(id="math", ctx=ast.Load())
            function = ast.Attribute(value=module, attr=call.func.id, ctx=ast.Load())
            return ast.Call(func=function, args=call.args, keywords=[])

    copy = ast.parse(ast.unparse(node), mode="eval").body
    return ast.unparse(ast.fix_missing_locations(Qualified().visit(copy)))


def _c(node: Node) -> tuple[str, int]:
    def inner(part: Node, least: int) -> str:
        return _bracketed(_c(part), least, ("(", ")"))

    match node:
        case ast.Constant(value=value):
            return repr(float(value)), _ATOM  # type: ignore[arg-type]
        case ast.Name(id=name):
            return name, _ATOM
        case ast.UnaryOp(operand=operand):
            return f"-{inner(operand, _PRODUCT)}", _SUM
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return f"pow({_c(left)[0]}, {_c(right)[0]})", _ATOM
        case ast.BinOp(left=left, op=op, right=right):
            sign, own, least = {
                ast.Add: (" + ", _SUM, _SUM),
                ast.Sub: (" - ", _SUM, _PRODUCT),
                ast.Mult: (" * ", _PRODUCT, _PRODUCT),
                ast.Div: (" / ", _PRODUCT, _POWER),
            }[type(op)]
            return f"{inner(left, own)}{sign}{inner(right, least)}", own
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            return f"{name}({_c(argument)[0]})", _ATOM
    raise AssertionError(ast.dump(node))
