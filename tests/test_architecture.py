"""Who may import whom. The rules keep decisions pure, families replaceable, and every import one way."""

from __future__ import annotations

import ast
import graphlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "orchestrator"

# From the ground up: every module and package directly in `orchestrator`, with those it may import.
WORDS = {"types", "errors", "units", "storage"}
READ = {*WORDS, "expressions", "readers"}
KNOW = {*READ, "models", "journal", "space", "resources", "registry"}
RUN = {*KNOW, "launch", "executors"}
CHOOSE = {*KNOW, "strategies"}
ALLOWED: dict[str, set[str]] = {
    "types": set(),
    "errors": {"types"},
    "units": {"types", "errors"},
    "storage": {"types", "errors"},
    "cores": set(),
    "expressions": WORDS,
    "readers": {*WORDS, "expressions"},
    "models": {"types", "errors", "units"},
    "journal": {*WORDS},
    "space": {*WORDS, "expressions"},
    "resources": {*WORDS, "expressions"},
    "guards": {*WORDS},
    "registry": {*WORDS, "guards"},
    "launch": KNOW - {"models", "journal"},
    "executors": {*KNOW, "launch"},
    "strategies": {"types", "errors", "units", "models", "space", "resources"},
    "generate": {*KNOW, "launch"} - {"journal"},
    "instrumentation": WORDS,
    "policy": {"types", "errors", "units", "models", "journal", "resources", "strategies"},
    "report": {*RUN, "policy", "strategies"},
    "campaign": {*RUN, *CHOOSE, "policy"},
    "control": {"cores", *RUN, *CHOOSE, "policy", "report", "campaign", "instrumentation"},
    "evaluation": {"cores", *RUN, *CHOOSE, "policy", "report", "campaign", "control", "generate"},
    "doctor": {*RUN, *CHOOSE, "policy", "report", "campaign", "control", "instrumentation"},
    "api": {"cores", *RUN, *CHOOSE, "policy", "report", "campaign", "control", "guards"},
    "cli": set(),  # filled below: the top may use everything
    "__main__": {"cli"},
}
EVERYTHING = set(ALLOWED)
ALLOWED["cli"] = EVERYTHING
ALLOWED["__init__"] = EVERYTHING

# Rooms that know nothing of files, the clock, processes or global randomness.
PURE = (
    "models",
    "strategies",
    "policy",
    "space",
    "resources",
    "units",
    "journal/state",
    "journal/events",
    "journal/allocations",
    "journal/measurements",
    "journal/nodes",
    "journal/references",
    "journal/setbacks",
    "launch/failures",
)
IMPURE = {"os", "pathlib", "subprocess", "time", "datetime", "random", "socket", "shutil", "tempfile", "sys"}
IMPURE |= {
    "io",
    "threading",
    "multiprocessing",
    "asyncio",
    "urllib",
    "requests",
    "secrets",
    "uuid",
    "logging",
}
# Of `numpy.random`: everything else is, or uses, the generator that all share.
EXPLICIT_RANDOM = {"Generator", "default_rng", "SeedSequence", "BitGenerator"}
FILE_CALLS = {"open", "read_text", "write_text", "read_bytes", "write_bytes", "unlink", "mkdir", "touch"}
FILE_CALLS |= {"loadtxt", "savetxt", "genfromtxt", "tofile", "fromfile", "memmap", "read_csv", "to_csv"}

# Rooms that import modules by name: plug-ins, commands, and what `import orchestrator` loads when it is used.
BY_NAME = {"registry", "cli", "__init__", "models"}
MOST_MODULES, MOST_PACKAGES = 12, 16
FAMILIES = (
    "models.pmnf",
    "models.swc",
    "models.curves",
    "models.cpr",
    "models.learned",
    "models.extrap",
    "models.speedup",
    "models.splines",
)


def sources(room: str = "") -> list[Path]:
    path = PACKAGE / f"{room}.py"
    return [path] if room and path.is_file() else sorted((PACKAGE / room).rglob("*.py"))


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def room_of(module: str) -> str:
    """Return the module or package directly in `orchestrator`; `__init__` for the package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


MODULES = {module_of(path) for path in sources()}


@cache  # asked of every file in every second test
def imports(path: Path) -> frozenset[str]:
    """Return all that a file imports: modules of the project by their full name, others by theirs."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            for alias in node.names:
                full = f"{module}.{alias.name}"
                found.add(full if full in MODULES else module)
    return frozenset(found)


def ours(path: Path) -> set[str]:
    return {name for name in imports(path) if name.split(".")[0] == "orchestrator"}


def test_every_module_and_package_has_its_directions() -> None:
    there = {path.stem for path in PACKAGE.glob("*.py")}
    there |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert there == set(ALLOWED)
    assert all(allowed <= set(ALLOWED) for allowed in ALLOWED.values())


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_a_room_imports_only_what_it_may(room: str) -> None:
    wrong = {
        f"{module_of(path)} imports {name}"
        for path in (sources(room) if room != "__init__" else [PACKAGE / "__init__.py"])
        for name in ours(path)
        if room_of(name) not in {room, *ALLOWED[room]} and name != "orchestrator"
    }
    assert not wrong


def test_the_allowed_directions_have_no_circle() -> None:
    below = {room: allowed - {room} for room, allowed in ALLOWED.items() if room not in ("cli", "__init__")}
    graphlib.TopologicalSorter(below).prepare()


