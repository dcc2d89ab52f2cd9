"""An invalid campaign costs nothing, creates nothing, and every mistake is named at once."""

from pathlib import Path

import pytest

from tests.cli.running import LOCAL, Result, run, tree, write_campaign

COMMANDS = ("run", "plan", "simulate")


def refused(command: str, text: str, program: str | None = "#!/bin/sh\n") -> Result:
    campaign = write_campaign(Path.cwd(), text, program)
    before = tree(Path.cwd())
    truth = ["--truth", "main=n"] if command == "simulate" else []
    result = run(command, campaign, *truth)
    assert result.code == 2
    assert result.out == ""
    assert "Traceback" not in result.err
    assert tree(Path.cwd()) == before
    return result


@pytest.mark.parametrize("command", COMMANDS)
def test_every_mistake_is_named_at_once(command: str) -> None:
    text = LOCAL.replace("batch_size: 2", "batchsize: 2").replace("patience: 2", "patience: 0")
    text = text.replace("application: generic", "application: generik")
    result = refused(command, text)
    for mistake in (
        "campaign.yaml:2",
        "generik",
        "batchsize",
        "did you mean 'batch_size'",
        "patience",
        "at least 1",
    ):
        assert mistake in result.err


@pytest.mark.parametrize("command", COMMANDS)
def test_no_yaml(command: str) -> None:
    assert "campaign.yaml" in refused(command, "name: [unclosed").err


def test_executable_is_missing() -> None:
    result = refused("run", LOCAL.replace("./program.sh", "./other.sh"))
    assert "executable" in result.err
    assert "other.sh" in result.err


def test_executable_is_no_program() -> None:
    write_campaign(Path.cwd())
    Path("program.sh").chmod(0o644)
    result = run("run", "campaign.yaml")
    assert result.code == 2
    assert "chmod +x" in result.err


def test_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_VARIABLE", raising=False)
    assert "NO_SUCH_VARIABLE" in refused("run", LOCAL.replace("./program.sh", "${NO_SUCH_VARIABLE}/x")).err


def test_first_round_is_unaffordable() -> None:
    result = refused("run", LOCAL.replace("1 core-hour,", "10 core-seconds,"))
    assert "stop.budget" in result.err
    assert "10: raise stop.budget" in result.err and "core-seconds" in result.err


def test_a_small_budget_that_pays_for_the_runs_one_after_another_is_accepted() -> None:
    """Each of ten runs reserves some seconds to be ended in, but never two of them at once."""
    text = LOCAL.replace("1 core-hour,", "60 core-seconds,").replace("{time_limit: 20 s}", "{}")
    write_campaign(Path.cwd(), text)
    plan = run("plan", "campaign.yaml", "--no-rehearsal", "--json").document
    assert len(plan["runs"]) == 10
    assert all(item["time_limit"] > 3 for item in plan["runs"])
    assert plan["cost"]["worst"] <= plan["cost"]["budget"]
    result = run("run", "campaign.yaml", "--json")
    assert result.code == 0, result.err
    assert result.document["runs"]["measured"] >= 10
    assert result.document["cost"]["spent"] <= result.document["cost"]["budget"]


def test_an_override_of_an_unknown_key() -> None:
    write_campaign(Path.cwd())
    result = run("run", "campaign.yaml", "--set", "stop.bugdet=3")
    assert result.code == 2
    assert "did you mean 'budget'" in result.err
    assert not Path("tiny").exists()


def test_search_space_is_empty() -> None:
    assert "n > 7" in refused("run", LOCAL + 'constraints: ["n > 7"]\n').err
