"""The faulty Slurm for other processes: its commands as executables, its jobs as real processes.

``python -m tests.slurm.faulty.server [FAULTS.json]`` keeps one running until Ctrl-C, for humans.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.slurm.faulty.commands import COMMANDS, NEVER, Commands
from tests.slurm.faulty.faults import Fault, load
from tests.slurm.faulty.world import Job, Settings, World

TICK = 0.02  # seconds between looks at what is due
CLIENT = """\
#!{python} -IS
import os, socket, sys, time
from json import dumps, loads
connection = socket.socket(socket.AF_UNIX)
connection.connect({socket!r})
call = {{"name": {name!r}, "arguments": sys.argv[1:], "environment": dict(os.environ)}}
connection.sendall(dumps(call).encode() + b"\\n")
answer = loads(connection.makefile().readline())
time.sleep(answer["seconds"])
sys.stdout.write(answer["out"])
sys.stderr.write(answer["err"])
sys.exit(answer["code"])
"""


@dataclass
class ProcessRunner:
    """Executes jobs as processes of this machine, in sessions of their own."""

    environments: dict[Path, dict[str, str]] = field(default_factory=dict)
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _ending: dict[str, str] = field(default_factory=dict)

    def start(self, world: World, job: Job, fault: Fault | None) -> None:
        """Execute the script of a job."""
        options = dict(line.lstrip("-").partition("=")[::2] for line in job.request.options)
        place: dict[str, object] = {
            "SLURM_ARRAY_JOB_ID": job.number,
            "SLURM_ARRAY_TASK_ID": job.index,
            "SLURM_JOB_ID": job.number,
        }
        place |= {"SLURM_JOB_NODELIST": job.starts[-1].node, "SLURM_JOB_START_TIME": int(world.now)}
        place |= {"SLURM_NTASKS": 1, "SLURM_JOB_NUM_NODES": 1, "SLURM_NODEID": 0, "SLURM_PROCID": 0}
        place |= {"SLURM_LOCALID": 0}
        environment = self.environments.get(job.request.folder, dict(os.environ))
        output = options["output"].strip("'\"").replace("%A", str(job.number)).replace("%a", str(job.index))
        with Path(output).open("ab") as stream:
            self._processes[job.id] = subprocess.Popen(
                ["/bin/bash", str(job.request.folder / "submission.sh")],
                cwd=options.get("chdir", "/").strip("'\""),
                env=environment | {name: str(value) for name, value in place.items()},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if fault is not None:
            world.at(world.now + fault.value, lambda: self._act(world, job, fault.what))

    def stop(self, world: World, job: Job, state: str, kill: bool) -> None:
        """Signal all processes of a job; those that stay are killed after the site's patience."""
        self._ending[job.id] = state
        self._signal(job, signal.SIGKILL if kill else signal.SIGTERM)
        world.at(world.now + world.settings.kill_wait, lambda: self._signal(job, signal.SIGKILL))

    def reap(self, world: World) -> None:
        """Take jobs whose processes have ended off their nodes."""
        for identifier, process in list(self._processes.items()):
            code = process.poll()
            job = world.job(identifier)
            if code is not None and job is not None:
                del self._processes[identifier]
                word = "COMPLETED" if code == 0 else "FAILED"
                world.end(job, self._ending.pop(identifier, word))

    def _act(self, world: World, job: Job, what: str) -> None:
        words = {"node fails": "NODE_FAIL", "killed": "FAILED", "out of memory": "OUT_OF_MEMORY"}
        if job.id not in self._processes:
            return
        if what in words:
            self.stop(world, job, words[what], kill=True)
        elif what == "requeue":
            world.requeue(job)
        elif what in {"scancel from outside", "preempted"}:
            self.stop(world, job, "PREEMPTED" if what == "preempted" else "CANCELLED by 0", kill=False)

    def _signal(self, job: Job, number: signal.Signals) -> None:
        if job.id in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(self._processes[job.id].pid, number)


class FaultySlurm:
    """Serve the commands in ``bin`` from entry to exit; jobs that are left then are killed."""

    def __init__(
        self, directory: Path, settings: Settings | None = None, faults: Sequence[Fault] = ()
    ) -> None:
        self.bin = directory / "bin"
        self.bin.mkdir(parents=True)
        self._lock = threading.Lock()
        self._runner = ProcessRunner()
        self.world = World(self._runner, settings or Settings(), faults, time.time())
        self.commands = Commands(self.world, faults)
        # The path of a socket has room for a hundred bytes only.
        self._socket = Path(tempfile.mkdtemp(prefix="slurm-")) / "s"
        self._server = socketserver.ThreadingUnixStreamServer(str(self._socket), self._handler())
        self._server.daemon_threads = True
        self._over = threading.Event()
        for name in COMMANDS:
            path = self.bin / name
            path.write_text(CLIENT.format(python=sys.executable, socket=str(self._socket), name=name))
            path.chmod(0o755)

    def __enter__(self) -> FaultySlurm:
        for work in (self._server.serve_forever, self._tick):
            threading.Thread(target=work, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        with self._lock:
            for job in self.world.active():
                if job.state == "RUNNING":
                    self._runner.stop(self.world, job, "CANCELLED", kill=True)
        self._socket.unlink(missing_ok=True)
        self._socket.parent.rmdir()

    def _tick(self) -> None:
        while not self._over.wait(TICK):
            with self._lock:
                self._runner.reap(self.world)
                self.world.advance(time.time())

    def _handler(self) -> type[socketserver.StreamRequestHandler]:
        slurm = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                call: dict[str, Any] = json.loads(self.rfile.readline())
                with slurm._lock:
                    slurm.world.advance(time.time())
                    if call["name"] == "sbatch":
                        folder = Path(call["arguments"][-1]).parent
                        slurm._runner.environments[folder] = call["environment"]
                    answer = slurm.commands.call(call["name"], call["arguments"])
                seconds = 1e6 if answer.seconds == NEVER else answer.seconds
                reply = {"out": answer.out, "err": answer.err, "code": answer.code, "seconds": seconds}
                with suppress(BrokenPipeError):
                    self.wfile.write(json.dumps(reply).encode() + b"\n")

        return Handler


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C and say how to use it."""
    parser = argparse.ArgumentParser(prog="python -m tests.slurm.faulty.server", description=main.__doc__)
    parser.add_argument(
        "faults", nargs="?", type=Path, help="JSON list of faults, see tests/slurm/faulty/faults.py"
    )
    parser.add_argument("--no-accounting", action="store_true", help="as on a site without slurmdbd")
    options = parser.parse_args(arguments)
    faults = load(options.faults) if options.faults else ()
    settings = Settings(accounting=not options.no_accounting)
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as folder,
        FaultySlurm(Path(folder), settings, faults) as slurm,
        suppress(KeyboardInterrupt),
    ):
        print(f"export PATH={slurm.bin}:$PATH", flush=True)
        signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
