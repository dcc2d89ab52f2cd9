from __future__ import annotations

import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

from orchestrator.errors import CampaignError, ExpressionError
from orchestrator.evaluation.strategies.functions import Function, draw, read
from orchestrator.evaluation.strategies.synthetic import SERIES
from orchestrator.models.pmnf.hypotheses import PAPER
from orchestrator.types import Point
from tests.requirements import measurement_data

PARAMETERS = [parameter for parameter, _ in SERIES]


def test_expressions_evaluate_as_python_does() -> None:
    function = Function("209.5+8.2*a**1.25*log2(a)**0*224.2*b**(1/3)*log2(b)**2")

    expected = 209.5 + 8.2 * 8**1.25 * 224.2 * 10 ** (1 / 3) * math.log2(10) ** 2
    assert function(Point.of(a=8, b=10)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("3+2*a**1.5*log2(a)**2", [{"a": (1.5, 2)}]),
        ("1+2*a**0.5*3*b**(1/3)*log2(b)", [{"a": (0.5, 0), "b": (1 / 3, 1)}]),
        ("1+2*a**0*log2(a)**1+4*b", [{"a": (0, 1)}, {"b": (1, 0)}]),
        ("5*a*a*log2(a)", [{"a": (2, 1)}]),
        ("7", []),
        ("sqrt(a)/b+3*(a+1)*b", [{"a": (0.5, 0), "b": (-1, 0)}, {"a": (1, 0), "b": (1, 0)}, {"b": (1, 0)}]),
    ],
)
def test_terms_of_the_normal_form(text: str, terms: list[dict[str, tuple[float, float]]]) -> None:
    assert Function(text).terms() == terms


@pytest.mark.parametrize("text", ["exp(a)", "1/(a+b)", "log2(a+b)", "2**a"])
def test_other_expressions_have_no_terms(text: str) -> None:
    with pytest.raises(CampaignError, match="so it has no exponents that a strategy"):
        Function(text).terms()


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_drawn_functions_are_in_the_normal_form_and_every_term_matters(count: int) -> None:
    parameters = PARAMETERS[:count]
    middle = Point.of({p.name: math.sqrt(float(p.values[0]) * float(p.values[-1])) for p in parameters})
    structures = set()
    for seed in range(50):
        function = draw(parameters, np.random.default_rng(seed))
        terms = function.terms()
        names = sorted(name for term in terms for name in term)
        assert names == [p.name for p in parameters]
        assert all(pair in PAPER for term in terms for pair in term.values())
        shares = [Function(part)(middle) / function(middle) for part in function.text.split("+")]
        assert sum(shares) == pytest.approx(1.0)
        assert min(shares) > 1 / (30 * (count + 1))
        assert 0.099 < function(middle) < 1001
        structures.add(len(terms))
    assert structures == set(range(1, count + 1))


def test_the_same_generator_draws_the_same_function() -> None:
    first, second = (draw(PARAMETERS[:2], np.random.default_rng(5)) for _ in range(2))

    assert first == second
    assert first != draw(PARAMETERS[:2], np.random.default_rng(6))


def test_files_are_json_or_one_expression_per_line(tmp_path: Path) -> None:
    as_json, as_text = tmp_path / "f.json", tmp_path / "f.txt"
    as_json.write_text(json.dumps({"functions": ["1+a", "2*b"]}))
    as_text.write_text("# two functions\n1+a\n\n2*b  # the second\n")

    assert read(as_json) == read(as_text) == [Function("1+a"), Function("2*b")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("f.json", "[", "a functions file is JSON with a list"),
        ("f.json", '{"other": []}', "a functions file is JSON with a list"),
        ("f.json", '{"functions": "1+a"}', "a functions file is JSON with a list"),
        ("f.json", '["1+a"]', "a functions file is JSON with a list"),
        (
            "f.json",
            '{"functions": ["1+a", "b +"]}',
            r"f\.json, function 2: expression 'b \+': invalid syntax",
        ),
        ("f.txt", "# nothing\n", "no functions in it"),
        ("f.txt", "1+a\n__import__('os')\n", r"f\.txt, line 2: .*__import__"),
        ("f.txt", "# two\n\n1+a\nb +\n", r"f\.txt, line 4: expression 'b \+': invalid syntax"),
        ("f.txt", "1+a\nq*2\n", r"f\.txt, line 2: .*unknown name 'q'; known: a, b"),
    ],
)
def test_unusable_files_are_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(CampaignError, match=message):
        read(path, ("a", "b"))


def test_a_file_that_cannot_be_read_is_refused_in_words(tmp_path: Path) -> None:
    missing = tmp_path / "none.json"
    with pytest.raises(CampaignError) as refusal:
        read(missing)
    assert str(refusal.value) == f"{missing}: No such file or directory"
    with pytest.raises(CampaignError) as refusal:
        read(tmp_path)
    assert str(refusal.value) == f"{tmp_path}: Is a directory"


@pytest.mark.parametrize("text", ["a-8", "0*a", "log2(a-8)"])
def test_what_is_no_time_names_its_line(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"^f\.txt, line 3: expression '"):
        Function(text, "f.txt, line 3")(Point.of(a=8))


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_functions_of_the_paper_are_understood(count: int) -> None:
    functions = read(measurement_data() / "paper-functions" / f"m{count}.json")
    beyond = Point.of({parameter.name: value for parameter, value in SERIES[:count]})

    assert len(functions) == 1000
    assert all(function(beyond) > 0 for function in functions)
    assert all(1 <= len(function.terms()) <= count for function in functions)


def test_a_function_that_was_evaluated_still_travels_to_worker_processes() -> None:
    function = Function("1 + a", "f.json, function 1")
    assert function(Point.of(a=2)) == 3.0
    assert pickle.loads(pickle.dumps(function)).source == function.source
