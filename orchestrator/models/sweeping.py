"""Search for hypotheses of three and more parameters: coordinate sweeps over every partition.

A partition of the parameters says which of them share a product term. Within one, a sweep replaces the block
of one parameter by each possible one (the constant block included, so that parameters can leave) and
keeps the best few states. All states of all call paths are swept in one pass of matrix products.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.hypotheses import Floats, Integers, partitions
from orchestrator.models.screening import Candidates

_ROUNDS = 3
_BEAM = 3
_STATES = 2000
_REACH = 6.0


def sweep_search(
    tables: tuple[Floats, ...],
    log_value: Floats,
    precision: Floats,
    variance: Floats,
    *,
    start: tuple[int, ...],
) -> Candidates:
    """Find good hypotheses; same parameters as `screening.screen`, plus the block to start from.

    Guaranteed: no change of a single block improves the best state of any partition that survives the
    first round. Not guaranteed: the global optimum, as in `screen`.
    """
    structures = [_structure(p, len(tables)) for p in partitions(tuple(range(len(tables))))]
    parts = []
    size = max(1, _STATES // (len(structures) * _BEAM))
    for begin in range(0, len(log_value), size):
        chunk = slice(begin, begin + size)
        found = _search(tables, log_value[chunk], precision[chunk], variance[chunk], structures, start)
        parts.append(Candidates(found.row + begin, found.terms))
    return Candidates.join(parts)


def _structure(partition: tuple[tuple[int, ...], ...], parameters: int) -> Integers:
    """Return the term number of every parameter."""
    term = np.zeros(parameters, dtype=np.intp)
    for k, group in enumerate(partition):
        term[list(group)] = k
    return term


def _search(
    tables: tuple[Floats, ...],
    log_value: Floats,
    precision: Floats,
    variance: Floats,
    structures: list[Integers],
    start: tuple[int, ...],
) -> Candidates:
    rows, kinds, parameters = len(log_value), len(structures), len(tables)
    row = np.repeat(np.arange(rows), kinds)
    kind = np.tile(np.arange(kinds), rows)
    blocks = np.tile(np.array(start, dtype=np.int16), (len(row), 1))
    term_of = np.array(structures)
    seen: list[Candidates] = []
    root = np.sqrt(precision)
    scale = root * np.exp(-(log_value - log_value.mean(axis=1, keepdims=True)))
    for round_number in range(_ROUNDS):
        for k in range(parameters):
            rss = sweep(tables, k, blocks, term_of[kind], scale[row], root[row])
            last = round_number == _ROUNDS - 1
            best = _best_per_row(rss, row, rows)
            if last:
                limit = best + 2 * _REACH * np.maximum(
                    variance, best / max(log_value.shape[1] - parameters - 1, 1)
                )
                state, block = np.nonzero(rss <= limit[row][:, None])
                chosen = blocks[state].copy()
                chosen[:, k] = block
                seen.append(Candidates(row[state], _terms(chosen, term_of[kind[state]])))
            row, kind, blocks = _beam(rss, row, kind, blocks, k, 1 if round_number == 0 else _BEAM)
        if round_number == 0:
            keep = _best_structures(rss, row, kinds)
            row, kind, blocks = row[keep], kind[keep], blocks[keep]
    return Candidates.join(seen)


def sweep(
    tables: tuple[Floats, ...],
    k: int,
    blocks: NDArray[np.int16],
    term_of: Integers,
    scale: Floats,
    root: Floats,
) -> Floats:
    """Residual sum of squares of every state with block ``k`` replaced by every block: (states, blocks)."""
    states, parameters = blocks.shape
    products = [scale.copy() for _ in range(parameters)]
    for j in range(parameters):
        if j == k:
            continue
        values = tables[j][blocks[:, j]]
        for t in range(parameters):
            inside = term_of[:, j] == t
            products[t][inside] *= values[inside]
    used = np.zeros((parameters, states), dtype=bool)
    for j in range(parameters):
        if j != k:
            used[term_of[:, j], np.arange(states)] |= blocks[:, j] > 0
    mine = term_of[:, k]
    g = np.stack(products)[mine, np.arange(states)]
    others = [p * (used[t] & (mine != t))[:, None] for t, p in enumerate(products)]
    basis: list[Floats] = []
    residual = root.copy()
    for column in [*others, scale]:
        q = column.copy()
        for b in basis:
            q -= np.einsum("sn,sn->s", b, q)[:, None] * b
        norm = np.sqrt(np.einsum("sn,sn->s", q, q))
        raw = np.sqrt(np.einsum("sn,sn->s", column, column))
        q *= np.where(norm > 1e-7 * raw, 1 / np.maximum(norm, 1e-300), 0.0)[:, None]
        basis.append(q)
    for b in basis[:-1]:
        residual -= np.einsum("sn,sn->s", b, residual)[:, None] * b
    constant = basis[-1]
    table = tables[k]
    zz = (g * g) @ (table * table).T
    raw_zz = zz.copy()
    for b in basis[:-1]:
        zz -= ((g * b) @ table.T) ** 2
    ze = (g * residual) @ table.T
    ee = np.einsum("sn,sn->s", residual, residual)[:, None]
    cz = (g * constant) @ table.T
    cy = np.einsum("sn,sn->s", constant, residual)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        full_zz, full_ze = zz - cz**2, ze - cz * cy
        slope = np.where(full_zz > 1e-12 * raw_zz, full_ze / full_zz, 0.0)
        free = np.where(slope > 0, ee - cy**2 - slope * full_ze, np.inf)
        bound = np.where((ze > 0) & (zz > 1e-12 * raw_zz), ee - ze**2 / zz, np.inf)
        rss = np.where(cy - cz * slope < 0, bound, free)
    # The constant block where nothing else is left in the term: the term is gone.
    gone = ~np.any(used & (np.arange(parameters)[:, None] == mine[None]), axis=0)
    rss[gone, 0] = (ee - np.maximum(cy, 0) ** 2)[gone, 0]
    return np.maximum(rss, 0.0)


def _best_per_row(rss: Floats, row: Integers, rows: int) -> Floats:
    best = np.full(rows, np.inf)
    np.minimum.at(best, row, rss.min(axis=1))
    return best


def _beam(
    rss: Floats, row: Integers, kind: Integers, blocks: NDArray[np.int16], k: int, beam: int
) -> tuple[Integers, Integers, NDArray[np.int16]]:
    """Keep the best ``beam`` different states of every (call path, partition)."""
    width = min(beam, rss.shape[1])
    top = np.argpartition(rss, width - 1, axis=1)[:, :width]
    state = np.repeat(np.arange(len(rss)), width)
    block = top.ravel()
    value = rss[state, block]
    chosen = blocks[state].copy()
    chosen[:, k] = block
    key = np.column_stack([row[state], kind[state], chosen])
    _, first = np.unique(key, axis=0, return_index=True)
    order = first[np.lexsort((value[first], kind[state[first]], row[state[first]]))]
    group = row[state[order]] * (kind.max() + 1) + kind[state[order]]
    begin = np.r_[True, group[1:] != group[:-1]]
    position = np.arange(len(order)) - np.maximum.accumulate(np.where(begin, np.arange(len(order)), 0))
    order = order[(position < beam) & np.isfinite(value[order])]
    return row[state[order]], kind[state[order]], chosen[order]


def _best_structures(rss: Floats, row: Integers, kinds: int) -> NDArray[np.bool_]:
    """Keep the better half of the partitions of every call path (one state each after round one)."""
    best = rss.min(axis=1)
    if len(best) != len(row):
        return np.ones(len(row), dtype=bool)
    order = np.lexsort((best, row))
    begin = np.r_[True, row[order][1:] != row[order][:-1]]
    position = np.arange(len(order)) - np.maximum.accumulate(np.where(begin, np.arange(len(order)), 0))
    keep = np.zeros(len(row), dtype=bool)
    keep[order] = position < max(5, kinds // 3)
    return keep


def _terms(blocks: NDArray[np.int16], term_of: Integers) -> NDArray[np.int16]:
    states, parameters = blocks.shape
    terms = np.zeros((states, parameters, parameters), dtype=np.int16)
    for k in range(parameters):
        terms[np.arange(states), term_of[:, k], k] = blocks[:, k]
    return terms
