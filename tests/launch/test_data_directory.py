"""Where templates and campaigns are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.errors import CampaignError
from orchestrator.launch import script
from tests.launch.scripts import PLAIN


def test_every_executor_has_a_frame() -> None:
    assert script.find_frame(None, "local").name == "mpi.sh"
    assert script.find_frame(None, "slurm").name == "slurm.sh"
    assert script.find_frame("slurm", "local").name == "slurm.sh"


def test_a_frame_may_be_a_path(tmp_path: Path) -> None:
    own = tmp_path / "own.sh"
    own.write_text(PLAIN)
    assert script.find_frame(str(own), "slurm") == own


@pytest.mark.parametrize("name", ["sluurm", "no/such/file.sh", "../templates/slurm.sh"])
def test_an_unknown_frame_is_an_error_that_lists_the_known(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CampaignError, match=r"no frame .*one of: mpi, slurm"):
        script.find_frame(name, "local")


@pytest.mark.parametrize("kind", ["templates", "campaigns"])
@pytest.mark.parametrize("layout", ["clone", "wheel"])
def test_data_is_found_beside_the_package_and_inside_it(tmp_path: Path, kind: str, layout: str) -> None:
    """The layout of a wheel is what pyproject.toml force-includes."""
    root = Path(__file__).parents[2]
    shutil.copytree(root / "orchestrator", tmp_path / "orchestrator", ignore=shutil.ignore_patterns("_data"))
    data = tmp_path / kind if layout == "clone" else tmp_path / "orchestrator" / "_data" / kind
    shutil.copytree(root / kind, data)
    command = f"from orchestrator.launch.script import data_directory; print(data_directory({kind!r}))"
    process = subprocess.run(
        [sys.executable, "-c", command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(process.stdout.strip()) == data.resolve()


def test_an_incomplete_installation_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.__file__", str(tmp_path / "orchestrator" / "__init__.py"))
    with pytest.raises(CampaignError, match="install again"):
        script.data_directory("templates")
