"""Formulas of models in other languages: LaTeX, MathML, Python and C.

The expression of a model that is a formula is a Python expression of numbers, parameters, ``+ - * / **`` and
a few functions. It is parsed here, never evaluated. What is no such expression, such as ``forest of 200
trees``, has no formula.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from html import escape

from orchestrator.models.symbolic import number_text

_FUNCTIONS = frozenset({"log2", "log", "exp", "sqrt"})
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_LARGEST_DENOMINATOR = 12  # of exponents that are typeset as fractions
_PLAIN_DENOMINATORS = (1, 2, 4, 5, 8, 10)  # of those that are short decimals
# How tightly operators bind: a part that binds less tightly than what is around it needs brackets.
_ANY, _SUM, _PRODUCT, _POWER, _ATOM = 0, 1, 2, 3, 4

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
        return _written(self.tree, _LATEX)[0]

    @property
    def mathml(self) -> str:
        """As a MathML element."""
        return f"<math><mrow>{_written(self.tree, _MATHML)[0]}</mrow></math>"

    @property
    def python(self) -> str:
        """As a Python expression of the module ``math``."""
        return re.sub(rf"\b({'|'.join(sorted(_FUNCTIONS))})\(", r"math.\1(", ast.unparse(self.tree))

    @property
    def c(self) -> str:
        """As a C expression of ``math.h``."""
        return _written(self.tree, _C)[0]


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


@dataclass(frozen=True, slots=True)
class _Form:
    """How an operation is written."""

    text: str  # with places for its parts
    binding: int  # how tightly the text binds
    least: tuple[int, ...]  # how tightly each part must bind to stand there without brackets


@dataclass(frozen=True, slots=True, kw_only=True)
class _Language:
    """How formulas are written in a language."""

    # number, exponent, name: writers of numbers, of numbers that are exponents, and of parameters.
    number: Callable[[float], str]
    exponent: Callable[[float], str] | None = None
    name: Callable[[str], str]
    brackets: tuple[str, str]  # around what binds too loosely
    # Of all functions and signs, of ``minus`` before a part, and perhaps of two special cases: ``number*``
    # where one side of a product is a number, ``log2**`` for powers of a logarithm of one parameter.
    forms: Mapping[str, _Form]


def _written(node: Node, language: _Language) -> tuple[str, int]:
    """Return a part of a formula in a language, and how tightly it binds."""
    match node:
        case ast.Constant(value=value):
            return language.number(float(value)), _ATOM  # type: ignore[arg-type]
        case ast.Name(id=name):
            return language.name(name), _ATOM
    operation, parts = _operation(node, language.forms)
    form = language.forms[operation]
    texts = [_bracketed(part, least, language) for part, least in zip(parts, form.least, strict=True)]
    if operation.endswith("**") and language.exponent is not None:
        value = _constant(parts[1])
        texts[1] = texts[1] if value is None else language.exponent(value)
    return form.text.format(*texts), form.binding


def _bracketed(node: Node, least: int, language: _Language) -> str:
    text, binding = _written(node, language)
    return text if binding >= least else text.join(language.brackets)


def _operation(node: Node, known: Collection[str]) -> tuple[str, list[Node]]:
    """Return an operation, as the most special one that a language knows, and its parts."""
    match node:
        case ast.UnaryOp(operand=operand):
            return "minus", [operand]
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            return name, [argument]
        case ast.BinOp(
            left=ast.Call(func=ast.Name(id="log2"), args=[ast.Name() as argument]), op=ast.Pow(), right=right
        ) if "log2**" in known and (_constant(right) or 0.0) > 0:
            return "log2**", [argument, right]
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if "number*" in known and not (
            _constant(left) is None and _constant(right) is None
        ):
            return "number*", [left, right]
        case ast.BinOp(left=left, op=op, right=right):
            return _SIGNS[type(op)], [left, right]
    raise AssertionError(ast.dump(node))


def _latex_number(value: float) -> str:
    mantissa, _, exponent = number_text(value).partition("e")
    return rf"{mantissa} \times 10^{{{exponent}}}" if exponent else mantissa


def _latex_exponent(value: float) -> str:
    found = _fraction(value)
    return _latex_number(value) if found is None else str(found)


def _latex_name(name: str) -> str:
    if len(name) == 1:
        return name
    escaped = re.sub("([_&%$#])", r"\\\1", name)
    return rf"\mathrm{{{escaped}}}"


def _mathml_number(value: float) -> str:
    mantissa, _, exponent = number_text(value).partition("e")
    shown = f"<mn>{mantissa}</mn>".replace("-", "−")
    if not exponent:
        return shown
    power = f"<msup><mn>10</mn><mn>{exponent}</mn></msup>".replace("-", "−")
    return f"<mrow>{shown}<mo>×</mo>{power}</mrow>"


def _mathml_exponent(value: float) -> str:
    found = _fraction(value)
    return _mathml_number(value) if found is None else f"<mn>{found}</mn>".replace("-", "−")


def _mathml_name(name: str) -> str:
    return f"<mi>{escape(name)}</mi>"


_LATEX = _Language(
    number=_latex_number,
    exponent=_latex_exponent,
    name=_latex_name,
    brackets=(r"\left(", r"\right)"),
    forms={
        "minus": _Form("-{0}", _SUM, (_PRODUCT,)),
        "+": _Form("{0} + {1}", _SUM, (_SUM, _SUM)),
        "-": _Form("{0} - {1}", _SUM, (_SUM, _PRODUCT)),
        "*": _Form(r"{0} \, {1}", _PRODUCT, (_PRODUCT, _PRODUCT)),
        "number*": _Form(r"{0} \cdot {1}", _PRODUCT, (_PRODUCT, _PRODUCT)),
        "/": _Form(r"\frac{{{0}}}{{{1}}}", _ATOM, (_ANY, _ANY)),
        "**": _Form("{0}^{{{1}}}", _POWER, (_ATOM, _ANY)),
        "log2**": _Form(r"\log_2^{{{1}}}{{{0}}}", _PRODUCT, (_ANY, _ANY)),
        "log2": _Form(r"\log_2{{{0}}}", _PRODUCT, (_ATOM,)),
        "log": _Form(r"\ln{{{0}}}", _PRODUCT, (_ATOM,)),
        "exp": _Form(r"\exp{{{0}}}", _PRODUCT, (_ATOM,)),
        "sqrt": _Form(r"\sqrt{{{0}}}", _ATOM, (_ANY,)),
    },
)
_APPLY = "<mo>&#8289;</mo>"  # applies a function
_MATHML = _Language(
    number=_mathml_number,
    exponent=_mathml_exponent,
    name=_mathml_name,
    brackets=("<mrow><mo>(</mo>", "<mo>)</mo></mrow>"),
    forms={
        "minus": _Form("<mo>−</mo>{0}", _SUM, (_PRODUCT,)),
        "+": _Form("{0}<mo>+</mo>{1}", _SUM, (_SUM, _SUM)),
        "-": _Form("{0}<mo>−</mo>{1}", _SUM, (_SUM, _PRODUCT)),
        "*": _Form("{0}<mo>·</mo>{1}", _PRODUCT, (_PRODUCT, _PRODUCT)),
        "/": _Form("<mfrac><mrow>{0}</mrow><mrow>{1}</mrow></mfrac>", _ATOM, (_ANY, _ANY)),
        "**": _Form("<msup>{0}<mrow>{1}</mrow></msup>", _POWER, (_ATOM, _ANY)),
        "log2**": _Form(
            f"<mrow><msubsup><mi>log</mi><mn>2</mn>{{1}}</msubsup>{_APPLY}{{0}}</mrow>",
            _PRODUCT,
            (_ANY, _ANY),
        ),
        "log2": _Form(f"<mrow><msub><mi>log</mi><mn>2</mn></msub>{_APPLY}{{0}}</mrow>", _PRODUCT, (_ATOM,)),
        "log": _Form(f"<mrow><mi>ln</mi>{_APPLY}{{0}}</mrow>", _PRODUCT, (_ATOM,)),
        "exp": _Form(f"<mrow><mi>exp</mi>{_APPLY}{{0}}</mrow>", _PRODUCT, (_ATOM,)),
        "sqrt": _Form("<msqrt>{0}</msqrt>", _ATOM, (_ANY,)),
    },
)
_C = _Language(
    number=repr,
    name=str,
    brackets=("(", ")"),
    forms={
        "minus": _Form("-{0}", _SUM, (_PRODUCT,)),
        "+": _Form("{0} + {1}", _SUM, (_SUM, _SUM)),
        "-": _Form("{0} - {1}", _SUM, (_SUM, _PRODUCT)),
        "*": _Form("{0} * {1}", _PRODUCT, (_PRODUCT, _PRODUCT)),
        "/": _Form("{0} / {1}", _PRODUCT, (_PRODUCT, _POWER)),
        "**": _Form("pow({0}, {1})", _ATOM, (_ANY, _ANY)),
        **{name: _Form(name + "({0})", _ATOM, (_ANY,)) for name in sorted(_FUNCTIONS)},
    },
)
