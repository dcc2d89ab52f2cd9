"""Campaigns on this machine from end to end, with programs that misbehave in every way."""

import hashlib
import threading
import time
from pathlib import Path

import pytest

from tests.cli.running import LOCAL, PROGRAM, Result, run, write_campaign


def finished(program: str, text: str = LOCAL, code: int = 0) -> Result:
    result = run("run", write_campaign(Path.cwd(), text, program), "--json")
    assert result.code == code, result.err
    assert "Traceback" not in result.err
    assert result.document["state"] == "stopped"
    return result


def given_up(result: Result) -> dict[str, str]:
    return {item["run"]: item["reason"] for item in result.document["given_up"]}


def test_a_campaign_measures_models_and_stops() -> None:
    result = finished(PROGRAM)
    status = result.document
    assert status["runs"]["measured"] == 10
    assert status["points"] == 5
    model = next(item for item in status["models"] if item["callpath"] == "main")
    assert model["predictions"][0]["point"] == {"n": 8}
    assert model["predictions"][0]["value"] == pytest.approx(8.5, rel=1e-3)
    assert "round 1" in result.err
    assert {path.name for path in Path("tiny").iterdir()} >= {
        "campaign.yaml",
        "journal.jsonl",
        "models.json",
        "runs",
    }


def test_costs_add_up_to_the_budget() -> None:
    cost = finished(PROGRAM).document["cost"]
    assert cost["spent"] > 0
    assert cost["reserved"] == 0
    assert cost["spent"] + cost["reserved"] + cost["left"] == pytest.approx(cost["budget"])


# One of the five values of n makes the program misbehave; the campaign goes on without that point.
MISBEHAVIOUR = {
    "crashes": ("exit 7", "application: ", "exit code 7"),
    "is killed": ("kill -SEGV $$", "application: ", "139"),
    "hangs": ("sleep 1000", "timeout: ", "1 s"),
    "prints nothing": ("exit 0", "parse: ", "main"),
    "prints NaN": ('echo "time: nan s"; exit 0', "parse: ", "nan"),
    "prints infinity": ('echo "time: inf s"; exit 0', "parse: ", "inf"),
    "prints a negative time": ('echo "time: -3.5 s"; exit 0', "parse: ", "-3.5"),
    "prints no number": ('echo "time: fast s"; exit 0', "parse: ", "fast"),
}


@pytest.mark.parametrize("how", MISBEHAVIOUR)
def test_the_campaign_goes_on_where_the_program(how: str) -> None:
    action, failure, detail = MISBEHAVIOUR[how]
    program = PROGRAM.replace("echo", f'if [ "$1" = 3 ]; then {action}; fi\necho', 1)
    limit = "1 s" if how == "hangs" else "20 s"
    result = finished(program, LOCAL.replace("20 s", limit))
    reasons = given_up(result)
    assert set(reasons) == {"n=3/time-1"}
    assert reasons["n=3/time-1"].startswith(failure)
    assert detail in reasons["n=3/time-1"]
    assert result.document["runs"]["measured"] == 8
    assert reasons["n=3/time-1"].split(" (")[0] in result.err


@pytest.mark.parametrize("action", ["exit 7", "exit 0", "kill -KILL $$"])
def test_the_failure_rule_stops_a_campaign_of_which_every_run_fails(action: str) -> None:
    result = finished(f"#!/bin/sh\n{action}\n", LOCAL.replace("patience: 2", "failures: 3"), code=1)
    assert result.document["stop_reason"]["rule"] == "failures"
    assert result.document["runs"]["measured"] == 0
    assert result.document["models"] == []
    assert "stop rule: failures" in result.err
    assert "the campaign measured nothing: failures (3 points in a row were given up; most" in result.err
    assert "often (3 of 3)" in result.err and "continue with: orchestrator resume tiny" in result.err
    status = run("status", "tiny")
    assert status.code == 0 and "remedy: " in status.out
    assert "orchestrator resume tiny" in " ".join(status.out.split())


def test_a_campaign_that_stopped_because_of_failures_continues_when_it_is_resumed() -> None:
    text = LOCAL.replace("patience: 2", "failures: 3")
    finished("#!/bin/sh\nexit 7\n", text, code=1)
    again = run("resume", "tiny")
    assert again.code == 1 and "failures are counted from zero" in again.err and "attempt-2" in again.err
    (Path.cwd() / "program.sh").write_text(PROGRAM)
    fixed = run("resume", "tiny", "--json")
    assert fixed.code == 0, fixed.err
    assert fixed.document["runs"]["measured"] == 10 and not fixed.document["given_up"]
    assert "points that were given up are tried again" in run("log", "tiny").out


def test_a_program_that_is_replaced_between_controllers_is_told_everywhere() -> None:
    finished(PROGRAM)
    (Path.cwd() / "program.sh").write_text(PROGRAM + "# other flags\n")
    told = "the executable was replaced during the campaign: what is measured from now on is mixed with"
    resumed = run("resume", "tiny", "--set", "stop.budget=2 core-hours", "--json")
    assert f"warning: {told}" in resumed.err
    [text] = resumed.document["executables"]
    assert text.startswith(told)
    builds = [
        hashlib.sha256(text.encode()).hexdigest()[:12] for text in (PROGRAM, PROGRAM + "# other flags\n")
    ]
    both = f"(sha256 {builds[0]}, then {builds[1]}); put the first one back before more is measured"
    assert both in resumed.err and both in " ".join(run("status", "tiny").out.split())
    assert told in " ".join(run("status", "tiny").out.split())
    run("report", "tiny")
    page = (Path.cwd() / "tiny" / "report.html").read_text()
    assert told in page and both in page


