"""Submissions that fail in every way that sbatch knows: nothing is lost, nothing is started twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.executors.attempt import worker
from orchestrator.executors.base import QUEUE
from orchestrator.executors.slurm import sbatch
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.types import AttemptState, Resources
from tests.slurm.fake_slurm import START, FakeSlurm, state_of
from tests.slurm.sacctmgr import association

QOS_LIMIT = """\
sbatch: error: QOSMaxSubmitJobPerUserLimit
sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size)
"""
AT_MOST_TWO = """\
case $(grep -o 'array=0-[0-9]*' "$1") in
  array=0-0|array=0-1) ;;
  *) cat >&2 limit; exit 1;;
esac
"""


def test_equal_attempts_become_one_array(fake: FakeSlurm) -> None:
    requests = [fake.request() for _ in range(3)] + [fake.request(cores=2)]
    observations = fake.executor().submit(requests)
    assert [item.handle for item in observations] == ["100_0", "100_1", "100_2", "100_0"]
    assert len(fake.calls("sbatch")) == 2


def test_attempts_of_a_pack_become_one_element(fake: FakeSlurm) -> None:
    packs = ["a", "a", "b", "b", "", "c"]
    requests = [replace(fake.request(limit=100.0), pack=pack) for pack in packs]
    observations = fake.executor().submit(requests)
    # The packs of two ask for the same time; those that have a job of their own, for less.
    assert [item.handle for item in observations] == [*2 * ["100_0"], *2 * ["100_1"], "100_0", "100_1"]
    assert len(fake.calls("sbatch")) == 2
    fake.answer("scancel")
    fake.executor().cancel(requests[:2])
    assert {fake.execute(item) for item in requests[:2]} == {worker.CLAIMED}


def test_a_pack_that_slurm_does_not_know_is_revoked_as_a_whole(fake: FakeSlurm) -> None:
    requests = [replace(fake.request(), pack="a") for _ in range(3)]
    executor = fake.executor()
    fake.answer("sbatch", err="Socket timed out on send/recv operation", code=1)
    assert {item.state for item in executor.submit(requests)} == {AttemptState.UNKNOWN}
    fake.turn(70)
    found = executor.find(requests)
    assert {(item.state, item.revoked, item.elapsed) for item in found} == {(AttemptState.ABSENT, True, 0.0)}
    # Should sbatch have worked after all, its job does nothing.
    assert {fake.execute(item) for item in requests} == {worker.CLAIMED}


def test_a_pack_that_slurm_refuses_is_begun_one_by_one(fake: FakeSlurm) -> None:
    """Too long for the partition, say: a campaign goes on as it would without packs."""
    refusal = "sbatch: error: Batch job submission failed: Requested time limit is invalid"
    fake.answer(
        "sbatch",
        "Submitted batch job 100\n",
        script=f'grep -q "time=[4-9]" "$1" && {{ echo "{refusal}" >&2; exit 1; }}\n',
    )
    executor = fake.executor()
    for handle, calls in (("100_0", 2), ("100_0", 3)):  # and is not tried again
        requests = [replace(fake.request(limit=100.0), pack=f"pack {calls}") for _ in range(3)]
        first, *rest = executor.submit(requests)
        assert (first.state, first.handle) == (AttemptState.QUEUED, handle)
        assert {(item.state, item.revoked) for item in rest} == {(AttemptState.ABSENT, True)}
        assert len(fake.calls("sbatch")) == calls


def test_submissions_become_rare_while_it_is_unclear_whether_they_work(fake: FakeSlurm) -> None:
    executor = fake.executor()
    fake.answer("sbatch", err="Socket timed out on send/recv operation", code=1)
    for _ in range(60):
        executor.submit([fake.request()])
        executor.wait(60.0)
        fake.turn(50)
    assert len(fake.calls("sbatch")) <= 25
    fake.answer("sbatch", "Submitted batch job 102\n")
    fake.turn(600)
    assert executor.poll(fake.requests)[-1].handle


def test_the_manifest_is_there_before_sbatch_is_called(fake: FakeSlurm) -> None:
    fake.answer("sbatch", script=f"ls {fake.campaign}/batches/*.json > seen || exit 1\necho job 7\n")
    [observation] = fake.executor().submit([fake.request()])
    assert observation.handle == "7_0"
    assert (fake.folder / "seen").read_text().strip().endswith(f"{fake.batch()}.json")


def test_a_new_controller_names_the_same_batch_the_same(fake: FakeSlurm) -> None:
    request = fake.request()
    fake.answer("sbatch", err="Socket timed out on send/recv operation", code=1)
    fake.executor().submit([request])
    first = fake.batch()
    fake.turn(1000)
    executor = fake.executor()
    assert state_of(executor.find([request])) == "absent"
    executor.submit([request])
    assert fake.batch() == first


def test_an_sbatch_that_hangs_is_looked_up_and_not_repeated(fake: FakeSlurm) -> None:
    request = fake.request()
    fake.answer("sbatch", "Submitted batch job 100\n", seconds=3)
    executor = fake.executor(command_timeout=0.3)
    [observation] = executor.submit([request])
    assert observation.state is AttemptState.UNKNOWN
    assert "did not answer" in observation.reason
    fake.queue("100_0 RUNNING")
    [observation] = executor.find([request])
    assert (observation.state, observation.handle) == (AttemptState.RUNNING, "100_0")
    fake.execute(request)
    fake.queue()
    fake.accounted("100_0 7 COMPLETED")
    fake.turn(20)
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.FINISHED, 7)
    assert len(fake.calls("sbatch")) == 1


@pytest.mark.parametrize(
    "complaint",
    [
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        "sbatch: error: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received",
        "sbatch: error: Batch job submission failed: Communication connection failure",
    ],
)
def test_an_unclear_failure_is_absent_only_after_a_grace(fake: FakeSlurm, complaint: str) -> None:
    request = fake.request("echo once >> times\n")
    executor = fake.executor()
    fake.answer("sbatch", err=complaint, code=1)
    assert state_of(executor.submit([request])) == "unknown"
    assert state_of(executor.find([request])) == "unknown"
    fake.turn(50)
    assert state_of(executor.find([request])) == "unknown"
    fake.turn(20)
    assert state_of(executor.find([request])) == "absent"
    fake.answer("sbatch", "Submitted batch job 101\n")
    assert state_of(executor.submit([request])) == "queued"


def test_an_unclear_failure_is_absent_after_a_grace_though_the_clock_is_set_back(fake: FakeSlurm) -> None:
    fake.answer("sbatch", err="sbatch: error: Unable to contact slurm controller\n", code=1)
    executor, request = fake.executor(), fake.request()
    executor.submit([request])
    fake.turn(-7200)
    begun = fake.now
    while state_of(executor.find([request])) != "absent":
        executor.wait(5.0)
        assert fake.now - begun < 100
    assert fake.now - begun >= 60


def test_a_job_that_starts_late_and_its_resubmission_execute_once(fake: FakeSlurm) -> None:
    request = fake.request("echo once >> times\n")
    fake.executor().submit([request])
    assert fake.execute(request) == worker.DONE
    assert fake.execute(request) == worker.CLAIMED
    assert (request.directory / "times").read_text() == "once\n"


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("squeue", "slurm_load_jobs error: Unable to contact slurm controller"),
        ("sacct", "Problem talking to the database"),
    ],
)
def test_no_answer_means_not_absent(fake: FakeSlurm, command: str, error: str) -> None:
    request = fake.request()
    executor = fake.executor()
    fake.answer("sbatch", err="Connection refused", code=1)
    fake.answer(command, err=error, code=1)
    executor.submit([request])
    fake.turn(3600)
    assert state_of(executor.find([request])) == "unknown"


def test_an_answer_without_a_job_id_is_unclear(fake: FakeSlurm) -> None:
    fake.answer("sbatch", "Welcome to the cluster!\n")
    assert state_of(fake.executor().submit([fake.request()])) == "unknown"


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        (1, "Batch job submission failed: Invalid partition name specified"),
        (1, "Batch job submission failed: Requested node configuration is not available"),
        (1, "Batch job submission failed: Requested time limit is invalid"),
        (255, "unrecognized option '--nosuch'"),
    ],
)
def test_a_rejection_is_lost_at_no_cost_and_revoked(fake: FakeSlurm, code: int, complaint: str) -> None:
    request = fake.request()
    executor = fake.executor()
    fake.answer("sbatch", err=f"sbatch: {'error: ' if code == 1 else ''}{complaint}\n", code=code)
    [observation] = executor.submit([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, 0)
    assert complaint in observation.reason
    assert fake.execute(request) == worker.CLAIMED
    [again] = fake.executor().find([request])
    assert (again.state, again.elapsed) == (AttemptState.LOST, 0)
    assert complaint in again.reason


def test_what_slurm_took_before_and_refuses_now_is_tried_again_until_it_takes_it(fake: FakeSlurm) -> None:
    """The site's rules changed, or an allocation is used up: that is no fault of a run."""
    executor, requests = fake.executor(), [fake.request() for _ in range(3)]
    executor.submit(requests[:1])
    fake.answer("sbatch", err="sbatch: error: project p1 has no core-hours left\n", code=1)
    executor.submit(requests[1:])
    seen, told = set(), []
    for _ in range(90):
        fake.turn(40)
        found = executor.find(requests[1:])
        seen |= {item.state for item in found}
        told.append(executor.services()[QUEUE])
        if AttemptState.ABSENT in {item.state for item in found}:
            executor.submit(requests[1:])
    assert seen == {AttemptState.UNKNOWN, AttemptState.QUEUED, AttemptState.ABSENT}
    assert 5 <= len(fake.calls("sbatch")) <= 12, "in an hour"
    assert all(outage and "no core-hours left" in outage.reason for outage in told[10:]), "one outage"
    fake.answer("sbatch", "Submitted batch job 102\n")
    fake.turn(700)
    assert [item.handle for item in executor.poll(requests[1:])] == ["102_0", "102_1"]


