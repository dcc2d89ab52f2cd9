"""The notification hook: when it is called, with what, and that it harms nothing."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import Notify
from orchestrator.control import notify, session
from orchestrator.control.hook import Hook, call
from orchestrator.control.notify import Notifier
from orchestrator.errors import CampaignError, JournalWriteError
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.state import State
from orchestrator.types import Attempt, FailureClass, Point, Run
from tests.journal.attempts import attempt_finished
from tests.processes import wait_until_dead
from tests.requirements import need

DOCUMENT = (Path(__file__).parents[2] / "docs" / "unattended.md").read_text()
CAMPAIGN = """
name: demo
application: generic
program: {{arguments: ["{{p}}"], output: [{{callpath: main, pattern: "t=(.*)"}}]}}
parameters: {{p: [1, 2, 3, 4, 5, 6, 7, 8]}}
measure: {{time_limit: 60 s}}
stop: {{budget: 10 core-hours, failures: 1000}}
notify: {notify}
executor: {{name: simulated, failure_rate: {failing}, truth: {{main: "p"}}}}
"""
# Writes each call's facts into a file of its own.
RECORD = '#!/bin/sh\ncat > "${0%/*}/call-$(ls "${0%/*}" | grep -c call-).json"\n'
FACTS = {"event": "stop", "campaign": "demo", "directory": "/", "text": "over"}


def hook(folder: Path, text: str = RECORD, name: str = "ho ok") -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def load(program: Path, failing: float = 0.0, **options: Any) -> Campaign:
    chosen = {"command": [str(program)], **options}
    return loader.loads(CAMPAIGN.format(notify=json.dumps(chosen), failing=failing))


def calls(folder: Path) -> list[dict[str, Any]]:
    paths = sorted(folder.glob("call-*.json"), key=lambda path: int(path.stem[5:]))
    return [json.loads(path.read_text()) for path in paths]


def watched(chosen: Campaign, directory: Path, what: Sequence[events.Event], earlier: int = 0) -> None:
    """Show events to a notifier, the first ``earlier`` of them as those of an earlier controller."""
    entries = [Entry(number, float(number), event) for number, event in enumerate(what, start=1)]
    spent = 0.0
    with Notifier(chosen, directory) as notifier:
        for _ in notifier.seen(iter(entries[:earlier])):
            pass
        notifier.begin(State())
        for entry in entries[earlier:]:
            spent += getattr(entry.event, "cost", 0.0)
            notifier.listen(entry, State(spent=spent, time=entry.time))


def finished(failed: bool, cost: float = 1.0) -> events.AttemptFinished:
    failure = FailureClass.TIMEOUT if failed else None
    return attempt_finished(Attempt(Run(Point.of(p=1))), cost=cost, failure=failure, reason="slow" * failed)


# --- when -----------------------------------------------------------------------------------------------


def test_a_campaign_tells_that_it_stopped(tmp_path: Path) -> None:
    (tmp_path / "campaign").mkdir()
    state = session.run(load(hook(tmp_path)), tmp_path / "campaign")
    (sent,) = calls(tmp_path)
    assert state.stopped is not None
    assert (sent["event"], sent["cause"]) == ("stop", state.stopped.rule)
    assert sent["simulated"] is True
    assert sent["cost"]["spent"] == pytest.approx(state.spent / 3600)
    assert sent["directory"] == str(tmp_path / "campaign")
    assert state.stopped.rule in sent["text"]
    assert ": exit code 0" in (tmp_path / "campaign" / notify.LOG_NAME).read_text()


def test_failures_in_a_row_are_told_ever_more_rarely(tmp_path: Path) -> None:
    watched(load(hook(tmp_path), streak=2), tmp_path, [finished(True)] * 17)
    sent = calls(tmp_path)
    assert [item["text"].split(": ")[1].split()[0] for item in sent] == ["2", "4", "8", "16"]
    assert {item["event"] for item in sent} == {"failures"} and sent[0]["cause"] == "timeout"
    assert [len(item["failures"]) for item in sent] == [2, 4, 8, 10]
    assert sent[0]["failures"][0] == {"attempt": "p=1/time-1/attempt-1", "class": "timeout", "reason": "slow"}


def test_a_success_ends_a_row(tmp_path: Path) -> None:
    watched(load(hook(tmp_path), streak=2), tmp_path, [finished(True), finished(False), finished(True)])
    assert calls(tmp_path) == []


def test_a_row_goes_on_over_controllers_and_nothing_is_told_twice(tmp_path: Path) -> None:
    watched(load(hook(tmp_path), streak=3), tmp_path, [finished(True)] * 5, earlier=2)
    assert [item["text"].split(": ")[1][:1] for item in calls(tmp_path)] == ["3"]
    again = tmp_path / "again"
    again.mkdir()
    watched(load(hook(again), streak=3), again, [finished(True)] * 5, earlier=3)
    assert calls(again) == []


def test_a_low_budget_is_told_once(tmp_path: Path) -> None:
    costs = [5, 3.9, 0.2, 0.2]  # of 10 core-hours
    watched(load(hook(tmp_path)), tmp_path, [finished(False, cost * 3600) for cost in costs])
    (sent,) = calls(tmp_path)
    assert sent["event"] == "budget"
    assert sent["text"] == "demo: 0.9 of 10 core-hours are left"


def test_a_charge_that_was_corrected_may_use_up_the_budget_or_free_it(tmp_path: Path) -> None:
    one = Attempt(Run(Point.of(p=1)))
    corrections = [events.AttemptCharged(one, 1.0, cost * 3600) for cost in (4.5, -9, 9)]
    watched(load(hook(tmp_path)), tmp_path, [finished(False, 5 * 3600), *corrections])
    assert [item["text"] for item in calls(tmp_path)] == ["demo: 0.5 of 10 core-hours are left"] * 2


def test_only_what_is_wanted_is_told(tmp_path: Path) -> None:
    chosen = load(hook(tmp_path), on=["budget"], streak=1)
    watched(chosen, tmp_path, [finished(True), events.CampaignStopped("budget", "")])
    assert calls(tmp_path) == []


def test_an_interrupt_and_an_error_are_stops_too(tmp_path: Path) -> None:
    chosen = load(hook(tmp_path))
    watched(chosen, tmp_path, [events.ControllerStopped("interrupted")])
    with pytest.raises(JournalWriteError), Notifier(chosen, tmp_path) as notifier:
        notifier.begin(State())
        raise JournalWriteError("no space left")
    assert [item["cause"] for item in calls(tmp_path)] == ["interrupted", "error"]
    assert "no space left" in calls(tmp_path)[1]["text"]


def test_a_campaign_that_cannot_begin_is_no_failure_of_its_controller(tmp_path: Path) -> None:
    with pytest.raises(CampaignError), Notifier(load(hook(tmp_path)), tmp_path):
        raise CampaignError("stop.budget: less than what is spent already")
    assert calls(tmp_path) == []


# --- what it cannot do -----------------------------------------------------------------------------------


def outcome(folder: Path, text: str, timeout: float = 60.0, arguments: Sequence[str] = ()) -> str:
    options = Notify(command=(str(hook(folder, text)), *arguments), timeout=timeout)
    return call(options, {**FACTS, "directory": str(folder)}, Hook())


def test_nothing_reaches_a_shell(tmp_path: Path) -> None:
    nasty = ["$(touch pwned)", "`touch pwned`", "'; touch pwned;'", "a\ntouch pwned\n", "* ~ {a,b}", ""]
    text = "$(touch pwned)\n`touch pwned`'\"\0"
    show = '#!/bin/sh\nfor word; do printf "<%s>" "$word"; done; printf "<%s>" "$ORCHESTRATOR_TEXT"\n'
    options = Notify(command=(str(hook(tmp_path, show)), *nasty))
    result = call(options, {**FACTS, "directory": str(tmp_path), "text": text}, Hook())
    shown = "".join(f"<{word}>" for word in [*nasty, text.replace("\0", "?")])
    assert result == f"exit code 0: {shown}"
    assert not (tmp_path / "pwned").exists()


def test_how_it_ended_is_told_with_what_it_printed(tmp_path: Path) -> None:
    assert outcome(tmp_path, "#!/bin/sh\necho no server >&2; exit 3\n") == "exit code 3: no server"
    assert outcome(tmp_path, "#!/bin/sh\nexec < /dev/null\n") == "exit code 0", "it need not read"


def test_one_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    text = '#!/bin/sh\nsleep 600 &\necho $! > "${0%/*}/pid"\nsleep 600\n'
    assert outcome(tmp_path, text, timeout=0.5) == "no end within 0.5 s, killed"
    child = int((tmp_path / "pid").read_text())
    wait_until_dead(child)


def test_one_that_hangs_does_not_outlive_a_controller_that_is_interrupted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = hook(tmp_path, '#!/bin/sh\nsleep 600 &\necho $! > "${0%/*}/pid"\nsleep 600\n')

    def interrupted(*_: object) -> None:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        watched(load(program, timeout=600), tmp_path, [events.ControllerStopped("interrupted")])
    wait_until_dead(int((tmp_path / "pid").read_text()))


def test_what_the_user_cancels_is_no_failure_in_a_row(tmp_path: Path) -> None:
    story = [replace(finished(True), cancelled=True)] * 9
    watched(load(hook(tmp_path), streak=2), tmp_path, story)
    assert calls(tmp_path) == []


def test_what_the_user_cancels_after_failures_in_a_row_repeats_nothing(tmp_path: Path) -> None:
    cancelled = replace(finished(True), cancelled=True)
    watched(load(hook(tmp_path), streak=3), tmp_path, [*[finished(True)] * 3, cancelled, cancelled])
    assert len(calls(tmp_path)) == 1


def test_an_interrupt_is_notified_once_though_its_runs_are_cancelled_later(tmp_path: Path) -> None:
    chosen, directory = load(hook(tmp_path)), tmp_path / "campaign"
    looks = iter(range(100))
    session.run(chosen, directory, session.Hooks(interrupted=lambda: next(looks) > 2))
    assert [item["cause"] for item in calls(tmp_path)] == ["interrupted"]
    session.run(chosen, directory, session.Hooks(cancel_on_interrupt=True, begin=False))
    assert len(calls(tmp_path)) == 1


def test_one_that_prints_without_end_is_cut_off(tmp_path: Path) -> None:
    result = outcome(tmp_path, "#!/bin/sh\nexec yes\n")
    assert result.count("y") <= 4096 and result.startswith("exit code -13: y")


def test_what_it_leaves_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    text = '#!/bin/sh\nsetsid sleep 60 &\necho $! > "${0%/*}/pid"\necho done\n'
    assert outcome(tmp_path, text, timeout=50.0) == "exit code 0: done"
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_one_that_cannot_be_started_harms_nothing(tmp_path: Path) -> None:
    program = hook(tmp_path)
    chosen = load(program)
    program.unlink()
    directory = tmp_path / "campaign"
    state = session.run(chosen, directory)
    assert state.stopped is not None
    assert "cannot be called: FileNotFoundError" in (directory / notify.LOG_NAME).read_text()


def test_behind_a_slow_hook_only_the_last_word_is_waited_for(tmp_path: Path) -> None:
    program = hook(tmp_path, "#!/bin/sh\nexec sleep 600\n")
    story = [finished(True), finished(False)] * 50
    watched(load(program, streak=1, timeout=0.3), tmp_path, [*story, events.CampaignStopped("budget", "")])
    sent = (tmp_path / notify.LOG_NAME).read_text().splitlines()[::2]
    assert "the campaign stopped" in sent[-1]
    assert len(sent) < 25, "of 50 rows of failures most were not waited for"


def test_a_log_that_cannot_be_written_harms_nothing(tmp_path: Path) -> None:
    (tmp_path / notify.LOG_NAME).mkdir()
    watched(load(hook(tmp_path)), tmp_path, [events.CampaignStopped("budget", "")])
    assert len(calls(tmp_path)) == 1


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{command: []}", "notify.command: is empty"),
        ("{command: [./none]}", "notify.command: './none' does not exist"),
        ("{command: mail}", "notify.command: must be a list"),
        ("{comand: [mail]}", "did you mean 'command'?"),
        ("{command: [sh], on: [end]}", "notify.on.0: unknown value"),
        ("{command: [sh], left: 100}", "notify.left: must be less than 100"),
        ("{command: [sh], timeout: 1 h}", "notify.timeout: must be at most 600"),
    ],
)
def test_mistakes_are_refused_before_anything_is_spent(section: str, message: str) -> None:
    with pytest.raises(CampaignError, match=re.escape(message)):
        loader.loads(CAMPAIGN.format(notify=section, failing=0.0))


# --- the examples of the documentation -------------------------------------------------------------------


def example(name: str) -> str:
    blocks: list[str] = re.findall(r"```sh\n(.*?)```", DOCUMENT, re.DOTALL)
    return next(block for block in blocks if f"# {name} " in block)


def test_the_example_for_mail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook(tmp_path, '#!/bin/sh\n[ "$1" = -t ] && cat > "${0%/*}/mail"\n', "sendmail")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert outcome(tmp_path, example("tell-by-mail"), arguments=["me@example.org"]) == "exit code 0"
    head, _, body = (tmp_path / "mail").read_text().partition("\n\n")
    assert head == "To: me@example.org\nSubject: [demo] stop"
    text, _, facts = body.partition("\n\n")
    assert text == "over" and json.loads(facts)["event"] == "stop"


def test_the_example_for_a_webhook(tmp_path: Path) -> None:
    need(shutil.which("curl"), "curl")
    received: list[tuple[str | None, bytes]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            received.append((self.headers["Content-Type"], self.rfile.read(size)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        config = tmp_path / "address"
        config.write_text(f'url = "http://127.0.0.1:{server.server_port}/hooks/1"\nnoproxy = "*"\n')
        assert outcome(tmp_path, example("tell-chat"), arguments=[str(config)]) == "exit code 0"
        server.shutdown()
    ((kind, body),) = received
    assert kind == "application/json" and json.loads(body)["text"] == "over"
