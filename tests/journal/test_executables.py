"""Measurements of several executables are mixed, and only where something was measured with them."""

import immutables

from orchestrator.journal import events
from orchestrator.journal.executables import digests, used_after, warnings
from orchestrator.journal.replay import apply
from orchestrator.journal.state import State
from orchestrator.types import Attempt, FailureClass, Point, Run
from tests.journal.attempts import attempt_finished, attempt_intended
from tests.journal.journals import CAMPAIGN


def controller(**found: str) -> events.ControllerStarted:
    return events.ControllerStarted(
        host="h",
        pid=1,
        version="1.0",
        provenance={role: {"sha256": digest} for role, digest in found.items()},
    )


def measured(state: State, number: int, failure: FailureClass | None = None) -> State:
    run = Run(Point.of(p=number))
    attempt = Attempt(run)
    for event in (
        events.RoundProposed(number, (run,), ("",)),
        attempt_intended(attempt, 9.0),
        attempt_finished(attempt, failure=failure),
    ):
        state = apply(state, event, 0.0)
    return state


def warned(state: State) -> list[str]:
    return warnings(state.measured_with, state.executables)


def test_an_executable_that_is_replaced_after_a_measurement_is_told_and_stays_told() -> None:
    state = apply(State(), events.CampaignStarted(id="ab12", campaign=CAMPAIGN, version="1.0"), 0.0)
    state = apply(state, controller(executable="aa"), 0.0)
    state = measured(state, 1, FailureClass.APPLICATION)
    state = apply(state, controller(executable="bb"), 0.0)  # the repaired one, before anything was measured
    assert warned(state) == []
    state = measured(state, 2)
    assert warned(apply(state, controller(executable="bb"), 0.0)) == []
    replaced = apply(state, controller(executable="cc"), 0.0)
    assert len(warned(replaced)) == 1 and "the executable was replaced" in warned(replaced)[0]
    assert warned(apply(replaced, controller(executable="bb"), 0.0)) == [], "it measured nothing"
    mixed = apply(measured(replaced, 3), controller(executable="bb"), 0.0)
    assert len(warned(mixed)) == 1


def test_an_executable_that_is_replaced_while_a_controller_runs_is_told() -> None:
    state = apply(State(), events.CampaignStarted(id="ab12", campaign=CAMPAIGN, version="1.0"), 0.0)
    state = measured(apply(state, controller(executable="aa", effort_executable="ee"), 0.0), 1)
    state = apply(state, events.ExecutableReplaced({"executable": "bb"}), 0.0)
    assert "the executable was replaced" in warned(state)[0]
    state = measured(state, 2)
    assert dict(state.measured_with) == {"executable": ("aa", "bb"), "effort_executable": ("ee",)}
    assert len(warned(apply(state, controller(executable="bb"), 0.0))) == 1


def test_the_warning_names_the_builds_in_their_order_and_the_remedy() -> None:
    used = used_after(immutables.Map(), {"executable": "a" * 64})
    [text] = warnings(used, {"executable": "b" * 64})
    assert f"(sha256 {'a' * 12}, then {'b' * 12}); put the first one back" in text
    assert "orchestrator compare DIR NEW" in text
    assert "what is measured from now on is mixed" in text  # so far nothing is
    assert "measurements of several are mixed" in warnings(used_after(used, {"executable": "b" * 64}), {})[0]
    for digit in "bcd":
        used = used_after(used, {"executable": digit * 64})
    assert f"then {'b' * 12}, then {'c' * 12} and 1 more)" in warnings(used, {})[0]


def test_roles_are_apart_and_what_is_not_known_says_nothing() -> None:
    used = used_after(immutables.Map(), {"executable": "aa", "effort_executable": "bb"})
    assert warnings(used, {"executable": "bb"})[0].startswith("the executable was replaced")
    assert warnings(used, {"effort_executable": "cc"})[0].startswith("the executable that counts was")
    assert warnings(used, digests({})) == [] == warnings(used, digests({"executable": {"path": "x"}}))
