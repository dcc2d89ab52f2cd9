"""A simulated cluster whose overheads are stated: run times of four applications on up to 500 nodes.

The applications are named after those of Alasandagutti et al., Grey-Box Machine Learning Prediction of
Parallel Application Scaling, section 4.1, and have the ranges and medians of their problem sizes. What they
cost is made up, in the order of magnitude of such codes. The machines have the node counts and processes per
node of section 4.2. So differences between models have known causes; the paper's own times are not public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.evaluation.speedup.runs import Runs
from orchestrator.models.base import Floats

_WORD = 8.0  # bytes
_COMPLEX = 16.0
_LARGER = 20.0  # weak scaling: largest problem of all nodes over the largest of the code


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Nodes, their network, and how runs scatter."""

    name: str  # in tables
    # nodes, per_node: numbers of nodes, and of processes on each, that are measured.
    nodes: tuple[int, ...]
    per_node: tuple[int, ...]
    # cutoff, cutoff_levels: the papers' c_f: the largest number of processes that models are fitted to, with
    # one process per node and with several.
    cutoff: int
    cutoff_levels: int
    speed: float  # of a processor, relative to the core that `Code.seconds` is of
    # latency, latency_inside: seconds of a message between nodes, and within a node.
    latency: float
    latency_inside: float
    # bandwidth, bandwidth_inside: bytes per second of a node to the network, and between processes of a node.
    bandwidth: float
    bandwidth_inside: float
    saturating: float  # processes that use up the memory bandwidth of a node
    congestion: float  # nodes at which each of them has half its bandwidth in all-to-all exchanges
    noise: float  # standard deviation of the logarithm of run times
    # slow_share, slowest: share of runs that something slows down, and the largest factor.
    slow_share: float
    slowest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """What one application does in a run."""

    name: str  # in tables
    # dimensions, edges: problem sizes are ``edge ** dimensions`` elements.
    dimensions: int
    edges: tuple[int, ...]
    steps: int  # per run; all below is per step
    seconds: float  # computation per element on one core
    serial_share: float  # of it that only one process can do
    setup: float  # seconds per run that depend on nothing
    memory_bound: float  # share of the computation that waits for memory
    imbalance: float  # relative standard deviation of the work of processes
    halo: float  # bytes per element of a surface that neighbours exchange
    # reductions, transposes: global sums, and all-to-all exchanges of one complex number per element.
    reductions: float
    transposes: float

    @property
    def sizes(self) -> tuple[float, ...]:
        """Numbers of elements, rising."""
        return tuple(float(edge**self.dimensions) for edge in self.edges)


CPU = Machine(
    name="CPU",
    nodes=(1, 2, 4, 8, 16, 32, 50, 75, 100, 150, 200, 250, 300, 350, 400, 450, 500),
    per_node=(1, 2, 4, 8, 16, 32),
    cutoff=100,
    cutoff_levels=500,
    speed=1.0,
    latency=1.5e-6,
    latency_inside=0.4e-6,
    bandwidth=12.5e9,
    bandwidth_inside=40e9,
    saturating=10.0,
    congestion=250.0,
    noise=0.02,
    slow_share=0.01,
    slowest=1.3,
)
GPU = Machine(
    name="GPU",
    nodes=(1, 2, 3, 4, 6, 8, 10, 15, 20, 25, 30, 40, 50),
    per_node=(1,),
    cutoff=10,
    cutoff_levels=10,
    speed=40.0,
    latency=10e-6,  # kernels have to end before their data are sent
    latency_inside=10e-6,
    bandwidth=12.5e9,
    bandwidth_inside=12.5e9,
    saturating=1.0,
    congestion=100.0,
    noise=0.02,
    slow_share=0.01,
    slowest=1.3,
)
MACHINES = (CPU, GPU)

CODES = (
    Code(
        name="Beatnik",
        dimensions=2,
        edges=(250, 1000, 1750, 2500, 3000, 3500, 4500, 5500, 6000, 7000, 8000),
        steps=20,
        seconds=4e-7,
        serial_share=0.0005,
        setup=0.02,
        memory_bound=0.5,
        imbalance=0.01,
        halo=6 * _WORD,
        reductions=1,
        transposes=6,
    ),
    Code(
        name="MiniFE",
        dimensions=3,
        edges=(50, 75, 100, 125, 150, 165, 200, 230, 265, 300, 330),
        steps=200,
        seconds=3e-8,
        serial_share=0.0002,
        setup=0.01,
        memory_bound=0.9,
        imbalance=0.02,
        halo=_WORD,
        reductions=2,
        transposes=0,
    ),
    Code(
        name="Fiesta",
        dimensions=3,
        edges=(10, 30, 50, 75, 95, 115, 135, 155, 175, 195, 210),
        steps=50,
        seconds=4e-6,
        serial_share=0.001,
        setup=0.005,
        memory_bound=0.3,
        imbalance=0.005,
        halo=3 * 5 * _WORD,
        reductions=1,
        transposes=0,
    ),
    Code(
        name="LAMMPS",
        dimensions=3,
        edges=(10, 25, 40, 60, 75, 90, 100, 115, 125, 140, 150),
        steps=100,
        seconds=3e-6,
        serial_share=0.0001,
        setup=0.05,
        memory_bound=0.2,
        imbalance=0.04,
        halo=60 * _WORD,
        reductions=0.1,
        transposes=0,
    ),
)


