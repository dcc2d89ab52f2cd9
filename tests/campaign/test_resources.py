"""Resources of runs as parameters and expressions, and what constraints derive of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import json_schema
from orchestrator.control import assembly, attempts
from orchestrator.errors import CampaignError
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.executors.slurm.sbatch import ArrayRequest, parameters
from orchestrator.resources import Asked
from orchestrator.types import Point, Resources, Value

GENERIC = """\
name: levels
application: generic
executable: 'true'
program:
  arguments: ["{n}", "{p}"]
  output: [{callpath: main, pattern: '(.*)'}]
parameters: {nodes: [1, 2, 4], ppn: [1, 2, 4], t: [1, 2, 4], n: [10, 20]}
resources: {nodes: nodes, ranks_per_node: ppn, threads: t}
constraints: ["nodes * ppn == p", "2 <= ppn * threads <= 4"]
stop: {budget: 20}
executor: {name: slurm, cores_per_node: 4, launcher: 'srun -n {ranks}'}
"""
MINIFE = """\
name: levels
application: minife
executable: 'true'
parameters: {nodes: [1, 2, 4], ppn: [1, 2, 4], threads: [1, 2], n: [10, 20]}
resources: {nodes: nodes, ranks_per_node: ppn, threads: threads}
stop: {budget: 20}
executor: {name: slurm, cores_per_node: 8, launcher: 'srun -n {ranks}'}
"""


def load(text: str = GENERIC, *changes: tuple[str, str], overrides: tuple[str, ...] = ()) -> Campaign:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return loader.loads(text, "c.yaml", overrides=overrides)


def refusal(text: str, *changes: tuple[str, str]) -> str:
    with pytest.raises(CampaignError) as error:
        load(text, *changes)
    return str(error.value)


def shape(campaign: Campaign, **values: int) -> Resources:
    return campaign.resources_at(campaign.values(Point.of(**values)))


def test_nodes_ranks_and_threads_are_parameters() -> None:
    campaign = load()
    assert {(point["nodes"], point["ppn"], point["t"]) for point in campaign.space} == {
        (nodes, ppn, t) for nodes in (1, 2, 4) for ppn, t in ((1, 2), (1, 4), (2, 1), (2, 2), (4, 1))
    }
    built = assembly.assemble(campaign)
    for point in campaign.space:
        found, nodes, ppn, t = built.resources(point), point["nodes"], point["ppn"], point["t"]
        assert (found.nodes, found.ranks_per_node, found.threads) == (nodes, ppn, t)
        assert found.ranks == campaign.values(point)["p"]
        assert built.cores(point) == found.cores == found.ranks * found.threads
        script = attempts.script(built, point, found)
        assert f"export OMP_NUM_THREADS={t}\n" in script
        assert f"srun -n {found.ranks} " in script and f" {point['n']} {found.ranks}\n" in script
        assert point in campaign.space


def test_the_job_asks_for_them() -> None:
    campaign = load(GENERIC, ("threads: t}", "threads: t, gpus_per_node: ppn}"))
    found = shape(campaign, nodes=4, ppn=2, t=2, n=10)
    asked = parameters(
        ArrayRequest(name="x", resources=found, limits=[60.0], options=JobOptions(), folder=Path("folder"))
    )
    assert (asked["nodes"], asked["cpus_per_task"]) == (4, 2)
    further = asked["additional_parameters"]
    assert (further["ntasks"], further["ntasks-per-node"], further["gpus-per-node"]) == (8, 2, 2)


def test_whole_nodes_are_reserved_where_they_are_charged() -> None:
    for change in ("exclusive: true", "billing: nodes"):
        campaign = load(GENERIC, ("cores_per_node: 4", f"cores_per_node: 4, {change}"))
        assert shape(campaign, nodes=4, ppn=1, t=2, n=10).cores == 16
    threads = load(GENERIC, ("cores_per_node: 4", "cores_per_node: 4, threads_per_core: 2"))
    assert shape(threads, nodes=2, ppn=2, t=2, n=10).cores == 8
    alone = load(
        GENERIC,
        ("cores_per_node: 4", "cores_per_node: 4, threads_per_core: 2, sbatch: {hint: nomultithread}"),
    )
    assert shape(alone, nodes=2, ppn=2, t=2, n=10).cores == 16


@given(st.sampled_from([1, 2, 3, 4, 6, 8, 12]), st.sampled_from([1, 2, 3, 4]))
def test_nodes_are_derived_or_the_point_is_none(p: int, ppn: int) -> None:
    campaign = load(
        GENERIC,
        ("{nodes: [1, 2, 4], ppn: [1, 2, 4]", "{p: [1, 2, 3, 4, 6, 8, 12], ppn: [1, 2, 3, 4]"),
        ('"2 <= ppn * threads <= 4"', "ppn * t <= 4"),
        ("{nodes: nodes, ranks_per_node", "{ranks_per_node"),
    )
    point = Point.of(p=p, ppn=ppn, t=1, n=10)
    assert (point in campaign.space) == (p % ppn == 0)
    if p % ppn == 0:
        found = campaign.resources_at(campaign.values(point))
        assert (found.nodes, found.ranks) == (p // ppn, p)


def test_an_adapter_gets_its_ranks_and_threads() -> None:
    campaign = load(MINIFE)
    assert campaign.derivation.names == ("ranks_per_node", "p", "t")
    found = shape(campaign, nodes=2, ppn=4, threads=2, n=10)
    assert (found.ranks, found.nodes, found.ranks_per_node, found.threads) == (8, 2, 4, 2)
    derived = load(
        MINIFE,
        ("{nodes: [1, 2, 4], ppn", "{p: [4, 8], ppn"),
        ("{nodes: nodes, ranks_per_node: ppn", "{nodes: p / ppn, ranks_per_node: ppn"),
    )
    assert shape(derived, p=8, ppn=2, threads=1, n=10).nodes == 4


def test_a_product_of_levels_gives_the_threads() -> None:
    campaign = load(
        MINIFE, ("threads: [1, 2], ", ""), ("threads: threads}", "threads: t}\nconstraints: ['ppn * t == 4']")
    )
    found = {(point["ppn"], campaign.values(point)["t"]) for point in campaign.space}
    assert found == {(1, 4), (2, 2), (4, 1)}


P_FROM = "nodes * ppn == p"
PPN, NODES = "ranks_per_node: ppn", "nodes: nodes,"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"nodes * ppn == p", ', "", "5: program.arguments.1: .*unknown name 'p'"),
        (P_FROM, "nodes * ppn <= p", "9: constraints.0: .*: p is neither a parameter nor a setting"),
        (P_FROM, "nodes * ppn == p * p", "9: constraints.0: .*p stands 2 times"),
        (P_FROM, "nodes * ppn == p % 7", r"9: constraints.0: .*write p == \.\.\."),
        (P_FROM, "nodes * pnp == p", "9: constraints.0: .*: p and pnp are no .*'ppn'. Otherwise vary p,"),
        (PPN, "ranks_per_node: pnp", "8: resources.ranks_per_node: .*: pnp is neither .* did you mean 'ppn'"),
        (NODES, "nodes: 'ppn +',", r"8: resources.nodes: is ppn \+, and nodes is also a parameter"),
        ("threads: t}", "threads: 't +'}", r"8: resources.threads: expression 't \+'"),
        ("threads: t}", "threads: t > 2}", "8: resources.threads: .*gives a truth, not a number"),
        (NODES, "nodse: nodes,", "8: resources.nodse: unknown key; did you mean 'nodes'"),
        (NODES, "nodes: [1, 2],", "8: resources.nodes: must be a single number or text"),
        (
            PPN,
            "ranks_per_node: ppn / 8",
            "9: constraints: .*is empty: .* ppn / 8 = 0.5 is not a whole number",
        ),
        ("cores_per_node: 4", "ranks_per_node: ppn", "11: executor.ranks_per_node: .*under resources"),
        ("cores_per_node: 4", "gpus_per_node: ppn", "11: executor.gpus_per_node: .*under resources"),
    ],
)
def test_what_cannot_be_is_refused_with_line_and_remedy(old: str, new: str, message: str) -> None:
    assert re.search(f"^c.yaml:{message}", refusal(GENERIC, (old, new)), re.MULTILINE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([(f"{PPN}, ", ""), ("ppn: [1, 2, 4], ", "")], "4: parameters: minife needs p .* such as p == nodes"),
        ([("threads: threads}", "threads: 4}")], "5: resources.threads: is 4, and threads is also a param"),
        ([("n: [10, 20]", "n: [10], t: [3]")], "4: parameters: .* gives [12] threads .*, the run has 3"),
        ([("n: [10, 20]", "n: [10], q: [3]")], "4: parameters.q: minife has no parameter 'q'"),
    ],
)
def test_what_an_adapter_cannot_use_is_refused(changes: list[tuple[str, str]], message: str) -> None:
    assert re.search(f"^c.yaml:{message}", refusal(MINIFE, *changes), re.MULTILINE)


def test_an_evaluation_point_from_which_nothing_follows_is_refused() -> None:
    message = refusal(
        GENERIC,
        ("{nodes: [1, 2, 4], ppn: [1, 2, 4]", "{p: [4, 8], ppn: [1, 2]"),
        (f'"{P_FROM}", "2 <= ppn * threads <= 4"', '"2**nodes == p / ppn"'),
        ("stop:", "evaluation_point: {p: 16, ppn: -1, t: 1, n: 40}\nstop:"),
    )
    assert (
        "c.yaml:10: evaluation_point: '2**nodes == p / ppn' gives no value of nodes at P(p=16, ppn=-1"
        in message
    )


def test_multi_node_points_are_no_points_of_one_machine() -> None:
    local = load(overrides=("executor={name: local, slots: 8, launcher: 'mpiexec -n {ranks}'}",))
    assert local.space.describe().values["nodes"] == (1,)
    assert any("2 nodes are more than the 1" in text for text in local.space.describe().infeasible)


def test_what_is_written_out_loads_as_the_same_campaign() -> None:
    campaign = load()
    assert loader.loads(loader.dump(campaign)) == campaign
    jsonschema.Draft202012Validator(json_schema()).validate(yaml.safe_load(GENERIC))


def test_a_campaign_of_an_earlier_version_has_the_same_rules() -> None:
    campaign = load(
        GENERIC,
        ("resources: {nodes: nodes, ranks_per_node: ppn, threads: t}\n", ""),
        ('constraints: ["nodes * ppn == p", "2 <= ppn * threads <= 4"]\n', ""),
        (', "{p}"', ""),
    )
    before: dict[str, Any] = {key: value for key, value in campaign.raw.items() if key != "resources"}
    before["executor"] = {k: v for k, v in campaign.raw["executor"].items() if k != "threads_per_core"}
    assert loader.normalised(before) == campaign.raw
    assert {shape(campaign, nodes=4, ppn=4, t=4, n=10)} == {Resources(ranks=1)}  # mere names


@pytest.mark.parametrize(
    ("resources", "times"),
    [("threads: 2", 1), ("nodes: nodes, ranks_per_node: ppn, threads: t", 8)],
)
def test_what_runs_ask_for_everywhere_is_found_once(
    resources: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search space may have a hundred thousand points, of each of which the resources are needed."""
    changes = [
        ("{nodes: nodes, ranks_per_node: ppn, threads: t}", f"{{{resources}}}"),
        ('constraints: ["nodes * ppn == p", "2 <= ppn * threads <= 4"]\n', ""),
        ('arguments: ["{n}", "{p}"]', 'arguments: ["{n}"]'),
    ]
    campaign = load(GENERIC, *changes)
    points = [Point.of(nodes=1, ppn=1, t=2, n=n) for n in (10, 20)] * 4
    campaign.__dict__.pop("_asked_everywhere", None)
    asked: list[object] = []
    ask = Campaign._asked

    def counted(self: Campaign, values: Mapping[str, Value]) -> Asked:
        asked.append(values)
        return ask(self, values)

    monkeypatch.setattr(Campaign, "_asked", counted)
    assert {campaign.resources_at(campaign.values(point)).threads for point in points} == {2}
    assert len(asked) == times
    assert campaign.machine is campaign.machine
