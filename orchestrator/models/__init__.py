"""Models of measured metrics: what all families share, and a package per family.

Packages beside this one import no family (`pmnf`, `swc`, ...): the registry has its modeler. What else they
need of one family is offered here by name, and imported only when it is used.

- Contract: `base`, with the `belief` of a model in its own predictions, `intervals`, and `symbolic` for
  models that are sums of terms.
- Before a fit: `data` as arrays, `noise` of repetitions and `shared_noise`, `effort` and `callpaths` of
  counts, `processes`, `thinning` of many points.
- Families from others: `selection` is ``auto``; `formulas` chooses between formulas and curves; `groupwise`
  and `refits` are what several families share; models `around` others: `factored` laws, `exponential`
  parameters; `zero`.
- After a fit: call paths as `sums` of others (`summed`), `consistency` of models, what is `unseen` or
  `unvaried`; `uncertainty`, `costs` and `scaling` from predictions; `comparison` of two sets of measurements.
- `mpi_costs` in theory. `progress`, `spread`, `compiling`, `machine_code` and `blas` are technical.
"""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.models.pmnf.hypotheses import LOGARITHMIC as LOGARITHMIC
    from orchestrator.models.pmnf.hypotheses import PAPER as PAPER
    from orchestrator.models.pmnf.hypotheses import POLYNOMIAL as POLYNOMIAL
    from orchestrator.models.pmnf.known_form import known_form as known_form
    from orchestrator.models.pmnf.modeler import of_measurements as of_measurements
    from orchestrator.models.pmnf.neighbours import NOTHING as NOTHING
    from orchestrator.models.pmnf.neighbours import Neighbour as Neighbour
    from orchestrator.models.pmnf.neighbours import Neighbours as Neighbours
    from orchestrator.models.speedup.family import speedup_learner as speedup_learner
    from orchestrator.models.swc.combination import Priors as Priors
    from orchestrator.models.swc.combination import with_prior as with_prior
    from orchestrator.models.swc.count_check import check_counts as check_counts
    from orchestrator.models.swc.skeleton import skeletons as skeletons
    from orchestrator.models.swc.times import locate_times as locate_times
    from orchestrator.models.swc.waiting import Explained as Explained
    from orchestrator.models.swc.waiting import explained as explained

_OFFERED = MappingProxyType(
    {
        "LOGARITHMIC": "orchestrator.models.pmnf.hypotheses",
        "PAPER": "orchestrator.models.pmnf.hypotheses",
        "POLYNOMIAL": "orchestrator.models.pmnf.hypotheses",
        "known_form": "orchestrator.models.pmnf.known_form",
        "of_measurements": "orchestrator.models.pmnf.modeler",
        "NOTHING": "orchestrator.models.pmnf.neighbours",
        "Neighbour": "orchestrator.models.pmnf.neighbours",
        "Neighbours": "orchestrator.models.pmnf.neighbours",
        "speedup_learner": "orchestrator.models.speedup.family",
        "Priors": "orchestrator.models.swc.combination",
        "with_prior": "orchestrator.models.swc.combination",
        "check_counts": "orchestrator.models.swc.count_check",
        "skeletons": "orchestrator.models.swc.skeleton",
        "locate_times": "orchestrator.models.swc.times",
        "Explained": "orchestrator.models.swc.waiting",
        "explained": "orchestrator.models.swc.waiting",
    }
)
"""Offered name -> the module that defines it."""


def __getattr__(name: str) -> object:
    if name not in _OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_OFFERED[name]), name)
