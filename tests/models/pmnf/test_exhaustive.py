"""Screening and search against the plain way: fit every hypothesis with non-negative least squares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import nnls

from orchestrator.models.base import Floats
from orchestrator.models.pmnf.beam import Extent, search
from orchestrator.models.pmnf.candidates import Candidates, Searched
from orchestrator.models.pmnf.exhaustive import screen
from orchestrator.models.pmnf.hypotheses import block_values, partitions
from orchestrator.models.pmnf.start import different_blocks, start
from tests.models.builders import GRIDS

BLOCKS = np.array([(0, 0), (0, 1), (0.5, 0), (1, 0), (1, 1), (2, 0), (3, 0)], dtype=float)


def tables(parameters: int, fraction: float = 1.0) -> tuple[np.ndarray, ...]:
    points = np.array(list(product(*GRIDS[:parameters])))
    chosen = np.random.default_rng(0).random(len(points)) <= fraction
    return tuple(block_values(points[chosen, k], BLOCKS) for k in range(parameters))


def relative_rss(
    terms: Sequence[tuple[int, ...]], blocks: tuple[np.ndarray, ...], values: np.ndarray
) -> float:
    columns = [np.ones(len(values))]
    columns += [np.prod([t[b] for t, b in zip(blocks, term, strict=True)], axis=0) for term in terms]
    design = np.stack(columns, axis=1) / values[:, None]
    return float(nnls(design / np.linalg.norm(design, axis=0), np.ones(len(values)))[1] ** 2)


def noisy(blocks: tuple[np.ndarray, ...], seed: int) -> np.ndarray:
    """Measure a random product or sum of blocks."""
    rng = np.random.default_rng(seed)
    parts = list(partitions(tuple(range(len(blocks)))))
    total = np.full(blocks[0].shape[1], rng.uniform(0.1, 1))
    for group in parts[rng.integers(len(parts))]:
        term = np.prod([blocks[k][rng.integers(1, len(BLOCKS))] for k in group], axis=0)
        total = total + rng.uniform(0.1, 1) * term / term.mean()
    return np.asarray(total * np.exp(rng.normal(0, 0.03, len(total))))


def best(found: Candidates, blocks: tuple[np.ndarray, ...], values: np.ndarray) -> float:
    return min(relative_rss([tuple(t) for t in terms if any(t)], blocks, values) for terms in found.terms)


def searched(blocks: tuple[Floats, ...], values: Floats, variance: float) -> Searched:
    return Searched(blocks, np.log(values), np.ones_like(values), np.full(len(values), variance))


@pytest.mark.parametrize("fraction", [1.0, 0.5])
@pytest.mark.parametrize("seed", range(6))
def test_screening_finds_the_best_of_all_two_parameter_hypotheses(seed: int, fraction: float) -> None:
    blocks = tables(2, fraction)
    values = noisy(blocks, seed)
    size = len(BLOCKS)
    everything = [[pair] for pair in product(range(size), range(size))]
    everything += [[(a, 0), (0, b)] for a in range(1, size) for b in range(1, size)]
    least = min(relative_rss(terms, blocks, values) for terms in everything)
    found = screen(searched(blocks, values[None], 9e-4), keep=50)
    assert best(found, blocks, values) == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_screening_finds_the_best_pair_of_blocks_of_one_parameter(seed: int) -> None:
    blocks = (block_values(np.array([2.0, 4, 8, 16, 32, 64, 128]), BLOCKS),)
    rng = np.random.default_rng(seed)
    values = (1 + blocks[0][2] + 0.05 * blocks[0][4]) * np.exp(rng.normal(0, 0.03, 7))
    everything = [[(a,)] for a in range(len(BLOCKS))]
    everything += [[(a,), (b,)] for a, b in combinations(range(1, len(BLOCKS)), 2)]
    least = min(relative_rss(terms, blocks, values) for terms in everything)
    found = screen(searched(blocks, values[None], 9e-4), keep=60)
    assert best(found, blocks, values) == pytest.approx(least, rel=1e-6)


def test_screening_keeps_no_more_than_asked_and_nothing_twice() -> None:
    blocks = tables(2)
    values = np.stack([noisy(blocks, seed) for seed in range(5)])
    found = screen(searched(blocks, values, 0.04), keep=10)
    assert np.bincount(found.row).max() <= 10
    assert len({(int(r), t.tobytes()) for r, t in zip(found.row, found.terms, strict=True)}) == len(found.row)


@pytest.mark.parametrize("seed", range(8))
def test_search_finds_the_best_of_all_three_parameter_hypotheses(seed: int) -> None:
    blocks = tables(3, 0.4)
    values = noisy(blocks, seed)
    everything = []
    for partition in partitions((0, 1, 2)):
        for choice in product(range(len(BLOCKS)), repeat=3):
            terms = [tuple(choice[k] if k in group else 0 for k in range(3)) for group in partition]
            everything.append(terms)
    least = min(relative_rss(terms, blocks, values) for terms in everything)
    known = searched(blocks, values[None], 9e-4)
    found, _ = search(known, start(known, 5, 2), keep=60, extent=Extent(joined=True))
    assert best(found, blocks, values) == pytest.approx(least, rel=1e-6)


def test_representatives_are_different_blocks_with_the_constant_first() -> None:
    table = block_values(np.array(GRIDS[0]), BLOCKS)
    chosen = different_blocks(table, 4)
    assert chosen[0] == 0 and len(set(chosen.tolist())) == 4
    assert len(different_blocks(table, 99)) == len(BLOCKS)
