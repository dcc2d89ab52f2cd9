"""From what a user says to the first draft of a campaign, before any run: of an application, or a command."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import registry
from orchestrator.campaign.command import Command, guessed_values, launch_template, parse_command
from orchestrator.campaign.draft import Draft, fitting
from orchestrator.campaign.paths import find_executable
from orchestrator.doctor import slurm
from orchestrator.doctor.probe import here
from orchestrator.errors import CampaignError
from orchestrator.executors.slurm import partitions
from orchestrator.launch.script import template_of
from orchestrator.readers.stdout import text_of
from orchestrator.types import Application, Point, Value, format_value
from orchestrator.units import did_you_mean

_LEAST = {"local": 0.05, "slurm": 1.0}  # core-hours of a budget before a run says what is needed
_LONGEST = 2**20  # bytes of an input file in which parameters are looked for
_LARGEST_FOLDER = 2**24  # bytes of a folder of which every run gets a copy. Chosen by hand
_PLACEHOLDER = re.compile(r"(?<!\{)\{([A-Za-z_]\w*)\}(?!\})")
_INTERPRETERS = re.compile(r"python[\d.]*|julia|Rscript|perl|ruby|lua|octave|bash|sh")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the user asked for; ``values`` by parameter, the last of each for the evaluation point.

    ``evaluation_point``: coordinates that are to be others. ``tuning``: whether the best of the options is
    wanted, so that there is no such point.
    """

    application: str
    command: str
    executable: str
    name: str
    executor: str
    values: Mapping[str, tuple[Value, ...]]
    evaluation_point: Mapping[str, Value]
    directory: Path
    tries: bool
    tuning: bool = False


def first_draft(wanted: Wanted) -> tuple[Draft, str]:
    """Return the draft of a campaign, and the text of its launch script; empty where it needs none.

    Raises
    ------
    CampaignError
        For an unknown application, and a bad command or value.
    """
    draft, text = _of_command(wanted) if wanted.command else _of_application(wanted)
    _check_varies(draft, wanted)
    if wanted.tuning and wanted.evaluation_point:
        raise CampaignError("--goal tuning has no evaluation point: leave out one of both options")
    drafted = _evaluated(draft, wanted.evaluation_point)
    return _with_nodes(replace(drafted, tuning=wanted.tuning)), text


def _check_varies(draft: Draft, wanted: Wanted) -> None:
    """Refuse options that leave nothing to vary."""
    single = [name for name, values in wanted.values.items() if len(values) == 1]
    if single and all(len(values) == 1 for values in draft.values.values()):
        name = single[0]
        raise CampaignError(
            f"--values {name}={wanted.values[name][0]}: one value makes {name} a setting, and nothing is "
            f"left to vary; give several, like --values {name}=1,2,4"
        )


def _of_application(wanted: Wanted) -> tuple[Draft, str]:
    names = registry.names("application")
    if wanted.application not in names:
        raise CampaignError(
            f"unknown application {wanted.application!r}: {did_you_mean(wanted.application, names)}"
        )
    spec: Application = registry.load("application", wanted.application)
    template = template_of(spec.name)
    values = _beginning(spec, wanted.values)
    if missing := [name for name in spec.required if name not in values]:
        raise CampaignError(
            f"{spec.name} needs values of {', '.join(missing)}: give --values {missing[0]}=1,2,4"
        )
    if unknown := [name for name in wanted.values if name not in spec.parameters]:
        raise CampaignError(
            f"{spec.name} has no parameter {unknown[0]!r}: {did_you_mean(unknown[0], spec.parameters)}"
        )
    name = wanted.name or _free(spec.name, wanted, wanted.executable)
    cores, executor = _machine(wanted)
    draft = Draft(
        name=name,
        application=spec.name,
        executable=_program(wanted.executable) if wanted.executable else f"${{{_variable(spec.name)}}}",
        template="" if template is None else f"{name}.sh",
        values=values,
        meanings=spec.parameters,
        further=[parameter for parameter in spec.parameters if parameter not in values],
        executor=executor,
        slots=cores,
        budget=_LEAST[executor],
    )
    text = "" if template is None else Path(template.source).read_text(encoding="utf-8")
    return (_on_this_machine(draft, spec, wanted) if executor == "local" else draft), text


def _beginning(spec: Application, given: Mapping[str, tuple[Value, ...]]) -> dict[str, tuple[Value, ...]]:
    """Return the given values, and those of the application that do not contradict them.

    A size may be given in several ways, of which one is set: ``nx``, ``ny`` and ``nz`` instead of ``s``.
    """
    values = {**spec.start, **given}
    if spec.check(_smallest(values)) is None:
        return values
    for name in spec.start.keys() - given.keys():
        fewer = {key: item for key, item in values.items() if key != name}
        if spec.check(_smallest(fewer)) is None:
            return fewer
    return values


