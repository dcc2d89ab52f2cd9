"""A real Slurm on this machine, in a directory of its own and on ports of its own.

Four nodes of four cores in the partition ``debug``, and one of two cores in ``small``. On ``n5``, jobs in
``spot`` and ``spot-requeue`` give way to those in ``urgent``. ``pair`` has ``n6`` and ``n7``, ``other`` has
``n8`` and ``n9``. In ``memory``, a job that uses more than it asked for is ended; its node has a name of its
own on this machine, because control groups have only one hierarchy.

``python -m tests.slurm.cluster [--no-accounting]`` keeps one running until Ctrl-C, for humans.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.slurm.cluster_files import GROUPS, KILL_WAIT, NODES, PORTS, Site, memory_node
from tests.slurm.daemons import HANG, Daemons, free_ports, marked, wait_for

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "setpriv")
ACCOUNTING_PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db", "sacctmgr")
SQL = """\
CREATE DATABASE slurm_acct_db;
CREATE USER 'slurm'@'%' IDENTIFIED BY 'slurm';
GRANT ALL ON slurm_acct_db.* TO 'slurm'@'%';
FLUSH PRIVILEGES;
"""


def missing(accounting: bool) -> tuple[str, ...]:
    """Return what is missing on this machine for a cluster; empty where one can be started."""
    programs = PROGRAMS + (ACCOUNTING_PROGRAMS if accounting else ())
    absent = tuple(program for program in programs if shutil.which(program) is None)
    return absent if os.geteuid() == 0 else (*absent, "root")


class SlurmCluster:
    """Start the daemons on entry; on exit end them, and only them, and remove the directory.

    Attributes
    ----------
    conf
        The ``slurm.conf``: whoever has it in ``SLURM_CONF`` talks to this cluster.
    memory_node
        The node of the partition ``memory``; empty where this machine's control groups cannot be used.
    """

    def __init__(self, accounting: bool = True) -> None:
        self.accounting = accounting
        self.directory = Path(tempfile.mkdtemp(prefix="slurm-"))
        self.conf = self.directory / "etc" / "slurm.conf"
        self.memory_node = memory_node()
        self.environment: Mapping[str, str] = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_"))},
            "SLURM_CONF": str(self.conf),
        }
        self._daemons = Daemons(self.directory, self.environment)
        self._first_job = 1

    def __enter__(self) -> SlurmCluster:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def run(self, *command: str, check: bool = True) -> str:
        """Return what a command of Slurm prints on this cluster."""
        done = subprocess.run(
            command, env=self.environment, check=False, capture_output=True, text=True, timeout=HANG
        )
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed ({done.returncode}): {done.stderr.strip()}")
        return done.stdout

    def described(self) -> str:
        """Return what an engineer asks first when a job did not do what it should."""
        questions = (("sinfo", "-N", "-l"), ("squeue", "-l"), ("scontrol", "show", "jobs"))
        answers = [self.run(*question, check=False)[-4000:] for question in questions]
        log = (self.directory / "slurmctld.out").read_text(errors="replace").splitlines()[-60:]
        return "\n".join([*answers, *log])

    def start_node(self, name: str) -> None:
        """Start the ``slurmd`` of a node and wait until the node can take jobs."""
        self.start_daemon(f"slurmd-{name}")
        self._wait_for_nodes([name])

    def kill_node(self, name: str) -> None:
        """Kill the ``slurmd`` of a node, as a crash of the node does, and have Slurm notice it at once."""
        self._daemons.end(f"slurmd-{name}", signal.SIGKILL)
        self.run("scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=killed")

    def fail_node(self, name: str) -> None:
        """Kill a node with all that runs there, as a power failure does, and have Slurm notice it at once."""
        self.kill_node(name)
        self.kill_jobs_on(name)

    def kill_jobs_on(self, name: str) -> None:
        """Kill all that runs on a node."""
        for pid in marked(f"SLURM_CONF={self.conf}", f"SLURMD_NODENAME={name}"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def restart_controller(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End ``slurmctld`` and start it again; after SIGKILL it has forgotten the last seconds.

        Its jobs get numbers never used: a node that is sent a forgotten one again is drained, and Slurm waits
        for that job until its time limit.
        """
        self.end_controller(how)
        self.start_controller()
        self._daemons.wait_for(lambda: self._succeeds("scontrol", "ping"), "slurmctld")

    def repair(self) -> None:
        """Make it whole again: what a test broke and, because it failed, did not restore."""
        self.run("scancel", "--user=root", check=False)
        if self.accounting and not self._daemons.running("slurmdbd"):
            self.start_accounting()
        if not self._daemons.running("slurmctld"):
            self.restart_controller()
        dead = [name for name in NODES if not self._daemons.running(f"slurmd-{name}")]
        for name in dead:
            self.start_daemon(f"slurmd-{name}")
        for name in re.findall(r"(?m)^PartitionName=(?!DEFAULT)(\S+)", self.conf.read_text()):
            self.run("scontrol", "update", f"PartitionName={name}", "State=UP")
        for line in set(self.run("sinfo", "--noheader", "--Node", "--format=%N|%T").splitlines()):
            name, _, state = line.partition("|")
            if name not in dead and state.startswith(("drain", "down")):
                self.run("scontrol", "update", f"NodeName={name}", "State=RESUME", check=False)
        self._wait_for_nodes(self._nodes())

    def end_controller(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End ``slurmctld``."""
        self._daemons.end("slurmctld", how)
        self._first_job += 1000
        text = self.conf.read_text()
        self.conf.write_text(f"{text.split('FirstJobId=')[0]}FirstJobId={self._first_job}\n")

    def start_controller(self) -> None:
        """Start ``slurmctld`` again, without waiting for it."""
        self._daemons.start("slurmctld", ["slurmctld", "-D"])

    def send(self, daemon: str, number: signal.Signals) -> None:
        """Send ``slurmctld``, ``slurmdbd`` or ``slurmd-NODE`` a signal."""
        self._daemons.send(daemon, number)

    def end_daemon(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End ``slurmdbd`` or ``slurmd-NODE``; Slurm has to notice that by itself."""
        self._daemons.end(name, how)

    def start_daemon(self, name: str) -> None:
        """Start one of them again, without waiting for it."""
        kind, _, node = name.partition("-")
        self._daemons.start(name, [kind, *(["-N", node] if node else []), "-D"])

    def stop_accounting(self) -> None:
        """End ``slurmdbd``: from now on ``sacct`` fails."""
        self._daemons.end("slurmdbd")

    def start_accounting(self) -> None:
        """Start ``slurmdbd`` and wait until it answers."""
        self._daemons.start("slurmdbd", ["slurmdbd", "-D"])
        self._daemons.wait_for(lambda: self._succeeds("sacctmgr", "show", "cluster"), "slurmdbd")

    def stop(self) -> None:
        """Cancel the jobs, end every daemon in reverse order of its start, remove the directory."""
        if "slurmctld" in self._daemons and self._succeeds("scancel", "--state=PENDING", "--user=root"):
            self._succeeds("scancel", "--user=root")
            self._end_steps()
        self._daemons.end_all()
        for folder, _, _ in os.walk(GROUPS / f"slurm_{self.memory_node}", topdown=False):
            Path(folder).rmdir()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _start(self) -> None:
        ports = free_ports(PORTS)
        for name in ("etc", "state", "sql"):
            (self.directory / name).mkdir()
        self.directory.chmod(0o755)  # mkdtemp's 0700 shuts out the clients of the munge socket
        site = Site(self.directory, ports, self.accounting, self.memory_node)
        site.write()
        self._start_munge()
        if self.accounting:
            self._start_database(site.sql_port)
            self.start_accounting()
            self._add_association()
        self._daemons.start("slurmctld", ["slurmctld", "-D"])
        for name in NODES:
            self._daemons.start(f"slurmd-{name}", ["slurmd", "-N", name, "-D"])
        if self.memory_node:
            command = ["slurmd", "-N", self.memory_node, "-D", "-f", str(self.conf.with_name("memory.conf"))]
            self._daemons.start(f"slurmd-{self.memory_node}", command)
        self._wait_for_nodes(self._nodes())

    def _nodes(self) -> list[str]:
        return [*NODES, *filter(None, [self.memory_node])]

    def _start_munge(self) -> None:
        key = self.directory / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        files = {"key-file": key.name, "socket": "munge.socket", "pid-file": "munge.pid"}
        files |= {"log-file": "munge.log", "seed-file": "munge.seed"}
        options = [f"--{option}={self.directory / name}" for option, name in files.items()]
        self._daemons.start("munged", ["munged", "--foreground", "--force", *options])
        self._daemons.wait_for((self.directory / "munge.socket").exists, "munged")

    def _start_database(self, port: int) -> None:
        data, unix_socket = self.directory / "sql", self.directory / "sql.socket"
        common = ["--no-defaults", f"--datadir={data}", "--user=root"]
        subprocess.run(
            ["mariadb-install-db", *common, "--auth-root-authentication-method=normal", "--skip-test-db"],
            check=True,
            capture_output=True,
            timeout=300,
        )
        lasting = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=128M", "--sync-binlog=0"]
        address = [f"--socket={unix_socket}", f"--port={port}", "--bind-address=127.0.0.1"]
        setup = self.directory / "setup.sql"
        setup.write_text(SQL)
        pid_file = f"--pid-file={self.directory / 'mariadbd.pid'}"
        self._daemons.start(
            "mariadbd", ["mariadbd", *common, *lasting, *address, pid_file, f"--init-file={setup}"]
        )
        self._daemons.wait_for(unix_socket.exists, "mariadbd")

    def _add_association(self) -> None:
        self.run("sacctmgr", "-i", "add", "cluster", "testing")
        self.run("sacctmgr", "-i", "add", "account", "project", "cluster=testing")
        self.run("sacctmgr", "-i", "add", "user", "root", "account=project", "cluster=testing")
        self.run("sacctmgr", "-i", "add", "qos", "few", "set", "MaxSubmitJobsPerUser=2")
        self.run("sacctmgr", "-i", "modify", "user", "root", "set", "qos+=few")

    def _wait_for_nodes(self, names: Sequence[str]) -> None:
        def idle() -> bool:
            states = self.run("sinfo", "-h", "-N", "-n", ",".join(names), "-o", "%N %T", check=False).split(
                "\n"
            )
            return {
                line.split()[0] for line in states if line.endswith((" idle", " mixed", " allocated"))
            } == set(names)

        self._daemons.wait_for(idle, f"nodes {', '.join(names)}")

    def _succeeds(self, *command: str) -> bool:
        try:
            return (
                subprocess.run(
                    command, env=self.environment, check=False, capture_output=True, timeout=10
                ).returncode
                == 0
            )
        except subprocess.TimeoutExpired:
            return False

    def _end_steps(self) -> None:
        # A step that lost its slurmd (kill_node) is not known to Slurm any more: end what is left by its pid.
        def left() -> list[int]:
            return marked(f"SLURM_CONF={self.conf}", command="slurmstepd")

        try:
            wait_for(lambda: not left(), "the jobs' steps", KILL_WAIT + 5)
        except TimeoutError:
            for pid in left():
                os.kill(pid, signal.SIGKILL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Keep a cluster running until Ctrl-C and say how to use it."""
    parser = argparse.ArgumentParser(prog="python -m tests.slurm.cluster", description=main.__doc__)
    parser.add_argument("--no-accounting", action="store_true", help="as on a site without slurmdbd")
    options = parser.parse_args(arguments)
    absent = missing(accounting=not options.no_accounting)
    if absent:
        print(f"missing on this machine: {', '.join(absent)}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    with SlurmCluster(accounting=not options.no_accounting) as cluster:
        print(f"export SLURM_CONF={cluster.conf}", flush=True)
        print("Ctrl-C ends the cluster", file=sys.stderr)
        with suppress(KeyboardInterrupt):
            signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
