"""What differs between two campaigns as they stand in the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_UNIT = "stop.unit"
_SHOWN = 80  # characters of a value


def differences(old: Any, new: Any, prefix: str = "") -> list[str]:
    """Return ``key: before -> after`` for every value that differs; keys are dotted.

    The unit in which costs are shown is no rule.
    """
    if prefix == _UNIT:
        return []
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        found = [
            differences(old.get(key), new.get(key), f"{prefix}.{key}" if prefix else key) for key in keys
        ]
        return [text for texts in found for text in texts]
    return [f"{prefix}: {str(old)[:_SHOWN]} -> {str(new)[:_SHOWN]}"]
