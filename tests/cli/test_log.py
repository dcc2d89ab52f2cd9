"""``log``: the same figures as ``status``, from the journal alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import LOCAL, SIMULATED, run, tree, write_campaign

FAILING = '#!/bin/sh\n[ "$1" = 3 ] && exit 4\necho "time: $1.5 s"\n'


def test_it_agrees_with_the_status() -> None:
    write_campaign(Path.cwd(), SIMULATED.replace("failure_rate: 0.1", "failure_rate: 0.5"), None)
    status = run("run", "campaign.yaml", "--json").document
    found = run("log", "rehearsal", "--json").document
    assert found["spent"]["total"] == pytest.approx(status["cost"]["spent"], rel=1e-12)
    assert found["spent"]["budget"] == status["cost"]["budget"]
    assert found["attempts"]["accepted"] == status["runs"]["measured"]
    assert sum(found["attempts"].values()) == status["attempts"]
    assert [item["run"] for item in status["given_up"]] == sorted(item["run"] for item in found["given_up"])
    assert status["stop_reason"]["rule"] in found["state"]


def test_a_morning_after() -> None:
    write_campaign(Path.cwd(), LOCAL, FAILING)
    run("run", "campaign.yaml")
    before = tree(Path.cwd())
    result = run("log", "tiny")
    assert result.code == 0 and result.err == ""
    assert "n=3/time-1: application: exit code 4" in result.out
    assert "campaign tiny begins with 1 core-hours" in result.out
    assert "campaign stopped: " in result.out
    assert tree(Path.cwd()) == before, "it only reads"


def test_without_a_campaign_it_says_so() -> None:
    result = run("log", "nothing")
    assert result.code == 2 and "holds no campaign" in result.err
