"""Drawn functions: within the range, within the sets, the same for the same seed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from orchestrator.errors import CampaignError
from orchestrator.generate.complexity import Communication, Computation, Element, model_terms, text
from orchestrator.generate.directory import series
from orchestrator.generate.population import DEFAULT, Range, Request, check, draw
from orchestrator.models.pmnf.hypotheses import PAPER

RANGE = Range({"p": 2, "n": 1000}, {"p": 32, "n": 5000})


def test_the_example_of_the_paper() -> None:
    """Section III-D: two nested loops over n and p, and a broadcast of n*p integers."""
    computation = Computation("nested", (Element("n", 1.0), Element("p", 1.0)))
    communication = Communication("bcast", (Element("n", 1.0), Element("p", 1.0)))
    assert text(computation.terms) == "n + n * p"
    assert text(communication.terms) == "log2(p) + n * p"


def test_sequential_loops_add() -> None:
    computation = Computation("sequential", (Element("n", 1.5), Element("p", log_exponent=2.0)))
    assert text(computation.terms) == "n**1.5 + log2(p)**2"


def test_calls_multiply_latency_and_bytes() -> None:
    communication = Communication("reduce", (Element("n", 1.0),), Element("p", 0.5))
    assert text(communication.terms) == "p**0.5 * log2(p) + n * p**0.5"
    assert text(Communication("send", (), Element("n", 1.0)).terms) == "n"
    assert text(Communication("barrier").terms) == "log2(p)"


def test_drawn_functions_stay_within_what_may_grow() -> None:
    rng = np.random.default_rng(0)
    for index in range(300):
        function = draw(index, RANGE, DEFAULT, rng)
        assert all(RANGE.growth(term) <= DEFAULT.most_work for term in function.computation.terms)
        assert RANGE.growth(function.communication.volume) <= DEFAULT.most_bytes


def test_drawn_computations_are_in_the_search_space_of_the_normal_form() -> None:
    rng = np.random.default_rng(1)
    seen = set()
    for index in range(300):
        computation = draw(index, RANGE, DEFAULT, rng).computation
        seen.add((computation.arrangement, len(computation.loops)))
        for term in model_terms(computation.terms):
            assert all((f["exponent"], f["log_exponent"]) in PAPER for f in term["factors"])
    assert seen == {("nested", 1), ("nested", 2), ("sequential", 1), ("sequential", 2)}


def test_a_seed_is_a_population() -> None:
    def population(seed: int) -> list[object]:
        rng = np.random.default_rng(seed)
        return [draw(index, RANGE, DEFAULT, rng) for index in range(20)]

    assert population(3) == population(3)
    assert population(3) != population(4)


def test_what_is_wished_is_not_drawn() -> None:
    request = Request(
        arrangement="nested",
        loops=(Element("n", 3.0), Element("p", 3.0)),
        operation="gather",
        message=(Element("n", 2.0),),
        calls=Element("p", 1.0),
    )
    function = draw(0, RANGE, request, np.random.default_rng(0))
    assert function.computation == Computation("nested", request.loops)
    assert function.communication == Communication("gather", (Element("n", 2.0),), Element("p", 1.0))


def test_impossible_wishes_are_refused() -> None:
    with pytest.raises(CampaignError, match="--most-work"):
        draw(0, RANGE, Request(exponents=(3.0,), logs=(), most_work=2.0), np.random.default_rng(0))
    with pytest.raises(CampaignError, match="--most-bytes"):
        draw(0, RANGE, Request(operation="bcast", message=(Element("n", 5.0),)), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("smallest", "largest", "word"),
    [
        ({"n": 10}, {"n": 20}, "the range has no p"),
        ({"p": 2}, {"p": 4, "n": 3}, "same parameters"),
        ({"p": 1}, {"p": 4}, "at least 2"),
        ({"p": float("nan")}, {"p": 4}, "at least 2"),
        ({"p": 8}, {"p": 4}, "below the smallest"),
    ],
)
def test_ranges_without_sense_are_refused(
    smallest: dict[str, float], largest: dict[str, float], word: str
) -> None:
    with pytest.raises(CampaignError, match=word):
        check(Range(smallest, largest))


def test_series_are_those_of_the_paper() -> None:
    found = series(Range({"p": 128, "n": 8000}, {"p": 2048, "n": 40000}))
    assert found["p"] == (128, 256, 512, 1024, 2048, 4096)
    assert found["n"] == (8000, 16000, 24000, 32000, 40000, 48000)
    assert all(a < b for values in series(RANGE).values() for a, b in pairwise(values))
