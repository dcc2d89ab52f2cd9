"""THE loop: decide, act, observe, journal, apply.

Everything that happens becomes an event; it is durable before it counts. Killed at any point, the
campaign is the replay of its journal, and `adopt` looks up what was in flight.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from orchestrator import __version__
from orchestrator.control import settle
from orchestrator.executors.base import Executor
from orchestrator.journal import events
from orchestrator.journal.file import Entry, Journal
from orchestrator.journal.state import InFlight, RunStatus, State, apply
from orchestrator.models.base import Model
from orchestrator.policy import decide
from orchestrator.policy.decide import Action, Policy
from orchestrator.policy.effort_runs import NOTHING, Plan
from orchestrator.policy.packing import Packer
from orchestrator.policy.progress import Quality, gain
from orchestrator.resources import Reservation
from orchestrator.strategies.base import Choice
from orchestrator.types import Attempt, AttemptRequest, AttemptState, Observation, Run

Listener = Callable[[Entry, State], None]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a campaign is made of; `orchestrator.control.runtime` builds it from a campaign file.

    Attributes
    ----------
    directory
        The campaign directory.
    executor, policy
        Who executes attempts; the rules of `decide`.
    reservation
        The most an attempt at a run can be charged, in a given state.
    packer
        Says, in a given state, which runs share a job; None where each attempt has its own.
    request
        Everything an executor needs for an attempt.
    collect
        Samples of a finished attempt; raises ``ReadError``.
    fit
        State -> models of what was measured (empty before the first measurement).
    propose
        State, models, generator -> the strategy's choices.
    assess
        Models -> their quality, for the stop rules.
    publish
        Called with each new set of models (writes ``models.json``).
    poll_interval
        Seconds to wait, at most, when there is nothing to do.
    count
        State, models, choices -> the runs that count effort.
    cancel_on_interrupt
        Whether an interrupt ends runs in flight, which are charged, instead of leaving them running.
    provenance
        What this controller's runs are made from; journaled.
    """

    directory: Path
    executor: Executor
    policy: Policy
    reservation: Callable[[State, Run], Reservation]
    request: Callable[[State, Attempt, InFlight], AttemptRequest]
    collect: settle.Collect
    fit: Callable[[State], tuple[Model, ...]]
    propose: Callable[[State, tuple[Model, ...], np.random.Generator], Sequence[Choice]]
    assess: Callable[[tuple[Model, ...]], Quality]
    publish: Callable[[State, tuple[Model, ...]], None]
    seed: int
    poll_interval: float
    packer: Callable[[State], Packer] | None = None
    count: Callable[[State, tuple[Model, ...], Sequence[Choice]], Plan] = lambda *_: NOTHING
    cancel_on_interrupt: bool = False
    provenance: Mapping[str, Any] = field(default_factory=dict)


def run(
    parts: Parts, journal: Journal, state: State, listen: Listener, interrupted: Callable[[], bool]
) -> State:
    """Run a campaign from ``state``, its replayed journal, until it stops or ``interrupted`` says so.

    Raises
    ------
    JournalWriteError
        If an event cannot be made durable; nothing is begun after that.
    """
    if state.stopped is not None:
        return state
    controller = Controller(parts, journal, state, listen)
    begun = events.ControllerStarted(socket.gethostname(), os.getpid(), __version__, parts.provenance)
    controller.commit([begun])
    while controller.state.stopped is None and not interrupted():
        controller.observe()
        actions = decide.next_actions(
            controller.state,
            parts.policy,
            parts.executor.now(),
            lambda run: parts.reservation(controller.state, run),
            None if parts.packer is None else parts.packer(controller.state),
        )
        progressed = controller.perform(actions)
        if not progressed and controller.state.stopped is None:
            parts.executor.wait(parts.poll_interval)
    if controller.state.stopped is None:
        controller.observe()
        if parts.cancel_on_interrupt:
            controller.cancel()
        controller.commit([events.ControllerStopped("interrupted")])
    return controller.state


