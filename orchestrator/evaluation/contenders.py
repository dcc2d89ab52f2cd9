"""What is compared: strategies, each with its repetitions and its way to model, under a label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from orchestrator import registry
from orchestrator.errors import CampaignError
from orchestrator.strategies.base import Strategy

MAXIMUM_REPETITIONS = 10


@dataclass(frozen=True, slots=True)
class Contender:
    """A row of a comparison.

    Attributes
    ----------
    label
        How the row is called.
    strategy, options
        The registered strategy and its options.
    repetitions
        Runs of a new point of the starting set (and of every point, for strategies that do not choose
        repetitions themselves).
    oracle
        True where the last model is fitted by one who is told the true exponents: the bound on what can be
        reached at the same points by choosing hypotheses better.
    whole
        True where only the complete matrix makes sense, whatever the budget.
    """

    label: str
    strategy: str
    repetitions: int = 2
    options: Mapping[str, Any] = field(default_factory=dict)
    oracle: bool = False
    whole: bool = False

    def build(self) -> Strategy:
        """Return the strategy."""
        built: Strategy = registry.load("strategy", self.strategy)(**self.options)
        return built


_KNOWN = (
    Contender("full", "full", repetitions=5, whole=True),
    Contender("cpf", "cpf", repetitions=4),
    Contender("cpf-2", "cpf"),
    Contender("gpr", "gpr"),
    Contender("gpr-without-gp", "gpr", options={"gp": False}),
    Contender("hybrid", "hybrid"),
    Contender("bayesian", "bayesian"),
    Contender("random", "random"),
    Contender("grid", "grid"),
    Contender("information", "information", repetitions=1),
    Contender("oracle", "cpf", oracle=True),
    Contender("oracle-information", "information", repetitions=1, oracle=True),
)
KNOWN: Mapping[str, Contender] = MappingProxyType({contender.label: contender for contender in _KNOWN})
"""By label. CPF has the paper's four repetitions (section II) and, as ``cpf-2``, the two of GPR (section
III-B): what separates those two rows is no merit of a strategy. ``gpr-without-gp`` shows what the process
adds."""

STANDARD = tuple(KNOWN)
REPLAYED = tuple(label for label, contender in KNOWN.items() if not contender.oracle)


def contenders(labels: Sequence[str]) -> list[Contender]:
    """Return contenders by label; other names of registered strategies get two repetitions.

    Raises
    ------
    CampaignError
        For a name that is neither.
    """
    found = []
    for label in labels:
        if label not in KNOWN and label not in registry.names("strategy"):
            known = ", ".join(sorted({*KNOWN, *registry.names("strategy")}))
            raise CampaignError(f"unknown strategy {label!r} to evaluate: known are {known}")
        found.append(KNOWN.get(label, Contender(label, label)))
    return found
