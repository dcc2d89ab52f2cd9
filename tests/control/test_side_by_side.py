"""Runs that would be timed at the same time are announced before they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.control import cautions
from orchestrator.executors.local import cores
from tests.cli.running import LOCAL, run, write_campaign


def said(section: str, sizes: list[int], monkeypatch: pytest.MonkeyPatch, physical: int = 4) -> str:
    monkeypatch.setattr(cores, "usable", lambda: tuple(frozenset({cpu}) for cpu in range(physical)))
    text = LOCAL.replace("slots: 1, max_pending: 1", section).replace("./program.sh", "'true'")
    return cautions.side_by_side(loader.loads(text), sizes) or ""


def test_only_runs_that_fit_beside_each_other_are_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "up to 4 runs are timed side by side" in said("slots: 8", [1] * 9, monkeypatch)
    assert "up to 2 runs" in said("slots: 8", [2, 4, 1], monkeypatch)
    assert said("slots: 8, max_pending: 1", [1] * 9, monkeypatch) == ""
    assert said("slots: 3", [2, 2, 4], monkeypatch) == ""
    assert said("slots: 8", [1] * 9, monkeypatch, physical=0) == "", "one at a time: nothing can be bound"
    assert "share cores" in said("slots: 8, share_cores: true", [1] * 9, monkeypatch, physical=2)


def test_values_that_are_read_and_not_kept_are_named() -> None:
    time, rate = "{callpath: main, pattern: 't (.*)'}", "{callpath: main, metric: fom, pattern: 'r (.*)'}"
    text = LOCAL.replace("./program.sh", "'true'")

    def said(*overrides: str) -> list[str]:
        output = f"program.output=[{time}, {rate}]"
        return cautions.left_out(loader.loads(text, "x.yaml", Path.cwd(), [output, *overrides]))

    [note] = said("measure.profiler=stdout")
    assert note == (
        "fom of program.output is left out, as measure.metrics names only time: write fom there to keep it; "
        "a rate as {name: fom, better: higher, model: inverse}"
    )
    assert said("measure.profiler=stdout", "measure.metrics=[time, fom]") == []
    whole = said("measure.profiler=time", "measure.metrics=[time, fom]")
    assert "read with measure.profiler: stdout" in whole[0]


def test_plan_and_run_say_it_and_neither_for_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shared = "slots: 2, max_pending: 2, share_cores: true"
    plan, alone = ("plan", "--no-rehearsal"), write_campaign(tmp_path)
    assert "side by side" not in run(*plan, alone).out + run("run", alone, "--directory", "alone").err
    both = write_campaign(tmp_path, LOCAL.replace("slots: 1, max_pending: 1", shared))
    assert "note: up to 2 runs are timed side by side" in run(*plan, both).out.replace("\n", " ")
    assert run("run", both, "--directory", "both").err.count("note: up to 2 runs are timed side by side") == 1
