"""What a campaign took from others when it began: its copy, so that the others may change or vanish."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from orchestrator.errors import CampaignError
from orchestrator.types import Measurement, Measurements, Point

if TYPE_CHECKING:
    from orchestrator.models import Neighbours

FILE_NAME = "priors.json"
"""Of the copy in the campaign directory."""

_VERSION = 1


@dataclass(frozen=True)
class Learned:
    """What was taken from other campaigns."""

    text: str  # the copy, as it is in the campaign directory: JSON

    @property
    def digest(self) -> str:
        """SHA-256 of the copy."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def document(self) -> dict[str, Any]:
        """The parsed copy.

        Raises
        ------
        CampaignError
            If it is no copy that this version can read.
        """
        try:
            document = json.loads(self.text)
            if document["version"] == _VERSION:
                return dict(document)
        except (ValueError, KeyError, TypeError):
            pass
        raise CampaignError(f"{FILE_NAME} is damaged or of another version: restore it from a backup")

    @cached_property
    def neighbours(self) -> Neighbours:
        """What the modelers take; raises `CampaignError` as `document`."""
        from orchestrator.models import Neighbour, Neighbours  # the normal form brings a compiler

        try:
            items = tuple(
                Neighbour.read(model, entry["name"])
                for entry in self.document["campaigns"]
                for model in entry["models"]
            )
            counted = [entry["effort"] for entry in self.document["campaigns"] if entry["effort"]]
            return Neighbours(items, _measurements(counted[0]) if counted else None)
        except (ValueError, KeyError, TypeError, IndexError):
            raise CampaignError(f"{FILE_NAME} is damaged: restore it from a backup") from None

    def summary(self) -> dict[str, Any]:
        """Return what the journal keeps: the digest, and name, path and number of models of each."""
        campaigns = [
            {key: entry[key] for key in ("name", "path", "id", "parameters")}
            | {"models": len(entry["models"]), "effort": bool(entry["effort"])}
            for entry in self.document["campaigns"]
        ]
        return {"sha256": self.digest, "campaigns": campaigns}


def learned(campaigns: list[dict[str, Any]]) -> Learned:
    """Return the copy of what `entry` made of each campaign."""
    return Learned(json.dumps({"version": _VERSION, "campaigns": campaigns}, indent=1) + "\n")


def entry(
    name: str, path: str, identity: str, known: Neighbours, counts: Measurements, parameters: tuple[str, ...]
) -> dict[str, Any]:
    """Return what is kept of one campaign, JSON-ready.

    Parameters
    ----------
    name, path, identity
        Of the campaign.
    known
        Its models.
    counts
        Its effort, empty where none was counted.
    parameters
        What it varied.
    """
    return {
        "name": name,
        "path": path,
        "id": identity,
        "parameters": list(parameters),
        "models": [item.document() for item in known.items],
        "effort": _document(counts) if counts.items else None,
    }


def _document(known: Measurements) -> dict[str, Any]:
    items = [
        {
            "callpath": item.callpath,
            "metric": item.metric,
            "values": [[[value for _, value in point.items], list(v)] for point, v in item.values.items()],
        }
        for item in known.items
    ]
    return {
        "parameters": list(known.parameters),
        "categorical": sorted(known.categorical),
        "items": items,
    }


def _measurements(document: Mapping[str, Any]) -> Measurements:
    names = tuple(map(str, document["parameters"]))
    items = tuple(
        Measurement(
            item["callpath"],
            item["metric"],
            {Point(tuple(zip(names, point, strict=True))): tuple(values) for point, values in item["values"]},
        )
        for item in document["items"]
    )
    return Measurements(names, items, frozenset(document["categorical"]))