def test_no_files_import_each_other_in_a_circle() -> None:
    files = {module_of(path): ours(path) - {module_of(path), "orchestrator"} for path in sources()}
    try:
        graphlib.TopologicalSorter(files).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_packages_import_each_other_in_a_circle() -> None:
    """Sub-packages, too: `executors.slurm` and `executors.attempt`, say."""
    packages: dict[str, set[str]] = {}
    for path in sources():
        own = module_of(path).rpartition(".")[0] if path.name != "__init__.py" else module_of(path)
        there = {name if f"{name}.__init__" in MODULES else name.rpartition(".")[0] for name in ours(path)}
        there |= {name for name in ours(path) if (ROOT / name.replace(".", "/")).is_dir()}
        packages.setdefault(own, set()).update(there - {own, "orchestrator"})
    packages.pop("orchestrator", None)
    # A package's own base module serves its sub-packages: `executors.base` for `executors.slurm`.
    inner = {
        name: {other for other in others if not name.startswith(f"{other}.")}
        for name, others in packages.items()
    }
    try:
        graphlib.TopologicalSorter(inner).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_touch_no_files_clock_or_processes(room: str) -> None:
    paths = sources(room)
    assert paths, f"there is no {room}"
    wrong = {f"{module_of(path)}: {what}" for path in paths for what in impurities(path)}
    assert not wrong


def impurities(path: Path) -> Iterator[str]:
    """Yield what a file imports, calls or draws from that depends on anything but its arguments."""
    tree = ast.parse(path.read_text())
    yield from ({name.split(".")[0] for name in imports(path)} & IMPURE)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
            if node.attr not in EXPLICIT_RANDOM:
                yield ast.unparse(node)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            name = called.rpartition(".")[2]
            if called in ("print", "input", "eval", "exec") or name in FILE_CALLS:
                yield f"{called}()"
            if name == "default_rng" and not node.args:
                yield "default_rng() without a seed"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("from time import monotonic", "time"),
        ("def f():\n    import os.path", "os"),
        ("np.random.normal()", "np.random.normal"),
        ("rng = np.random.default_rng()", "default_rng() without a seed"),
        ("path.read_text()", "path.read_text()"),
        ("open('x')", "open()"),
    ],
)
def test_an_impurity_is_noticed(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(text)
    assert list(impurities(path)) == [what]


def test_a_pure_file_is_not_accused(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("import numpy as np\nrng = np.random.default_rng([seed, 1])\nx: np.random.Generator\n")
    assert not list(impurities(path))


def test_imports_are_absolute() -> None:
    """A relative import would not be seen by the tests above."""
    relative = [
        f"{path}:{node.lineno}"
        for path in [*sources(), *(ROOT / "adapters").glob("*.py")]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not relative


def test_modules_are_imported_by_name_only_where_plug_ins_are_loaded() -> None:
    """`importlib.import_module` hides an import of ours from the tests above."""
    hidden = {
        room_of(module_of(path))
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "import_module"
        if not isinstance(node.args[0], ast.Constant) or str(node.args[0].value).startswith("orchestrator")
    }
    assert hidden <= BY_NAME


def test_the_package_stays_small_at_the_top() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_MODULES
    assert len(list(PACKAGE.glob("*/__init__.py"))) <= MOST_PACKAGES


def _positional(node: ast.ClassDef) -> bool:
    """Whether a class is a dataclass with more than four fields that need not be given by name."""
    decorators = [ast.unparse(item) for item in node.decorator_list]
    fields = [ast.unparse(item.annotation) for item in node.body if isinstance(item, ast.AnnAssign)]
    made = any(text.startswith("dataclass") and "kw_only=True" not in text for text in decorators)
    return made and len(fields) > 4 and "KW_ONLY" not in fields


def test_many_fields_are_given_by_name() -> None:
    trees = ((path, ast.parse(path.read_text())) for path in sources())
    classes = (
        (path, node) for path, tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )
    assert not {f"{module_of(path)}.{node.name}" for path, node in classes if _positional(node)}


MAPPED = (
    *("api", "campaign", "control", "doctor", "executors/slurm", "journal", "launch"),
    *("models", "models/cpr", "models/curves", "models/learned", "models/pmnf", "models/regression"),
    *("models/speedup", "models/splines", "models/swc"),
    *("policy", "readers", "report", "report/page", "strategies", "strategies/information"),
)


@pytest.mark.parametrize("package", MAPPED)
def test_a_large_package_says_what_each_of_its_files_is_for(package: str) -> None:
    folder = PACKAGE / package
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    named = set(re.findall(r"(?<!`)`([\w.]+)`", text))
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert not files - named
    own = {name for name in named if "." not in name}
    assert not {name for name in own - files if not (folder / name).is_dir()}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_reached_only_through_models_and_the_registry(family: str) -> None:
    prefix = f"orchestrator.{family}"
    wrong = {
        f"{module_of(path)} imports {name}"
        for path in sources()
        if room_of(module_of(path)) != "models"
        for name in ours(path)
        if name == prefix or name.startswith(f"{prefix}.")
    }
    assert not wrong


def test_adapters_import_only_the_types() -> None:
    for path in sorted((ROOT / "adapters").glob("*.py")):
        names = {name for name in imports(path) if name.startswith(("orchestrator", "adapters"))}
        assert names <= {"orchestrator.types", "adapters", "adapters.common"}, path


def test_only_the_registry_names_adapters() -> None:
    for path in sources():
        if module_of(path) != "orchestrator.registry":
            assert not any(name.split(".")[0] == "adapters" for name in imports(path)), path


def test_nothing_imports_the_tests() -> None:
    assert not [path for path in sources() for name in imports(path) if name.split(".")[0] == "tests"]
