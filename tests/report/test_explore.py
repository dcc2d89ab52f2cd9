"""What an exploration finds, against SciPy's tests and cases that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from orchestrator.errors import ModelError
from orchestrator.report import explore, explore_figures
from orchestrator.report.explore_samples import Column, samples
from orchestrator.report.explore_statistics import association, by_intervals, merges, similarity
from orchestrator.report.figures import png
from orchestrator.types import Measurement, Measurements, Point

RNG = np.random.default_rng(5)
X = RNG.uniform(1, 9, 60)
NOISE = RNG.normal(0, 3, 60)


def column(name: str, values: object, levels: tuple[str, ...] = ()) -> Column:
    return Column(name=name, values=np.asarray(values, dtype=float), levels=levels)


def test_a_number_is_ranked_by_spearman_with_its_significance() -> None:
    y = np.exp(X + NOISE)
    expected = stats.spearmanr(X, y)
    found = association(column("x", X), column("y", y))
    assert found.rho == pytest.approx(expected.statistic)
    assert found.explained == pytest.approx(expected.statistic**2)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6)


def test_a_category_is_ranked_by_kruskal_and_wallis_less_chance() -> None:
    groups = np.arange(60) % 3
    y = np.exp(groups + NOISE / 3)
    share = stats.kruskal(*(y[groups == k] for k in range(3))).statistic / 59
    found = association(column("g", groups, ("a", "b", "c")), column("y", y))
    assert found.rho is None
    assert found.explained == pytest.approx(1 - (1 - share) * 59 / 57)
    each = association(column("g", np.arange(60), tuple(map(str, range(60)))), column("y", y))
    assert (each.explained, each.p_value) == (0.0, 1.0)


def test_what_rises_and_falls_is_not_overlooked() -> None:
    found = association(column("x", X), column("y", (X - np.median(X)) ** 2))
    assert found.explained < 0.2 and found.bent > 0.85


def test_points_without_a_response_do_not_count() -> None:
    y = np.where(np.arange(60) < 10, np.nan, X)
    found = association(column("x", X), column("y", y))
    assert found.points == 50 and found.rho == pytest.approx(1.0)
    assert sum(interval.points for interval in by_intervals(column("x", X), column("y", y))) == 50


def test_categories_are_alike_where_they_go_together() -> None:
    first = column("a", np.arange(60) % 2, ("0", "1"))
    crossed = column("b", np.arange(60) // 2 % 2, ("0", "1"))
    same = column("c", 1 - np.arange(60) % 2, ("0", "1"))
    shares = similarity([first, crossed, same])
    assert shares[0, 1] == pytest.approx(0.0, abs=1e-9) and shares[0, 2] == pytest.approx(1.0)


def test_clusters_join_at_their_most_similar_members() -> None:
    """Single linkage on the maximum: c joins at its similarity to b, not at the lower one to a."""
    shares = np.array(
        [[1.0, 0.9, 0.1, 0.0], [0.9, 1.0, 0.6, 0.0], [0.1, 0.6, 1.0, 0.2], [0.0, 0.0, 0.2, 1.0]]
    )
    steps, _ = merges([column(name, X) for name in "abcd"], shares)
    assert [set(step.members) for step in steps] == [set("ab"), set("abc"), set("abcd")]
    assert [step.similarity for step in steps] == pytest.approx([0.9, 0.6, 0.2])


def test_few_values_are_intervals_of_their_own_and_many_are_quartiles() -> None:
    few = by_intervals(column("p", [2, 4, 2, 4]), column("y", [1.0, 5.0, 3.0, 7.0]))
    assert [(i.label, i.points, i.mean) for i in few] == [("2", 2, 2.0), ("4", 2, 6.0)]
    values = np.arange(100.0)
    many = by_intervals(column("p", values), column("y", values))
    assert [(i.label, i.points) for i in many] == [
        ("0 to 24", 25),
        ("25 to 49", 25),
        ("50 to 74", 25),
        ("75 to 99", 25),
    ]
    assert (many[0].median, many[0].lower_quartile, many[0].upper_quartile) == (12.0, 6.0, 18.0)


def measured(points: int = 16) -> Measurements:
    """Two responses with one shape and one that only the solver decides; q says the same as p."""
    found: dict[str, dict[Point, tuple[float, ...]]] = {"main": {}, "solve": {}, "setup": {}}
    for k in range(points):
        p, solver = 2 ** (k % 8), ("amg", "cg")[k // 8]
        point = Point.of(p=p, q=1 / p, n=5, solver=solver)
        found["main"][point] = (3.0 * p, 3.0 * p, 9000.0)
        found["solve"][point] = (2.0 * p,)
        found["setup"][point] = ({"amg": 2.0, "cg": 1.0}[solver] + 0.01 * ((k * 5) % 8),)
    items = tuple(Measurement(path, "time", values) for path, values in found.items())
    return Measurements(("p", "q", "n", "solver"), items)


def test_findings_say_what_the_figures_show() -> None:
    found = explore.explored(measured())
    text = "\n".join(found.findings)
    assert "p and q were not varied independently (similarity 1.00)" in text
    assert "one model may stand for all of these, which rise and fall together: main, solve" in text
    assert "16 points for 3 parameters" in text
    assert "left out, with one value each: n=5" in found.samples.notes
    order = {response.name: [item.parameter.name for item in ranks] for response, ranks in found.rankings}
    assert order["main"][-1] == "solver" and order["setup"][0] == "solver"
    (first, *_), main = order["main"], found.samples.responses[0]
    assert first in "pq" and main.values.max() == 3.0 * 128  # the median of the repetitions


def test_the_largest_responses_are_kept_in_their_order() -> None:
    found = samples(measured(), 2)
    assert [column.name for column in found.responses] == ["main", "solve"]
    assert "the 2 largest of 3 responses" in found.notes[-1]


def test_many_responses_that_never_change_take_one_short_line() -> None:
    points = [Point.of(p=p) for p in range(1, 6)]
    varied = Measurement("main", "time", {point: (point.number("p"),) for point in points})
    same = [Measurement(f"f{k}", "time", dict.fromkeys(points, (1.0,))) for k in range(9)]
    few = Measurement("rare", "time", {points[0]: (1.0,), points[4]: (2.0,)})
    found = explore.explored(Measurements(("p",), (varied, *same, few)))
    assert found.samples.notes == (
        "the same at all points, and left out: f0, f1, f2 and 6 more",
        "measured at fewer than 4 points, and left out: rare",
    )


def test_too_little_to_explore_is_refused() -> None:
    with pytest.raises(ModelError, match="3 measured points: too few to explore, measure at least 4"):
        explore.explored(measured(3))
    same = Measurement("main", "time", {Point.of(p=p): (1.0,) for p in range(5)})
    with pytest.raises(ModelError, match="no response varies"):
        explore.explored(Measurements(("p",), (same,)))


def test_categories_that_hardly_repeat_are_not_said_to_be_without_effect() -> None:
    values = {Point.of(v=f"v{k}", p=k % 4): (float(k),) for k in range(12)}
    found = explore.explored(Measurements(("v", "p"), (Measurement("main", "time", values),)))
    assert "v has 12 categories at 12 points: too many to see an effect" in found.findings


def test_names_with_dollars_are_drawn_as_they_are() -> None:
    """Between two dollars would be a formula, and this is none."""
    values = {Point.of(**{"p$^$": k}): (float(k * k),) for k in range(1, 7)}
    items = [Measurement(path, "time $^$", values) for path in ("main->f$_0::g$^", "main->h")]
    found = explore.explored(Measurements(("p$^$",), tuple(items)))
    drawn = [explore_figures.clusters(found)]
    drawn += [explore_figures.associations(response, ranks) for response, ranks in found.rankings]
    assert all(png(figure).startswith(b"\x89PNG") for figure in drawn)


def test_a_parameter_without_an_effect_of_its_own_is_named() -> None:
    values = {Point.of(p=p, q=q): (float(p),) for p in range(1, 9) for q in range(1, 9)}
    found = explore.explored(Measurements(("p", "q"), (Measurement("main", "time", values),)))
    assert "q has no visible effect by itself on any response" in found.findings
    assert not any(text.startswith("p has") for text in found.findings)
