"""Measurements that are discarded: in one event or not at all, at no cost, and the campaign decides again."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import immutables
import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.control import existing, overview, session, settle
from orchestrator.control.discarding import discard, restore
from orchestrator.control.reread import reread
from orchestrator.control.watching import Watch
from orchestrator.errors import CampaignError, JournalError
from orchestrator.journal import events, forms
from orchestrator.journal.codec import Entry, encode
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.measurements import measurements
from orchestrator.journal.references import REASON, references
from orchestrator.journal.replay import apply, replay
from orchestrator.journal.state import RunStatus, State
from orchestrator.journal.writer import Journal
from orchestrator.policy.effort_runs import Plan
from orchestrator.report import comparison_facts, log, models_document
from orchestrator.strategies.base import Choice
from orchestrator.types import Point, Run
from tests.cli.running import run as call
from tests.control.campaigns import values
from tests.control.test_reread import INNER
from tests.control.test_reread import load as local
from tests.models.test_consistency import RUN, SOLVE, A, B

CAMPAIGN = """
name: rehearsal
application: generic
program: {arguments: ["{p}"], ranks: p, output: [{callpath: main, pattern: "t=(.*)"}]}
parameters: {p: [1, 2, 4], n: [10, 20]}
evaluation_point: {p: 8, n: 30}
measure: {time_limit: 100 s, repetitions: {initial: 2, maximum: 4}}
strategy: {name: full, batch_size: 3}
stop: {budget: 5 core-hours, patience: 9}
executor:
  name: simulated
  max_pending: 3
  poll_interval: 1 s
  noise: 3
  truth: {solve: "2 + 0.1*n*p", exchange: "1 + log2(p)*n*0.01"}
