"""A command line with ``{parameters}``, from which `orchestrator init` makes a launch template. Pure."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.errors import CampaignError
from orchestrator.types import Value

_LAUNCHERS = ("mpirun", "mpiexec", "srun")
_RANKS = ("-n", "-np", "--np", "--ntasks")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_OF_SHELL = re.compile(r"&&|\|\||>>|[|&;<>`]|\$\(")
_THREADS = re.compile(r"OMP_NUM_THREADS=(\S+)")
_NAMES_THREADS = ("threads", "nthreads", "num_threads", "omp_num_threads")  # and t, which may be a time
# Processes that a program starts by itself, as Python's do: a run of one core would bind all of them to it.
_NAMES_WORKERS = ("workers", "nworkers", "n_workers", "num_workers", "n_jobs", "njobs")
_VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_BRACES = re.compile(r"\{[^{}\"':]*\}")  # with quotes and colons within they are JSON, or the like
_GUESSED = (16, 32, 64, 128, 256, 512)
_CORE_VALUES = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command with ``{parameters}``: the program, the rest as a template, its ranks, and threads of a rank.

    ``copied`` are files and folders that every run gets into its directory before the program starts,
    ``within`` the parameters that stand in some of them, or in files of the folders, by path.
    """

    program: str
    arguments: tuple[str, ...]
    parameters: tuple[str, ...]
    ranks: str
    threads: str = "1"
    copied: tuple[str, ...] = ()
    within: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def parse_command(text: str, given: Mapping[str, Sequence[Value]], cores: int) -> Command:
    """Read ``./prog -n {n}`` or ``OMP_NUM_THREADS={t} mpirun -np {p} ./prog -n {n}``.

    Parameters
    ----------
    text
        The command.
    given
        Parameters with values, which may stand in its input files instead.
    cores
        Of this machine. A parameter that is called ``t`` is the number of threads, as ``threads`` is, unless
        it has values that are none, or more than twice as many.

    Raises
    ------
    CampaignError
        For something else than one command with at least one ``{parameter}``.
    """
    _refuse_shell(text)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise CampaignError(f"--command {text!r}: {error}") from None
    threads, words = _threads(words)
    _refuse_variable(text, words)
    ranks, words = _ranks(text, words)
    if not words:
        raise CampaignError(f"--command {text!r} names no program")
    _refuse_variable(text, words)
    _refuse_braces(text, [ranks, threads, *words])
    names = tuple(dict.fromkeys(_PLACEHOLDER.findall(" ".join([ranks, threads, *words]))))
    if not names and not given:
        raise CampaignError(
            f"--command {text!r}: write what is to vary as {{NAME}}, as in './prog -n {{n}}'; "
            "in an input file that the command names, too, with --values NAME=LIST"
        )
    if _PLACEHOLDER.search(words[0]):
        raise CampaignError(
            f"--command {text!r}: the program itself cannot vary, as {words[0]!r} would; write one that can "
            "be started, or a script that starts one by its argument: 'bash start.sh {which}'"
        )
    called = (name for name in names if _are_threads(name, given.get(name, ()), cores))
    return Command(
        program=words[0],
        arguments=tuple(words[1:]),
        parameters=names,
        ranks=_expression(ranks or "1"),
        threads=_expression(threads) if threads else next(called, "1"),
    )


def _expression(text: str) -> str:
    return text[1:-1] if _PLACEHOLDER.fullmatch(text) else text


def _are_threads(name: str, values: Sequence[Value], cores: int) -> bool:
    """Tell whether a parameter is the number of threads, by its name and its values, if any are given."""
    most = 2 * max(2, cores) if name == "t" else math.inf
    possible = all(isinstance(value, int) and 1 <= value <= most for value in values)
    return possible and name in ("t", *_NAMES_THREADS, *_NAMES_WORKERS)


def _threads(words: list[str]) -> tuple[str, list[str]]:
    """Return the threads that ``OMP_NUM_THREADS`` in front of a command gives, if any, and the rest."""
    found = _THREADS.fullmatch(words[0]) if words else None
    return ("", words) if found is None else (found[1], words[1:])


def _refuse_shell(text: str) -> None:
    """Refuse what only a shell understands: it would become an argument of the program."""
    if found := _OF_SHELL.search(_QUOTED.sub("", text)):
        raise CampaignError(
            f"--command {text!r}: no shell runs the command, so {found[0]!r} cannot be used; leave it out "
            "(the output of every run is kept), or write a script that takes the parameters and give that"
        )


