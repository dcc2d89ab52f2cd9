"""Does the ``executor`` section of a campaign fit the cluster? Each key against what Slurm reports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from orchestrator.campaign.schema import Pack, SlurmOptions
from orchestrator.control import slurm_preflight
from orchestrator.control.planning import FirstRound
from orchestrator.doctor.check import Check, failed, missing, ok, warning
from orchestrator.doctor.examined import Examined
from orchestrator.doctor.probe import Probe
from orchestrator.executors.slurm.cluster import Association, Cluster
from orchestrator.executors.slurm.partitions import Partition, meant
from orchestrator.types import Resources
from orchestrator.units import did_you_mean, format_duration

SINFO = ("sinfo", "--all", "--noheader", "--format=%P|%f|%G")
_WORD = re.compile(r"[A-Za-z_][\w.:-]*")
_GPUS = re.compile(r"\bgpu(?::[^:,(]+)?:(\d+)")


def of_size(
    options: SlurmOptions,
    cluster: Cluster,
    largest: Resources,
    longest: float | None,
) -> Iterator[Check]:
    """Check the partition, the cores and the account for one size of runs.

    Parameters
    ----------
    options, cluster
        The section for this size of runs, and the cluster.
    largest
        Of the run that occupies most cores.
    longest
        The longest time limit of a run, in seconds; None where it is not known.
    """
    found = meant(cluster.partitions, options.partition)
    yield from _partition(options, cluster, found)
    if found:
        yield from _fit(options, found, largest, longest)
    if cluster.associations is not None:
        yield from _account(options, cluster.associations)


def never_started(examined: Examined, cluster: Cluster) -> Iterator[Check]:
    """Check what a campaign is refused for when it begins."""
    built, plan = examined.built, examined.first_round
    runs = [(point, resources) for resources, point in examined.sizes.items()]
    faults = {"size of runs": slurm_preflight.size_fault(built.campaign, runs, cluster)}
    if isinstance(plan, FirstRound):
        faults["time limit"] = slurm_preflight.limit_fault(built, plan, cluster)
    for name, fault in faults.items():
        if fault is not None:
            yield failed(name, fault.detail, fault.remedy)


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
        facts = cluster.partition_settings.get(name)
        if facts is not None:
            yield from _admitted(options, name, facts)
            yield from _whole_nodes(options, name, facts, cluster)
            yield from _shared_cores(name, facts)


def _cores_known(options: SlurmOptions) -> bool:
    sizes = options.by_size
    return options.cores_per_node is not None or bool(sizes and all(item.cores_per_node for item in sizes))


# --- partition and cores ----------------------------------------------------------------------------


def _partition(options: SlurmOptions, cluster: Cluster, partitions: Sequence[Partition]) -> Iterator[Check]:
    known = [item.name for item in cluster.partitions]
    if options.partition is None and not partitions:
        remedy = f"set executor.partition; known: {', '.join(known)}"
        yield failed("partition", "no partition is set, and the cluster has no default", remedy)
        return
    for name in [] if options.partition is None else options.partition.split(","):
        if name not in known:
            remedy = f"correct executor.partition; {did_you_mean(name, known)}"
            yield failed("partition", f"the cluster has no partition {name!r}", remedy)
    for item in partitions:
        if not item.up:
            yield failed(
                "partition", f"{item.name} is not up: it accepts no jobs", "set another executor.partition"
            )
        elif not item.usable:
            remedy = "wait, or set another executor.partition; runs would stay queued"
            yield warning("partition", f"no node of {item.name} accepts jobs now", remedy)
        else:
            yield ok("partition", f"{item.name}, {item.usable} of {item.nodes} nodes up")


def _fit(
    options: SlurmOptions, partitions: Sequence[Partition], largest: Resources, longest: float | None
) -> Iterator[Check]:
    item = _together(partitions)
    if options.cores_per_node is None and item.cores:
        # A run that fits on no node of one partition starts in another.
        yield _unknown_cores(max(partitions, key=lambda one: one.cores[:1]), largest)
    else:
        yield _cores(options, item)
    yield from _hardware_threads(options, item)
    pack = options.pack
    several = pack.most not in ("off", 1) and longest is not None and 2 * longest <= pack.longest
    if several and item.time is not None and item.time < pack.longest:
        allowed = format_duration(item.time)
        detail = (
            f"jobs of several runs may take {format_duration(pack.longest)}, {item.name} allows {allowed}"
        )
        remedy = (
            f"set executor.pack.longest below {allowed}; runs of a job that Slurm rejects start one by one"
        )
        # With the defaults this is no mistake of the user: the runs of a rejected job start one by one.
        yield ok("pack", detail) if pack == Pack() else warning("pack", detail, remedy)


def _together(partitions: Sequence[Partition]) -> Partition:
    """Return several partitions as one with the nodes of all: a job starts in whichever takes it."""
    times = [item.time for item in partitions]
    return replace(
        partitions[0],
        name=" and ".join(item.name for item in partitions),
        cores=tuple(sorted({cores for item in partitions for cores in item.cores})),
        threads=max(item.threads for item in partitions),
        time=None if None in times else max(time for time in times if time is not None),
    )


def _hardware_threads(options: SlurmOptions, item: Partition) -> Iterator[Check]:
    """Where Slurm counts hardware threads, it charges all of a core."""
    if (uncounted := slurm_preflight.uncounted_threads(options, [item])) is not None:
        threads, detail = uncounted
        yield warning("threads_per_core", detail, f"set executor.threads_per_core: {threads}")


def _cores(options: SlurmOptions, item: Partition) -> Check:
    stated = options.cores_per_node
    if not item.cores or stated is None:
        return warning("cores_per_node", f"sinfo does not report the cores of {item.name}", "ask the site")
    listed = " or ".join(map(str, item.cores))
    if stated in item.cores and (len(item.cores) == 1 or options.constraint is not None):
        return ok("cores_per_node", f"{stated}, as sinfo reports")
    if stated in item.cores:
        detail = f"{stated}, but nodes of {item.name} have {listed} cores: times of runs would differ by node"
        remedy = "choose one kind of node by executor.constraint, or by executor.partition"
        return warning("cores_per_node", detail, remedy)
    remedy = f"set executor.cores_per_node: {item.cores[0]}"
    if item.threads > 1 and stated == item.cores[-1] * item.threads:
        detail = f"{stated} counts {item.threads} hardware threads per core: ranks would share cores"
        return warning("cores_per_node", detail, remedy)
    result = failed if stated > item.cores[-1] else warning
    return result("cores_per_node", f"{stated}, but nodes of {item.name} have {listed} cores", remedy)


def _unknown_cores(item: Partition, largest: Resources) -> Check:
    """Without ``cores_per_node`` every run goes to a single node."""
    cores = item.cores[0]
    if largest.ranks_per_node * largest.threads <= cores:
        return ok("cores_per_node", f"not set and not needed: every run fits on a node of {cores} cores")
    run = f"{largest.ranks} ranks x {largest.threads} threads"
    detail = f"not set, so {run} would go to one node, but those of {item.name} have {cores} cores"
    return missing("cores_per_node", detail, f"set executor.cores_per_node: {cores}")


# --- account ----------------------------------------------------------------------------------------


def _account(options: SlurmOptions, known: Sequence[Association]) -> Iterator[Check]:
    accounts = list(dict.fromkeys(item.account for item in known))
    mine = [item for item in known if options.account in (None, item.account)]
    if options.account is not None and not mine:
        remedy = f"correct executor.account; {did_you_mean(options.account, accounts)}"
        detail = f"you have no account {options.account!r}"
        yield failed("account", detail, remedy)
        return
    if options.account is not None:
        yield ok("account", options.account)
    allowed = list(dict.fromkeys(name for item in mine for name in item.qos))
    if options.qos is not None and mine and options.qos not in allowed:
        remedy = f"correct executor.qos; {did_you_mean(options.qos, allowed)}"
        detail = f"you may not use the QOS {options.qos!r}"
        yield failed("QOS", detail, remedy)
    most = min((item.submitted for item in mine if item.submitted is not None), default=None)
    if most is not None and most < options.max_pending:
        detail = f"{options.max_pending}, but {most} jobs may be queued or running at once"
        yield warning("max_pending", detail, f"set executor.max_pending: {most}")


# --- nodes -------------------------------------------------------------------------------------------


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
        remedy = f"ask for at most {most} (gpus_per_node)" if most else "set another executor.partition"
        return failed("GPUs", f"{wanted} per node, but nodes of {where} have {most or 'none'}", remedy)
    return ok("GPUs", f"{wanted} of {most} on every node")


# --- partition settings, reservation, MPI ------------------------------------------------------------


def _admitted(options: SlurmOptions, name: str, facts: Mapping[str, str]) -> Iterator[Check]:
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
    options: SlurmOptions, name: str, facts: Mapping[str, str], cluster: Cluster
) -> Iterator[Check]:
    linear = cluster.configuration.get("SelectType") == "select/linear"
    if not linear and not facts.get("OverSubscribe", "").startswith("EXCLUSIVE"):
        return
    if options.billing == "cores" and not options.exclusive:
        detail = f"Slurm allocates whole nodes in {name}, but only the cores of the ranks are counted"
        yield failed("billing", detail, "set executor.billing: nodes, and executor.cores_per_node")
    else:
        yield ok("billing", f"whole nodes, as {name} allocates them")


def _shared_cores(name: str, facts: Mapping[str, str]) -> Iterator[Check]:
    """Warn where Slurm gives the same cores to several jobs, whatever a job asks for."""
    value = facts.get("OverSubscribe", "")
    if value.startswith("FORCE") and value != "FORCE:1":  # at most one job per core, as without it
        detail = (
            f"{name} gives the cores of a run to other jobs, too (OverSubscribe={value}): times are longer"
        )
        yield warning("shared cores", detail, "set another executor.partition for measurements")


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


def _interface(mpi: str, probe: Probe) -> Check:
    answer = probe.ask(["srun", "--mpi=list"])
    known = re.findall(r"\b[a-z][\w]*\b", f"{answer.output}\n{answer.error}")
    if mpi in known:
        return ok("mpi", f"srun --mpi={mpi}")
    spoken = sorted({name for name in known if name.startswith(("pmi", "cray", "none"))})
    remedy = f"correct executor.mpi; {did_you_mean(mpi, spoken)}"
    return failed("mpi", f"srun does not know --mpi={mpi}", remedy)
