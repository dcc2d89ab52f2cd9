"""The simulated cluster: its overheads are those that are stated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.evaluation.speedup.cluster import (
    CODES,
    CPU,
    GPU,
    MACHINES,
    Code,
    Machine,
    measured,
    seconds,
)
from orchestrator.evaluation.speedup.runs import on_one_process, reference

MACHINE = st.sampled_from(MACHINES)
CODE = st.sampled_from(CODES)
SIZE = st.sampled_from(range(11))

# Without what the law does not know: all that is left is a serial and a parallel part.
IDEAL = replace(
    CPU, latency=0.0, latency_inside=0.0, bandwidth=np.inf, bandwidth_inside=np.inf, saturating=np.inf
)


def at(machine: Machine, code: Code, nodes: float, per_node: float, size: float) -> float:
    return float(seconds(machine, code, np.array(nodes), np.array(per_node), np.array(size)))


@given(CODE, SIZE, st.sampled_from(CPU.nodes), st.sampled_from(CPU.per_node))
def test_without_overheads_it_is_amdahls_law(code: Code, k: int, nodes: int, per_node: int) -> None:
    code = replace(code, setup=0.0, imbalance=0.0)
    size, share = code.sizes[k], 1 - code.serial_share
    found = at(IDEAL, code, 1, 1, size) / at(IDEAL, code, nodes, per_node, size)
    assert found == pytest.approx(1 / (1 - share + share / (nodes * per_node)))


@given(MACHINE, CODE, SIZE, st.data())
def test_overheads_take_time(machine: Machine, code: Code, k: int, data: st.DataObject) -> None:
    nodes = data.draw(st.sampled_from(machine.nodes))
    per_node = data.draw(st.sampled_from(machine.per_node))
    ideal = replace(
        machine, latency=0.0, latency_inside=0.0, bandwidth=np.inf, bandwidth_inside=np.inf, saturating=np.inf
    )
    size = code.sizes[k]
    real, without = at(machine, code, nodes, per_node, size), at(ideal, code, nodes, per_node, size)
    if nodes * per_node == 1:
        assert real == pytest.approx(without)  # a single process waits for nobody
    else:
        assert real > without


@given(MACHINE, CODE, SIZE, SIZE, st.data())
def test_larger_problems_take_longer(
    machine: Machine, code: Code, a: int, b: int, data: st.DataObject
) -> None:
    nodes = data.draw(st.sampled_from(machine.nodes))
    small, large = sorted((code.sizes[a], code.sizes[b]))
    assert at(machine, code, nodes, 1, small) <= at(machine, code, nodes, 1, large)


@given(CODE, SIZE, st.sampled_from(CPU.nodes[1:]))
def test_processes_share_the_memory_and_the_network_of_a_node(code: Code, k: int, nodes: int) -> None:
    """As many processes on fewer nodes are slower where they compute: all of our codes wait for memory."""
    size = code.sizes[k]
    whole = replace(CPU, latency=0.0, latency_inside=0.0, bandwidth=np.inf, bandwidth_inside=np.inf)
    assert at(whole, code, nodes, 32, size) > at(whole, code, nodes * 32, 1, size)


def test_all_to_all_exchanges_congest_the_network() -> None:
    """Twice the bandwidth per node is not enough on as many nodes as halve it."""
    beatnik = replace(
        CODES[0], serial_share=0.0, setup=0.0, imbalance=0.0, seconds=0.0, halo=0.0, reductions=0
    )
    quiet = replace(CPU, latency=0.0, latency_inside=0.0, congestion=np.inf)
    busy = replace(quiet, congestion=100.0)
    size = beatnik.sizes[-1]
    assert at(busy, beatnik, 100, 1, size) == pytest.approx(2 * at(quiet, beatnik, 100, 1, size))


@settings(max_examples=20)
@given(CODE, st.integers(0, 5))
def test_noise_is_as_stated_and_seeded(code: Code, seed: int) -> None:
    first, again = (measured(CPU, code, np.random.default_rng(seed)) for _ in range(2))
    assert np.array_equal(first.seconds, again.seconds)
    ratio = first.seconds / first.exact
    assert np.median(ratio) == pytest.approx(1.0, abs=4 * CPU.noise / np.sqrt(len(ratio)) * 1.25)
    assert ratio.max() < CPU.slowest * np.exp(5 * CPU.noise)
    assert not np.array_equal(first.seconds, measured(CPU, code, np.random.default_rng(seed + 1)).seconds)


def test_strong_scaling_has_every_size_on_one_process() -> None:
    runs = measured(CPU, CODES[1], np.random.default_rng(0), per_node=(4, 16))
    assert set(np.unique(runs.per_node)) == {1, 4, 16} and runs.levels == 2
    assert set(on_one_process(runs, runs.exact)) == set(CODES[1].sizes)
    assert np.all(np.isfinite(reference(runs, "strong", on_one_process(runs, runs.exact))))


def test_weak_scaling_keeps_the_work_of_a_process() -> None:
    """Without overheads and serial part, the time does not change with the nodes."""
    code = replace(CODES[2], serial_share=0.0, imbalance=0.0, setup=0.0, halo=0.0, reductions=0)
    runs = measured(replace(GPU, latency=0.0), code, np.random.default_rng(0), weak=True)
    one = reference(runs, "weak", on_one_process(runs, runs.exact))
    assert one / runs.exact == pytest.approx(1.0)
    assert len(np.unique(runs.size)) > 2
