"""Whole campaigns of nasty words execute none of them; nobody else can write into their files."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, example, given, settings

from orchestrator.campaign import loader
from orchestrator.control import session
from orchestrator.errors import CampaignError
from orchestrator.journal.state import RunStatus
from tests.security.words import nothing_timed, words

LOCAL = """
name: tiny
application: generic
executable: /bin/true
program: {arguments: ["{n}"]}
parameters: {n: [1, 2]}
measure: {profiler: time, time_limit: 60 s, repetitions: {initial: 1, maximum: 1}}
strategy: full
stop: {budget: 10 core-hours}
executor: {name: local, slots: 1, launcher: none}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nothing may have been executed at the end."""
    yield tmp_path
    found = [path for path in tmp_path.rglob("*") if path.name == "pwned"]
    assert not found, found


# --- a whole campaign -----------------------------------------------------------------------------------

PROGRAM = '#!/bin/sh\n[ -s "in put" ] || exit 9\nprintf "%s\\n" "$@" > seen\necho "time: 1.5 s"\n'


@settings(nothing_timed, max_examples=5)
@given(words, words, words)
@example("$(touch pwned)'\"\n", "`touch pwned`\n'\"", "; touch pwned\n'\"")
def test_a_campaign_of_nasty_words_measures_and_executes_none_of_them(
    name: str, value: str, text: str
) -> None:
    assume("/" not in name and value)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, f"a{name}")
        folder.mkdir()
        program = folder / f"pro gram{name}"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        braces = {"{": "{{", "}": "}}"}
        literal = "".join(braces.get(c, c) for c in text).replace("${", "$${")
        document = {
            "name": "demo",
            "application": "generic",
            "executable": str(program).replace("${", "$${"),
            "settings": {"setting": text.replace("${", "$${")},
            "program": {
                "arguments": ["{v}", "{setting}", literal],
                "environment": {"VALUE": literal},
                "files": {"in put": "{v} "},
                "output": [{"callpath": "main", "pattern": r"time: (\S+) s"}],
            },
            "parameters": {"v": {"values": [value.replace("${", "$${"), "plain"], "type": "categorical"}},
            "measure": {"time_limit": 60, "repetitions": {"initial": 1, "maximum": 1}},
            "strategy": "full",
            "stop": {"budget": 10},
            "executor": {
                "name": "local",
                "slots": 1,
                "launcher": "none",
                "environment": {"OTHER": value.replace("${", "$${")},
            },
        }
        assume(value != "plain")
        chosen = loader.loads(json.dumps(document), "f.yaml", folder)
        state = session.run(chosen, folder / f"cam paign{name}")
        assert {item.status for item in state.runs.values()} == {RunStatus.MEASURED}, state.runs
        seen = {path.read_bytes().decode() for path in folder.rglob("seen")}
        assert f"{value}\n{text}\n{text}\n" in seen
        assert not list(Path(scratch).rglob("pwned"))
        assert loader.loads(loader.dump(chosen)) == chosen


def test_a_campaign_file_makes_no_python_objects(tmp_path: Path) -> None:
    text = f"name: !!python/object/apply:os.system ['touch {tmp_path}/pwned']\n"
    with pytest.raises(CampaignError, match=r"f\.yaml:1"):
        loader.loads(text, "f.yaml")
    assert not list(tmp_path.iterdir())


def test_text_that_no_journal_can_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = '{"name": "a", "settings": {"x": "\\ud83d\\ude80"}}'
    bad = good.replace("\\ude80", "")
    for text, wrong in ((good, False), (bad, True)):
        with pytest.raises(CampaignError) as error:
            loader.loads(text, "f.yaml")
        assert ("settings.x: " in str(error.value)) is wrong
    monkeypatch.setenv("BYTES", os.fsdecode(b"a\xff"))
    with pytest.raises(CampaignError, match=r"settings\.x: 'a\\udcff' is not valid Unicode"):
        loader.loads("settings: {x: '${BYTES}'}", "f.yaml")
    with pytest.raises(CampaignError, match=r"f\.yaml:2: executor.environment.A: 'a\\x00' has a NUL"):
        loader.loads('executor:\n  environment: {A: "a\\0"}', "f.yaml")
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    (folder / "program").touch(0o755)
    with pytest.raises(CampaignError, match=r"executable: .* is not valid UTF-8; rename"):
        loader.loads("executable: ./program", "f.yaml", folder)


@pytest.mark.parametrize("name", ["run.sh", "attempt.json", "claim", "request.json", "environment.recorded"])
def test_an_input_file_cannot_take_the_place_of_an_attempts_own(name: str) -> None:
    document = {
        "name": "demo",
        "application": "generic",
        "executable": "/bin/true",
        "program": {"files": {name: "touch pwned"}},
        "measure": {"profiler": "time"},
        "parameters": {"p": [1, 2]},
        "stop": {"budget": 10},
    }
    with pytest.raises(CampaignError, match=f"program.files.{name}: is a file of the attempt's own"):
        loader.loads(yaml.safe_dump(document), "f.yaml")


def test_last_words_of_a_program_command_no_terminal(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nprintf '\\033]0;owned\\007\\033[2J gone\\n' >&2\nexit 3\n")
    program.chmod(0o755)
    text = LOCAL.replace("/bin/true", str(program))
    state = session.run(loader.loads(text), tmp_path / "campaign")
    reasons = {item.reason for item in state.runs.values() if item.reason}
    assert any("?]0;owned??[2J gone" in reason for reason in reasons)
    assert all(reason.isprintable() for reason in reasons)


# --- files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o002])
def test_nobody_else_can_write_into_a_campaign_whatever_the_umask(folder: Path, umask: int) -> None:
    directory = folder / "campaign"
    before = os.umask(umask)
    try:
        session.run(loader.loads(LOCAL), directory)
        assert os.umask(umask) == umask, "which is given back"
    finally:
        os.umask(before)
    paths = [directory, *directory.rglob("*")]
    assert len(paths) > 10
    assert [path for path in paths if path.stat().st_mode & stat.S_IWOTH] == []


def test_a_directory_that_everybody_can_write_to_is_refused(folder: Path) -> None:
    directory = folder / "campaign"
    directory.mkdir()
    directory.chmod(0o777)
    with pytest.raises(CampaignError, match="chmod o-w it"):
        session.run(loader.loads(LOCAL), directory)
    assert list(directory.iterdir()) == []
    directory.chmod(0o755)
    session.run(loader.loads(LOCAL), directory)
    directory.chmod(0o757)
    with pytest.raises(CampaignError, match="everybody can write"):
        session.run(loader.loads(LOCAL), directory)
