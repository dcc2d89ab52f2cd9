"""Which parameters of a campaign count processes."""

from __future__ import annotations

import pytest

from orchestrator.campaign import loader
from orchestrator.control.assembly import modeler
from orchestrator.control.counting import counting, study
from orchestrator.models.processes import Processes
from orchestrator.types import Measurement, Measurements, Point

CAMPAIGN = """
name: rehearsal
application: generic
program: {{arguments: ["{{a}}"], ranks: "{ranks}", output: [{{callpath: main, pattern: "t=(.*)"}}]}}
parameters: {{a: [1, 2, 4], b: [1, 3], p: [10, 20]}}
measure: {{time_limit: 60 s, expected_time: 5 s}}
stop: {{budget: 6 core-hours}}
model: {model}
executor: {{name: simulated, truth: {{main: "a + p"}}}}
"""


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ("a", Processes(("a",))),
        ("a * b", Processes(("a", "b"), "a")),
        ("4 * b", Processes(("b",))),
        ("a ** 2", Processes(("p",))),  # names decide
    ],
)
def test_what_runs_occupy_tells(ranks: str, expected: Processes) -> None:
    assert counting(loader.loads(CAMPAIGN.format(ranks=ranks, model="auto"))) == expected


def test_the_modeler_of_speedups_is_told() -> None:
    campaign = loader.loads(CAMPAIGN.format(ranks="a", model="{name: speedup, overhead: none}"))
    values = {Point.of(a=a, b=1, p=p): (p * (0.1 + 0.9 / a),) for a in (1, 2, 4) for p in (10, 20)}
    known = Measurements(("a", "b", "p"), (Measurement("main", "time", values),))
    (model,) = modeler(campaign)(known)
    assert model.value([Point.of(a=8, b=1, p=20)])[0] == pytest.approx(20 * (0.1 + 0.9 / 8), rel=0.02)
    found = study(campaign, known)
    assert found is not None and (found.along, found.weak) == ("a", False)


def test_one_number_of_processes_has_no_speedup() -> None:
    campaign = loader.loads(CAMPAIGN.format(ranks="a", model="auto"))
    values = {Point.of(a=2, b=1, p=p): (float(p),) for p in (10, 20)}
    assert study(campaign, Measurements(("a", "b", "p"), (Measurement("main", "time", values),))) is None
