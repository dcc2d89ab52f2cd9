"""The runtime of the effort counters, built for a compiler, and the wrapper scripts that apply it.

A build lives in a folder of its own, named by what it was made from, so that it is made once per compiler
and never changes under programs that are linked with it.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import OrchestratorError
from orchestrator.storage import write_atomically

RUNTIME = Path(__file__).parent / "runtime"
CORE = "orchestrator-effort"
MPI = "orchestrator-effort-mpi"
TIMER = "orchestrator-mpi-time"
PLUGIN = "effort_plugin"

CORE_SOURCES = ("memory.c", "tree.c", "symbols.c", "output.c", "threads.c")
MPI_SOURCES = ("mpi_collective.c", "mpi_point.c", "mpi_requests.c")
TIMER_SOURCES = ("memory.c", "tree.c", "symbols.c", "output.c", "mpi_time.c", "mpi_fortran.c", *MPI_SOURCES)

# For the runtime itself. The frame pointers are what call paths are found by.
_OWN = (
    *("-O2", "-g", "-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden"),
    *("-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"),
)

# What both compilers need: functions stay functions, so that they have call paths, and loops stay loops: one
# that is unrolled, vectorised or replaced by memset would count one block for many iterations.
_COMMON = (
    *("-g", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"),
    *("-fno-unroll-loops", "-fno-lto", "-fno-builtin-memset", "-fno-builtin-memcpy"),
)
FLAGS = {
    # Inlined is only what is smaller than a call to it (accessors, operators), also if it is called but once:
    # that halves the time and loses no function that anybody would look for.
    "gcc": (
        *_COMMON,
        *("-fno-inline-functions", "-fno-inline-small-functions", "-fno-inline-functions-called-once"),
        *("-fno-partial-inlining", "-fkeep-static-functions", "--param", "max-inline-insns-single=0"),
        *("-fno-tree-vectorize", "-fno-tree-loop-distribute-patterns", "-fsanitize-coverage=trace-pc"),
    ),
    # clang would inline every static function that is called once, whatever the threshold.
    "clang": (
        *_COMMON,
        *("-fno-inline", "-fno-vectorize", "-fno-slp-vectorize", "-Wno-unused-command-line-argument"),
        *("-fsanitize-coverage=bb,no-prune,trace-pc", "-fno-sanitize-link-runtime"),
    ),
}
_CHOICES = ("OMPI_CC", "OMPI_CXX", "OMPI_FC", "MPICH_CC", "MPICH_CXX", "MPICH_FC", "I_MPI_CC", "I_MPI_CXX")


class EffortError(OrchestratorError):
    """A compiler that effort cannot be counted with."""


@dataclass(frozen=True, slots=True)
class Build:
    """A runtime built for ``compiler``: its folder, the compiler's family, and whether it knows MPI."""

    compiler: str
    family: str
    folder: Path
    mpi: bool

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the options for compiling."""
        return FLAGS[self.family]

    def libraries(self, mpi: bool) -> tuple[str, ...]:
        """Return the options for linking."""
        names = [f"-l{MPI}"] * (mpi and self.mpi) + [f"-l{CORE}"]
        return (
            *(f"-L{self.folder}", f"-Wl,-rpath,{self.folder}"),
            *("-Wl,--push-state,--no-as-needed", *names, "-Wl,--pop-state"),
        )


def build(compiler: str, cache: Path | None = None) -> Build:
    """Build the runtime for a compiler (a name on ``PATH``, or a path), unless it is there already.

    Raises
    ------
    EffortError
        Without such a compiler, for one that is neither gcc nor clang, and where the build fails.
    """
    path = shutil.which(compiler)
    if path is None:
        raise EffortError(f"no compiler {compiler!r} on PATH: give its name or its path")
    path = os.path.abspath(path)  # noqa: PTH100 - links are kept: a compiler acts by its name
    family = _family(path)
    mpi = _preprocesses(path, "#include <mpi.h>\n")
    folder = (cache or default_cache()) / _digest(path)
    if not (folder / f"lib{CORE}.so").exists():
        _make(path, folder, mpi)
    return Build(path, family, folder, mpi)


def wrapper(built: Build, scorep: bool = False) -> Path:
    """Write the script that stands for the compiler; return its path.

    With ``scorep`` it runs the compiler under Score-P, which then counts MPI operations and keeps the counts.
    """
    command = ["scorep", built.compiler] if scorep else [built.compiler]
    if scorep and shutil.which("scorep") is None:
        raise EffortError("no scorep on PATH: install Score-P, or leave out --scorep")
    # What MPI's compilers look up at each call must be what the flags were chosen for.
    chosen = {name: os.environ[name] for name in _CHOICES if name in os.environ}
    words = {
        "@environment@": "\n".join(f"export {name}={shlex.quote(value)}" for name, value in chosen.items()),
        "@compiler@": shlex.join(command),
        "@flags@": shlex.join(built.flags),
        "@libraries@": shlex.join(built.libraries(mpi=not scorep)),
    }
    text = (RUNTIME / "compiler.sh").read_text()
    for placeholder, value in words.items():
        text = text.replace(placeholder, value)
    folder = built.folder / ("scorep" if scorep else "bin")
    folder.mkdir(exist_ok=True)
    path = folder / Path(built.compiler).name
    write_atomically(path, text, mode=0o755)
    return path


def preload(built: Build) -> tuple[Path, ...]:
    """Return the libraries to preload for counting the MPI operations of a program that is built already."""
    if not built.mpi:
        raise EffortError(f"{built.compiler} knows no mpi.h: give the MPI's own compiler, such as mpicc")
    return tuple(built.folder / f"lib{name}.so" for name in (MPI, CORE))


def timer(built: Build) -> Path:
    """Return the library to preload for timing the MPI operations of a program that is built already."""
    if not built.mpi:
        raise EffortError(f"{built.compiler} knows no mpi.h: give the MPI's own compiler, such as mpicc")
    return built.folder / f"lib{TIMER}.so"


def plugin(built: Build, include: Path | None = None) -> Path:
    """Compile the Score-P metric plugin; return its path.

    Parameters
    ----------
    built
        The runtime that the instrumented program is linked with.
    include
        Folder that holds ``scorep/SCOREP_MetricPlugins.h``; by default asked of ``scorep-config``.

    Raises
    ------
    EffortError
        Without Score-P's headers, or where they do not compile.
    """
    path = built.folder / f"lib{PLUGIN}.so"
    options = [f"-I{include}"] if include else _scorep_options()
    if not _preprocesses(built.compiler, "#include <scorep/SCOREP_MetricPlugins.h>\n", options):
        raise EffortError(
            "the header scorep/SCOREP_MetricPlugins.h is not found: install Score-P with its development "
            "files, put scorep-config on PATH or give the folder with --include"
        )
    _link(built.compiler, ["scorep_plugin.c"], path, [*options, "-ldl"])
    return path


def default_cache() -> Path:
    """Return where builds are kept: a folder that compute nodes see, too."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "measurement-orchestrator" / "effort"


