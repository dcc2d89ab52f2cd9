"""Call paths that are fitted together are modelled as well as alone."""

from __future__ import annotations

import numpy as np

from orchestrator.models.pmnf.modeler import modeler
from orchestrator.types import Measurement, Measurements, Point
from tests.models.builders import terms


def kernels(count: int, seed: int) -> list[Measurement]:
    """Measure kernels at three sizes, of which one was repeated in a run that hardly differed."""
    rng = np.random.default_rng(seed)
    result = []
    for k in range(count):
        slope, start = rng.uniform(1e-11, 1e-9), rng.uniform(2e-6, 9e-6)

        def time(n: float, slope: float = slope, start: float = start) -> float:
            return float((start + slope * n) * np.exp(rng.normal(0, 0.02)))

        first = time(2.0**20)
        values: dict[Point, tuple[float, ...]] = {Point.of({"n": n}): (time(n),) for n in (2.0**21, 2.0**22)}
        values[Point.of({"n": 2.0**20})] = (first, first * (1 + 2e-4))
        result.append(Measurement(f"f{k}", "time", values))
    return result


def test_small_noise_of_others_does_not_make_a_growing_kernel_constant() -> None:
    items = kernels(40, 3)
    far = Point.of({"n": 2.0**23})
    together = modeler()(Measurements(("n",), tuple(items)))
    alone = [modeler()(Measurements(("n",), (item,)))[0] for item in items]
    ratio = [
        a.predict([far]).value[0] / b.predict([far]).value[0] for a, b in zip(together, alone, strict=True)
    ]
    assert np.abs(np.log(ratio)).max() < 0.2


def test_no_constant_is_printed_that_the_noise_refutes() -> None:
    curve = {2.0**20: 1.0, 2.0**21: 1.51, 2.0**22: 2.05}
    values = {Point.of({"n": n}): (1e-4 * v,) * (1 + (n == 2.0**20)) for n, v in curve.items()}
    item = Measurement("saturating", "time", values)
    for items in ((item,), (*kernels(40, 4), item)):
        model = next(m for m in modeler()(Measurements(("n",), items)) if m.callpath == "saturating")
        assert any(term["factors"] for term in terms(model))  # type: ignore[arg-type]


def test_intervals_from_few_points_are_as_wide_beside_hundreds_of_call_paths() -> None:
    lows = (32.0, 2.0, 10.0)
    lines = {(*lows[:k], lows[k] * 2**step, *lows[k + 1 :]) for k in range(3) for step in range(5)}
    places = sorted({*lines, (64.0, 4.0, 10.0)})
    points = [Point.of(dict(zip("pqr", place, strict=True))) for place in places]
    rng = np.random.default_rng(6)
    exact = [np.array([1 + 1e-3 * p * q**power * r**0.5 for p, q, r in places]) for power in (0.5, 1, 2)]
    noisy = [[tuple(v * rng.normal(1, 0.03, 2)) for v in values] for values in exact]
    items = [
        Measurement(f"f{k}", "time", dict(zip(points, noisy[k % len(noisy)], strict=True)))
        for k in range(300)
    ]
    few, many = (modeler()(Measurements(("p", "q", "r"), tuple(items[:n]))) for n in (3, 300))
    far = [Point.of({"p": 1024, "q": 64, "r": 320})]
    for alone, beside in zip(few, many, strict=False):
        widths = [float(np.log(p.high / p.low)[0]) for p in (m.predict(far) for m in (alone, beside))]
        assert widths[1] > 0.95 * widths[0]
