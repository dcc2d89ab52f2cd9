"""Launch scripts: an application's template in a frame, filled by a pure function. Values are inert text.

The frame (``mpi``, ``slurm``, or a file of the user's) has modules, environment and launcher; the launch
template (`orchestrator.launch.template`) has the command. An application without a template gives arguments.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

import orchestrator
from orchestrator.errors import CampaignError
from orchestrator.launch import template as templates
from orchestrator.launch.profilers import preloading, profiler_variables
from orchestrator.launch.template import Filled, Start, Template
from orchestrator.storage import SECRET_WORDS
from orchestrator.types import Application, Resources, Value, format_value

_FRAMES = {"slurm": "slurm.sh"}
_LOCAL_FRAME = "mpi.sh"

# A frame may spell out a launcher of its own with these; the others it must have.
OPTIONAL = ("launcher", "ranks", "threads", "nodes", "ranks_per_node", "gpus_per_node")
ENVIRONMENT = "environment.recorded"
"""Variables (``name=value``, each ended by NUL) after the prologue, in the attempt's directory."""

# What a prologue does to the environment is known only after it. Recording must not harm the run.
_RECORD = (
    "{ env -0 | sed -z -E "
    f"'s/^([^=]*({'|'.join(SECRET_WORDS)})[^=]*)=.*/\\1=***/I; s#://.*@#://***@#' > {ENVIRONMENT}; "
    "} 2> /dev/null || :"
)

NO_LAUNCHER = ("", "none")
_PLACEHOLDER = re.compile(r"\{\{\s*(\w*)\s*\}\}|\{\{|\}\}")
# Where ``module`` is a function of the login shell, a script has to define it.
_MODULE_COMMAND = """\
if ! type module > /dev/null 2>&1; then
    for file in "${LMOD_PKG-}" "${MODULESHOME-}" /usr/share/lmod/lmod /usr/share/modules; do
        [ -r "$file/init/bash" ] && . "$file/init/bash" && break
    done
fi"""

_LAUNCHER_FIELD = re.compile(r"\{\{|\}\}|\{(\w*)\}|[{}]")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")


def data_directory(kind: Literal["templates", "campaigns"]) -> Path:
    """Return the folder of launch scripts or ready campaigns.

    In a wheel it is inside the package, in a clone and an editable install beside it.

    Raises
    ------
    CampaignError
        If the installation is incomplete.
    """
    package = Path(orchestrator.__file__).resolve().parent
    for folder in (package / "_data" / kind, package.parent / kind):
        if folder.is_dir():
            return folder
    raise CampaignError(f"the folder {kind!r} is missing from the installation at {package}: install again")


def find_frame(name_or_path: str | None, executor_name: str) -> Path:
    """Return the path of a frame: what every launch script of an executor has in common.

    Parameters
    ----------
    name_or_path
        A path, the name of a frame that comes with the program (``slurm`` or ``slurm.sh``), or None for
        the default of the executor.
    executor_name
        ``local``, ``slurm`` ...

    Raises
    ------
    CampaignError
        If there is no such frame.
    """
    folder = data_directory("templates") / "frames"
    if not name_or_path:
        return folder / _FRAMES.get(executor_name, _LOCAL_FRAME)
    path = Path(name_or_path)
    if path.is_file():
        return path
    found = _shipped(name_or_path, folder)
    if found is not None:
        return found
    raise CampaignError(
        f"executor.template: there is no frame {name_or_path!r}; give a path or one of: {_names(folder)}"
    )


def find_template(name: str) -> Path:
    """Return the path of a launch template that comes with the program, by the name of its application.

    Raises
    ------
    CampaignError
        If there is none.
    """
    folder = data_directory("templates")
    found = _shipped(name, folder)
    if found is None:
        raise CampaignError(f"there is no launch template {name!r}; give a path or one of: {_names(folder)}")
    return found


