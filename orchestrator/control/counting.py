"""Which parameters of a campaign count processes: those whose product is what its runs occupy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, islice, product

from orchestrator.campaign.definition import Campaign
from orchestrator.errors import CampaignError, ModelError, OrchestratorError
from orchestrator.models import processes
from orchestrator.models.processes import Processes
from orchestrator.models.scaling import Study
from orchestrator.types import Measurements, Parameter, Point

# Combinations of values that are looked at, and parameters whose product is tried.
_LOOKED_AT, _MOST = 256, 3


def counting(campaign: Campaign) -> Processes | None:
    """Return the parameters whose product is proportional to ranks times threads of a run.

    Where there are none, names decide; None where these do not tell.
    """
    numeric = [item for item in campaign.parameters if not item.categorical]
    occupied = list(_occupied(campaign))
    for number in range(1, min(_MOST, len(numeric)) + 1):
        for names in combinations([item.name for item in numeric], number):
            if _proportional(occupied, names):
                return processes.found([item.name for item in numeric], names)
    try:
        return processes.found([item.name for item in numeric])
    except ModelError:
        return None


def for_model(campaign: Campaign) -> Processes:
    """Return what counts processes for a model that needs it: by its option ``processes``, or `counting`.

    Raises
    ------
    CampaignError
        Where nothing tells, and where all runs would have the same number of them, before runs are spent on
        a model that cannot be.
    """
    named = campaign.model.options.get("processes", "auto")
    numeric = {item.name: len(item.values) for item in campaign.parameters if not item.categorical}
    try:
        found = (counting(campaign) if named == "auto" else None) or processes.required(list(numeric), named)
    except ModelError as error:
        raise CampaignError(f"model {campaign.model.name}: {error}") from error
    if all(numeric[name] == 1 for name in found.names):
        raise CampaignError(
            f"model {campaign.model.name}: every run would have the same number of processes ({found.text}), "
            "but a speedup needs two or more: give more values, or choose another model"
        )
    return found


def study(campaign: Campaign, known: Measurements) -> Study | None:
    """Return how the runs of a campaign on different numbers of processes are compared; None if they cannot.

    The options ``processes`` and ``scaling`` of the campaign's model count, where it has them.
    """
    options = campaign.model.options if campaign.model.name == "speedup" else {}
    numeric = [item.name for item in campaign.parameters if not item.categorical]
    try:
        named = options.get("processes", "auto")
        found = counting(campaign) if named == "auto" else processes.required(numeric, named)
        scaling = options.get("scaling", "auto")
        return None if found is None else Study.of(known, found, "weak" if scaling == "weak" else "auto")
    except ModelError:
        return None


def _occupied(campaign: Campaign) -> Iterator[tuple[Point, float]]:
    """Yield points with ranks times threads of a run there, where a run is possible."""
    some = product(*(_some(item) for item in campaign.parameters))
    for values in islice(some, _LOOKED_AT):
        point = Point(tuple(zip((item.name for item in campaign.parameters), values, strict=True)))
        try:
            settings = campaign.values(point)
            spec = campaign.application_spec
            yield point, float(spec.ranks(settings) * spec.threads(settings))
        except (OrchestratorError, ValueError, ArithmeticError, KeyError):
            continue


def _some(item: Parameter) -> tuple[int | float | str, ...]:
    return tuple(dict.fromkeys((item.values[0], *item.values[1:3], item.values[-1])))


def _proportional(occupied: list[tuple[Point, float]], names: tuple[str, ...]) -> bool:
    ratios = []
    for point, number in occupied:
        total = math.prod(map(point.number, names))
        if not total > 0:
            return False
        ratios.append(number / total)
    several = len({number for _, number in occupied}) > 1
    return several and max(ratios) - min(ratios) <= 1e-9 * max(ratios)