model: pmnf
validate: true
seed: 4
"""
TARGET = Point.of(p=8, n=30)
FIRST = Run(Point.of(p=1, n=10))


def load(*overrides: str) -> Campaign:
    return loader.loads(CAMPAIGN, "test.yaml", Path.cwd(), overrides)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("finished") / "made"
    state = session.run(load(), directory)
    assert state.stopped is not None and state.validation == Run(TARGET)
    return directory


@pytest.fixture
def made(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "made"))


def lines(directory: Path) -> list[bytes]:
    return (directory / FILE_NAME).read_bytes().splitlines()


def points(state: State) -> Counter[Point]:
    """Return how many values models see per point."""
    item = next(i for i in measurements(state, load().parameters).items if i.callpath == "solve")
    return Counter({point: len(values) for point, values in item.values.items()})


def check(directory: Path) -> State:
    """Check that no run was measured twice, and that spent never falls; return the state."""
    state, accepted = State(), Counter[Run]()
    for entry in read(directory / FILE_NAME):
        spent = state.spent
        state = apply(state, entry.event, entry.time)
        assert state.spent >= spent or isinstance(entry.event, events.AttemptCharged)
        if isinstance(entry.event, events.AttemptFinished) and entry.event.failure is None:
            accepted[entry.event.attempt.run] += 1
    assert set(accepted.values()) == {1}
    return state


def test_models_do_not_see_it_and_the_loop_measures_the_point_again(made: Path) -> None:
    before = existing.replayed(made)
    names = [FIRST.id, str(Run(Point.of(p=2, n=10))), f"{made}/runs/{Run(TARGET).id}/attempt-1/"]
    found = discard(made, names, "node n3\n was  throttled")
    assert [run.id for run in found.runs] == ["p=1,n=10/time-1", "p=2,n=10/time-1", "p=8,n=30/time-1"]
    assert found.reason == "node n3 was throttled"
    assert found.cost == sum(before.runs[run].cost for run in found.runs)
    assert len(lines(made)) == len(list(read(made / FILE_NAME))) == before_lines(before, made) + 1
    now = existing.replayed(made)
    assert now == found.after and (now.spent, now.stopped) == (before.spent, before.stopped)
    assert {point: points(before)[point] - points(now)[point] for point in points(before)} == {
        point: int(point in {run.point for run in found.runs}) for point in points(before)
    }
    assert now.validation is None
    changes: list[str] = []
    after = session.run(load(), made, session.Hooks(changed=changes.extend))
    assert changes == [
        "measurements were discarded, restored or read again: what to do next is decided again"
    ]
    assert after.stopped is not None and after.round > before.round and not after.undecided
    assert points(after) == points(before)
    assert after.validation == Run(TARGET, "time", 2)
    assert after.runs[after.validation].status is RunStatus.MEASURED
    new = {run for run in after.runs if run not in before.runs}
    assert new == {Run(run.point, "time", 1 + max_repetition(before, run.point)) for run in found.runs}
    assert check(made) == after
    # It stays stopped now.
    assert session.run(load(), made) == after


CONVERGING = (
    "strategy.name=information",
    "stop.patience=2",
    "stop.budget=50 core-hours",
    "parameters.p=[1, 2, 4, 8, 16]",
    "parameters.n=[10, 20, 30, 40, 50]",
    "evaluation_point={p: 32, n: 60}",
    "validate=false",
)


@pytest.fixture(scope="module")
def converged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("converged") / "made"
    state = session.run(load(*CONVERGING), directory)
    assert state.stopped is not None and state.stopped.rule == "converged"
    return directory


def test_where_models_of_what_is_left_are_as_sure_nothing_is_measured_again(
    converged: Path, tmp_path: Path
) -> None:
    made = Path(shutil.copytree(converged, tmp_path / "made"))
    before = existing.replayed(made)
    again = Run(Point.of(p=2, n=20), "time", 2)
    discard(made, [again.id], "hot")
    now = discard(made, [FIRST.id], "hot, too").after
    assert (now.smape, now.uncertainty, now.narrow_rounds) == (None, None, 0)
    restore(made, [again.id])
    after = session.run(load(*CONVERGING), made)
    assert after.stopped is not None and after.stopped.rule == "converged"
    assert {*after.runs} == {*before.runs} and after.spent == before.spent
    assert after.smape is not None and after.uncertainty is not None
    assert models_document.published(made, after)["outdated"] is None
    texts = [item["text"] for item in log.document(read(made / FILE_NAME))["events"]]
    assert sum(text.startswith("with the measurements that count now: models fit to ") for text in texts) == 1


def test_where_they_are_not_it_is_measured_again(converged: Path, tmp_path: Path) -> None:
    made = Path(shutil.copytree(converged, tmp_path / "made"))
    before = existing.replayed(made)
    gone = sorted(run.id for run in before.runs if run.point.number("p") > 1 or run.point.number("n") > 20)
    discard(made, gone, "wrong input")
    after = session.run(load(*CONVERGING), made)
    entries = [entry.event for entry in read(made / FILE_NAME)]
    [assessed] = [event for event in entries if isinstance(event, events.ModelsAssessed)]
    assert not assessed.narrow
    assert after.round > before.round and after.spent > before.spent


def test_a_width_that_is_wanted_is_compared_with_that_of_what_is_left(tmp_path: Path) -> None:
    rules, made = load(*CONVERGING, "stop.width=0.2"), tmp_path / "made"
    before = session.run(rules, made)
    assert before.stopped is not None and before.stopped.rule == "precision"
    discard(made, [FIRST.id], "hot")
    after = session.run(rules, made)
    assert after.stopped is not None and after.stopped.rule == "precision"
    assert {*after.runs} == {*before.runs}


def before_lines(before: State, directory: Path) -> int:
    entries = list(read(directory / FILE_NAME))
    return next(k for k in range(len(entries), 0, -1) if replay(entries[:k]) == before)


def max_repetition(state: State, point: Point) -> int:
    return max(run.repetition for run in state.runs if run.point == point)


def test_what_is_restored_is_as_it_was(made: Path) -> None:
    before = existing.replayed(made)
    discard(made, [FIRST.id, Run(TARGET).id], "hot")
    found = restore(made, [Run(TARGET).id, FIRST.id])
    assert found.after.runs == before.runs and found.after.validation == before.validation
    assert not found.after.discarded and check(made).spent == before.spent


@pytest.mark.parametrize(
    ("names", "reason", "message"),
    [
        (["p=1,n=10/time-1"], " ", "say why"),
        ([], "hot", "name the runs"),
        (["p=1,n=11/time-1"], "hot", "has no run 'p=1,n=11/time-1'; did you mean 'p=1,n=10/time-1'"),
        (["p=1,n=10"], "hot", "it is a point with the runs p=1,n=10/time-1, p=1,n=10/time-2"),
        (["nothing like it"], "hot", "'orchestrator runs DIR' lists its runs"),
        (["p=1,n=10/time-1/attempt-2"], "hot", "attempt 2 has no measurement; that of the run"),
        (["p=4,n=10/time-2", "p=1,n=10/time-1"], "hot", "1 run cannot be discarded: p=4,n=10/time-2"),
        (["p=2,n=10/time-1"], "hot", r"it is discarded already \(cold\), and counts again after --restore"),
    ],
)
def test_a_wrong_name_is_refused_before_anything_is_written(
    made: Path, names: list[str], reason: str, message: str
) -> None:
    discard(made, ["p=4,n=10/time-2", "p=2,n=10/time-1"], "cold")
    before = lines(made)
    with pytest.raises(CampaignError, match=message):
        discard(made, names, reason)
    assert lines(made) == before


def test_a_run_that_failed_has_nothing_to_discard(tmp_path: Path) -> None:
    session.run(load("executor.truth={solve: '900*n*p'}", "stop.failures=2"), tmp_path)
    before = lines(tmp_path)
    with pytest.raises(CampaignError, match=r"time-1: it is given up \(.*\), so models see nothing of it"):
        discard(tmp_path, [FIRST.id], "hot")
    with pytest.raises(CampaignError, match="no run that is measured was on n3"):
        discard(tmp_path, [], "hot", node="n3")
    with pytest.raises(CampaignError, match="not discarded"):
        restore(tmp_path, [FIRST.id])
    assert lines(tmp_path) == before


def test_validations_that_take_the_place_of_each_other_are_not_both_restored(made: Path) -> None:
    discard(made, [Run(TARGET).id], "hot")
    session.run(load(), made)
    with pytest.raises(CampaignError, match=r"must be discarded first: p=8,n=30/time-2"):
        restore(made, [Run(TARGET).id])
    discard(made, ["p=8,n=30/time-2"], "hot")
    before = lines(made)
    with pytest.raises(CampaignError, match="another run validates"):
        restore(made, [Run(TARGET).id, "p=8,n=30/time-2"])
    assert lines(made) == before
    assert restore(made, [Run(TARGET).id]).after.validation == Run(TARGET)


def test_while_a_controller_is_running_nothing_is_discarded(made: Path) -> None:
    before = lines(made)
    with Journal(made), pytest.raises(JournalError, match=r"another controller.*stop it \(Ctrl-C\) first"):
        discard(made, [FIRST.id], "hot")
    assert lines(made) == before


@pytest.mark.parametrize("moment", ["before", "torn", "after"])
def test_a_kill_leaves_all_of_it_or_nothing(made: Path, moment: str) -> None:
    before, whole = existing.replayed(made), len(lines(made))
    names = [run.id for run in sorted(before.runs, key=str)[:4]]

    def boundary(now: str, entries: Sequence[Entry]) -> None:
        if now == "before" and moment == "torn":
            with (made / FILE_NAME).open("ab") as file:
                file.write(encode(entries[0])[:-9])
        if now == ("after" if moment == "after" else "before"):
            os.kill(os.getpid(), signal.SIGKILL)

    gc.freeze()
    child = os.fork()
    if child == 0:
        try:
            discard(made, names, "hot", boundary=boundary)
        finally:
            os._exit(70)
    gc.unfreeze()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    left = existing.replayed(made)
    assert len(left.discarded) == (4 if moment == "after" else 0)
    if moment != "after":
        assert left == before
        assert len(discard(made, names, "hot").after.discarded) == 4
    assert len(list(read(made / FILE_NAME))) == whole + 1


def test_an_interrupted_campaign_goes_on_without_it(tmp_path: Path) -> None:
    calls, chosen = iter(range(99)), load("executor.queue_delay=20")
    session.run(chosen, tmp_path, session.Hooks(interrupted=lambda: next(calls) > 9))
    before = existing.replayed(tmp_path)
    assert before.stopped is None and before.in_flight
    run = min((run for run, item in before.runs.items() if item.status is RunStatus.MEASURED), key=str)
    after = discard(tmp_path, [run.id], "hot").after
    assert after.in_flight == before.in_flight and after.reserved == before.reserved
    end = session.run(chosen, tmp_path)
    assert end.stopped is not None and end.runs[run].status is RunStatus.DISCARDED
    assert points(end)[run.point] == 2 and check(tmp_path) == end


def test_a_campaign_that_begins_nothing_does_not_decide_anew(made: Path) -> None:
    discard(made, [FIRST.id], "hot")
    state = session.run(load(), made, session.Hooks(begin=False))
    assert state.stopped is not None and state.undecided


def test_all_runs_of_a_node_are_discarded_those_on_several_nodes_too(tmp_path: Path) -> None:
    session.run(local(), tmp_path)
    [node] = {item.node for item in existing.replayed(tmp_path).runs.values()}
    entries = list(read(tmp_path / FILE_NAME))
    path = tmp_path / FILE_NAME
    path.write_bytes(b"".join(encode(on_two_nodes(entry)) for entry in entries))
    folder = tmp_path / "runs" / "n=20" / "time-1" / "attempt-1" / "attempt.json"
    folder.write_text(folder.read_text().replace(f'"nodes": "{node}"', '"nodes": "n[6-7]"'))
    (tmp_path / "runs" / "n=30" / "time-1" / "attempt-1" / "attempt.json").unlink()
    listed = call("runs", tmp_path, "--node", "n7", "--json").document
    assert [(row["run"], row["node"]) for row in listed] == [("n=20/time-1", "")]
    found = discard(tmp_path, [], "hot", node="n7")
    assert [run.id for run in found.runs] == ["n=20/time-1"] and found.unknown == 1
    assert [run.id for run in discard(tmp_path, ["n=30/time-1"], "hot", node=f"{node[0]}*").runs] == [
        "n=10/time-1",
        "n=30/time-1",
    ]
    assert [run.id for run in restore(tmp_path, [], node="n6").runs] == ["n=20/time-1"]


def on_two_nodes(entry: Entry) -> Entry:
    event = entry.event
    if isinstance(event, events.AttemptFinished) and event.attempt.run.point["n"] != 10:
        data = {**events.to_json(event), "nodes": 2}
        return Entry(entry.sequence, entry.time, events.from_json("attempt_finished", data))
    return entry


def test_outputs_that_are_read_again_are_not_mixed_with_earlier_values(tmp_path: Path) -> None:
    session.run(local(), tmp_path)
    discard(tmp_path, ["n=10/time-1"], "hot")
    stdout = tmp_path / "runs" / "n=20" / "time-1" / "attempt-1" / "stdout"
    stdout.write_text("total 77 s\n")
    (tmp_path / "runs" / "n=10" / "time-1" / "attempt-1" / "stdout").unlink()
    found = reread(tmp_path, local())
    assert (found.read, found.changed, found.refused) == (2, 1, False)
    assert list(found.unreadable) == ["n=10/time-1/attempt-1"]
    with pytest.raises(CampaignError, match="outputs were read again since it was discarded"):
        restore(tmp_path, ["n=10/time-1"])


def test_what_is_discarded_is_read_again_too_and_can_be_restored(tmp_path: Path) -> None:
    session.run(local(), tmp_path)
    discard(tmp_path, ["n=10/time-1", "n=20/time-1"], "hot")
    stdout = tmp_path / "runs" / "n=10" / "time-1" / "attempt-1" / "stdout"
    kept = stdout.read_text()
    stdout.unlink()
    found = reread(tmp_path, local(INNER))
    assert (found.read, found.changed, found.refused) == (2, 2, False)
    state = existing.replayed(tmp_path)
    assert [item.id for item in state.discarded] and state.rereads == 1
    after = restore(tmp_path, ["n=20/time-1"]).after
    assert values(after) == {20: 20.25, 30: 30.25}
    with pytest.raises(CampaignError, match="its own was not"):
        restore(tmp_path, ["n=10/time-1"])
    # Once its output is there again it is read, although nothing else has changed.
    stdout.write_text(kept)
    assert reread(tmp_path, local(INNER)).changed == 1
    assert values(restore(tmp_path, ["n=10/time-1"]).after) == {10: 10.25, 20: 20.25, 30: 30.25}
    assert reread(tmp_path, local(INNER)).changed == 0


def test_what_is_discarded_and_has_the_same_values_can_be_restored(tmp_path: Path) -> None:
    """Of two rules that read the same there is no other value to journal, and yet it was read."""
    session.run(local(), tmp_path)
    discard(tmp_path, ["n=10/time-1"], "hot")
    found = reread(tmp_path, local("program.output=[{callpath: main, pattern: 'total +(\\S+) s'}]"))
    assert (found.read, found.changed) == (3, 0) and len(found.changes) == 1
    assert values(restore(tmp_path, ["n=10/time-1"]).after)[10] == 10.5


def test_models_that_were_published_before_are_outdated(made: Path) -> None:
    before = existing.replayed(made)
    assert models_document.published(made, before)["outdated"] is None
    state = discard(made, [FIRST.id, Run(TARGET).id], "hot").after
    shown = overview.status_in(made)
    assert shown["models_outdated"] == "since then measurements were discarded or restored"
    assert shown["validation"] == [] and shown["models"]
    assert shown["no_validation"] == "validation not made: what p=8,n=30/time-1 measured was discarded: hot"
    assert [item["run"] for item in shown["discarded"]] == ["p=1,n=10/time-1", "p=8,n=30/time-1"]
    assert shown["runs"]["discarded"] == 2 and shown["decides_again"]
    fitted = overview.status_in(made, fit=True)
    assert fitted["models"] and fitted["models"] != shown["models"]
    again = restore(made, [FIRST.id, Run(TARGET).id]).after
    assert models_document.published(made, again)["outdated"] is not None
    assert overview.status_in(made, fit=True)["models"] == shown["models"]
    assert state.discards == 1 and again.discards == 2


def test_who_follows_a_campaign_sees_that_values_are_gone(made: Path) -> None:
    watched = Watch(made)
    before = watched.document()["points"]
    discard(made, [f"p=1,n=10/time-{k}" for k in (1, 2)], "hot")
    assert watched.document()["points"] == before - 1


def test_effort_is_counted_again_with_a_further_number(made: Path) -> None:
    point = Point.of(p=1, n=10)
    run = Run(point, "effort")
    state = apply(existing.replayed(made), events.RoundProposed(9, (run,), ("",)), 0.0)
    attempt = {"attempt": forms.RUN.pack(run) | {"attempt": 1}}
    for name, data in (
        ("attempt_intended", {"name": "x", "cores": 1, "limit": 1.0, "reserved": 1.0}),
        ("attempt_finished", {"elapsed": 1.0, "cost": 1.0}),
    ):
        state = apply(state, events.from_json(name, {**attempt, **data}), 0.0)
    wanted: Callable[[State], list[Run]] = lambda now: [  # noqa: E731
        item
        for item in settle.round_of(10, [Choice(point, 1, "")], now, Plan({point: 1})).runs
        if item.kind == "effort"
    ]
    assert wanted(state) == []
    state = apply(state, events.MeasurementsDiscarded((run,), "hot"), 1.0)
    assert wanted(state) == [Run(point, "effort", 2)]


def test_the_log_says_what_was_discarded_and_that_no_controller_ran(made: Path) -> None:
    discard(made, [f"p=1,n=10/time-{k}" for k in (1, 2)] + ["p=2,n=10/time-1", "p=2,n=10/time-2"], "hot")
    restore(made, ["p=2,n=10/time-1"], "it was another node")
    session.run(load(), made)
    found = log.document(read(made / FILE_NAME))
    texts = [item["text"] for item in found["events"]]
    assert (
        "discarded: P(p=1, n=10) time-1, P(p=1, n=10) time-2, P(p=2, n=10) time-1 and 1 more run: hot"
        in texts
    )
    assert "restored: P(p=2, n=10) time-1: it was another node" in texts
    assert "rules changed: measurements were discarded, restored or read again: decides again" in texts
    assert [item["run"] for item in found["discarded"]] == [
        "p=1,n=10/time-1",
        "p=1,n=10/time-2",
        "p=2,n=10/time-2",
    ]
    assert comparison_facts.of_campaign(made)["campaign"] == "rehearsal"


def test_the_clock_of_a_rehearsal_stays_its_own(made: Path) -> None:
    before = existing.replayed(made)
    assert discard(made, [FIRST.id], "hot").after.time == before.time


def test_time_without_a_controller_does_not_end_with_a_command(made: Path) -> None:
    path = made / FILE_NAME
    entries = [entry for entry in read(path) if not isinstance(entry.event, events.CampaignStopped)]
    last, begun = entries[-1], next(e.event for e in entries if isinstance(e.event, events.ControllerStarted))
    further = (events.MeasurementsDiscarded((FIRST,), "hot"), events.MeasurementsRestored((FIRST,)))
    found = log.Log()
    for entry in entries:
        found.take(entry)
    for seconds, event in ((7000.0, further[0]), (7100.0, further[1]), (7200.0, begun)):
        found.take(Entry(last.sequence, last.time + seconds, event))
    assert "no controller was running for 2 h at most" in found.lines[-2]["text"]


def test_of_call_paths_and_references_only_what_counts_is_looked_at(made: Path) -> None:
    state = existing.replayed(made)
    first = state.runs[FIRST]._replace(chosen=f"{REASON}drift")
    before = state._replace(runs=state.runs.set(FIRST, first))
    after = apply(before, events.MeasurementsDiscarded((FIRST,), "hot"), 1.0)
    assert references(before).runs == references(after).runs + 1
    assert references(before).cost == references(after).cost
    models: Any = (SOLVE, A, B)
    state = state._replace(runs=immutables.Map({FIRST: state.runs[FIRST]._replace(samples={"time": RUN})}))
    assert models_document.contradictions(state, models, TARGET)
    state = apply(state, events.MeasurementsDiscarded((FIRST,), "hot"), 1.0)
    assert not models_document.contradictions(state, models, TARGET)