def test_what_an_sbatch_submitted_that_failed_then_is_adopted(fake: FakeSlurm) -> None:
    executor, requests = fake.executor(), [fake.request() for _ in range(2)]
    executor.submit(requests[:1])
    first = fake.batch()
    fake.answer("sbatch", err="sbatch: error: cli_filter: post_submit: no such table\n", code=1)
    assert state_of(executor.submit(requests[1:])) == "unknown"
    [name] = {path.stem for path in (fake.campaign / "batches").glob("*.json")} - {first}
    fake.answer("squeue", f"101|0|{name}|RUNNING|{START:.0f}|{fake.now:.0f}|n1|1|None\n")
    fake.turn(70)
    assert state_of(executor.find(requests[1:])) == "running"


@pytest.mark.parametrize(("cores", "limit"), [(1, 4000.0), (2, 100.0)])
def test_what_asks_for_more_than_slurm_took_may_be_refused(fake: FakeSlurm, cores: int, limit: float) -> None:
    executor = fake.executor()
    executor.submit([fake.request()])
    fake.answer("sbatch", err="sbatch: error: Requested time limit is invalid\n", code=1)
    assert state_of(executor.submit([fake.request(cores=cores, limit=limit)])) == "lost"


def test_an_sbatch_that_was_killed_is_unclear(fake: FakeSlurm) -> None:
    fake.answer("sbatch", script="kill -TERM $$\n")
    assert state_of(fake.executor().submit([fake.request()])) == "unknown"
    fake.answer("sbatch", err="terminated", code=143)
    assert state_of(fake.executor().submit([fake.request()])) == "unknown"


