"""What to do next after a campaign has stopped, by its rule."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.cli.main import command_parser
from orchestrator.journal.state import RunState, RunStatus, State, StopReason
from orchestrator.report.advice import to_continue
from orchestrator.types import FailureClass, Point, Run
from tests.journal.journals import CAMPAIGN


def advice(
    rule: str, detail: str, useful: Point | None = None, campaign: Mapping[str, Any] = CAMPAIGN
) -> str:
    stopping = StopReason(rule, detail, useful=useful)
    state = State(campaign=campaign, stopping=stopping, stopped=StopReason(rule, detail))
    return to_continue(state, Path("study"))


def test_more_budget_is_advised_only_where_it_buys_something() -> None:
    larger = "no run in the search space is worth its cost; wider ranges of the parameters may help"
    for rule, detail in (("exhausted", larger), ("converged", "what is left is scatter")):
        assert "priors: {campaigns: [study]}" in advice(rule, detail)
        assert "stop.budget" not in advice(rule, detail)
    useful = Point.of(p=2, solver="cg")
    assert "orchestrator resume study --set stop.budget=" in advice("exhausted", "none is safe", useful)
    assert "orchestrator resume study --set stop.budget=" in advice("budget", "nothing is left")


def test_the_ranges_to_widen_are_those_of_the_run_that_would_help() -> None:
    """Of {from, to} the end; of a list all values; nothing of what is within its range, or a category."""
    campaign = {
        **CAMPAIGN,
        "parameters": {
            "p": {"values": [1, 2]},
            "s": {"from": 1.5, "to": 3, "step": 0.5},
            "t": {"from": 1.5, "to": 3, "step": 0.5},
            "n": {"values": [8, 4]},
            "solver": ["cg"],
        },
    }
    useful = Point.of(p=2, s=3.5, t=1, n=16, solver="cg")
    options = "--set parameters.s.to=3.5 --set parameters.t.from=1 --set parameters.n='[4, 8, 16]'"
    assert f"orchestrator resume study {options}." in advice("exhausted", "", useful, campaign)
    assert "--set parameters.NAME='[...]'." in advice("exhausted", "wider ranges may help")


def test_outputs_that_could_not_be_read_are_read_again_for_nothing() -> None:
    text = advice(
        "failures", "5 points in a row were given up, the last one: parse: nothing in stdout matches"
    )
    assert "costs nothing: orchestrator reread study --campaign FILE" in text
    arguments = command_parser("reread")[1].parse_args(["study", "--campaign", "FILE"])
    assert str(arguments.campaign) == "FILE"
    text = advice("failures", "5 points in a row were given up: application: exit code 3")
    assert "--campaign" not in text and "orchestrator reread study --set measure.exit_codes=" in text
    assert "if it cannot run at some points, say by constraints where it can" in text
    assert "reread" not in advice("failures", "5 points in a row were given up: timeout: ended")


def test_where_a_module_is_missing_no_exit_code_is_to_count() -> None:
    text = advice(
        "failures",
        "6 points in a row were given up; most often (6 of 6): application: exit code 1; last line of "
        "stderr: this module cannot be loaded: openmpi (2 attempts)",
    )
    assert "remedy: correct executor.modules by what 'module avail' lists" in text
    assert "exit_codes" not in text and "orchestrator resume study" in text


def test_after_its_time_a_campaign_needs_more_time() -> None:
    assert "--set stop.wall_time='...'" in advice("wall_time", "60 s of 60 s have passed")


def test_where_the_budget_was_spent_on_failures_these_come_first() -> None:
    """A program that waits for a license at every point: a larger budget would buy more of that."""
    hung = RunState(status=RunStatus.SKIPPED, attempts=1, failures=(FailureClass.TIMEOUT,))
    state = State(campaign=CAMPAIGN, stopped=StopReason("budget", "no run fits"))
    state = state._replace(runs=state.runs.set(Run(Point.of(p=1)), hung))
    text = to_continue(state, Path("study"))
    assert text.startswith("1 attempt failed: timeout. remedy: see in stdout of an attempt whether")
    assert "orchestrator log study --all" in text and "Then, to continue" in text
    crashed = hung._replace(failures=(FailureClass.APPLICATION,) * 2)
    state = state._replace(runs=state.runs.set(Run(Point.of(p=2)), crashed))
    assert to_continue(state, Path("study")).startswith("3 attempts failed, most often (2): application.")
    measured = RunState(status=RunStatus.MEASURED, attempts=1)
    state = state._replace(runs=state.runs.set(Run(Point.of(p=4)), measured))
    assert to_continue(state, Path("study")).startswith("to continue a campaign")


def test_a_corrected_template_is_taken_by_run() -> None:
    text = advice("failures", "5 points in a row were given up: application: exit code 3")
    assert text.endswith(
        "with a corrected template or campaign file: orchestrator run CAMPAIGN.yaml --directory study"
    )
