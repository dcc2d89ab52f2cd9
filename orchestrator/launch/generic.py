"""The generic application: a program without an adapter, described by expressions and patterns."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from orchestrator import expressions
from orchestrator.errors import ExpressionError
from orchestrator.expressions import Expression
from orchestrator.launch import printed
from orchestrator.types import Application, Sample, Value, format_value, gap_in
from orchestrator.units import PRINTED_UNITS

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_COMBINE: Mapping[str, Callable[[Sequence[float]], float]] = MappingProxyType(
    {
        "last": lambda values: values[-1],
        "first": lambda values: values[0],
        "sum": math.fsum,
        "mean": lambda values: math.fsum(values) / len(values),
        "max": max,
        "min": min,
    }
)

Aggregate = Literal["last", "first", "sum", "mean", "max", "min"]
Template = tuple[str | Expression, ...]


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where one metric of one call path, or of each row of a table, stands in what the program writes.

    ``pattern`` is a regular expression with one group, or a group called ``value``. It is searched in
    ``file`` (``stdout``, ``stderr`` or a glob pattern). A group called ``callpath`` takes the name of a row,
    which is a call path below that of the item. ``aggregate`` combines several matches of one call path; the
    result is multiplied by ``scale``. ``thousands`` separates groups of three digits in the numbers.
    ``optional``: some runs write none.
    """

    callpath: str
    pattern: str
    metric: str = "time"
    file: str = "stdout"
    scale: float = 1.0
    aggregate: Aggregate = "last"
    thousands: str | None = None
    optional: bool = False


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program without an adapter: what ``program`` in a campaign file says.

    ``arguments``, the values of ``environment`` and the contents of ``files`` are templates (see
    `parse_template`). ``ranks``, ``threads`` and ``check`` are expressions over parameters and settings.
    """

    arguments: tuple[str, ...] = ()
    ranks: str = "1"
    threads: str = "1"
    output: tuple[Output, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    check: tuple[str, ...] = ()


def parse_template(text: str, names: Sequence[str] | None, texts: Sequence[str] = ()) -> Template:
    """Split text at its ``{expression}`` placeholders; ``{{`` and ``}}`` stand for braces.

    ``names`` are those that it may use (None: any), ``texts`` those of them whose values are text.

    Raises
    ------
    ExpressionError
        For a lone brace, an unknown name or a malformed expression.
    """
    parts: list[str | Expression] = []
    end = 0
    for match in _PLACEHOLDER.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        if match[0] in ("{{", "}}"):
            parts.append(match[0][0])
        elif match[1]:
            parts.append(expressions.parse(match[1], names, texts))
        else:
            raise ExpressionError(
                f"{match[0]!r} in {text[:60]!r} is no placeholder; write {{name}}, or {{{{ for a brace"
            )
    return (*parts, text[end:])


def literal(text: str) -> str:
    """Return a template that stands for a text, whatever braces it has."""
    return text.replace("{", "{{").replace("}", "}}")


def parse_variable(text: str, names: Sequence[str] | None, texts: Sequence[str] = ()) -> Template:
    """Split the text of an environment variable, in which braces may also have a meaning of their own.

    Raises
    ------
    ExpressionError
        As from `parse_template`, and for braces without a name, such as those of ``OMP_PLACES={0,1}``.
    """
    remedy = f"write {literal(text)} if the braces belong to the value"
    try:
        parts = parse_template(text, names, texts)
    except ExpressionError as error:
        raise ExpressionError(f"{error}; {remedy}") from None
    for part in parts:
        if isinstance(part, Expression) and not part.names:
            raise ExpressionError(f"{{{part.text}}} in {text[:60]!r} names nothing that varies; {remedy}")
    return parts


def is_literal(text: str) -> bool:
    """Whether the text of a variable cannot be a template: earlier versions passed it on as it is."""
    try:
        parse_variable(text, None)
    except ExpressionError:
        return True
    return False


def _variable(text: str, names: Sequence[str], texts: Sequence[str]) -> Template:
    """Return the template of a variable; what is none is literal, as in directories of earlier versions."""
    try:
        return parse_variable(text, names, texts)
    except ExpressionError:
        return (text,)


def placeholders(text: str) -> list[str]:
    """Return the expressions in a template, malformed ones too."""
    return [match[1] for match in _PLACEHOLDER.finditer(text) if match[1]]


def render(template: Template, values: Mapping[str, Value]) -> str:
    """Return the text with every placeholder replaced by its value, written as short as possible."""
    return "".join(part if isinstance(part, str) else format_value(part(values)) for part in template)


def application(program: Program, parameters: Mapping[str, str], texts: Sequence[str] = ()) -> Application:
    """Return the application that a program's description makes.

    Parameters
    ----------
    program
        The description.
    parameters
        Meaning of every parameter and setting, by name.
    texts
        Those whose values are text.

    Raises
    ------
    ExpressionError
        For a malformed expression or placeholder.
    """
    names = tuple(parameters)
    arguments = [parse_template(text, names, texts) for text in program.arguments]
    files = {name: parse_template(text, names, texts) for name, text in program.files.items()}
    environment = {name: _variable(text, names, texts) for name, text in program.environment.items()}
    ranks = expressions.parse(program.ranks, names, texts)
    threads = expressions.parse(program.threads, names, texts)
    checks = [expressions.parse(text, names, texts) for text in program.check]

    def check(values: Mapping[str, Value]) -> str | None:
        for word, expression in (("ranks", ranks), ("threads", threads)):
            number = expression.number(values)
            if number < 1 or number != int(number):
                return (
                    f"program.{word}: {expression.text} = {format_value(number)} is not a whole number from 1"
                )
        return next((f"program.check: {item.text}" for item in checks if not item(values)), None)

    return Application(
        name="generic",
        description="a program described in the campaign file",
        parameters=dict(parameters),
        ranks=lambda values: int(ranks.number(values)),
        threads=lambda values: int(threads.number(values)),
        arguments=lambda values: [render(template, values) for template in arguments],
        check=check,
        output=lambda texts: _samples(program.output, texts),
        files=lambda values: {name: render(template, values) for name, template in files.items()},
        output_files=tuple(dict.fromkeys(rule.file for rule in program.output if rule.file != "stdout")),
        environment=lambda values: {name: render(text, values) for name, text in environment.items()},
    )


_STREAMS = ("stdout", "stderr")


def _samples(rules: Sequence[Output], texts: Mapping[str, str]) -> list[Sample]:
    """Read the values; raise ``ValueError`` saying what is missing, or that nothing is there."""
    found = [sample for rule in rules for sample in _of_rule(rule, texts)]
    if rules and not found:
        raise ValueError(f"nothing matches any pattern of program.output, such as '{rules[0].pattern}'")
    return found


def _of_rule(rule: Output, texts: Mapping[str, str]) -> list[Sample]:
    """Read one value, or one of every row; raise ``ValueError`` saying what is missing; none of an option."""
    names = fnmatch.filter(sorted(texts), rule.file)
    if not names and rule.optional:
        return []
    if not names:
        raise ValueError(f"{rule.callpath}: no file {rule.file!r} among {', '.join(sorted(texts))}")
    matches = [match for name in names for match in _found(rule, name, texts[name])]
    if not matches and rule.optional:
        return []
    if not matches:
        empty = [name for name in names if not texts[name].strip()]
        note = f" ({', '.join(empty)} {'is' if len(empty) == 1 else 'are'} empty)" if empty else ""
        elsewhere = [name for name in _STREAMS if name not in names and _matches(rule, texts.get(name, ""))]
        some = "" if empty else "; of what only some runs print, write optional: true, then see reread"
        if elsewhere:
            some = f"; {elsewhere[0]} has it: write file: {elsewhere[0]} there, then see reread"
        raise ValueError(
            f"{rule.callpath}: nothing in {', '.join(names)} matches '{rule.pattern}'{note}{some}"
        )
    values: dict[str, list[float]] = {}
    for match in matches:
        values.setdefault(_callpath(rule, match), []).append(_number(rule, match))
    return [
        Sample(callpath, rule.metric, _COMBINE[rule.aggregate](numbers) * rule.scale)
        for callpath, numbers in values.items()
    ]


def _callpath(rule: Output, match: re.Match[str]) -> str:
    """Return the call path of a value: below that of the rule the name of its row, if it has one."""
    row = " ".join((match.groupdict().get("callpath") or "").split())
    return f"{rule.callpath}->{row}" if row else rule.callpath


def _matches(rule: Output, text: str) -> bool:
    return re.search(rule.pattern, text, re.MULTILINE) is not None


def _found(rule: Output, name: str, text: str) -> Sequence[re.Match[str]]:
    """Return the matches that count; raise ``ValueError`` if they may stand in what was not read."""
    matches = list(re.finditer(rule.pattern, text, re.MULTILINE))
    gap = gap_in(text)
    if gap is None:
        return matches
    counting = [
        match
        for match in matches
        if (rule.aggregate == "first" and match.end() <= gap.start())
        or (rule.aggregate == "last" and match.start() >= gap.end())
    ]
    if counting:
        return counting
    remedy = ""
    if len(matches) == 1:
        read = "last" if matches[0].start() >= gap.end() else "first"
        remedy = f"if the program prints it once, set aggregate: {read}, which takes {matches[0][0]!r}; else "
    raise ValueError(
        f"{rule.callpath}: of {name} only the beginning and the end were read ({gap[0].strip()[1:-1]}), "
        f"which do not show the {rule.aggregate} of '{rule.pattern}'; {remedy}let a line of "
        "executor.epilogue write what matters into a file of its own, such as grep step stdout > steps.txt, "
        "and read that file"
    )


def _number(rule: Output, match: re.Match[str]) -> float:
    try:
        value = printed.number(match, rule.thousands)
    except ValueError as error:
        raise ValueError(f"{rule.callpath}: {error}") from None
    unit = printed.scale_of_unit(match) if rule.metric == "time" else None
    if unit is not None and rule.scale != unit and rule.scale in PRINTED_UNITS.values():
        raise ValueError(
            f"{rule.callpath}: {match[0]!r} has a unit of which scale: {rule.scale:g} makes no seconds; "
            r"let the group take the unit, too, such as (\S+ *\w+), and leave out scale"
        )
    return value
