"""Ratios of two sets of measurements: found where something changed, and not where nothing did."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.errors import CampaignError
from orchestrator.models.comparison.compared import common_factor, compared, largest_common
from orchestrator.models.comparison.mixtures import Mixture
from orchestrator.models.comparison.pairs import Aligned, aligned, pairs
from orchestrator.models.comparison.ratio import Ratio, false_discoveries, independent_callpaths, ratio
from orchestrator.types import Measurement, Measurements, Point
from tests.models.comparison.campaigns import both, measured

P = {"p": 64.0, "n": 40.0}


def the_ratio(found: Aligned) -> Ratio:
    (pair,) = pairs(found.first, found.second).values()
    return ratio(pair)


@pytest.mark.parametrize("seed", range(5))
def test_ten_percent_are_found_at_five_percent_noise(seed: int) -> None:
    found = the_ratio(both(seed, lambda p, n: 1.1))
    assert found.probability() > 0.95
    at = found.at(P)
    assert at.quantile(0.01) < math.log(1.1) < at.quantile(0.99)


@pytest.mark.parametrize("seed", range(5))
def test_no_change_is_not_found(seed: int) -> None:
    assert the_ratio(both(seed)).probability() < 0.9


def test_a_ratio_that_grows_is_continued() -> None:
    found = the_ratio(both(1, lambda p, n: (p / 4) ** 0.3, noise=0.02))
    assert found.depends("p") > 0.99
    assert found.depends("n") < 0.5
    growth = found.growth("p", P)
    assert growth.quantile(0.01) < 0.3 < growth.quantile(0.99)
    beyond = found.at({"p": 1024.0, "n": 40.0})
    assert beyond.quantile(0.5) == pytest.approx(0.3 * math.log(256), abs=0.1)


def test_what_bends_is_left_to_the_models_beyond() -> None:
    found = the_ratio(both(2, lambda p, n: 1 + (p / 64) ** 2, noise=0.01))
    assert found.bent > 0.9
    far, models = {"p": 256.0, "n": 40.0}, Mixture.normal(2.8, 0.01)
    assert found.at(far, models).quantile(0.5) == pytest.approx(2.8, abs=0.02)
    assert found.at(P, models, share=0.0).quantile(0.5) == pytest.approx(math.log(2), abs=0.05)


def test_models_share_a_bent_ratio_unless_the_pairs_speak_against_them() -> None:
    def bent(p: float, n: float) -> float:
        return 1 + (p / 64) ** 2

    found = the_ratio(both(2, bent, noise=0.01))
    right = np.array([math.log(bent(p, n)) for p, n in found.pairs.points])
    assert found.agreement(right) == pytest.approx(0.5)
    assert found.agreement(right + 0.1) < 0.01
    assert found.agreement(np.full_like(right, np.nan)) == 0.0


def test_intervals_hold_where_one_term_of_a_sum_changes() -> None:
    """Neither a power nor a polynomial: how the ratio grows with p depends on n."""

    def changed(p: float, n: float) -> float:
        return (100 + 1.5 * n * p) / (100 + 3 * n * math.log2(p))

    places = [the_ratio(both(seed, changed)).at(P) for seed in range(40)]
    truth = math.log(changed(**P))
    assert sum(at.quantile(0.05) < truth < at.quantile(0.95) for at in places) >= 34
    growth = the_ratio(both(0, changed, noise=0.01)).growth("p", {"p": 16.0, "n": 20.0})
    steps = [math.log(changed(p, 20)) for p in (15, 17)]
    assert growth.quantile(0.01) < (steps[1] - steps[0]) / math.log(17 / 15) < growth.quantile(0.99)


def test_little_data_are_little_evidence() -> None:
    """Two runs each at one point: 10 % at 5 % noise may be chance."""
    rng = np.random.default_rng(3)
    a = measured(rng, processes=(4,), sizes=(10,))
    b = measured(rng, processes=(4,), sizes=(10,), factor=lambda p, n: 1.1)
    assert the_ratio(aligned(a, b)).probability() < 0.95


def test_scatter_from_point_to_point_counts_as_noise() -> None:
    """Repetitions within 0.1 %, but 10 % from job to job: that is what a change must be compared with."""
    rng = np.random.default_rng(4)
    scatter: dict[tuple[float, float], float] = {
        (p, n): math.exp(0.1 * rng.standard_normal()) for p in (4, 8, 16, 32, 64) for n in (10, 20, 30, 40)
    }
    found = the_ratio(both(5, lambda p, n: 1.02 * scatter[p, n], noise=0.001))
    assert found.probability() < 0.9
    at = found.at(P)
    assert at.quantile(0.95) - at.quantile(0.05) > 0.05


def test_exact_counts_show_small_changes() -> None:
    def counts(factor: float) -> Measurements:
        values = {Point.of(p=p): (round(1e9 * p * factor),) * 2 for p in (1, 2, 4, 8, 16)}
        return Measurements(("p",), (Measurement("main", "basic_blocks", values),))

    assert the_ratio(aligned(counts(1.0), counts(1.001))).probability() > 0.999
    assert the_ratio(aligned(counts(1.0), counts(1.0))).probability() < 0.5


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.5, 2.0))
def test_exchanging_a_and_b_inverts_the_ratio(seed: int, factor: float) -> None:
    found = both(seed, lambda p, n: factor)
    there = the_ratio(found)
    back = the_ratio(replace(found, first=found.second, second=found.first))
    assert back.evidence == pytest.approx(there.evidence, abs=1e-6)
    for share in (0.05, 0.5, 0.95):
        assert back.at(P).quantile(share) == pytest.approx(-there.at(P).quantile(1 - share), abs=1e-4)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.1, 1), st.floats(-1, 1), st.floats(0, 1), st.floats(1, 50)), min_size=1),
    st.floats(0.01, 0.99),
)
@example([(1.0, 0.0, 2.5e-55, 1.0)], 0.25)  # hardly a spread at all
@example([(1.0, 0.0, 5e-324, 1.0), (0.5, 0.0, 0.0, 1.0)], 0.25)
def test_quantiles_invert_probabilities(members: list[tuple[float, ...]], share: float) -> None:
    known = Mixture.joined([(1.0, Mixture(*(np.array(column) for column in zip(*members, strict=True))))])
    value = known.quantile(share)
    assert known.below(value - 1e-4) <= share + 1e-6
    assert known.below(value + 1e-4) >= share - 1e-6
    assert known.below(value) + known.above(value) <= 1 + 1e-9


def test_many_call_paths_raise_the_threshold() -> None:
    alone = false_discoveries([4.0], 1)[0]
    among = false_discoveries([4.0, *[-2.0] * 200], 201)[0]
    assert alone < 0.05 < among
    assert false_discoveries([4.0, 4.0, 4.0, 4.0], 4)[0] < alone


def test_names_of_other_compilers_are_matched() -> None:
    rng = np.random.default_rng(6)
    a, b = measured(rng), measured(rng)
    a = replace(a, items=tuple(replace(item, callpath="main->solve(int)") for item in a.items))
    b = replace(b, items=tuple(replace(item, callpath="main->void solve(int)") for item in b.items))
    found = aligned(a, b)
    assert found.renamed == {"main->solve(int)": "main->void solve(int)"}
    assert not found.only_first
    assert not found.only_second
    assert pairs(found.first, found.second)


def test_other_parameters_are_refused() -> None:
    rng = np.random.default_rng(7)
    a = measured(rng)
    b = Measurements(("q",), (Measurement("main->f0", "time", {Point.of(q=1): (1.0,)}),))
    with pytest.raises(CampaignError, match="A has the parameters p, n and B q"):
        aligned(a, b)


def test_a_common_factor_is_noticed() -> None:
    everywhere = compared(both(8, lambda p, n: 1.2, callpaths=6), (), ())
    factor = common_factor(everywhere)
    assert factor is not None
    assert factor == pytest.approx(1.2, abs=0.05)
    assert common_factor(compared(both(9, callpaths=6), (), ())) is None


def test_the_largest_common_point_is_measured_in_both() -> None:
    rng = np.random.default_rng(10)
    found = aligned(measured(rng), measured(rng, processes=(4, 8, 16), sizes=(10, 20, 50)))
    assert largest_common(compared(found, (), ()), found) == Point.of(p=16, n=20)


def _neighbours(seed: int, factor: float) -> Aligned:
    """Return 5 points, each measured twice by both one after the other, on a machine with a load of 30 %."""
    rng = np.random.default_rng(seed)
    sides: list[dict[Point, tuple[float, ...]]] = [{}, {}]
    for n in (10, 20, 30, 40, 50):
        load = 1 + 0.3 * rng.random(2)  # of a repetition of both
        for side, slower in zip(sides, (1.0, factor), strict=True):
            side[Point.of(n=n)] = tuple(slower * n * load * np.exp(0.01 * rng.standard_normal(2)))
    a, b = (Measurements(("n",), (Measurement("main", "time", side),)) for side in sides)
    return aligned(a, b, together=True)


def _probability(both: Aligned) -> float:
    [row] = compared(both, (), ())
    assert row.probability is not None
    return row.probability


def test_a_load_that_disturbs_neighbours_alike_hides_no_change() -> None:
    slower = [_neighbours(seed, 1.1) for seed in range(20)]
    assert np.mean([_probability(both) > 0.95 for both in slower]) >= 0.8
    assert np.mean([_probability(replace(both, together=False)) > 0.95 for both in slower]) < 0.5


def test_a_load_that_disturbs_neighbours_alike_is_no_change() -> None:
    assert max(_probability(_neighbours(seed, 1.0)) for seed in range(40)) < 0.95


def test_rounding_does_not_make_neighbours_certain() -> None:
    values = [{Point.of(n=n): (0.001 * n,) * 3 for n in (1, 2, 3)} for _ in range(2)]
    values[1][Point.of(n=1)] = (0.002,) * 3  # another digit
    a, b = (Measurements(("n",), (Measurement("main", "time", side),)) for side in values)
    assert _probability(aligned(a, b, together=True)) < 0.95


def test_repetitions_without_a_counterpart_are_left_out() -> None:
    both = _neighbours(0, 1.1)
    [item] = both.second.items
    alone = {point: (*found, 5 * found[0]) for point, found in item.values.items()}
    more = replace(both, second=replace(both.second, items=(replace(item, values=alone),)))
    assert _probability(more) == pytest.approx(_probability(both), abs=0.05)


def test_times_that_are_printed_with_few_digits_are_no_change() -> None:
    a, b = (
        Measurements(("n",), (Measurement("main", "time", {Point.of(n=1): (t,) * 3}),))
        for t in (0.011, 0.012)
    )
    for together in (False, True):
        assert _probability(aligned(a, b, together=together)) < 0.9
    c = Measurements(("n",), (Measurement("main", "time", {Point.of(n=1): (0.021, 0.02, 0.021)}),))
    assert _probability(aligned(a, c)) > 0.9


def test_what_call_paths_share_is_no_evidence_that_many_changed() -> None:
    rng = np.random.default_rng(1)
    run = {n: rng.normal(0, 0.03) for n in (1, 2, 3, 4)}  # of all call paths of a run

    def side(shared: float, own: float) -> Measurements:
        items = [
            Measurement(
                f"f{k}",
                "time",
                {
                    Point.of(n=n): tuple(n * np.exp(shared * run[n] + own * rng.standard_normal(2)))
                    for n in run
                },
            )
            for k in range(30)
        ]
        return Measurements(("n",), tuple(items))

    plain = pairs(side(0, 0.01), side(0, 0.01)).values()
    alike = pairs(side(0, 0.01), side(1, 0.01)).values()
    assert independent_callpaths(list(plain)) > 8
    assert independent_callpaths(list(alike)) < 2
    evidences = [2.0] * 30
    assert false_discoveries(evidences, 1.0)[0] > 0.05 > false_discoveries(evidences, 30)[0]
