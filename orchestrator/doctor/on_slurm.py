"""Does the campaign fit the cluster? Its ``executor`` section against what Slurm says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.campaign.schema import Pack, SlurmOptions
from orchestrator.doctor.check import Check, Status, failed, missing, ok, warning
from orchestrator.doctor.slurm import Association, Cluster, Partition
from orchestrator.types import Point, Resources
from orchestrator.units import did_you_mean, format_duration


def checks(
    options: SlurmOptions, cluster: Cluster, largest: tuple[Point, Resources], longest: float | None
) -> Iterator[Check]:
    """Check the ``executor`` section of a campaign.

    Parameters
    ----------
    options, cluster
        The section, and the cluster.
    largest
        The run that occupies most cores.
    longest
        The longest time limit of a run, in seconds; None where it is not known.
    """
    found = [item for item in cluster.partitions if _is_meant(item, options.partition)]
    yield from _partition(options, cluster, found)
    if found:
        yield from _fit(options, found[0], largest, longest)
    if cluster.associations is not None:
        yield from _account(options, cluster.associations)


def _is_meant(item: Partition, name: str | None) -> bool:
    return item.default if name is None else item.name in name.split(",")


def _partition(options: SlurmOptions, cluster: Cluster, found: Sequence[Partition]) -> Iterator[Check]:
    known = [item.name for item in cluster.partitions]
    if options.partition is None and not found:
        remedy = f"set executor.partition; known: {', '.join(known)}"
        yield failed("partition", "no partition is set, and the cluster has no default", remedy)
        return
    for name in [] if options.partition is None else options.partition.split(","):
        if name not in known:
            remedy = f"correct executor.partition; {did_you_mean(name, known)}"
            yield failed("partition", f"the cluster has no partition {name!r}", remedy)
    for item in found:
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
    options: SlurmOptions, item: Partition, largest: tuple[Point, Resources], longest: float | None
) -> Iterator[Check]:
    point, resources = largest
    yield _cores(options, item, resources)
    if resources.nodes > item.nodes:
        detail = f"{point} needs {resources.nodes} nodes, {item.name} has {item.nodes}: such runs never start"
        remedy = "set another executor.partition, or exclude such points by constraints"
        yield failed("nodes", detail, remedy)
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
    if longest is not None and item.time is not None and longest > item.time:
        allowed = format_duration(item.time)
        detail = (
            f"runs may take {format_duration(longest)}, {item.name} allows {allowed}: they would be rejected"
        )
        remedy = f"set measure.time_limit: {allowed}, or another executor.partition"
        yield failed("time limit", detail, remedy)


def _cores(options: SlurmOptions, item: Partition, largest: Resources) -> Check:
    stated = options.cores_per_node
    if not item.cores:
        return warning("cores_per_node", f"sinfo does not report the cores of {item.name}", "ask the site")
    if stated is None:
        return _unknown_cores(item, largest)
    listed = " or ".join(map(str, item.cores))
    if stated in item.cores and (len(item.cores) == 1 or options.constraint is not None):
        return ok("cores_per_node", f"{stated}, as sinfo reports")
    if stated in item.cores:
        detail = f"{stated}, but nodes of {item.name} have {listed} cores: times of runs would differ by node"
        return warning("cores_per_node", detail, "choose one kind of node by executor.constraint")
    remedy = f"set executor.cores_per_node: {item.cores[0]}"
    if item.threads > 1 and stated == item.cores[-1] * item.threads:
        detail = f"{stated} counts {item.threads} hardware threads per core: ranks would share cores"
        return warning("cores_per_node", detail, remedy)
    status = Status.FAILED if stated > item.cores[-1] else Status.WARNING
    return Check("cores_per_node", status, f"{stated}, but nodes of {item.name} have {listed} cores", remedy)


def _unknown_cores(item: Partition, largest: Resources) -> Check:
    """Without ``cores_per_node`` every run goes to a single node."""
    cores = item.cores[0]
    if largest.ranks * largest.threads <= cores:
        return ok("cores_per_node", f"not set and not needed: every run fits on a node of {cores} cores")
    run = f"{largest.ranks} ranks x {largest.threads} threads"
    detail = f"not set, so {run} would go to one node, but those of {item.name} have {cores} cores"
    return missing("cores_per_node", detail, f"set executor.cores_per_node: {cores}")


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