def _family(path: str) -> str:
    macros = _run([path, "-dM", "-E", "-x", "c", "-"], stdin="").stdout
    for macro, family in (
        ("__INTEL_COMPILER", ""),
        ("__NVCOMPILER", ""),
        ("__clang__", "clang"),
        ("__GNUC__", "gcc"),
    ):
        if f"#define {macro} " in macros:
            if family:
                return family
            break
    raise EffortError(
        f"{path} is neither gcc nor clang nor derived from them, so it has no coverage call-backs: use "
        "another compiler for the effort build"
    )


def _preprocesses(path: str, text: str, options: Sequence[str] = ()) -> bool:
    return _run([path, "-E", "-x", "c", *options, "-"], stdin=text).returncode == 0


def _digest(path: str) -> str:
    content = hashlib.sha256()
    for source in sorted(RUNTIME.iterdir()):
        content.update(source.read_bytes())
    version = _run([path, "--version"]).stdout
    content.update("\0".join([path, version, *_OWN]).encode())
    return f"{Path(path).name}-{content.hexdigest()[:12]}"


def _make(path: str, folder: Path, mpi: bool) -> None:
    """Build beside the folder and move: another process may be doing the same."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as text:
        fresh = Path(text) / "build"
        fresh.mkdir(mode=0o755)
        _link(path, CORE_SOURCES, fresh / f"lib{CORE}.so", ["-ldl", "-lpthread"])
        if mpi:
            _link(
                path, MPI_SOURCES, fresh / f"lib{MPI}.so", [f"-L{fresh}", f"-l{CORE}", "-Wl,-rpath,$ORIGIN"]
            )
            _link(
                path,
                TIMER_SOURCES,
                fresh / f"lib{TIMER}.so",
                ["-DORCHESTRATOR_MPI_TIME", "-ldl", "-lpthread"],
            )
        try:
            fresh.rename(folder)
        except OSError:
            if not (folder / f"lib{CORE}.so").exists():
                raise


def _link(path: str, sources: Sequence[str], target: Path, options: Sequence[str]) -> None:
    # g++ forgets -x after a file.
    names = [word for name in sources for word in ("-x", "c", str(RUNTIME / name))]
    done = _run(
        [path, *_OWN, f"-Wl,-soname,{target.name}", *names, "-x", "none", "-o", str(target), *options]
    )
    if done.returncode != 0:
        raise EffortError(f"{path} cannot build the runtime of the effort counters:\n{done.stderr.strip()}")


def _scorep_options() -> list[str]:
    if shutil.which("scorep-config") is None:
        return []
    return shlex.split(_run(["scorep-config", "--cppflags"]).stdout)


def _run(command: Sequence[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
