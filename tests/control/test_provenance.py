"""What a controller finds out about the executable, and what it must survive."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.control import provenance

CAMPAIGN = """
name: demo
application: generic
executable: {executable}
version_arguments: {arguments}
program: {{arguments: ["{{p}}"], output: [{{callpath: main, pattern: "t=(.*)"}}]}}
parameters: {{p: [1, 2]}}
stop: {{budget: 1}}
executor: {{name: {executor}, launcher: none{more}}}
"""


def chosen(executable: Path, arguments: str = "[]", executor: str = "local", more: str = "") -> Campaign:
    text = CAMPAIGN.format(executable=executable, arguments=arguments, executor=executor, more=more)
    return loader.loads(text)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e@x", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_executable_is_identified_by_its_content(tmp_path: Path) -> None:
    path = write(tmp_path / "app", "#!/bin/sh\necho 1\n")
    found = provenance.gather(chosen(path))["executable"]
    assert found["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (found["path"], found["size"]) == (str(path), path.stat().st_size)
    assert found["mtime_ns"] == path.stat().st_mtime_ns
    assert "version" not in found, "it is never started without being asked to"


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_its_version_is_the_first_line_that_it_prints(tmp_path: Path, stream: str) -> None:
    path = write(
        tmp_path / "app", f'#!/bin/sh\n[ "$1" = "a b" ] && {{ echo; echo "  app 1.2"; exit 3; }}{stream}\n'
    )
    assert provenance.gather(chosen(path, '["a b"]'))["executable"]["version"] == "app 1.2"


def test_an_executable_that_hangs_or_cannot_start_has_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "_PATIENCE", 0.2)
    hangs = write(tmp_path / "app", "#!/bin/sh\nexec sleep 60\n")
    assert "version" not in provenance.gather(chosen(hangs, "[-V]"))["executable"]
    broken = write(tmp_path / "other", "#!/no/such/interpreter\n")
    assert "version" not in provenance.gather(chosen(broken, "[-V]"))["executable"]


def test_the_revision_is_that_of_the_checkout_and_tells_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    (source / "build").mkdir(parents=True)
    git(source, "init", "--quiet")
    (source / "app.c").write_text("int main;\n")
    git(source, "add", "app.c")
    git(source, "commit", "--quiet", "--message=x")
    commit = git(source, "rev-parse", "HEAD")
    path = write(source / "build" / "app", "#!/bin/sh\n")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    link = tmp_path / "link"
    link.symlink_to(path)
    assert provenance.gather(chosen(link))["executable"]["revision"] == commit
    (source / "app.c").write_text("int changed;\n")
    assert provenance.gather(chosen(path))["executable"]["revision"] == f"{commit}-dirty"


def test_outside_a_checkout_and_without_git_there_is_no_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "app", "#!/bin/sh\n")
    assert "revision" not in provenance.gather(chosen(path))["executable"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "revision" not in provenance.gather(chosen(path))["executable"]


def test_what_vanished_since_is_no_error(tmp_path: Path) -> None:
    path = write(tmp_path / "app", "#!/bin/sh\n")
    loaded = chosen(path, "[-V]")
    path.unlink()
    assert provenance.gather(loaded)["executable"] == {"path": str(path)}


def test_simulated_runs_have_none(tmp_path: Path) -> None:
    path = write(tmp_path / "app", "#!/bin/sh\n")
    assert provenance.gather(chosen(path, executor="simulated", more=', truth: {main: "p"}')) == {}


def test_a_campaign_of_an_earlier_version_gets_the_defaults_of_new_keys(tmp_path: Path) -> None:
    raw = dict(chosen(write(tmp_path / "app", "#!/bin/sh\n")).raw)
    older = {key: value for key, value in raw.items() if key != "version_arguments"}
    assert loader.normalised(older) == raw
    newer = {**raw, "of_the_future": 1}
    assert loader.normalised(newer) == newer


def test_the_program_that_counts_effort_is_identified_too(tmp_path: Path) -> None:
    path = write(tmp_path / "app", "#!/bin/sh\n")
    other = write(tmp_path / "app-effort", "#!/bin/sh\n:\n")
    text = CAMPAIGN.format(executable=path, arguments="[]", executor="local", more="")
    found = provenance.gather(loader.loads(text, overrides=["measure.effort=true"]))
    assert found["executable"]["path"] == str(path)
    assert found["effort_executable"]["sha256"] == hashlib.sha256(other.read_bytes()).hexdigest()
    assert "effort_executable" not in provenance.gather(chosen(path))


def test_the_roles_of_an_executable_are_told_by_its_path() -> None:
    gathered = {"executable": {"path": "/a"}, "effort_executable": {"path": "/b"}, "python": "3.11"}
    assert provenance.roles(gathered, {"path": "/b"}) == ["effort_executable"]
    assert not provenance.roles(gathered, {"path": "/c"}) and not provenance.roles(gathered, {})
