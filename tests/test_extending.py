"""The plug-ins of docs/extending.md, installed as a distribution of their own, used by the commands there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from orchestrator import registry
from orchestrator.campaign import loader
from orchestrator.control import assembly
from orchestrator.errors import CampaignError

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text()
BLOCK = re.compile(r"^```(?:toml|python|sh|yaml)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Site:
    """A folder with the campaign of the page, and the variables with which Python finds the plug-ins."""

    folder: Path
    variables: Mapping[str, str]

    def orchestrator(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "orchestrator", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def document(self, *arguments: str) -> Any:
        return json.loads(self.orchestrator(*arguments, "--json").stdout)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Write the files of the page, and install the distribution that they make into a folder."""
    folder = tmp_path_factory.mktemp("heat")
    for name, text in BLOCK.findall(PAGE):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (folder / "heat.sh").chmod(0o755)
    target = folder / "installed"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(target), str(folder)], check=True, timeout=120)
    return Site(folder, {**os.environ, "PYTHONPATH": os.pathsep.join([str(target), str(ROOT)])})


@pytest.fixture(scope="module")
def directory(site: Site) -> Path:
    """Return the directory of the campaign after `run`."""
    site.orchestrator("run", "heat.yaml")
    return site.folder / "heat"


def test_the_page_has_a_plug_in_of_every_kind() -> None:
    declared = re.findall(r'^\[project\.entry-points\."(.*)"\]$', PAGE, re.MULTILINE)
    assert sorted(declared) == sorted(set(registry.GROUPS.values()) - {"orchestrator.models"})


def test_the_commands_of_the_page_work(site: Site, directory: Path) -> None:
    [block] = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    commands = [shlex.split(line.removeprefix("$ ")) for line in block.splitlines()]
    assert [command[0] for command in commands] == ["pip", *["orchestrator"] * (len(commands) - 1)]
    for _, *arguments in commands[1:]:
        site.orchestrator(*arguments)


def test_the_doctor_lists_them_with_their_distribution(site: Site) -> None:
    checks = {check["name"]: check for check in site.document("doctor")["checks"]}
    for name in ("application heat", "reader heat-timers", "strategy every-nth", "executor nice"):
        assert checks[name]["status"] == "ok"
        assert checks[name]["detail"].endswith("of heat-orchestration 1.0")


def test_application_reader_strategy_and_executor_did_the_measuring(site: Site, directory: Path) -> None:
    status = site.document("status", "heat")
    assert status["runs"]["measured"] == 10, "five points of nine, two repetitions each"
    attempts = sorted(directory.glob("runs/*/time-1/attempt-1"))
    assert [path.parts[-3] for path in attempts] == ["n=1024", "n=16", "n=256", "n=4", "n=64"]
    scripts = [text for path in attempts for text in (file.read_text() for file in path.glob("*.sh"))]
    assert scripts and all("renice -n 5 $$" in text for text in scripts)
    models = {item["callpath"]: item for item in site.document("model", "heat")["models"]}
    assert set(models) == {"main", "main->stencil", "(run)"}


@pytest.fixture
def installed(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let this process find the plug-ins, too; return the campaign file."""
    monkeypatch.syspath_prepend(site.variables["PYTHONPATH"].split(os.pathsep)[0])
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
        assembly.executor(chosen, tmp_path, 0.0)


def test_a_campaign_on_their_executor_is_saved_and_loaded(installed: Path) -> None:
    chosen = loader.load(installed)
    assert loader.load(installed, saved=True) == chosen
    assert loader.loads(loader.dump(chosen)) == chosen
    assert loader.normalised(chosen.raw) == chosen.raw
    jsonschema.Draft202012Validator(loader.json_schema()).validate(dict(chosen.raw))
