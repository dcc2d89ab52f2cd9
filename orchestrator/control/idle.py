"""Parameters that reach nothing: their values would be measured, and ranked, as if they made a difference."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.campaign.definition import RESOURCES, Campaign
from orchestrator.campaign.derivation import names_in
from orchestrator.campaign.schema import VARIANT, ProgramSection, SimulatedOptions
from orchestrator.launch import generic
from orchestrator.types import Point

_MOST_POINTS = 20_000  # that are looked at for two that differ only in what reaches nothing
_WHERE = ("PWD", "pwd", "ORCHESTRATOR_ATTEMPT")  # the directory of a run, whose name has its point


def idle(campaign: Campaign) -> list[str]:
    """Return which parameters change nothing in what a run executes; none where that is not certain.

    Only of a program that the campaign file describes is known what it is given. What is called like a
    resource is left to `orchestrator.control.cautions.mere_names`.
    """
    program = campaign.program
    if program is None or isinstance(campaign.executor, SimulatedOptions) or _knows_its_place(campaign):
        return []
    reaching = _reaching(campaign, program)
    beside = [item.name for item in campaign.parameters if item.name not in reaching]
    several = [item.name for item in campaign.parameters if len(item.values) > 1 and item.name in beside]
    suspects = [name for name in several if name not in RESOURCES]
    free = _free(campaign, program, suspects)
    if coupled := set(suspects) - free:
        free |= coupled & _varying_alone(campaign.space.some(_MOST_POINTS, 0), beside)
    remedy = "program.arguments, files or environment" if campaign.template is None else "the template"
    return [
        f"parameter {name} changes nothing in what a run executes: write "
        f"{f'{{{name}}}' if campaign.template is None else f'{{{{{name}}}}}'} in {remedy}, or remove it"
        for name in suspects
        if name in free
    ]


def _knows_its_place(campaign: Campaign) -> bool:
    """Whether shell text of the user's may take values from the name of the run's directory."""
    texts = [*campaign.executor.prologue, *campaign.executor.epilogue]
    if campaign.launch is not None:
        texts += [campaign.launch.before, campaign.launch.command, campaign.launch.after]
    return any(word in text for text in texts for word in _WHERE)


def _reaching(campaign: Campaign, program: ProgramSection) -> frozenset[str]:
    """Return the names that decide what a run executes or occupies, and those that these follow from."""
    used = {VARIANT, *occupying(campaign, program)}
    for text in (*program.arguments, *program.files.values(), *program.environment.values()):
        used |= {name for found in generic.placeholders(text) for name in names_in(found)}
    if campaign.launch is not None:
        used |= campaign.launch.names()
    return campaign.derivation.with_sources(used)


def occupying(campaign: Campaign, program: ProgramSection) -> frozenset[str]:
    """Return the names that decide what a run occupies, and those that these follow from."""
    stated = frozenset().union(*(item.names for item in campaign.requested.values()))
    return campaign.derivation.with_sources(stated | names_in(program.ranks) | names_in(program.threads))


def _free(campaign: Campaign, program: ProgramSection, names: Iterable[str]) -> set[str]:
    """Return the names that no condition ties to others: at every point they have all their values."""
    conditions = [
        names_in(text) - campaign.settings.keys() for text in (*campaign.constraints, *program.check)
    ]
    return {name for name in names if not any(name in found and len(found) > 1 for found in conditions)}


def _varying_alone(points: Iterable[Point], names: Iterable[str]) -> set[str]:
    """Return the names in which two points differ that have the same values of all others.

    Where an equation ties a value to the others, as in ``x * y == p``, there are no such points.
    """
    beside = frozenset(names)
    first: dict[tuple[object, ...], Point] = {}
    varying: set[str] = set()
    for point in points:
        key = tuple(value for name, value in point.items if name not in beside)
        other = first.setdefault(key, point)
        varying |= {name for name in beside if point[name] != other[name]}
        if varying == beside:
            break
    return varying
