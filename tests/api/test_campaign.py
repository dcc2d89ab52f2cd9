"""Campaigns from Python: rehearsed, run, opened."""

from __future__ import annotations

import copy
import json
import os
import pickle
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import orchestrator as mo
from orchestrator.api import running
from orchestrator.journal.writer import Journal
from orchestrator.report import models_document
from tests.cli.running import LOCAL, SIMULATED, run, write_campaign


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> mo.Campaign:
    folder = tmp_path_factory.mktemp("rehearsal")
    return mo.simulate(write_campaign(folder, SIMULATED, None), folder / "kept")


def test_measurements_runs_models_and_status(rehearsal: mo.Campaign) -> None:
    campaign = mo.load(rehearsal.directory)
    assert campaign.name == "rehearsal"
    assert list(campaign.measurements.columns[:2]) == ["p", "s"]
    runs = campaign.runs
    assert set(runs["status"]) <= {"measured", "given up", "skipped"}
    assert runs["core_hours"].sum() == pytest.approx(campaign.status["cost"]["spent"])
    assert runs["run"].is_unique
    assert {"main"} <= {model.callpath for model in campaign.models}
    assert list(campaign.models.predict(p=216, s=35).columns)[:2] == ["callpath", "metric"]
    assert campaign.status.state == "stopped"
    assert "core-hours" in repr(campaign)
    assert "<table>" in campaign._repr_html_()


def test_runs_are_those_of_the_command_line(tmp_path: Path) -> None:
    """Of a run that was measured at its second attempt, why the first one failed is no reason any more."""
    campaign = mo.simulate(write_campaign(tmp_path, SIMULATED, None), tmp_path / "kept", failure_rate=0.3)
    listed = run("runs", campaign.directory, "--json").document
    names = ["run", "kind", "status", "attempts", "reason"]
    assert campaign.runs[names].to_dict("records") == [{name: row[name] for name in names} for row in listed]
    assert ((campaign.runs["status"] == "measured") & (campaign.runs["attempts"] > 1)).any()


@pytest.mark.parametrize("other", [{"truth": {"main": "2 * s"}}, {"noise": np.int64(7)}])
def test_a_directory_holds_one_rehearsal(rehearsal: mo.Campaign, other: dict[str, Any]) -> None:
    """Measurements of the first one passed for those of another truth."""
    file = rehearsal.directory.parent / "campaign.yaml"
    before = rehearsal.measurements
    with pytest.raises(mo.CampaignError, match=r"yield something else \(executor\..* --directory"):
        mo.simulate(file, rehearsal.directory, **other)
    pd.testing.assert_frame_equal(mo.simulate(file, rehearsal.directory).measurements, before)


def test_the_status_is_that_of_the_command_line(rehearsal: mo.Campaign) -> None:
    document = run("status", rehearsal.directory, "--json").document
    assert dict(rehearsal.status) == document


