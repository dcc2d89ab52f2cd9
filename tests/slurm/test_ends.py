"""Attempts that ended, or are gone from a Slurm that forgets and reports wrongly."""

from __future__ import annotations

import os
import shutil

import pytest

from orchestrator.executors.attempt import worker
from orchestrator.executors.attempt.directory import prepare
from orchestrator.types import AttemptState
from tests.slurm.fake_slurm import FakeSlurm, state_of, states, submitted

# --- finished -----------------------------------------------------------------------------------------


def test_only_the_record_makes_an_attempt_finished(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.queue()
    fake.accounted("100_0 12 COMPLETED")
    assert states(fake, executor, request, 20) == {"unknown"}
    fake.execute(request)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.FINISHED, 12)


def test_a_finished_attempt_is_charged_what_the_queue_says_without_accounting(
    fake_without_accounting: FakeSlurm,
) -> None:
    slurm = fake_without_accounting
    executor, request = submitted(slurm)
    slurm.execute(request)
    slurm.turn(25)
    slurm.queue("100_0 COMPLETED")
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.FINISHED, 25)
    assert not slurm.calls("sacct")


def test_every_start_of_a_requeued_job_is_charged(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.execute(request)
    fake.accounted("100_0 40 REQUEUED", "100_0 2 FAILED")
    assert executor.poll([request])[0].elapsed == 42


def test_accounting_that_stays_down_does_not_hold_up_a_finished_attempt(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.answer("sacct", err="Unable to contact slurmdbd", code=1)
    fake.execute(request)
    assert states(fake, executor, request, 55) == {"running"}
    fake.turn(10)
    [observation] = executor.poll([request])
    assert observation.state is AttemptState.FINISHED
    assert observation.elapsed is not None and 0 < observation.elapsed < 60


def test_a_silent_queue_does_not_hold_up_a_finished_attempt(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.answer("squeue", code=1)
    fake.execute(request)
    assert states(fake, executor, request, 55) == {"running"}
    fake.turn(10)
    assert state_of(executor.poll([request])) == "finished"


def test_a_failure_by_a_dying_node_is_not_the_applications(fake: FakeSlurm) -> None:
    executor, request = submitted(fake, "exit 1\n")
    fake.execute(request)
    fake.accounted("100_0 5 NODE_FAIL")
    [observation] = executor.poll([request])
    assert observation.state is AttemptState.FINISHED
    assert "NODE_FAIL" in observation.reason


def test_a_failure_of_the_application_is_its_own(fake: FakeSlurm) -> None:
    executor, request = submitted(fake, "exit 1\n")
    fake.execute(request)
    fake.accounted("100_0 5 COMPLETED")
    assert executor.poll([request])[0].reason == ""


def test_output_that_a_file_system_shows_late_is_waited_for(fake: FakeSlurm) -> None:
    executor, request = submitted(fake, "echo t=1\n")
    fake.execute(request)
    fake.accounted("100_0 5 COMPLETED")
    output = request.directory / "stdout"
    output.write_text("")
    assert states(fake, executor, request, 20) == {"running"}
    output.write_text("t=1\n")
    [observation] = executor.poll([request])
    assert (observation.state, observation.reason) == (AttemptState.FINISHED, "")


def test_output_that_a_file_system_never_shows_is_not_the_applications_failure(fake: FakeSlurm) -> None:
    executor, request = submitted(fake, "echo t=1\n")
    fake.execute(request)
    fake.accounted("100_0 5 COMPLETED")
    (request.directory / "stdout").unlink()
    assert states(fake, executor, request, 29) == {"running"}
    fake.turn(10)
    [observation] = executor.poll([request])
    assert observation.state is AttemptState.FINISHED
    assert "does not show the 4 bytes" in observation.reason


# --- gone ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "CANCELLED by 7", "COMPLETED"])
def test_what_ended_without_a_record_is_lost_after_a_grace(fake: FakeSlurm, state: str) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    fake.accounted(f"100_0 90 {state}")
    assert states(fake, executor, request, 29) == {"unknown"}
    fake.turn(10)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, 90)
    assert state in observation.reason


def test_what_never_began_is_revoked_before_it_is_called_lost(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.accounted("100_0 3 BOOT_FAIL")
    executor.poll([request])
    fake.turn(40)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, 3)
    assert fake.execute(request) == worker.CLAIMED


def test_a_job_that_the_queue_drops_for_a_while_is_not_lost(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    fake.queue("100_0 RUNNING")
    assert states(fake, executor, request, 20) == {"running"}
    fake.answer("squeue", "")
    fake.accounted("100_0 0 RUNNING")
    assert "lost" not in states(fake, executor, request, 120)
    fake.queue("100_0 RUNNING")
    assert states(fake, executor, request, 20) >= {"running"}
    fake.answer("squeue", "")
    assert "lost" not in states(fake, executor, request, 120)


def test_a_job_whose_end_got_lost_is_given_up_after_some_missing_heartbeats(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    fake.accounted("100_0 0 RUNNING")
    assert states(fake, executor, request, 100) == {"unknown"}
    fake.turn(200)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, None)


@pytest.mark.parametrize("begun", [True, False])
def test_a_directory_that_was_deleted_is_called_that(fake: FakeSlurm, begun: bool) -> None:
    executor, request = submitted(fake)
    if begun:
        fake.begin(request)
    fake.queue("100_0 RUNNING")
    executor.poll([request])
    shutil.rmtree(request.directory)
    fake.queue()
    fake.accounted("100_0 30 FAILED")
    fake.turn(20)
    assert state_of(executor.poll([request])) == "unknown"
    fake.turn(40)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, 30)
    assert f"its directory {request.directory} was deleted" in observation.reason


def test_what_a_deleted_attempt_cost_is_not_zero_where_slurm_does_not_know(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    fake.queue("100_0 RUNNING")
    executor.poll([request])
    shutil.rmtree(request.directory)
    fake.queue()
    fake.turn(20)
    executor.poll([request])
    fake.turn(70)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, None)


def test_hours_without_accounting_lose_nothing(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    fake.answer("sacct", err="Unable to contact slurmdbd", code=1)
    assert states(fake, executor, request, 3 * 3600) == {"unknown"}
    fake.accounted("100_0 80 TIMEOUT")
    fake.turn(700)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, 80)


def test_without_accounting_absence_counts_only_after_a_grace(fake_without_accounting: FakeSlurm) -> None:
    slurm = fake_without_accounting
    executor, request = submitted(slurm)
    slurm.begin(request)
    slurm.queue("100_0 RUNNING")
    executor.poll([request])
    slurm.answer("squeue", "")
    slurm.turn(15)
    assert states(slurm, executor, request, 55) == {"unknown"}
    slurm.turn(15)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, None)


def test_without_accounting_a_job_cancelled_while_it_waited_costs_nothing(
    fake_without_accounting: FakeSlurm,
) -> None:
    slurm = fake_without_accounting
    executor, request = submitted(slurm)
    slurm.queue("100_0 PENDING Resources")
    executor.poll([request])
    slurm.answer("squeue", "")
    states(slurm, executor, request, 65)
    slurm.turn(15)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, 0)


def test_a_damaged_record_of_a_dead_job_is_lost(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    (request.directory / worker.RECORD).write_text("{")
    fake.accounted("100_0 9 FAILED")
    executor.poll([request])
    fake.turn(40)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, 9)
    assert worker.RECORD in observation.reason


def test_what_another_executor_began_is_lost_only_without_a_sign_of_life(fake: FakeSlurm) -> None:
    request = fake.request()
    prepare(request)
    fake.begin(request)
    executor = fake.executor()
    for beat in range(30):
        os.utime(request.directory / "claim", (beat, beat))
        assert state_of(executor.find([request])) == "unknown"
        fake.turn(10)
    fake.turn(60)
    [observation] = executor.find([request])
    assert observation.state is AttemptState.LOST
    # Its executor reserved that, and Slurm will never say more: no estimate to wait for.
    assert observation.elapsed == request.limit + worker.OVERRUN
