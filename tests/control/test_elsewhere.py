"""Campaigns that go on at other points: other values of parameters, other constraints, another P₊."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.control import existing, session
from orchestrator.errors import CampaignError
from orchestrator.journal import events
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.measurements import measurements
from orchestrator.journal.replay import replay
from orchestrator.journal.state import RunStatus, State
from orchestrator.types import Point, Run
from tests.control.campaigns import load

FULL = (
    "strategy={name: full, batch_size: 4}",
    "validate=true",
    "measure.time_limit=600 s",
    "stop={patience: 99, budget: 99}",
)
WIDER = ("parameters.p=[2, 4, 8, 32]", "parameters.n=[10, 20, 30, 50]", "evaluation_point={p: 64, n: 90}")
FORMER = Point.of(p=16, n=50)


def measured(state: State) -> set[Run]:
    return {run for run, item in state.runs.items() if item.status is RunStatus.MEASURED}


def test_wider_ranges_and_a_further_evaluation_point_keep_what_was_measured(tmp_path: Path) -> None:
    heard: list[str] = []
    hooks = session.Hooks(changed=heard.extend)
    first = session.run(load(*FULL), tmp_path, hooks)
    assert first.validation == Run(FORMER) and FORMER not in measurements(first, load().parameters).points
    chosen = load(*FULL, *WIDER)
    second = session.run(chosen, tmp_path, hooks)
    known = measurements(second, chosen.parameters).points
    assert set(chosen.space) < set(known) and FORMER in known, "a former P₊ is a point like any other"
    assert second.validation == Run(Point.of(p=64, n=90)) and second.validation in measured(second)
    assert measured(first) < measured(second)
    assert all(second.runs[run] == first.runs[run] for run in measured(first)), "nothing was measured again"
    assert any(
        "what was measured at P(p=" in text and "outside of the search space" in text for text in heard
    )
    assert replay(read(tmp_path / FILE_NAME)) == second


def test_a_former_evaluation_point_within_the_new_ranges_is_not_measured_again(tmp_path: Path) -> None:
    one = "measure.repetitions={initial: 1, maximum: 1}"
    first = session.run(load(*FULL, one), tmp_path)
    wider = ("parameters.p=[1, 2, 4, 8, 16]", "parameters.n=[10, 20, 30, 40, 50]", WIDER[-1])
    second = session.run(load(*FULL, one, *wider), tmp_path)
    assert first.validation is not None and second.runs[Run(FORMER)] == first.runs[first.validation]
    assert {run.point for run in measured(second)} == {*load(*FULL, *wider).space, Point.of(p=64, n=90)}


def test_what_waits_outside_of_the_new_space_is_skipped(tmp_path: Path) -> None:
    def interrupted() -> bool:
        return existing.replayed(tmp_path).attempts_settled >= 2

    first = session.run(
        load(*FULL, "executor.max_pending=2"), tmp_path, session.Hooks(interrupted=interrupted)
    )
    assert any(run.point["n"] == 40 for run in first.waiting)
    small = load(*FULL, "constraints=['n < 40']")
    second = session.run(small, tmp_path)
    skipped = [run for run in first.waiting if second.runs[run].status is RunStatus.SKIPPED]
    assert skipped and {run.point["n"] for run in skipped} == {40}
    assert {run.point for run in measured(second)} - set(small.space) <= {
        FORMER,
        *(run.point for run in [*measured(first), *(attempt.run for attempt in first.in_flight)]),
    }


def test_a_campaign_without_gain_begins_to_count_anew(tmp_path: Path) -> None:
    rules = ("strategy=cpf", "stop.without_gain=0", "stop.patience=1", "stop.budget=9")
    first = session.run(load(*rules), tmp_path)
    assert first.stopped is not None and first.width is not None
    session.run(load(*rules, "evaluation_point.p=64"), tmp_path)
    entries = list(read(tmp_path / FILE_NAME))
    [number] = [k for k, entry in enumerate(entries) if isinstance(entry.event, events.CampaignChanged)]
    after = replay(entries[: number + 1])
    assert (after.width, after.uncertainty, after.rounds, after.rounds_without_improvement) == (
        None,
        None,
        (),
        0,
    )


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (
            "evaluation_point={p: 16, n: 50}",
            r"P\(p=16, n=50\) was measured, and models would be validated on",
        ),
        (
            "parameters.n={values: [10, 20, 30, 40], type: float}",
            "parameters.n: the type of its values would be",
        ),
        ("parameters.n=[10.5, 20, 30]", "parameters.n: the type of its values would be"),
        (
            "parameters={n: [10, 20, 30, 50], p: [2, 4, 8, 32]}",
            "parameters: p, n -> n, p: write them in the same order as before",
        ),
    ],
)
def test_what_cannot_be_mixed_is_refused_and_nothing_changes(
    override: str, words: str, tmp_path: Path
) -> None:
    session.run(load(*FULL), tmp_path)
    session.run(load(*FULL, *WIDER), tmp_path)
    before = (tmp_path / FILE_NAME).read_bytes()
    with pytest.raises(CampaignError, match=words):
        session.run(load(*FULL, *WIDER, override), tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_constraints_may_not_give_begun_runs_other_nodes(tmp_path: Path) -> None:
    nodes = ("resources={nodes: nodes}", "executor.cores_per_node=64")
    session.run(load(*FULL, *nodes, "constraints=['nodes == 1']"), tmp_path)
    # The smallest that differs, whatever order the runs have.
    words = r"constraints: P\(p=2, n=10\) was started with .*nodes 1,.*nodes 2,"
    with pytest.raises(CampaignError, match=words):
        session.run(load(*FULL, *nodes, "constraints=['nodes == p']"), tmp_path)
