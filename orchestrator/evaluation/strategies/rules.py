"""The rules that all contenders of a comparison share, and their campaigns on one bench."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator import registry
from orchestrator.evaluation.strategies.bench import FULL_REPETITIONS, Bench
from orchestrator.evaluation.strategies.contenders import MAXIMUM_REPETITIONS, contenders
from orchestrator.evaluation.strategies.trial import Conditions, Outcome, run_trial
from orchestrator.journal.measurements import ELAPSED
from orchestrator.models import NOTHING, Neighbours
from orchestrator.models.base import Modeler
from orchestrator.models.sums import with_sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of a comparison; they travel to the worker processes.

    Raises
    ------
    CampaignError
        For an unknown strategy.
    """

    # Labels of contenders. Those that measure the whole matrix run once, at 100 %.
    strategies: tuple[str, ...]
    # In percent of the cost of every point with five repetitions, or with as many as may be measured if these
    # are fewer.
    budgets: tuple[float, ...] = (10.0,)
    batch_size: int = 1  # n_b after the starting set
    seed: int = 0  # same seed, same outcomes, however many workers
    model: str = "auto"  # the registered modeler

    def __post_init__(self) -> None:
        contenders(self.strategies)

    def modeler(self, neighbours: Neighbours = NOTHING) -> Modeler:
        """Return the modeler, with what another campaign knows of the call paths."""
        known = {"neighbours": neighbours} if neighbours.items else {}
        return with_sums(registry.load("model", self.model)(**known))


def campaigns(
    rules: Rules,
    bench: Bench,
    *,
    seed: Sequence[int],
    maximum_repetitions: int = MAXIMUM_REPETITIONS,
    oracle: Callable[[], Modeler] | None = None,
    neighbours: Neighbours = NOTHING,
) -> list[Outcome]:
    """Run every contender at every budget on a bench; see `run_trial`.

    ``oracle`` makes the modeler that knows the true exponents. Without one, the contenders that need it are
    fitted like all others. ``neighbours`` are what another campaign knows of the call paths.
    """
    modeler = rules.modeler(neighbours)
    full_cost = bench.full_cost(min(FULL_REPETITIONS, maximum_repetitions))
    names = [parameter.name for parameter in bench.space.parameters]
    outcomes = []
    for contender in contenders(rules.strategies):
        for budget in (100.0,) if contender.whole else rules.budgets:
            outcomes += run_trial(
                bench,
                contender,
                modeler,
                Conditions(
                    budget_percent=budget,
                    full_cost=full_cost,
                    batch_size=rules.batch_size,
                    maximum_repetitions=maximum_repetitions,
                    seed=seed,
                    assumed_costs=neighbours.prices(ELAPSED, names, bench.cores.__getitem__),
                ),
                last=oracle() if contender.oracle and oracle else None,
            )
    return outcomes
