"""Launch templates: how one application is started, as a shell script with named placeholders.

A template begins with comments for people. One of its commands has ``{{executable}}`` and starts the program.
Lines before it prepare the run, lines after it follow the program. The whole is put into a frame (see
`orchestrator.launch.script`), which adds modules, environment and launcher.

A placeholder is a name or an expression over names: ``{{s}}``, ``{{n // p}}``. Its value never becomes shell
text: in the command it is quoted as one word; where quoting is not possible (within quotes, in
here-documents, in other lines) a value that the shell could interpret is refused.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from orchestrator import expressions
from orchestrator.errors import CampaignError, ExpressionError
from orchestrator.types import Value, format_value
from orchestrator.units import did_you_mean

EXECUTABLE = "executable"
LAUNCHER = "launcher"

_PLACEHOLDER = re.compile(r"\{\{\s*(.*?)\s*\}\}|\{\{|\}\}")
_NAME = re.compile(r"[^\W\d]\w*")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]*")
_LAUNCHED = re.compile(r"\{\{\s*launcher\s*\}\}\s+")
_HAS_EXECUTABLE = re.compile(r"\{\{\s*executable\s*\}\}")
# Where commands are substituted. Quotes do not help after `>&`: bash expands a name there twice.
_SUBSTITUTION = re.compile(r"\$[('\"]|`|<<|>&(?!\s*(?:\d+|-)(?:[\s;|&<>()]|$))")
_HERE_DOCUMENT = re.compile(r"<<(-?)(?!<)\s*(?:(['\"])(.+?)\2|\\?([\w.]+))")
_REDIRECTIONS = frozenset({"<", ">", ">>", ">|", "<>", ">&", "<&", "&>", "&>>", "<<<"})


@dataclass(frozen=True, kw_only=True)
class Template:
    """A launch template, divided at the command that starts the program."""

    source: str  # its file, for messages
    header: str  # the comments at its beginning
    # before, command, after: shell text with placeholders.
    before: str
    command: str
    after: str
    lines: tuple[int, int, int]  # numbers of the first lines of these three in the file, from 1

    def names(self) -> frozenset[str]:
        """Return the names that its placeholders use, beside those of the frame."""
        texts = (self.before, self.command, self.after)
        found = (match[1] for text in texts for match in _PLACEHOLDER.finditer(text) if match[1])
        used: set[str] = set()
        for text in found:
            try:
                used |= {text} if _NAME.fullmatch(text) else expressions.parse(text).names
            except ExpressionError:
                continue  # `fill` reports it with its line
        return frozenset(used - {EXECUTABLE, LAUNCHER})


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A template with values: shell text.

    ``launched``: the command is to be started by the frame's launcher. ``simple``: it is one command, which
    may replace the shell.
    """

    before: str
    command: str
    after: str
    launched: bool
    simple: bool


@dataclass(frozen=True, kw_only=True)
class Start:
    """A program and how it is started: ``launcher`` and ``prefix`` (before the path) are shell text."""

    executable: str
    launcher: str = ""
    prefix: str = ""


def parse(text: str, source: str) -> Template:
    """Divide the text of a template.

    Raises
    ------
    CampaignError
        Unless exactly one command has ``{{executable}}``.
    """
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.strip() and not _is_comment(line)), len(lines))
    commands = [(first, end) for first, end in _commands(lines, start) if _starts(lines[first:end])]
    if not commands:
        raise CampaignError(
            f"{source}: no command has {{{{executable}}}}; write the one that starts the program, such as "
            "{{launcher}} {{executable}} -n {{n}}"
        )
    if len(commands) > 1:
        numbers = " and ".join(str(first + 1) for first, _ in commands)
        raise CampaignError(
            f"{source}: lines {numbers} each have {{{{executable}}}}; keep it in the command that starts the "
            "program, and write the path in the others"
        )
    [(first, end)] = commands
    return Template(
        source=source,
        header="\n".join(lines[:start]).strip(),
        before=_stripped(lines[start:first]),
        command="\n".join(lines[first:end]).strip(),
        after=_stripped(lines[end:]),
        lines=(_first(lines, start), first + 1, _first(lines, end)),
    )


def fill(
    template: Template, values: Mapping[str, Value], program: Start, texts: Collection[str] = ()
) -> Filled:
    """Replace the placeholders of a template.

    Parameters
    ----------
    template
        From `parse`.
    values
        What its names stand for.
    program
        What is started.
    texts
        Names whose values are text in expressions.

    Raises
    ------
    CampaignError
        For an unknown or malformed placeholder, and for a value that cannot be quoted where it stands: with
        file and line.
    """
    launched = _LAUNCHED.match(template.command)
    command = template.command[launched.end() :] if launched else template.command
    known = _Known(values, program, frozenset(texts))
    source, (before, line, after) = template.source, template.lines
    return Filled(
        before=_filled(template.before, known, _At(source, before), frozenset()),
        command=_filled(command, known, _At(source, line), _outside_quotes(command)),
        after=_filled(template.after, known, _At(source, after), frozenset()),
        launched=launched is not None,
        simple=launched is not None and _is_simple(command),
    )


@dataclass(frozen=True)
class _Known:
    values: Mapping[str, Value]
    program: Start
    texts: frozenset[str]


