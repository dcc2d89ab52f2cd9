"""What to do next after a campaign has stopped, by its rule."""

from pathlib import Path

from orchestrator.cli.main import command_parser
from orchestrator.journal.state import State, StopReason
from orchestrator.report.advice import to_continue
from tests.journal.journals import CAMPAIGN


def advice(rule: str, detail: str) -> str:
    return to_continue(State(campaign=CAMPAIGN, stopped=StopReason(rule, detail)), Path("study"))


def test_more_budget_is_advised_only_where_it_buys_something() -> None:
    larger = "no run in the search space is worth its cost; wider ranges of the parameters may help"
    for rule, detail in (("exhausted", larger), ("converged", "what is left is scatter")):
        assert "priors: {campaigns: [study]}" in advice(rule, detail)
        assert "stop.budget" not in advice(rule, detail)
    useful = "no run is safe to fit; the next useful run, at P(p=8), narrows the interval"
    assert "orchestrator resume study --set stop.budget=" in advice("exhausted", useful)
    assert "orchestrator resume study --set stop.budget=" in advice("budget", "nothing is left")


def test_the_ranges_to_widen_are_those_of_the_run_that_would_help() -> None:
    """Of {from, to} the end; of a list all values; nothing of what is within its range, or a category."""
    campaign = {
        **CAMPAIGN,
        "parameters": {
            "p": {"values": [1, 2]},
            "s": {"from": 1.5, "to": 3, "step": 0.5},
            "n": {"values": [8, 4]},
            "solver": ["cg"],
        },
    }
    detail = "wider ranges of the parameters may help: a run at P(p=2, s=3.5, n=16, solver=cg) lowers it"
    state = State(campaign=campaign, stopped=StopReason("exhausted", detail))
    known = "orchestrator resume study --set parameters.s.to=3.5 --set parameters.n='[4, 8, 16]'."
    assert known in to_continue(state, Path("study"))
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
