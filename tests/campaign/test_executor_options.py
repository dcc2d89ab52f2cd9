"""Every executor has its own options; what belongs to another one is refused, or dropped after a switch."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import yaml

from orchestrator.campaign import loader
from orchestrator.campaign.schema import EXECUTORS, LocalOptions, SimulatedOptions, SlurmOptions, json_schema
from orchestrator.errors import CampaignError

CAMPAIGN = """\
name: x
application: lulesh
executable: 'true'
parameters: {p: [1, 8], s: [10, 15]}
stop: {budget: 1}
executor:
"""
ON_SLURM = CAMPAIGN + "  name: slurm\n  partition: debug\n  cores_per_node: 8\n  max_pending: 2\n"
TRUTH = "executor.truth={main: s / p}"

# A section as versions before wrote it into journals and directories: with the keys of all executors.
FLAT: dict[str, Any] = {
    "name": "local",
    "max_pending": 3,
    "pack": {"most": "auto", "longest": 1800.0, "repetitions": "any"},
    "slots": 8,
    "oversubscribe": False,
    "launcher": None,
    "partition": "debug",
    "by_size": [],
    "sbatch": {},
    "queue_delay": 0.0,
    "truth": {},
    "dataset": None,
}


def refusal(section: str, *overrides: str) -> str:
    with pytest.raises(CampaignError) as error:
        loader.loads(CAMPAIGN + section, "c.yaml", overrides=overrides)
    return str(error.value)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            "  partition: debug\n",
            "c.yaml:7: executor.partition: belongs to executor slurm; remove it or set executor.name: slurm",
        ),
        (
            "  name: slurm\n  slots: 4\n",
            "c.yaml:8: executor.slots: belongs to executor local; remove it or set executor.name: local",
        ),
        (
            "  name: simulated\n  truth: {main: p}\n  qos: long\n",
            "c.yaml:9: executor.qos: belongs to executor slurm; remove it or set executor.name: slurm",
        ),
        (
            "  pack: 4\n",
            "c.yaml:7: executor.pack: belongs to executors slurm and simulated; "
            "remove it or set executor.name: slurm or simulated",
        ),
    ],
)
def test_a_key_of_another_executor_is_refused_with_the_remedy(section: str, message: str) -> None:
    assert refusal(section) == message
    whole = yaml.safe_load(CAMPAIGN + section)
    assert not jsonschema.Draft202012Validator(json_schema()).is_valid(whole)


def test_every_own_key_is_accepted_by_the_schema() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    whole = yaml.safe_load(ON_SLURM)
    validator.validate(whole)
    for name, options in EXECUTORS.items():
        section = options.model_validate({"name": name}).model_dump(mode="json")
        validator.validate({**whole, "executor": section})


def test_a_switch_on_the_command_line_drops_what_only_the_former_executor_has() -> None:
    local = loader.loads(ON_SLURM, overrides=["executor.name=local", "executor.slots=8"]).executor
    assert isinstance(local, LocalOptions)
    assert (local.slots, local.max_pending) == (8, 2)
    rehearsed = loader.loads(ON_SLURM, overrides=["executor.name=simulated", TRUTH]).executor
    assert isinstance(rehearsed, SimulatedOptions)
    assert rehearsed.cores_per_node == 8
    assert isinstance(loader.loads(ON_SLURM, overrides=["executor.name=slurm"]).executor, SlurmOptions)


def test_a_switch_hides_no_mistake() -> None:
    overrides = ("executor.name=simulated", TRUTH)
    assert "did you mean 'partition'?" in refusal("  name: slurm\n  partitio: debug\n", *overrides)
    text = refusal("  name: slurm\n", *overrides, "executor.partition=debug")
    assert text.startswith("--set executor.partition=debug: executor.partition: belongs to executor slurm")
    assert "executor.slots: belongs to executor local" in refusal("  name: slurm\n  slots: 4\n", *overrides)


def test_the_former_executor_may_come_from_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "slurm")
    text = ON_SLURM.replace("name: slurm", "name: ${WHERE}")
    assert isinstance(loader.loads(text, overrides=["executor.name=local"]).executor, LocalOptions)


@pytest.mark.parametrize("name", EXECUTORS)
def test_what_an_earlier_version_saved_still_loads(name: str) -> None:
    section = {**FLAT, "name": name, "truth": {"main": "p"} if name == "simulated" else {}}
    text = yaml.safe_dump({**yaml.safe_load(CAMPAIGN), "executor": section})
    loaded = loader.loads(text, saved=True)
    assert loaded.executor.name == name
    assert loaded.executor.max_pending == 3
    assert loader.loads(loader.dump(loaded)) == loaded
    with pytest.raises(CampaignError, match="belongs to executor"):
        loader.loads(text)
    assert loader.normalised({**loaded.raw, "executor": section}) == loaded.raw