def test_a_submit_limit_is_waited_for_at_the_poll_interval(fake: FakeSlurm) -> None:
    request = fake.request()
    executor = fake.executor()
    fake.answer("sbatch", err=QOS_LIMIT, code=1)
    [observation] = executor.submit([request])
    assert observation.state is AttemptState.QUEUED
    assert "QOSMaxSubmitJobPerUserLimit" in observation.reason
    for _ in range(30):
        executor.wait(1.0)
        assert state_of(executor.poll([request])) == "queued"
    assert 3 <= len(fake.calls("sbatch")) <= 5
    assert not fake.calls("squeue")
    assert state_of(fake.executor().find([request])) == "absent"
    fake.answer("sbatch", "Submitted batch job 102\n")
    fake.turn(20)
    assert executor.poll([request])[0].handle == "102_0"


@pytest.mark.parametrize("complaint", [QOS_LIMIT, "sbatch: error: Unable to contact slurm controller\n"])
def test_what_waits_is_submitted_though_the_clock_is_set_back(fake: FakeSlurm, complaint: str) -> None:
    executor, first, second = fake.executor(), fake.request(), fake.request(cores=2)
    fake.answer("sbatch", err=complaint, code=1)
    executor.submit([first])
    assert state_of(executor.submit([second])) == "queued"
    fake.answer("sbatch", "Submitted batch job 100\n")
    fake.turn(-7200)
    observations = executor.poll([second])
    assert observations[0].handle == "100_0"


