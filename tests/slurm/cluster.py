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
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "setpriv")
ACCOUNTING_PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db", "sacctmgr")
NODES = ("n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "small")
GROUPS = Path("/sys/fs/cgroup/memory")  # of version 1, which this Slurm can use without systemd
CPUS_PER_NODE = 4
KILL_WAIT = 5

SLURM_CONF = """\
ClusterName=testing
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
StateSaveLocation={directory}/state
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
SlurmdSpoolDir={directory}/spool-%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=4000
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=sched_interval=1,bf_interval=1
MaxArraySize=1001
ReturnToService=2
MpiDefault=none
KillWait={kill_wait}
SlurmdTimeout=120
{accounting}
NodeName=DEFAULT CPUs={cpus} RealMemory=16000
NodeName=n[1-9] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first_node_port}-{last_node_port}]
NodeName=small NodeHostname={host} NodeAddr=127.0.0.1 Port={small_node_port} CPUs=2
PartitionName=DEFAULT MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=OFF
PartitionName=debug Nodes=n[1-4] Default=YES
PartitionName=small Nodes=small MaxTime=60
PartitionName=spot Nodes=n5 PreemptMode=CANCEL
PartitionName=spot-requeue Nodes=n5 PreemptMode=REQUEUE
PartitionName=urgent Nodes=n5 PriorityTier=2
PartitionName=pair Nodes=n[6-7]
PartitionName=other Nodes=n[8-9]
"""
WITH_MEMORY = """\
NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port}
PartitionName=memory Nodes={name}
"""
CGROUP_CONF = """\
CgroupPlugin=cgroup/v1
ConstrainRAMSpace=yes
ConstrainSwapSpace=yes
"""
WITH_ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePass={directory}/munge.socket
AccountingStoragePort={dbd_port}
AccountingStorageEnforce=associations,limits,qos"""
WITHOUT_ACCOUNTING = "AccountingStorageType=accounting_storage/none"

SLURMDBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser=root
PidFile={directory}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql_port}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""
SQL = """\
CREATE DATABASE slurm_acct_db;
CREATE USER 'slurm'@'%' IDENTIFIED BY 'slurm';
GRANT ALL ON slurm_acct_db.* TO 'slurm'@'%';
FLUSH PRIVILEGES;
"""


def missing(accounting: bool) -> tuple[str, ...]:
    """Return what this machine lacks for a cluster; empty where one can be started."""
    programs = PROGRAMS + (ACCOUNTING_PROGRAMS if accounting else ())
    lacking = tuple(program for program in programs if shutil.which(program) is None)
    return lacking if os.geteuid() == 0 else (*lacking, "root")


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


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Return when ``condition`` holds; raise ``TimeoutError`` naming ``what`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.1)


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
        self.memory_node = f"m{os.getpid()}" if os.access(GROUPS / "tasks", os.W_OK) else ""
        self._memory_conf = self.conf.with_name("memory.conf")
        self.environment: Mapping[str, str] = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_"))},
            "SLURM_CONF": str(self.conf),
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._first_job = 1

    def __enter__(self) -> SlurmCluster:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def run(self, *command: str, check: bool = True) -> str:
        """Return what a command of Slurm prints on this cluster."""
        done = subprocess.run(
            command, env=self.environment, check=False, capture_output=True, text=True, timeout=60
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
        self._spawn(f"slurmd-{name}", ["slurmd", "-N", name, "-D"])
        self._wait_for_nodes([name])

    def kill_node(self, name: str) -> None:
        """Kill the ``slurmd`` of a node, as a crash of the node does, and have Slurm notice it at once."""
        self._end(f"slurmd-{name}", signal.SIGKILL)
        self.run("scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=killed")

    def fail_node(self, name: str) -> None:
        """Kill a node with all that runs there, as a power failure does, and have Slurm notice it at once."""
        self.kill_node(name)
        for pid in self._pids(f"SLURM_CONF={self.conf}", f"SLURMD_NODENAME={name}"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def restart_controller(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End ``slurmctld`` and start it again; after SIGKILL it has forgotten the last seconds.

        Its jobs get numbers never used: a node that is sent a forgotten one again is drained, and Slurm waits
        for that job until its time limit.
        """
        self._end("slurmctld", how)
        self._first_job += 1000
        text = self.conf.read_text()
        self.conf.write_text(f"{text.split('FirstJobId=')[0]}FirstJobId={self._first_job}\n")
        self._spawn("slurmctld", ["slurmctld", "-D"])
        self._wait_for(lambda: self._succeeds("scontrol", "ping"), "slurmctld")

    def stop_accounting(self) -> None:
        """End ``slurmdbd``: from now on ``sacct`` fails."""
        self._end("slurmdbd", signal.SIGTERM)

    def start_accounting(self) -> None:
        """Start ``slurmdbd`` and wait until it answers."""
        self._spawn("slurmdbd", ["slurmdbd", "-D"])
        self._wait_for(lambda: self._succeeds("sacctmgr", "show", "cluster"), "slurmdbd")

    def stop(self) -> None:
        """Cancel the jobs, end every daemon in reverse order of its start, remove the directory."""
        if "slurmctld" in self._processes and self._succeeds("scancel", "--state=PENDING", "--user=root"):
            self._succeeds("scancel", "--user=root")
            self._end_steps()
        for name in reversed(list(self._processes)):
            self._end(name, signal.SIGTERM)
        for folder, _, _ in os.walk(GROUPS / f"slurm_{self.memory_node}", topdown=False):
            Path(folder).rmdir()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _start(self) -> None:
        ports = free_ports(len(NODES) + 4)
        for name in ("etc", "state", "sql"):
            (self.directory / name).mkdir()
        self.directory.chmod(0o755)  # mkdtemp's 0700 shuts out the clients of the munge socket
        self._write_configuration(ports)
        self._start_munge()
        if self.accounting:
            self._start_database(ports)
            self.start_accounting()
            self._add_association()
        self._spawn("slurmctld", ["slurmctld", "-D"])
        for name in NODES:
            self._spawn(f"slurmd-{name}", ["slurmd", "-N", name, "-D"])
        if self.memory_node:
            command = ["slurmd", "-N", self.memory_node, "-D", "-f", str(self._memory_conf)]
            self._spawn(f"slurmd-{self.memory_node}", command)
        self._wait_for_nodes([*NODES, *filter(None, [self.memory_node])])

    def _write_configuration(self, ports: int) -> None:
        values = {
            "host": socket.gethostname(),
            "directory": self.directory,
            "ctld_port": ports,
            "dbd_port": ports + 1,
            "sql_port": ports + 2,
            "first_node_port": ports + 3,
            "last_node_port": ports + 11,
            "small_node_port": ports + 12,
            "cpus": CPUS_PER_NODE,
            "kill_wait": KILL_WAIT,
        }
        accounting = (WITH_ACCOUNTING if self.accounting else WITHOUT_ACCOUNTING).format(**values)
        text = SLURM_CONF.format(**values, accounting=accounting)
        if self.memory_node:
            text += WITH_MEMORY.format(**values, name=self.memory_node, port=ports + 13)
            self._memory_conf.write_text(text.replace("TaskPlugin=task/none", "TaskPlugin=task/cgroup"))
            (self.conf.parent / "cgroup.conf").write_text(CGROUP_CONF)
        self.conf.write_text(text)
        slurmdbd = self.conf.parent / "slurmdbd.conf"
        slurmdbd.write_text(SLURMDBD_CONF.format(**values))
        slurmdbd.chmod(0o600)  # slurmdbd refuses a password that others can read

    def _start_munge(self) -> None:
        key = self.directory / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        files = {"key-file": key.name, "socket": "munge.socket", "pid-file": "munge.pid"}
        files |= {"log-file": "munge.log", "seed-file": "munge.seed"}
        options = [f"--{option}={self.directory / name}" for option, name in files.items()]
        self._spawn("munged", ["munged", "--foreground", "--force", *options])
        self._wait_for((self.directory / "munge.socket").exists, "munged")

    def _start_database(self, ports: int) -> None:
        data, unix_socket = self.directory / "sql", self.directory / "sql.socket"
        common = ["--no-defaults", f"--datadir={data}", "--user=root"]
        subprocess.run(
            ["mariadb-install-db", *common, "--auth-root-authentication-method=normal", "--skip-test-db"],
            check=True,
            capture_output=True,
            timeout=120,
        )
        lasting = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=128M", "--sync-binlog=0"]
        address = [f"--socket={unix_socket}", f"--port={ports + 2}", "--bind-address=127.0.0.1"]
        setup = self.directory / "setup.sql"
        setup.write_text(SQL)
        pid_file = f"--pid-file={self.directory / 'mariadbd.pid'}"
        self._spawn("mariadbd", ["mariadbd", *common, *lasting, *address, pid_file, f"--init-file={setup}"])
        self._wait_for(unix_socket.exists, "mariadbd")

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

        self._wait_for(idle, f"nodes {', '.join(names)}")

    def _wait_for(self, condition: Callable[[], bool], what: str) -> None:
        def ready() -> bool:
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise RuntimeError(
                        f"{name} ended:\n{(self.directory / f'{name}.out').read_text()[-2000:]}"
                    )
            return condition()

        wait_for(ready, what)

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

    def _spawn(self, name: str, command: Sequence[str]) -> None:
        # pdeathsig: whatever happens to this process, its daemons do not outlive it.
        with (self.directory / f"{name}.out").open("ab") as output:
            self._processes[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", *command],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _end(self, name: str, how: signal.Signals) -> None:
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _end_steps(self) -> None:
        # A step that lost its slurmd (kill_node) is known to nobody else: end what is left by its pid.
        try:
            wait_for(lambda: not self._step_pids(), "the jobs' steps", KILL_WAIT + 5)
        except TimeoutError:
            for pid in self._step_pids():
                os.kill(pid, signal.SIGKILL)

    def _step_pids(self) -> list[int]:
        return self._pids(f"SLURM_CONF={self.conf}", command="slurmstepd")

    def _pids(self, *variables: str, command: str = "") -> list[int]:
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Keep a cluster running until Ctrl-C and say how to use it."""
    parser = argparse.ArgumentParser(prog="python -m tests.slurm.cluster", description=main.__doc__)
    parser.add_argument("--no-accounting", action="store_true", help="as on a site without slurmdbd")
    options = parser.parse_args(arguments)
    lacking = missing(accounting=not options.no_accounting)
    if lacking:
        print(f"missing on this machine: {', '.join(lacking)}", file=sys.stderr)
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
