"""The lazy search space equals the filtered product, and explains what it excludes."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import expressions
from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.errors import CampaignError
from orchestrator.space import Categories, ListedSpace, SearchSpace
from orchestrator.types import Parameter, Point, Value

NAMES = ("a", "b", "c")
CONSTRAINTS = (
    "a <= b", "a * b != 6", "b % 2 == c % 2", "a + b + c <= limit",
    "c > 0", "a * b * c == 12", "limit > 3", "a == b or b == c",
)  # fmt: skip


def _refuse_sum_of_seven(values: Mapping[str, Value]) -> str | None:
    total = sum(int(values[name]) for name in NAMES)
    return f"the sum of {values['a']}, {values['b']} and {values['c']} is 7" if total == 7 else None


@st.composite
def spaces(draw: st.DrawFn) -> tuple[SearchSpace, list[Point]]:
    values = {name: sorted(draw(st.sets(st.integers(-2, 6), min_size=1, max_size=5))) for name in NAMES}
    parameters = [Parameter(name, tuple(values[name])) for name in NAMES]
    texts = draw(st.lists(st.sampled_from(CONSTRAINTS), unique=True))
    settings: dict[str, Value] = {"limit": draw(st.integers(0, 12))}
    compiled = [expressions.parse(text, [*NAMES, "limit"]) for text in texts]
    wanted = []
    for combination in itertools.product(*values.values()):
        names = dict(zip(NAMES, combination, strict=True))
        holds = all(eval(text, {**names, **settings}) for text in texts)
        if holds and _refuse_sum_of_seven(names) is None:
            wanted.append(Point.of(dict(names)))
    return SearchSpace(parameters, compiled, settings, _refuse_sum_of_seven), wanted


@given(spaces())
def test_iterates_the_filtered_product_in_lexicographic_order(case: tuple[SearchSpace, list[Point]]) -> None:
    found, wanted = case
    assert list(found) == wanted
    assert list(found) == wanted  # again: iteration leaves no trace
    assert found.size() == len(wanted)


@given(spaces(), st.tuples(*[st.integers(-3, 7)] * 3))
def test_contains_exactly_what_it_iterates(
    case: tuple[SearchSpace, list[Point]], values: tuple[int, int, int]
) -> None:
    found, wanted = case
    point = Point(tuple(zip(NAMES, values, strict=True)))
    assert (point in found) == (point in wanted)
    assert all(point in found for point in wanted)
    assert Point(point.items[::-1]) not in found
    assert Point(point.items[:2]) not in found
    assert "a=1" not in found


@given(spaces())
def test_every_combination_is_a_point_or_excluded_for_one_reason(
    case: tuple[SearchSpace, list[Point]],
) -> None:
    found, wanted = case
    description = found.describe()
    assert description.combinations == description.feasible + sum(description.infeasible.values())
    assert description.feasible == len(wanted)
    for name in NAMES:
        occurring = sorted({point[name] for point in wanted}, key=float)
        assert list(description.values[name]) == occurring
        if wanted:
            assert description.bounds[name] == (occurring[0], occurring[-1])
    assert (description.last is None) == (description.feasible == description.combinations)


def test_reasons_that_differ_in_figures_count_as_one() -> None:
    sizes = Parameter("s", tuple(range(1000)))
    odd = SearchSpace([sizes], check=lambda values: f"{values['s']} is odd" if int(values["s"]) % 2 else None)
    assert odd.describe().infeasible == {"1 is odd": 500}


def test_many_different_reasons_do_not_fill_the_memory() -> None:
    names = [f"{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(600)]
    words = Parameter("word", tuple(names), categorical=True)
    description = SearchSpace([words], check=lambda values: f"no {values['word']}").describe()
    assert len(description.infeasible) <= 60
    assert sum(description.infeasible.values()) == 600


def test_constraints_cut_off_before_deeper_parameters_are_walked() -> None:
    seen = []

    def check(values: Mapping[str, Value]) -> str | None:
        seen.append((values["a"], values["b"]))
        return None

    huge = Parameter("b", tuple(range(10**5)))
    first = expressions.parse("a == 3 and limit == 2", ["a", "limit"])
    second = expressions.parse("b < 2", ["b"])
    found = SearchSpace([Parameter("a", (1, 2, 3)), huge], [second, first], {"limit": 2}, check)
    assert [str(point) for point in found] == ["P(a=3, b=0)", "P(a=3, b=1)"]
    assert seen == [(3, 0), (3, 1)]
    assert found.describe().infeasible == {"a == 3 and limit == 2": 2 * 10**5, "b < 2": 10**5 - 2}


def test_a_million_combinations_need_little_memory() -> None:
    parameters = [Parameter(name, tuple(range(1, 101))) for name in NAMES]
    found = SearchSpace(parameters, [expressions.parse("a * b**2 <= 1e5", NAMES)])
    tracemalloc.start()
    try:
        description = found.describe()
        walked = sum(1 for _ in itertools.islice(found, 100_000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert description.combinations == 10**6
    assert description.feasible == 100 * sum(min(100, math.isqrt(10**5 // a)) for a in range(1, 101))
    assert walked == 100_000
    assert peak < 1_000_000


def _campaign(text: str) -> Campaign:
    head = (
        "name: x\napplication: generic\nexecutable: 'true'\nprogram: {ranks: p}\nmeasure: {profiler: time}\n"
    )
    return loader.loads(f"{head}stop: {{budget: 1}}\nexecutor: {{name: slurm}}\n{text}")


def test_parallelogram_of_a_strong_scaling_study() -> None:
    # as of FASTEST (Ritter et al., section V-B): one size at 16 ranks, two at 32, one at 2048
    built = _campaign(
        "parameters: {p: {from: 16, to: 2048, factor: 2}, s: {from: 8192, to: 131072, factor: 2}}\n"
        "constraints: ['2**21 <= p * s <= 2**24']\n"
    ).space
    assert [(point["p"], point["s"]) for point in built] == [
        (2**i, 2**j) for i in range(4, 12) for j in range(13, 18) if 21 <= i + j <= 24
    ]
    sizes = {p: [point["s"] for point in built if point["p"] == p] for p in (16, 32, 2048)}
    assert sizes == {16: [131072], 32: [65536, 131072], 2048: [8192]}


def test_factorisations_of_the_ranks() -> None:
    built = _campaign(
        "parameters: {p: {from: 1, to: 64, factor: 2}, x: {from: 1, to: 64, factor: 2}, "
        "y: {from: 1, to: 64, factor: 2}, z: {from: 1, to: 64, factor: 2}}\nconstraints: ['x*y*z == p']\n"
    ).space
    assert built.size() == sum((n + 1) * (n + 2) // 2 for n in range(7))
    assert all(point.number("x") * point.number("y") * point.number("z") == point["p"] for point in built)


def test_points_that_the_machine_cannot_hold_are_not_in_the_space() -> None:
    text = "parameters: {p: [1, 2, 4, 8]}\n"
    loaded = _campaign(text)
    assert loaded.space.size() == 4
    local = loader.loads(loader.dump(loaded), overrides=["executor={name: local, slots: 2}"])
    description = local.space.describe()
    assert description.values["p"] == (1, 2)
    [(reason, count)] = description.infeasible.items()
    assert "slots" in reason
    assert count == 2


def test_empty_space_names_the_constraint_that_removed_the_last_points() -> None:
    text = "parameters: {p: [1, 2], s: [1, 2]}\nconstraints: ['p > 1', 'p * s > 9', 's < 9']\n"
    with pytest.raises(CampaignError) as error:
        _campaign(text)
    message = str(error.value)
    assert "the last of 4 combinations was excluded by 'p * s > 9'" in message
    assert "2 by 'p > 1'" in message
    assert "s < 9" not in message.partition("excluded by")[2]


def test_too_many_combinations_are_refused_before_they_are_walked() -> None:
    wide = "{from: 1, to: 100000}"
    with pytest.raises(
        CampaignError, match=r"1e\+10 combinations, more than 1e\+08, and strategy information looks"
    ):
        _campaign(f"parameters: {{p: {wide}, s: {wide}}}\nconstraints: ['p + s < 0']\n")


def test_a_part_of_a_space_is_walked_without_looking_at_the_rest() -> None:
    looked: list[dict[str, Value]] = []

    def check(values: Mapping[str, Value]) -> str | None:
        looked.append(dict(values))
        return None

    words = Parameter("word", ("a", "b", "c"), categorical=True)
    found = SearchSpace([Parameter("x", (1, 2)), words, Parameter("y", (3, 4))], check=check)
    wanted = [point for point in found if point["word"] == "b"]
    looked.clear()
    assert list(found.within({"word": "b"})) == wanted and len(wanted) == 4
    assert {values["word"] for values in looked} == {"b"}


def vast(*texts: str) -> SearchSpace:
    """10^9 combinations, of which constraints leave some."""
    parameters = [Parameter(name, tuple(range(1, 1001))) for name in NAMES]
    return SearchSpace(parameters, [expressions.parse(text, NAMES) for text in texts])


def test_what_is_too_large_to_be_walked_is_described_by_draws() -> None:
    found = vast("a % 2 == 0", "b <= c").describe()
    assert found.drawn > 0
    assert found.combinations == 10**9
    assert found.feasible == pytest.approx(0.25e9, rel=0.1)
    assert found.infeasible["a % 2 == 0"] == pytest.approx(0.5e9, rel=0.1)
    assert found.infeasible["b <= c"] == pytest.approx(0.25e9, rel=0.1)
    assert len(found.values["a"]) > 400


def test_a_space_that_certainly_has_millions_of_points_is_not_walked_to_count_them() -> None:
    looked = 0

    def check(values: Mapping[str, Value]) -> str | None:
        nonlocal looked
        looked += 1
        return None

    parameters = [Parameter(name, tuple(range(1, 1001))) for name in NAMES]
    space = SearchSpace(parameters, check=check)
    assert space.describe().drawn > 0
    assert looked <= 2 * space.describe().drawn


def test_where_hardly_any_combination_drawn_is_a_point_there_is_a_limit() -> None:
    assert vast("a % 2 == 0").describe().at_most is None
    none = vast("a + b + c == 7.5").describe()
    assert none.at_most == pytest.approx(3 * 10**9 / none.drawn, rel=0.01)
    one = vast("(7919 * a + 104729 * b + 31 * c) % 10007 == 3").describe()
    assert one.drawn > 0 and one.at_most in (None, pytest.approx(4.744 * 10**9 / one.drawn))


def test_constraints_that_cut_off_most_of_a_large_space_leave_exact_figures() -> None:
    found = vast("a == 1", "b == 2").describe()
    assert (found.drawn, found.feasible) == (0, 1000)


def test_some_points_are_all_of_a_small_space_and_spread_over_a_large_one() -> None:
    small = vast("a == 1", "b == 2")
    assert list(small.some(2000, 10)) == list(small)
    points = list(vast().some(walked=50, drawn=20))  # a tenth of it: there are certainly millions
    assert points[:5] == [Point.of(a=1, b=1, c=c) for c in range(1, 6)]
    assert len({point["a"] for point in points[5:]}) > 10
    assert points == list(vast().some(walked=50, drawn=20))
    sparse = vast("a == 1000", "b == 1000", "c == 1000")
    assert len(list(sparse.some(walked=10, drawn=10))) == 0  # and ends


def test_a_listed_space_is_its_points_in_order_as_the_campaign_writes_them() -> None:
    whole = vast("a <= b")
    listed = ListedSpace(whole, [(2.0, 4.0, 8.0), (1, 7, 7), (9, 1, 1), (1, 5000, 1), (1, 7, 7)])
    assert list(listed) == [Point.of(a=1, b=7, c=7), Point.of(a=2, b=4, c=8)]
    assert all(isinstance(value, int) for point in listed for _, value in point.items)
    assert Point.of(a=1, b=8, c=8) in whole and Point.of(a=1, b=8, c=8) not in listed
    assert list(listed.within({"c": 8})) == [Point.of(a=2, b=4, c=8)]
    assert listed.describe().feasible == 2
    assert list(listed.some()) == list(listed.sampled()[0]) == list(listed)


def test_strategies_that_draw_take_any_number_of_combinations() -> None:
    wide = "{from: 1, to: 100000}"
    for strategy in ("sample", "active"):
        text = f"parameters: {{p: {wide}, s: {wide}}}\nstrategy: {strategy}\nconstraints: ['p < s']\n"
        assert _campaign(text).space.combinations == 10**10
    with pytest.raises(CampaignError, match=r"no point of the search space was found: none among 20000 comb"):
        _campaign(text.replace("p < s", "p + s == 7.5"))


@pytest.mark.parametrize(
    "fixed", [{}, {"c": "b"}, {"c": "b", "d": "x"}, {"c": "b", "d": "x", "n": 2}, {"n": 1}]
)
def test_a_part_of_listed_points_is_found_by_categories_or_without(fixed: dict[str, Value]) -> None:
    parameters = (
        Parameter("n", (1, 2, 3)),
        Parameter("c", ("a", "b"), categorical=True),
        Parameter("d", ("x", "y"), categorical=True),
    )
    points = [Point.of(n=n, c=c, d=d) for n in (3, 1, 2) for c in "ba" for d in "yx" if (n, c) != (1, "a")]
    expected = [point for point in points if all(point[name] == v for name, v in fixed.items())]
    assert list(Categories.of(parameters, points).within(fixed)) == expected
    assert list(Categories.of(parameters, points).within({"c": "none", "d": "x"})) == []


def test_a_listed_space_describes_its_own_points_although_the_whole_was_described_before() -> None:
    whole = SearchSpace([Parameter("n", (1, 2, 3))], [])
    assert whole.describe().feasible == 3
    some = ListedSpace(whole, [(1,), (2,)])
    assert some.describe().feasible == 2
    fewer = ListedSpace(some, [(1,)])
    assert fewer.describe().feasible == 1
    assert list(fewer.within({"n": 2})) == []
