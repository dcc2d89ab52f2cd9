"""A campaign whose cluster keeps failing pauses: it says why, what to do, and how to continue."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import run, write_campaign

UNLUCKY = """
name: unlucky
application: generic
program: {arguments: ["{p}"], ranks: p, output: [{callpath: main, pattern: "t=(.*)"}]}
parameters: {p: [1, 2, 4, 8, 16]}
measure: {time_limit: 60 s, expected_time: 20 s}
strategy: {name: full, batch_size: 5}
stop: {budget: 5 core-hours, failures: 99, failure_rate: null, infrastructure: 0.004}
executor: {name: simulated, failure_rate: 0.6, truth: {main: "20"}}
retries: {application: 9, timeout: 9}
notify: {command: [./note], on: [failures, stop]}
seed: 3
"""


def test_a_rehearsal_that_pauses_says_so_and_how_it_can_be_continued_if_it_is_kept() -> None:
    write_campaign(Path.cwd(), UNLUCKY.split("notify:")[0] + "seed: 3\n", None)
    thrown_away = run("simulate", "campaign.yaml")
    assert thrown_away.code == 3
    assert "paused: infrastructure (" in thrown_away.err and "--directory keeps it" in thrown_away.err
    assert "orchestrator resume" not in thrown_away.err
    kept = run("simulate", "campaign.yaml", "--directory", "kept")
    assert kept.code == 3
    assert "paused: infrastructure (" in kept.err and "orchestrator resume kept" in kept.err


def test_a_paused_campaign_says_why_and_continues_when_it_is_resumed() -> None:
    note = Path("note")
    note.write_text('#!/bin/sh\necho "$ORCHESTRATOR_EVENT $ORCHESTRATOR_TEXT" >> noted\n')
    note.chmod(0o755)
    write_campaign(Path.cwd(), UNLUCKY, None)
    paused = run("run", "campaign.yaml", "--json")
    assert paused.code == 3, paused.err
    assert paused.document["state"] == "paused" and paused.document["stop_reason"] is None
    assert paused.document["runs"]["in flight"] == 0
    assert paused.document["paused"]["cause"] == "infrastructure"
    detail = paused.document["paused"]["detail"]
    assert "0.02 are allowed" in detail and "most often" in detail and "simulated node failure" in detail
    told = f"paused: infrastructure ({detail})"
    for text in (paused.err, " ".join(run("log", "unlucky").out.split())):
        assert told in text
    assert "remedy: see why runs end" in paused.err
    assert "Then continue with: orchestrator resume unlucky" in paused.err
    status = " ".join(run("status", "unlucky").out.split())
    assert told in status and "then: orchestrator resume unlucky" in status
    noted = Path("unlucky/noted").read_text()
    assert "failures unlucky: the campaign pauses: infrastructure" in noted
    assert "stop unlucky: the controller stopped: paused: infrastructure" in noted
    before = json.loads(run("status", "unlucky", "--json").out)["cost"]["spent"]
    codes: list[int] = []
    while not codes or codes[-1] == 3:
        again = run("resume", "unlucky", "--json")
        codes.append(again.code)
        assert again.document["cost"]["spent"] > before
        assert len(codes) < 50
    assert codes[-1] == 0
    assert again.document["state"] == "stopped" and again.document["runs"]["measured"] == 10
