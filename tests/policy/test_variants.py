"""Two executables measured together: nothing is lost, doubled twice, or in a fixed order."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.policy.variants import paired
from orchestrator.strategies.base import Choice
from orchestrator.types import Point

NAMES = ("old", "new")

CHOICES = st.lists(
    st.builds(
        lambda p, name, repetitions: Choice(Point.of(p=p, variant=name), repetitions, "why"),
        st.integers(1, 5),
        st.sampled_from(NAMES),
        st.integers(1, 3),
    ),
    max_size=6,
)


def both(choices: list[Choice], seed: int = 0, infeasible: frozenset[Point] = frozenset()) -> list[Choice]:
    return paired(choices, "variant", NAMES, infeasible, np.random.default_rng(seed))


@given(CHOICES, st.integers(0, 1000))
def test_both_variants_get_what_either_was_chosen_for(choices: list[Choice], seed: int) -> None:
    wanted: Counter[int] = Counter()
    for choice in choices:
        wanted[int(choice.point.number("p"))] = max(wanted[int(choice.point.number("p"))], choice.repetitions)
    found = Counter((choice.point["p"], choice.point["variant"]) for choice in both(choices, seed))
    assert found == {(p, name): count for p, count in wanted.items() for name in NAMES}


@given(CHOICES, st.integers(0, 1000))
def test_variants_of_a_repetition_are_neighbours(choices: list[Choice], seed: int) -> None:
    found = both(choices, seed)
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert first.point["p"] == second.point["p"]
        assert {first.point["variant"], second.point["variant"]} == set(NAMES)


def test_the_order_is_random_and_repeatable() -> None:
    choices = [Choice(Point.of(p=p, variant="old"), 2, "") for p in range(20)]
    first = [choice.point["variant"] for choice in both(choices)[::2]]
    assert 8 < first.count("old") < 32
    assert both(choices, 7) == both(choices, 7)
    assert both(choices, 7) != both(choices, 8)


def test_a_variant_that_keeps_failing_is_left_out() -> None:
    failing = Point.of(p=1, variant="new")
    found = both([Choice(Point.of(p=1, variant="old"), 2, "")], infeasible=frozenset({failing}))
    assert [choice.point for choice in found] == [Point.of(p=1, variant="old")] * 2


def test_the_reason_of_a_point_names_no_variant_as_constant() -> None:
    line = "starting set, line of p: n=8, variant=new constant; 0.1 core-hours expected"
    found = both([Choice(Point.of(p=1, n=8, variant="new"), 1, line)])
    assert {choice.reason for choice in found} == {
        "starting set, line of p: n=8 constant; 0.1 core-hours expected"
    }
    [alone, _] = both([Choice(Point.of(p=1, variant="new"), 1, "line of p: variant=new constant")])
    assert alone.reason == "line of p: the only parameter"
