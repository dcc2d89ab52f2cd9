"""Pruning: what goes, what stays, and what must never be touched."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import registry
from orchestrator.cli.prune import render
from orchestrator.control import pruning
from orchestrator.executors.attempt import worker
from orchestrator.executors.attempt.directory import prepare
from orchestrator.executors.slurm.arrays import JobArrays
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.types import Attempt, AttemptRequest, Point, Resources, Run
from tests.journal.attempts import attempt_finished, attempt_intended

RUNS = [Attempt(Run(Point.of(p=p))) for p in range(1, 5)]
KEPT = {"attempt.json", "request.json", "run.sh", "claim", "in.txt"}
RECORD = """{"run": "r", "attempt": 1, "host": "h", "pid": 1, "started": "2025-01-01T00:00:00+00:00"%s}"""
FINISHED = ', "finished": "2025-01-01T00:00:01+00:00", "exit_code": 0'


def request(directory: Path, one: Attempt) -> AttemptRequest:
    folder = directory / "runs" / one.id
    return AttemptRequest(
        attempt=one,
        name=f"name-{one.id}",
        directory=folder,
        resources=Resources(ranks=1),
        limit=60.0,
        script="true\n",
        files={"in.txt": "n = 1\n"},
    )


def attempted(directory: Path, one: Attempt, finished: bool = True) -> Path:
    """Write an attempt with all kinds of files."""
    folder = directory / "runs" / one.id
    prepare(request(directory, one))
    worker.claim(folder, "attempt")
    (folder / "attempt.json").write_text(RECORD % (FINISHED if finished else ""))
    for name in (
        "stdout",
        "core.17",
        "out/deep/field.vtk",
        "scorep/profile.cubex",
        "scorep/trace.otf2",
        "r.0.effort",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x" * 100)
    return folder


def entries(*what: events.Event) -> list[Entry]:
    return [Entry(number, float(number), event) for number, event in enumerate(what, start=1)]


def intended(one: Attempt) -> events.AttemptIntended:
    return attempt_intended(one, 60.0, name=f"name-{one.id}")


def finished(one: Attempt) -> events.AttemptFinished:
    return attempt_finished(one)


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def prune(directory: Path, what: Sequence[events.Event], keep: Sequence[str] = ()) -> pruning.Plan:
    chosen = pruning.plan(directory, entries(*what), keep)
    assert pruning.apply(chosen) == []
    return chosen


def test_records_scripts_inputs_outputs_and_profiles_stay(tmp_path: Path) -> None:
    folder = attempted(tmp_path, RUNS[0])
    chosen = prune(tmp_path, [intended(RUNS[0]), finished(RUNS[0])])
    assert names(folder) == KEPT | {"stdout", "scorep", "scorep/profile.cubex", "r.0.effort"}
    assert (len(chosen.files), chosen.size, chosen.attempts) == (3, 300, 1)
    assert {kind for kind, _, _ in chosen.kinds()} == {"*.17", "*.vtk", "*.otf2"}
    again = pruning.plan(tmp_path, entries(intended(RUNS[0]), finished(RUNS[0])))
    assert again.files == ()


PROFILES = {
    "effort": ("effort/rank-0.17.effort",),
    "mpi": ("mpi-time/rank-0.17.mpitime",),
    "scorep": ("scorep-run/profile.cubex",),
    "caliper": ("caliper.cali",),
    "hpctoolkit": (
        "db/meta.db",
        "db/profile.db",
        "old/experiment.xml",
        "old/x-000001-000-a8-1-0.metric-db",
    ),
    "tau": ("profile.0.0.0", "MULTI__TIME/profile.12.0.3"),
    "stdout": ("stdout", "stderr"),
    "time": ("attempt.json",),
}


@pytest.mark.parametrize("reader", registry.TABLES["reader"])
def test_what_a_reader_reads_stays(reader: str, tmp_path: Path) -> None:
    folder = attempted(tmp_path, RUNS[0])
    for name in PROFILES[reader]:
        (folder / name).parent.mkdir(exist_ok=True)
        if not (folder / name).exists():
            (folder / name).write_text("x")
    prune(tmp_path, [intended(RUNS[0]), finished(RUNS[0])])
    assert names(folder) >= set(PROFILES[reader])


def test_a_plan_changes_nothing(tmp_path: Path) -> None:
    folder = attempted(tmp_path, RUNS[0])
    before = names(folder)
    assert pruning.plan(tmp_path, entries(intended(RUNS[0]), finished(RUNS[0]))).size == 300
    assert names(folder) == before


def test_further_patterns_are_kept_by_name_or_path(tmp_path: Path) -> None:
    folder = attempted(tmp_path, RUNS[0])
    prune(tmp_path, [intended(RUNS[0]), finished(RUNS[0])], ["*.vtk", "scorep/*"])
    assert {"out/deep/field.vtk", "scorep/trace.otf2"} <= names(folder)
    assert "core.17" not in names(folder)


def test_what_is_not_settled_is_never_touched(tmp_path: Path) -> None:
    flying, unknown, running, again = (attempted(tmp_path, one, one is not RUNS[2]) for one in RUNS)
    before = [names(folder) for folder in (flying, unknown, running, again)]
    story: list[events.Event] = [
        *(intended(RUNS[0]), events.AttemptStarted(RUNS[0], "1")),  # in flight, whatever its record says
        *(intended(RUNS[2]), finished(RUNS[2])),  # settled as lost, but its record says that it still runs
        *(intended(RUNS[3]), events.AttemptWithdrawn(RUNS[3], "never began"), intended(RUNS[3])),
    ]
    chosen = prune(tmp_path, story)
    assert chosen.files == ()
    assert set(chosen.untouched) == {flying, running, again}
    assert [names(folder) for folder in (flying, unknown, running, again)] == before


@pytest.fixture
def shared() -> Iterator[Path]:
    """Give a folder that everybody can enter, unlike pytest's."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        folder.chmod(0o755)
        yield folder


