"""Who may import whom. The rules keep decisions pure and plug-ins replaceable."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "orchestrator"

# Modules that a file or room may import from this project, besides itself and orchestrator.types.
ALLOWED: dict[str, set[str]] = {
    "types.py": set(),
    "errors.py": set(),
    "cost.py": set(),
    "events.py": set(),
    "journal.py": {"events", "errors"},
    "nodes.py": set(),
    "packs.py": set(),
    "run_state.py": {"events", "packs"},
    "packing.py": {"cost", "packs"},
    "limits.py": {"state"},
    "state.py": {"events", "journal", "nodes", "packs", "run_state"},
    "decide.py": {"cost", "packing", "state"},
    "measured.py": {"state"},
    "progress.py": {"models.base"},
    "models": {"errors"},
    "strategies": {"errors", "models", "cost"},
    "counting.py": {"measured", "models", "state", "strategies.base"},
    "readers": {"errors"},
    "effort": {"errors"},
    "generate": {"errors", "models"},
    "executors": {"__version__", "errors"},
    "loop.py": {
        "__version__",
        "cost",
        "decide",
        "events",
        "executors.base",
        "counting",
        "journal",
        "models.base",
        "packing",
        "progress",
        "settle",
        "state",
        "strategies.base",
    },
}

# Rooms that know nothing of files, the clock, processes or global randomness.
PURE = (
    *("models", "strategies", "decide.py", "limits.py", "nodes.py", "state.py", "cost.py", "progress.py"),
    *("counting.py", "packs.py", "packing.py", "run_state.py"),
)
IMPURE = {"os", "pathlib", "subprocess", "time", "datetime", "random", "socket", "shutil", "tempfile", "sys"}


def files_of(room: str) -> list[Path]:
    path = PACKAGE / room
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= (
                {f"orchestrator.{alias.name}" for alias in node.names}
                if node.module == "orchestrator"
                else {node.module or ""}
            )
    return found


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_imports_only_what_it_may(room: str) -> None:
    assert files_of(room)
    allowed = {"types", room.removesuffix(".py"), *ALLOWED[room]}
    for path in files_of(room):
        ours = {
            name.removeprefix("orchestrator.") for name in imports(path) if name.startswith("orchestrator.")
        }
        wrong = {
            name for name in ours if not any(name == item or name.startswith(f"{item}.") for item in allowed)
        }
        assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}"


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_touch_no_files_clock_or_processes(room: str) -> None:
    for path in files_of(room):
        wrong = {name.split(".")[0] for name in imports(path)} & IMPURE
        assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}"
        source = path.read_text()
        assert "open(" not in source and "np.random.seed" not in source, path


def test_adapters_import_only_the_types() -> None:
    for path in sorted((ROOT / "adapters").glob("*.py")):
        ours = {name for name in imports(path) if name.startswith(("orchestrator", "adapters"))}
        assert ours <= {"orchestrator.types", "adapters", "adapters.common"}, path


def test_only_the_registry_names_adapters() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "registry.py":
            assert not any(name.split(".")[0] == "adapters" for name in imports(path)), path


def test_files_stay_small() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for room in (PACKAGE, ROOT / "adapters")
        for path in sorted(room.rglob("*.py"))
        if (count := len(path.read_text().splitlines())) > 400
    }
    assert not long
