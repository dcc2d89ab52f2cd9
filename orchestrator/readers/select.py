"""Which of a run's samples become the measured values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from orchestrator.errors import ReadError
from orchestrator.types import Sample, by_callpath

# What to take instead of a missing aggregate, the nearest first. "value" is the only
# number that the application gives, so it stands for every aggregate.
NEAREST = MappingProxyType(
    {
        "value": ("mean", "max", "sum", "min"),
        "mean": ("value", "max", "min", "sum"),
        "max": ("value", "mean", "sum", "min"),
        "min": ("value", "mean", "max", "sum"),
        "sum": ("value", "mean", "max", "min"),
    }
)


def select(
    samples: Sequence[Sample], metrics: Collection[str] | None, aggregate: str
) -> dict[tuple[str, str], float]:
    """Reduce the samples of one run to one value per (call path, metric).

    Parameters
    ----------
    samples
        All samples of the run.
    metrics
        The wanted metrics; None for all that are there.
    aggregate
        ``mean``, ``max``, ``min``, ``sum`` or ``value``. Where a call path has no such value, the
        nearest other one is taken: `NEAREST`.

    Raises
    ------
    ReadError
        When a wanted metric is missing altogether, naming those that are there; for an unknown aggregate.
    """
    if aggregate not in NEAREST:
        raise ReadError(f"unknown aggregate {aggregate!r}: known are {', '.join(NEAREST)}")
    there = dict.fromkeys(sample.metric for sample in samples)
    missing = [metric for metric in metrics or () if metric not in there]
    if missing:
        raise ReadError(
            f"no samples of metric {', '.join(missing)}; this run has {', '.join(there) or 'none at all'}"
        )
    wanted = there if metrics is None else metrics
    groups = by_callpath(sample for sample in samples if sample.metric in wanted)
    return {key: _value(group, aggregate) for key, group in groups.items()}


def _value(group: Sequence[Sample], aggregate: str) -> float:
    values: Mapping[str, float] = {sample.aggregate: sample.value for sample in group}
    order = (aggregate, *NEAREST[aggregate])
    return values[next((name for name in order if name in values), group[0].aggregate)]
