"""What imports cost: light commands must not load what only heavy ones need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import orchestrator
from tests.cli.running import SIMULATED, run, write_campaign

HEAVY = {"pandas", "matplotlib", "sklearn", "scipy.stats", "numba", "pyarrow", "submitit"}

_LOADED = """\
import sys, json
{code}
print(json.dumps(sorted(set(sys.modules) & set({heavy}))))
"""


def loaded(code: str, heavy: set[str] = HEAVY) -> set[str]:
    """Return which heavy modules a fresh interpreter has loaded after some code."""
    text = _LOADED.format(code=code, heavy=sorted(heavy))
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout.splitlines()[-1]))


def command(*arguments: str | Path) -> str:
    return f"from orchestrator.cli.main import main\nassert main({[str(item) for item in arguments]!r}) == 0"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campaign")
    campaign = write_campaign(folder, SIMULATED, None)
    assert run("simulate", campaign, "--directory", folder / "here").code == 0
    return folder / "here"


def test_the_package_itself_loads_next_to_nothing() -> None:
    assert loaded("import orchestrator", {*HEAVY, "numpy", "yaml", "pydantic", "rich", "argparse"}) == set()


def test_public_names_are_found_lazily() -> None:
    assert set(orchestrator.__all__) <= set(dir(orchestrator))
    for name in orchestrator.__all__:
        assert getattr(orchestrator, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        orchestrator.nothing  # noqa: B018


@pytest.mark.parametrize(
    "arguments", [("status",), ("status", "--json"), ("log",), ("runs", "--csv")], ids=" ".join
)
def test_light_commands_load_nothing_heavy(arguments: tuple[str, ...], finished: Path) -> None:
    """Nor what campaign files are checked with: either takes a third of the time of a look."""
    name, *options = arguments
    quiet = "import os, sys\nsys.stdout = open(os.devnull, 'w')\n"
    code = f"{quiet}{command(name, finished, *options)}\nsys.stdout = sys.__stdout__"
    assert loaded(code, {*HEAVY, "numpy", "pydantic"}) == set()


@pytest.mark.parametrize("name", ["model", "export"])
def test_commands_on_tables_load_only_what_they_use(name: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = [f"{n},main,time,{n + 1}" for n in (1, 2, 4, 8, 16)]
    path.write_text("\n".join(["n,callpath,metric,value", *rows, ""]))
    options = ["--format", "extrap-jsonl", "--output", tmp_path / "out"] if name == "export" else ["--json"]
    quiet = "import os, sys\nsys.stdout = open(os.devnull, 'w')\n"
    found = loaded(f"{quiet}{command(name, path, *options)}\nsys.stdout = sys.__stdout__")
    assert found <= ({"numba", "scipy.stats"} if name == "model" else set())


@pytest.mark.parametrize("name", ["run", "plan", "cancel"])
def test_before_anything_is_fitted_nothing_heavy_is_loaded(name: str) -> None:
    assert loaded(f"import orchestrator.cli.{name}") == set()


@pytest.mark.parametrize(
    ("arguments", "used"),
    [(("plan", "--no-rehearsal"), {"numba"}), (("simulate",), {"numba", "scipy.stats"})],
    ids=("plan", "simulate"),
)
def test_a_campaign_as_it_is_by_default_loads_only_what_it_uses(
    arguments: tuple[str, ...], used: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default strategies and models are those that choose among all."""
    monkeypatch.chdir(tmp_path)
    write_campaign(tmp_path, SIMULATED.replace("strategy: {name: cpf, batch_size: 2}\n", ""), None)
    name, *options = arguments
    assert loaded(command(name, "campaign.yaml", *options)) == used


def test_the_type_hints_are_shipped() -> None:
    assert (Path(orchestrator.__file__).parent / "py.typed").exists()
