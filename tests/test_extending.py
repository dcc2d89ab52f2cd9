"""The plug-ins of docs/extending.md, installed as a distribution of their own, used by the commands there."""

from __future__ import annotations

import json
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from orchestrator import registry
from orchestrator.campaign import loader
from orchestrator.campaign.schema import json_schema
from orchestrator.control import execution, existing, pruning
from orchestrator.errors import CampaignError

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text()
BLOCK = re.compile(r"^```(?:toml|python|sh|yaml)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Site:
    """A folder with the files of the page, and another one with the distribution installed."""

    folder: Path
    installed: Path

    def orchestrator(self, *arguments: str) -> Any:
        """Run a command with ``--json``; return its document."""
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(self.installed), str(ROOT)])}
        command = [sys.executable, "-m", "orchestrator", *arguments, "--json"]
        done = subprocess.run(
            command, cwd=self.folder, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Write the files of the page, and install the distribution that they make into a folder."""
    folder = tmp_path_factory.mktemp("heat")
    for name, text in BLOCK.findall(PAGE):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (folder / "heat.sh").chmod(0o755)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(folder / "installed"), str(folder)], check=True, timeout=300)
    return Site(folder, folder / "installed")


def test_the_page_has_a_plug_in_of_every_kind() -> None:
    declared = re.findall(r'^\[project\.entry-points\."(.*)"\]$', PAGE, re.MULTILINE)
    assert sorted(declared) == sorted(registry.GROUPS.values())


def test_the_page_names_what_there_is() -> None:
    named = set(re.findall(r"`(orchestrator(?:\.\w+)+)(?:\(.*?\))?`", PAGE)) - set(registry.GROUPS.values())
    assert len(named) > 10
    for name in named:
        assert pkgutil.resolve_name(name) is not None


@pytest.mark.slow
def test_the_commands_of_the_page_use_every_plug_in(site: Site) -> None:
    [block] = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    executable, install, *commands = [shlex.split(line.removeprefix("$ ")) for line in block.splitlines()]
    assert executable == ["chmod", "+x", "heat.sh"]
    assert install == ["pip", "install", "."]
    documents = {words[1]: site.orchestrator(*words[1:]) for words in commands}
    _is_listed(documents["doctor"])
    _has_measured(site.folder / "heat", documents["run"])
    _has_modelled(documents["model"])
    assert documents["simulate"]["runs"]["measured"] == 6, "two points exceed the time limit of 20 s"


def _is_listed(document: Any) -> None:
    checks = {check["name"]: check for check in document["checks"]}
    wanted = (
        "application heat",
        "reader heat-timers",
        "strategy every-nth",
        "executor nice",
        "model power-law",
    )
    for name in wanted:
        assert checks[name]["status"] == "ok"
        assert checks[name]["detail"].endswith("of heat-orchestration 1.0")


def _has_measured(directory: Path, status: Any) -> None:
    assert status["runs"]["measured"] == 10, "five points of nine, two repetitions each"
    attempts = sorted(directory.glob("runs/*/time-1/attempt-1"))
    assert [path.parts[-3] for path in attempts] == ["n=1024", "n=16", "n=256", "n=4", "n=64"]
    scripts = [file.read_text() for path in attempts for file in path.glob("*.sh")]
    assert scripts and all("renice -n 5 $$" in text for text in scripts)


def _has_modelled(document: Any) -> None:
    models = {item["callpath"]: item for item in document["models"]}
    assert set(models) == {"main", "main->stencil", "(run)"}
    assert models["main"]["expression"] == "0.001 * n**2"
    [prediction] = models["main"]["predictions"]
    assert prediction["value"] == pytest.approx(2048**2 / 1000, rel=1e-3)


@pytest.mark.slow
def test_measurements_are_read_where_a_plug_in_is_missing(site: Site, tmp_path: Path) -> None:
    here = tmp_path / "here"
    site.orchestrator("simulate", "heat.yaml", "--truth", "main=n**2 / 1000", "--directory", str(here))
    command = [sys.executable, "-m", "orchestrator"]
    read = {
        installed: subprocess.run(
            [*command, "export", str(here), "--format", "csv"],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([*([str(site.installed)] * installed), str(ROOT)]),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        for installed in (True, False)
    }
    assert read[True].returncode == 0 and "main" in read[True].stdout
    assert (read[False].returncode, read[False].stdout) == (0, read[True].stdout), read[False].stderr
    assert "every-nth" in existing.load(here).missing["strategy"]
    with pytest.raises(CampaignError) as error:
        existing.load(here, starts=True)
    assert "unknown strategy; known: " in str(error.value)
    assert "or install the distribution that brings it" in str(error.value)


@pytest.fixture
def installed(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let this process find the plug-ins, too; return the campaign file."""
    monkeypatch.syspath_prepend(str(site.installed))
    registry.entry_points_of.cache_clear()
    yield site.folder / "heat.yaml"
    registry.entry_points_of.cache_clear()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("strategy.strid=2", "strategy every-nth has no option 'strid'; did you mean 'stride'?"),
        ("strategy=every-nt", "did you mean 'every-nth'?"),
        ("measure.profiler=heat-timer", "did you mean 'heat-timers'?"),
        ("application=heatt", "did you mean 'heat'?"),
        ("executor.name=nicee", "did you mean 'nice'?"),
    ],
)
def test_mistakes_are_found_like_those_about_our_own(installed: Path, override: str, message: str) -> None:
    with pytest.raises(CampaignError) as error:
        loader.load(installed, [override])
    assert message in str(error.value)


def test_an_executor_checks_its_own_options(installed: Path, tmp_path: Path) -> None:
    chosen = loader.load(installed, ["executor.niceness=0"])
    with pytest.raises(CampaignError, match=r"executor.niceness: 0 must be a whole number from 1"):
        execution.executor(chosen, tmp_path, 0.0)


def test_what_their_reader_declares_is_not_pruned(installed: Path) -> None:
    chosen = loader.load(installed)
    assert pruning.kept_for(chosen) == (*chosen.application_spec.output_files, "timers.csv")


def test_a_campaign_on_their_executor_is_saved_and_loaded(installed: Path) -> None:
    chosen = loader.load(installed)
    saved = loader.loads(installed.read_text(), str(installed), installed.parent, saved=True)
    assert saved == chosen
    assert loader.loads(loader.dump(chosen)) == chosen
    assert loader.normalised(chosen.raw) == chosen.raw
    jsonschema.Draft202012Validator(json_schema()).validate(dict(chosen.raw))
