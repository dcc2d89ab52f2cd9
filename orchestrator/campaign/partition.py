"""Values of parameters that reach up to what a partition of Slurm has: its nodes, its cores.

``to: partition`` and ``values: powers of 2 up to partition`` become numbers when a campaign file is read, so
that the campaign, once it has begun, does not depend on what Slurm reports later.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orchestrator import registry
from orchestrator.campaign.schema import PARTITION, WORDS
from orchestrator.campaign.yaml import Problem, Tree
from orchestrator.errors import CampaignError
from orchestrator.executors.slurm.cluster import Cluster
from orchestrator.executors.slurm.partitions import Partition, meant

_MEANT = re.compile(r"powers\b|multiples\b")
_WORDS = re.compile(WORDS.replace(" of [0-9]+", " of ([0-9]+)"))

Executor = Mapping[str, Any]


class Unknown(ValueError):
    """A partition that does not say what a parameter may be; the text says why, and the remedy."""


def resolve(tree: Tree, executor: Callable[[], Executor]) -> None:
    """Replace such values in a campaign file's data by ranges of numbers; what is wrong becomes a problem.

    Parameters
    ----------
    tree
        The campaign file.
    executor
        Returns its ``executor`` section with that of its site; called only where a partition is meant.
    """
    sections = tree.data.get("parameters")
    if not isinstance(sections, dict):
        return
    numbers, cluster = {}, Cluster()
    for name, section in sections.items():
        most = functools.partial(_most, name, tree.data, executor, cluster)
        try:
            numbers[name] = _section(section, most)
        except Unknown as error:
            tree.problems.append(Problem(("parameters", name), str(error)))
            numbers[name] = {"values": (1,)}  # stands in, so that the rest can be checked
    tree.data = {**tree.data, "parameters": numbers}


def _section(section: Any, most: Callable[[], int]) -> Any:
    """Return the section of a parameter, in numbers where it was in words."""
    if isinstance(section, str) and _MEANT.match(section):
        section = {"values": section}
    if not isinstance(section, dict):
        return section
    if section.get("to") == PARTITION:
        section = {**section, "to": most()}
        _refuse_empty(section)
    words = section.get("values")
    return _in_words(section, words, most) if isinstance(words, str) and _MEANT.match(words) else section


def _in_words(section: Mapping[str, Any], words: str, most: Callable[[], int]) -> dict[str, Any]:
    """Return the range that is meant by ``powers of 2 up to 16``."""
    match = _WORDS.match(words)
    if match is None:
        raise Unknown(
            "write powers of 2 up to 64, multiples of 4 up to 64, or with the word partition in place of the "
            f"last number (value: {words!r})"
        )
    kind, number, end = match[1], int(match[2]), most() if match[3] == PARTITION else int(match[3])
    if number < (2 if kind == "powers" else 1):
        raise Unknown(f"the {kind} of {number} are no range; write a larger number (value: {words!r})")
    own = {"factor": number, "from": 1} if kind == "powers" else {"step": number, "from": number}
    ranged = {**{key: value for key, value in section.items() if key != "values"}, **own, "to": end}
    _refuse_empty(ranged)
    return ranged


def _refuse_empty(section: Mapping[str, Any]) -> None:
    low = section.get("from")
    if isinstance(low, int | float) and low > section["to"]:
        raise Unknown(f"begins at {low}, and the partition has {section['to']}: lower it")


def _most(name: str, data: Mapping[str, Any], executor: Callable[[], Executor], cluster: Cluster) -> int:
    """Return the most that a parameter can be in the partitions of a campaign."""
    role = _role(name, data)
    if role is None:
        raise Unknown(
            f"reaches up to the partition, but nothing says what {name} is there: write it under resources, "
            f"such as resources: {{nodes: {name}}}, or give a number"
        )
    options = executor()
    partitions = _meant(options, cluster.partitions)
    nodes = max(item.most_nodes for item in partitions)
    stated = options.get("cores_per_node")
    cores = (
        stated
        if isinstance(stated, int)
        else min((item.cores[0] for item in partitions if item.cores), default=0)
    )
    if role != "nodes" and not cores:
        raise Unknown(
            f"reaches up to the partition {partitions[0].name}, of which sinfo reports no cores; "
            "give a number"
        )
    return {"nodes": nodes, "cores": cores, "ranks": nodes * cores}[role]


def _meant(executor: Executor, known: Sequence[Partition]) -> list[Partition]:
    """Return the partitions that runs may be in."""
    sizes = executor.get("by_size")
    named = [item.get("partition") for item in sizes or () if isinstance(item, dict)]
    names = ",".join(map(str, named)) if named else executor.get("partition")
    if not known:
        raise Unknown(
            "reaches up to the partition, but no Slurm answers sinfo here: read the campaign on the cluster, "
            "or give a number, such as to: 16 in place of to: partition"
        )
    partitions = meant(known, names if isinstance(names, str) else None)
    if not partitions:
        listed = ", ".join(item.name for item in known)
        raise Unknown(f"reaches up to the partition {names or '(no default)'}, which is not among {listed}")
    return partitions


def _role(name: str, data: Mapping[str, Any]) -> str | None:
    """Return what a parameter counts: ``nodes``, ``cores`` of a node, ``ranks``; None if nothing says it."""
    program, adapter = _mapping(data.get("program")), _adapter(data.get("application"))
    asked = _mapping(data.get("resources"))
    if asked.get("nodes") == name:
        return "nodes"
    if name in (asked.get("ranks_per_node"), asked.get("threads"), program.get("threads")):
        return "cores"
    if program.get("ranks") == name or (name == "p" and name in adapter):
        return "ranks"
    return "cores" if name == "t" and name in adapter else None


def _mapping(section: Any) -> Mapping[str, Any]:
    return section if isinstance(section, dict) else {}


def _adapter(application: Any) -> Sequence[str]:
    if not isinstance(application, str) or not registry.knows("application", application):
        return ()
    try:
        return tuple(registry.load("application", application).parameters)
    except CampaignError:
        return ()  # another check reports it
