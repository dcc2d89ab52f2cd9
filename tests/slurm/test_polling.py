"""Slurm that does not answer, or with nonsense: how often it is asked; only what is certain is concluded."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from orchestrator.types import AttemptState
from tests.slurm.fake_slurm import START, FakeSlurm, state_of, states, submitted

# --- how often Slurm is asked -------------------------------------------------------------------------


def test_one_query_per_interval_whatever_the_number_of_jobs(fake: FakeSlurm) -> None:
    requests = [fake.request(cores=1 + i % 3) for i in range(60)]
    executor = fake.executor()
    executor.submit(requests)
    fake.answer("squeue", "")
    for _ in range(120):
        executor.poll(requests[:30])
        executor.find(requests[30:])
        executor.wait(0.5)
    assert fake.now == pytest.approx(START + 60, abs=3)
    assert 5 <= len(fake.calls("squeue")) <= 7
    assert len(fake.calls("sacct")) <= 7


def test_accounting_is_not_asked_for_what_is_in_the_queue(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.queue("100_0 RUNNING")
    assert states(fake, executor, request, 100) == {"running"}
    assert not fake.calls("sacct")


def test_accounting_is_asked_with_a_start_time(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    executor.poll([request])
    [call] = fake.calls("sacct")
    assert "--starttime=2027-01-" in call
    assert f"--name={fake.batch()}" in call


def test_slurm_is_asked_once_a_minute_while_it_is_silent(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.answer("squeue", err="slurm_load_jobs error: Unable to contact slurm controller", code=1)
    assert states(fake, executor, request, 3600) == {"unknown"}
    assert 55 <= len(fake.calls("squeue")) <= 66


def test_waiting_ends_when_a_record_appears(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.queue("100_0 RUNNING")
    executor.poll([request])
    fake.execute(request)
    before = fake.now
    executor.wait(60.0)
    assert fake.now - before <= 1.0


def test_waiting_ends_at_the_next_query(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.queue("100_0 RUNNING")
    executor.poll([request])
    before = fake.now
    executor.wait(600.0)
    assert 9.0 <= fake.now - before <= 11.0


def test_waiting_ends_though_the_clock_is_set_back(fake: FakeSlurm) -> None:
    executor = fake.executor()
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        fake.turn(seconds - 3600 * (len(slept) == 3))

    executor._sleep = sleep
    executor.wait(5.0)
    assert sum(slept) == pytest.approx(5.0)


# --- nonsense -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    ["NOTICE: maintenance on Friday\n", "100|0|", "\x00\xff", "100|x|campaign|RUNNING|N/A|N/A||None\n"],
)
def test_a_queue_that_prints_nonsense_is_an_unknown_state(fake: FakeSlurm, answer: str) -> None:
    executor, request = submitted(fake)
    fake.answer("squeue", answer)
    [observation] = executor.poll([request])
    assert observation.state is AttemptState.UNKNOWN
    assert "squeue" in observation.reason


def test_accounting_that_prints_nonsense_is_an_unknown_state(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.answer("sacct", "100_0|what\n")
    fake.turn(1000)
    assert state_of(executor.poll([request])) == "unknown"


def test_a_hanging_queue_is_an_unknown_state(fake: FakeSlurm) -> None:
    request = fake.request()
    executor = fake.executor(command_timeout=0.3)
    executor.submit([request])
    fake.answer("squeue", seconds=3)
    assert state_of(executor.poll([request])) == "unknown"


def test_an_undocumented_state_is_unknown(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.queue("100_0 TELEPORTING")
    [observation] = executor.poll([request])
    assert observation.state is AttemptState.UNKNOWN
    assert "TELEPORTING" in observation.reason


# --- cancelling ---------------------------------------------------------------------------------------


def test_a_cancellation_that_does_not_get_through_is_repeated(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.queue("100_0 RUNNING")
    executor.poll([request])
    fake.answer("scancel", err="Socket timed out", code=1)
    executor.cancel([request])
    fake.turn(20)
    executor.poll([request])
    fake.turn(20)
    fake.answer("squeue", "")
    executor.poll([request])
    assert fake.calls("scancel") == ["100_0", "100_0"]


def test_a_job_is_cancelled_by_its_name_not_by_an_id_that_another_job_may_have(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)  # as job 100
    fake.answer("squeue", "")  # the controller lost its state: the next 100 is somebody else's
    executor.cancel([request])
    assert not fake.calls("scancel")


def test_while_slurm_does_not_answer_a_cancellation_waits(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.answer("squeue", err="Unable to contact slurm controller", code=1)
    executor.cancel([request])
    assert not fake.calls("scancel")
    fake.queue("100_0 RUNNING")
    fake.turn(60)
    executor.poll([request])
    assert fake.calls("scancel") == ["100_0"]


def test_a_job_that_fits_no_limit_is_given_up(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.queue("100_0 PENDING PartitionTimeLimit")
    assert states(fake, executor, request, 290) == {"queued"}
    assert not fake.calls("scancel")
    fake.turn(30)
    executor.poll([request])
    assert fake.calls("scancel") == ["100_0"]
    fake.answer("squeue", "")
    fake.turn(20)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, 0)
    assert "PartitionTimeLimit" in observation.reason


def test_a_requeued_job_is_cancelled_because_it_could_do_nothing(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    fake.queue("100_0 RUNNING")
    fake.turn(100)
    executor.poll([request])
    assert not fake.calls("scancel")
    fake.queue("100_0 PENDING BeginTime")
    fake.turn(20)
    executor.poll([request])
    assert fake.calls("scancel") == ["100_0"]


def test_a_job_that_has_just_begun_is_not_taken_for_a_requeued_one(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.queue("100_0 PENDING Resources")
    fake.turn(100)
    fake.begin(request)
    executor.poll([request])
    assert not fake.calls("scancel")


def test_a_job_whose_first_run_ended_since_slurm_was_asked_is_not_cancelled(fake: FakeSlurm) -> None:
    requests = [replace(fake.request(), pack="one") for _ in range(2)]
    executor = fake.executor()
    executor.submit(requests)
    fake.queue("100_0 PENDING Resources")
    fake.turn(100)
    fake.begin(requests[0], lasted=1.0)
    executor.poll(requests)
    assert not fake.calls("scancel")
    fake.turn(100)
    executor.poll(requests)
    assert fake.calls("scancel") == ["100_0"], "by now it is a second start"


def test_a_queue_that_forgot_the_start_of_a_living_job_is_not_believed(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    fake.queue("100_0 PENDING Resources")
    for _ in range(20):
        fake.turn(20)
        os.utime(request.directory / "claim", (fake.now, fake.now))
        executor.poll([request])
    assert not fake.calls("scancel")
    fake.turn(100)
    executor.poll([request])
    assert fake.calls("scancel") == ["100_0"]


def test_a_clock_that_is_set_back_hides_no_job(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.turn(-7200)
    fake.queue("100_0 RUNNING")
    fake.turn(20)
    assert state_of(executor.poll([request])) == "running"


def test_slurm_is_asked_as_before_though_the_clock_is_set_back(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.queue("100_0 RUNNING")
    executor.poll([request])
    fake.begin(request)
    fake.turn(-7200)
    fake.queue()
    fake.accounted("100_0 9 NODE_FAIL")
    begun = fake.now
    while state_of(executor.poll([request])) != "lost":
        executor.wait(5.0)
        assert fake.now - begun < 100
