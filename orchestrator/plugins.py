"""The executor, the strategy and the modeler that a campaign names, each with its options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orchestrator import registry, simulation
from orchestrator.campaign import Campaign
from orchestrator.errors import CampaignError
from orchestrator.executors.base import Executor, ExecutorContext, Truth
from orchestrator.models.base import Modeler
from orchestrator.readers import load as measured_files
from orchestrator.strategies.base import Strategy


def executor(campaign: Campaign, directory: Path, start: float) -> Executor:
    """Build the campaign's executor; ``start`` is the first instant of a virtual clock (Unix seconds)."""
    options = campaign.executor.model_dump()
    context = ExecutorContext(directory, options, campaign.seed, start, _truth(campaign))
    built: Executor = registry.load("executor", campaign.executor.name)(context)
    return built


def _truth(campaign: Campaign) -> Truth | None:
    options = campaign.executor
    if options.name != "simulated":
        return None
    if options.dataset is not None:
        return simulation.replayed(measured_files.load([Path(options.dataset)]))
    if options.truth:
        functions = {path: campaign.expression(text) for path, text in options.truth.items()}
        return simulation.stated(functions, campaign.values, options.noise)
    return None


def strategy(campaign: Campaign) -> Strategy:
    """Return the campaign's strategy with its options.

    Raises
    ------
    CampaignError
        For an option that the strategy does not have.
    """
    chosen = campaign.strategy
    built: Strategy = _with_options("strategy", chosen.name, chosen.options)
    return built


def modeler(campaign: Campaign) -> Modeler:
    """Return the campaign's modeler with its options; raises like `strategy`."""
    chosen = campaign.model
    built: Modeler = _with_options("model", chosen.name, chosen.options)
    return built


def _with_options(kind: str, name: str, options: dict[str, Any]) -> Any:
    try:
        return registry.load(kind, name)(**options)
    except (TypeError, ValueError) as error:
        raise CampaignError(f"{kind} {name!r}: {error}") from error