@cache
def template_of(application: str) -> Template | None:
    """Return the launch template of one of our applications; None where its adapter gives arguments."""
    path = _shipped(application, data_directory("templates"))
    return None if path is None else templates.parse(path.read_text(encoding="utf-8"), str(path))


def _shipped(name: str, folder: Path) -> Path | None:
    """Return the file of a name in a folder, with or without its suffix."""
    candidates = (folder / name, folder / f"{name}.sh") if Path(name).name == name else ()
    return next((path for path in candidates if path.is_file()), None)


def _names(folder: Path) -> str:
    return ", ".join(sorted(item.stem for item in folder.glob("*.sh")))


def render(frame_text: str, values: Mapping[str, str], source: str, optional: Collection[str] = ()) -> str:
    """Replace every ``{{placeholder}}`` of a frame in one pass, so that values are never scanned.

    Parameters
    ----------
    frame_text
        The frame.
    values
        Shell text by placeholder; whoever passes it has quoted it.
    source
        File name for messages.
    optional
        Placeholders that the frame may lack.

    Raises
    ------
    CampaignError
        For an unknown, malformed or missing placeholder.
    """

    def replace(match: re.Match[str]) -> str:
        if match[1] in values:
            return values[match[1]]
        line = frame_text.count("\n", 0, match.start()) + 1
        what = f"unknown placeholder {match[0]}" if match[1] else f"{match[0]!r} belongs to no placeholder"
        raise CampaignError(f"{source}:{line}: {what}; known: {', '.join(sorted(values))}")

    present = {match[1] for match in _PLACEHOLDER.finditer(frame_text)}
    text = _PLACEHOLDER.sub(replace, frame_text)
    missing = [name for name in values if name not in present and name not in optional]
    if missing:
        raise CampaignError(f"{source}: the placeholder {{{{{missing[0]}}}}} is missing; add it")
    return text


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What the launch scripts of all runs of a kind have in common."""

    # text, source: text of the frame and its file name for messages.
    text: str
    source: str = "launch script"
    profiler: str  # whose variables are set (`profiler_variables`), unless the environment does
    # Names for ``module load``, before the prologue; one that cannot be loaded ends the script.
    modules: Sequence[str] = ()
    prologue: Sequence[str] = ()  # lines of shell text, taken as they are (``module load ...``)
    # Lines of shell text after the program; the script's exit code is still that of the program.
    epilogue: Sequence[str] = ()
    # Variables on top of those of the application; values are literal.
    environment: Mapping[str, str] = field(default_factory=dict)


def launch_script(
    *,
    application: Application,
    executable: str,
    settings: Mapping[str, Value],
    resources: Resources,
    launcher: str | None,
    frame: Frame,
    preload: Sequence[str] = (),
    template: Template | None = None,
) -> str:
    """Build the script that starts one run.

    Parameters
    ----------
    application, executable, settings
        What to start, with which settings (those of the campaign merged with the point).
    resources
        Ranks, threads and nodes.
    launcher
        Such as ``mpiexec -n {ranks}``, with ``{ranks} {threads} {nodes} {ranks_per_node} {gpus_per_node}``;
        empty, ``none`` or None starts the program itself. Its words are not expanded by the shell.
    frame
        What it has in common with other scripts.
    preload
        Libraries to preload into the program, but not into its launcher.
    template
        How the application is started; None where its adapter gives arguments.

    Raises
    ------
    CampaignError
        For a bad frame, template, launcher or variable.
    """
    starter = " ".join(_quoted(word) for word in _launcher(launcher, resources))
    program = Start(executable=executable, launcher=starter, prefix=" ".join(preloading(preload)))
    body = body_of(application, program, settings, resources, template)
    afterwards = [*([body.after] if body.after else []), *frame.epilogue]
    replaces = body.simple and not afterwards
    variables = {
        **profiler_variables(frame.profiler),
        **_literal({**application.variables(settings), **frame.environment}),
    }
    exports = [f"export {name}={text}" for name, text in _threads(variables, resources)]
    recorded = [_RECORD] if frame.prologue or frame.modules else []
    before = ["", body.before] if body.before else []
    ending = ["", "program_status=$?", *afterwards, 'exit "$program_status"'] if afterwards else []
    values = {
        "prologue": "\n".join([*load_lines(frame.modules), *frame.prologue]),
        "environment": "\n".join([*exports, *recorded, *before]),
        "exec": "exec" if replaces else "",
        "epilogue": "\n".join(ending),
        "launcher": starter if body.launched else "",
        "command": body.command,
        **{name: str(number) for name, number in _sizes(resources).items()},
    }
    optional = (*OPTIONAL, *(() if afterwards else ("epilogue",)), *(("exec",) if replaces else ()))
    return render(frame.text, values, frame.source, optional)


def body_of(
    application: Application,
    program: Start,
    settings: Mapping[str, Value],
    resources: Resources,
    template: Template | None,
) -> Filled:
    """Return what a run executes: the command with what precedes and follows it.

    Raises
    ------
    CampaignError
        For a bad template.
    """
    if template is None:
        words = map(_quoted, [program.executable, *application.arguments(settings)])
        command = " ".join([*([program.prefix] if program.prefix else []), *words])
        return Filled(before="", command=command, after="", launched=True, simple=True)
    values = {**_sizes(resources), **settings, **application.values(settings)}
    texts = [name for name, value in values.items() if isinstance(value, str)]
    return templates.fill(template, values, program, texts)


def load_lines(modules: Sequence[str]) -> list[str]:
    """Return shell lines that load modules, each or none."""
    if not modules:
        return []
    names = [_quoted(name) for name in modules]
    failed = "{ echo 'this module cannot be loaded:' %s >&2; exit 1; }"
    return [_MODULE_COMMAND, *(f"module load {name} || {failed % name}" for name in names)]


def _launcher(pattern: str | None, resources: Resources) -> list[str]:
    if pattern is None or pattern.strip() in NO_LAUNCHER:
        if resources.ranks > 1:
            raise CampaignError(
                f"{resources.ranks} ranks need a launcher: "
                "set executor.launcher, such as 'mpiexec -n {ranks}'"
            )
        return []
    fields = _sizes(resources)

    def replace(match: re.Match[str]) -> str:
        if match[0] in ("{{", "}}"):
            return match[0][0]
        if match[1] not in fields:
            raise CampaignError(
                f"executor.launcher: {match[0]!r} in {pattern!r} is unknown; "
                f"known: {', '.join(f'{{{name}}}' for name in fields)}"
            )
        return str(fields[match[1]])

    try:
        return [_LAUNCHER_FIELD.sub(replace, word) for word in shlex.split(pattern)]
    except ValueError as error:
        raise CampaignError(f"executor.launcher: {pattern!r}: {error}") from None


def _sizes(resources: Resources) -> dict[str, int]:
    return {
        "ranks": resources.ranks,
        "threads": resources.threads,
        "nodes": resources.nodes,
        "ranks_per_node": resources.ranks_per_node,
        "gpus_per_node": resources.gpus_per_node,
    }


def _literal(environment: Mapping[str, str]) -> dict[str, str]:
    for name in environment:
        if not _VARIABLE.fullmatch(name):
            raise CampaignError(f"executor.environment: {name!r} cannot name a variable")
    return {name: _quoted(format_value(value)) for name, value in environment.items()}


def _threads(variables: Mapping[str, str], resources: Resources) -> list[tuple[str, str]]:
    threads = str(resources.threads)
    if variables.get("OMP_NUM_THREADS", threads) != threads:
        raise CampaignError(
            f"executor.environment: OMP_NUM_THREADS={variables['OMP_NUM_THREADS']}, but the run is charged "
            f"for {threads} threads per rank: set the application's parameter for threads instead"
        )
    return sorted({**variables, "OMP_NUM_THREADS": threads}.items())


def _quoted(word: str) -> str:
    if "\0" in word:
        raise CampaignError(f"{word!r} has a NUL character, which no argument can carry")
    return shlex.quote(os.fspath(word))
