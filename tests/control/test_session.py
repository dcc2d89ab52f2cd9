"""Whole campaigns in simulation: budget, determinism, changed rules, full disks."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.campaign import changes, loader
from orchestrator.campaign.definition import Campaign
from orchestrator.control import (
    assembly,
    attempts,
    cautions,
    execution,
    existing,
    planning,
    preflight,
    refusals,
    session,
)
from orchestrator.errors import CampaignError, ExecutorError, JournalWriteError
from orchestrator.executors.slurm.cluster import Cluster
from orchestrator.journal import events
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.replay import apply
from orchestrator.journal.state import State
from orchestrator.models.base import Model, Modeler
from orchestrator.strategies.base import Choice, Strategy, View
from orchestrator.types import Measurements, Point
from tests.control.campaigns import SIMULATED, load


def story(directory: Path) -> list[events.Event]:
    """What happened, without who did it and when it began."""
    happened = [entry.event for entry in read(directory / FILE_NAME)]
    return [
        replace(event, name="", cores=0) if isinstance(event, events.AttemptIntended) else event
        for event in happened
        if not isinstance(event, events.ControllerStarted | events.CampaignStarted | events.AttemptSubmitted)
        and not isinstance(event, events.AttemptStarted)
    ]


def ledger(directory: Path) -> list[State]:
    """Return the state after each line of the journal."""
    states, state = [], State()
    for entry in read(directory / FILE_NAME):
        state = apply(state, entry.event, entry.time)
        states.append(state)
    return states


@pytest.mark.slow
def test_the_same_seed_gives_the_same_campaign_and_another_seed_another(tmp_path: Path) -> None:
    noisy = ("executor.noise=5", "executor.failure_rate=0.1", "executor.queue_delay=60")
    for name in ("a", "b"):
        session.run(load(*noisy), tmp_path / name)
    session.run(load(*noisy, "seed=1"), tmp_path / "c")
    assert story(tmp_path / "a") == story(tmp_path / "b") != story(tmp_path / "c")


@pytest.mark.parametrize("strategy", ["cpf", "full", "random", "grid"])
def test_every_strategy_runs_a_campaign_to_a_stop_rule(strategy: str, tmp_path: Path) -> None:
    state = session.run(load(f"strategy.name={strategy}"), tmp_path / "c")
    assert state.stopped is not None and state.stopped.rule in {
        "patience",
        "exhausted",
        "budget",
        "converged",
    }
    assert state.rounds_completed == state.round and state.smape is not None


@pytest.mark.slow
@settings(max_examples=25)
@example(budget=0.1875, failure_rate=0.1, max_pending=1, seed=91)  # one failure costs more than a tenth
@given(
    budget=st.floats(0.05, 3),
    failure_rate=st.sampled_from([0.0, 0.1, 0.5]),
    max_pending=st.integers(1, 20),
    seed=st.integers(0, 99),
)
def test_spent_and_reserved_never_exceed_the_budget(
    budget: float, failure_rate: float, max_pending: int, seed: int
) -> None:
    chosen = load(
        f"stop.budget={budget}",
        f"executor.failure_rate={failure_rate}",
        f"executor.max_pending={max_pending}",
        f"seed={seed}",
        "executor.queue_delay=30",
        "measure.expected_time=0.1",
    )
    with tempfile.TemporaryDirectory() as directory:
        try:
            ended = session.run(chosen, Path(directory))
        except CampaignError:
            return  # the first round exceeds the budget, and nothing was spent
        for state in ledger(Path(directory)):
            assert state.spent + state.reserved <= chosen.stop.budget * (1 + 1e-12)
            assert state.jobs <= max_pending
        # Failures of the site pause it, if they cost a tenth of the budget, or are ten in a row.
        assert ended.stopped is not None or (ended.paused is not None and failure_rate > 0)


def test_without_a_time_limit_the_budget_decides_how_long_a_run_may_take(tmp_path: Path) -> None:
    chosen = load("measure.time_limit=null", "measure.expected_time=null", "stop.budget=1")
    built = assembly.assemble(chosen)
    executor = execution.executor(chosen, tmp_path, 0.0)
    plan = planning.first_round(built, executor)
    assert plan.derived_limit is not None and set(plan.limits) == {plan.derived_limit}
    assert plan.derived_limit * sum(plan.cores) <= chosen.stop.budget * (1 + 1e-12)
    assert "each is ended after 5 s, and few begin at once" in str(cautions.unknown_times(chosen, 5.0))
    assert cautions.unknown_times(load("measure.expected_time=1"), 5.0) is None
    assert plan.worst == pytest.approx(chosen.stop.budget)
    state = session.run(chosen, tmp_path / "c")
    assert state.time_limit == plan.derived_limit


def test_runs_are_expected_to_cost_what_is_charged_and_not_what_was_asked_for() -> None:
    built = assembly.assemble(load("measure.expected_time=2"))
    points = list(built.space)[:3]
    asked = np.array(built.view(State(), (), Measurements((), ())).costs(points))
    charged = built.view(State()._replace(allocation=2.0), (), Measurements((), ())).costs(points)
    assert np.all(asked > 0) and np.array_equal(charged, 2 * asked)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (
            ["measure.expected_time=null", "stop.budget=0.1"],
            "may cost .* stop.budget is 0.1.* or state measure.expected_time",
        ),
        (
            ["measure.expected_time=9", "stop.budget=0.1"],
            "is expected to cost .* stop.budget is 0.1.* or correct measure.expected_time",
        ),
        (
            ["measure.time_limit=null", "measure.expected_time=null", "stop.budget=0.001"],
            "is too small for the .* runs of the first round.* lower measure.repetitions.initial",
        ),
        (
            ["strategy=active", "measure.expected_time=9", "stop.budget=0.1"],
            "is expected to cost .* lower strategy.start, or correct measure.expected_time",
        ),
        (
            ["measure.expected_time=0.001", "measure.limit_margin=null", "stop.budget=0.1"],
            "one run of the first round reserves",
        ),
    ],
)
def test_a_first_round_that_the_budget_cannot_pay_is_refused_before_anything_is_spent(
    overrides: Sequence[str], words: str, tmp_path: Path
) -> None:
    with pytest.raises(CampaignError, match=words):
        session.run(load("strategy=cpf", *overrides), tmp_path / "c")
    assert not (tmp_path / "c").exists()


@pytest.mark.slow
def test_a_stopped_campaign_goes_on_with_a_larger_budget(tmp_path: Path) -> None:
    # A strategy that measures everything: what is worth measuring must not matter.
    small = load("strategy=cpf", "stop.budget=0.25", "stop.patience=99")
    first = session.run(small, tmp_path)
    assert first.stopped is not None and first.stopped.rule in {"budget", "exhausted"}
    again = session.run(small, tmp_path)
    assert again.runs == first.runs  # nothing changed, nothing is done
    second = session.run(load("strategy=cpf", "stop.budget=9", "stop.patience=99"), tmp_path)
    assert second.stopped is not None and second.stopped.rule == "exhausted"
    assert second.spent > first.spent
    assert all(second.runs[run] == item for run, item in first.runs.items() if item.samples)


def test_measurements_of_different_campaigns_are_not_mixed(tmp_path: Path) -> None:
    session.run(load(), tmp_path)
    with pytest.raises(CampaignError, match="other measure, seed"):
        session.run(load("seed=1", "measure.aggregate=max"), tmp_path)


def test_what_differs_is_told_with_both_values_and_what_may_change(tmp_path: Path) -> None:
    session.run(load(), tmp_path)
    text = r"seed: 0 -> 1\). Only parameters, .*, program.output may change on the way"
    with pytest.raises(CampaignError, match=text):
        session.run(load("seed=1", "measure.time_limit=30 s"), tmp_path)


def test_what_only_says_how_runs_are_read_is_changed_by_reading_them_again(tmp_path: Path) -> None:
    session.run(load(), tmp_path)
    for change in ("measure.aggregate=max", "measure.inclusive=true"):
        text = r"mixed \(measure.*\): read what was kept of all runs again .*: orchestrator reread DIR"
        with pytest.raises(CampaignError, match=text):
            session.run(load(change, "measure.time_limit=30 s"), tmp_path)


def test_the_documentation_lists_what_may_change() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "commands.md").read_text().split())
    *most, last = (f"`{key}`" for key in changes.CHANGEABLE)
    assert f"The sections {', '.join(most)} and {last} may change on the way" in page
    *most, last = (f"`{top}.{key}`" for top, keys in changes.CHANGEABLE_KEYS.items() for key in keys)
    assert f"So may the keys {', '.join(most)} and {last}." in page


def test_limits_repetitions_and_patterns_may_change_and_are_journaled(tmp_path: Path) -> None:
    heard: list[Sequence[str]] = []
    hooks = session.Hooks(changed=heard.append)
    session.run(load(), tmp_path, hooks)
    new = {
        "measure.time_limit": "30 s",
        "measure.limit_margin": "3",
        "measure.repetitions.maximum": "3",
        "program.output": "[{callpath: main, pattern: 'T=(.*)'}]",
    }
    session.run(load(*(f"{key}={value}" for key, value in new.items())), tmp_path, hooks)
    [told] = heard
    assert "measure.time_limit: 1 min -> 30 s" in told and "measure.limit_margin: 2 -> 3" in told
    assert any(text.startswith("program.output holds for further runs: earlier measur") for text in told)
    [changed] = [item for item in story(tmp_path) if isinstance(item, events.CampaignChanged)]
    assert changed.campaign["measure"]["limit_margin"] == 3 and changed.anew


def test_a_limit_cannot_be_taken_away(tmp_path: Path) -> None:
    session.run(load(), tmp_path)
    with pytest.raises(CampaignError, match=r"measure.time_limit: 1 min -> none: .*give one"):
        session.run(load("measure.time_limit=null"), tmp_path)


def test_with_a_longer_limit_what_timed_out_is_tried_again(tmp_path: Path) -> None:
    short = load("measure.time_limit=2 s", "measure.expected_time=1 s", "stop.failures=99")
    state = session.run(short, tmp_path)
    assert state.infeasible
    longer = load("measure.time_limit=60 s", "measure.expected_time=1 s", "stop.failures=99")
    state = session.run(longer, tmp_path)
    assert not state.infeasible


def test_a_validation_that_does_not_fit_the_budget_is_refused_with_the_figures(tmp_path: Path) -> None:
    text = (
        r"validate: true needs 0.2667 core-hours for a run at P\(p=16, n=50\) \(16 cores for up to 1 min\) "
        r"beside the first round, which may cost 0.1833; stop.budget is 0.4: raise stop.budget to 0.45 "
        r"core-hours, state measure.expected_time .* or write validate: false"
    )
    few = ("stop.budget=0.4", "measure.expected_time=null")
    with pytest.raises(CampaignError, match=text):
        session.run(load("validate=true", *few), tmp_path / "c")
    assert not (tmp_path / "c").exists()
    begun = session.run(load("validate=false", *few), tmp_path / "c")
    assert begun.stopped is not None and begun.validation is None


@pytest.mark.parametrize("budget", [0.4, 0.5, 1.0])
def test_what_was_asked_for_is_validated_however_small_the_budget(budget: float, tmp_path: Path) -> None:
    """The budget left at the end is always enough for the run that takes 46 s on 16 cores: 0.2 core-hours."""
    chosen = load("validate=true", f"stop.budget={budget}", "stop.patience=99")
    assert planning.first_round(assembly.assemble(chosen), execution.executor(chosen, tmp_path, 0.0)).kept
    state = session.run(chosen, tmp_path)
    assert state.validation is not None and state.runs[state.validation].samples
    assert 0.9 * 3600 * budget < state.spent <= 3600 * budget
    kinds = [type(entry.event) for entry in read(tmp_path / FILE_NAME)]
    assert (events.StopWithdrawn in kinds) is (budget < 1.0), "with more, nothing was missing"
    if budget < 1.0:
        assert kinds.index(events.StopWithdrawn) < len(kinds) - kinds[::-1].index(events.RoundProposed)


def test_who_listens_is_told_of_changed_rules(tmp_path: Path) -> None:
    heard: list[Sequence[str]] = []
    hooks = session.Hooks(changed=heard.append)
    session.run(load(), tmp_path, hooks)
    session.run(load(), tmp_path, hooks)
    assert heard == []
    session.run(load("stop.budget=9"), tmp_path, hooks)
    session.run(load(), tmp_path, hooks)
    assert heard == [["stop.budget: 2 -> 9 core-hours"], ["stop.budget: 9 -> 2 core-hours"]]


def test_the_budget_never_becomes_less_than_what_is_spent_and_reserved(tmp_path: Path) -> None:
    polls = iter(range(1000))
    hooks = session.Hooks(interrupted=lambda: next(polls) >= 5)
    state = session.run(load("executor.queue_delay=5"), tmp_path, hooks)
    assert state.spent > 0 and state.reserved > 0
    journaled = (tmp_path / FILE_NAME).read_bytes()
    for budget in (state.spent / 2, state.spent + state.reserved / 2):
        with pytest.raises(CampaignError, match=r"stop.budget: .* are spent and .* are reserved .*more than"):
            session.run(load(f"stop.budget={budget} core-seconds"), tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == journaled
    enough = f"stop.budget={state.spent + state.reserved} core-seconds"
    assert session.run(load(enough), tmp_path).stopped is not None


@pytest.mark.parametrize("real", [True, False])
def test_a_rehearsal_and_real_runs_do_not_share_a_directory(real: bool, tmp_path: Path) -> None:
    local = ("executor.name=local", "executor.slots=8", "executor.launcher=env", "executable=/bin/true")
    begun, other = (local, ["executable=/bin/true"]) if real else (["executable=/bin/true"], local)
    hooks = session.Hooks(interrupted=lambda: True)
    session.run(load(*begun), tmp_path, hooks)
    with pytest.raises(CampaignError, match=f"holds {'real runs' if real else 'a rehearsal'} of a campaign"):
        session.run(load(*other), tmp_path, hooks)


@pytest.mark.parametrize(
    "rules", [["parameters.p=[1, 2]"], ["parameters.p=[1]", "evaluation_point.p=2", "validate=true"]]
)
def test_a_script_that_cannot_be_written_for_a_later_point_is_refused_with_the_campaign(
    rules: list[str],
) -> None:
    local = ("executor={name: local, launcher: none, oversubscribe: true, slots: 1}", "executable=/bin/true")
    with pytest.raises(CampaignError, match="2 ranks need a launcher"):
        load(*local, *rules)
    load(*local, "parameters.p=[1]", "evaluation_point.p=1")


def test_a_launcher_that_is_nowhere_is_refused_before_anything_is_begun(tmp_path: Path) -> None:
    local = (
        "executor={name: local, slots: 8, launcher: 'no-such-launcher -n {ranks}'}",
        "executable=/bin/true",
    )
    with pytest.raises(CampaignError, match=r"no-such-launcher .*not on PATH.* Nothing was begun"):
        session.run(load(*local), tmp_path / "c")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("ranks", "matter", "looks"),
    [("1", True, False), ("k", True, False), ("p", False, False), ("p", True, True)],
)
def test_points_are_looked_at_for_a_second_rank_only_where_that_decides(
    ranks: str, matter: bool, looks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(campaign: Campaign, parallel: bool) -> preflight.Fault | None:
        return preflight.Fault("of another MPI", "rebuild it") if matter and parallel else None

    monkeypatch.setattr(preflight, "fault", fault)
    text = SIMULATED.replace("ranks: p", f"ranks: {ranks}").replace("measure:", "settings: {k: 1}\nmeasure:")
    built = assembly.assemble(load(text=text))
    walked: list[int] = []

    class Walked:
        def some(self) -> Iterator[Point]:
            walked.append(1)
            return built.space.some()

    with pytest.raises(CampaignError, match="of another MPI") if looks else nullcontext():
        refusals.refuse_launch(replace(built, space=Walked()), Cluster())  # type: ignore[arg-type]
    assert bool(walked) == looks


def test_what_cannot_be_rendered_is_not_journaled_as_intended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_template(*_: object) -> NoReturn:
        raise CampaignError("executor.template: it is gone")

    monkeypatch.setattr(attempts, "request", no_template)
    with pytest.raises(CampaignError, match="it is gone"):
        session.run(load(), tmp_path)
    state = existing.replayed(tmp_path)
    assert state.round == 1 and not state.in_flight and state.reserved == 0


def test_a_disk_that_fills_up_stops_the_campaign_cleanly_and_resume_completes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.run(load(), tmp_path / "reference")
    real, calls = os.write, []

    def write(descriptor: int, content: bytes) -> int:
        calls.append(descriptor)
        if len(calls) > 12:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, content)

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(JournalWriteError, match="No space left") as caught:
        session.run(load(), tmp_path / "full")
    monkeypatch.undo()
    assert caught.value.exit_code == 3
    session.run(load(), tmp_path / "full")
    reference, resumed = (existing.replayed(tmp_path / name) for name in ("reference", "full"))
    assert resumed.stopped == reference.stopped
    assert {k: v.samples for k, v in resumed.runs.items()} == {
        k: v.samples for k, v in reference.runs.items()
    }


@pytest.mark.parametrize("file", [loader.CAMPAIGN_FILE, "models.json", "controller.json"])
def test_a_full_disk_names_the_file_and_leaves_the_campaign_file_as_it_was(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.run(load(), tmp_path)
    before = (tmp_path / loader.CAMPAIGN_FILE).read_bytes()
    real_open = os.open

    def full(path: Any, flags: int, *arguments: Any) -> int:
        """Refuse the file after it was created, as a full disk does."""
        descriptor = real_open(path, flags, *arguments)
        if flags & os.O_WRONLY and file in Path(path).name:
            os.close(descriptor)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return descriptor

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(
        JournalWriteError, match=rf"{file}: No space left on device.*(resume it|repeat the command)$"
    ):
        session.run(load("stop.budget=3", "stop.patience=4"), tmp_path)
    monkeypatch.undo()
    if file == loader.CAMPAIGN_FILE:
        assert (tmp_path / file).read_bytes() == before and not list(tmp_path.glob(f".{file}*"))
    assert session.run(load("stop.budget=3"), tmp_path).stopped is not None


def test_a_campaign_file_that_was_deleted_is_written_again(tmp_path: Path) -> None:
    session.run(load(), tmp_path)
    (tmp_path / loader.CAMPAIGN_FILE).unlink()
    session.run(load(), tmp_path)
    assert existing.load(tmp_path).raw == load().raw


def test_a_campaign_file_is_on_disk_before_the_campaign_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, sync = list[int](), os.fsync

    def noted(file: int) -> None:
        synced.append(os.fstat(file).st_ino)
        sync(file)

    monkeypatch.setattr(os, "fsync", noted)
    session.run(load(), tmp_path)
    saved, journal = (tmp_path / name for name in (loader.CAMPAIGN_FILE, FILE_NAME))
    assert synced.index(saved.stat().st_ino) < synced.index(journal.stat().st_ino)


def test_a_directory_whose_name_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    directory = Path(os.fsdecode(os.fsencode(tmp_path) + b"/c\xff"))
    with pytest.raises(CampaignError, match=r"xff' has a name that is not UTF-8"):
        session.run(load(), directory)
    assert not directory.exists()


def test_an_interrupt_leaves_a_campaign_that_resumes(tmp_path: Path) -> None:
    polls = iter(range(1000))
    state = session.run(load(), tmp_path, session.Hooks(interrupted=lambda: next(polls) >= 5))
    assert state.stopped is None
    assert isinstance(story(tmp_path)[-1], events.ControllerStopped)
    assert session.run(load(), tmp_path).stopped is not None


def test_an_interrupt_with_cancel_settles_what_was_in_flight(tmp_path: Path) -> None:
    polls = iter(range(1000))
    hooks = session.Hooks(interrupted=lambda: next(polls) >= 5, cancel_on_interrupt=True)
    state = session.run(load("executor.queue_delay=5"), tmp_path, hooks)
    assert state.stopped is None and not state.in_flight
    assert session.run(load("executor.queue_delay=5"), tmp_path).stopped is not None


def test_validation_measures_the_evaluation_point_once_and_never_fits_it(tmp_path: Path) -> None:
    state = session.run(load("validate=true", "stop.budget=6"), tmp_path)
    assert state.validation is not None and state.runs[state.validation].samples
    document = (tmp_path / "models.json").read_text()
    assert '"validation"' in document and '"error_percent"' in document


@pytest.mark.parametrize("error", [ValueError("singular"), KeyError(0)])
def test_a_modeler_that_breaks_down_never_ends_a_campaign(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(known: object) -> tuple[()]:
        raise error

    monkeypatch.setattr(assembly, "modeler", lambda chosen: broken)
    with pytest.warns(UserWarning, match=f"no models this time.*{type(error).__name__}"):
        state = session.run(load(), tmp_path)
    assert state.stopped is not None and state.stopped.rule == "patience"
    assert sum(item.accepted is not None for item in state.runs.values()) >= 14


def test_a_strategy_that_breaks_down_with_models_chooses_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = assembly.strategy

    def broken(chosen: Campaign) -> Strategy:
        own = whole(chosen)

        def propose(view: View, rng: np.random.Generator) -> Sequence[Choice]:
            if view.models:
                raise IndexError("shapes")
            return own(view, rng)

        return propose

    monkeypatch.setattr(assembly, "strategy", broken)
    with pytest.warns(UserWarning, match="the strategy failed with IndexError.*without models"):
        state = session.run(load(), tmp_path)
    assert state.stopped is not None
    rounds = [event for event in story(tmp_path) if isinstance(event, events.RoundProposed)]
    reasons = [why for event in rounds for why in event.reasons]
    assert any("chosen without models, with which the strategy failed (IndexError)" in why for why in reasons)


def test_a_campaign_does_not_begin_on_a_slurm_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sbatch", "squeue", "scancel", "scontrol", "sinfo", "sacct", "srun"):
        command = tmp_path / "bin" / name
        command.parent.mkdir(exist_ok=True)
        command.write_text("#!/bin/sh\necho 'slurm_load_ctl_conf error: Unable to contact' >&2\nexit 1\n")
        command.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    chosen = load(
        "executable=/bin/true",
        "executor={name: slurm, cores_per_node: 8, launcher: 'srun'}",
        "stop.budget=50",
    )
    with pytest.raises(ExecutorError, match=r"Slurm does not answer.*Unable to contact.*Nothing was begun"):
        session.run(chosen, tmp_path / "c")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("seed", range(3))
def test_shared_jobs_whose_runs_hang_never_exceed_the_budget(seed: int, tmp_path: Path) -> None:
    """They reserve less than all limits; what the job could not hold is begun in another one."""
    rules = ("executor.pack=4", "executor.failure_rate=0.3", "executor.queue_delay=1 s", f"seed={seed}")
    state = session.run(load(*rules, "stop.budget=0.6", "stop.failures=99"), tmp_path)
    assert state.stopped is not None and any(item.packed for item in state.runs.values())
    for now in ledger(tmp_path):
        assert now.spent + now.reserved <= 0.6 * 3600 + 1e-6
    assert not state.unconfirmed, "every estimate was corrected"


def test_a_budget_that_no_longer_holds_the_validation_is_said_on_resume(tmp_path: Path) -> None:
    heard: list[str] = []
    rules = ("validate=true", "stop.patience=99", "strategy=cpf")
    first = session.run(load("stop.budget=0.5", "stop.patience=99"), tmp_path)
    assert first.stopped is not None
    budget = first.spent / 3600 + 0.02
    hooks = session.Hooks(remark=heard.append)
    state = session.run(load(*rules, f"stop.budget={budget}"), tmp_path, hooks)
    [text] = [text for text in heard if text.startswith("validate: true, but")]
    assert "needs 0." in text and "it is not made unless stop.budget is at least" in text
    assert state.validation is not None and "may cost" in state.runs[state.validation].reason
    assert state.spent <= 3600 * budget
    state = session.run(load(*rules, "stop.budget=9"), tmp_path)
    assert state.validation is not None and state.runs[state.validation].samples


def test_models_of_a_resumed_campaign_are_fitted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = ("validate=true", "stop.patience=99", "strategy=cpf")
    first = session.run(load("stop.budget=0.15", "validate=false", "strategy=cpf"), tmp_path)
    fits: list[int] = []

    def counted(chosen: Campaign) -> Modeler:
        fit = modeler(chosen)

        def fitted(measurements: Measurements) -> tuple[Model, ...]:
            fits.append(len(measurements.points))
            return fit(measurements)

        return fitted

    modeler = assembly.modeler
    monkeypatch.setattr(assembly, "modeler", counted)
    budget = f"stop.budget={first.spent / 3600 + 0.02}"  # does not hold the validation
    hooks = session.Hooks(interrupted=partial(next, iter([False]), True))
    session.run(load(*rules, budget), tmp_path, hooks)
    assert len(fits) == 1


def test_runs_without_their_journal_are_not_begun_again(tmp_path: Path) -> None:
    (tmp_path / "d" / "runs" / "p=1" / "time-1" / "attempt-1").mkdir(parents=True)
    with pytest.raises(CampaignError, match=r"journal\.jsonl is missing: restore it"):
        session.run(load(), tmp_path / "d")


ON_SLURM = (
    "executor={name: slurm, cores_per_node: 16, launcher: 'srun'}",
    *("executable=/bin/true", "validate=false", "measure={time_limit: 60 s}", "stop.budget=9"),
)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Commands that write down their calls; the function sets the longest time of the partition."""
    for name in ("sbatch", "squeue", "scancel", "scontrol", "sinfo", "srun"):
        command = tmp_path / name
        command.write_text(
            f"#!/bin/sh\necho {name} >> {tmp_path}/calls\ncat {tmp_path}/{name}.out 2>/dev/null\nexit 0\n"
        )
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "scontrol.out").write_text("KillWait = 30 sec\n")

    def allow(time: str) -> None:
        (tmp_path / "sinfo.out").write_text(f"debug*|up|idle|4|16|1:16:1|{time}\n")

    return allow


