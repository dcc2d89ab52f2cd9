"""Where paths say at which point something was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import ReadError
from orchestrator.readers.path_shape import values_in
from orchestrator.types import Value


@pytest.mark.parametrize(
    "path, shape, values",
    [
        ("si-20Ry-2ranks.out", "si-{cutoff}Ry-{p}ranks", {"cutoff": 20, "p": 2}),
        ("64/old/128/run.out", "{p}/run", {"p": 128}),
        ("scorep-64-1000/profile.cubex", "-{p}-{n}/", {"p": 64, "n": 1000}),
        ("lulesh.64.1000/x.cubex", "lulesh.{p}.{n}/", {"p": 64, "n": 1000}),
        ("d2.5_amg.log", "d{d}_{solver}.log", {"d": 2.5, "solver": "amg"}),
        ("d2,5.log", "d{d}.log", {"d": 2.5}),
        ("n8/a17_t2.log", "n{n}/*_t{t}", {"n": 8, "t": 2}),
        ("t9/n8/t2.log", "n{n}/t{t}", {"n": 8, "t": 2}),
        ("n4_x/n8_x.log", "n{n}_x", {"n": 8}),
        ("run(1)[8].log", "({a})[{b}]", {"a": 1, "b": 8}),
    ],
)
def test_values_stand_where_the_shape_says(path: str, shape: str, values: dict[str, Value]) -> None:
    found = values_in(Path(path), shape)
    assert found == values
    assert [type(value) for value in found.values()] == [type(value) for value in values.values()]


@pytest.mark.parametrize("shape", ["", "run_*", "n{n}_{n}", "n{}", "{n x}", "{0}"])
def test_a_shape_names_each_parameter_once(shape: str) -> None:
    with pytest.raises(ReadError, match="name each parameter once, in braces"):
        values_in(Path("run_4"), shape)


def test_a_path_of_another_shape_is_named() -> None:
    with pytest.raises(ReadError, match=r"logs/run_4\.out: nothing in the path has the shape 'n\{n\}'"):
        values_in(Path("logs/run_4.out"), "n{n}")
