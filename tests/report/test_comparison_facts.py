"""Where two sets of measurements come from, and what disturbed them."""

from __future__ import annotations

from pathlib import Path

from orchestrator.journal.events import CampaignStarted, RoundCompleted
from orchestrator.journal.writer import Journal
from orchestrator.report import comparison_facts

QUIET = {"from": "a"}
BUSY = {"from": "b", "busy machine": "other processes took 39 % of the CPU time", "drift": "114 % slower"}


def test_disturbed_runs_are_named_as_what_may_differ() -> None:
    (note,) = comparison_facts.disturbances(QUIET, BUSY, ("A", "B"))
    assert note.startswith("runs were disturbed (B: busy machine, drift; ")
    assert comparison_facts.disturbances(QUIET, {"from": "c"}, ("A", "B")) == ()


def test_two_executables_of_one_campaign_were_disturbed_alike() -> None:
    assert comparison_facts.disturbances(BUSY, BUSY, ("old", "new")) == ()


def test_what_disturbed_a_campaign_is_what_its_last_round_says(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append([CampaignStarted(id="x", campaign={"name": "x"}, version="1")], 1.0)
        for number, machine in enumerate(
            ({"drift": "5 % faster"}, {"drift": "9 % slower", "only zeros": "-"})
        ):
            journal.append(
                [RoundCompleted(round=number, smape=None, width=None, improved=True, machine=machine)], 2.0
            )
    found = comparison_facts.of_campaign(tmp_path)
    assert found["drift"] == "9 % slower" and "only zeros" not in found


def test_two_rehearsals_show_how_their_truths_differ(tmp_path: Path) -> None:
    sides = []
    for name, truth in (("a", "n"), ("b", "2 * n")):
        executor = {"name": "simulated", "truth": {"main": truth}, "noise": 2.0, "dataset": None}
        rules = {"name": "x", "executor": executor}
        with Journal(tmp_path / name) as journal:
            journal.append([CampaignStarted(id="x", campaign=rules, version="1")], 1.0)
        sides.append(comparison_facts.of_campaign(tmp_path / name))
    found = {item["label"]: item for item in comparison_facts.side_by_side(*sides)}
    differing = found["rehearsed: truth"]
    assert (differing["a"], differing["b"], differing["same"]) == (
        '{"main": "n"}',
        '{"main": "2 * n"}',
        False,
    )
    assert found["rehearsed: noise"]["same"] and "rehearsed: dataset" not in found


def test_a_campaign_whose_runs_were_not_disturbed_has_no_such_label(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append([CampaignStarted(id="x", campaign={"name": "x"}, version="1")], 1.0)
    assert not {*comparison_facts.DISTURBED} & {*comparison_facts.of_campaign(tmp_path)}
