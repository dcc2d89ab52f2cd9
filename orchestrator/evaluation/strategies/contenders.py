"""The rows of a comparison: strategies, each with its repetitions and its way to model, under a label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from orchestrator import registry
from orchestrator.errors import CampaignError
from orchestrator.strategies.base import Strategy

MAXIMUM_REPETITIONS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A row of a comparison.

    Attributes
    ----------
    label
        Name of the row.
    strategy, options
        The registered strategy and its options.
    repetitions
        Runs of a new point of the starting set (and of every point, for strategies that do not choose
        repetitions themselves).
    oracle
        True where the last model is fitted with the true exponents: the bound on what a better choice of
        hypotheses can reach at the same points.
    whole
        True where the complete matrix is measured, whatever the budget.
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
    Contender(label="full", strategy="full", repetitions=5, whole=True),
    Contender(label="cpf", strategy="cpf", repetitions=4),
    Contender(label="cpf-2", strategy="cpf"),
    Contender(label="gpr", strategy="gpr"),
    Contender(label="gpr-without-gp", strategy="gpr", options={"gp": False}),
    Contender(label="hybrid", strategy="hybrid"),
    Contender(label="bayesian", strategy="bayesian"),
    Contender(label="random", strategy="random"),
    Contender(label="grid", strategy="grid"),
    Contender(label="information", strategy="information", repetitions=1),
    Contender(label="oracle", strategy="cpf", oracle=True),
    Contender(label="oracle-information", strategy="information", repetitions=1, oracle=True),
)
KNOWN: Mapping[str, Contender] = MappingProxyType({contender.label: contender for contender in _KNOWN})
"""By label. CPF has the paper's four repetitions (section II) and, as ``cpf-2``, the two of GPR (section
III-B), so that the number of repetitions can be told apart from the strategy. ``gpr-without-gp`` shows what
the Gaussian process adds."""

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
        found.append(KNOWN.get(label, Contender(label=label, strategy=label)))
    return found
