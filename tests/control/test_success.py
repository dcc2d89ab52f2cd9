"""Runs that end with exit code 0 and did not do their work, by what they print."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from orchestrator.control import existing, session, success
from orchestrator.control.reread import reread
from orchestrator.errors import CampaignError, ReadError
from orchestrator.journal.state import RunStatus, State
from orchestrator.readers import stdout
from orchestrator.types import FailureClass
from tests.control import campaigns
from tests.control.campaigns import local

CHECKED = "test {n} -lt 30 && echo PASSED || "
CAMPAIGN = local(f'{CHECKED}echo "NOT CONVERGED" >&2', retries=2)
SUCCESS, FAILURE = 'measure.success="^PASSED$"', 'measure.failure="NOT CONVERGED"'


load = partial(campaigns.load, text=CAMPAIGN)


def statuses(state: State) -> dict[object, RunStatus]:
    return {run.point["n"]: item.status for run, item in state.runs.items()}


ALL_MEASURED = dict.fromkeys((10, 20, 30), RunStatus.MEASURED)
ONE_FAILED = {**ALL_MEASURED, 30: RunStatus.GIVEN_UP}


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (
            SUCCESS,
            r"attempt-1: neither stdout nor stderr matches measure.success '\^PASSED\$'; last line of "
            "stderr: NOT CONVERGED",
        ),
        (FAILURE, r"stderr: measure.failure 'NOT CONVERGED' matches: NOT CONVERGED"),
    ],
)
@pytest.mark.parametrize("profiler", ["stdout", "time"])
def test_what_a_run_prints_decides_whether_it_failed(
    tmp_path: Path, rule: str, reason: str, profiler: str
) -> None:
    state = session.run(load(rule, f"measure.profiler={profiler}"), tmp_path)
    assert statuses(state) == ONE_FAILED
    (failed,) = (item for item in state.runs.values() if item.status is RunStatus.GIVEN_UP)
    assert failed.failures == (FailureClass.PARSE,), "it would fail again"
    assert re.search(reason, failed.reason)
    assert state.spent > 0


def test_without_a_rule_the_exit_code_decides(tmp_path: Path) -> None:
    assert statuses(session.run(load(), tmp_path)) == ALL_MEASURED


def test_a_wrong_rule_loses_nothing(tmp_path: Path) -> None:
    begun = session.run(load('measure.success="DONE"'), tmp_path)
    assert set(statuses(begun).values()) == {RunStatus.GIVEN_UP}
    found = reread(tmp_path, load(SUCCESS))
    assert (found.recovered, len(found.unreadable)) == (2, 1)
    assert statuses(existing.replayed(tmp_path)) == ONE_FAILED


def test_a_rule_that_turns_measurements_into_failures_is_refused_with_their_names(tmp_path: Path) -> None:
    session.run(load(), tmp_path)
    found = reread(tmp_path, load(FAILURE))
    assert found.refused
    assert list(found.unreadable) == ["n=30/time-1/attempt-1"]
    assert statuses(existing.replayed(tmp_path)) == ALL_MEASURED


def test_another_rule_holds_from_a_resume_on(tmp_path: Path) -> None:
    session.run(load('measure.success="DONE"'), tmp_path)
    assert statuses(session.run(load(SUCCESS), tmp_path)) == ONE_FAILED


@pytest.mark.parametrize("pattern", ["(", "", "x*", "^"])
def test_patterns_that_say_nothing_are_refused(pattern: str) -> None:
    with pytest.raises(CampaignError, match=r"measure\.success"):
        load(f'measure.success="{pattern}"')


def test_a_program_that_prints_nothing_did_not_succeed(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("")
    with pytest.raises(ReadError, match="'PASSED'; it printed nothing"):
        success.check(tmp_path, "PASSED", None)
    success.check(tmp_path, None, "FAILED")


def test_all_of_a_long_output_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdout, "LIMIT", 40)
    chatter = "".join(f"step {step}\n" for step in range(20))
    (tmp_path / "stdout").write_text(f"{chatter}NOT CONVERGED in 9 steps\n{chatter}PASSED\n{chatter}")
    success.check(tmp_path, "^PASSED$", None)
    with pytest.raises(ReadError, match=r"'NOT CONV' matches: NOT CONVERGED in 9 steps"):
        success.check(tmp_path, "^PASSED$", "NOT CONV")


lame = partial(campaigns.load, text=local(f"{CHECKED}exit 3", retries=2))


def test_other_exit_codes_may_be_right(tmp_path: Path) -> None:
    right = lame("measure.exit_codes=[0, 3]")
    assert statuses(session.run(right, tmp_path)) == ALL_MEASURED


def test_runs_that_failed_by_their_exit_code_alone_are_read_again(tmp_path: Path) -> None:
    begun = session.run(lame(), tmp_path)
    assert statuses(begun) == ONE_FAILED
    wrong = lame("measure.exit_codes=[0, 4]")
    assert reread(tmp_path, wrong).recovered == 0
    right = lame("measure.exit_codes=[0, 3]")
    found = reread(tmp_path, right)
    assert (found.recovered, found.changes) == (1, ("measure.exit_codes: [0, 4] -> [0, 3]",))
    assert statuses(existing.replayed(tmp_path)) == ALL_MEASURED


@pytest.mark.parametrize("codes", ["[]", "[139]", "[-1]", "1"])
def test_exit_codes_of_signals_are_never_right(codes: str) -> None:
    with pytest.raises(CampaignError, match=r"measure\.exit_codes"):
        load(f"measure.exit_codes={codes}")
