import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli.main import COMMANDS
from tests.cli.running import SIMULATED, run, tree, write_campaign


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


@pytest.mark.parametrize(
    ("typed", "meant"), [("rn", "run"), ("stauts", "status"), ("suggests", "suggest"), ("Plan", "plan")]
)
def test_a_misspelt_command_is_wrong_usage_and_the_meant_one_is_named(typed: str, meant: str) -> None:
    result = run(typed, "x")
    assert result.code == 2
    assert f"there is no command {typed!r}: did you mean {meant!r}?" in result.err


def test_the_meant_campaign_is_named_whether_ready_or_a_file_below() -> None:
    assert "did you mean 'quickstart'?" in run("run", "quickstrat").err
    Path("studies").mkdir()
    Path("studies/kernels.yaml").touch()
    assert "did you mean 'kernels'?" in run("run", "kernel.yaml").err
    assert "did you mean" not in run("run", "something-else").err


MISSING: dict[str, list[str]] = {
    "status": [],
    "log": [],
    "report": [],
    "resume": [],
    "cancel": [],
    "reread": [],
    "prune": [],
    "discard": ["n=1/time-1", "--because", "hot"],
    "model": [],
    "export": ["--format", "csv"],
    "suggest": ["--budget", "1", "--at", "p=4"],
    "run": [],
    "plan": [],
    "simulate": [],
    "doctor": [],
}


@pytest.mark.parametrize("name", ["nowhere", "nowhere/data.json", "nowhere.yaml"])
@pytest.mark.parametrize("command", MISSING)
def test_what_is_not_there_is_wrong_usage_whether_file_or_directory(command: str, name: str) -> None:
    result = run(command, name, *MISSING[command])
    assert (result.code, result.out) == (2, "")
    assert name in result.err
    assert tree(Path.cwd()) == []


def test_counts_that_are_not_there_are_wrong_usage() -> None:
    assert run("effort", "show", "nowhere").code == 2


@pytest.mark.parametrize("command", ["status", "log", "resume", "cancel", "reread", "prune", "discard"])
def test_a_directory_without_a_campaign_is_wrong_usage(command: str) -> None:
    Path("empty").mkdir()
    result = run(command, "empty", *MISSING[command])
    assert result.code == 2
    assert tree(Path("empty")) == []
    assert "empty holds no campaign: journal.jsonl is missing or empty" in result.err


@pytest.mark.parametrize("command", ["status", "resume", "report"])
def test_the_file_of_a_campaign_instead_of_its_directory_is_told_apart(command: str) -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    assert run("run", "campaign.yaml", "--directory", "campaign").code == 0
    result = run(command, "campaign.yaml")
    assert result.code == 2
    assert "campaign.yaml is no campaign directory; did you mean campaign?" in result.err


def test_a_misspelt_directory_is_told_with_the_one_that_was_meant() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    assert run("run", "campaign.yaml", "--directory", "studies/weak-scaling").code == 0
    for command in ("status", "resume", "report"):
        result = run(command, "studies/weak-scalling")
        assert result.code == 2
        assert "no directory studies/weak-scalling; did you mean studies/weak-scaling?" in result.err
    assert "begin one with" in run("status", "studies/other").err


def test_a_campaign_file_is_found_by_name_below_the_current_directory_before_a_ready_one() -> None:
    folder = Path("studies/2025")
    folder.mkdir(parents=True)
    write_campaign(folder).rename(folder / "quickstart.yaml")
    for name in ("quickstart", "quickstart.yaml"):
        assert run("plan", name, "--no-rehearsal", "--json").document["campaign"] == "tiny"
    write_campaign(Path("studies")).rename(Path("studies/quickstart.yml"))
    assert run("plan", "quickstart", "--no-rehearsal", "--json").document["campaign"] == "tiny", "the nearer"
    Path("studies/quickstart.yaml").touch()
    several = run("plan", "quickstart")
    assert several.code == 2
    assert "studies/quickstart.yaml, studies/quickstart.yml; give the path of one" in several.err


def test_a_campaign_directory_is_found_by_name_below_the_current_directory() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    assert run("run", "campaign.yaml", "--directory", "results/first").code == 0
    assert run("status", "first", "--json").document["campaign"] == "rehearsal"
    assert run("run", "campaign.yaml", "--directory", "more/first").code == 0
    assert run("status", "first").code == 2, "which one is not known"


def test_a_ready_campaign_is_found_by_name_also_where_its_directory_is() -> None:
    Path("generic").mkdir()
    for name in ("generic", "generic.yaml", "campaigns/generic.yaml"):
        assert run("plan", name, "--no-rehearsal", "--json").document["campaign"] == "generic"


def test_a_campaign_directory_is_no_campaign_file() -> None:
    Path("mine").mkdir()
    result = run("run", "mine")
    assert result.code == 2
    assert "orchestrator resume mine" in result.err


def test_warnings_do_not_name_a_place_in_the_source() -> None:
    program = (
        "import warnings; from orchestrator.cli.main import main; main(['schema']); warnings.warn('odd')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "warning: odd\n"
