from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pytest

from orchestrator.models.base import Floats, Model
from orchestrator.models.intervals import predictive
from orchestrator.models.regression import choice, cross_validation, first
from orchestrator.models.regression.choice import Choice, Family, choose
from orchestrator.models.regression.errors import Growth
from orchestrator.models.regression.learner import Fitted, Learner
from orchestrator.models.regression.model import Continuation, Extrapolation, RegressionModel
from orchestrator.models.regression.modeler import modeler_of
from orchestrator.models.regression.samples import Axis, Samples
from orchestrator.models.regression.trend import fit_trend
from orchestrator.types import Measurement, Measurements, Point, Value
from tests.models.regression.neighbours import modeler


def drawn(n: int, seed: int, noise: float = 0.05) -> dict[Point, tuple[float, ...]]:
    """A power law with a wave, another level per solver."""
    rng = np.random.default_rng(seed)
    found: dict[Point, tuple[float, ...]] = {}
    for _ in range(n):
        p, size, solver = 2 ** rng.uniform(0, 10), 10 ** rng.uniform(1, 4), ("cg", "lu")[rng.integers(2)]
        truth = size / p**0.7 * (3 if solver == "lu" else 1) * np.exp(0.5 * np.sin(np.log(size)))
        found[Point.of(p=p, size=size, solver=solver)] = (float(truth * np.exp(rng.normal(0, noise))),)
    return found


def power_law(n: int, rng: np.random.Generator) -> dict[Point, tuple[float, ...]]:
    """Single runs with 1 % noise."""
    p, size = rng.uniform(1, 1000, n), rng.uniform(10, 10000, n)
    values = size / p**0.7 * rng.lognormal(0, 0.01, n)
    points = [Point.of(p=float(a), size=float(b), solver="cg") for a, b in zip(p, size, strict=True)]
    return {point: (float(value),) for point, value in zip(points, values, strict=True)}


def measurements(values: dict[Point, tuple[float, ...]]) -> Measurements:
    return Measurements(("p", "size", "solver"), (Measurement("main", "time", values),))


def fitted(values: dict[Point, tuple[float, ...]], combine: bool = True) -> RegressionModel:
    [model] = modeler(combine=combine)(measurements(values))
    assert isinstance(model, RegressionModel)
    return model


def on_line(number: int) -> Samples:
    """Samples of one parameter from 0 to 1, twice which is the logarithm of the time."""
    x = np.linspace(0, 1, number)[:, None]
    return Samples(axes=(Axis(name="x"),), x=x, y=2 * x[:, 0], runs=np.ones(number))


