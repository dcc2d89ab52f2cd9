"""Do the settings of a site hold on the live cluster? Each against what Slurm and the module system say."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from orchestrator.campaign.schema import ExecutorOptions, SlurmOptions
from orchestrator.doctor.check import Check, Status, failed, ok, warning
from orchestrator.doctor.probe import Probe
from orchestrator.doctor.slurm import Cluster
from orchestrator.launch.mpi import KNOWN
from orchestrator.launch.script import load_lines
from orchestrator.units import did_you_mean

SINFO = ("sinfo", "--noheader", "--format=%P|%f|%G")
_WORD = re.compile(r"[A-Za-z_][\w.:-]*")
_GPUS = re.compile(r"\bgpu(?::[^:,(]+)?:(\d+)")


def of_script(options: ExecutorOptions, probe: Probe) -> Iterator[Check]:
    """Check the parts of the launch script besides the program: modules, shell text, the launcher."""
    loaded = False
    if options.modules:
        modules = _modules(options.modules, probe)
        loaded = modules.status is Status.OK
        yield modules
    for key in ("prologue", "epilogue"):
        lines = getattr(options, key)
        if lines:
            yield _shell(key, lines, probe)
    if options.launcher is not None and loaded:
        yield _launcher(options.launcher, options.modules, probe)


def of_jobs(options: SlurmOptions, probe: Probe) -> Iterator[Check]:
    """Check what all jobs have in common."""
    if options.reservation is not None:
        yield _reservation(options.reservation, probe)
    if options.mpi is not None:
        yield _interface(options.mpi, probe)
    if options.billing == "nodes" and not _cores_known(options):
        remedy = "set executor.cores_per_node: without it only the cores of the ranks are counted"
        yield failed("billing", "whole nodes are charged, but their number of cores is not known", remedy)


def of_partition(options: SlurmOptions, cluster: Cluster, probe: Probe) -> Iterator[Check]:
    """Check what depends on the partition; ``options`` are those for one size of runs."""
    default = next((item.name for item in cluster.partitions if item.default), None)
    names = (options.partition or default or "").split(",")
    rows = _nodes(probe, names)
    if options.constraint is not None and rows:
        yield _constraint(options.constraint, names, {name for features, _ in rows for name in features})
    if options.gpus_per_node is not None and rows:
        yield _gpus(options.gpus_per_node, names, max(gpus for _, gpus in rows))
    for name in filter(None, names):
        answer = probe.ask(["scontrol", "--oneliner", "show", "partition", name])
        if answer.ok:
            facts = dict(word.partition("=")[::2] for word in answer.output.split())
            yield from _admitted(options, name, facts)
            yield from _whole_nodes(options, name, facts, cluster)


def _cores_known(options: SlurmOptions) -> bool:
    sizes = options.by_size
    return options.cores_per_node is not None or bool(sizes and all(item.cores_per_node for item in sizes))


# --- nodes --------------------------------------------------------------------------------------------


def _nodes(probe: Probe, partitions: Sequence[str]) -> list[tuple[set[str], int]]:
    """Return features and GPUs of the kinds of nodes in some partitions."""
    lines = (line.strip().split("|") for line in probe.ask(SINFO).output.splitlines())
    rows = [line for line in lines if len(line) == 3 and line[0].rstrip("*") in partitions]
    return [(set(features.split(",")), sum(map(int, _GPUS.findall(gres)))) for _, features, gres in rows]


def _constraint(constraint: str, partitions: Sequence[str], known: set[str]) -> Check:
    where = " and ".join(partitions)
    for word in _WORD.findall(constraint):
        if word not in known:
            remedy = f"correct executor.constraint; {did_you_mean(word, sorted(known - {'(null)'}))}"
            return failed("constraint", f"no node of {where} has the feature {word!r}", remedy)
    return ok("constraint", f"{constraint}, known in {where}")


def _gpus(wanted: int, partitions: Sequence[str], most: int) -> Check:
    where = " and ".join(partitions)
    if wanted > most:
        remedy = f"set executor.gpus_per_node to at most {most}" if most else "set another executor.partition"
        return failed("GPUs", f"{wanted} per node, but nodes of {where} have {most or 'none'}", remedy)
    return ok("GPUs", f"{wanted} of {most} on every node")


# --- partitions and reservations ------------------------------------------------------------------------


def _admitted(options: SlurmOptions, name: str, facts: dict[str, str]) -> Iterator[Check]:
    for key, mine, allow, deny in (
        ("account", options.account, "AllowAccounts", "DenyAccounts"),
        ("QOS", options.qos, "AllowQos", "DenyQos"),
    ):
        if mine is None:
            continue
        allowed, denied = facts.get(allow, "ALL"), facts.get(deny, "").split(",")
        if mine in denied or (allowed != "ALL" and mine not in allowed.split(",")):
            detail = f"{name} does not admit {key} {mine!r} (it admits {allowed})"
            yield failed(key, detail, f"set another executor.partition or executor.{key.lower()}")


def _whole_nodes(
    options: SlurmOptions, name: str, facts: dict[str, str], cluster: Cluster
) -> Iterator[Check]:
    linear = cluster.configuration.get("SelectType") == "select/linear"
    if not linear and not facts.get("OverSubscribe", "").startswith("EXCLUSIVE"):
        return
    if options.billing == "cores" and not options.exclusive:
        detail = f"Slurm allocates whole nodes in {name}, but only the cores of the ranks are counted"
        yield failed("billing", detail, "set executor.billing: nodes, and executor.cores_per_node")
    else:
        yield ok("billing", f"whole nodes, as {name} allocates them")


def _reservation(name: str, probe: Probe) -> Check:
    answer = probe.ask(["scontrol", "--oneliner", "show", "reservation", name])
    if not answer.ok or "ReservationName=" not in answer.output:
        remedy = "correct executor.reservation; see: scontrol show reservation"
        return failed("reservation", f"the cluster has no reservation {name!r}", remedy)
    facts = dict(word.partition("=")[::2] for word in answer.output.split())
    times = f"{facts.get('StartTime', '?')} to {facts.get('EndTime', '?')}"
    if facts.get("State") != "ACTIVE":
        remedy = "runs wait until it begins; those queued after its end never start"
        return warning("reservation", f"{name} is not active now ({times})", remedy)
    return ok("reservation", f"{name}, {times}, for {facts.get('Users', '?')} {facts.get('Accounts', '')}")


# --- the launch script ----------------------------------------------------------------------------------


def _modules(modules: Sequence[str], probe: Probe) -> Check:
    script = "\n".join([*load_lines(modules), 'printf %s "${LOADEDMODULES-}"'])
    answer = probe.ask(["bash", "-c", script])
    if not answer.ok:
        remedy = "correct executor.modules; see: module avail"
        return failed("modules", f"{', '.join(modules)}: {answer.complaint}", remedy)
    return ok("modules", answer.output.strip() or ", ".join(modules))


def _shell(key: str, lines: Sequence[str], probe: Probe) -> Check:
    """Check the syntax only; the lines themselves run in the jobs."""
    answer = probe.ask(["bash", "-n", "-c", "\n".join(lines)])
    if not answer.ok:
        return failed(key, f"not valid shell text: {answer.complaint}", f"correct executor.{key}")
    return ok(key, f"{len(lines)} lines of valid shell text")


def _interface(mpi: str, probe: Probe) -> Check:
    answer = probe.ask(["srun", "--mpi=list"])
    known = re.findall(r"\b[a-z][\w]*\b", f"{answer.output}\n{answer.error}")
    if mpi in known:
        return ok("mpi", f"srun --mpi={mpi}")
    spoken = sorted({name for name in known if name.startswith(("pmi", "cray", "none"))})
    remedy = f"correct executor.mpi; {did_you_mean(mpi, spoken)}"
    return failed("mpi", f"srun does not know --mpi={mpi}", remedy)


def _launcher(pattern: str, modules: Sequence[str], probe: Probe) -> Check:
    program = pattern if pattern in KNOWN else next(iter(shlex.split(pattern)), "")
    script = "\n".join([*load_lines(modules), 'command -v "$1"'])
    answer = probe.ask(["bash", "-c", script, "bash", program])
    if not answer.ok:
        detail = f"{program} is not on PATH, even with the modules loaded"
        return failed("launcher", detail, "correct executor.launcher or executor.modules")
    return ok("launcher", f"{program} is {answer.output.strip().splitlines()[-1]} with the modules loaded")
