"""Notifications: a user's command is called when a campaign stops, fails, waits or nearly used its budget.

The command (see `orchestrator.control.hook`) runs beside the loop and cannot harm the campaign.
"""

from __future__ import annotations

import math
import queue
import socket
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import Notify
from orchestrator.control.hook import Hook, call
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.state import FAILURE_RULES, State
from orchestrator.report import advice
from orchestrator.report.event_text import describe
from orchestrator.report.status import counts
from orchestrator.resources import core_hours
from orchestrator.storage import iso
from orchestrator.units import format_cost, in_unit

LOG_NAME = "notify.log"
_MOST_WAITING = 100  # notifications; with a hook slower than its causes, the rest are dropped
_KEPT_FAILURES = 10
_SLACK = 5.0  # seconds beyond the hook's time limit to wait for it at the end


class Notifier:
    """Watches a campaign's entries and calls its hook; use as a context manager around the loop.

    Parameters
    ----------
    campaign
        Its section ``notify``; without one nothing is done.
    directory
        The campaign directory; the output of the hook is appended to ``notify.log`` there.
    """

    def __init__(self, campaign: Campaign, directory: Path):
        self._options = campaign.notify
        self._campaign = campaign
        self._directory = directory.absolute()
        self._streak: deque[dict[str, str]] = deque(maxlen=_KEPT_FAILURES)
        self._failed = 0  # attempts in a row
        self._low = False
        self._state = State()
        self._began = False
        self._waiting: queue.Queue[dict[str, Any] | None] = queue.Queue(_MOST_WAITING)
        self._caller: threading.Thread | None = None
        self._deadline = math.inf
        self._hook = Hook()

    def __enter__(self) -> Notifier:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and self._began:  # else nothing has begun, and who started it reads why
            what = str(error) or type(error).__name__
            self._notify("stop", "error", f"the controller failed: {what}")
        self._finish()

    def seen(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Pass on entries of earlier controllers: they cause no notification, but failures are counted."""
        for entry in entries:
            self._count(entry.event)
            yield entry

    def begin(self, state: State) -> None:
        """Remember the state of the campaign before the loop begins."""
        self._began = True
        self._state = state
        self._low = self._is_low(state)

    def listen(self, entry: Entry, state: State) -> None:
        """Notify of an entry if it is one of the events that a hook is called for."""
        self._state = state
        before = self._failed
        self._count(entry.event)
        options = self._options
        match entry.event:
            case events.CampaignStopped(rule, detail):
                early = advice.to_continue(state, self._directory) if rule in FAILURE_RULES else ""
                text = f"the campaign stopped: {rule} ({detail})"
                self._notify("stop", rule, f"{text}. {early}" if early else text)
            case events.ControllerStopped(reason):
                how = advice.to_continue(state, self._directory)
                text = f"the controller stopped: {reason}; the campaign can be resumed"
                self._notify("stop", reason, f"{text}. {how}" if how else text)
            case events.OutageBegan(repeated=False) | events.OutageEnded():
                self._notify("outage", entry.event.what, describe(entry.event))
            case events.CampaignPaused(cause, detail):
                how = advice.to_continue(state, self._directory)
                self._notify("failures", cause, f"the campaign pauses: {cause} ({detail}). {how}")
            case events.AttemptFinished() | events.AttemptCharged() if options is not None:
                if self._failed > before:
                    self._failures_in_a_row(options)
                self._little_budget(state)

    def _count(self, event: events.Event) -> None:
        if not isinstance(event, events.AttemptFinished):
            return
        if event.failure is None:
            self._failed = 0
            self._streak.clear()
        elif not event.cancelled:
            self._failed += 1
            failure = {"attempt": event.attempt.id, "class": str(event.failure), "reason": event.reason}
            self._streak.append(failure)

    def _failures_in_a_row(self, options: Notify) -> None:
        # At n, 2n, 4n ...: a night of failures does not cause a thousand messages.
        times, rest = divmod(self._failed, options.streak)
        if rest == 0 and times > 0 and times & (times - 1) == 0:
            last = self._streak[-1]
            text = f"{self._failed} attempts failed in a row; the last: {last['attempt']}: {last['reason']}"
            self._notify("failures", last["class"], text)

    def _little_budget(self, state: State) -> None:
        low = self._is_low(state)
        if low and not self._low:
            stop = self._campaign.stop
            left = in_unit(stop.budget - state.spent, stop.unit)
            text = f"{left} of {format_cost(stop.budget, stop.unit)} are left"
            self._notify("budget", "low", text)
        self._low = low

    def _is_low(self, state: State) -> bool:
        budget = self._campaign.stop.budget
        return self._options is not None and budget - state.spent <= budget * self._options.left / 100

    def _notify(self, event: str, cause: str, text: str) -> None:
        if self._options is None or event not in self._options.on:
            return
        try:
            self._waiting.put_nowait(self._facts(event, cause, text))
        except queue.Full:
            return
        if self._caller is None:
            # A daemon thread: whatever the hook does, the controller can end.
            self._caller = threading.Thread(target=self._call_all, args=(self._options,), daemon=True)
            self._caller.start()

    def _facts(self, event: str, cause: str, text: str) -> dict[str, Any]:
        state, budget = self._state, self._campaign.stop.budget
        return {
            "event": event,
            "cause": cause,
            "text": f"{self._campaign.name}: {text}",
            "campaign": self._campaign.name,
            "id": state.id,
            "directory": str(self._directory),
            "host": socket.gethostname(),
            "time": iso(state.time),
            "simulated": self._campaign.executor.name == "simulated",
            "round": state.round,
            "runs": counts(state),
            "cost": {
                "unit": "core-hours",
                "budget": core_hours(budget),
                "spent": core_hours(state.spent),
                "reserved": core_hours(state.reserved),
                "left": core_hours(budget - state.spent - state.reserved),
            },
            "failures": list(self._streak),
        }

    def _finish(self) -> None:
        if self._caller is None or self._options is None:
            return
        self._deadline = time.monotonic() + self._options.timeout
        try:
            with suppress(queue.Full):
                self._waiting.put(None, timeout=self._options.timeout)
            self._caller.join(2 * self._options.timeout + _SLACK)
        finally:  # a hook that is interrupted or too slow would otherwise run for ever
            self._hook.end()

    def _call_all(self, options: Notify) -> None:
        while (facts := self._waiting.get()) is not None:
            if facts["event"] != "stop" and time.monotonic() > self._deadline:
                continue  # after a slow hook, only the notification of the stop is still sent
            try:
                outcome = call(options, facts, self._hook)
            except Exception as error:  # noqa: BLE001 (nothing that a hook causes may reach the campaign)
                outcome = f"cannot be called: {error!r}"
            self._log(
                f"{facts['time']} {facts['event']}: {facts['text']}\n  {options.command[0]}: {outcome}\n"
            )

    def _log(self, text: str) -> None:
        try:
            with (self._directory / LOG_NAME).open("a", encoding="utf-8", errors="replace") as file:
                file.write(text)
        except OSError:
            pass  # for example a full disk: the campaign itself reports that