class Controller:
    """The one who acts: holds the state, and changes it only through the journal."""

    def __init__(self, parts: Parts, journal: Journal, state: State, listen: Listener):
        self._parts = parts
        self._journal = journal
        self._listen = listen
        self._models: tuple[Model, ...] | None = None
        self._requests: dict[Attempt, AttemptRequest] = {}
        self._cancelled: frozenset[Attempt] = frozenset()  # by the user
        self.state = state

    def commit(self, new: Sequence[events.Event], durable: bool = True) -> None:
        """Make events durable, then apply them."""
        if not new:
            return
        for entry in self._journal.append(new, self._parts.executor.now(), durable):
            self.state = apply(self.state, entry.event, entry.time)
            self._listen(entry, self.state)

    def observe(self) -> None:
        """Ask how attempts in flight stand; look up those whose submission was never confirmed."""
        unconfirmed = decide.unresolved(self.state)
        confirmed = [attempt for attempt in self.state.in_flight if attempt not in unconfirmed]
        if unconfirmed:
            self._settle(self._parts.executor.find([self._request(attempt) for attempt in unconfirmed]))
        if confirmed:
            self._settle(self._parts.executor.poll([self._request(attempt) for attempt in confirmed]))
        if self.state.unconfirmed:
            self._correct()

    def _correct(self) -> None:
        """Replace estimated charges by what the scheduler says by now."""
        flights = self.state.unconfirmed
        requests = [self._parts.request(self.state, attempt, flight) for attempt, flight in flights.items()]
        known = [item for item in self._parts.executor.charged(requests) if item is not None]
        self.commit(settle.corrections(known, self.state))

    def cancel(self) -> None:
        """End what is in flight, as the user asked for, and settle it."""
        self._cancelled = frozenset(self.state.in_flight)
        self._parts.executor.cancel([self._request(attempt) for attempt in self.state.in_flight])
        while self.state.in_flight:
            self._parts.executor.wait(self._parts.poll_interval)
            self.observe()

    def perform(self, actions: Sequence[Action]) -> bool:
        """Do what was decided; return whether anything began or was settled (else it is time to wait)."""
        submissions = [action for action in actions if isinstance(action, decide.Submit)]
        others = [action for action in actions if not isinstance(action, decide.Submit)]
        for action in others:
            self._perform(action)
        return self._submit(submissions) if submissions else bool(others)

    def _perform(self, action: Action) -> None:
        match action:
            case decide.GiveUp(run, reason):
                self.commit([events.RunGivenUp(run, reason)])
            case decide.Skip(run, reason):
                self.commit([events.RunSkipped(run, reason)])
            case decide.Fit(number):
                self._fit(number)
            case decide.Propose(number):
                self._propose(number)
            case decide.Validate(run):
                self.commit([events.ValidationProposed(run)])
            case decide.BeginStop(rule, detail):
                self.commit([events.StopRuleReached(rule, detail)])
            case decide.Stop(rule, detail):
                self.commit([events.CampaignStopped(rule, detail)])
                self._parts.publish(self.state, self._current_models())

    def _submit(self, submissions: Sequence[decide.Submit]) -> bool:
        intents = [
            events.AttemptIntended(
                item.attempt,
                self._name(item.attempt),
                item.reservation.cores,
                item.reservation.limit,
                item.reservation.reserved,
                self._name(item.pack) if item.pack is not None else "",
            )
            for item in submissions
        ]
        # Whatever cannot be rendered must fail before its reservation is durable.
        self._requests |= {item.attempt: self._rendered(item) for item in intents}
        self.commit(intents)
        observations = self._parts.executor.submit([self._request(item.attempt) for item in submissions])
        self._settle(observations)
        return any(item.state is not AttemptState.ABSENT for item in observations)

    def _rendered(self, intent: events.AttemptIntended) -> AttemptRequest:
        flight = InFlight(intent.name, intent.cores, intent.limit, intent.reserved, pack=intent.pack)
        return self._parts.request(self.state, intent.attempt, flight)

    def _name(self, attempt: Attempt) -> str:
        return settle.submission_name(self.state.campaign["name"], self.state.id, attempt)

    def _settle(self, observations: Sequence[Observation]) -> None:
        observations = [item for item in observations if item.attempt in self.state.in_flight]
        most = settle.ceilings(observations, self.state)
        new = [
            settle.ended_by_user(event) if item.attempt in self._cancelled else event
            for item in observations
            for event in settle.events_of(
                item,
                self.state.in_flight[item.attempt],
                self._request(item.attempt),
                self._parts.collect,
                most[item.attempt],
            )
        ]
        # Submissions can be looked up again; only what was measured, charged or released must be durable.
        transient = (events.AttemptSubmitted, events.AttemptStarted)
        self.commit(new, durable=any(not isinstance(event, transient) for event in new))
        for event in new:
            if isinstance(event, events.AttemptFinished | events.AttemptWithdrawn):
                self._requests.pop(event.attempt, None)

    def _request(self, attempt: Attempt) -> AttemptRequest:
        if attempt not in self._requests:
            self._requests[attempt] = self._parts.request(self.state, attempt, self.state.in_flight[attempt])
        return self._requests[attempt]

    def _current_models(self) -> tuple[Model, ...]:
        if self._models is None:
            self._models = self._parts.fit(self.state)
        return self._models

    def _fit(self, number: int) -> None:
        self._models = self._parts.fit(self.state)
        quality = self._parts.assess(self._models)
        gained = gain(quality, Quality(self.state.smape, self.state.width))
        measured = any(self.state.runs[run].status is RunStatus.MEASURED for run in self.state.queue)
        fit = events.RoundCompleted(
            number, quality.smape, quality.width, bool(gained), measured, quality.widest, gained
        )
        self.commit([fit])
        self._parts.publish(self.state, self._models)

    def _propose(self, number: int) -> None:
        rng = np.random.default_rng([self._parts.seed, number])
        models = self._current_models()
        choices = self._parts.propose(self.state, models, rng)
        round_ = settle.round_of(number, choices, self.state, self._parts.count(self.state, models, choices))
        if round_.runs:
            self.commit([round_])
        else:
            self.commit([events.StopRuleReached("exhausted", "the strategy has nothing left to measure")])
