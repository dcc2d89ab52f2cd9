"""Campaigns whose plug-ins were uninstalled: they can be read and ended, and not continued."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

import orchestrator as mo
from orchestrator import registry
from orchestrator.campaign import loader
from orchestrator.control import execution, session
from orchestrator.control.assembly import assemble
from orchestrator.control.runtime import Runtime
from orchestrator.errors import CampaignError, ReadError
from orchestrator.journal.state import State
from orchestrator.types import Attempt, AttemptRequest, AttemptState, Observation, Point, Resources, Run
from tests.cli.running import LOCAL, SIMULATED, run
from tests.control.campaigns import load

INSTALL = "or install the distribution that brings it"
PLUGINS = {"strategy": "cpf", "model": "pmnf", "application": "lulesh", "reader": "stdout"}
NAMED = SIMULATED.replace("lulesh", "gone").replace("{name: cpf", "{name: gone") + (
    "model: gone\nmeasure: {profiler: gone, metrics: [time]}\n"
)


def begun(monkeypatch: pytest.MonkeyPatch, without: str, text: str = NAMED) -> Path:
    """Begin a campaign and interrupt it with runs in flight; then the plug-in of one kind is gone."""
    for kind, ours in PLUGINS.items():
        monkeypatch.setitem(registry.TABLES[kind], "gone", registry.TABLES[kind][ours])
    rounds: Iterator[bool] = iter([False] * 12)
    hooks = session.Hooks(interrupted=lambda: next(rounds, True))
    after: State = session.run(load(text=text), Path("there"), hooks)
    assert after.stopped is None and after.in_flight
    monkeypatch.delitem(registry.TABLES[without], "gone")
    return Path("there")


@pytest.mark.parametrize("kind", PLUGINS)
def test_a_campaign_is_read_without_its_plug_ins(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    there = begun(monkeypatch, without=kind)
    for command in ("status", "log", "runs"):
        assert run(command, there).code == 0
    assert len(mo.load(there).measurements) > 0
    reported = run("report", there, "--json")
    assert reported.code == 0, reported.err
    warned = [text for text in reported.document["head"]["warnings"] if f"unknown {kind} 'gone'" in text]
    assert len(warned) == (kind in ("application", "model")) and all(INSTALL in text for text in warned)
    resumed = run("resume", there)
    assert resumed.code == 2 and f"unknown {kind}" in resumed.err and INSTALL in resumed.err


@pytest.mark.parametrize("kind", PLUGINS)
def test_only_what_a_command_needs_must_be_installed(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    there = begun(monkeypatch, without=kind)
    compared = run("compare", there, there)
    assert compared.code == (2 if kind == "model" else 0), compared.err
    assert run("compare", there, there, "--modeler", "none").code == 0
    pruned = run("prune", there)
    assert pruned.code == (2 if kind in ("application", "reader") else 0), pruned.err
    ended = run("cancel", there)
    assert ended.code == (2 if kind == "application" else 0), ended.err
    for refused in (compared, pruned, ended):
        assert refused.code == 0 or (f"unknown {kind} 'gone'" in refused.err and INSTALL in refused.err)
    with pytest.raises(CampaignError, match="unknown model 'gone'") if kind == "model" else nullcontext():
        assert mo.load(there).models is not None


def test_what_ended_before_its_reader_was_gone_can_be_read_later(tmp_path: Path) -> None:
    text = LOCAL.replace("{time_limit: 20 s}", "{time_limit: 20 s, profiler: gone}")
    chosen = loader.loads(text, saved=True, starts=False)
    runtime = Runtime(assemble(chosen), tmp_path, execution.executor(chosen, tmp_path, 0.0))
    attempt = Attempt(Run(Point.of({"n": 1})), 1)
    request = AttemptRequest(
        attempt=attempt, name="a", directory=tmp_path, resources=Resources(ranks=1), limit=1.0, script=""
    )
    with pytest.raises(ReadError, match=r"unknown reader 'gone'.*; then: orchestrator reread"):
        runtime.collect(request, Observation(attempt, AttemptState.FINISHED))
