from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from orchestrator.strategies import starting_set
from orchestrator.strategies.starting_set import first_round, spread_lines, starting_points
from orchestrator.types import Parameter, Point, Value
from tests.strategies.views import Box, make_view

P = Parameter("p", (8, 27, 64, 125, 216, 343))
S = Parameter("s", (10, 15, 20, 25, 30))


def points(*pairs: tuple[int, int]) -> set[Point]:
    return {Point.of(p=p, s=s) for p, s in pairs}


def test_two_parameters_are_the_column_the_row_and_two_more_points() -> None:
    chosen = starting_points(make_view(Box((P, S))))

    row = points((8, 10), (27, 10), (64, 10), (125, 10), (216, 10))
    column = points((8, 15), (8, 20), (8, 25), (8, 30))
    assert set(chosen) == row | column | points((27, 15), (27, 20))
    assert chosen[Point.of(p=64, s=10)] == "starting set, line of p: s=10 constant"
    assert chosen[Point.of(p=8, s=30)] == "starting set, line of s: p=8 constant"
    assert chosen[Point.of(p=27, s=15)] == "starting set: cheapest point off the lines"


@pytest.mark.parametrize(("count", "expected"), [(1, 5), (2, 9 + 2), (3, 13 + 3), (4, 17 + 4)])
def test_size_of_the_starting_set(count: int, expected: int) -> None:
    parameters = tuple(Parameter("abcd"[i], tuple(range(1, 7))) for i in range(count))

    assert len(starting_points(make_view(Box(parameters)))) == expected


def test_the_five_cheapest_on_a_line_need_not_be_the_five_lowest() -> None:
    strong_scaling = make_view(Box((P, S)), cost=lambda point: 1e6 / point.number("p") * point.number("s"))

    line = {p for p, role in starting_points(strong_scaling).items() if "line of p" in role}
    assert line == points((27, 10), (64, 10), (125, 10), (216, 10), (343, 10))


def test_fewer_than_five_values_take_what_there_is() -> None:
    chosen = starting_points(
        make_view(Box((Parameter("p", (1, 2)), Parameter("s", (1, 2, 3)), Parameter("t", (7,)))))
    )

    assert {(point["p"], point["s"]) for point in chosen} == {(1, 1), (2, 1), (1, 2), (1, 3), (2, 2), (2, 3)}


def test_a_parallelogram_has_its_lines_where_they_have_most_points() -> None:
    sizes = Parameter("s", (8192, 16384, 32768, 65536, 131072))
    ranks = Parameter("p", (16, 32, 64, 128, 256, 512, 1024, 2048))

    def fits(point: Point) -> bool:  # p = 16 only with the largest size, p = 2048 only with the smallest
        product = point.number("p") * point.number("s")
        return 2**21 <= product <= 2**24 and not (point["p"] == 16 and point["s"] != 131072)

    space = Box((ranks, sizes), fits)
    chosen = starting_points(make_view(space, cost=lambda point: point.number("p") * point.number("s")))

    for name in ("p", "s"):
        line = [point for point, role in chosen.items() if f"line of {name}:" in role]
        values = {point[name] for point in chosen}
        assert len(line) >= 2
        assert len(values) >= 5
    assert all(point in space for point in chosen)


def test_the_cheaper_of_equally_long_lines_is_taken() -> None:
    space = Box((P, S), lambda point: point["s"] != 10 or point["p"] == 8)
    chosen = starting_points(make_view(space))

    assert points((8, 15), (27, 15), (64, 15), (125, 15), (216, 15)) <= set(chosen)


def test_a_diagonal_space_still_shows_five_values_of_each_parameter() -> None:
    weak = Box(
        (P, S),
        lambda point: (
            P.values.index(point["p"]) == S.values.index(point["s"]) if point["p"] != 343 else False
        ),
    )
    chosen = starting_points(make_view(weak))

    assert {point["p"] for point in chosen} == {8, 27, 64, 125, 216}
    assert {point["s"] for point in chosen} == {10, 15, 20, 25, 30}


def test_infeasible_points_are_replaced() -> None:
    gone = Point.of(p=27, s=10)
    chosen = starting_points(make_view(Box((P, S)), infeasible=frozenset([gone])))

    assert gone not in chosen
    assert Point.of(p=343, s=10) in chosen