def _refuse_variable(text: str, words: Sequence[str]) -> None:
    """Refuse a variable in front of the program, which is for a shell, too."""
    found = _VARIABLE.fullmatch(words[0]) if words else None
    if found is None:
        return
    name, value = found.groups()
    varied = _PLACEHOLDER.fullmatch(value)
    remedy = f"put {name}: {json.dumps(value)} under program.environment of the campaign file"
    if varied:
        remedy = f"write 'export {name}={{{value}}}' into the template, and {varied[1]} under parameters"
    raise CampaignError(
        f"--command {text!r}: no shell runs the command, so it begins with the program; leave {words[0]!r} "
        f"out, then {remedy}"
    )


def _refuse_braces(text: str, words: Sequence[str]) -> None:
    """Refuse braces that were meant to hold a parameter, and hold none."""
    for word in words:
        rest = _PLACEHOLDER.sub("", word)
        if rest.count("{") != rest.count("}"):
            missing = "closed" if rest.count("{") > rest.count("}") else "opened"
            raise CampaignError(
                f"--command {text!r}: a brace in {word!r} is not {missing}; write what is to vary as {{NAME}}"
            )
        if found := _BRACES.search(rest):
            raise CampaignError(
                f"--command {text!r}: {found[0]} names no parameter; write what is to vary as {{NAME}}, with "
                "letters, digits and '_' (expressions are for the template, as {{n * 2}}, and program.ranks)"
            )


def _ranks(text: str, words: list[str]) -> tuple[str, list[str]]:
    """Return the ranks that a launcher in front of the program is told, and the words after it."""
    if not words or words[0].rpartition("/")[2].partition(".")[0] not in _LAUNCHERS:
        return "1", words
    rest, ranks = words[1:], "1"
    while rest and rest[0].startswith("-"):
        option, equals, value = rest[0].partition("=")
        if option in _RANKS:
            ranks, rest = (value, rest[1:]) if equals else ("".join(rest[1:2]), rest[2:])
        else:
            raise CampaignError(
                f"--command {text!r}: of a launcher's options only {', '.join(_RANKS)} are understood; leave "
                f"{rest[0]} out; nodes, ranks per node and threads are stated under resources of the "
                "campaign file afterwards, other options in executor.launcher"
            )
    return ranks or "1", rest


def launch_template(command: Command, name: str) -> str:
    """Return the launch template of a command."""
    words = " ".join(_word(word) for word in command.arguments)
    copies = [line for path in command.copied for line in _copies(path, command.within)]
    lines = [
        "#!/bin/bash",
        f"# {name}: how it is started. Lines before the command may prepare a run, lines after it follow it.",
        "#",
        f"# Executable: {command.program}",
        "#",
        "# Parameters",
        *(
            f"#   {parameter}   (say what it is, and which values are possible)"
            for parameter in command.parameters
        ),
        "",
        *copies,
        f"{{{{launcher}}}} {{{{executable}}}} {words}".rstrip(),
    ]
    return "\n".join(lines) + "\n"


def _copies(path: str, within: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the lines that bring a file or folder into the directory of a run, with its values."""
    above = path.rpartition("/")[0] + "/"
    files = [file for file in within if file == path or file.startswith(f"{path}/")]
    written = [
        f"sed {_rules(within[file])} {shlex.quote(file)} > {shlex.quote(file.removeprefix(above))}"
        " || exit  # with the values of this run"
        for file in files
    ]
    return (
        written
        if path in files
        else [f"cp -r {shlex.quote(path)} . || exit  # the command names it", *written]
    )


def _rules(names: Sequence[str]) -> str:
    return " ".join(f"-e 's|{{{name}}}|{{{{{name}}}}}|g'" for name in names)


def _word(word: str) -> str:
    """Return a word of the command as shell text with placeholders; only the rest of it is quoted."""
    parts = re.split(r"(\{[A-Za-z_]\w*\})", word)
    return (
        "".join(
            f"{{{part}}}" if _PLACEHOLDER.fullmatch(part) else (shlex.quote(part) if part else "")
            for part in parts
        )
        or "''"
    )


def guessed_values(command: Command, cores: int) -> dict[str, tuple[Value, ...]]:
    """Return values for every parameter: powers of two, for ranks and threads up to twice the cores."""
    most = max(2, cores)
    counts = (*(value for value in _CORE_VALUES if value <= most), 2 * most)
    counted = (command.ranks, command.threads)
    return {name: counts if name in counted else _GUESSED for name in command.parameters}
