"""Where Slurm is slow to answer, the user is told what is waited for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from orchestrator.doctor.probe import here
from orchestrator.executors.slurm import silence
from orchestrator.executors.slurm.commands import answer
from tests.slurm.fake_slurm import FakeSlurm

CAMPAIGN = """
name: silent
application: generic
executable: /bin/sleep
program: {arguments: ["{n}"], output: [{callpath: main, pattern: "t=(.*)"}]}
parameters: {n: [1, 2, 3, 4, 5]}
measure: {time_limit: 60 s, expected_time: 5 s}
stop: {budget: 6 core-hours}
executor: {name: slurm}
"""


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    texts: list[str] = []
    monkeypatch.setattr(silence, "PATIENCE", 0.1)
    silence.when_silent(texts.append)
    yield texts
    silence.when_silent(lambda text: None)


def test_each_command_that_is_waited_for_is_named_once(fake: FakeSlurm, said: list[str]) -> None:
    assert answer(["scontrol", "show", "config"]) is not None and said == []
    fake.answer("squeue", "1\n", seconds=0.5)
    for _ in range(2):
        assert answer(["squeue", "--noheader"], 30.0) == "1\n"
    assert said == ["Slurm has not answered yet (squeue --noheader): waiting up to 30 s for each answer"]
    fake.answer("scontrol", seconds=0.5)
    assert answer(["scontrol", "show", "config"], 0.4) is None
    assert said[1:] == [
        "Slurm has not answered yet (scontrol show config): waiting up to 0.4 s for each answer"
    ]


def test_checks_of_the_machine_say_it_of_slurm_only(fake: FakeSlurm, said: list[str]) -> None:
    fake.answer("scontrol", seconds=0.3)
    looks = here(patience=5.0)
    assert looks.ask(["sleep", "0.3"]).ok and said == []
    assert looks.ask(["scontrol", "ping"]).ok
    assert said == ["Slurm has not answered yet (scontrol ping): waiting up to 5 s for each answer"]


def test_commands_say_it_on_stderr(
    fake: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(silence, "PATIENCE", 0.1)
    fake.answer("scontrol", seconds=0.5)
    (tmp_path / "c.yaml").write_text(CAMPAIGN)
    main(["plan", str(tmp_path / "c.yaml")])
    found = capsys.readouterr()
    assert found.err.count("Slurm has not answered yet (scontrol ") == 1
    assert "does not answer" not in found.out
