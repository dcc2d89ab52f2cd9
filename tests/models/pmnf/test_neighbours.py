"""What another campaign found is a prior on form and noise, which the measurements overrule."""

from __future__ import annotations

import json

import numpy as np
import pytest

from orchestrator.evaluation.strategies.functions import Function
from orchestrator.evaluation.strategies.synthetic import synthetic_bench
from orchestrator.models import formulas
from orchestrator.models.pmnf.hypotheses import PAPER, structures
from orchestrator.models.pmnf.model import PmnfModel
from orchestrator.models.pmnf.modeler import modeler, of_measurements
from orchestrator.models.pmnf.neighbours import Expected, Neighbour, Neighbours
from orchestrator.types import Measurements, Point

TRUTH = "3 + 0.001 * a**0.5 * log2(a) * b**1.5"
OLDER = "1 + 0.01 * a**0.5 * log2(a) * b**1.5"
OTHER = "1 + 0.1 * a**2 + 0.5 * log2(b)"


def measured(text: str, points: int, repetitions: int = 1, noise: float = 5.0, seed: int = 1) -> Measurements:
    bench = synthetic_bench(Function(text), 2, noise, np.random.default_rng(seed))
    chosen = list(bench.space.points)[:points]
    return bench.measured(dict.fromkeys(chosen, repetitions))


def learned(text: str) -> Neighbours:
    return of_measurements(measured(text, 25, 5, seed=2), "older")


def fitted(known: Measurements, neighbours: Neighbours) -> PmnfModel:
    model = modeler(neighbours=neighbours)(known)[0]
    assert isinstance(model, PmnfModel)
    return model


def factors(model: PmnfModel) -> list[list[tuple[str, float, float]]]:
    return [
        [(f["parameter"], f["exponent"], f["log_exponent"]) for f in term["factors"]] for term in model.terms
    ]


def test_few_noisy_points_have_the_form_of_the_older_campaign() -> None:
    known = measured(TRUTH, 8)
    true_form = [[], [("a", 0.5, 1.0), ("b", 1.5, 0.0)]]
    assert factors(fitted(known, Neighbours())) != true_form  # or the test would show nothing
    model = fitted(known, learned(OLDER))
    assert factors(model) == true_form
    assert any(note.startswith("structure as in older (weight") for note in model.notes)


def test_measurements_overrule_a_misleading_campaign() -> None:
    known = measured(TRUTH, 12, 2)
    alone, misled = fitted(known, Neighbours()), fitted(known, learned(OTHER))
    assert factors(misled) == factors(alone)
    assert any(note.startswith("structure unlike in older (weight 0.0") for note in misled.notes)


def test_formulas_that_fitted_elsewhere_are_not_given_up_for_curves() -> None:
    known, point = measured(TRUTH, 8), [Point.of(a=128, b=60)]
    truth = Function(TRUTH)(point[0])
    alone = formulas.modeler()(known)[0].predict(point)
    both = formulas.modeler(neighbours=learned(OLDER))(known)[0].predict(point)
    assert abs(np.log(both.value[0] / truth)) < 0.05
    assert both.high[0] / both.low[0] < alone.high[0] / alone.low[0]
    assert both.low[0] <= truth <= both.high[0]


def test_noise_is_no_guess_any_more() -> None:
    model = fitted(measured(TRUTH, 8), learned(OLDER))
    assert model.noise == pytest.approx(learned(OLDER).items[0].noise)
    assert not any("guess" in note for note in model.notes)


def test_noise_that_repetitions_show_counts_more() -> None:
    known = measured(TRUTH, 25, 5, noise=1.0)
    alone, informed = fitted(known, Neighbours()), fitted(known, learned(OLDER))
    assert informed.noise == pytest.approx(alone.noise, rel=0.4)


def test_a_campaign_without_neighbours_is_fitted_as_before() -> None:
    known = measured(TRUTH, 12, 2)
    other = Neighbours(tuple(_renamed(item) for item in learned(OLDER).items))
    assert fitted(known, other).expression == fitted(known, Neighbours()).expression
    assert fitted(known, other).notes == fitted(known, Neighbours()).notes


def _renamed(item: Neighbour) -> Neighbour:
    return Neighbour.read({**item.document(), "callpath": "another"}, item.source)


def test_the_copy_is_read_as_it_was_written() -> None:
    item = learned(OLDER).items[0]
    again = Neighbour.read(json.loads(json.dumps(item.document())), item.source)
    assert again.document() == item.document()
    points = [Point.of(a=8, b=20), Point.of(a=64, b=50)]
    assert again.seconds(points) == pytest.approx([Function(OLDER)(point) for point in points], rel=0.05)


def test_the_prior_of_all_forms_of_a_structure_is_as_large_as_before() -> None:
    """All products of two blocks, together, must not become more probable than the mixture permits."""
    blocks = np.array([(0.0, 0.0), *PAPER])
    expected = Expected.of(learned(OLDER).items, ("a", "b"), (blocks, blocks))
    assert expected is not None
    size = len(PAPER)
    products = np.array([[[i, j]] for i in range(1, size + 1) for j in range(1, size + 1)], dtype=np.int16)
    standard = np.full(len(products), -2 * np.log(size))
    mixed, share = expected.mixed(standard, products)
    assert 0.5 < np.exp(mixed).sum() <= 0.5 + 0.5 * structures(2) + 1e-9
    assert np.all((share >= 0) & (share <= 1))
    best = products[mixed.argmax()][0]
    assert [tuple(blocks[k]) for k in best] == [(0.5, 1.0), (1.5, 0.0)]


def test_a_form_with_its_terms_in_another_order_is_the_same() -> None:
    blocks = np.array([(0.0, 0.0), *PAPER])
    expected = Expected.of(learned(OTHER).items, ("a", "b"), (blocks, blocks))
    assert expected is not None
    form = expected.terms()[:1]
    assert expected.log_mass(form[:, ::-1])[0, 0] == pytest.approx(expected.log_mass(form)[0, 0])


def test_a_parameter_that_is_constant_here_is_left_out() -> None:
    blocks = np.array([(0.0, 0.0), *PAPER])
    expected = Expected.of(learned(OLDER).items, ("b",), (blocks,))
    assert expected is not None
    place = expected.terms()[expected.log_weights.argmax()]
    assert [tuple(blocks[k]) for k in place.ravel() if k] == [(1.5, 0.0)]


def test_nothing_is_known_of_a_parameter_that_the_other_campaign_lacks() -> None:
    blocks = np.array([(0.0, 0.0), *PAPER])
    assert Expected.of(learned(OLDER).items, ("a", "c"), (blocks, blocks)) is None


def test_prices_keep_the_ratios_of_the_other_campaign() -> None:
    costs = learned(OLDER).prices("elapsed", ("a", "b"), lambda point: point.number("a"))
    assert costs is not None
    points = [Point.of(a=4, b=10), Point.of(a=64, b=50)]
    truth = [point.number("a") * Function(OLDER)(point) for point in points]
    assert costs(points)[1] / costs(points)[0] == pytest.approx(truth[1] / truth[0], rel=0.05)
    assert learned(OLDER).prices("elapsed", ("a",), lambda point: 1.0) is None
