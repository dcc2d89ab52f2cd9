"""What attempts are charged when accounting, queue and records disagree; options that failures change."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.control import settle
from orchestrator.executors.attempt import worker
from orchestrator.executors.slurm.cluster import parse_partition_settings
from orchestrator.executors.slurm.executor import SlurmExecutor
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.executors.slurm.site import over_time_limits
from orchestrator.journal import events
from orchestrator.journal.state import InFlight
from orchestrator.types import AttemptRequest, AttemptState, FailureClass, Observation
from tests.slurm.fake_slurm import END, FakeSlurm, state_of, submitted


def test_the_reservation_covers_what_slurm_may_charge(fake: FakeSlurm) -> None:
    executor = fake.executor()
    assert executor.reserved_seconds(1.0) == 60 + 35
    assert executor.reserved_seconds(38.0) == 60 + 35
    assert executor.reserved_seconds(39.0) == 120 + 35
    fake.answer("scontrol", "KillWait = 5 sec\nOverTimeLimit = 2 min\n")
    assert fake.executor().reserved_seconds(1.0) == 60 + 120 + 35


def test_a_partition_may_let_jobs_exceed_their_limit() -> None:
    settings = parse_partition_settings(
        "PartitionName=a Default=YES OverTimeLimit=3\nPartitionName=b Default=NO OverTimeLimit=NONE\n"
        "PartitionName=c Default=NO OverTimeLimit=UNLIMITED"
    )
    assert over_time_limits(settings, ()) == [3.0]
    assert over_time_limits(settings, ("a", "b")) == [3.0, 0.0]
    assert over_time_limits(settings, ("b", "c")) == [0.0, 0.0]


def test_the_partition_of_the_users_environment_may_let_jobs_exceed_their_limit(
    fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions = "PartitionName=a Default=YES OverTimeLimit=1\nPartitionName=b Default=NO OverTimeLimit=3\n"
    fake.answer("scontrol", f"KillWait = 5 sec\n{partitions}")
    assert fake.executor().reserved_seconds(1.0) == 60 + 60 + 35
    monkeypatch.setenv("SBATCH_PARTITION", "b")
    assert fake.executor().reserved_seconds(1.0) == 60 + 180 + 35
    stated = fake.executor(job=JobOptions(partition="a"))
    assert stated.reserved_seconds(1.0) == 60 + 60 + 35


def test_a_failing_node_is_named(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    fake.accounted("100_0 90 NODE_FAIL")
    executor.poll([request])
    fake.turn(40)
    assert executor.poll([request])[0].blamed == ("n1",)


def test_signs_of_life_outweigh_what_slurm_says(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.begin(request)
    fake.accounted("100_0 9 NODE_FAIL")
    for _ in range(20):
        assert state_of(executor.poll([request])) == "unknown"
        os.utime(request.directory / worker.CLAIM, (fake.now, fake.now))
        fake.turn(10)
    fake.turn(40)
    assert state_of(executor.poll([request])) == "unknown"  # the last sign was new to us
    fake.turn(40)
    assert state_of(executor.poll([request])) == "lost"


def asked_again(fake: FakeSlurm, executor: SlurmExecutor, request: AttemptRequest, *rows: str) -> Observation:
    """Return the charge that is known later, if accounting has these rows by then; it is not known yet."""
    assert executor.charged([request]) == [None]
    if rows:
        fake.accounted(*rows)
    fake.turn(700)
    [known] = executor.charged([request])
    assert known is not None
    return known


def test_a_charge_that_was_not_confirmed_is_asked_for_again(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.answer("squeue", code=1)
    fake.answer("sacct", code=1)
    fake.execute(request)
    executor.poll([request])
    fake.turn(70)
    [observation] = executor.poll([request])
    assert (observation.state, observation.estimated) == (AttemptState.FINISHED, True)
    fake.queue()
    known = asked_again(fake, executor, request, "100_0 12 COMPLETED")
    assert (known.elapsed, known.cores) == (12, 1)


def test_accounting_that_reports_less_than_the_attempt_took_is_asked_again(fake: FakeSlurm) -> None:
    executor, request = submitted(fake, "sleep 1.1\n")
    fake.execute(request)
    fake.queue()
    fake.accounted("100_0 0 COMPLETED")
    [observation] = executor.poll([request])
    assert observation.state is AttemptState.FINISHED and observation.estimated
    assert observation.elapsed is not None and 1 < observation.elapsed < 10
    assert asked_again(fake, executor, request, "100_0 3 COMPLETED").elapsed == 3


def test_books_that_insist_are_believed(fake: FakeSlurm) -> None:
    executor, request = submitted(fake, "sleep 1.1\n")
    fake.execute(request)
    fake.accounted("100_0 0 COMPLETED")
    executor.poll([request])
    assert asked_again(fake, executor, request).elapsed == 0


def test_a_queue_that_says_less_is_not_believed_while_accounting_is_silent(fake: FakeSlurm) -> None:
    executor, request = submitted(fake, "sleep 2.1\n")
    fake.execute(request)
    fake.queue("100_0 COMPLETED")
    [observation] = executor.poll([request])
    assert observation.state is AttemptState.FINISHED and observation.estimated
    for _ in range(2):
        assert executor.charged([request]) == [None]
        fake.turn(700)


def test_a_queue_that_says_more_than_the_attempt_took_is_no_last_word_where_accounting_is_late(
    fake: FakeSlurm,
) -> None:
    executor, request = submitted(fake)
    fake.begin(request, lasted=2.0)
    fake.turn(8)
    fake.queue("100_0 COMPLETED")  # its end is now, not 6 s ago
    [observation] = executor.poll([request])
    assert observation.state is AttemptState.FINISHED and observation.estimated
    assert observation.elapsed == 8
    assert asked_again(fake, executor, request, "100_0 2 COMPLETED").elapsed == 2


@pytest.mark.parametrize(("bills_nodes", "cores"), [(False, 1), (True, 4)])
def test_a_site_that_charges_bills_nodes_charges_more_than_slurm_allocates(
    fake: FakeSlurm, bills_nodes: bool, cores: int
) -> None:
    executor, request = fake.executor(bills_nodes=bills_nodes), fake.request(cores=4)
    executor.submit([request])
    fake.execute(request)
    fake.accounted("100_0 9 COMPLETED")  # which says that one core was allocated
    [observation] = executor.poll([request])
    assert (observation.elapsed, observation.cores) == (9, cores)


def test_a_job_that_was_started_again_elsewhere_is_charged_the_cores_that_it_had(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.execute(request)
    rows = (("REQUEUED", 30, "n1", 4), ("COMPLETED", 10, "n2", 2))
    fake.answer(
        "sacct", "".join(f"100_0|{fake.batch()}|{s}|{t}|{on}|{cpus}|{END}\n" for s, t, on, cpus in rows)
    )
    [observation] = executor.poll([request])
    [event] = settle.events_of(observation, InFlight("x", 4, 60.0, 240.0), request, lambda *_: {}, 240.0)
    assert isinstance(event, events.AttemptFinished)
    assert (event.elapsed, event.cost) == (40, 30 * 4 + 10 * 2)


def test_excluded_nodes_are_told_to_sbatch(fake: FakeSlurm) -> None:
    executor = fake.executor()
    executor.submit([replace(fake.request(), exclude=("n7", "n9"))])
    assert "#SBATCH --exclude=n7,n9\n" in Path(fake.calls("sbatch")[0]).read_text()


@pytest.mark.parametrize("begun", [True, False])
def test_an_attempt_without_memory_differs_from_a_lost_one(fake: FakeSlurm, begun: bool) -> None:
    executor, request = submitted(fake, "exit 137\n")
    if begun:
        fake.begin(request)
    else:
        fake.execute(request)
    fake.accounted("100_0 9 OUT_OF_MEMORY")
    executor.poll([request])
    fake.turn(40)
    assert executor.poll([request])[0].out_of_memory


def test_a_run_without_enough_memory_is_no_measurement_whatever_its_exit_code(
    fake: FakeSlurm,
) -> None:
    executor, request = submitted(fake)
    fake.execute(request)
    fake.accounted("100_0 9 OUT_OF_MEMORY")
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
    record = request.directory / worker.RECORD
    record.write_text(json.dumps({**json.loads(record.read_text()), "host": "c17.example", "nodes": "n17"}))
    fake.accounted("100_0 9 COMPLETED")
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


def test_what_was_ended_by_a_signal_is_no_measurement_whatever_its_exit_code(fake: FakeSlurm) -> None:
    executor, request = submitted(fake)
    fake.execute(request)
    record = request.directory / worker.RECORD
    record.write_text(record.read_text().replace('"cancelled": false', '"cancelled": true'))
    fake.accounted("100_0 5 COMPLETED")
    [observation] = executor.poll([request])
    assert observation.record is not None and observation.record.exit_code == 0
    assert "ended from outside" in observation.reason


@pytest.mark.parametrize("began", [False, True])
def test_a_waiting_job_that_slurm_forgot_costs_nothing_unless_its_attempt_began(
    fake: FakeSlurm, began: bool
) -> None:
    """Its slurmctld was killed right after the submission: in accounting the job waits for ever."""
    executor, request = submitted(fake)
    if began:
        fake.begin(request)
    fake.queue()
    fake.answer("sacct", f"100_[0]|{fake.batch()}|PENDING|0|None assigned|1|Unknown\n")
    for _ in range(30):
        [observation] = executor.poll([request])
        if observation.state is not AttemptState.UNKNOWN:
            break
        fake.turn(10)
    assert observation.state is AttemptState.LOST
    assert observation.elapsed == (None if began else 0.0)
    fake.turn(600)
    fake.queue("100_0 RUNNING")
    executor.poll([])
    executor.submit([fake.request(cores=2)])
    executor.poll([fake.requests[-1]])
    assert ("100_0" in fake.calls("scancel")) != began, "should it start nevertheless, it can do nothing"


@pytest.mark.parametrize("nodes", ["None assigned", "n1"])
def test_a_job_that_was_cancelled_before_it_got_a_node_is_not_waited_for(fake: FakeSlurm, nodes: str) -> None:
    executor, request = submitted(fake)
    fake.queue()
    fake.answer("sacct", f"100_0|{fake.batch()}|CANCELLED by 0|0|{nodes}|1|{END}\n")
    [observation] = executor.poll([request])
    if nodes == "n1":  # its files may still appear
        assert observation.state is AttemptState.UNKNOWN
    else:
        assert (observation.state, observation.elapsed) == (AttemptState.LOST, 0.0)
        assert "it never began" in observation.reason
        assert not worker.claim(request.directory, worker.OWNER), (
            "should it start nevertheless, it can do nothing"
        )
