"""Outputs of the applications as they were printed, from the folder of shared measurements."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import registry
from orchestrator.types import Application
from tests.requirements import measurement_data


def output(name: str, file: str, **further: str) -> dict[tuple[str, str], float]:
    folder = measurement_data() / "app-output"
    application: Application = registry.load("application", name)
    texts = {"stdout": (folder / file).read_text(), "stderr": ""}
    texts |= {as_name: (folder / Path(other)).read_text() for as_name, other in further.items()}
    return {(s.callpath, s.aggregate): s.value for s in application.output(texts) if s.metric == "time"}


def test_amg() -> None:
    assert output("amg", "amg.txt") == {
        ("main->matrix", "value"): 0.003756,
        ("main->rhs", "value"): 0.000098,
        ("main->setup", "value"): 0.012532,
        ("main->solve", "value"): 0.026879,
    }


def test_hpl_with_two_configurations_is_refused() -> None:
    with pytest.raises(ValueError, match="2 times result line"):
        output("hpl", "hpl.txt")


def test_kripke_that_only_printed_its_usage() -> None:
    with pytest.raises(ValueError, match="Usage"):
        output("kripke-1.1", "kripke-1.1.txt")


def test_lammps() -> None:
    times = output("lammps", "lammps.txt")
    assert times[("loop", "value")] == 0.167967
    assert len({path for path, _ in times}) == 7


def test_lulesh() -> None:
    assert output("lulesh", "lulesh.txt") == {("main", "value"): pytest.approx(0.25325507)}


def test_lulesh_not_a_cube() -> None:
    with pytest.raises(ValueError, match="must be a cube"):
        output("lulesh", "lulesh-not-a-cube.txt")


def test_minife() -> None:
    times = output("minife", "minife-stdout.txt", **{"miniFE.20x20x20.P2.yaml": "minife.yaml"})
    assert times[("main", "value")] == 0.0511861
    assert times[("main->cg->iteration", "value")] == 0.000300767


def test_quicksilver() -> None:
    times = output("quicksilver", "quicksilver.txt")
    assert times[("main->cycleFinalize", "mean")] == pytest.approx(2e-6)
    assert len({path for path, _ in times}) == 7


def test_relearn() -> None:
    times = output("relearn", "relearn.txt")
    assert len({path for path, _ in times}) == 48
    create = "main->Simulation loop->Connectivity update->Create synapses"
    assert times[(f"{create}->Create synapses Process Responses", "max")] == 0.00000252