def test_the_category_of_the_evaluation_point_has_a_whole_starting_set_and_the_others_parts() -> None:
    layouts = Parameter("layout", ("DGZ", "DZG", "GDZ"), categorical=True)
    view = make_view(Box((P, S, layouts)), evaluation_point=Point.of(p=512, s=35, layout="GDZ"))
    chosen = list(starting_points(view))

    per_layout = {layout: [p for p in chosen if p["layout"] == layout] for layout in layouts.values}
    assert chosen[:11] == per_layout["GDZ"]
    whole = [tuple(point[name] for name in ("p", "s")) for point in per_layout["GDZ"]]
    for layout in ("DGZ", "DZG"):
        part = [tuple(point[name] for name in ("p", "s")) for point in per_layout[layout]]
        assert len(part) == 4 and set(part) < set(whole)
        for column, all_ in zip(zip(*part, strict=True), zip(*whole, strict=True), strict=True):
            assert {min(all_), max(all_)} <= set(column)


def test_of_a_single_line_other_categories_get_three_points() -> None:
    layouts = Parameter("layout", ("DGZ", "DZG"), categorical=True)
    view = make_view(Box((S, layouts)), evaluation_point=Point.of(s=35, layout="DZG"))
    chosen = list(starting_points(view))
    assert [point["layout"] for point in chosen] == ["DZG"] * 5 + ["DGZ"] * 3
    others = [point["s"] for point in chosen[5:]]
    assert {others[0], others[-1]} == {chosen[0]["s"], chosen[4]["s"]}


def test_without_an_evaluation_point_every_category_has_a_whole_starting_set() -> None:
    layouts = Parameter("layout", ("DGZ", "DZG"), categorical=True)
    chosen = starting_points(make_view(Box((P, S, layouts)), evaluation_point=None))
    assert [sum(point["layout"] == layout for point in chosen) for layout in layouts.values] == [11, 11]


def test_runs_that_are_there_already_are_not_repeated() -> None:
    space = Box((P, S))
    done = {Point.of(p=8, s=10): 2, Point.of(p=27, s=10): 1}
    choices = {choice.point: choice.repetitions for choice in first_round(make_view(space, done=done))}

    assert Point.of(p=8, s=10) not in choices
    assert choices[Point.of(p=27, s=10)] == 1
    assert choices[Point.of(p=64, s=10)] == 2


def test_a_tight_budget_keeps_the_cheap_part_and_a_relative_cost_keeps_all() -> None:
    tight = make_view(Box((P, S)), budget_left=100.0, initial_repetitions=1)
    relative = make_view(Box((P, S)), budget_left=100.0, initial_repetitions=1, cost_is_relative=True)

    kept = first_round(tight)
    assert 0 < len(kept) < 11
    assert sum(tight.cost(choice.point) for choice in kept) <= 100.0
    assert len(first_round(relative)) == 11


def test_spread_lines_reach_the_largest_values_of_long_lines() -> None:
    long = Parameter("p", tuple(range(1, 102)))
    assert set(spread_lines(make_view(Box((long, S))))) == points(
        (1, 10), (26, 10), (51, 10), (76, 10), (101, 10), (1, 15), (1, 20), (1, 25), (1, 30)
    )


def test_spread_lines_leave_out_what_must_not_be_measured() -> None:
    layout = Parameter("layout", ("a", "b"), categorical=True)
    space = Box((Parameter("p", (1, 2, 4)), layout), lambda point: point["p"] != 2)
    everywhere = make_view(space, infeasible=frozenset({Point.of(p=4, layout="a")}))
    assert spread_lines(everywhere) == [Point.of(p=p, layout=x) for p, x in ((1, "a"), (1, "b"), (4, "b"))]
    aimed = make_view(space, evaluation_point=Point.of(p=4, layout="b"))
    assert spread_lines(aimed) == [Point.of(p=1, layout="b")]


def test_a_constrained_space_is_walked_once_if_its_points_can_be_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An equation leaves few of millions of combinations, and looking at all of these takes long."""
    walks: list[int] = []

    class Counted(Box):
        def within(self, fixed: Mapping[str, Value]) -> Iterator[Point]:
            walks.append(1)
            return super().within(fixed)

    space = Counted((P, S), lambda point: (point.number("p") + point.number("s")) % 4 == 2)
    chosen = starting_points(make_view(space))
    assert len(walks) == 1
    monkeypatch.setattr(starting_set, "_KEPT", 3)
    assert starting_points(make_view(space)) == chosen
    assert len(walks) > 3
