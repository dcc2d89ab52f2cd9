"""The configuration of a Slurm of our own: nodes, partitions, accounting, and where they are."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

NODES = ("n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "small")
PORTS = len(NODES) + 4  # one per node, for the two central daemons, the database and the node of ``memory``
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


@dataclass(frozen=True)
class Site:
    """What the configuration of a cluster follows from.

    Attributes
    ----------
    directory
        Of all its files.
    ports
        The first of `PORTS` consecutive ones.
    accounting
        Whether it has ``slurmdbd``.
    memory_node
        The node of the partition ``memory``, if there is one.
    """

    directory: Path
    ports: int
    accounting: bool
    memory_node: str

    @property
    def sql_port(self) -> int:
        """Of the database."""
        return self.ports + 2

    def write(self) -> None:
        """Write every file into the directory ``etc``."""
        values = self._values()
        accounting = (WITH_ACCOUNTING if self.accounting else WITHOUT_ACCOUNTING).format(**values)
        text = SLURM_CONF.format(**values, accounting=accounting)
        folder = self.directory / "etc"
        if self.memory_node:
            text += WITH_MEMORY.format(**values, name=self.memory_node, port=self.ports + 13)
            memory = text.replace("TaskPlugin=task/none", "TaskPlugin=task/cgroup")
            (folder / "memory.conf").write_text(memory)
            (folder / "cgroup.conf").write_text(CGROUP_CONF)
        (folder / "slurm.conf").write_text(text)
        slurmdbd = folder / "slurmdbd.conf"
        slurmdbd.write_text(SLURMDBD_CONF.format(**values))
        slurmdbd.chmod(0o600)  # slurmdbd refuses a password that others can read

    def _values(self) -> dict[str, object]:
        return {
            "host": socket.gethostname(),
            "directory": self.directory,
            "ctld_port": self.ports,
            "dbd_port": self.ports + 1,
            "sql_port": self.sql_port,
            "first_node_port": self.ports + 3,
            "last_node_port": self.ports + 11,
            "small_node_port": self.ports + 12,
            "cpus": CPUS_PER_NODE,
            "kill_wait": KILL_WAIT,
        }


def memory_node() -> str:
    """Return a name for the node whose jobs have their memory limited; empty where there is none."""
    return f"m{os.getpid()}" if os.access(GROUPS / "tasks", os.W_OK) else ""
