"""Values that a campaign does not state but that follow from others: ``nodes * ppn == p`` gives the nodes.

A name that is neither a parameter nor a setting is derived from the first constraint that is one equation in
which every other name is known. The equation is rearranged to an expression for the name, so that one
evaluator serves for all. Names that are known by definition, such as those under ``resources``, are derived
likewise.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from orchestrator import expressions
from orchestrator.errors import ExpressionError
from orchestrator.expressions import FUNCTIONS, MOST_CHARACTERS
from orchestrator.space import Derived, Solve
from orchestrator.types import Value

_CLOSE = 1e-9  # relative: rounding of floating-point numbers


class Unsolvable(ValueError):
    """An equation that gives no single value of a name, or none that can be found; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """What follows from constraints and definitions."""

    derived: tuple[Derived, ...]  # the values, each after those that it needs
    used: frozenset[int]  # positions of the constraints that gave one: they hold at every point by themselves
    missing: Mapping[str, str]  # names that could have been derived, but follow from nothing, with the reason

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the derived values."""
        return tuple(item.name for item in self.derived)

    def with_sources(self, names: Iterable[str]) -> frozenset[str]:
        """Return names, and those that the derived ones among them follow from."""
        found = frozenset(names)
        for item in reversed(self.derived):
            found |= item.needs if item.name in found else frozenset()
        return found


@lru_cache(maxsize=4096)
def names_in(text: str) -> frozenset[str]:
    """Return the names in an expression, functions apart; none in one that is malformed."""
    body = _parsed(text)
    found = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)} if body else set()
    return frozenset(found - FUNCTIONS.keys())


def _parsed(text: str) -> ast.expr | None:
    """Return the syntax tree of an expression; None for what is none, which another check reports."""
    if len(text) > MOST_CHARACTERS:
        return None
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def derive(
    constraints: Sequence[str],
    known: Collection[str],
    texts: Collection[str],
    wanted: Collection[str],
    definitions: Mapping[str, str],
    conventions: Mapping[str, str],
) -> Derivation:
    """Return the values that follow from constraints and definitions.

    Parameters
    ----------
    constraints
        As they are written.
    known
        Names of parameters and settings.
    texts
        Those of them whose values are text.
    wanted
        Further names that equations may give; any other unknown name is a mistake.
    definitions
        Expressions by name, of names that are not known.
    conventions
        The same, for names that neither a definition nor an equation gives.
    """
    search = _Search(
        known=tuple(known),
        texts=tuple(texts),
        wanted=frozenset(wanted) - set(known),
        constraints=list(constraints),
    )
    search.define(definitions)
    for name, text in conventions.items():
        search.define({name: text})
    return Derivation(
        derived=tuple(search.derived), used=frozenset(search.used), missing=dict(search.missing())
    )


@dataclass(slots=True, kw_only=True)
class _Search:
    known: tuple[str, ...]
    texts: tuple[str, ...]
    wanted: frozenset[str]
    constraints: list[str]
    derived: list[Derived] = field(default_factory=list)
    used: list[int] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    def define(self, definitions: Mapping[str, str]) -> None:
        """Derive all that follows once these definitions are known, too."""
        waiting = {name: text for name, text in definitions.items() if name not in self.known}
        progress = True
        while progress:
            ready = [name for name, text in waiting.items() if names_in(text) <= set(self.known)]
            for name in ready:
                text = waiting.pop(name)
                if name not in self.known:
                    self._add(name, text, f"{name} = {text}", None)
            progress = bool(ready) or self._solve_one(waiting)

    def missing(self) -> Iterator[tuple[str, str]]:
        """Yield the wanted names that constraints use, but that follow from nothing."""
        for text in self.constraints:
            for name in sorted(names_in(text) & self.wanted - set(self.known)):
                yield name, self.refused.get(name, "")

    def _solve_one(self, waiting: Collection[str]) -> bool:
        for position, text in enumerate(self.constraints):
            unknown = names_in(text) - set(self.known)
            if position in self.used or len(unknown) != 1:
                continue
            [name] = unknown
            if name not in self.wanted or name in waiting:
                continue
            try:
                solution = solved(text, name)
            except Unsolvable as error:
                self.refused[name] = str(error)
                continue
            self.used.append(position)
            self._add(name, solution, text, text)
            return True
        return False

    def _add(self, name: str, solution: str, reason: str, equation: str | None) -> None:
        solve = _solve(name, solution, equation, self.known, self.texts)
        if solve is None:
            return  # malformed: another check reports the text that it comes from
        self.derived.append(Derived(name=name, needs=names_in(solution), reason=reason, solve=solve))
        self.known = (*self.known, name)


def _solve(
    name: str, solution: str, equation: str | None, known: Sequence[str], texts: Sequence[str]
) -> Solve | None:
    """Return what evaluates a solution and puts it into its equation; None for a malformed expression."""
    try:
        formula = expressions.parse(solution, known, texts)
        sides = [expressions.parse(text, (*known, name), texts) for text in _sides(equation)]
    except ExpressionError:
        return None

    def solve(values: Mapping[str, Value]) -> int | float | None:
        try:
            solved = _whole(formula.number(values))
            left, right = (side.number({**values, name: solved}) for side in sides) if sides else (0, 0)
        except ExpressionError:
            return None
        exact = isinstance(solved, int) and left == int(left) and right == int(right)
        return solved if left == right or (not exact and math.isclose(left, right, rel_tol=_CLOSE)) else None

    return solve


def _whole(number: float) -> int | float:
    """Return the whole number that a result is but for rounding, else the result."""
    nearest = round(number)
    return nearest if math.isclose(number, nearest, rel_tol=_CLOSE) else number


def _sides(equation: str | None) -> list[str]:
    if equation is None:
        return []
    left, right = _equation(equation)
    return [ast.unparse(left), ast.unparse(right)]


def _equation(text: str) -> tuple[ast.expr, ast.expr]:
    """Return the two sides of an equation."""
    body = _parsed(text)
    if isinstance(body, ast.Compare) and len(body.ops) == 1 and isinstance(body.ops[0], ast.Eq):
        return body.left, body.comparators[0]
    raise Unsolvable(f"{text!r} is not one equation, so it only restricts values")


def solved(text: str, name: str) -> str:
    """Return the expression for a name that an equation gives: ``p / ppn`` for ``nodes * ppn == p``.

    Of two solutions of opposite sign, the expression gives the positive one.

    Raises
    ------
    Unsolvable
        If the text is not one equation, or the name stands in it several times or within what cannot be
        rearranged.
    """
    sides = _equation(text)
    uses = [sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(side)) for side in sides]
    if sum(uses) != 1:
        raise Unsolvable(f"{name} stands {sum(uses)} times in {text!r}: write {name} == ...")
    side, rest = sides if uses[0] else sides[::-1]
    while not isinstance(side, ast.Name):
        side, rest = _rearranged(side, rest, name, text)
    return ast.unparse(rest)


def _rearranged(side: ast.expr, rest: ast.expr, name: str, text: str) -> tuple[ast.expr, ast.expr]:
    """Move the outermost operation of ``side``, which holds the name, to the other side."""
    match side:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _INVERSE:
            first = any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(left))
            return (left, _INVERSE[type(op)][0](rest, right)) if first else _second(op, left, right, rest)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return operand, ast.UnaryOp(ast.USub(), rest)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return operand, rest
    raise Unsolvable(f"{text!r} cannot be solved for {name}, only by + - * / and powers: write {name} == ...")


def _second(op: ast.operator, left: ast.expr, right: ast.expr, rest: ast.expr) -> tuple[ast.expr, ast.expr]:
    return right, _INVERSE[type(op)][1](rest, left)


Operation = Callable[[ast.expr, ast.expr], ast.expr]


def _operation(op: ast.operator, swapped: bool = False) -> Operation:
    if swapped:
        return lambda rest, other: ast.BinOp(other, op, rest)
    return lambda rest, other: ast.BinOp(rest, op, other)


def _called(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _root(rest: ast.expr, exponent: ast.expr) -> ast.expr:
    match exponent:
        case ast.Constant(value=2):
            return _called("sqrt", rest)
        case ast.Constant(value=3):
            return _called("cbrt", rest)
    return ast.BinOp(rest, ast.Pow(), ast.BinOp(ast.Constant(1), ast.Div(), exponent))


def _logarithm(rest: ast.expr, base: ast.expr) -> ast.expr:
    match base:
        case ast.Constant(value=2):
            return _called("log2", rest)
    return _called("log", rest, base)


_INVERSE: Mapping[type[ast.operator], tuple[Operation, Operation]] = {
    ast.Add: (_operation(ast.Sub()), _operation(ast.Sub())),
    ast.Sub: (_operation(ast.Add()), _operation(ast.Sub(), swapped=True)),
    ast.Mult: (_operation(ast.Div()), _operation(ast.Div())),
    ast.Div: (_operation(ast.Mult()), _operation(ast.Div(), swapped=True)),
    ast.Pow: (_root, _logarithm),
}
"""Per operator, what moves it to the other side where the name is its first, and its second operand."""
