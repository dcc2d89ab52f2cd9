"""YAML text -> plain data with the place of every key; overrides applied, variables expanded.

Plain scalars follow YAML 1.2: ``on``, ``yes`` and ``12:30`` are text, ``1e3`` is a number, ``010`` is ten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from orchestrator.errors import CampaignError

Path = tuple[str | int, ...]

MOST_NODES = 200_000  # also ends the expansion of aliases within aliases

_TAG = "tag:yaml.org,2002:"
_VARIABLE = re.compile(
    r"(?P<escaped>\$\$\{)|\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}|(?P<malformed>\$\{[^}]*\}?)"
)
_SHORT_FORMS = {("strategy",): "name", ("model",): "name", ("executor",): "name"}


class _Loader(yaml.BaseLoader):
    """PyYAML's parser, with the scalars of YAML 1.2 instead of 1.1."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (PyYAML's own)


for _kind, _regex, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9][0-9_]*|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
):
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(rf"(?:{_regex})\Z", re.ASCII), _first)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong at a key, and the remedy."""

    path: Path
    text: str


Problems = Iterator[Problem]


@dataclass(slots=True)
class Tree:
    """The data (mappings, tuples, scalars) of a campaign file.

    ``places`` maps the path of every key and item to its line, or to the override it comes from.
    """

    source: str
    data: dict[str, Any] = field(default_factory=dict)
    places: dict[Path, int | str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def render(self, problem: Problem) -> str:
        """Return ``file:line: key: text``; a missing key is placed at the mapping that lacks it."""
        place = self._place(problem.path)
        where = place if isinstance(place, str) else f"{self.source}:{place}"
        key = dotted(problem.path)
        return f"{where}: {key}: {problem.text}" if key else f"{where}: {problem.text}"

    def line(self, problem: Problem) -> int:
        """Return the line of a problem, to sort by; overrides and other files come last."""
        place = self._place(problem.path)
        if isinstance(place, int):
            return place
        line = place.rpartition(":")[2]
        return len(self.places) + 1_000_000 + (int(line) if line.isdecimal() else 0)

    def blocked(self) -> frozenset[str]:
        """Return the top-level keys that have a problem somewhere below them."""
        return frozenset(str(problem.path[0]) for problem in self.problems if problem.path)

    def _place(self, path: Path) -> int | str:
        prefixes = (path[:length] for length in range(len(path), -1, -1))
        return next((self.places[prefix] for prefix in prefixes if prefix in self.places), 1)


def dotted(path: Path) -> str:
    """Return a path as it is written after ``--set``."""
    return ".".join(str(part) for part in path)


_EXAMPLE = "a campaign file is a mapping of keys to values, such as 'name: my-campaign'"


def parse(text: str, source: str, expected: str = _EXAMPLE) -> Tree:
    """Parse a campaign file, or another mapping; ``expected`` is what to say if it is none.

    Raises
    ------
    CampaignError
        If it is not YAML, or not a mapping. Everything else is collected in ``problems``.
    """
    tree = Tree(source)
    node = _compose(text, source)
    if not isinstance(node, yaml.MappingNode):
        raise CampaignError(f"{source}:1: {expected}")
    tree.data = _construct(node, (), tree)
    return tree


def _compose(text: str, source: str) -> yaml.Node | None:
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        context = f" ({error.context})" if error.context else ""
        raise CampaignError(f"{source}:{line}: not valid YAML: {error.problem}{context}") from None
    except yaml.YAMLError as error:
        raise CampaignError(f"{source}:1: not valid YAML: {error}") from None
    except RecursionError:
        raise CampaignError(f"{source}:1: nested too deeply") from None
    return node


def _construct(node: yaml.Node, path: Path, tree: Tree) -> Any:
    if len(tree.places) > MOST_NODES or len(path) > 20:
        raise CampaignError(
            f"{tree.source}: more than {MOST_NODES} values, or more than 20 levels of nesting"
        )
    tree.places.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, tree)
    if isinstance(node, yaml.SequenceNode):
        return tuple(_construct(item, (*path, index), tree) for index, item in enumerate(node.value))
    return _scalar(node, path, tree)


def _mapping(node: yaml.MappingNode, path: Path, tree: Tree) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            tree.problems.append(Problem(path, f"a key must be a word (line {line})"))
            continue
        key = str(key_node.value)
        if key in result:
            first = tree.places[(*path, key)]
            tree.problems.append(
                Problem((*path, key), f"is given twice, in lines {first} and {line}; remove one")
            )
            continue
        tree.places[(*path, key)] = line
        result[key] = _construct(value_node, (*path, key), tree)
    return result


def _scalar(node: yaml.Node, path: Path, tree: Tree) -> Any:
    text = str(node.value)
    if not text.isascii():  # JSON writes characters beyond 16 bits as two
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    kind = node.tag.removeprefix(_TAG)
    convert = _CONVERT.get(kind)
    if convert is None:
        tree.problems.append(Problem(path, f"the tag {node.tag} is not supported; remove it"))
        return text
    try:
        return convert(text)
    except ValueError:
        tree.problems.append(Problem(path, f"{text[:40]!r} is not a valid {kind}"))
        return text


def _integer(text: str) -> int:
    plain = text.replace("_", "")
    return int(plain, 0) if plain[:2] in ("0o", "0x") else int(plain)


def _float(text: str) -> float:
    return float(re.sub(r"_|\.(?=inf|nan)", "", text.lower()))


_CONVERT: Mapping[str, Callable[[str], Any]] = {
    "null": lambda text: None,
    "bool": lambda text: text.lower() == "true",
    "int": _integer,
    "float": _float,
    "str": str,
}


def override(tree: Tree, assignment: str) -> None:
    """Apply ``key.path=value`` (the value is YAML) as if it stood in the file.

    Raises
    ------
    CampaignError
        If it is not of that form, or leads into something that is not a mapping or list.
    """
    where = f"--set {assignment}"
    keys, equals, text = assignment.partition("=")
    path: Path = tuple(part.strip() for part in keys.split("."))
    if not equals or not all(path):
        raise CampaignError(f"{where}: write key.path=value, for example stop.patience=5")
    node = _compose(text, where)
    part = Tree(where)
    value = None if node is None else _construct(node, (), part)
    tree.problems.extend(Problem((*path, *problem.path), problem.text) for problem in part.problems)
    try:
        tree.data, path = _replaced(tree.data, path, value, ())
    except (LookupError, ValueError) as error:
        raise CampaignError(f"{where}: {error.args[0]}") from None
    for old in [old for old in tree.places if old[: len(path)] == path]:
        del tree.places[old]
    tree.places[path] = where


def _replaced(data: Any, path: Path, value: Any, done: Path) -> tuple[Any, Path]:
    """Return ``data`` with ``value`` at ``path``, and the path with list indices as numbers."""
    if not path:
        return value, done
    key, rest = path[0], path[1:]
    if isinstance(data, tuple) and str(key).isdigit():
        index = int(key)
        if index >= len(data):
            raise LookupError(f"{dotted(done)} has only {len(data)} items, counted from 0")
        item, full = _replaced(data[index], rest, value, (*done, index))
        return (*data[:index], item, *data[index + 1 :]), full
    if isinstance(data, str) and done in _SHORT_FORMS:
        data = {_SHORT_FORMS[done]: data}
    elif isinstance(data, tuple) and done[:1] == ("parameters",):
        data = {"values": data}
    if data is not None and not isinstance(data, dict):
        raise ValueError(f"{dotted(done)} is {data!r}, so {dotted((*done, key))} cannot be set")
    item, full = _replaced((data or {}).get(key), rest, value, (*done, key))
    return {**(data or {}), key: item}, full


def expand(tree: Tree, environment: Mapping[str, str]) -> None:
    """Expand ``${VAR}`` and ``${VAR:-default}`` in every string value; ``$${`` stands for ``${``."""
    tree.data = _expand(tree.data, (), tree, environment)


def _expand(data: Any, path: Path, tree: Tree, environment: Mapping[str, str]) -> Any:
    if isinstance(data, dict):
        return {key: _expand(value, (*path, key), tree, environment) for key, value in data.items()}
    if isinstance(data, tuple):
        return tuple(_expand(value, (*path, index), tree, environment) for index, value in enumerate(data))
    if not isinstance(data, str):
        return data
    if "${" not in data:
        return _checked(data, path, tree)

    def substitute(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "${"
        name, default = match["name"], match["default"]
        if name and (environment.get(name) or default is not None):
            return environment.get(name) or str(default)
        if name is None:
            problem = (
                f"{match[0]!r} names no variable; write ${{NAME}} or ${{NAME:-default}}, or $${{ for ${{"
            )
        else:
            state = "empty" if name in environment else "not set"
            problem = f"{data!r}: the variable {name} is {state}; export it, or write ${{{name}:-default}}"
        tree.problems.append(Problem(path, problem))
        return match[0]

    return _checked(_VARIABLE.sub(substitute, data), path, tree)


def _checked(text: str, path: Path, tree: Tree) -> str:
    """Refuse what no journal or argument can hold: bytes that are not UTF-8, halves of characters, NUL."""
    if "\0" in text:
        problem = f"{text[:60]!r} has a NUL character, which no argument can carry; remove it"
        tree.problems.append(Problem(path, problem))
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        tree.problems.append(Problem(path, f"{text[:60]!r} is not valid Unicode; write it in UTF-8"))
    return text


class _Dumper(yaml.SafeDumper):
    """Quotes whatever `_Loader` would not read back as the same text."""

    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers


def dump(data: Mapping[str, Any]) -> str:
    """Return YAML (in ASCII: PyYAML loses U+0085 otherwise) that reads back as the same data."""
    return yaml.dump(_escape(data), Dumper=_Dumper, sort_keys=False, width=100)


def _escape(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _escape(value) for key, value in data.items()}
    if isinstance(data, Sequence) and not isinstance(data, str):
        return [_escape(value) for value in data]
    return data.replace("${", "$${") if isinstance(data, str) else data
