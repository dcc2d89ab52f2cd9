"""What must hold after a campaign on the faulty Slurm, whatever went wrong."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchestrator.executors.base import QUEUE
from orchestrator.journal import events, setbacks
from orchestrator.journal.replay import apply, replay
from orchestrator.journal.state import RunStatus, State
from orchestrator.types import Attempt, FailureClass
from tests.slurm.faulty.campaigns import POLL_INTERVAL, START, Outcome, Scenario, charges
from tests.slurm.faulty.faults import SITE
from tests.slurm.faulty.world import Job, charged_cpu_seconds, excess_cpu_seconds

SHARE = 0.1  # of the budget, that failures of the site may cost until a campaign pauses
SEEN_IN_TIME = 60.0  # seconds that files may be late, so that no measurement is lost
ANNOUNCED = 200.0  # seconds after which an outage must be reported
# Of these, a run may be given up: Slurm does not take it, or ends it for its memory, time after time.
_REFUSALS = {"refused", "submit limit", "out of memory"}


def violations(outcome: Outcome) -> list[str]:
    """Return every broken promise, in words."""
    return [
        *_stopped(outcome),
        *_blamed(outcome),
        *_paused(outcome),
        *_announced(outcome),
        *_waited(outcome),
        *_exactly_once(outcome),
        *_submitted_once(outcome),
        *_measurements(outcome),
        *_budget(outcome),
        *_charges(outcome),
        *_queries(outcome),
    ]


def _stopped(outcome: Outcome) -> Iterator[str]:
    final = outcome.state
    if final.stopped is None or not final.stopped.detail:
        yield "it ended without a stated reason"
    if final.in_flight:
        yield f"attempts are in flight after the end: {list(final.in_flight)}"
    for run, item in final.runs.items():
        if item.status not in {RunStatus.MEASURED, RunStatus.GIVEN_UP, RunStatus.SKIPPED}:
            yield f"{run} is {item.status} in the end"
        elif item.status is not RunStatus.MEASURED and not item.reason:
            yield f"{run} was {item.status} without a reason"


def _blamed(outcome: Outcome) -> Iterator[str]:
    """What Slurm, nodes and file system did is no failure of the application, and stops no campaign.

    A Slurm that refuses a valid job may, and so may jobs that Slurm ends for their memory.
    """
    final, what = outcome.state, {fault.what for fault in outcome.scenario.faults}
    for event in _settled(outcome):
        directory = outcome.directory / "runs" / event.attempt.id
        its_own = event.failure in {FailureClass.APPLICATION, FailureClass.TIMEOUT, FailureClass.PARSE}
        if its_own and directory not in outcome.runner.guilty:
            yield f"{event.attempt} is called a failure of class {event.failure}: {event.reason}"
    guilty = {directory.parent for directory in outcome.runner.guilty}
    for run, item in final.runs.items() if not what & _REFUSALS else ():
        if item.status is RunStatus.GIVEN_UP and outcome.directory / "runs" / run.id not in guilty:
            yield f"{run} was given up, and its application never failed: {item.reason}"
    rule = final.stopped.rule if final.stopped is not None else ""
    if rule in {"failures", "failure_rate"} and not guilty and not what & _REFUSALS:
        yield f"stopped by {rule}, and no application failed"


def _paused(outcome: Outcome) -> Iterator[str]:
    """A pause needs a tenth of the budget in failures that were not the application's, or many in a row.

    Each attempt counts with its last charge before the pause, from the last pause on.
    """
    costs: dict[Attempt, float] = {}
    granted = 0.0
    in_a_row = 0
    for entry in outcome.entries:
        match entry.event:
            case events.AttemptFinished(attempt=attempt, failure=FailureClass.INFRASTRUCTURE, refused=False):
                costs[attempt] = entry.event.cost
                in_a_row += 1
            case events.AttemptFinished():
                in_a_row = 0
            case events.AttemptCharged(attempt=attempt) if attempt in costs:
                costs[attempt] = entry.event.cost
            case events.CampaignPaused():
                charged, share = sum(costs.values()) - granted, SHARE * outcome.scenario.budget
                if charged < share - 1e-6 and in_a_row < setbacks.MOST:
                    yield f"paused after {charged:.0f} of {share:.0f} core-seconds and {in_a_row} failures"
                granted, in_a_row = sum(costs.values()), 0


def _announced(outcome: Outcome) -> Iterator[str]:
    """Daemons that do not answer for minutes are reported, where a controller asks; nothing else is."""
    faults = outcome.scenario.faults
    began = [item.event for item in outcome.entries if isinstance(item.event, events.OutageBegan)]
    reported = [event for event in began if event.what != QUEUE]
    if reported and not any(fault.command in {SITE, "squeue", "scontrol", "sacct"} for fault in faults):
        yield f"an outage was reported, and there was none: {reported[0]}"
    if any(fault.what == "our clock" for fault in faults):
        return
    site, asked = outcome.world.site, outcome.commands.log
    for span in site.spans:
        for begun, over in outcome.sessions:
            first, last = max(span.begin, begun), min(span.end, over)
            known = _state_at(outcome, last)
            if known.stopped is not None:
                continue
            if site.controller(span.begin) is span and last - first > ANNOUNCED:
                if "slurmctld" not in known.outages:
                    yield f"nothing said that slurmctld was away for {last - first:.0f} s"
            elif site.accounting(span.begin) is span and site.controller(span.begin) is None:
                calls = [instant for instant in asked.get("sacct", []) if first <= instant < last]
                if calls and calls[-1] - calls[0] > ANNOUNCED and "slurmdbd" not in known.outages:
                    yield f"nothing said that slurmdbd was away for {last - first:.0f} s"


def _state_at(outcome: Outcome, instant: float) -> State:
    return replay(entry for entry in outcome.entries if entry.time <= instant)


def _waited(outcome: Outcome) -> Iterator[str]:
    """No run of a shared job is begun with srun while slurmctld is away, but the first one."""
    for directory in outcome.runner.refused:
        yield f"{directory.relative_to(outcome.directory)} was begun although slurmctld was away"


def _settled(outcome: Outcome) -> list[events.AttemptFinished]:
    return [entry.event for entry in outcome.entries if isinstance(entry.event, events.AttemptFinished)]


def _exactly_once(outcome: Outcome) -> Iterator[str]:
    for directory, count in outcome.runner.executed.items():
        if count > 1:
            yield f"{directory.name} was executed {count} times"
    settled = _settled(outcome)
    for attempt, count in Counter(event.attempt for event in settled).items():
        if count > 1:
            yield f"{attempt} was settled {count} times"
    accepted = Counter(event.attempt.run for event in settled if event.failure is None)
    for run, count in accepted.items():
        if count > 1:
            yield f"{run} was measured {count} times"


def _submitted_once(outcome: Outcome) -> Iterator[str]:
    """No attempt is submitted again while Slurm has its job, unless Slurm denies that."""
    if any(fault.what in {"empty", "stale", "cut off", "accepted late"} for fault in outcome.scenario.faults):
        return
    jobs: dict[Path, list[Job]] = {}
    for job in outcome.world.jobs:
        for directory in outcome.runner.directories(job):
            jobs.setdefault(directory, []).append(job)
    for directory, own in jobs.items():
        again = {late.submitted for job in own for late in own if _known(outcome, job, late.submitted)}
        if again:
            yield f"{directory.relative_to(outcome.directory)} was submitted again at {sorted(again)}"


def _known(outcome: Outcome, job: Job, now: float) -> bool:
    """Whether Slurm knew an earlier job: without accounting it soon forgets those that ended.

    A slurmctld that was killed forgets more.
    """
    if job.state == "FORGOTTEN":
        return False
    memory = math.inf if outcome.scenario.accounting else outcome.world.settings.remembered
    return job.submitted < now and (job.ended is None or now - job.ended < memory)


def _measurements(outcome: Outcome) -> Iterator[str]:
    """Every application that ended well is a measurement, with the value that it printed."""
    accepted = {}
    for run, item in outcome.state.runs.items():
        if item.accepted is not None:
            accepted[outcome.directory / "runs" / Attempt(run, item.accepted).id] = item
    late = _files_late(outcome.scenario) > SEEN_IN_TIME
    for directory in outcome.runner.succeeded - set(accepted) if not late else ():
        yield f"the measurement of {directory.relative_to(outcome.directory)} is lost"
    for directory, item in accepted.items():
        value = item.samples["time"]["main"]
        if directory not in outcome.runner.succeeded or value != outcome.runner.seconds(directory):
            yield f"{directory.relative_to(outcome.directory)} was accepted with {value}"


def _budget(outcome: Outcome) -> Iterator[str]:
    """Nothing begins beyond the budget.

    Slurm may charge more only where slurmctld learned of an end late, or where its clock was set meanwhile.
    """
    budget, excess = outcome.scenario.budget, float(excess_cpu_seconds(outcome.world.jobs))
    if _clocks_differ_without_accounting(outcome.scenario):
        excess = math.inf
    now = State()
    for entry in outcome.entries:
        now = apply(now, entry.event, entry.time)
        more = 0.0 if isinstance(entry.event, events.AttemptIntended) else excess
        if now.spent + now.reserved > budget + more + 1e-6:
            yield f"entry {entry.sequence}: {now.spent} spent and {now.reserved} reserved of {budget}"
    truth = charged_cpu_seconds(outcome.world.jobs)
    if truth > budget + excess:
        yield f"Slurm charged {truth} CPU-seconds, the budget is {budget}"


def _charges(outcome: Outcome) -> Iterator[str]:
    """What was charged is what Slurm charged, within a second; estimates are never less.

    A second start of a job, or a second job, finds the attempt claimed and ends at once. What it costs until
    then, two seconds, may come after the attempt was settled. Attempts that share a job share its charge.
    What Slurm charges for the time after an end that it learned of late may be missing where accounting never
    confirmed the charge. Without accounting, charges come from clocks, which must agree.
    """
    if _clocks_differ_without_accounting(outcome.scenario):
        return
    jobs: dict[tuple[Path, ...], list[Any]] = {}
    for job in outcome.world.jobs:
        jobs.setdefault(tuple(outcome.runner.directories(job)), []).append(job)
    packs = {directory: pack for pack in jobs for directory in pack}
    charged: dict[tuple[Path, ...], dict[Attempt, float]] = {}
    for attempt, cost in charges(outcome.entries).items():
        directory = outcome.directory / "runs" / attempt.id
        charged.setdefault(packs.get(directory, (directory,)), {})[attempt] = cost
    for pack in {**jobs, **charged}:
        own, attempts = jobs.get(pack, []), charged.get(pack, {})
        truth, starts = sum(job.charged for job in own), sum(len(job.starts) for job in own)
        # Where none is charged, none ever began: all starts are late ones of revoked attempts.
        tolerance = 1.0 + 2 * max(0, starts - any(attempts.values()))
        if len(pack) > 1 and _files_late(outcome.scenario) > SEEN_IN_TIME:
            tolerance = math.inf  # the job was divided before all records of its runs were seen
        cpus = own[0].request.cpus if own else 1
        seconds = sum(attempts.values()) / cpus
        unconfirmed = bool(attempts.keys() & set(outcome.state.unconfirmed))
        late = sum(start.excess for job in own for start in job.starts)
        unknown = late if unconfirmed or not outcome.scenario.accounting else 0
        # A job that a killed slurmctld forgot has no end in accounting: records say what it took.
        forgotten = any(job.state == "FORGOTTEN" for job in own)
        less, more = seconds < truth - tolerance - unknown, seconds > truth + tolerance
        # A job taken for dead that lives uses more than Slurm charges; without accounting that stays so.
        overtime = not outcome.scenario.accounting and any(
            s.state == "NODE_FAIL" for j in own for s in j.starts
        )
        if less or (more and not (overtime or unconfirmed or forgotten)):
            names = ", ".join(map(str, attempts)) or f"none of {len(pack)}"
            yield f"{names}: charged {seconds:.1f} s, Slurm has {truth} in {starts} starts"


def _files_late(scenario: Scenario) -> float:
    return sum(fault.value for fault in scenario.faults if fault.what in {"files late", "output late"})


def _clocks_differ_without_accounting(scenario: Scenario) -> bool:
    clocks = {"controller's clock", "nodes' clocks"}
    return not scenario.accounting and any(fault.what in clocks for fault in scenario.faults)


def _queries(outcome: Outcome) -> Iterator[str]:
    """Count at most one squeue and one sacct per interval and controller."""
    span = outcome.world.now - START
    for name in ("squeue", "sacct"):
        most = math.ceil(span / (0.9 * POLL_INTERVAL)) + outcome.kills + 1
        if outcome.commands.calls[name] > most:
            yield f"{outcome.commands.calls[name]} calls of {name} in {span:.0f} s"