def test_of_an_array_that_is_too_large_now_a_part_is_submitted(fake: FakeSlurm) -> None:
    (fake.folder / "limit").write_text(QOS_LIMIT)
    fake.answer("sbatch", "Submitted batch job 100\n", script=AT_MOST_TWO)
    observations = fake.executor().submit([fake.request() for _ in range(8)])
    assert [item.handle for item in observations] == ["100_0", "100_1"] + 6 * [""]
    assert {item.state for item in observations} == {AttemptState.QUEUED}


@pytest.mark.parametrize(
    "words",
    [
        "Required partition not available (inactive or drain)",
        "I/O error writing script/environment to file",
        "Slurm backup controller in standby mode",
    ],
)
def test_a_partition_that_is_closed_is_waited_for(fake: FakeSlurm, words: str) -> None:
    """An administrator closes it before a maintenance: no run fails because of that."""
    requests = [fake.request() for _ in range(8)]
    executor = fake.executor()
    fake.answer("sbatch", err=f"sbatch: error: Batch job submission failed: {words}", code=1)
    observations = executor.submit(requests)
    assert {item.state for item in observations} == {AttemptState.QUEUED}
    assert words in observations[0].reason
    assert len(fake.calls("sbatch")) == 1, "fewer jobs would be refused, too"
    fake.answer("sbatch", "Submitted batch job 102\n")
    fake.turn(20)
    assert [item.handle for item in executor.poll(requests)] == [f"102_{index}" for index in range(8)]


def test_arrays_respect_the_limits_of_site_and_user(fake: FakeSlurm) -> None:
    fake.answer("sacctmgr", association("project", submitted="3") + association("other"))
    fake.executor().submit([fake.request() for _ in range(8)])
    scripts = [call.split()[-1] for call in fake.calls("sbatch")]
    sizes = [Path(path).read_text().partition("--array=0-")[2].partition("%")[0] for path in scripts]
    assert sizes == ["2", "2", "1"]


def test_what_waits_can_be_cancelled(fake: FakeSlurm) -> None:
    request = fake.request()
    executor = fake.executor()
    fake.answer("sbatch", err=QOS_LIMIT, code=1)
    executor.submit([request])
    executor.cancel([request])
    [observation] = executor.poll([request])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, 0)
    fake.turn(60)
    executor.poll([request])
    assert len(fake.calls("sbatch")) == 1


def test_an_intent_that_never_reached_sbatch_is_absent_at_once(fake: FakeSlurm) -> None:
    assert state_of(fake.executor().find([fake.request()])) == "absent"
    assert not fake.calls("squeue")


def test_after_a_crash_jobs_are_found_by_name(fake_without_accounting: FakeSlurm) -> None:
    slurm = fake_without_accounting
    requests = [slurm.request(), slurm.request()]
    slurm.executor().submit(requests)
    slurm.queue("100_0 RUNNING", "100_1 PENDING Resources")
    found = slurm.executor().find(requests)
    assert [(item.state.value, item.handle) for item in found] == [("running", "100_0"), ("queued", "100_1")]
    assert found[1].reason == "Resources"