@pytest.fixture
def choices(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of samples of the choices among learners that are made, one after the other."""
    made: list[int] = []

    def counted(samples: Samples, family: Family, rng: np.random.Generator) -> Choice:
        made.append(len(samples))
        return choose(samples, family, rng)

    monkeypatch.setattr("orchestrator.models.regression.modeler.choose", counted)
    return made


def errors(model: Model, held: dict[Point, tuple[float, ...]]) -> Floats:
    found: Floats = np.abs(np.log(model.value(list(held)) / np.array([v[0] for v in held.values()])))
    return found


def test_the_best_by_left_out_samples_is_taken_and_the_comparison_is_kept() -> None:
    model = fitted(drawn(400, 1), combine=False)
    compared = model.document()["compared"]
    assert [item["weight"] for item in compared] == [1.0] + [0.0] * (len(compared) - 1)
    found = [item["mlogq"] for item in compared]
    assert found == sorted(found) and found[0] < 0.2
    assert compared[0]["name"].endswith("on the trend") and model.expression.endswith(
        "on the log-linear trend"
    )
    assert errors(model, drawn(300, 2)).mean() < 1.2 * found[0]


def test_errors_of_one_part_are_made_comparable() -> None:
    residuals = np.array([[0.1, 0.1, 0.3, 0.3], [0.16, 0.16, np.nan, np.nan], [np.nan] * 4])
    found = cross_validation._comparable(residuals, np.array([True, False, False]), 2)
    assert found == pytest.approx([0.2, 0.32, np.inf])


def test_a_combination_is_not_worse_than_its_best_member() -> None:
    held = drawn(500, 9)
    alone, together = (
        np.mean([errors(fitted(drawn(300, seed), combine), held).mean() for seed in range(4)])
        for combine in (False, True)
    )
    assert together < 1.02 * alone


@pytest.mark.parametrize("noise", [0.02, 0.3])
def test_intervals_hold_what_was_not_fitted(noise: float) -> None:
    inside = []
    for seed in range(6):
        held = drawn(400, 100 + seed, noise)
        low, high = predictive(fitted(drawn(250, seed, noise)), list(held)).of_measured(90)
        measured = np.array([v[0] for v in held.values()])
        inside.append(np.mean((low <= measured) & (measured <= high)))
    assert 0.84 < np.mean(inside) < 0.97


def test_what_single_runs_leave_over_counts_as_errors_of_the_model() -> None:
    inside = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        known, held = power_law(150, rng), power_law(400, rng)
        found = fitted(known).predict(list(held))
        measured = np.array([v[0] for v in held.values()])
        inside.append(np.mean((found.low <= measured) & (measured <= found.high)))
    assert 0.84 < np.mean(inside) < 0.97


def test_two_points_that_were_repeated_by_chance_do_not_make_all_intervals_wide() -> None:
    values, held = drawn(250, 3, noise=0.02), drawn(400, 4, noise=0.02)
    for point in list(values)[:2]:
        values[point] = (values[point][0], values[point][0] * 1.4)
    low, high = predictive(fitted(values), list(held)).of_measured(90)
    alone = predictive(fitted(drawn(250, 3, noise=0.02)), list(held)).of_measured(90)
    assert np.median(np.log(high / low)) < 1.3 * np.median(np.log(alone[1] / alone[0]))


def test_intervals_grow_beyond_the_range_and_hold_there() -> None:
    model = fitted(drawn(300, 3))
    points = [Point.of(p=2.0**k, size=100.0, solver="cg") for k in (8, 10, 12, 14, 16)]
    prediction = model.predict(points)
    widths = np.log(prediction.high / prediction.low)
    assert np.all(np.diff(widths[1:]) > 0)
    truth = [100.0 / 2.0 ** (0.7 * k) * np.exp(0.5 * np.sin(np.log(100))) for k in (8, 10, 12, 14, 16)]
    assert np.all((prediction.low < truth) & (truth < prediction.high))


def test_the_prediction_is_continuous_where_it_is_anchored() -> None:
    model = fitted(drawn(300, 3))
    for axis, found in model.outside.items():
        if not all(member.anchored for member in chain.from_iterable(found.opinions)):
            continue
        end, name = np.exp(model.axes[axis].high), model.axes[axis].name
        point: dict[str, Value] = {"p": 20.0, "size": 500.0, "solver": "cg"}
        near, far = (
            model.value([Point.of({**point, name: end * factor})]) for factor in (1 - 1e-9, 1 + 1e-9)
        )
        assert near == pytest.approx(far, rel=1e-3)
    opinions = chain.from_iterable(found.opinions for found in model.outside.values())
    assert any(member.anchored for member in chain.from_iterable(opinions))


@dataclass(frozen=True)
class Line:
    """A slope of 2 with an error, and a wrong slope beyond 1."""

    error: float
    wrong: float

    @property
    def text(self) -> str:
        return f"line {self.error}"

    def at(self, x: Floats) -> Floats:
        return 2 * x[:, 0] + self.error + self.wrong * np.maximum(x[:, 0] - 1, 0)


def line(error: float, wrong: float = 0.0) -> Learner:
    return Learner(family="lines", name=f"line {error}", fit=lambda samples, rng: Line(error, wrong))


def test_what_predicts_the_left_out_end_best_and_goes_astray_beyond_does_not_decide() -> None:
    samples = on_line(40)
    lines = (line(0.01, wrong=5.0), line(-0.011), line(0.012), line(0.5))
    family = Family(inside=lambda samples: lines, outside=lambda samples: (), fallback=line(0.6))
    found = choose(samples, family, np.random.default_rng(0)).outside[0]
    (opinion,) = found.opinions
    assert opinion.learners[0][0].name == "line 0.01"
    fits = [
        Continuation(each.fitted(samples, np.random.default_rng(0)), anchored)
        for each, anchored in opinion.learners
    ]
    beyond, edge = np.array([[3.0]]), np.array([2.01])
    known = Extrapolation(opinions=(tuple(fits),), weights=(1.0,), share=1.0, growth=found.growth)
    value = known.at(beyond, np.array([[1.0]]), edge)
    assert value == pytest.approx(6.0, abs=0.05)


def test_families_that_are_as_good_as_equal_at_the_left_out_end_share_the_prediction() -> None:
    samples = on_line(400)

    def noisy(family: str, seed: int, size: float) -> Learner:
        def fit(samples: Samples, rng: np.random.Generator) -> Fitted:
            return Noisy(seed, size)

        return Learner(family=family, name=family, fit=fit)

    rivals = (noisy("one", 1, 0.1), noisy("other", 2, 0.1), noisy("poor", 3, 0.4))
    family = Family(inside=lambda samples: rivals, outside=lambda samples: (), fallback=noisy("last", 4, 1.0))
    found = choose(samples, family, np.random.default_rng(0)).outside[0]
    weights = {opinion.learners[0][0].family: opinion.weight for opinion in found.opinions}
    assert set(weights) == {"one", "other"}
    assert sum(weights.values()) == pytest.approx(1)
    assert min(weights.values()) > 0.1


def test_of_many_samples_every_part_chooses_what_predicts_beyond() -> None:
    samples = on_line(4000)

    def lucky(family: str) -> Learner:
        """Return a learner that is as good as the samples of its fit make it, by chance."""
        return Learner(family=family, name=family, fit=lambda samples, rng: Line(float(rng.normal()), 0.0))

    rivals = lucky("one"), lucky("other")
    family = Family(inside=lambda samples: rivals, outside=lambda samples: (), fallback=line(9.0))
    found = choose(samples, family, np.random.default_rng(0)).outside[0]
    weights = sorted(opinion.weight for opinion in found.opinions)
    assert weights == pytest.approx([1 / 3, 2 / 3])


@pytest.mark.parametrize(
    "number, sizes", [(5, [5]), (1024, [1024]), (2000, [1024]), (2048, [1024] * 2), (9000, [1024] * 3)]
)
def test_many_samples_are_looked_at_in_parts_without_a_common_one(number: int, sizes: list[int]) -> None:
    x = np.arange(float(number))[:, None]
    samples = Samples(axes=(Axis(name="x"),), x=x, y=x[:, 0], runs=np.ones(number))
    found = cross_validation.parts(samples, np.random.default_rng(0))
    assert [len(part) for part in found] == sizes
    rows = np.concatenate([part.x[:, 0] for part in found])
    assert len(set(rows)) == len(rows) and all(np.all(np.diff(part.y) > 0) for part in found)


@dataclass(frozen=True)
class Noisy:
    """The truth with errors of its own at every point."""

    seed: int
    size: float

    @property
    def text(self) -> str:
        return f"noisy {self.seed}"

    def at(self, x: Floats) -> Floats:
        rng = np.random.default_rng(self.seed)
        errors = self.size * rng.choice([-1.0, 1.0], 1000)
        return np.asarray(2 * x[:, 0] + errors[np.int64(np.round(900 * np.abs(x[:, 0])))], np.float64)


def test_a_choice_is_made_with_a_step_of_a_series_and_with_tens_of_thousands_at_most() -> None:
    numbers = [first.counted(n) for n in range(1, 40_000)]
    assert numbers[:63] == list(range(1, 64))
    assert all(found <= n for n, found in enumerate(numbers, 1))
    steps = np.unique(numbers[99:])
    assert np.all(steps[1:] / steps[:-1] < 1.26)
    assert first.counted(32_768) == first.counted(100_000) == steps[-1] > 26_000


def test_the_probability_to_be_the_best_needs_evidence() -> None:
    rng = np.random.default_rng(3)
    errors = np.array([[1.0, 3.0], [3.2, 1.0]])
    assert choice._probably_best(np.tile(errors, 20), rng)[1] == 0, "few rows: the best"
    some = choice._probably_best(np.tile(errors, 50), rng)
    many = choice._probably_best(np.tile(errors, 5000), rng)
    assert 0.1 < some[1] < some[0]
    assert many.tolist() == [1, 0]
    equal = choice._probably_best(np.abs(rng.normal(0, 1, (20, 500))), rng)
    assert equal.sum() == pytest.approx(1)


def test_many_learners_of_one_family_do_not_outvote_the_best_of_another() -> None:
    agreeing = [Learner(family="many", name=f"{k}", fit=_not_fitted) for k in range(4)]
    others = [Learner(family="few", name=f"few {k}", fit=_not_fitted) for k in range(2)]
    left_out = np.array([[0.12, 0.12]] * 4 + [[0.1, -0.1], [9.0, 9.0]])
    residuals = np.concatenate([left_out, left_out + 1])  # shifted to meet another learner: worse
    errors = np.abs(residuals).mean(axis=1)
    errors[-1] = np.inf
    seen = cross_validation.Beyond(
        axis=0, distances=np.ones(2), residuals=residuals, errors=errors, changes=np.zeros(2)
    )
    found = choice._best_of_families([*agreeing, *others], seen)
    assert [places.tolist() for places in found] == [[0, 1, 2], [4]]
    middles = np.array([cross_validation.middle(residuals[places]) for places in found])
    assert choice._probably_best(np.abs(middles), np.random.default_rng(0)).tolist() == [0, 1]
    seen = replace(seen, errors=np.where(np.arange(12) % 6 < 4, errors, np.inf))
    (places,) = choice._best_of_families([*agreeing, *others], seen)
    assert places.tolist() == [0, 1, 2]


def test_a_change_beyond_the_range_is_believed_as_far_as_the_left_out_end_was_predicted() -> None:
    changes = np.array([0.3, -0.2, 0.4, 0.3])
    assert choice._share_of_change(0.1 * changes, changes) > 0.999
    assert choice._share_of_change(0.9 * changes, changes) == pytest.approx(1 / (1 + 0.9**choice._TRUST))
    assert choice._share_of_change(changes, changes) == 0.5
    assert choice._share_of_change(3 * changes, changes) == 0.5, "a change that was wrong there counts half"
    assert choice._share_of_change(0 * changes, changes) == 1
    assert choice._share_of_change(0 * changes, 0 * changes) == 1
    assert choice._share_of_change(changes, 0 * changes) == 0.5


@pytest.mark.parametrize("doubts", [False, True])
def test_errors_beyond_are_known_where_nothing_could_be_fitted_within(doubts: bool) -> None:
    family = Family(inside=lambda samples: (), outside=lambda samples: (), doubts=doubts)
    plain, shifted = np.array([0.1, -0.2, 0.1, 0.2]), np.full(4, np.nan)
    seen = cross_validation.Beyond(
        axis=0,
        distances=np.ones(4),
        residuals=np.array([plain, shifted]),
        errors=np.array([0.15, np.inf]),
        changes=shifted,
    )
    found = choice._weighed([family.fallback], [seen], family, 0.01, np.random.default_rng(0))
    assert found.share == 1
    assert found.growth == Growth.of(np.ones(4), plain, 0.01).times(family.caution)


def _saturating(edge: float, rng: np.random.Generator) -> Measurements:
    """Times that fall with p up to an edge, but rise with size everywhere; 100 points up to p = 128."""
    p, size = 2 ** rng.uniform(0, 7, 100), 2 ** rng.uniform(4, 10, 100)
    values = size / np.minimum(p, edge) * rng.lognormal(0, 0.05, 100)
    points = [Point.of(p=float(a), size=float(b)) for a, b in zip(p, size, strict=True)]
    times = {point: (float(value),) for point, value in zip(points, values, strict=True)}
    return Measurements(("p", "size"), (Measurement("main", "time", times),))


def test_what_ends_to_fall_within_the_range_is_not_continued_and_what_grows_is() -> None:
    for edge, believed in ((1024.0, 1.0), (16.0, 0.5)):
        [model] = modeler(doubts=True)(_saturating(edge, np.random.default_rng(1)))
        assert isinstance(model, RegressionModel)
        assert [item.share for item in model.outside.values()] == pytest.approx([believed, 1.0], abs=0.02)
        said = any("beyond the measured range count 50 % along p: " in note for note in model.notes)
        assert said == (believed < 1)
        whole = replace(model, outside={k: replace(item, share=1.0) for k, item in model.outside.items()})
        points = [Point.of(p=float(np.exp(model.axes[0].high)), size=256.0), Point.of(p=1024.0, size=256.0)]
        change, predicted = (np.diff(np.log(each.value(points)))[0] for each in (model, whole))
        assert change == pytest.approx(model.outside[0].share * predicted)
        assert predicted < -0.5
        [law] = modeler()(_saturating(edge, np.random.default_rng(1)))
        assert np.diff(np.log(law.value(points)))[0] == pytest.approx(predicted), "goes on as it says"


def _not_fitted(samples: Samples, rng: np.random.Generator) -> Fitted:
    raise AssertionError("only what was seen of it counts")


def test_an_unknown_category_has_no_prediction() -> None:
    model = fitted(drawn(100, 4))
    points = [Point.of(p=4.0, size=50.0, solver="qr"), Point.of(p=4.0, size=50.0, solver="lu")]
    prediction = model.predict(points)
    assert np.isnan([prediction.value[0], prediction.low[0], prediction.high[0]]).all()
    assert np.isfinite(prediction.value[1])


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_few_samples_are_enough_for_an_answer_with_a_wide_interval(n: int) -> None:
    model = fitted(drawn(n, 5))
    here = next(iter(drawn(n, 5)))
    prediction = model.predict([here])
    assert np.isfinite(prediction.value).all()
    assert (prediction.low < prediction.value).all() and (prediction.value < prediction.high).all()


def test_the_same_measurements_give_the_same_model() -> None:
    points = list(drawn(50, 7))
    one, other = (fitted(drawn(200, 6)).predict(points) for _ in range(2))
    assert np.array_equal(one.value, other.value) and np.array_equal(one.low, other.low)


def test_a_choice_is_the_same_remembered_or_made_again_after_a_restart() -> None:
    points = drawn(260, 5)
    held = list(drawn(20, 6))
    first = dict(list(points.items())[:255])  # a refit after few more samples does not choose again
    remembering = modeler()
    remembering(measurements(first))
    [one] = remembering(measurements(points))
    [other] = modeler()(measurements(points))
    assert np.array_equal(one.value(held), other.value(held))


def test_a_refit_after_few_more_samples_chooses_from_memory(choices: list[int]) -> None:
    remembering = modeler()
    points = drawn(400, 5)
    for n in (250, 260, 300, 304, 306):  # the series has 244 and 305
        remembering(measurements(dict(list(points.items())[:n])))
    assert choices == [244, 305]


@pytest.mark.parametrize("runs", [1, 2])
def test_repetitions_that_follow_make_no_choice_anew(choices: list[int], runs: int) -> None:
    """A campaign repeats points from round to round, and one of them in every round."""
    rng, remembering = np.random.default_rng(2), modeler()
    points = {p: tuple(v[0] * rng.uniform(0.95, 1.05, runs)) for p, v in drawn(120, 5).items()}
    some, held = dict(list(points.items())[:100]), list(drawn(20, 6))
    for repeated, known in enumerate((some, points, points)):
        values = dict(known)
        for point in list(known)[: 10 * repeated]:
            values[point] = (*values[point], 1.3 * values[point][0])
        [model] = remembering(measurements(values))
    assert choices == [100, 100], "ranges grew once"
    [again] = modeler()(measurements(values))
    assert np.array_equal(again.value(held), model.value(held)), "the same after a restart"


def test_beyond_the_range_at_most_so_many_samples_are_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def fit(samples: Samples, rng: np.random.Generator) -> Fitted:
        seen.append(len(samples))
        return fit_trend(samples)

    monkeypatch.setattr("orchestrator.models.regression.modeler._MOST_BEYOND", 50)
    one = Learner(family="counted", name="counted", fit=fit)
    family = Family(inside=lambda samples: (one,), outside=lambda samples: (one,), fallback=one)
    modeler_of(family)(measurements(drawn(200, 1)))
    assert seen[-2:] == [200, 50], "all of them within the range"
