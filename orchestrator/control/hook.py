"""The command that is called for a notification: a list of arguments, never a shell line.

It receives the facts in its environment and as JSON on standard input, has a time limit, and is ended with
its children.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from orchestrator.campaign.schema import Notify

_KEPT_OUTPUT = 4096  # bytes of a hook's output
_TICK = 0.05  # seconds between checks whether a hook has ended
_SLACK = 5.0  # seconds to wait for a hook that was killed


class Hook:
    """The running process of the hook, if any, so that another thread can end it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._lock = threading.Lock()  # a number may be given to another process between wait and kill

    def begin(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start the process in a session of its own; raise ``OSError`` if that is impossible."""
        with self._lock:
            if self._ended:
                raise OSError("the controller has ended")
            self._process = subprocess.Popen(command, start_new_session=True, **options)
            return self._process

    def wait(self, process: subprocess.Popen[bytes], patience: float) -> int | None:
        """Return its exit code; or kill it with its children after ``patience`` seconds, and return None."""
        deadline = time.monotonic() + patience
        while True:
            with self._lock:
                code = process.poll()
                if code is not None:
                    self._process = None
                    return code
            if time.monotonic() >= deadline:
                break
            time.sleep(_TICK)
        self._kill()
        return None

    def end(self) -> None:
        """Kill the process of the hook, and refuse any further one."""
        self._ended = True
        self._kill()

    def _kill(self) -> None:
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                # The process was not waited for: the number is still its own.
                os.killpg(self._process.pid, signal.SIGKILL)
                with suppress(subprocess.TimeoutExpired):  # a process that waits for a disk dies later
                    self._process.wait(_SLACK)
            self._process = None


def call(options: Notify, facts: dict[str, Any], hook: Hook) -> str:
    """Call the hook with facts and wait for it; return how it ended and the beginning of its output.

    Raises
    ------
    OSError
        If it cannot be started.
    """
    variables = {
        **os.environ,
        "ORCHESTRATOR_EVENT": facts["event"],
        "ORCHESTRATOR_CAMPAIGN": facts["campaign"],
        "ORCHESTRATOR_DIRECTORY": facts["directory"],
        "ORCHESTRATOR_TEXT": facts["text"].replace("\0", "?"),
    }
    with tempfile.TemporaryFile() as given:  # not a pipe: a hook need not read
        given.write(json.dumps(facts, indent=1).encode() + b"\n")
        given.seek(0)
        process = hook.begin(
            options.command,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=variables,
            cwd=facts["directory"],
        )
    return _outcome(hook, process, options.timeout)


def _outcome(hook: Hook, process: subprocess.Popen[bytes], patience: float) -> str:
    deadline = time.monotonic() + patience
    assert process.stdout is not None
    with process.stdout:  # closed after the first bytes: endless output ends with SIGPIPE
        printed = _beginning(process, process.stdout.fileno(), deadline).decode(errors="replace").strip()
    code = hook.wait(process, max(0.0, deadline - time.monotonic()))
    ended = f"no end within {patience:g} s, killed" if code is None else f"exit code {code}"
    return f"{ended}: {printed}" if printed else ended


def _beginning(process: subprocess.Popen[bytes], output: int, deadline: float) -> bytes:
    """Read until there is enough, the process or its output ends, or time is up."""
    kept = b""
    ended = os.WEXITED | os.WNOHANG | os.WNOWAIT
    poll = select.poll()
    poll.register(output)
    while len(kept) < _KEPT_OUTPUT and time.monotonic() < deadline:
        over = os.waitid(os.P_PID, process.pid, ended) is not None
        if poll.poll(1000 * _TICK):
            more = os.read(output, _KEPT_OUTPUT - len(kept))
            if not more:
                break
            kept += more
        elif over:  # a process that the hook left in the background may hold the pipe for ever
            break
    return kept
