"""Autonomous measurement orchestrator for HPC performance models.

What ``__all__`` names is the public interface, described in ``docs/python.md``. Every other module is
internal. Each name is imported when it is first used, so that ``import orchestrator`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from orchestrator.api.campaign import Campaign, Status, load
    from orchestrator.api.compare import compare
    from orchestrator.api.fit import fit
    from orchestrator.api.fitted import FittedModel, Models
    from orchestrator.api.inputs import read
    from orchestrator.api.running import run, simulate
    from orchestrator.api.speedup import Speedup
    from orchestrator.api.suggest import suggest
    from orchestrator.errors import (
        CampaignError,
        ExecutorError,
        JournalError,
        MeasurementError,
        ModelError,
        OrchestratorError,
        PluginError,
        ReadError,
    )

__all__ = [
    "Campaign",
    "CampaignError",
    "ExecutorError",
    "FittedModel",
    "JournalError",
    "MeasurementError",
    "ModelError",
    "Models",
    "OrchestratorError",
    "PluginError",
    "ReadError",
    "Speedup",
    "Status",
    "__version__",
    "compare",
    "fit",
    "load",
    "read",
    "run",
    "simulate",
    "suggest",
]

_ERRORS = "orchestrator.errors"
_HOME = {
    "Campaign": "orchestrator.api.campaign",
    "CampaignError": _ERRORS,
    "ExecutorError": _ERRORS,
    "FittedModel": "orchestrator.api.fitted",
    "JournalError": _ERRORS,
    "MeasurementError": _ERRORS,
    "ModelError": _ERRORS,
    "Models": "orchestrator.api.fitted",
    "OrchestratorError": _ERRORS,
    "PluginError": _ERRORS,
    "ReadError": _ERRORS,
    "Speedup": "orchestrator.api.speedup",
    "Status": "orchestrator.api.campaign",
    "compare": "orchestrator.api.compare",
    "fit": "orchestrator.api.fit",
    "load": "orchestrator.api.campaign",
    "read": "orchestrator.api.inputs",
    "run": "orchestrator.api.running",
    "simulate": "orchestrator.api.running",
    "suggest": "orchestrator.api.suggest",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