def test_what_this_user_cannot_read_is_told_apart(shared: Path) -> None:
    closed = attempted(shared, RUNS[0])
    unrecorded = attempted(shared, RUNS[1])
    for folder in shared.rglob("*"):
        folder.chmod(0o755 if folder.is_dir() else 0o644)
    closed.chmod(0)
    (unrecorded / "attempt.json").chmod(0)
    what: list[events.Event] = [event for one in RUNS[:2] for event in (intended(one), finished(one))]
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        chosen = pruning.plan(shared, entries(*what))
    finally:
        os.seteuid(user)
        closed.chmod(0o755)
    assert (chosen.files, chosen.untouched, chosen.attempts) == ((), (), 0)
    assert set(chosen.unreadable) == {closed, unrecorded}
    assert "2 attempts not touched: this user cannot read them" in render(chosen, deleted=True)


def test_a_damaged_record_protects_its_attempt(tmp_path: Path) -> None:
    folder = attempted(tmp_path, RUNS[0])
    (folder / "attempt.json").write_text("{")
    assert prune(tmp_path, [intended(RUNS[0]), finished(RUNS[0])]).files == ()
    assert (folder / "core.17").exists()


def test_links_are_removed_but_never_followed(tmp_path: Path) -> None:
    folder = attempted(tmp_path, RUNS[0])
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "data").write_text("precious")
    (folder / "out" / "link").symlink_to(outside)
    (folder / "file").symlink_to(outside / "data")
    prune(tmp_path, [intended(RUNS[0]), finished(RUNS[0])])
    assert (outside / "data").read_text() == "precious"
    assert "out" not in names(folder) and not (folder / "file").is_symlink()


def test_what_cannot_be_deleted_is_told(tmp_path: Path) -> None:
    folder = attempted(tmp_path, RUNS[0])
    chosen = pruning.plan(tmp_path, entries(intended(RUNS[0]), finished(RUNS[0])))
    (folder / "core.17").unlink()
    (folder / "core.17").mkdir()
    complaints = pruning.apply(chosen)
    assert len(complaints) == 1 and str(folder / "core.17") in complaints[0]
    assert not (folder / "out").exists(), "the rest is deleted all the same"


def test_batches_go_when_all_their_attempts_are_settled(tmp_path: Path) -> None:
    batches = JobArrays(tmp_path)
    both = batches.begin([[request(tmp_path, one)] for one in RUNS[:2]], 1.0)
    other = batches.begin([[request(tmp_path, one) for one in RUNS[2:]]], 2.0)
    for batch in (both, other):
        folder = batches.folder / batch.name
        folder.mkdir()
        for name in ("submission.sh", "0.pkl", "7_0_log.out"):
            (folder / name).write_text("x")
    story = [event for one in RUNS[:3] for event in (intended(one), finished(one))] + [intended(RUNS[3])]
    prune(tmp_path, story)
    assert names(batches.folder) == {
        both.name,
        f"{both.name}/submission.sh",
        f"{other.name}.json",
        other.name,
        *(f"{other.name}/{name}" for name in ("submission.sh", "0.pkl", "7_0_log.out")),
    }
    again = JobArrays(tmp_path)
    assert again.elements(request(tmp_path, RUNS[3]).name) and not again.elements(
        request(tmp_path, RUNS[0]).name
    )


def test_a_batch_of_runs_that_shared_a_job_stays_until_its_charges_are_confirmed(tmp_path: Path) -> None:
    first, second = RUNS[:2]
    batch = JobArrays(tmp_path).begin([[request(tmp_path, one) for one in (first, second)]], 1.0)
    estimate = replace(finished(first), estimated=True)
    story: list[events.Event] = [
        intended(first),
        intended(second),
        estimate,
        events.AttemptWithdrawn(second, "gone", barred=True),
    ]
    prune(tmp_path, story)
    assert names(tmp_path / "batches") == {f"{batch.name}.json"}
    prune(tmp_path, [*story, events.AttemptCharged(first, 1.0, 1.0)])
    assert names(tmp_path / "batches") == set()


def test_a_batch_whose_attempt_is_submitted_again_under_its_name_stays(tmp_path: Path) -> None:
    batch = JobArrays(tmp_path).begin([[replace(request(tmp_path, RUNS[0]))]], 1.0)
    story: list[events.Event] = [
        intended(RUNS[0]),
        events.AttemptWithdrawn(RUNS[0], "never began"),
        intended(RUNS[0]),
    ]
    prune(tmp_path, story)
    assert names(tmp_path / "batches") == {f"{batch.name}.json"}