def _smallest(values: Mapping[str, tuple[Value, ...]]) -> dict[str, Value]:
    return {name: items[0] for name, items in values.items()}


def _on_this_machine(draft: Draft, spec: Application, wanted: Wanted) -> Draft:
    """Return a draft with the points that this machine can hold; for Slurm, where it can hold none."""
    smallest = _smallest(draft.values)
    least = spec.ranks(smallest) * spec.threads(smallest)
    if least <= draft.slots:
        return fitting(draft, spec, draft.slots)
    if wanted.executor:
        raise CampaignError(
            f"{spec.name} needs at least {least} cores at {Point.of(smallest)}, and this machine has "
            f"{draft.slots}: give --executor slurm, or other --values"
        )
    return replace(draft, executor="slurm", budget=_LEAST["slurm"])


def _of_command(wanted: Wanted) -> tuple[Draft, str]:
    cores, executor = _machine(wanted)
    command = parse_command(wanted.command, wanted.values, cores)
    program = _program(wanted.executable or command.program)
    command, script = _with_files(command, wanted.values)
    command = _with_parameters_of_files(command, wanted.values)
    name = wanted.name or _free(_name(script or program), wanted, script or program)
    values = {**guessed_values(command, cores), **_doubled(command, wanted.values)}
    draft = Draft(
        name=name,
        application="generic",
        executable=program,
        template=f"{name}.sh",
        values=values,
        meanings=_guessed(command, wanted.values),
        ranks=command.ranks,
        threads=command.threads,
        output=(),
        executor=executor,
        slots=cores,
        budget=_LEAST[executor],
        copied=command.copied,
    )
    return draft, launch_template(command, name)


def _doubled(command: Command, given: Mapping[str, tuple[Value, ...]]) -> dict[str, tuple[Value, ...]]:
    """Return the given values; of ranks and threads that are powers of two, the next one is the next power.

    Of 1 and 2 alone nothing else tells that the step is a factor.
    """
    counts = [name for name in given if name in (command.ranks, command.threads)]
    powers = {
        name: tuple(value for value in given[name][:-1] if isinstance(value, int) and value.bit_count() == 1)
        for name in counts
    }
    return {**given} | {
        name: (*values, 2 * values[-1])
        for name, values in powers.items()
        if len(given[name]) > 2 and len(values) == len(given[name]) - 1
    }


def _with_files(command: Command, given: Mapping[str, tuple[Value, ...]]) -> tuple[Command, str]:
    """Return a command that finds the files which it names in the directory of any run, and its script.

    The script of an interpreter stays beside what it imports: it gets its absolute path. So does a file for
    each value, such as ``case{n}.in``. Other files and small folders are copied: what was written by an
    earlier run must not be written by all.
    """
    smallest = {name: format_value(values[0]) for name, values in given.items()}
    interprets = bool(_INTERPRETERS.fullmatch(Path(command.program).name))
    words, copied, script = [], dict[str, str](), ""
    for word in command.arguments:
        option, equals, value = word.rpartition("=")
        path, whole = Path(value), str(Path(value).resolve())
        of_smallest = _PLACEHOLDER.sub(lambda found: smallest.get(found[1], found[0]), value)
        if of_smallest != value and not path.is_absolute() and Path(of_smallest).is_file():
            words.append(f"{option}{equals}{whole}")
        elif path.is_absolute() or not (path.is_file() or _is_small_folder(path)):
            words.append(word)
        elif interprets and not script and not equals and path.is_file():
            script = whole
            words.append(script)
        elif copied.setdefault(path.name, whole) == whole:
            words.append(f"{option}{equals}{path.name}{'/' * value.endswith('/')}")
        else:  # two of one name
            words.append(f"{option}{equals}{whole}")
    return replace(command, arguments=tuple(words), copied=tuple(copied.values())), script


def _is_small_folder(path: Path) -> bool:
    """Whether a path is a folder that every run may have a copy of, and does not contain this one."""
    if not path.is_dir() or Path.cwd().resolve().is_relative_to(path.resolve()):
        return False
    size = 0
    for item in path.rglob("*"):
        size += item.lstat().st_size
        if size > _LARGEST_FOLDER:
            return False
    return True


