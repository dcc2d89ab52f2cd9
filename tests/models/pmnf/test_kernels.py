"""The compiled loops give what plain linear algebra gives, for every shape there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.models.base import Floats
from orchestrator.models.pmnf import exhaustive, hypotheses, kernels, modeler
from orchestrator.models.pmnf.candidates import Candidates
from orchestrator.models.pmnf.fit import columns, fit
from orchestrator.models.pmnf.hypotheses import growth_of, stacked
from orchestrator.models.pmnf.sweep import Problem, factors, sweep, swept_residuals
from orchestrator.models.pmnf.weighting import weighting
from orchestrator.types import Measurement, Measurements, Point

GRID = np.array([(x, y, z) for x in (2.0, 4.0, 8.0) for y in (1.0, 3.0, 5.0, 9.0) for z in (2.0, 6.0)])
EXPONENTS = (0.0, 0.5, 1.0, 1.5, 2.0)
TABLES = tuple(np.stack([GRID[:, k] ** e for e in EXPONENTS]) for k in range(3))


def problem(rng: np.random.Generator, rows: int = 2) -> tuple[Problem, Floats]:
    log_value = np.log(10 + GRID[:, 0] * GRID[:, 1] + rng.uniform(0, 5, (rows, len(GRID))))
    root = np.sqrt(rng.uniform(0.5, 2.0, (rows, len(GRID))))
    scale = root * np.exp(-(log_value - log_value.mean(axis=1, keepdims=True)))
    noise = np.full(rows, 1e-3)
    begin, table = stacked(TABLES)
    return Problem(
        factors=factors(TABLES),
        begin=begin,
        table=table,
        scale=scale,
        root=root,
        variance=noise,
        wide=False,
    ), log_value


def residual(terms: np.ndarray, scale: Floats, root: Floats) -> float:
    """Residual sum of squares of a hypothesis; infinite with negative coefficients but for the constant's."""
    used = [t for t in terms if t.any()]
    z = [np.prod([table[b] for table, b in zip(TABLES, t, strict=True)], axis=0) for t in used]
    design = np.stack([*z, np.ones(len(root))], axis=1) * scale[:, None]
    c = np.linalg.lstsq(design, root, rcond=None)[0]
    if c[-1] < 0:
        c[:-1], c[-1] = np.linalg.lstsq(design[:, :-1], root, rcond=None)[0], 0.0
    return float(np.sum((root - design @ c) ** 2)) if np.all(c[:-1] >= 0) else np.inf


@pytest.mark.parametrize(
    ("slot", "swept", "near"),
    [(0, (0,), (False,)), (1, (2,), (False,)), (0, (0, 1), (True, True)), (1, (1, 2), (False, False))],
)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_sweep_has_the_residual_of_every_neighbour(
    slot: int, swept: tuple[int, ...], near: tuple[bool, ...], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    task, _ = problem(rng)
    terms = np.array([[(1, 2, 0), (0, 0, 1)], [(2, 1, 0), (0, 0, 3)]], dtype=np.int16)
    row = np.array([1, 0])
    found = sweep(task, row, terms, slot, swept, near).reshape(2, -1)
    for state in range(2):
        tried = [
            task.factors[k].near[terms[state, slot, k]]
            if close
            else np.arange(len(swept) > 1, len(EXPONENTS))
            for k, close in zip(swept, near, strict=True)
        ]
        choices = np.stack(np.meshgrid(*tried, indexing="ij"), axis=-1).reshape(-1, len(swept))
        for choice, rss in zip(choices, found[state], strict=True):
            changed = terms[state].copy()
            changed[slot, list(swept)] = choice
            z = columns(changed[None], TABLES)[:, 0]
            if np.linalg.matrix_rank(np.stack([*z, np.ones(len(GRID))])) == 3:
                expected = residual(changed, task.scale[row[state]], task.root[row[state]])
                assert rss == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(seed=st.integers(0, 2**32 - 1), smooth=st.sampled_from([0.0, 0.05]))
def test_a_fit_is_the_minimum_of_the_squares(seed: int, smooth: float) -> None:
    rng = np.random.default_rng(seed)
    truth = 10 + 3 * GRID[:, 0] * GRID[:, 1] + GRID[:, 2] ** 2
    log_value = (np.log(truth) + rng.normal(0, 0.01, len(GRID)))[None]
    features = np.log(GRID) - np.log(GRID).mean(axis=0)
    one = np.ones(1)
    weights = weighting(np.full((1, len(GRID)), 3.0), 0.02 * one, 8 * one, smooth * one, features)
    terms = np.array([[(2, 2, 0), (0, 0, 4)]], dtype=np.int16)
    growth = growth_of([np.array([(e, 0.0) for e in EXPONENTS])] * 3)
    found = fit(
        Candidates(np.zeros(1, dtype=np.intp), terms), TABLES, log_value, weights, np.zeros(1), growth
    )
    assert found.coefficients[0] == pytest.approx([10, 3, 1], rel=0.2)
    covariance = np.diag(1 / weights.weights[0]) + weights.smooth[0] * features @ features.T
    z = np.concatenate([np.ones((1, len(GRID))), columns(terms, TABLES)[:, 0]])

    def squares(c: Floats) -> float:
        left = log_value[0] - np.log(c @ z)
        return float(left @ np.linalg.solve(covariance, left))

    assert found.rss[0] == pytest.approx(squares(found.coefficients[0]), rel=1e-8)
    for change in (0.99, 1.01):
        for k in range(3):
            moved = found.coefficients[0].copy()
            moved[k] *= change
            assert squares(moved) > found.rss[0] - 1e-3


@given(row=st.lists(st.integers(0, 3), min_size=1, max_size=40), seed=st.integers(0, 2**32 - 1))
def test_hypotheses_are_kept_once(row: list[int], seed: int) -> None:
    terms = np.random.default_rng(seed).integers(0, 2, (len(row), 2, 2)).astype(np.int16)
    same, code = hypotheses.canonical(terms)
    kept = hypotheses.first_occurrences(np.array(row), code)
    names = [(r, tuple(sorted(map(tuple, t.tolist())))) for r, t in zip(row, terms, strict=True)]
    assert [names.index(names[k]) for k in kept] == kept.tolist()
    assert len(kept) == len(set(names))
    assert [sorted(map(tuple, t.tolist())) for t in same] == [list(name) for _, name in names]


def test_nothing_is_compiled_twice() -> None:
    """Each further variant of a loop would cost seconds somewhere in a campaign."""
    for parameters in (1, 2, 3):
        points = [
            Point.of(dict(zip("abc", x, strict=False))) for x in np.unique(GRID[:, :parameters], axis=0)
        ]
        values = {p: (p.number("a") * (1 + 0.1 * (k % 3)), 3.0) for k, p in enumerate(points)}
        items = (Measurement("main", "time", values), Measurement("f", "time", dict.fromkeys(points, (2.0,))))
        assert len(modeler.modeler()(Measurements(tuple("abc"[:parameters]), items))) == 2
    loops = [kernels.coefficients_loop, kernels.residuals_loop, exhaustive.nearly_best, swept_residuals]
    loops += [hypotheses.canonical]
    assert [len(loop.signatures) for loop in loops] == [1] * len(loops)  # type: ignore[attr-defined]
