"""The search finds the functions that Extra-P 4.2.5 finds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.models.base import Floats
from orchestrator.models.extrap.search import Form, along, line, search, structures
from tests.models.extrap import reference
from tests.models.extrap.cases import COUNT, Case, cases

_ROUNDING = 1e-6  # of the largest value


@cache
def found() -> list[tuple[Case, Form]]:
    return [(case, _search(case)) for case in cases()]


def _search(case: Case) -> Form:
    return search(_points(case), np.array([np.mean(values) for values in case.values]))


def _points(case: Case) -> Floats:
    return np.array(case.points, dtype=float)


def _agrees(case: Case, form: Form, model: Mapping[str, Any]) -> bool:
    """Return whether a function has the same terms, each with the same part in the values."""
    terms = [tuple(sorted((axis, *form.blocks[axis]) for axis in term)) for term in form.terms]
    theirs = [tuple(sorted(map(tuple, factors))) for _, factors in model["terms"]]
    if sorted(terms) != sorted(theirs):
        return False
    columns = np.abs(form.design(_points(case))).max(axis=0)
    wanted = [model["constant"], *(model["terms"][theirs.index(term)][0] for term in terms)]
    apart = np.abs(form.coefficients - wanted) * columns
    return bool(np.all(apart <= _ROUNDING * np.max(case.values)))


def test_functions_are_those_of_extra_p() -> None:
    known = reference.known()
    assert len(known) == COUNT
    same = sum(_agrees(case, form, model) for (case, form), model in zip(found(), known, strict=True))
    assert same >= 0.99 * COUNT


def test_the_functions_that_are_kept_are_those_of_an_installed_extra_p() -> None:
    """Runs with ``EXTRAP_PYTHON``, the interpreter of an environment with Extra-P."""
    python = os.environ.get("EXTRAP_PYTHON")
    if not python:  # what is kept was made by it: the comparison itself needs no Extra-P
        pytest.skip("EXTRAP_PYTHON names no interpreter of an environment with extrap")
    chosen = list(zip(cases(), reference.known(), strict=True))[::3]
    version, models = reference.modelled(Path(python), [case for case, _ in chosen])
    assert version == reference.VERSION
    # Where two functions fit equally well, rounding decides, which differs with the processor.
    same = [_agrees(case, _search(case), model) for (case, _), model in zip(chosen, models, strict=True)]
    kept = [
        model["constant"] == pytest.approx(known["constant"], rel=1e-6)
        for (_, known), model in zip(chosen, models, strict=True)
    ]
    assert min(sum(same), sum(kept)) >= 0.95 * len(chosen)


def test_a_term_that_reaches_too_little_is_none() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert along(x, 1000 + 0.2 * x, 0).terms == ((0,),)
    assert along(x, 1000 + 0.02 * x, 0).terms == ()  # 0.1 of 1000 is less than 0.0005


def test_values_below_one_have_no_logarithms() -> None:
    x = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
    assert along(4 * x, 2 + np.log2(4 * x), 0).blocks == {0: (0.0, 1.0)}
    form = along(x, 2 + np.log2(4 * x), 0)
    assert all(logarithm == 0 for _, logarithm in form.blocks.values())


def test_a_line_is_the_mean_of_the_longest_ones() -> None:
    points = np.array([(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (4, 1), (4, 2)], dtype=float)
    y = np.arange(1.0, 10.0)
    values, means = line(points, y, 0)  # only the line of b = 1 has four points
    assert values.tolist() == [1, 2, 3, 4] and means.tolist() == [1, 4, 7, 8]
    values, means = line(points, y, 1)  # those of a = 1 and a = 2
    assert values.tolist() == [1, 2, 3] and means.tolist() == [2.5, 3.5, 4.5]


def test_lines_that_begin_elsewhere_do_not_count() -> None:
    points = np.array([(1, 1), (1, 2), (2, 1), (2, 2), (2, 9), (3, 2), (3, 9)], dtype=float)
    values, means = line(points, np.array([1.0, 2, 3, 4, 5, 6, 7]), 0)
    assert values.tolist() == [1, 2, 3] and means.tolist() == [2, 4, 6]


@pytest.mark.parametrize(("parameters", "number"), [(1, 2), (2, 4), (3, 23), (4, 2)])
def test_sums_and_products_are_those_of_extra_p(parameters: int, number: int) -> None:
    every = list(structures(range(parameters)))
    assert len(every) == number and every[0] == (tuple(range(parameters)),)
