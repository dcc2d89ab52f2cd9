"""Slurm as a user sees it from here: programs, controller, partitions, accounting, limits, MPI."""

from __future__ import annotations

import getpass
import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.doctor.check import Check, failed, missing, ok, warning
from orchestrator.doctor.probe import Probe
from orchestrator.executors.slurm.cluster import Association, Cluster
from orchestrator.executors.slurm.partitions import Partition

PROGRAMS = ("sbatch", "squeue", "scontrol", "scancel", "sinfo", "sacct")
_OPTIONAL = ("sacct",)  # without accounting it reports nothing
_SHOWN = 6  # partitions named one by one
_LONG_KILL = 120.0  # seconds; Slurm waits KillWait before it kills a job, and every reservation grows by it


def examine(probe: Probe) -> tuple[list[Check], Cluster | None]:
    """Check the Slurm that this machine belongs to; the cluster is None where there is none to use."""
    found, cluster = find(probe)
    if cluster is not None:
        found += [_controller(cluster.configuration), _partitions(cluster.partitions)]
        found += [_limits(cluster.configuration), _accounting(cluster, probe)]
        found += [*_accounts(cluster), _mpi(probe)]
    return found, cluster


def find(probe: Probe) -> tuple[list[Check], Cluster | None]:
    """Check only whether there is a Slurm that answers; returns as `examine` does."""
    absent = [name for name in PROGRAMS if probe.which(name) is None]
    if "sbatch" in absent:
        remedy = "work on a login node of the cluster, or apt-get install slurm-client with its slurm.conf"
        return [missing("Slurm", "not installed; needed only for the executor slurm", remedy)], None
    programs = _programs(probe, absent)
    ping = probe.ask(["scontrol", "ping"])
    if not re.search(r"\bis UP\b", ping.output):
        remedy = "work on a login node of the cluster, or set SLURM_CONF to its slurm.conf"
        detail = f"slurmctld does not answer: {ping.complaint}; needed only for the executor slurm"
        return [programs, missing("slurmctld", detail, remedy)], None

    def ask(command: Sequence[str]) -> str | None:
        answer = probe.ask(command)
        return answer.output if answer.ok else None

    return [programs], Cluster(ask)


def _programs(probe: Probe, absent: Sequence[str]) -> Check:
    if not absent:
        return ok("Slurm", f"{', '.join(PROGRAMS)} found ({probe.which('sbatch')})")
    result = missing if any(name not in _OPTIONAL for name in absent) else warning
    return result("Slurm", f"not found: {', '.join(absent)}", "apt-get install slurm-client")


def _controller(configuration: Mapping[str, str]) -> Check:
    if not configuration:
        remedy = "run it by hand: scontrol show config"
        return warning("slurmctld", "answers, but does not report its configuration", remedy)
    version = configuration.get("SLURM_VERSION", "of unknown version")
    name = configuration.get("ClusterName", "?")
    return ok("slurmctld", f"answers: Slurm {version}, cluster {name}")


# --- partitions ---------------------------------------------------------------------------------------


def _partitions(partitions: Sequence[Partition]) -> Check:
    if not partitions:
        return failed("partitions", "sinfo shows none", "ask the site which partitions you may use")
    usable = [item for item in partitions if item.up and item.usable]
    texts = [_describe(item) for item in partitions[:_SHOWN]]
    rest = len(partitions) - _SHOWN
    detail = "; ".join(texts) + (f"; and {rest} more" if rest > 0 else "")
    if usable:
        return ok("partitions", detail)
    return failed("partitions", detail, "no node accepts jobs now: see sinfo --list-reasons")


def _describe(item: Partition) -> str:
    cores = " or ".join(map(str, item.cores)) or "unknown"
    time = "no time limit" if item.time is None else f"up to {item.time / 3600:.4g} h"
    name = f"{item.name} (default)" if item.default else item.name
    down = "" if item.up else ", closed"
    return f"{name}: {item.usable} of {item.nodes} nodes up, {cores} cores each, {time}{down}"


# --- accounting and limits ----------------------------------------------------------------------------


def _accounting(cluster: Cluster, probe: Probe) -> Check:
    if not cluster.accounting:
        detail = "off: the duration of an attempt is known only from its attempt.json and squeue"
        return warning("accounting", detail, "nothing to do; campaigns run without it")
    answer = probe.ask(["sacct", "--allocations", "--noheader", "--starttime=now-1minutes"])
    if answer.ok:
        return ok("accounting", f"on ({cluster.configuration['AccountingStorageType']}), sacct answers")
    detail = f"on, but sacct does not answer: {answer.complaint}"
    return warning("accounting", detail, "campaigns continue without it; report it to the site if it lasts")


def _limits(configuration: Mapping[str, str]) -> Check:
    shown = [
        f"{name} {configuration[name]}"
        for name in ("MaxArraySize", "MaxJobCount", "KillWait")
        if name in configuration
    ]
    kill = re.match(r"\d+", configuration.get("KillWait", ""))
    detail = ", ".join(shown) or "unknown"
    if kill and float(kill[0]) > _LONG_KILL:
        remedy = "nothing to do; every run reserves that much more than its time limit"
        return warning("limits", detail, remedy)
    return ok("limits", detail)


def _accounts(cluster: Cluster) -> Iterator[Check]:
    enforced = "associations" in cluster.configuration.get("AccountingStorageEnforce", "")
    if cluster.associations is None:
        return
    if cluster.associations:
        yield ok("accounts", "; ".join(map(_association, cluster.associations)))
    elif enforced:
        user = getpass.getuser()
        remedy = f"ask the site to add {user} to an account"
        yield failed("accounts", f"{user} has no account: Slurm will reject every job", remedy)
    else:
        yield ok("accounts", "no account is needed")


def _association(item: Association) -> str:
    limits = [
        f"at most {item.jobs} jobs at once" if item.jobs is not None else "",
        f"at most {item.submitted} jobs queued or running" if item.submitted is not None else "",
        f"up to {item.wall / 3600:.4g} h" if item.wall is not None else "",
        f"at most {item.most.job} per job" if item.most.job else "",
        f"at most {item.most.together} at once" if item.most.together else "",
    ]
    where = f"{item.account} in {item.partition}" if item.partition else item.account
    return ", ".join([f"{where} (QOS {', '.join(item.qos) or 'none'})", *filter(None, limits)])


def _mpi(probe: Probe) -> Check:
    """Report the interfaces through which ``srun`` starts MPI programs; older ones list them as errors."""
    answer = probe.ask(["srun", "--mpi=list"])
    found = re.findall(r"^(?:srun:)?\s*(\w+)\s*$", f"{answer.output}\n{answer.error}", re.MULTILINE)
    spoken = [name for name in found if name != "none"]
    if any(name.startswith("pmi") for name in spoken):
        return ok("srun --mpi", ", ".join(spoken))
    detail = f"neither pmix nor pmi2 ({', '.join(found) or answer.complaint}): srun starts no MPI program"
    remedy = "set executor.launcher, such as 'mpiexec -n {ranks}', and load its MPI in executor.prologue"
    return warning("srun --mpi", detail, remedy)
