"""Daemons that live as long as a test needs them, and waiting for what they do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

HANG = 300.0  # seconds after which nothing more is expected, on the slowest machine


def free_ports(count: int) -> int:
    """Return the first of ``count`` consecutive free TCP ports, below those that Linux hands out itself."""
    start = 17000 + os.getpid() * 16 % 14000
    for first in range(start, start + 800, count):
        with ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise OSError(f"no {count} consecutive free ports from {start}")


def wait_for(condition: Callable[[], bool], what: str, seconds: float = HANG) -> None:
    """Return when ``condition`` holds; raise ``TimeoutError`` naming ``what`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.1)


def marked(*variables: str, command: str = "") -> list[int]:
    """Return the processes with these variables in their environment."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name = (process / "comm").read_text().strip()
            found = (process / "environ").read_bytes().split(b"\0")
        except OSError:  # it ended while we looked
            continue
        if command in ("", name) and {item.encode() for item in variables} <= {*found}:
            pids.append(int(process.name))
    return pids


class Daemons:
    """Daemons by name, each with its output in a file of that name in one directory."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._directory, self._environment = directory, environment
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._processes

    def running(self, name: str) -> bool:
        """Whether one has been started and has not ended."""
        return name in self._processes and self._processes[name].poll() is None

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start one."""
        # pdeathsig: whatever happens to this process, its daemons do not outlive it.
        with (self._directory / f"{name}.out").open("ab") as output:
            self._processes[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", *command],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def send(self, name: str, number: signal.Signals) -> None:
        """Send one a signal, if it is there."""
        if name in self._processes:
            self._processes[name].send_signal(number)

    def end(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End one, if it is there, and wait until it is gone."""
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def end_all(self) -> None:
        """End them in the reverse order of their start."""
        for name in reversed(list(self._processes)):
            self.end(name)

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for what needs all of them alive."""

        def ready() -> bool:
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise RuntimeError(
                        f"{name} ended:\n{(self._directory / f'{name}.out').read_text()[-2000:]}"
                    )
            return condition()

        wait_for(ready, what)