def test_a_program_that_is_replaced_while_the_controller_runs_is_told_everywhere() -> None:
    replaces = 'if [ "$1" = 3 ]; then cp "$0" new; echo "# other flags" >> new; mv new "$0"; fi\necho'
    result = finished(PROGRAM.replace("echo", replaces, 1))
    told = "the executable was replaced during the campaign: measurements of several are mixed"
    assert f"warning: {told}" in result.err
    assert [text.split(", and")[0] for text in result.document["executables"]] == [told]
    assert told in " ".join(run("status", "tiny").out.split())
    assert "the executable was replaced: runs that end from now on" in run("log", "tiny").out
    for command in (["model", "tiny"], ["compare", "tiny", "tiny"], ["explore", "tiny"]):
        assert f"tiny: {told}" in " ".join(run(*command).err.split()), command


def test_a_program_that_is_away_for_a_while_has_not_failed() -> None:
    """From the first run of n = 3 on until one could not start it: its file system is away."""
    program, away = Path.cwd() / "program.sh", Path.cwd() / "away.sh"

    def comes_back() -> None:
        while not any("program.sh" in path.read_text() for path in Path("tiny").glob("runs/*/*/*/stderr")):
            time.sleep(0.02)
        away.rename(program)

    leaves = f'if [ "$1" = 3 ] && [ ! -e {away}.left ]; then touch {away}.left; mv "$0" {away}; fi\necho'
    threading.Thread(target=comes_back, daemon=True).start()
    result = finished(PROGRAM.replace("echo", leaves, 1))
    assert result.document["runs"]["measured"] == 10 and not result.document["given_up"]
    assert "its program was not there when it began" in run("log", "tiny").out


def test_a_program_may_move_and_another_one_is_refused() -> None:
    finished(PROGRAM)
    Path("elsewhere").mkdir()
    moved = Path("program.sh").rename("elsewhere/program.sh").absolute()
    more = ("--set", "stop.budget=2 core-hours", "--set", f"executable={moved}")
    resumed = run("resume", "tiny", *more)
    assert (
        resumed.code == 0 and "rules changed: executable: " in resumed.err and "replaced" not in resumed.err
    )
    other = moved.with_name("other.sh")
    other.write_text(PROGRAM + "# other flags\n")
    other.chmod(0o755)
    before = Path("tiny/journal.jsonl").read_bytes()
    refused = run("resume", "tiny", "--set", f"executable={other}")
    assert refused.code == 2 and "that is not the program of the runs so far" in refused.err
    assert Path("tiny/journal.jsonl").read_bytes() == before


def test_what_the_times_of_runs_may_depend_on_is_named_when_it_changes() -> None:
    finished(PROGRAM)
    changed = ("--set", "executor.environment={FLAG: '1'}", "--set", "executor.max_pending=1")
    told = "executor.environment: earlier measurements are still used, so models are right only if runs take"
    assert told in run("resume", "tiny", *changed).err
    assert "earlier measurements" not in run("resume", "tiny", "--set", "stop.budget=2 core-hours").err


def test_a_program_that_is_written_again_as_it_was_is_not_replaced() -> None:
    result = finished(PROGRAM.replace("echo", 'cp "$0" new; mv new "$0"\necho', 1))
    assert "replaced" not in result.err and result.document["executables"] == []


@pytest.mark.slow
def test_failed_attempts_are_repeated_as_often_as_the_campaign_says_and_charged() -> None:
    result = finished("#!/bin/sh\nexit 7\n", LOCAL.replace("application: 0", "application: 2"), code=1)
    assert all("(3 attempts)" in reason for reason in given_up(result).values())
    assert result.document["attempts"] == 3 * len(given_up(result))
    assert result.document["cost"]["spent"] > 0


def test_a_campaign_file_that_is_gone_is_written_again_from_the_journal() -> None:
    finished(PROGRAM)
    kept = Path("tiny/campaign.yaml")
    before = kept.read_bytes()
    kept.unlink()
    refused = run("report", "tiny")
    assert refused.code == 2
    assert "tiny: campaign.yaml is missing or empty; orchestrator resume tiny writes it again" in refused.err
    assert run("resume", "tiny").code == 0
    assert kept.read_bytes() == before
    kept.write_text("\n")
    assert run("resume", "tiny").code == 0
    assert kept.read_bytes() == before


@pytest.mark.slow
def test_the_budget_is_never_exceeded() -> None:
    # Each run may cost 21 core-seconds and takes far less, so the budget pays for the round one by one.
    text = LOCAL.replace("20 s", "20 s, expected_time: 1 s").replace("1 core-hour,", "60 core-seconds,")
    result = finished("#!/bin/sh\nsleep 0.2; echo time: $1.5 s\n", text)
    cost = result.document["cost"]
    assert cost["spent"] <= cost["budget"]
    assert result.document["runs"]["measured"] == 10


def test_the_exit_code_of_a_finished_campaign_that_is_run_again_is_0_and_nothing_is_measured() -> None:
    first = finished(PROGRAM).document
    again = run("run", "campaign.yaml", "--json")
    assert again.code == 0
    assert "nothing is begun: the campaign has stopped: " in again.err
    assert "priors: {campaigns: [tiny]} in its file" in again.err
    assert again.document == first


@pytest.mark.parametrize("where", ["campaign.yaml", "/proc/campaign", "locked/campaign"])
def test_a_directory_that_cannot_be_written_to(where: str) -> None:
    write_campaign(Path.cwd())
    Path("locked").write_text("a file where a folder should be")
    result = run("run", "campaign.yaml", "--directory", where)
    assert result.code in (1, 2)
    assert where in result.err
    assert "Traceback" not in result.err
