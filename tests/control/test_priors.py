"""A campaign learns from earlier ones, of which it keeps a copy."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.control import existing, overview, reporting, session
from orchestrator.errors import CampaignError
from orchestrator.journal.state import State

OLD = """
name: old
application: generic
program: {arguments: ["{p}"], ranks: p, output: [{callpath: main, pattern: "t=(.*)"}]}
parameters: {p: [2, 4, 8, 16, 32], n: [10, 20, 30, 40, 50]}
evaluation_point: {p: 64, n: 60}
measure: {time_limit: 10 s, repetitions: {initial: 2, maximum: 2}}
strategy: {name: cpf, batch_size: 9}
model: pmnf
stop: {budget: 1 core-hours, patience: 1, without_gain: 0}
executor: {name: simulated, noise: 5, truth: {solve: "0.2 + 0.001*n**1.5*log2(p)"}}
seed: 4
"""
NEW = OLD.replace("name: old", "name: new").replace("0.001", "0.004") + "priors: {campaigns: [old]}\n"


def run(text: str, directory: Path) -> State:
    return session.run(loader.loads(text, "test.yaml", directory.parent), directory)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("campaigns") / "old"
    run(OLD, directory)
    return directory


@pytest.fixture
def folder(old: Path, tmp_path: Path) -> Path:
    shutil.copytree(old, tmp_path / "old")
    return tmp_path


def notes(directory: Path) -> list[str]:
    return [
        n
        for m in overview.status_of(existing.load(directory), existing.replayed(directory))["models"]
        for n in m["notes"]
    ]


def test_a_campaign_goes_on_without_the_one_it_learned_from(folder: Path) -> None:
    first = run(NEW, folder / "new")
    assert first.priors["campaigns"][0]["name"] == "old"
    assert any(note.startswith("structure as in old") for note in notes(folder / "new"))
    shutil.rmtree(folder / "old")
    again = session.run(
        existing.load(folder / "new", ["stop.budget=2 core-hours"], starts=True), folder / "new"
    )
    assert again.campaign["stop"]["budget"] != first.campaign["stop"]["budget"]
    assert any(note.startswith("structure as in old") for note in notes(folder / "new"))


def test_the_first_round_is_planned_with_the_ratios_of_earlier_prices(folder: Path) -> None:
    state = run(NEW, folder / "new")
    kept = json.loads((folder / "new" / "priors.json").read_text())
    assert {model["metric"] for model in kept["campaigns"][0]["models"]} == {"time", "elapsed"}
    assert state.rounds_completed


def _changed(directory: Path) -> None:
    path = directory / "priors.json"
    path.write_text(path.read_text().replace('"noise": 0.', '"noise": 0.1'))


def _damaged(directory: Path) -> None:
    (directory / "priors.json").write_text("{")


def _gone(directory: Path) -> None:
    (directory / "priors.json").unlink()


@pytest.mark.parametrize("break_copy", [_changed, _damaged, _gone])
def test_another_copy_is_refused(folder: Path, break_copy: Callable[[Path], None]) -> None:
    run(NEW, folder / "new")
    before = (folder / "new" / "journal.jsonl").read_bytes()
    break_copy(folder / "new")
    with pytest.raises(CampaignError, match="is not what the campaign began with"):
        session.run(existing.load(folder / "new", ["stop.budget=2 core-hours"], starts=True), folder / "new")
    assert (folder / "new" / "journal.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[old]", "[older]"), "does not exist"),
        (("[old]", "[new]"), "is the directory of this campaign"),
        (("[old]", "[plain]"), "holds no campaign"),
        (("n: [10", "m: [10"), "of m the other one knows nothing"),
        (("model: pmnf", "model: cpr"), "learns nothing from other campaigns"),
        (("[old]", "[old, old]"), "names a campaign twice"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_before_anything_is_spent(
    folder: Path, change: tuple[str, str], message: str
) -> None:
    (folder / "plain").mkdir()
    text = NEW.replace(*change)
    if "m: [10" in text:
        text = text.replace("n: 60", "m: 60").replace("n**", "m**")
    with pytest.raises(CampaignError, match=message):
        run(text, folder / "new")
    assert not (folder / "new").exists()


def test_a_campaign_that_measured_nothing_has_no_models(folder: Path) -> None:
    journal = folder / "old" / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:2]))
    with pytest.raises(CampaignError, match="has no models yet"):
        run(NEW, folder / "new")


def test_priors_cannot_change_on_the_way(folder: Path) -> None:
    run(OLD.replace("name: old", "name: new"), folder / "new")
    with pytest.raises(CampaignError, match="a campaign with other priors"):
        run(NEW.replace("0.004", "0.001"), folder / "new")


COUNTING = (
    OLD.replace("model: pmnf", "model: swc")
    .replace("measure: {", "measure: {effort: {when: always}, ")
    .replace("budget: 1 core", "budget: 4 core")
)
BORROWING = NEW.replace("model: pmnf", "model: swc").replace("noise: 5", "noise: 30")


@pytest.fixture(scope="module")
def borrowing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a campaign with noisy times, no effort runs and an earlier campaign that counted effort."""
    folder = tmp_path_factory.mktemp("counted")
    run(COUNTING, folder / "old")
    run(BORROWING, folder / "new")
    return folder / "new"


def test_counts_of_an_earlier_campaign_are_priors_where_none_are_counted(borrowing: Path) -> None:
    kept = json.loads((borrowing / "priors.json").read_text())
    assert {item["metric"] for item in kept["campaigns"][0]["effort"]["items"]} == {"basic_blocks", "visits"}
    state = existing.replayed(borrowing)
    assert all(started.kind == "time" for started in state.runs)
    models = overview.status_of(existing.load(borrowing), existing.replayed(borrowing))["models"]
    borrowed = {m["metric"] for m in models if "effort was counted in another campaign" in m["notes"]}
    assert borrowed == {"time"}  # no counts are priors of the durations of whole runs


def test_the_report_shows_models_without_and_with_what_was_learned(borrowing: Path) -> None:
    found = reporting.document(borrowing)["priors"]
    assert found["sources"] == ["counted effort", "the earlier campaign old"]
    [row] = [row for row in found["callpaths"] if "effort was counted in another campaign" in row["why"]]
    assert row["with"]["value"] != row["without"]["value"]
    assert row["without"]["curves"] and row["text"]