def test_slurm_is_asked_once_what_it_grants_and_again_on_resuming(
    tmp_path: Path, slurm: Callable[[str], None]
) -> None:
    slurm("2:00")
    for sessions in (1, 2):
        hooks = session.Hooks(interrupted=partial(next, iter([False]), True))
        session.run(load(*ON_SLURM), tmp_path / "c", hooks)
        calls = (tmp_path / "calls").read_text().splitlines()
        assert calls.count("sinfo") == 2 * sessions  # one call cannot tell nodes and the most nodes of a job


def test_time_limits_that_slurm_never_grants_are_refused_at_the_start_and_on_resuming(
    tmp_path: Path, slurm: Callable[[str], None]
) -> None:
    allow, chosen = slurm, load(*ON_SLURM)
    words = r"may take 1 min, .* 2 min, and partition debug allows 1 min.* measure.time_limit to at most 38 s"
    allow("1:00")
    with pytest.raises(CampaignError, match=words):
        session.run(chosen, tmp_path / "c")
    assert not (tmp_path / "c").exists()
    allow("2:00")
    answers = iter([False])
    session.run(chosen, tmp_path / "c", session.Hooks(interrupted=lambda: next(answers, True)))
    assert existing.replayed(tmp_path / "c").waiting
    before = (tmp_path / "c" / FILE_NAME).read_bytes()
    allow("1:00")
    with pytest.raises(CampaignError, match=words):
        session.run(chosen, tmp_path / "c")
    assert (tmp_path / "c" / FILE_NAME).read_bytes() == before
    (tmp_path / "sinfo.out").write_text("")  # Slurm does not say
    session.run(chosen, tmp_path / "c", session.Hooks(interrupted=lambda: True))
