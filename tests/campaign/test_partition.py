"""Values that reach up to what a partition has become numbers when the file is read, and stay so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jsonschema
import pytest
import yaml

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import json_schema
from orchestrator.errors import CampaignError
from orchestrator.executors.slurm import commands

SINFO = (
    "debug*|up|idle|12|48|2:24:1|infinite\n"
    "debug*|up|down*|2|48|2:24:1|infinite\n"
    "mixed|up|idle|4|64|2:16:2|infinite\n"
    "mixed|up|idle|4|48|2:24:1|infinite\n"
)
SIZES = "debug*|1-10\nmixed|1-infinite\n"
TEXT = """\
name: x
application: generic
executable: 'true'
program: {ranks: p}
measure: {profiler: time}
parameters:
  nodes: {values: powers of 2 up to partition}
  ppn: {from: 6, to: partition, factor: 2}
  t: powers of 2 up to 4
resources: {nodes: nodes, ranks_per_node: ppn, threads: t}
constraints: [nodes * ppn == p]
stop: {budget: 1e6}
executor: {name: slurm}
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """A cluster that answers ``sinfo``; what was asked of it."""
    calls: list[Sequence[str]] = []

    def call(command: Sequence[str], seconds: float) -> str:
        calls.append(command)
        return SIZES if "%s" in command[-1] else SINFO

    monkeypatch.setattr(commands, "call", call)
    return calls


def test_slurm_is_asked_once_for_all_parameters(asked: list[Sequence[str]]) -> None:
    assert len(values()) == 3
    assert len(asked) == 2  # one call cannot tell nodes and the most nodes of a job


def values(text: str = TEXT, *overrides: str) -> dict[str, tuple[object, ...]]:
    return {item.name: item.values for item in load(text, *overrides).parameters}


def load(text: str = TEXT, *overrides: str) -> Campaign:
    return loader.loads(text, "c.yaml", overrides=overrides)


@pytest.mark.usefixtures("asked")
def test_nodes_ranks_and_threads_reach_up_to_the_partition() -> None:
    # of 14 nodes a job may have 10
    assert values() == {"nodes": (1, 2, 4, 8), "ppn": (6, 12, 24, 48), "t": (1, 2, 4)}
    assert values(TEXT, "executor.partition=mixed")["nodes"] == (1, 2, 4, 8)
    assert values(TEXT, "executor.partition=mixed")["ppn"] == (6, 12, 24)  # of the smaller nodes
    assert values(TEXT, "executor.cores_per_node=12")["ppn"] == (6, 12)
    steps = TEXT.replace("powers of 2 up to partition", "multiples of 3 up to partition")
    assert values(steps)["nodes"] == (3, 6, 9)
    ranks = TEXT.replace("nodes: {values", "p: {constraint: p > 100, values").replace("{nodes: nodes, ", "{")
    ranks = ranks.replace("from: 6", "from: 1")
    assert values(ranks)["p"] == (128, 256)  # up to 10 x 48


@pytest.mark.usefixtures("asked")
def test_the_partition_is_that_of_the_site_and_of_the_size(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("partition: mixed\n")
    assert values(f"site: {site}\n{TEXT}")["ppn"] == (6, 12, 24)
    site.write_text("by_size:\n- {up_to: 64, partition: mixed}\n- {partition: debug}\n")
    assert values(f"site: {site}\n{TEXT}")["nodes"] == (1, 2, 4, 8)


def test_the_campaign_keeps_the_numbers(asked: list[Sequence[str]]) -> None:
    campaign = load()
    assert campaign.raw["parameters"]["nodes"] == {"from": 1, "to": 10, "factor": 2}
    asked.clear()
    assert loader.loads(loader.dump(campaign)) == campaign
    assert not asked


@pytest.mark.usefixtures("asked")
def test_a_rehearsal_has_the_values_of_the_campaign() -> None:
    overrides = ("executor.name=simulated", "executor.truth={main: '1'}")
    assert values(TEXT, *overrides) == values()


def test_a_campaign_without_such_values_asks_nobody(asked: list[Sequence[str]]) -> None:
    text = TEXT.replace("up to partition", "up to 8").replace("to: partition", "to: 48")
    asked.clear()
    assert values(text)["nodes"] == (1, 2, 4, 8)
    assert not asked


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{nodes: nodes, ", "{", "7: parameters.nodes: .* nothing says what nodes is .* {nodes: nodes}"),
        ("powers of 2 up to p", "powers of 1 up to p", "7: parameters.nodes: the powers of 1 are no range"),
        ("powers of 2 up to p", "powers of two up to p", "7: parameters.nodes: write powers of 2 up to 64"),
        ("from: 6", "from: 60", "8: parameters.ppn: begins at 60, and the partition has 48: lower it"),
        (
            "name: slurm",
            "name: slurm, partition: debgu",
            "7: parameters.nodes: .* debgu, .*not among debug, m",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_line_and_remedy(old: str, new: str, message: str) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(CampaignError, match=f"(?m)^c.yaml:{message}"):
        load(TEXT.replace(old, new))


def test_without_slurm_the_remedy_is_a_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        CampaignError, match=r"no Slurm answers sinfo here: .* to: 16 in place of to: partition"
    ):
        load(TEXT.replace("'true'", "/bin/true"))


def test_editors_accept_the_words() -> None:
    jsonschema.Draft202012Validator(json_schema()).validate(yaml.safe_load(TEXT))