def test_of_two_jobs_of_an_attempt_the_first_is_kept(fake: FakeSlurm) -> None:
    request = fake.request()
    executor = fake.executor()
    executor.submit([request])
    fake.queue("103_0 PENDING Resources", "101_0 RUNNING", "102_0 PENDING Resources")
    assert executor.find([request])[0].handle == "101_0"
    assert fake.calls("scancel") == ["102_0 103_0"]


def test_an_enclosing_job_does_not_leak_into_ours(fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    leaks = {"SLURM_JOB_ID": "5", "SLURM_CPU_BIND": "cores", "PMIX_RANK": "0", "SBATCH_TIMELIMIT": "1"}
    own = {
        "SLURM_CONF": "/etc/slurm.conf",
        "SBATCH_ACCOUNT": "mine",
        "SBATCH_QOS": "fast",
        "MODULEPATH": "/m",
    }
    for name, value in {**leaks, **own}.items():
        monkeypatch.setenv(name, value)
    fake.executor(job=JobOptions(qos="slow")).submit([fake.request()])
    seen = fake.environment("sbatch").splitlines()
    assert not [line for line in seen if line.partition("=")[0] in leaks]
    assert {"SLURM_CONF=/etc/slurm.conf", "SBATCH_ACCOUNT=mine", "MODULEPATH=/m"} <= set(seen)
    assert "SBATCH_QOS=fast" not in seen  # it would outweigh what the campaign says


def test_a_folder_that_cannot_be_written_costs_nothing(fake: FakeSlurm) -> None:
    fake.campaign.mkdir()
    (fake.campaign / "batches").write_text("in the way")
    [observation] = fake.executor().submit([fake.request()])
    assert (observation.state, observation.elapsed) == (AttemptState.LOST, 0)
    assert "batches" in observation.reason
    assert not fake.calls("sbatch")


def test_an_array_larger_than_the_site_allows_is_split(fake: FakeSlurm) -> None:
    (fake.folder / "limit").write_text(
        "sbatch: error: Batch job submission failed: Invalid job array specification\n"
    )
    fake.answer("scontrol", code=1)  # so that the limit is not known
    fake.answer("sbatch", "Submitted batch job 100\n", script=AT_MOST_TWO)
    observations = fake.executor().submit([fake.request() for _ in range(5)])
    assert {item.state for item in observations} == {AttemptState.QUEUED}
    assert all(item.handle for item in observations)


def test_nodes_that_cannot_be_spared_are_used_all_the_same(fake: FakeSlurm) -> None:
    refusal = "sbatch: error: Batch job submission failed: Requested node configuration is not available"
    fake.answer(
        "sbatch",
        "Submitted batch job 100\n",
        script=f'grep -q exclude "$1" && {{ echo "{refusal}" >&2; exit 1; }}\n',
    )
    [observation] = fake.executor().submit([replace(fake.request(), exclude=("n1",))])
    assert observation.handle == "100_0"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "sbatch: error: invalid partition specified: nope\nallocation failure: Invalid partition name",
            "invalid partition specified: nope; allocation failure: Invalid partition name",
        ),
        ("allocation failure: Requested nodes are busy", None),
        ("sbatch: error: Unable to contact slurm controller (connect failure)", None),
    ],
)
def test_slurm_is_asked_whether_it_would_take_a_job_and_only_what_is_certain_counts(
    fake: FakeSlurm, words: str, expected: str | None
) -> None:
    fake.answer("sbatch", err=words, code=1)
    assert sbatch.refusal(Resources(ranks=2), JobOptions(partition="nope"), 5.0) == expected
    [asked] = fake.calls("sbatch")
    assert asked.startswith("--test-only ")
    fake.answer("sbatch", err="sbatch: Job 12 to start at 2026-11-26T17:07:29 using 1 processors")
    assert sbatch.refusal(Resources(ranks=2), JobOptions(partition="debug"), 5.0) is None
