"""Options of the search for hypotheses, checked: all modelers that search have the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from orchestrator.errors import ModelError
from orchestrator.models.base import one_of
from orchestrator.models.data import Group
from orchestrator.models.noise import AGGREGATES, Located
from orchestrator.models.pmnf.hypotheses import Exponents, exponent_set
from orchestrator.models.pmnf.neighbours import NOTHING, Neighbours, informed

# How far exact values are from formulas that do not explain them, as a guess. Were it nothing, those of
# thousands of formulas would count that go through a few values by chance. Chosen by hand; not derived.
_SCATTER = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to search; see `orchestrator.models.pmnf.modeler.modeler`.

    ``negative`` is ``true``, ``false`` or ``auto``. ``extends``: the exponents are a named set, which higher
    ones and falling ones are added to where values ask for them.
    """

    exponents: tuple[Exponents, ...]
    negative: str
    aggregate: str
    members: int
    wide: bool
    extends: bool
    neighbours: Neighbours
    # How far values are from formulas, as a guess in place of their noise; None to take their noise.
    scatter: float | None = None

    @classmethod
    def checked(
        cls,
        *,
        exponents: str | Iterable[Sequence[float]],
        negative_exponents: str | bool,
        aggregate: str,
        members: int,
        wide: bool,
        neighbours: Neighbours,
    ) -> Self:
        """Return options as users write them; raises ``ModelError`` for one that makes no sense."""
        if not isinstance(neighbours, Neighbours):
            raise ModelError("neighbours is no option to be written: name campaigns under priors.campaigns")
        options = cls(
            exponents=exponent_set(exponents),
            negative=str(negative_exponents).lower(),
            aggregate=aggregate,
            members=members,
            wide=wide,
            extends=isinstance(exponents, str),
            neighbours=neighbours,
        )
        if options.negative not in ("auto", "true", "false"):
            raise ModelError(f"negative_exponents is {negative_exponents!r}: use true, false or auto")
        one_of("aggregate", aggregate, AGGREGATES)
        if members < 1:
            raise ModelError(f"members is {members}: a model needs at least one hypothesis")
        return options

    def of_rest(self) -> Self:
        """Return the options for exact values without their laws, of which other campaigns know nothing."""
        return replace(self, neighbours=NOTHING, scatter=_SCATTER)

    def informed(self, groups: Sequence[Group], located: Sequence[Located]) -> Sequence[Located]:
        """Return locations with what is known of the noise besides the values."""
        if self.scatter is not None:
            return [item.guessed(self.scatter) for item in located]
        return informed(groups, located, self.neighbours)
