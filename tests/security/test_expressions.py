"""Expressions of a campaign file reach nothing of Python."""

from __future__ import annotations

from types import CodeType

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import expressions
from orchestrator.errors import ExpressionError

ATOMS = [
    *(
        "p",
        "n",
        "1",
        "2.5",
        "'text'",
        "__import__('os')",
        "().__class__",
        "p.real",
        "p[0]",
        "lambda: 0",
        "[p]",
    ),
    *(
        "{p}",
        "f'{p}'",
        "(p := 1)",
        "open('pwned')",
        "eval('1')",
        "exec",
        "globals()",
        "abs",
        "max(p, n)",
        "abs(p)",
    ),
    *(
        "[x for x in (1,)]",
        "*p",
        "yield",
        "await p",
        "print(p)",
        "min.__self__",
        "'%s' % p",
        "...",
        "True",
        "None",
    ),
]
OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "<",
    "==",
    "and",
    "or",
    "if p else",
    "in",
    ",",
    ".",
    "@",
    "(",
    ")",
]
formulas = st.lists(
    st.one_of(st.sampled_from(ATOMS), st.sampled_from(OPERATORS)), min_size=1, max_size=7
).map(" ".join)


def names_in(code: CodeType) -> set[str]:
    inner = [names_in(item) for item in code.co_consts if isinstance(item, CodeType)]
    return set(code.co_names).union(*inner)


@settings(max_examples=1000)
@given(formulas)
def test_an_expression_reaches_nothing_of_python(text: str) -> None:
    try:
        parsed = expressions.parse(text, ("p", "n"))
    except ExpressionError:
        return
    code = parsed._function.__code__
    # Every other way to an attribute, an item or a builtin would need its name here.
    assert names_in(code) <= {*expressions.FUNCTIONS, "**"}, text
    assert parsed.names <= {"p", "n"}
    try:
        result = parsed({"p": 3, "n": 4.5})
    except ExpressionError:
        return
    assert type(result) in (bool, int, float, str)
