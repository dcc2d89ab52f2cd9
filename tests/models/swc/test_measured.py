"""Priors from real profiles: LULESH with counted basic blocks, Kripke with a polling loop."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.models.base import Model
from orchestrator.models.pmnf.modeler import modeler
from orchestrator.models.swc import modeler as swc
from orchestrator.models.swc.skeleton import Skeleton, skeletons
from orchestrator.models.symbolic import growth, terms_of
from orchestrator.readers import cube_set
from orchestrator.types import Measurement, Measurements, Point
from tests.requirements import measurement_data

P_PLUS = Point.of(p=27, s=14)
ELEMENT_KERNELS = (
    "InitStressTermsForElems",
    "IntegrateStressForElems",
    "CalcHourglassControlForElems",
    "CalcFBHourglassForceForElems",
    "CalcLagrangeElements",
    "CalcKinematicsForElems",
    "CalcMonotonicQGradientsForElems",
    "ApplyMaterialPropertiesForElems",
    "EvalEOSForElems",
    "CalcPressureForElems",
    "UpdateVolumesForElems",
)
NODE_KERNELS = (
    "CalcForceForNodes",
    "CalcAccelerationForNodes",
    "CalcVelocityForNodes",
    "CalcPositionForNodes",
)


@pytest.fixture(scope="module")
def lulesh() -> Measurements:
    folder = measurement_data() / "cubex" / "lulesh-effort"
    return cube_set.read([folder], ["time", "basic_blocks", "bytes_sent", "bytes_received", "visits"])


def small(known: Measurements) -> Measurements:
    """What is measured up to 8 ranks and size 12."""
    items = (
        Measurement(
            item.callpath,
            item.metric,
            {q: v for q, v in item.values.items() if q.number("p") <= 8 and q.number("s") <= 12},
        )
        for item in known.items
    )
    return Measurements(known.parameters, tuple(item for item in items if item.values))


def called(callpath: str, name: str) -> bool:
    return callpath.rpartition("->")[2].removeprefix("void ").startswith(f"{name}(")


def priors_of(known: Measurements) -> dict[str, Skeleton]:
    paths = [item.callpath for item in known.items if item.metric == "time"]
    found = skeletons(known, paths, modeler(), 0.01, None)
    return {path: next(iter(parts.values())) for path, parts in found.items()}


def counted(known: Measurements, name: str) -> tuple[Model, float]:
    """Model of the blocks counted in small runs, and what was counted at 27 ranks."""
    items = [i for i in known.items if i.metric == "basic_blocks" and called(i.callpath, name)]
    part = small(Measurements(known.parameters, tuple(items)))
    return modeler()(part)[0], items[0].values[P_PLUS][0]


@pytest.mark.parametrize("name", ELEMENT_KERNELS)
def test_element_kernels_count_cubes(lulesh: Measurements, name: str) -> None:
    fitted, truth = counted(lulesh, name)
    assert growth(terms_of(fitted), "s") == (3.0, 0.0) and growth(terms_of(fitted), "p") == (0.0, 0.0)
    assert fitted.predict([P_PLUS]).value[0] == pytest.approx(truth, rel=0.02)


@pytest.mark.parametrize("name", NODE_KERNELS)
def test_node_kernels_count_a_little_less(lulesh: Measurements, name: str) -> None:
    """``(s + 1)**3`` nodes: cubes and lower powers, or about s**2.7 at these sizes."""
    fitted, truth = counted(lulesh, name)
    assert 2.6 <= growth(terms_of(fitted), "s")[0] <= 3
    assert fitted.predict([P_PLUS]).value[0] == pytest.approx(truth, rel=0.02)


def test_priors_of_element_kernels_are_cubes(lulesh: Measurements) -> None:
    priors = priors_of(small(lulesh))
    for name in ELEMENT_KERNELS:
        (prior,) = (skeleton for path, skeleton in priors.items() if called(path, name))
        assert [m.factors for c in prior.columns for m in c.monomials] == [(), (("s", (3.0, 0.0)),)]


@pytest.mark.slow
def test_times_of_oversubscribed_runs_do_not_hide_the_cubes(lulesh: Measurements) -> None:
    models = {m.callpath: m for m in swc.modeler(posterior="prior")(lulesh) if m.metric == "time"}
    for name in ELEMENT_KERNELS:
        (model,) = (m for path, m in models.items() if called(path, name))
        assert growth(terms_of(model), "s") == (3.0, 0.0)
        assert np.isfinite(model.predict([Point.of(p=1000, s=50)]).value[0])


def test_kripke_polls_in_its_sweep() -> None:
    known = cube_set.read([measurement_data() / "cubex" / "samples" / "kripke.p8.d2.g32.r1"])
    models = {m.callpath: m for m in swc.modeler()(known) if m.metric == "time"}
    polling = [path for path, m in models.items() if any("polls" in note for note in m.notes)]
    assert [path.rpartition("->")[2] for path in polling] == ["MPI_Testany"]
