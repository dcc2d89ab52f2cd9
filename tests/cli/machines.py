"""Machines that do not exist, for the checks of ``doctor``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from orchestrator.doctor.probe import Answer, Probe
from tests.slurm.sacctmgr import association

SLURM = ("sbatch", "squeue", "scontrol", "scancel", "sinfo", "sacct", "sacctmgr", "srun")
UP = Answer(True, "Slurmctld(primary) at head is UP\n")
CONFIGURATION = """\
Configuration data as of 2026-11-20T13:12:30
AccountingStorageEnforce = associations,limits,qos
AccountingStorageType   = accounting_storage/slurmdbd
ClusterName             = big
KillWait                = 30 sec
MaxArraySize            = 1001
MaxJobCount             = 10000
SLURM_VERSION           = 22.05.8
Slurmctld(primary) at head is UP
"""
PARTITIONS = """\
compute*|up|idle|90|64|2:32:1|1-00:00:00
compute*|up|allocated|8|64|2:32:1|1-00:00:00
compute*|up|down*|2|64|2:32:1|1-00:00:00
threads|up|mixed|4|128|2:32:2|infinite
mixture|up|idle|2|48|2:24:1|2:00
mixture|up|idle|2|64|2:32:1|2:00
closed|inact|idle|2|64|2:32:1|30:00
dead|up|drained|3|64|2:32:1|infinite
"""
ASSOCIATIONS = association(
    "project", qos="long,normal", submitted="10", wall="1-00:00:00", resources="cpu=256"
) + association("other", "compute", qos="normal", jobs="4")
INTERFACES = (
    "MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\nspecific pmix plugin versions available: pmix_v4\n"
)


def probe(programs: Collection[str] = (), answers: Mapping[str, Answer] | None = None) -> Probe:
    """Return a machine with some programs; ``answers`` are found by the longest beginning of a command."""
    known = answers or {}

    def ask(command: Sequence[str]) -> Answer:
        words = " ".join(command)
        fitting = [start for start in known if words.startswith(start)]
        return known[max(fitting, key=len)] if fitting else Answer(False, error=f"no answer to {words}")

    return Probe(lambda name: f"/opt/bin/{name}" if name in programs else None, ask)


def cluster(**changes: str | Answer) -> Probe:
    """Return a machine with a Slurm; ``changes`` are other answers, ``configuration`` lines replaced."""
    answers = {
        "scontrol ping": UP,
        "scontrol show config": Answer(True, CONFIGURATION),
        "sinfo": Answer(True, PARTITIONS),
        "sacct ": Answer(True),
        "sacctmgr": Answer(True, ASSOCIATIONS),
        "srun": Answer(True, INTERFACES),
    }
    for name, answer in changes.items():
        start = {"ping": "scontrol ping", "config": "scontrol show config", "sacct": "sacct "}.get(name, name)
        answers[start] = Answer(True, answer) if isinstance(answer, str) else answer
    return probe(SLURM, answers)
