"""Which parameters count processes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from orchestrator.errors import ModelError
from orchestrator.models.processes import Processes, fixed_factor, found, required
from orchestrator.types import Measurement, Measurements, Point


@pytest.mark.parametrize(
    ("parameters", "names", "nodes"),
    [
        (("p", "n"), ("p",), ""),
        (("n", "MPI_ranks"), ("MPI_ranks",), ""),
        (("nodes", "ppn", "n"), ("nodes", "ppn"), "nodes"),
        (("nodes", "p"), ("p",), "nodes"),
        (("nodes", "n"), ("nodes",), "nodes"),
        (("p", "threads", "n"), ("p", "threads"), ""),
        (("OMP_NUM_THREADS",), ("OMP_NUM_THREADS",), ""),
        (("n", "n_jobs"), ("n_jobs",), ""),
        (("num_nodes", "ranks-per-node"), ("num_nodes", "ranks-per-node"), "num_nodes"),
    ],
)
def test_names_say_what_counts_processes(
    parameters: tuple[str, ...], names: tuple[str, ...], nodes: str
) -> None:
    assert found(parameters) == Processes(names, nodes)


def test_processes_per_node_beside_their_total() -> None:
    assert found(("p", "ppn", "t")) == Processes(("p", "t"), "", "ppn")


def test_without_such_a_name_the_remedy_is_named() -> None:
    assert found(("n", "steps")) is None
    with pytest.raises(ModelError, match=re.escape("processes=p or processes=nodes*ppn")):
        required(("n", "steps"))


def test_two_names_for_the_same_are_not_guessed() -> None:
    with pytest.raises(ModelError, match="p and ranks may both count processes"):
        found(("p", "ranks"))


@pytest.mark.parametrize("named", ["a * b", "a,b", ("a", "b"), ["a", "b"]])
def test_named_parameters_are_multiplied(named: str | tuple[str, ...]) -> None:
    processes = required(("n", "a", "b"), named)
    assert processes == Processes(("a", "b"), "a")
    assert processes.total({"a": np.array([2.0, 3.0]), "b": np.array([4.0, 5.0])}).tolist() == [8.0, 15.0]


def test_a_name_that_no_parameter_has() -> None:
    with pytest.raises(ModelError, match="q is no numeric parameter; name some of p, n"):
        required(("p", "n"), "q")


def _at(*points: Point) -> Measurements:
    return Measurements(("nodes", "ppn"), (Measurement("main", "time", dict.fromkeys(points, (1.0,))),))


def test_what_does_not_vary_is_a_factor() -> None:
    processes = Processes(("nodes", "ppn"), "nodes")
    assert fixed_factor(_at(Point.of(nodes=1, ppn=4), Point.of(nodes=2, ppn=4)), processes) == 4.0
    assert fixed_factor(_at(Point.of(nodes=1, ppn=4), Point.of(nodes=2, ppn=8)), processes) == 1.0


def test_a_count_below_one_is_refused() -> None:
    with pytest.raises(ModelError, match="nodes is 0 in some run, but it counts processes"):
        fixed_factor(_at(Point.of(nodes=0, ppn=4), Point.of(nodes=2, ppn=4)), Processes(("nodes", "ppn")))