def seconds(machine: Machine, code: Code, nodes: Floats, per_node: Floats, size: Floats) -> Floats:
    """Return run times without noise.

    Parameters
    ----------
    machine, code
        Where, and what.
    nodes, per_node, size
        Nodes, processes on each, and elements; shape (n,) or scalars.
    """
    nodes, per_node, size = (np.asarray(values, dtype=float) for values in (nodes, per_node, size))
    whole = size * code.seconds / machine.speed
    step = (
        whole * code.serial_share
        + _computation(machine, code, nodes, per_node, whole * (1 - code.serial_share))
        + _halo(machine, code, nodes, per_node, size)
        + code.reductions * _reduction(machine, nodes, per_node)
        + code.transposes * _transpose(machine, nodes, per_node, size)
    )
    return np.asarray(code.setup + code.steps * step)


def _computation(machine: Machine, code: Code, nodes: Floats, per_node: Floats, whole: Floats) -> Floats:
    """Return the time of the slowest process: a shared memory, and the largest of N normal deviates."""
    processes = nodes * per_node
    waiting = 1 - code.memory_bound + code.memory_bound * np.maximum(1.0, per_node / machine.saturating)
    slowest = 1 + code.imbalance * np.sqrt(2 * np.log(processes))
    return np.asarray(whole / processes * waiting * slowest)


def _halo(machine: Machine, code: Code, nodes: Floats, per_node: Floats, size: Floats) -> Floats:
    """Return the time to exchange surfaces with two neighbours per dimension.

    Of the surfaces of a node's processes, ``per_node ** (-1 / dimensions)`` is the surface of their union.
    """
    processes = nodes * per_node
    surfaces = 2 * code.dimensions * code.halo * (size / processes) ** (1 - 1 / code.dimensions)
    outside = np.where(nodes > 1, per_node ** (-1 / code.dimensions), 0.0)
    latency = np.where(nodes > 1, machine.latency, machine.latency_inside)
    exchange = (
        2 * code.dimensions * latency
        + per_node * surfaces * outside / machine.bandwidth
        + per_node * surfaces * (1 - outside) / machine.bandwidth_inside
    )
    return np.asarray(np.where(processes > 1, exchange, 0.0))


def _reduction(machine: Machine, nodes: Floats, per_node: Floats) -> Floats:
    """Return the time of a global sum along a binary tree and back."""
    return np.asarray(2 * (machine.latency * np.log2(nodes) + machine.latency_inside * np.log2(per_node)))


def _transpose(machine: Machine, nodes: Floats, per_node: Floats, size: Floats) -> Floats:
    """Return the time of an all-to-all exchange in pencils: messages to sqrt(N) processes, twice."""
    processes = nodes * per_node
    share = _COMPLEX * size / nodes
    bandwidth = machine.bandwidth / (1 + nodes / machine.congestion)
    latency = np.where(nodes > 1, machine.latency, machine.latency_inside)
    exchange = 2 * (
        np.sqrt(processes) * latency
        + share * (1 - 1 / nodes) / bandwidth
        + share / nodes * (1 - 1 / per_node) / machine.bandwidth_inside
    )
    return np.asarray(np.where(processes > 1, exchange, 0.0))


def measured(
    machine: Machine,
    code: Code,
    rng: np.random.Generator,
    *,
    per_node: Sequence[int] = (1,),
    weak: bool = False,
) -> Runs:
    """Return a noisy run for every combination of nodes, processes per node and problem sizes.

    Parameters
    ----------
    machine, code
        Where, and what.
    rng
        Of the noise.
    per_node
        Processes per node; runs on a single process are there in any case.
    weak
        Whether every process has a problem of its own: the sizes are then those of a process, and only those
        whose problem on all nodes is at most 20 times the largest of the code.
    """
    grid = np.array(
        [
            (n, r, size)
            for size in code.sizes
            for n in machine.nodes
            for r in sorted({1, *per_node})
            if r in per_node or n == 1
        ],
        dtype=float,
    )
    if weak:
        largest = code.sizes[-1] * _LARGER
        grid = grid[(grid[:, 2] * machine.nodes[-1] <= largest) | (grid[:, 2] == code.sizes[0])]
    nodes, ranks, size = grid.T
    exact = seconds(machine, code, nodes, ranks, size * nodes * ranks if weak else size)
    return Runs(
        name=code.name,
        nodes=nodes,
        per_node=ranks,
        size=size,
        seconds=exact * _noise(machine, len(grid), rng),
        exact=exact,
    )


def _noise(machine: Machine, count: int, rng: np.random.Generator) -> Floats:
    """Return factors on run times."""
    factors = np.exp(rng.normal(0.0, machine.noise, count))
    slowed = rng.random(count) < machine.slow_share
    return np.asarray(factors * np.where(slowed, rng.uniform(1.0, machine.slowest, count), 1.0))