def _with_parameters_of_files(command: Command, given: Iterable[str]) -> Command:
    """Return a command whose files, also in folders, get the given values where ``{NAME}`` stands in them.

    Programs read files that their command does not name, too: those beside it count where none of the others
    has a parameter.
    """
    others = [name for name in given if name not in command.parameters]
    named = [path for name in command.copied for path in _files_of(Path(name))] if others else []
    within = {path: names for path, names in _names_within(named, given).items() if names}
    missing = [name for name in others if not any(name in names for names in within.values())]
    if missing:
        beside = _names_within(_texts_here(command), given)
        within |= {path: names for path, names in beside.items() if set(missing).intersection(names)}
    for name in others:
        if not any(name in names for names in within.values()):
            files = ", ".join(Path(path).name for path in command.copied)
            has = f"the command has only {', '.join(command.parameters)}" if command.parameters else ""
            has = has or "the command has no parameters"
            where = f"{{{name}}} stands in none of its files ({files})" if files else "it names no file"
            if large := _not_copied(command):
                where = f"runs get no copy of {large}, which has more than {_LARGEST_FOLDER >> 20} MiB"
            raise CampaignError(
                f"--values {name}: {has}, and {where}; write {{{name}}} where its value belongs, in a file "
                "of this folder, too"
            )
    copied = tuple(dict.fromkeys((*command.copied, *(path for path in within if path not in named))))
    return replace(command, parameters=(*command.parameters, *others), within=within, copied=copied)


def _not_copied(command: Command) -> str:
    """Return the first folder that a command names and that is too large for a copy; empty without one."""
    here, paths = Path.cwd().resolve(), (Path(word.rpartition("=")[2]) for word in command.arguments)
    folders = (path for path in paths if path.is_dir() and not here.is_relative_to(path.resolve()))
    return next((str(path) for path in folders if str(path.resolve()) not in command.copied), "")


def _names_within(paths: Iterable[str], given: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return which of the given parameters stand in files, by path; ``{{n}}`` is of a template."""
    texts = {path: text_of(Path(path)) for path in paths}
    found = {path: set(_PLACEHOLDER.findall(text)) for path, text in texts.items()}
    return {path: tuple(name for name in given if name in names) for path, names in found.items()}


def _files_of(path: Path) -> list[str]:
    """Return a file, or those of a folder that may be texts for people to edit."""
    if not path.is_dir():
        return [str(path)]
    return [str(item) for item in sorted(path.rglob("*")) if item.is_file() and _is_text(item)]


def _is_text(path: Path) -> bool:
    return os.access(path, os.R_OK) and path.stat().st_size <= _LONGEST and b"\0" not in path.read_bytes()


def _texts_here(command: Command) -> list[str]:
    """Return the files of this folder that may be input of a program, and are no scripts that start it.

    A launch template that was written before is none either: its ``sed`` has the names of parameters, too.
    """
    here = (path.resolve() for path in sorted(Path.cwd().iterdir()))
    started = {Path(word).resolve() for word in (command.program, *command.arguments)}
    texts = (path for path in here if path.is_file() and path not in started and _is_text(path))
    return [str(path) for path in texts if b"{{executable}}" not in path.read_bytes()]


def _guessed(command: Command, given: Mapping[str, object]) -> dict[str, str]:
    return {
        name: "" if name in given else "a guess: give values at which a run takes seconds"
        for name in command.parameters
    }


def _evaluated(draft: Draft, point: Mapping[str, Value]) -> Draft:
    """Return a draft with another evaluation point."""
    if unknown := [name for name in point if name not in draft.varied]:
        hint = did_you_mean(unknown[0], draft.varied)
        raise CampaignError(f"--evaluation-point {unknown[0]}: is none of the parameters that vary: {hint}")
    chosen = {name: (*draft.values[name][:-1], value) for name, value in point.items()}
    return replace(draft, values={**draft.values, **chosen})


def _with_nodes(draft: Draft) -> Draft:
    """Return a draft for Slurm with the cores of the nodes of its default partition."""
    found = partitions.meant(partitions.partitions(), None) if draft.executor == "slurm" else []
    if not found or not found[0].cores:
        return draft
    return replace(draft, partition=found[0].name, cores_per_node=found[0].cores[0])


def _machine(wanted: Wanted) -> tuple[int, str]:
    """Return the cores of this machine, and the executor to use: Slurm where it answers."""
    cores = len(os.sched_getaffinity(0))
    if wanted.executor:
        return cores, wanted.executor
    _, cluster = slurm.find(here())
    return cores, "local" if cluster is None else "slurm"


def _program(text: str) -> str:
    """Return the path of a program; raise ``CampaignError`` where there is none."""
    try:
        return find_executable(text, Path.cwd())
    except ValueError as error:
        raise CampaignError(f"the program {error}") from None


def _variable(application: str) -> str:
    return "".join(character if character.isalnum() else "_" for character in application).upper()


def _name(program: str) -> str:
    stem = Path(program).name.partition(".")[0]
    kept = "".join(character if character.isalnum() or character in "-_" else "-" for character in stem)
    return kept.strip("-_") or "program"


def _free(name: str, wanted: Wanted, program: str) -> str:
    """Return a name that makes no file or folder of the campaign collide with the program."""
    directory, goal = wanted.directory.absolute(), "tuning" if wanted.tuning else "scaling"
    taken = [directory / name, directory / f"{name}.sh"]
    return f"{name}-{goal}" if Path(program).absolute() in taken else name
