"""Slurm's daemons are away: the campaign says so once, submits nothing, asks every minute, and continues."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from orchestrator.campaign import loader
from orchestrator.control import settle
from orchestrator.control.notify import Notifier
from orchestrator.executors.base import QUEUE, Outage, services
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.replay import apply
from orchestrator.journal.state import State
from orchestrator.policy import decide
from orchestrator.policy.actions import Submit
from orchestrator.policy.decide import next_actions
from orchestrator.policy.rules import Policy
from orchestrator.report import event_text, log, status, status_text
from orchestrator.types import Attempt, AttemptState, FailureClass, Measurements, Point, Run
from tests.journal.attempts import attempt_finished, attempt_intended
from tests.policy.known import estimates
from tests.slurm.fake_slurm import START, FakeSlurm, install

RUNS = tuple(Run(Point.of(p=p)) for p in (1, 2, 3))
POLICY = Policy(budget=1e6, patience=2, failures=3, max_pending=2, retries=dict.fromkeys(FailureClass, 0))
CAMPAIGN = """
name: demo
application: generic
program: {arguments: ["{p}"], output: [{callpath: main, pattern: "t=(.*)"}]}
parameters: {p: [1, 2, 4, 8]}
stop: {budget: 1 core-hour}
executor: {name: simulated, truth: {main: "p"}}
notify: {command: [/bin/true]}
"""
AWAY = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"


def happened(*new: events.Event, now: float = START) -> State:
    state = State()
    for event in new:
        state = apply(state, event, now)
    return state


def intended(run: Run, submitted: bool = True) -> list[events.Event]:
    attempt = Attempt(run)
    intent = attempt_intended(attempt, name=run.id)
    return [intent, *([events.AttemptSubmitted(attempt, "7_0")] if submitted else [])]


PROPOSED = events.RoundProposed(1, RUNS, ("",) * 3)


def test_an_outage_is_reported_after_a_minute_then_every_hour_and_at_its_end() -> None:
    state, reported = happened(PROPOSED, *intended(RUNS[0])), []
    found: dict[str, Outage | None] = {"slurmctld": Outage(START, AWAY, True)}
    for second in range(0, 2 * 3600 + 30, 30):
        now = START + second
        for event in settle.outages(found, state, now):
            reported.append((second, event))
            state = apply(state, event, now)
    assert [second for second, _ in reported] == [60, 3660]
    [(_, first), (_, second_report)] = reported
    assert isinstance(first, events.OutageBegan) and not first.repeated and first.jobs == 1
    assert isinstance(second_report, events.OutageBegan) and second_report.repeated
    assert second_report.since == START and second_report.lasted == 3660
    [end] = settle.outages({"slurmctld": None}, state, START + 7200)
    assert end == events.OutageEnded("slurmctld", 7200.0)
    assert not apply(state, end, START + 7200).outages
    assert settle.outages({}, state, START + 7200) == [], "what was not asked is not known"


def test_nothing_is_submitted_while_the_controller_is_away_but_while_accounting_is() -> None:
    for what, blocking in (("slurmctld", True), ("slurmdbd", False)):
        state = happened(PROPOSED, events.OutageBegan(what=what, since=START, blocking=blocking))
        found = next_actions(state, POLICY, START, estimates())
        assert [type(action) for action in found] == ([] if blocking else [Submit] * 2)
    state = apply(state, events.OutageEnded("slurmdbd"), START)
    assert not state.blocked


def test_charges_are_waited_for_while_accounting_is_away() -> None:
    end = attempt_finished(Attempt(RUNS[0]), 9.0, estimated=True)
    skipped = [events.RunSkipped(run, "") for run in RUNS[1:]]
    completed = events.RoundCompleted(round=1, smape=None, width=None, improved=False)
    rule = events.StopRuleReached("budget", "")
    state = happened(PROPOSED, *intended(RUNS[0]), end, *skipped, completed, rule)
    away = apply(state, events.OutageBegan(what="slurmdbd", since=START, blocking=False), START)
    hour = START + 3600
    assert next_actions(state, POLICY, hour, estimates()) == [events.CampaignStopped("budget", "")]
    assert next_actions(away, POLICY, hour, estimates()) == []
    assert next_actions(away, POLICY, START + decide.LONGEST_OUTAGE, estimates()) != []


# --- the executor -------------------------------------------------------------------------------------


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    return install(FakeSlurm(tmp_path / "bin", tmp_path / "campaign"), monkeypatch)


def test_slurm_is_asked_every_minute_while_it_is_silent_and_gets_no_jobs(fake: FakeSlurm) -> None:
    first, second = fake.request(), fake.request()
    executor = fake.executor()
    executor.submit([first])
    fake.answer("squeue", err=AWAY, code=1)
    executor.poll([first])
    begun = len(fake.calls("squeue"))
    [held] = executor.submit([second])
    assert held.state == "queued" and not held.handle and "Unable to contact" in held.reason
    while fake.now < START + 3600:
        executor.poll([first, second])
        assert services(executor)["slurmctld"] is not None
        executor.wait(5.0)
    assert 55 <= len(fake.calls("squeue")) - begun <= 70
    assert len(fake.calls("sbatch")) == 1
    fake.queue("100_0 RUNNING")
    while services(executor)["slurmctld"] is not None:
        executor.poll([first, second])
        executor.wait(5.0)
    assert fake.now <= START + 3600 + 80
    fake.turn(20)
    executor.poll([first, second])
    assert len(fake.calls("sbatch")) == 2


def test_slurm_is_asked_every_minute_although_no_job_is_out(fake: FakeSlurm) -> None:
    fake.answer("scontrol", err=AWAY, code=1)
    executor = fake.executor()
    while fake.now < START + 3600:
        found = services(executor)["slurmctld"]
        assert found is not None and found.since == START and found.blocking
        executor.wait(5.0)
    assert 55 <= len(fake.calls("scontrol")) <= 70
    fake.answer("scontrol", "KillWait = 30 sec\n")
    fake.turn(70)
    assert services(executor) == {"slurmctld": None, QUEUE: None}


def test_accounting_that_is_away_does_not_block(fake: FakeSlurm) -> None:
    request = fake.request()
    executor = fake.executor()
    executor.submit([request])
    fake.answer("squeue", "")
    fake.answer("sacct", err="sacct: error: slurm_persist_conn_open_without_init: failed to open", code=1)
    executor.poll([request])
    found = services(executor)
    assert found["slurmctld"] is None
    assert found["slurmdbd"] is not None and not found["slurmdbd"].blocking


@pytest.mark.parametrize(
    "reason",
    ["JobHeldAdmin", "PartitionDown", "ReqNodeNotAvail, Reserved for maintenance", "QOSGrpCPUMinutesLimit"],
)
def test_a_queue_in_which_nothing_moves_is_reported_with_slurms_reason(fake: FakeSlurm, reason: str) -> None:
    requests = [fake.request(), fake.request()]
    executor = fake.executor()
    executor.submit(requests)
    fake.queue("100_0 PENDING Resources", f"100_1 PENDING {reason}")
    executor.poll(requests)
    assert services(executor)[QUEUE] is None, "one waits for other jobs only"
    fake.queue(f"100_0 PENDING {reason}", f"100_1 PENDING {reason}")
    fake.turn(20)
    executor.poll(requests)
    since = fake.now
    assert services(executor)[QUEUE] is not None
    fake.turn(20)
    executor.poll(requests)
    assert services(executor)[QUEUE] == Outage(since, reason, blocking=False)
    fake.queue("100_0 RUNNING", f"100_1 PENDING {reason}")
    fake.turn(20)
    executor.poll(requests)
    assert services(executor)[QUEUE] is None


@pytest.mark.parametrize("reason", ["QOSMaxJobsPerUserLimit", "AssocGrpNodeLimit", "Priority"])
def test_waiting_for_other_jobs_is_not_worth_a_report(fake: FakeSlurm, reason: str) -> None:
    request = fake.request()
    executor = fake.executor()
    executor.submit([request])
    fake.queue(f"100_0 PENDING {reason}")
    executor.poll([request])
    assert services(executor)[QUEUE] is None


def test_a_closed_partition_is_reported(fake: FakeSlurm) -> None:
    request = fake.request()
    executor = fake.executor()
    closed = "Required partition not available (inactive or drain)"
    fake.answer("sbatch", err=f"sbatch: error: Batch job submission failed: {closed}", code=1)
    executor.submit([request])
    executor.find([request])
    found = services(executor)[QUEUE]
    assert found is not None and closed in found.reason


def test_an_executor_without_services_needs_no_method() -> None:
    assert services(object()) == {}  # type: ignore[arg-type]


# --- what people see ----------------------------------------------------------------------------------


def test_status_log_and_stderr_say_what_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    campaign = {"name": "c", "stop": {"budget": "3600.0 core-seconds", "patience": 3}}
    started = events.CampaignStarted(id="id", campaign=campaign, version="1")
    began = events.OutageBegan(what="slurmctld", since=START, reason="connect failure", jobs=1, lasted=60.0)
    text = "slurmctld has not answered since 08:00; 1 job is out; nothing is submitted"
    assert event_text.describe(began) == f"{text} (connect failure)"
    again = events.OutageBegan(what="slurmctld", since=START, jobs=8, lasted=10000.0, repeated=True)
    assert event_text.describe(again) == (
        "slurmctld has not answered since 08:00 (2 h 47 min ago); 8 jobs are out; nothing is submitted"
    )
    ended = events.OutageEnded("slurmctld", 10000.0)
    assert event_text.describe(ended) == "slurmctld answers again, after 2 h 47 min"
    happens = (started, PROPOSED, *intended(RUNS[0]), *intended(RUNS[1], submitted=False), began)
    monkeypatch.setattr("time.time", lambda: START + 90)
    state = happened(*happens)
    document = status.combined(state, status_measurements(), {"models": [], "validation": []})
    assert document["outages"][0] == {
        "what": "slurmctld",
        "since": "2027-01-15T08:00:00.000000+00:00",
        "reason": "connect failure",
        "jobs": 1,
        "blocking": True,
    }
    assert text in status_text.plain_text(document)
    entries = [Entry(number, START, event) for number, event in enumerate((*happens, ended), 1)]
    found = log.document(entries)
    assert [item["kind"] for item in found["events"]][-2:] == ["outage", "outage"]


def test_status_and_log_say_what_all_jobs_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr("time.time", lambda: START + 90)
    campaign = {"name": "c", "stop": {"budget": "3600.0 core-seconds", "patience": 3}}
    began = events.OutageBegan(what=QUEUE, since=START, reason="JobHeldAdmin", blocking=False, lasted=60.0)
    text = "all jobs have waited since 08:00: JobHeldAdmin"
    assert event_text.describe(began) == text
    assert event_text.describe(events.OutageEnded(QUEUE, 120.0)) == "no job is held up any more, after 2 min"
    state = happened(
        events.CampaignStarted(id="id", campaign=campaign, version="1"), PROPOSED, *intended(RUNS[0]), began
    )
    document = status.combined(state, status_measurements(), {"models": [], "validation": []})
    assert text in status_text.plain_text(document)


def status_measurements() -> Measurements:
    return Measurements(("p",), ())


def test_the_hook_is_called_for_the_begin_and_the_end_but_not_every_hour(tmp_path: Path) -> None:
    chosen = loader.loads(CAMPAIGN)
    seen: list[tuple[str, str]] = []
    began = events.OutageBegan(what="slurmdbd", since=START, jobs=8, blocking=False)
    ended = events.OutageEnded("slurmdbd", 300.0)
    notifier = Notifier(chosen, tmp_path)
    with patch.object(notifier, "_notify", lambda event, cause, text: seen.append((event, cause))):
        for event in (began, replace(began, repeated=True), ended):
            notifier.listen(Entry(1, START, event), State())
    assert seen == [("outage", "slurmdbd")] * 2
    assert "charges remain upper bounds" in event_text.describe(began)


@pytest.mark.parametrize(
    "event",
    [
        events.OutageBegan(what="slurmctld", since=START, reason="no answer", jobs=3, lasted=61.5),
        events.OutageEnded("slurmdbd", 3.5),
        events.CampaignPaused("infrastructure", "10 tries in a row failed"),
    ],
)
def test_the_journal_gives_back_what_was_written(event: events.Event) -> None:
    written = json.loads(json.dumps(events.to_json(event)))
    assert events.from_json(events.name_of(event), written) == event


@pytest.mark.parametrize("state", ["SUSPENDED", "STOPPED"])
def test_a_job_that_is_suspended_waits_until_somebody_resumes_it(fake: FakeSlurm, state: str) -> None:
    requests = [replace(fake.request(), pack="shared") for _ in range(2)]
    executor = fake.executor()
    executor.submit(requests)
    fake.begin(requests[0])
    fake.queue(f"100_0 {state}")
    executor.poll(requests)
    found = services(executor)[QUEUE]
    assert found is not None and found.reason == state
    fake.queue("100_0 RUNNING")
    fake.turn(20.0)
    executor.poll(requests)
    assert services(executor)[QUEUE] is None


def test_accounting_is_asked_again_while_jobs_wait_until_it_answers(fake: FakeSlurm) -> None:
    requests = [fake.request(), fake.request()]
    executor = fake.executor()
    executor.submit(requests)
    fake.queue("100_0 PENDING Priority")
    fake.answer("sacct", err="sacct: error: Connection refused", code=1)
    executor.poll(requests)
    assert services(executor)["slurmdbd"] is not None
    fake.queue("100_0 PENDING Priority", "100_1 PENDING Priority")
    fake.answer("sacct", "")
    fake.turn(100.0)
    assert [item.state for item in executor.poll(requests)] == [AttemptState.QUEUED] * 2
    assert services(executor)["slurmdbd"] is None
    asked = len(fake.calls("sacct"))
    fake.turn(100.0)
    executor.poll(requests)
    assert len(fake.calls("sacct")) == asked


@pytest.mark.parametrize("pack", ["", "job"])
def test_what_slurm_charges_for_its_own_silence_is_no_duration_of_a_run(pack: str) -> None:
    """Whether it was settled before or after the end of the outage was noticed."""

    def end(run: Run, started: float, charged: float) -> events.AttemptFinished:
        return attempt_finished(Attempt(run), charged, started=started, finished=started + 10)

    began = events.OutageBegan(what="slurmctld", since=START + 30)
    flights = [event for run in RUNS for event in intended(run)]
    flights = [replace(e, pack=pack) if isinstance(e, events.AttemptIntended) else e for e in flights]
    state = happened(PROPOSED, *flights, end(RUNS[0], START, 12.0), began)
    for now, event in (
        (START + 400, end(RUNS[1], START + 20, 370.0)),
        (START + 401, events.OutageEnded("slurmctld", 371.0)),
        (START + 420, end(RUNS[2], START + 21, 370.0)),
    ):
        state = apply(state, event, now)
    usual = 0.0 if pack else 2.0
    assert state.job_costs.overhead == usual
    assert [state.runs[run].elapsed for run in RUNS[1:]] == [10.0 + usual] * 2
    assert state.runs[RUNS[2]].cost == 370.0
