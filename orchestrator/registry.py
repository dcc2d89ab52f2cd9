"""Name -> "module:attribute" for the five kinds of plug-in. Adding a part is one file and one line here.

Attributes are: an executor class, a reader function, a modeler factory, a strategy factory, an
`Application`. Factories take the keyword options of the campaign file.
"""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from orchestrator.errors import CampaignError

TABLES = MappingProxyType(
    {
        "executor": {
            "local": "orchestrator.executors.local.executor:build",
            "slurm": "orchestrator.executors.slurm.executor:build",
            "simulated": "orchestrator.executors.simulated.executor:build",
        },
        "reader": {
            "stdout": "orchestrator.readers.stdout:read",
            "scorep": "orchestrator.readers.scorep:read",
            "time": "orchestrator.readers.time:read",
            "effort": "orchestrator.readers.effort:read",
        },
        "model": {
            "pmnf": "orchestrator.models.pmnf.modeler:modeler",
            "swc": "orchestrator.models.swc.modeler:modeler",
        },
        "strategy": {
            "full": "orchestrator.strategies.full:strategy",
            "cpf": "orchestrator.strategies.cpf:strategy",
            "random": "orchestrator.strategies.random:strategy",
            "grid": "orchestrator.strategies.grid:strategy",
            "gpr": "orchestrator.strategies.gpr:strategy",
            "information": "orchestrator.strategies.information.strategy:strategy",
            "hybrid": "orchestrator.strategies.hybrid:strategy",
            "bayesian": "orchestrator.strategies.bayesian:strategy",
        },
        "application": {
            "amg": "adapters.amg:APPLICATION",
            "hpl": "adapters.hpl:APPLICATION",
            "kripke": "adapters.kripke:APPLICATION",
            "kripke-1.1": "adapters.kripke:APPLICATION_1_1",
            "lammps": "adapters.lammps:APPLICATION",
            "lulesh": "adapters.lulesh:APPLICATION",
            "minife": "adapters.minife:APPLICATION",
            "quicksilver": "adapters.quicksilver:APPLICATION",
            "relearn": "adapters.relearn:APPLICATION",
        },
    }
)


def names(kind: str) -> tuple[str, ...]:
    """Return the registered names of a kind of plug-in, sorted."""
    return tuple(sorted(TABLES[kind]))


def load(kind: str, name: str) -> Any:
    """Import a plug-in by kind and name.

    Raises
    ------
    CampaignError
        For an unknown name, with the closest known one; or when the package ``adapters`` that Python
        finds belongs to another distribution.
    """
    table = TABLES[kind]
    if name not in table:
        close = get_close_matches(name, table, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(table))}"
        raise CampaignError(f"unknown {kind} {name!r}: {hint}")
    module_name, attribute = table[name].split(":")
    if module_name.startswith("adapters."):
        _check_adapters_are_ours()
    return getattr(importlib.import_module(module_name), attribute)


def _check_adapters_are_ours() -> None:
    package = importlib.import_module("adapters")
    origin = Path(package.__file__ or "").parent
    if not getattr(package, "MEASUREMENT_ORCHESTRATOR", False):
        raise CampaignError(
            f"the package 'adapters' imported from {origin} is not ours but another distribution's; "
            "install measurement-orchestrator in an environment of its own"
        )
