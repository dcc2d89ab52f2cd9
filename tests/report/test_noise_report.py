"""The noise report: ranges of deviation that can be worked out by hand."""

from __future__ import annotations

import pytest

from orchestrator.errors import ModelError
from orchestrator.report import figures, noise_report
from orchestrator.types import Measurement, Measurements, Point


def measured() -> Measurements:
    """The mean of 9 and 11 is 10: deviations of -10 and 10 %, a range of 20 %."""
    main = {Point.of(p=1): (9.0, 11.0), Point.of(p=2): (19.9, 20.1, 20.0), Point.of(p=4): (40.0,)}
    small = {Point.of(p=1): (0.01, 0.09), Point.of(p=2): (0.01, 0.02)}
    once = {Point.of(p=1): (5.0,), Point.of(p=2): (9.0,)}
    items = (Measurement("main", "time", main), Measurement("io", "time", small))
    return Measurements(("p",), (*items, Measurement("solve", "time", once)))


def test_the_noise_of_a_point_is_the_range_of_relative_deviations() -> None:
    found = noise_report.noise_report(measured())
    document = noise_report.document(found)
    [main] = document["kernels"]
    assert [row["range"] for row in main["points"]] == pytest.approx([20.0, 1.0])
    assert (main["mean"], main["median"], main["least"], main["most"]) == pytest.approx(
        (10.5, 10.5, 1.0, 20.0)
    )
    # Squares 2 * 10**2 of one degree of freedom and 2 * 0.5**2 of two.
    assert main["deviation"] == pytest.approx((200.5 / 3) ** 0.5)
    assert document["notes"] == [
        "left out: 1 call path below 1 % of the time",
        "left out: 1 call path, measured once at every point",
    ]
    assert figures.png(noise_report.violins(found)).startswith(b"\x89PNG")


def test_small_call_paths_count_where_that_is_wanted() -> None:
    found = noise_report.noise_report(measured(), share=0.0)
    assert [kernel.name for kernel in found.kernels] == ["main", "io"]
    assert len(found.levels) == 4 and found.levels.max() == pytest.approx(160.0)


def test_without_repetitions_there_is_no_noise_to_see() -> None:
    once = Measurement("main", "time", {Point.of(p=p): (1.0 * p,) for p in (1, 2, 4)})
    with pytest.raises(ModelError, match="only where runs are repeated"):
        noise_report.noise_report(Measurements(("p",), (once,)))
