"""What constraints derive: the value that their equation has, or a reason why there is none."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestrator import expressions
from orchestrator.campaign.derivation import Unsolvable, derive, names_in, solved

NAMES = ("p", "ppn", "t", "nodes")
COUNTS = st.integers(1, 4096)


@pytest.mark.parametrize(
    ("equation", "solution"),
    [
        ("nodes * ppn == p", "p / ppn"),
        ("p == nodes * ppn", "p / ppn"),
        ("nodes == p // ppn", "p // ppn"),
        ("p / nodes == ppn", "p / ppn"),
        ("nodes / 2 - 1 == p", "(p + 1) * 2"),
        ("64 - nodes == p", "64 - p"),
        ("-nodes == 3 - p", "-(3 - p)"),
        ("nodes**3 == p", "cbrt(p)"),
        ("nodes**2 == p", "sqrt(p)"),
        ("nodes**5 == p", "p ** (1 / 5)"),
        ("2**nodes == p", "log2(p)"),
        ("3**nodes == p", "log(p, 3)"),
        ("ppn * (nodes + 1) * t == p", "p / t / ppn - 1"),
    ],
)
def test_an_equation_is_rearranged(equation: str, solution: str) -> None:
    assert solved(equation, "nodes") == solution


@pytest.mark.parametrize(
    ("equation", "words"),
    [
        ("nodes * ppn <= p", "not one equation"),
        ("nodes == p == ppn", "not one equation"),
        ("nodes == p and ppn == 2", "not one equation"),
        ("nodes * nodes == p", "stands 2 times"),
        ("nodes * ppn == p * nodes", "stands 2 times"),
        ("p == ppn", "stands 0 times"),
        ("nodes % ppn == p", "cannot be solved for nodes"),
        ("nodes // ppn == p", "cannot be solved for nodes"),
        ("round(nodes) == p", "cannot be solved for nodes"),
        ("nodes ==", "not one equation"),
    ],
)
def test_what_gives_no_single_value_is_refused(equation: str, words: str) -> None:
    with pytest.raises(Unsolvable, match=words):
        solved(equation, "nodes")


@st.composite
def equations(draw: st.DrawFn) -> tuple[str, int, dict[str, int]]:
    """An equation built around ``nodes``, true for a drawn value of it; the other values."""
    values = {name: draw(COUNTS) for name in ("p", "ppn", "t")}
    nodes = draw(COUNTS)
    side = "nodes"
    for _ in range(draw(st.integers(1, 4))):
        other = draw(st.sampled_from(["p", "ppn", "t", "3", "7"]))
        side = draw(
            st.sampled_from(
                [f"({side} + {other})", f"({other} - {side})", f"({side} * {other})", f"(-{side})"]
            )
        )
    total = expressions.parse(side, NAMES).number({**values, "nodes": nodes})
    return f"{side} == {total}" if draw(st.booleans()) else f"{total} == {side}", nodes, values


@given(equations())
def test_the_value_of_an_equation_is_found(case: tuple[str, int, dict[str, int]]) -> None:
    equation, nodes, values = case
    found = derive([equation], tuple(values), (), ("nodes",), {}, {})
    [item] = found.derived
    assert (item.name, item.solve(values)) == ("nodes", nodes)
    assert found.used == {0}


@given(COUNTS, COUNTS, st.sampled_from(["nodes * ppn == p", "p == ppn * nodes", "p / nodes == ppn"]))
def test_nodes_are_the_quotient_whole_or_not(p: int, ppn: int, equation: str) -> None:
    [item] = derive([equation], ("p", "ppn"), (), ("nodes",), {}, {}).derived
    found = item.solve({"p": p, "ppn": ppn})
    assert found is not None and math.isclose(found * ppn, p)
    assert isinstance(found, int) == (p % ppn == 0)


@given(st.integers(1, 10**6))
def test_a_root_is_whole_where_there_is_one(edge: int) -> None:
    [item] = derive(["edge**3 == p"], ("p",), (), ("edge",), {}, {}).derived
    assert item.solve({"p": edge**3}) == edge
    assert not isinstance(item.solve({"p": edge**3 + 1}), int)


@pytest.mark.parametrize(
    ("equation", "values"),
    [("nodes * ppn == p", {"ppn": 0, "p": 4}), ("nodes**2 == p - 5", {"ppn": 1, "p": 4})],
)
def test_where_there_is_no_value_there_is_none(equation: str, values: dict[str, int]) -> None:
    [item] = derive([equation], ("p", "ppn"), (), ("nodes",), {}, {}).derived
    assert item.solve(values) is None
    assert item.reason == equation


@given(
    st.permutations(["nodes * ppn == p", "ppn * t == 64", "2 * nodes == racks"]), st.sampled_from([1, 2, 8])
)
def test_equations_are_solved_one_after_another_in_any_order(texts: list[str], t: int) -> None:
    found = derive(texts, ("p", "t"), (), ("nodes", "ppn", "racks"), {}, {})
    values: dict[str, int | float | str] = {"p": 4096, "t": t}
    for item in found.derived:
        assert item.needs <= values.keys()  # each after those that it needs
        solution = item.solve(values)
        assert solution is not None
        values[item.name] = solution
    assert (values["ppn"], values["nodes"], values["racks"]) == (64 // t, 64 * t, 128 * t)
    assert found.used == {0, 1, 2} and not found.missing


def test_the_first_of_two_equations_gives_the_value_and_the_second_restricts() -> None:
    found = derive(["nodes * ppn == p", "nodes == 4"], ("p", "ppn"), (), ("nodes",), {}, {})
    assert found.names == ("nodes",)
    assert found.used == {0}


def test_one_equation_cannot_give_two_values() -> None:
    found = derive(["nodes * ppn == p"], ("p",), (), ("nodes", "ppn"), {}, {})
    assert not found.derived
    assert set(found.missing) == {"nodes", "ppn"}


def test_definitions_come_before_equations_and_conventions_after_them() -> None:
    found = derive(
        ["nodes == 2 * q", "p == 5 * nodes"], ("q",), (), ("nodes", "p"), {"nodes": "q"}, {"p": "nodes"}
    )
    values = {"q": 3, "nodes": 3}
    assert found.names == ("nodes", "p")
    assert found.derived[0].solve(values) == 3
    assert found.derived[1].solve(values) == 15
    assert found.used == {1}  # the first one restricts
    alone = derive([], ("q",), (), ("p",), {"nodes": "q"}, {"p": "nodes * ranks_per_node"})
    assert alone.names == ("nodes",)  # without the ranks per node there is no convention


def test_circles_end() -> None:
    found = derive(["a == b", "b == a"], (), (), ("a", "b"), {"c": "d", "d": "c"}, {})
    assert not found.derived


@given(st.text(max_size=40))
def test_no_text_breaks_it(text: str) -> None:
    assume(text.strip())
    names_in(text)
    derive([text, "(" * 5000, "x*" * 3000], ("p",), (), ("nodes", "ppn"), {"t": text}, {})
