"""``compare`` of a campaign file: another executable becomes a parameter."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.control.assembly import sharing_rules
from orchestrator.errors import CampaignError
from orchestrator.types import Point
from tests.cli.running import LOCAL, write_campaign

WITH = LOCAL.replace("program:", "compare: {with: ./other.sh, names: [old, new]}\nprogram:")


def load(folder: Path, text: str = WITH) -> Campaign:
    path = write_campaign(folder, text)
    other = folder / "other.sh"
    other.write_text("#!/bin/sh\necho 'time: 1 s'\n")
    other.chmod(0o755)
    return loader.load(path)


def test_the_executables_are_a_parameter(tmp_path: Path) -> None:
    campaign = load(tmp_path)
    assert [item.name for item in campaign.parameters] == ["n", "variant"]
    assert campaign.evaluation_point == Point.of(n=8, variant="new")
    names = {name: campaign.executable_at(Point.of(n=1, variant=name)) for name in ("old", "new")}
    assert names == {"old": str(tmp_path / "program.sh"), "new": str(tmp_path / "other.sh")}


def test_a_saved_campaign_is_the_same(tmp_path: Path) -> None:
    campaign = load(tmp_path)
    again = loader.loads(loader.dump(campaign), base_directory=tmp_path)
    assert again == campaign
    assert again.raw == campaign.raw


def test_without_it_nothing_changes(tmp_path: Path) -> None:
    campaign = load(tmp_path, LOCAL)
    assert campaign.compare is None
    assert [item.name for item in campaign.parameters] == ["n"]
    old = {key: value for key, value in campaign.raw.items() if key != "compare"}
    assert loader.normalised(old) == campaign.raw


def test_both_executables_share_their_jobs(tmp_path: Path) -> None:
    slurm = "executor: {name: simulated, truth: {main: n}}"
    text = "\n".join(slurm if line.startswith("executor:") else line for line in WITH.splitlines())
    rules = sharing_rules(load(tmp_path, text))
    assert rules is not None
    assert (rules.repetitions, rules.alike) == ("together", "variant")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("./other.sh", "./nowhere.sh", "nowhere.sh"),
        ("[old, new]", "[new, new]", "both executables are called new"),
        ("parameters: {", "parameters: {variant: [a, b], ", "stands for the executables old and new"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(CampaignError, match=message):
        load(tmp_path, WITH.replace(old, new))