@dataclass(frozen=True)
class _At:
    source: str
    line: int

    def __call__(self, text: str, position: int) -> str:
        return f"{self.source}:{self.line + text.count(chr(10), 0, position)}"


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _commands(lines: list[str], start: int) -> Iterator[tuple[int, int]]:
    """Yield first and end of every command: a line with those that it is continued on.

    Quotes and here-documents are followed only from the line that starts the program.
    """
    first = start
    while first < len(lines):
        end = first + 1
        while lines[end - 1].endswith("\\") and not _is_comment(lines[first]) and end < len(lines):
            end += 1
        if _starts(lines[first:end]):
            end = _whole(lines, first) or end
        yield first, end
        first = end


def _whole(lines: list[str], first: int) -> int | None:
    """Return the end of a command with its quotes, here-documents and pipes; None where one has no end."""
    open_, end = "", first
    while end < len(lines):
        open_, goes_on, delimiters = _scanned(lines[end], open_)
        end += 1
        for tabs, delimiter in delimiters:
            texts = (line.lstrip("\t") if tabs else line for line in lines[end:])
            length = next((i + 1 for i, text in enumerate(texts) if text == delimiter), None)
            if length is None:
                return None
            end += length
        if not open_ and not goes_on:
            return end
    return None


def _scanned(line: str, open_: str) -> tuple[str, bool, list[tuple[bool, str]]]:
    """Return the quote that is open after a line, whether its command goes on, and its here-documents.

    ``open_`` is the quote that is open before it. Of a here-document: whether tabs before its lines do not
    count, and the line that ends it.
    """
    delimiters, position, code = list[tuple[bool, str]](), 0, ""
    while position < len(line):
        character = line[position]
        begun = _HERE_DOCUMENT.match(line, position) if not open_ else None
        if begun is not None and not code.endswith("<"):
            delimiters.append((bool(begun[1]), begun[3] or begun[4]))
            position = begun.end()
            continue
        if character == "#" and not open_ and (not code or code[-1].isspace()):
            break
        if character == "\\" and open_ != "'":
            position += 1
            code += "x" if position < len(line) else character
        elif character in "'\"" and open_ in ("", character):
            open_, code = ("" if open_ else character), code + "x"
        else:
            code += "x" if open_ else character
        position += 1
    return open_, code.endswith("\\") or code.rstrip().endswith(("|", "&&")), delimiters


def _starts(lines: list[str]) -> bool:
    return not _is_comment(lines[0]) and _HAS_EXECUTABLE.search("\n".join(lines)) is not None


def _stripped(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n")


def _first(lines: list[str], start: int) -> int:
    """Return the number of the first line from ``start`` that is not empty, from 1."""
    return next((i + 1 for i in range(start, len(lines)) if lines[i].strip()), start + 1)


def _is_simple(command: str) -> bool:
    """Whether a command has no pipe, list or background: only then it may replace the shell."""
    words = shlex.shlex(_PLACEHOLDER.sub("x", command), posix=True, punctuation_chars=True)
    try:
        return all(word in _REDIRECTIONS or not set(word) <= set("();<>|&") for word in words if word)
    except ValueError:
        return False


def _outside_quotes(text: str) -> frozenset[int]:
    """Return the positions of placeholders at which a quoted value is one word.

    Where commands are substituted, nesting is not followed, and quotes may not hold: nowhere then.
    """
    if _SUBSTITUTION.search(text.replace("\\\n", "")):
        return frozenset()
    open_, outside, position = "", set(), 0
    while position < len(text):
        character = text[position]
        placeholder = _PLACEHOLDER.match(text, position)
        if placeholder is not None:
            if not open_:
                outside.add(position)
            position = placeholder.end()
            continue
        if character == "\\" and open_ != "'":
            position += 1
        elif character in "'\"" and open_ in ("", character):
            open_ = "" if open_ else character
        position += 1
    return frozenset(outside)


def _filled(text: str, known: _Known, at: _At, quotable: frozenset[int]) -> str:
    def replace(match: re.Match[str]) -> str:
        where = at(text, match.start())
        if not match[1]:
            raise CampaignError(f"{where}: {match[0]!r} belongs to no placeholder; write {{{{name}}}}")
        if match[1] == LAUNCHER:
            return known.program.launcher
        program = known.program if match[1] == EXECUTABLE else None
        value = program.executable if program else format_value(_value(match[1], known, where))
        if match.start() in quotable:
            word = _quoted(value, where)
            return f"{program.prefix} {word}" if program and program.prefix else word
        if not _PLAIN.fullmatch(value):
            raise CampaignError(
                f"{where}: {match[0]} is {value!r}, which the shell could interpret here; only a word of the "
                "command that starts the program, outside of quotes, may have such a value"
            )
        return value

    return _PLACEHOLDER.sub(replace, text)


def _value(text: str, known: _Known, where: str) -> Value:
    if _NAME.fullmatch(text):
        if text not in known.values:
            names = (EXECUTABLE, LAUNCHER, *known.values)
            raise CampaignError(f"{where}: unknown placeholder {{{{{text}}}}}; {did_you_mean(text, names)}")
        return known.values[text]
    try:
        return expressions.parse(text, known.values, known.texts)(known.values)
    except ExpressionError as error:
        raise CampaignError(f"{where}: {{{{{text}}}}}: {error}") from None


def _quoted(value: str, where: str) -> str:
    if "\0" in value:
        raise CampaignError(f"{where}: {value!r} has a NUL character, which no argument can carry")
    return shlex.quote(value)
