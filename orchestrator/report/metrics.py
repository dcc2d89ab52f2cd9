"""What a campaign's metrics mean: their units, and whether more of them is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.models.effort import EFFORT
from orchestrator.readers.inverse import inverse_name, inverse_unit

_SECONDS = ("time", "elapsed")


def described(campaign: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return ``metric`` as modelled, ``unit``, ``better`` and ``inverse_of`` of a campaign's metrics.

    Parameters
    ----------
    campaign
        The normalised campaign file.
    """
    return [_described(item) for item in (campaign.get("measure") or {}).get("metrics") or ()]


def _described(item: str | Mapping[str, Any]) -> dict[str, Any]:
    given = {"name": item} if isinstance(item, str) else item
    name, better = str(given["name"]), given.get("better", "lower")
    unit = str(given.get("unit") or ("s" if name in _SECONDS else ""))
    if given.get("model") != "inverse":
        return {"metric": name, "unit": unit, "better": better, "inverse_of": None}
    opposite = {"lower": "higher", "higher": "lower"}[better]
    return {
        "metric": inverse_name(name),
        "unit": inverse_unit(unit),
        "better": opposite,
        "inverse_of": name,
    }


def wanted_of(models: Sequence[dict[str, Any]], metrics: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the models to show: without those of counts that no one asked for, unless there are no others.

    Parameters
    ----------
    models
        From `models_document.describe`.
    metrics
        From `described`. Effort runs have counts that are named there if and only if they were asked for.
    """
    asked = {item["metric"] for item in metrics}
    return [m for m in models if m["metric"] in asked or m["metric"] not in EFFORT] or list(models)


def units(metrics: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the unit of every metric that has one."""
    return {item["metric"]: item["unit"] for item in metrics if item["unit"]}


def with_unit(metric: str, known: Mapping[str, str] | None = None) -> str:
    """Return a metric with the unit of its values, as tables name it: ``time / s``.

    Parameters
    ----------
    metric
        Its name.
    known
        From `units`; of metrics that it lacks, only times have a unit.
    """
    unit = (known or {}).get(metric, "s" if metric in _SECONDS else "")
    return f"{metric} / {unit}" if unit else metric


def meanings(metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line that says what the metrics mean; none where all are plain times or counts."""
    special = [item for item in metrics if item["unit"] not in ("", "s") or item["better"] == "higher"]
    special += [item for item in metrics if item["inverse_of"] and item not in special]
    if not special:
        return []
    texts = [
        item["metric"] + (f" in {item['unit']}" if item["unit"] else "") + f" ({item['better']} is better)"
        for item in special
    ]
    return [f"metrics: {'; '.join(texts)}"]
