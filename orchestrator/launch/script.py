"""Launch scripts: templates with placeholders, filled by a pure function. Every value is inert shell text."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

import orchestrator
from orchestrator.errors import CampaignError
from orchestrator.launch.profilers import preloading, profiler_variables
from orchestrator.storage import SECRET_WORDS
from orchestrator.types import Application, Resources, Value, format_value

_DEFAULTS = {"slurm": "slurm.sh"}
_LOCAL = "mpi.sh"

# A template may spell out a launcher of its own with these; the others it must have.
OPTIONAL = ("launcher", "ranks", "threads", "nodes", "ranks_per_node")
# Needed only where something follows the program: `exec` must then be empty.
_AFTERWARDS = ("exec", "epilogue")

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


def find_template(name_or_path: str | None, executor_name: str) -> Path:
    """Return the path of a launch script.

    Parameters
    ----------
    name_or_path
        A path, the name of a script that comes with the program (``slurm`` or ``slurm.sh``), or None for
        the default of the executor.
    executor_name
        ``local``, ``slurm`` ...

    Raises
    ------
    CampaignError
        If there is no such script.
    """
    folder = data_directory("templates")
    if not name_or_path:
        return folder / _DEFAULTS.get(executor_name, _LOCAL)
    path = Path(name_or_path)
    if path.is_file():
        return path
    if path.name == name_or_path:
        for candidate in (folder / name_or_path, folder / f"{name_or_path}.sh"):
            if candidate.is_file():
                return candidate
    known = ", ".join(sorted(item.stem for item in folder.glob("*.sh")))
    raise CampaignError(
        f"executor.template: there is no launch script {name_or_path!r}; give a path or one of: {known}"
    )


def render(template_text: str, values: Mapping[str, str], source: str, optional: Collection[str] = ()) -> str:
    """Replace every ``{{placeholder}}`` of a template in one pass, so that values are never scanned.

    Parameters
    ----------
    template_text
        The template.
    values
        Shell text by placeholder; whoever passes it has quoted it.
    source
        File name for messages.
    optional
        Placeholders that the template may lack.

    Raises
    ------
    CampaignError
        For an unknown, malformed or missing placeholder.
    """

    def replace(match: re.Match[str]) -> str:
        if match[1] in values:
            return values[match[1]]
        line = template_text.count("\n", 0, match.start()) + 1
        what = f"unknown placeholder {match[0]}" if match[1] else f"{match[0]!r} belongs to no placeholder"
        raise CampaignError(f"{source}:{line}: {what}; known: {', '.join(sorted(values))}")

    present = {match[1] for match in _PLACEHOLDER.finditer(template_text)}
    text = _PLACEHOLDER.sub(replace, template_text)
    missing = [name for name in values if name not in present and name not in optional]
    if missing:
        raise CampaignError(f"{source}: the placeholder {{{{{missing[0]}}}}} is missing; add it")
    return text


def launch_script(
    *,
    application: Application,
    executable: str,
    settings: Mapping[str, Value],
    resources: Resources,
    launcher: str | None,
    template: str,
    prologue: Sequence[str],
    environment: Mapping[str, str],
    profiler: str,
    source: str = "launch script",
    modules: Sequence[str] = (),
    epilogue: Sequence[str] = (),
    preload: Sequence[str] = (),
) -> str:
    """Build the script that starts one run.

    Parameters
    ----------
    application, executable, settings
        What to start, with which settings (those of the campaign merged with the point).
    resources
        Ranks, threads and nodes.
    launcher
        Such as ``mpiexec -n {ranks}``, with ``{ranks} {threads} {nodes} {ranks_per_node}``; empty, ``none``
        or None starts the program itself. Its words are not expanded by the shell.
    template, source
        Text of the template and its file name for messages.
    prologue
        Lines of shell text, taken as they are (``module load ...``).
    environment
        Variables on top of those of the application; values are literal.
    profiler
        Whose variables are set (`profiler_variables`), unless ``environment`` does.
    modules
        Names for ``module load``, before the prologue; one that cannot be loaded ends the script.
    epilogue
        Lines of shell text after the program; the script's exit code is still that of the program.
    preload
        Libraries to preload into the program, but not into its launcher.

    Raises
    ------
    CampaignError
        For a bad template, launcher or variable.
    """
    words = _launcher(launcher, resources)
    arguments = [executable, *application.arguments(settings)]
    variables = {**profiler_variables(profiler), **_literal({**application.environment, **environment})}
    exports = [f"export {name}={text}" for name, text in _threads(variables, resources)]
    values = {
        "prologue": "\n".join([*load_lines(modules), *prologue]),
        "environment": "\n".join([*exports, *([_RECORD] if prologue or modules else [])]),
        "exec": "" if epilogue else "exec",
        "epilogue": "\n".join(["", "program_status=$?", *epilogue, 'exit "$program_status"'])
        if epilogue
        else "",
        "launcher": " ".join(_quoted(word) for word in words),
        "command": " ".join([*preloading(preload), *map(_quoted, arguments)]),
        "ranks": str(resources.ranks),
        "threads": str(resources.threads),
        "nodes": str(resources.nodes),
        "ranks_per_node": str(resources.ranks_per_node),
    }
    return render(template, values, source, OPTIONAL if epilogue else (*OPTIONAL, *_AFTERWARDS))


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
    fields = {
        "ranks": resources.ranks,
        "threads": resources.threads,
        "nodes": resources.nodes,
        "ranks_per_node": resources.ranks_per_node,
    }

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