def test_models_that_were_published_are_not_fitted_again(
    rehearsal: mo.Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = run("status", rehearsal.directory, "--json").document

    def fit(*arguments: object) -> None:
        pytest.fail("fitted again")

    with monkeypatch.context() as patch:
        patch.setattr("orchestrator.control.runtime.fit", fit)
        assert run("status", rehearsal.directory, "--json").document == document
    path = rehearsal.directory / models_document.FILE_NAME
    kept = path.read_text()
    for content in ("", "[]", json.dumps({**json.loads(kept), "basis": "another"})):
        path.write_text(content)
        unknown = run("status", rehearsal.directory, "--json").document
        assert unknown["models_outdated"] is not None
        assert run("status", rehearsal.directory, "--fit", "--json").document == document
    path.write_text(kept)


def test_a_campaign_file_that_was_edited_counts(rehearsal: mo.Campaign) -> None:
    path = rehearsal.directory / "campaign.yaml"
    kept = path.read_text()
    path.write_text(kept.replace("p: 216", "p: 343"))
    try:
        models = run("status", rehearsal.directory, "--fit", "--json").document["models"]
        assert models[0]["predictions"][0]["point"]["p"] == 343
    finally:
        path.write_text(kept)


def test_a_rehearsal_is_kept_as_long_as_its_object(tmp_path: Path) -> None:
    campaign = mo.simulate(
        write_campaign(tmp_path, SIMULATED, None), overrides={"stop.budget": "1 core-hour"}
    )
    assert campaign.directory.is_dir()
    assert campaign.status["cost"]["budget"] == 1
    assert len(campaign.refresh().runs)
    directory, other = campaign.directory, copy.deepcopy(campaign)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del campaign
        assert other.refresh().status.state == "stopped"
        del other
        assert not directory.exists()


def test_a_campaign_is_pickled_as_its_directory_and_copied_as_it_was(rehearsal: mo.Campaign) -> None:
    campaign = mo.load(rehearsal.directory)
    for other in (pickle.loads(pickle.dumps(campaign)), copy.copy(campaign), copy.deepcopy(campaign)):
        assert other.directory == campaign.directory and other is not campaign
        assert other.measurements.equals(campaign.measurements)
    assert copy.deepcopy(campaign).measurements is not campaign.measurements


def test_overrides_may_be_numbers_of_numpy_and_paths(tmp_path: Path) -> None:
    given = {"a": np.int64(4), "b": np.float32(0.5), "c": np.array([1, 2]), "d": Path("x"), "e": "y"}
    assert running.texts(given) == ["a=4", "b=0.5", "c=[1, 2]", 'd="x"', 'e="y"']
    path = write_campaign(tmp_path, SIMULATED, None)
    campaign = mo.simulate(path, overrides={"strategy.batch_size": np.int64(4)})
    assert campaign.status.state == "stopped"


def test_a_rehearsal_of_a_stated_truth(tmp_path: Path) -> None:
    path = write_campaign(tmp_path, SIMULATED, None)
    campaign = mo.simulate(path, truth={"f": "2 * s"}, noise=0, failure_rate=0, queue_delay="1 s")
    assert {model.callpath for model in campaign.models} == {"(run)", "f"}
    with pytest.raises(mo.CampaignError):
        mo.simulate(path, truth={"f": "2 * q"})


def test_a_campaign_that_states_nothing_is_rehearsed(tmp_path: Path) -> None:
    path = write_campaign(tmp_path, LOCAL.replace("./program.sh", "${NO_SUCH_PROGRAM}"), None)
    first = mo.simulate(path, tmp_path / "kept")
    assert {model.callpath for model in first.models} == {"(run)", "main"}
    again = mo.simulate(path, models=tmp_path / "kept", noise=0)
    before, after = (campaign.models["main"].predict(n=8)["value"].iloc[0] for campaign in (first, again))
    assert after == pytest.approx(before, rel=0.05)


def test_a_campaign_runs_quietly_and_is_continued(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write_campaign(tmp_path, LOCAL)
    campaign = mo.run(path, tmp_path / "here")
    assert capfd.readouterr() == ("", "")
    assert campaign.status.state == "stopped"
    assert mo.run(path, tmp_path / "here").runs.equals(campaign.runs)
    mo.run(path, tmp_path / "loud", progress=True)
    assert "round 1" in capfd.readouterr().err


def test_a_campaign_runs_in_another_thread(tmp_path: Path) -> None:
    path = write_campaign(tmp_path, LOCAL)
    done: list[mo.Campaign] = []
    thread = threading.Thread(target=lambda: done.append(mo.run(path, tmp_path / "here")))
    thread.start()
    thread.join()
    assert done[0].status.state == "stopped"


def test_an_interrupt_stops_it_in_good_order(tmp_path: Path) -> None:
    # The first run interrupts, so that the campaign has begun however busy the machine is.
    first = f'[ -e "$0.begun" ] || {{ touch "$0.begun"; kill -INT {os.getpid()}; }}'
    path = write_campaign(tmp_path, LOCAL, f'#!/bin/sh\n{first}\nsleep 0.2\necho "time: $1.5 s"\n')
    with pytest.raises(KeyboardInterrupt, match="continues it"):
        mo.run(path, tmp_path / "here")
    assert mo.load(tmp_path / "here").status.state == "running"
    assert mo.run(path, tmp_path / "here").status.state == "stopped"


def test_directories_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(mo.JournalError, match="holds no campaign"):
        mo.load(tmp_path)
    with pytest.raises(mo.CampaignError, match="ready campaigns"):
        mo.run("nowhere.yaml")


def test_another_controller_holds_the_directory(tmp_path: Path) -> None:
    path = write_campaign(tmp_path, LOCAL)
    with Journal(tmp_path / "here"), pytest.raises(mo.JournalError):
        mo.run(path, tmp_path / "here")
