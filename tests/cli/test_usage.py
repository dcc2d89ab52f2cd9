from pathlib import Path

import pytest

from orchestrator.cli.main import COMMANDS
from tests.cli.running import run


def test_help_names_every_command_and_exit_code() -> None:
    result = run("--help")
    assert result.code == 0
    assert all(f"\n  {name} " in result.out for name in COMMANDS)
    assert all(f"\n  {code}  " in result.out for code in range(4))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    result = run(command, "--help")
    assert result.code == 0
    assert f"usage: orchestrator {command}" in result.out
    assert "exit codes:" in result.out
    assert result.err == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option_is_wrong_usage(command: str) -> None:
    result = run(command, "--no-such-option")
    assert result.code == 2
    assert result.out == ""


@pytest.mark.parametrize("arguments", [["measure"], [], ["run"], ["status"], ["model"], ["export", "x"]])
def test_wrong_usage(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert "usage: orchestrator" in result.err


def test_version() -> None:
    result = run("--version")
    assert result.code == 0
    assert result.out.startswith("orchestrator ")


def test_an_unknown_campaign_file_is_wrong_usage_and_names_the_ready_ones() -> None:
    result = run("run", "missing.yaml")
    assert result.code == 2
    assert "missing.yaml" in result.err
    assert "quickstart" in result.err


def test_a_ready_campaign_is_found_by_name_also_where_its_directory_is() -> None:
    Path("generic").mkdir()
    for name in ("generic", "generic.yaml", "campaigns/generic.yaml"):
        assert run("plan", name, "--no-rehearsal", "--json").document["campaign"] == "generic"


def test_a_campaign_directory_is_no_campaign_file() -> None:
    Path("mine").mkdir()
    result = run("run", "mine")
    assert result.code == 2
    assert "orchestrator resume mine" in result.err
