"""THE loop: observe, decide, act, journal, apply.

Everything that happens becomes an event, which is durable before it counts. A campaign that is killed at any
point is the replay of its journal; the next controller looks up the attempts that were in flight.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from orchestrator import __version__
from orchestrator.control import settle
from orchestrator.control.disk import Disk
from orchestrator.control.runtime import Runtime
from orchestrator.executors.attempt.directory import DirectoryUnwritable
from orchestrator.executors.base import DISK, services
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.replay import apply
from orchestrator.journal.state import NO_VALIDATION, InFlight, RunStatus, State
from orchestrator.journal.writer import Journal, waited
from orchestrator.models.base import Model
from orchestrator.policy import decide, elsewhere, stop_rules
from orchestrator.policy.actions import Action, Assess, Fit, Propose, Single, Submit
from orchestrator.policy.limits import memory_for
from orchestrator.policy.machine import findings
from orchestrator.policy.progress import Quality, enough, is_contradicted
from orchestrator.strategies.base import Nothing
from orchestrator.types import Attempt, AttemptRequest, AttemptState, Observation

_CHARGES = 60.0  # seconds to wait at most for the charges of attempts that the user ended

Listener = Callable[[Entry, State], None]


def run(
    runtime: Runtime,
    journal: Journal,
    state: State,
    listen: Listener,
    interrupted: Callable[[], bool],
    models: tuple[Model, ...] | None = None,
) -> State:
    """Run a campaign from ``state``, its replayed journal, until it stops or pauses, or ``interrupted``.

    Parameters
    ----------
    runtime
        The campaign with its executor and its models.
    journal, state
        The open journal, and its replay.
    listen
        Called with every new entry and the state after it.
    interrupted
        Whether to leave the campaign unfinished.
    models
        Those of ``state``; None where they are not fitted yet.

    Raises
    ------
    JournalWriteError
        If an event cannot be made durable; nothing is begun after that.
    """
    if state.stopped is not None:
        return state
    controller = Controller(runtime, journal, state, listen, models)
    begun = events.ControllerStarted(
        host=socket.gethostname(),
        pid=os.getpid(),
        version=__version__,
        provenance=runtime.provenance(),
        directory=str(runtime.directory.resolve()),
    )
    controller.commit([begun])
    while controller.state.stopped is None and not interrupted() and not decide.is_paused(controller.state):
        try:
            progressed = controller.step()
        except DirectoryUnwritable as error:
            if not waited(error.__cause__, runtime.patience):
                raise
            continue  # attempts that were not begun are found so, and submitted again
        if not progressed and controller.state.stopped is None:
            runtime.executor.wait(runtime.poll_interval)
    if controller.state.stopped is None:
        controller.observe()
        if runtime.cancel_on_interrupt:
            controller.cancel()
        paused = controller.state.paused
        reason = "interrupted" if paused is None else f"paused: {paused.rule} ({paused.detail})"
        controller.commit([events.ControllerStopped(reason)])
    return controller.state


class Controller:
    """Acts on a campaign: holds its state and the models of its last round.

    The state changes only through the journal.
    """

    def __init__(
        self,
        runtime: Runtime,
        journal: Journal,
        state: State,
        listen: Listener,
        models: tuple[Model, ...] | None,
    ):
        self._runtime = runtime
        self._journal = journal
        self._listen = listen
        self._models = models
        self._disk = Disk(runtime.directory)
        self._requests: dict[Attempt, AttemptRequest] = {}
        self._unconfirmed: dict[Attempt, AttemptRequest] = {}  # settled, with estimated charges
        self._cancelled: dict[Attempt, str] = {}  # with the reason
        self.state = state

    def step(self) -> bool:
        """Observe, decide and act; return whether anything was done."""
        self.observe()
        if self.state.stopping is not None:
            self._withdraw(f"withdrawn as the campaign stops ({self.state.stopping.rule})")
        runtime = self._runtime
        estimates = runtime.estimates(self.state, self.models())
        return self.perform(
            decide.next_actions(self.state, runtime.policy, runtime.executor.now(), estimates)
        )

    def commit(self, new: Sequence[events.Event], durable: bool = True) -> None:
        """Make events durable, then apply them."""
        if not new:
            return
        for entry in self._journal.append(new, self._runtime.executor.now(), durable):
            self.state = apply(self.state, entry.event, entry.time)
            self._listen(entry, self.state)

    def observe(self) -> None:
        """Poll the attempts in flight; look up those whose submission was never confirmed."""
        unresolved = decide.unresolved(self.state)
        submitted = [attempt for attempt in _in_order(self.state.in_flight) if attempt not in unresolved]
        if unresolved:
            self._settle(
                self._runtime.executor.find([self._request(attempt) for attempt in _in_order(unresolved)])
            )
        if submitted:
            self._settle(self._runtime.executor.poll([self._request(attempt) for attempt in submitted]))
        if self.state.unconfirmed:
            self._correct()
        executor = self._runtime.executor
        found, now = services(executor), executor.now()
        if executor.name != "simulated":
            found = {**found, DISK: self._disk.outage(now)}
        self.commit(settle.outages(found, self.state, now))

    def _correct(self) -> None:
        """Replace estimated charges by those that the scheduler has confirmed by now."""
        flights = self.state.unconfirmed
        known = self._unconfirmed  # scripts are not rendered anew at every poll
        self._unconfirmed = {
            attempt: known.get(attempt) or self._runtime.request(self.state, attempt, flights[attempt])
            for attempt in _in_order(flights)
        }
        charged = self._runtime.executor.charged(list(self._unconfirmed.values()))
        self.commit(settle.corrections([item for item in charged if item is not None], self.state))

    def cancel(self) -> None:
        """End and settle the attempts in flight, as the user asked for."""
        self._cancel(self.state.in_flight, "cancelled by the user")
        begun = self._runtime.executor.now()
        while self.state.in_flight or (
            self.state.unconfirmed and 0 <= self._runtime.executor.now() - begun < _CHARGES
        ):
            self._runtime.executor.wait(self._runtime.poll_interval)
            self.observe()

    def _withdraw(self, why: str) -> None:
        """End what has not begun and need not begin any more."""
        waiting = [attempt for attempt in decide.unbegun(self.state) if attempt not in self._cancelled]
        if waiting:
            self._cancel(waiting, why)

    def _cancel(self, attempts: Iterable[Attempt], reason: str) -> None:
        self._cancelled |= dict.fromkeys(attempts, reason)
        self._runtime.executor.cancel([self._request(attempt) for attempt in _in_order(attempts)])

    def perform(self, actions: Sequence[Action]) -> bool:
        """Do what was decided; return whether anything was done (if not, it is time to wait)."""
        submissions = [action for action in actions if isinstance(action, Submit)]
        others = [action for action in actions if not isinstance(action, Submit)]
        for action in others:
            self._perform(action)
        return self._submit(submissions) if submissions else bool(others)

    def _perform(self, action: Single) -> None:
        match action:
            case Fit(number):
                self._fit(number)
            case Assess():
                self._assess()
            case Propose(number):
                self._propose(number)
            case decided:
                self.commit([decided])
                if isinstance(decided, events.CampaignStopped):
                    self._runtime.publish(self.state, self.models())

    def _submit(self, submissions: Sequence[Submit]) -> bool:
        intents = [
            events.AttemptIntended(
                attempt=item.attempt,
                name=self._name(item.attempt),
                cores=item.reservation.cores,
                limit=item.reservation.limit,
                reserved=item.reservation.reserved,
                pack=self._name(item.pack) if item.pack is not None else "",
                likely=item.reservation.likely,
                memory=memory_for(self.state, item.attempt.run),
            )
            for item in submissions
        ]
        # A script that cannot be rendered must fail before its reservation is durable.
        self._requests |= {
            item.attempt: self._runtime.request(self.state, item.attempt, InFlight.of(item))
            for item in intents
        }
        self.commit(intents)
        observations = self._runtime.executor.submit([self._request(item.attempt) for item in submissions])
        self._settle(observations)
        return any(item.state is not AttemptState.ABSENT for item in observations)

    def _name(self, attempt: Attempt) -> str:
        return settle.submission_name(self.state.campaign["name"], self.state.id, attempt)

    def _settle(self, observations: Sequence[Observation]) -> None:
        observations = [item for item in observations if item.attempt in self.state.in_flight]
        maximum_charges = settle.maximum_charges(observations, self.state)
        executables, new = dict(self.state.executables), list[events.Event]()
        for item in observations:
            for event in settle.events_of(
                item,
                self.state.in_flight[item.attempt],
                self._request(item.attempt),
                self._runtime.collect,
                maximum_charges[item.attempt],
                self._runtime.campaign.measure.exit_codes,
                ran=self._runtime.has_measured(self.state, item.record),
            ):
                if isinstance(event, events.AttemptFinished) and event.failure is None:
                    new += settle.replacements(self._runtime.started(item.record), executables)
                cancelled = self._cancelled.get(item.attempt)
                new.append(settle.ended_on_purpose(event, cancelled) if cancelled else event)
        # Submissions can be looked up again. Measurements, charges and released reservations must be durable.
        transient = (events.AttemptSubmitted, events.AttemptStarted)
        self.commit(new, durable=any(not isinstance(event, transient) for event in new))
        for event in new:
            if isinstance(event, events.AttemptFinished | events.AttemptWithdrawn):
                self._requests.pop(event.attempt, None)

    def _request(self, attempt: Attempt) -> AttemptRequest:
        if attempt not in self._requests:
            self._requests[attempt] = self._runtime.request(
                self.state, attempt, self.state.in_flight[attempt]
            )
        return self._requests[attempt]

    def models(self) -> tuple[Model, ...]:
        """Return the models of the last round; a resumed controller fits them once, before it decides."""
        if self._models is None:
            self._models = self._runtime.fit(self.state) if self.state.rounds_completed else ()
        return self._models

    def _fit(self, number: int) -> None:
        self._models = self._runtime.fit(self.state)
        quality = self._runtime.assess(self._models, self.state)
        gained = self._runtime.gain(quality, Quality(smape=self.state.smape, width=self.state.width))
        measured = any(self.state.runs[run].status is RunStatus.MEASURED for run in self.state.queue)
        machine = findings(self.state)
        if (missing := self._runtime.no_validation(self.state, self._models)) is not None:
            machine |= {NO_VALIDATION: missing}
        completed = events.RoundCompleted(
            round=number,
            smape=quality.smape,
            width=quality.width,
            improved=bool(gained),
            measured=measured,
            widest=quality.widest,
            gain=gained,
            noise=quality.noise,
            narrow=_is_narrow(quality) and not is_contradicted(self.state, self._models),
            machine=machine,
            news=tuple(kind for kind in machine if kind not in self.state.remarked),
            targets=quality.targets,
            kept=self._runtime.kept(self.state, self._models),
        )
        self.commit([completed])
        self._runtime.publish(self.state, self._models)

    def _assess(self) -> None:
        quality = self._runtime.assess(self.models(), self.state)
        assessed = events.ModelsAssessed(
            smape=quality.smape,
            width=quality.width,
            widest=quality.widest,
            noise=quality.noise,
            narrow=_is_narrow(quality),
            targets=quality.targets,
        )
        self.commit([assessed])
        self._runtime.publish(self.state, self.models())

    def _propose(self, number: int) -> None:
        rng = np.random.default_rng([self._runtime.campaign.seed, number])
        models = self.models()
        choices = self._runtime.propose(self.state, models, rng)
        choices = elsewhere.to_be_tried(choices, self.state)
        choices = self._runtime.assembly.paired(choices, self.state, rng)
        effort = self._runtime.count_effort(self.state, models, choices)
        references = self._runtime.references(self.state, choices, rng)
        proposed = settle.round_of(number, [*choices, *references], self.state, effort)
        if proposed.runs:
            self.commit([proposed])
        else:
            nothing = Nothing("exhausted", "the strategy has nothing left to measure")
            why = choices if isinstance(choices, Nothing) else nothing
            self.commit([stop_rules.for_want_of_runs(self.state, why)])


def _is_narrow(quality: Quality) -> bool:
    return quality.width is not None and quality.width <= enough(quality.noise)


def _in_order(attempts: Iterable[Attempt]) -> list[Attempt]:
    """Return attempts by name. A persistent map has an order of its own, another one in every process."""
    return sorted(attempts, key=lambda attempt: attempt.id)
