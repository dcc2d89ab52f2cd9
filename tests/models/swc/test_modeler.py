"""The SWC modeler: priors from counted effort, and what times can do to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.models.pmnf import modeler as pmnf
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.swc import modeler as swc
from orchestrator.models.symbolic import growth, terms_of
from orchestrator.types import Measurement, Measurements, Point
from tests.models.builders import terms
from tests.models.swc.effort_data import FAR, FORM, POINTS, exact, slowed, together


def model(known: Measurements, callpath: str = "main->f", **options: Any) -> PmnfModel:
    found = {(m.callpath, m.metric): m for m in swc.modeler(**options)(known)}
    chosen = found[callpath, "time"]
    assert isinstance(chosen, PmnfModel)
    return chosen


def far(fitted: PmnfModel) -> float:
    return float(fitted.predict([FAR]).value[0])


@pytest.mark.parametrize("noise", [0.02, 0.5, 0.75])
@pytest.mark.parametrize("posterior", swc.POSTERIORS)
def test_counts_keep_the_growth_whatever_the_noise(noise: float, posterior: str) -> None:
    times = slowed("main->f", lambda p, n: 1e-6 * n**1.5 * p**0.5 + 1e-4, noise)
    counts = exact("main->f", "basic_blocks", lambda p, n: 7 + 3 * n**1.5 * p**0.5)
    fitted = model(together(times, counts), posterior=posterior)
    assert growth(terms_of(fitted), "p") == (0.5, 0.0)
    assert growth(terms_of(fitted), "n") == (1.5, 0.0)
    truth = 1e-6 * 100**1.5 * 16 + 1e-4
    assert truth * 0.9 < far(fitted) < truth * (1 + noise)


def test_every_counted_term_remains_though_its_time_is_lost_in_noise() -> None:
    times = slowed("main->f", lambda p, n: 1e-6 * n**2 + 1e-8 * p, 0.5)
    fitted = model(
        together(times, exact("main->f", "basic_blocks", lambda p, n: n**2 + p)), posterior="prior"
    )
    assert growth(terms_of(fitted), "n") == (2.0, 0.0)
    assert growth(terms_of(fitted), "p") == (1.0, 0.0)


# Seconds by Table I with α, β, γ; counts per rank as Score-P has them, for a whole vector of 8 n**2 bytes.
A, B, C = 2e-5, 3e-9, 5e-9
VECTOR: FORM = lambda p, n: 8 * n**2  # noqa: E731
TABLE: dict[str, tuple[FORM, dict[str, FORM]]] = {
    "Send": (lambda p, n: A + B * VECTOR(p, n), {"bytes_sent": VECTOR}),
    "Recv": (lambda p, n: A + B * VECTOR(p, n), {"bytes_received": VECTOR}),
    "Bcast": (
        lambda p, n: A * np.log2(p) + B * VECTOR(p, n),
        {"bytes_received": VECTOR, "bytes_sent": VECTOR},
    ),
    "Scatter": (
        lambda p, n: A * np.log2(p) + B * VECTOR(p, n) * (p - 1) / p,
        {"bytes_received": lambda p, n: VECTOR(p, n) / p, "bytes_sent": lambda p, n: VECTOR(p, n) / p},
    ),
    "Gather": (
        lambda p, n: A * np.log2(p) + B * VECTOR(p, n) * (p - 1) / p,
        {"bytes_received": lambda p, n: VECTOR(p, n) / p, "bytes_sent": lambda p, n: VECTOR(p, n) / p},
    ),
    "Allgather": (
        lambda p, n: A * np.log2(p) + B * VECTOR(p, n) * (p - 1) / p,
        {"bytes_received": VECTOR, "bytes_sent": VECTOR},
    ),
    "Reduce": (
        lambda p, n: A * np.log2(p) + (B + C * (p - 1) / p) * VECTOR(p, n),
        {"bytes_sent": VECTOR, "bytes_received": VECTOR},
    ),
    "Allreduce": (
        lambda p, n: A * np.log2(p) + (B + C * (p - 1) / p) * VECTOR(p, n),
        {"bytes_sent": lambda p, n: p * VECTOR(p, n), "bytes_received": lambda p, n: p * VECTOR(p, n)},
    ),
    "Reduce_scatter": (
        lambda p, n: A * np.log2(p) + (B + C) * VECTOR(p, n) * (p - 1) / p,
        {"bytes_sent": VECTOR, "bytes_received": VECTOR},
    ),
    "Scan": (
        lambda p, n: np.log2(p) * (A + (B + C) * VECTOR(p, n)),
        {"bytes_sent": lambda p, n: (p + 1) / 2 * VECTOR(p, n)},
    ),
    "Exscan": (
        lambda p, n: np.log2(p) * (A + (B + C) * VECTOR(p, n)),
        {"bytes_sent": lambda p, n: (p - 1) / 2 * VECTOR(p, n)},
    ),
}


@pytest.mark.parametrize("operation", TABLE)
def test_table_1_is_found_again_with_its_coefficients(operation: str) -> None:
    seconds, counts = TABLE[operation]
    path = f"main->MPI_{operation}"
    items = [exact(path, metric, form) for metric, form in counts.items()]
    known = together(slowed(path, seconds, 0.0), exact(path, "visits", lambda p, n: 1), *items)
    fitted = model(known, path, posterior="prior")
    assert far(fitted) == pytest.approx(seconds(256, 100), rel=1e-3)
    latency = [t["coefficient"] for t in terms(fitted) if not any(f["exponent"] for f in t["factors"])]
    assert sum(map(float, map(str, latency))) == pytest.approx(A, rel=0.02)
    assert growth(terms_of(fitted), "n") == (2.0, 0.0)


@pytest.mark.parametrize("operation", ["MPI_Alltoall", "MPI_Ialltoallv", "MPI_Alltoallw"])
def test_every_partner_of_an_alltoall_has_its_latency(operation: str) -> None:
    def seconds(p: float, n: float) -> float:
        return A * (p - 1) + B * VECTOR(p, n) * (p - 1) / p

    path = f"main->{operation}"
    items = [exact(path, metric, VECTOR) for metric in ("bytes_sent", "bytes_received")]
    known = together(slowed(path, seconds, 0.0), exact(path, "visits", lambda p, n: 1), *items)
    fitted = model(known, path, posterior="prior")
    assert far(fitted) == pytest.approx(seconds(256, 100), rel=1e-3)
    assert growth(terms_of(fitted), "p")[0] == 1.0
    [slope] = [
        t["coefficient"]
        for t in terms(fitted)
        if [(f["parameter"], f["exponent"]) for f in t["factors"]] == [("p", 1.0)]
    ]
    assert float(str(slope)) == pytest.approx(A, rel=0.02)


def test_latency_is_paid_for_every_call() -> None:
    path = "main->MPI_Barrier"
    times = slowed(path, lambda p, n: 1e-5 * n * np.log2(p), 0.3)
    fitted = model(together(times, exact(path, "visits", lambda p, n: n)), path, posterior="prior")
    assert terms_of(fitted) == terms_of(pmnf.modeler()(together(times))[0])  # barriers alone are no effort


def test_calls_multiply_the_latency_where_bytes_are_counted() -> None:
    path = "main->MPI_Bcast"
    items = [
        exact(path, "bytes_received", lambda p, n: 8 * n),
        exact(path, "visits", lambda p, n: n),
    ]
    fitted = model(
        together(slowed(path, lambda p, n: 1e-5 * n * np.log2(p), 0.3), *items), path, posterior="prior"
    )
    assert (1.0, 1.0) in [
        (f["n"], f["p"])
        for t in terms(fitted)
        for f in [{g["parameter"]: g["exponent"] or g["log_exponent"] for g in t["factors"]}]
        if {"n", "p"} <= f.keys()
    ]


def test_a_communicator_of_constant_size_does_not_grow_with_the_ranks() -> None:
    path = "main->MPI_Bcast"
    items = [
        exact(path, "bytes_received", lambda p, n: 8 * n),
        exact(path, "communicator_size", lambda p, n: 4),
    ]
    fitted = model(together(slowed(path, lambda p, n: 1e-5 + 1e-9 * n, 0.3), *items), path, posterior="prior")
    assert growth(terms_of(fitted), "p") == (0.0, 0.0)


def test_communication_without_a_time_of_its_own_belongs_to_its_caller() -> None:
    truth: FORM = lambda p, n: 1e-6 * n**2 + 1e-4 * np.log2(p) + 1e-8 * n * p  # noqa: E731
    known = together(
        slowed("main->f", truth, 0.2),
        exact("main->f", "basic_blocks", lambda p, n: 5 * n**2),
        exact("main->f->inner->MPI_Bcast", "bytes_received", lambda p, n: 8 * n * p),
    )
    fitted = model(known, posterior="prior")
    assert far(fitted) == pytest.approx(1.1 * truth(256, 100), rel=0.1)
    assert growth(terms_of(fitted), "n") == (2.0, 0.0)
    assert growth(terms_of(fitted), "p") == (1.0, 0.0)


def test_inclusive_profiles_use_the_operations_below() -> None:
    truth: FORM = lambda p, n: 1e-6 * n**2 + 1e-4 * np.log2(p) + 1e-8 * n * p  # noqa: E731
    below = "main->f->MPI_Bcast"
    known = together(
        slowed("main->f", truth, 0.0),
        slowed(below, lambda p, n: 1e-4 * np.log2(p) + 1e-8 * n * p, 0.0),
        exact("main->f", "basic_blocks", lambda p, n: 5 * n**2),
        exact("main->f", "bytes_received", lambda p, n: 8 * n * p),
        exact(below, "bytes_received", lambda p, n: 8 * n * p),
    )
    assert far(model(known, posterior="prior")) == pytest.approx(truth(256, 100), rel=1e-3)


def test_counts_that_differ_between_runs_are_not_used() -> None:
    times = slowed("main->f", lambda p, n: 1e-6 * n, 0.02, repetitions=3)
    rng = np.random.default_rng(1)
    polling = {q: (float(rng.integers(100, 200)), float(rng.integers(1000, 2000))) for q in POINTS}
    known = together(times, Measurement("main->f", "basic_blocks", polling))
    fitted = model(known)
    assert any("between effort runs" in note for note in fitted.notes)
    assert terms_of(fitted) == terms_of(pmnf.modeler()(together(times))[0])


@pytest.mark.parametrize(("varies", "polls"), [(True, True), (False, False)])
def test_an_operation_polls_where_its_calls_are_not_reproducible(varies: bool, polls: bool) -> None:
    path = "main->MPI_Testany"
    visits = dict.fromkeys(POINTS, (100.0, 170.0 if varies else 100.0))
    known = together(
        slowed(path, lambda p, n: 1e-6 * n, 0.02),
        exact(path, "bytes_received", lambda p, n: 8 * n),
        Measurement(path, "visits", visits),
    )
    assert any("polls" in note for note in model(known, path).notes) == polls


def test_without_repeated_effort_the_name_of_a_polling_operation_decides() -> None:
    path = "main->sweep->MPI_Testany"
    known = together(
        slowed(path, lambda p, n: 1e-6 * n, 0.02),
        exact(path, "bytes_received", lambda p, n: 8 * n, runs=1),
        exact(path, "visits", lambda p, n: 100, runs=1),
    )
    assert any("polls" in note for note in model(known, path).notes)


def test_good_times_overrule_a_wrong_prior_and_the_gap_is_called_waiting_time() -> None:
    truth: FORM = lambda p, n: 1e-6 * n * p  # noqa: E731
    known = together(
        slowed("main->f", truth, 0.02, repetitions=3), exact("main->f", "basic_blocks", lambda p, n: 5 * n)
    )
    fitted = model(known)
    assert growth(terms_of(fitted), "p")[0] == pytest.approx(1.0, abs=0.2)
    assert far(fitted) == pytest.approx(truth(256, 100), rel=0.1)
    assert any("disagree in p (time p, effort constant)" in n and "waiting time" in n for n in fitted.notes)


@pytest.mark.slow
def test_noisy_times_do_not_overrule_a_prior() -> None:
    truth: FORM = lambda p, n: 1e-6 * n**2  # noqa: E731
    for seed in range(10):
        known = together(
            slowed("main->f", truth, 0.75, seed), exact("main->f", "basic_blocks", lambda p, n: 5 * n**2)
        )
        fitted = model(known)
        assert fitted.posterior.weights[0] > 0.5
        assert growth(terms_of(fitted), "n") == (2.0, 0.0) and growth(terms_of(fitted), "p") == (0.0, 0.0)


def half_disturbed(growth: float, seed: int) -> PmnfModel:
    """A prior where half of the runs are disturbed; large problems grow more, as beyond a cache."""
    truth: FORM = lambda p, n: 1e-5 * n**2 * (1 + growth * max(0.0, np.log2(n / 30)))  # noqa: E731
    rng = np.random.default_rng(seed)
    off = {q: (1 + rng.uniform(0.2, 1) * (rng.random() < 0.5)) * rng.normal(1, 0.005) for q in POINTS}
    values = {q: (truth(q.number("p"), q.number("n")) * off[q],) for q in POINTS}
    counts = exact("main->f", "basic_blocks", lambda p, n: 5 * n**2)
    return model(together(Measurement("main->f", "time", values), counts), posterior="prior")


@pytest.mark.parametrize("growth", [0.0, 0.3])
def test_where_all_of_the_longest_runs_are_slow_longer_ones_may_be(growth: float) -> None:
    far = 1e-5 * 100**2 * (1 + growth * np.log2(100 / 30))
    for seed in range(1, 4):
        prediction = half_disturbed(growth, seed).predict([FAR])
        assert prediction.low[0] < far < prediction.high[0]
        assert (prediction.high[0] / prediction.low[0] < 1.1) == (growth == 0)


def test_runs_between_tell_how_much_longer_ones_take_beyond_counts() -> None:
    fitted = half_disturbed(0.3, 1)
    points = [Point.of(p=4, n=10), Point.of(p=4, n=60), FAR]
    belief, prediction = fitted.belief(points), fitted.predict([FAR])
    half = np.log(prediction.high[0] / prediction.low[0]) / 2
    assert half == pytest.approx(1.645 * np.sqrt(belief.variance[2]), rel=0.1)
    known = belief.covariance(2) ** 2 / belief.variance / belief.variance[2]  # share of the variance
    assert known[0] < 0.5 and known[1] > 0.9


def test_the_posterior_holds_both_and_is_sorted() -> None:
    times = slowed("main->f", lambda p, n: 1e-6 * n**2, 0.3)
    alone = pmnf.modeler()(together(times))[0]
    assert isinstance(alone, PmnfModel)
    fitted = model(together(times, exact("main->f", "basic_blocks", lambda p, n: 5 * n**2)))
    weights = fitted.posterior.weights
    assert len(weights) == len(alone.posterior.weights) + 1
    assert weights.sum() == pytest.approx(1.0) and np.all(np.diff(weights) <= 0)
    prediction = fitted.predict([*POINTS, FAR])
    assert np.all(prediction.low <= prediction.value) and np.all(prediction.value <= prediction.high)


def test_the_expression_is_the_best_hypothesis_though_another_stands_for_many() -> None:
    """With two members, the second stands for all others of a broad posterior, and weighs more."""
    times = slowed("main->f", lambda p, n: 1e-6 * n**2, 0.3)
    alone = pmnf.modeler(members=2)(together(times))[0]
    assert isinstance(alone, PmnfModel)
    assert alone.posterior.weights[1] > 2 * alone.posterior.weights[0]
    wrong = exact("main->f", "basic_blocks", lambda p, n: 5 * p**3)
    fitted = model(together(times, wrong), trust=1e-6, members=2)
    assert far(fitted) == pytest.approx(float(alone.predict([FAR]).value[0]))


def test_effort_knows_how_a_parameter_acts_that_times_do_not_vary() -> None:
    few = {q: v for q, v in slowed("main->f", lambda p, n: 1e-6 * n**2, 0.1).values.items() if q["n"] == 20}
    known = together(
        Measurement("main->f", "time", few), exact("main->f", "basic_blocks", lambda p, n: 5 * n**2)
    )
    assert far(model(known, posterior="prior")) == pytest.approx(1e-2, rel=0.15)


def test_priors_hold_per_category() -> None:
    times, counts = {}, {}
    for solver, power in (("cg", 1), ("lu", 3)):
        for n in (10, 20, 40, 80, 160):
            point = Point.of(solver=solver, n=n)
            times[point] = (1e-6 * n**power * (1.5 if n == 40 else 1.0),)
            counts[point] = (7.0 * n**power,) * 2
    known = Measurements(
        ("solver", "n"),
        (Measurement("main", "time", times), Measurement("main", "basic_blocks", counts)),
    )
    found = {m.category[0][1]: m for m in swc.modeler()(known) if m.metric == "time"}
    assert growth(terms_of(found["cg"]), "n") == (1.0, 0.0)
    assert growth(terms_of(found["lu"]), "n") == (3.0, 0.0)


def test_counts_of_zero_and_times_without_counts_leave_the_times_alone() -> None:
    times = slowed("main->f", lambda p, n: 1e-6 * n, 0.02)
    other = slowed("main->g", lambda p, n: 1e-6 * n, 0.02)
    known = together(times, other, exact("main->f", "basic_blocks", lambda p, n: 0))
    assert terms_of(model(known)) == terms_of(pmnf.modeler()(together(times, other))[0])
    assert any("no effort was counted" in note for note in model(known, "main->g").notes)


def test_effort_without_a_time_is_reported_with_its_share() -> None:
    known = together(
        slowed("main->f", lambda p, n: 1e-6 * n, 0.02),
        exact("main->f->inlined", "basic_blocks", lambda p, n: 3 * n),
        exact("main->g", "basic_blocks", lambda p, n: n),
    )
    found = {m.callpath: m.notes for m in swc.modeler()(known)}
    assert any("25 % of all basic blocks" in note for note in found["main->g"])
    assert not any("basic blocks" in note for note in found["main->f->inlined"])


def test_unusable_times_do_not_cost_the_models_of_effort() -> None:
    broken = Measurement("main->f", "time", {q: (float("nan"),) for q in POINTS})
    (only,) = swc.modeler()(together(broken, exact("main->f", "basic_blocks", lambda p, n: n)))
    assert only.metric == "basic_blocks" and growth(terms_of(only), "n") == (1.0, 0.0)


def test_rounded_counts_do_not_bend_the_prior() -> None:
    """Runs that agree exactly still have the rounding of loop bounds."""
    path = "main->MPI_Gather"
    calls: FORM = lambda p, n: round(215 * n ** (2 / 3))  # noqa: E731
    known = together(
        slowed(path, lambda p, n: 1e-5 * n ** (2 / 3) * np.log2(p), 0.3),
        exact(path, "visits", calls),
        exact(path, "bytes_sent", lambda p, n: calls(p, n) * 4096 / p),
    )
    found = [
        (factor["exponent"], factor["log_exponent"])
        for term in terms(model(known, path, posterior="prior"))
        for factor in term["factors"]
        if factor["parameter"] == "n"
    ]
    assert set(found) == {(2 / 3, 0.0)}


def test_log_of_one_rank_is_no_obstacle() -> None:
    points = {Point.of(p=p): (1e-5 * np.log2(p) + 1e-6,) for p in (1, 2, 4, 8, 16)}
    volume = dict.fromkeys(points, (8.0, 8.0))
    known = Measurements(
        ("p",),
        (Measurement("MPI_Bcast", "time", points), Measurement("MPI_Bcast", "bytes_received", volume)),
    )
    fitted = next(m for m in swc.modeler(posterior="prior")(known) if m.metric == "time")
    assert fitted.predict([Point.of(p=64)]).value[0] == pytest.approx(6.1e-5, rel=0.01)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"posterior": "both"}, "posterior"),
        ({"trust": 1.0}, "trust"),
        ({"tolerance": -0.1}, "tolerance"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], word: str) -> None:
    with pytest.raises(ModelError, match=word):
        swc.modeler(**options)
