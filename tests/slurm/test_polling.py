"""Slurm that forgets, lies, is silent or babbles: nothing is concluded that is not certain."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import events, settle
from orchestrator.executors import attempt
from orchestrator.executors.slurm import SlurmExecutor
from orchestrator.executors.slurm_submit import JobOptions
from orchestrator.state import InFlight
from orchestrator.types import AttemptRequest, AttemptState, FailureClass
from tests.slurm.fake_slurm import START, FakeSlurm, state_of


def submitted(slurm: FakeSlurm, script: str = "true\n") -> tuple[SlurmExecutor, AttemptRequest]:
    request = slurm.request(script)
    executor = slurm.executor()
    executor.submit([request])
    return executor, request


def states(slurm: FakeSlurm, executor: SlurmExecutor, request: AttemptRequest, seconds: float) -> set[str]:
    """Poll for a while; return every state that was reported."""
    seen = set()
    deadline = slurm.now + seconds
    while slurm.now < deadline:
        seen.add(state_of(executor.poll([request])))
        executor.wait(5.0)
    return seen


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


def test_queries_become_rare_while_slurm_is_silent(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.answer("squeue", err="slurm_load_jobs error: Unable to contact slurm controller", code=1)
    assert states(fake, executor, request, 3600) == {"unknown"}
    assert len(fake.calls("squeue")) <= 15


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


# --- finished -----------------------------------------------------------------------------------------


def test_only_the_record_makes_an_attempt_finished(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.queue()
    fake.ledger("100_0 12 COMPLETED")
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
    fake.ledger("100_0 40 REQUEUED", "100_0 2 FAILED")
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
    fake.ledger("100_0 5 NODE_FAIL")
    [observation] = executor.poll([request])
    assert observation.state is AttemptState.FINISHED
    assert "NODE_FAIL" in observation.reason


def test_a_failure_of_the_application_is_its_own(fake: FakeSlurm) -> None:
    executor, request = submitted(fake, "exit 1\n")
    fake.execute(request)
    fake.ledger("100_0 5 COMPLETED")
    assert executor.poll([request])[0].reason == ""


# --- gone ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "CANCELLED by 7", "COMPLETED"])
def test_what_ended_without_a_record_is_lost_after_a_grace(fake: FakeSlurm, state: str) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    fake.ledger(f"100_0 90 {state}")
    assert states(fake, executor, request, 29) == {"unknown"}
    fake.turn(10)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, 90)
    assert state in observation.reason


def test_what_never_began_is_barred_before_it_is_called_lost(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.ledger("100_0 3 BOOT_FAIL")
    executor.poll([request])
    fake.turn(40)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, 3)
    assert fake.execute(request) == attempt.CLAIMED


def test_a_job_that_the_queue_drops_for_a_while_is_not_lost(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    fake.queue("100_0 RUNNING")
    assert states(fake, executor, request, 20) == {"running"}
    fake.answer("squeue", "")
    fake.ledger("100_0 0 RUNNING")
    assert "lost" not in states(fake, executor, request, 120)
    fake.queue("100_0 RUNNING")
    assert states(fake, executor, request, 20) >= {"running"}
    fake.answer("squeue", "")
    assert "lost" not in states(fake, executor, request, 120)


def test_a_job_whose_end_got_lost_is_given_up_when_it_must_have_ended(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    fake.ledger("100_0 0 RUNNING")
    assert states(fake, executor, request, 100) == {"unknown"}
    fake.turn(200)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, None)


def test_hours_without_accounting_lose_nothing(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    fake.answer("sacct", err="Unable to contact slurmdbd", code=1)
    assert states(fake, executor, request, 3 * 3600) == {"unknown"}
    fake.ledger("100_0 80 TIMEOUT")
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
    (request.directory / attempt.RECORD).write_text("{")
    fake.ledger("100_0 9 FAILED")
    executor.poll([request])
    fake.turn(40)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, 9)
    assert attempt.RECORD in observation.reason


# --- nonsense -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    ["NOTICE: maintenance on Friday\n", "100|0|", "\x00\xff", "100|x|campaign|RUNNING|N/A|N/A||None\n"],
)
def test_a_queue_that_babbles_is_an_unknown_state(fake: FakeSlurm, answer: str) -> None:
    executor, request = submitted(fake)
    fake.answer("squeue", answer)
    [observation] = executor.poll([request])
    assert observation.state is AttemptState.UNKNOWN
    assert "squeue" in observation.reason


def test_accounts_that_babble_are_an_unknown_state(fake: FakeSlurm) -> None:
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


def test_a_state_that_nobody_knows_is_unknown(fake: FakeSlurm) -> None:
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


# --- charges ------------------------------------------------------------------------------------------


def test_the_reservation_covers_what_slurm_may_charge(fake: FakeSlurm) -> None:
    executor = fake.executor()
    assert executor.reserved_seconds(1.0) == 60 + 30 + 30
    assert executor.reserved_seconds(18.0) == 60 + 30 + 30
    assert executor.reserved_seconds(19.0) == 120 + 30 + 30
    fake.answer("scontrol", "KillWait = 5 sec\nOverTimeLimit = 2 min\n")
    assert fake.executor().reserved_seconds(1.0) == 60 + 120 + 5 + 30


def test_a_failing_node_is_named(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    fake.ledger("100_0 90 NODE_FAIL")
    executor.poll([request])
    fake.turn(40)
    assert executor.poll([request])[0].blamed == ("n1",)


def test_signs_of_life_outweigh_what_slurm_says(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    fake.ledger("100_0 9 NODE_FAIL")
    for _ in range(20):
        assert state_of(executor.poll([request])) == "unknown"
        os.utime(request.directory / attempt.CLAIM, (fake.now, fake.now))
        fake.turn(10)
    fake.turn(40)
    assert state_of(executor.poll([request])) == "unknown"  # the last sign was new to us
    fake.turn(40)
    assert state_of(executor.poll([request])) == "lost"


def test_a_charge_that_nobody_confirmed_is_asked_for_again(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.answer("squeue", code=1)
    fake.answer("sacct", code=1)
    fake.execute(request)
    executor.poll([request])
    fake.turn(70)
    [observation] = executor.poll([request])
    assert (observation.state, observation.estimated) == (AttemptState.FINISHED, True)
    assert executor.charged([request]) == [None]
    fake.queue()
    fake.ledger("100_0 12 COMPLETED")
    fake.turn(700)
    [known] = executor.charged([request])
    assert known is not None and (known.elapsed, known.cores) == (12, 1)


def test_books_that_say_less_than_the_attempt_took_are_asked_again(fake: FakeSlurm) -> None:
    executor, request = submitted(fake, "sleep 1.1\n")
    fake.execute(request)
    fake.queue()
    fake.ledger("100_0 0 COMPLETED")
    [observation] = executor.poll([request])
    assert observation.state is AttemptState.FINISHED and observation.estimated
    assert observation.elapsed is not None and 1 < observation.elapsed < 10
    assert executor.charged([request]) == [None]
    fake.ledger("100_0 3 COMPLETED")
    fake.turn(700)
    [known] = executor.charged([request])
    assert known is not None and known.elapsed == 3


def test_books_that_insist_are_believed(fake: FakeSlurm) -> None:
    executor, request = submitted(fake, "sleep 1.1\n")
    fake.execute(request)
    fake.ledger("100_0 0 COMPLETED")
    executor.poll([request])
    assert executor.charged([request]) == [None]
    fake.turn(700)
    [known] = executor.charged([request])
    assert known is not None and known.elapsed == 0


def test_a_queue_that_says_less_is_not_believed_while_accounting_is_silent(fake: FakeSlurm) -> None:
    executor, request = submitted(fake, "sleep 2.1\n")
    fake.execute(request)
    fake.queue("100_0 COMPLETED")
    [observation] = executor.poll([request])
    assert observation.state is AttemptState.FINISHED and observation.estimated
    for _ in range(2):
        assert executor.charged([request]) == [None]
        fake.turn(700)


def test_excluded_nodes_are_told_to_sbatch(fake: FakeSlurm) -> None:
    executor = fake.executor()
    executor.submit([replace(fake.request(), exclude=("n7", "n9"))])
    assert "#SBATCH --exclude=n7,n9\n" in Path(fake.calls("sbatch")[0]).read_text()


@pytest.mark.parametrize("begun", [True, False])
def test_an_attempt_without_memory_is_told_from_a_lost_one(fake: FakeSlurm, begun: bool) -> None:
    executor, request = submitted(fake, "exit 137\n")
    if begun:
        fake.begin(request)
    else:
        fake.execute(request)
    fake.ledger("100_0 9 OUT_OF_MEMORY")
    executor.poll([request])
    fake.turn(40)
    assert executor.poll([request])[0].out_of_memory


def test_a_run_that_lacked_memory_is_no_measurement_whatever_its_exit_code(
    fake: FakeSlurm,
) -> None:
    executor, request = submitted(fake)
    fake.execute(request)
    fake.ledger("100_0 9 OUT_OF_MEMORY")
    [observation] = executor.poll([request])
    flight = InFlight("x", 1, 60.0, 60.0)
    [event] = settle.events_of(
        observation, flight, request, lambda *_: {"time": {"main": 1.0}}, flight.reserved
    )
    assert isinstance(event, events.AttemptFinished)
    assert event.failure is FailureClass.MEMORY


def test_a_node_has_the_name_that_slurm_gives_it(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.execute(request)
    record = request.directory / attempt.RECORD
    record.write_text(json.dumps({**json.loads(record.read_text()), "host": "c17.example", "nodes": "n17"}))
    fake.ledger("100_0 9 COMPLETED")
    [observation] = executor.poll([request])
    [event] = settle.events_of(observation, InFlight("x", 1, 60.0, 60.0), request, lambda *_: {}, 60.0)
    assert isinstance(event, events.AttemptFinished)
    assert (event.host, event.nodes) == ("n17", 1)


def test_a_job_whose_end_slurm_forgot_is_cancelled(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.execute(request)
    fake.queue("100_0 RUNNING")
    assert state_of(executor.poll([request])) == "running"
    assert not fake.calls("scancel")  # its node may still be tidying up
    fake.turn(120)
    assert state_of(executor.poll([request])) == "finished"
    assert fake.calls("scancel") == ["100_0"]


def test_more_memory_is_asked_for(fake: FakeSlurm) -> None:
    executor = fake.executor(job=JobOptions(sbatch={"mem-per-cpu": "3800M", "mem": "0"}))
    executor.submit([replace(fake.request(), memory=1.5)])
    script = Path(fake.calls("sbatch")[0]).read_text()
    assert "#SBATCH --mem-per-cpu=5700M\n" in script and "#SBATCH --mem=0\n" in script


def test_what_was_told_to_end_is_no_measurement_whatever_its_exit_code(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.execute(request)
    record = request.directory / attempt.RECORD
    record.write_text(record.read_text().replace('"cancelled": false', '"cancelled": true'))
    fake.ledger("100_0 5 COMPLETED")
    [observation] = executor.poll([request])
    assert observation.record is not None and observation.record.exit_code == 0
    assert "ended from outside" in observation.reason
