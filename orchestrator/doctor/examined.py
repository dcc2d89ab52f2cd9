"""A campaign to be examined, with what several checks need: found once, as a space may have many points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from orchestrator.control import execution, planning, shapes
from orchestrator.control.assembly import Assembly
from orchestrator.control.planning import FirstRound
from orchestrator.errors import OrchestratorError
from orchestrator.types import Point, Resources


@dataclass(frozen=True, eq=False)
class Examined:
    """A campaign, and the directory where it is or would be."""

    built: Assembly
    directory: Path

    @cached_property
    def sizes(self) -> dict[Resources, Point]:
        """What runs occupy, each with the first point (or P₊, if it is to be measured) that does."""
        found: dict[Resources, Point] = {}
        for point, resources in shapes.at_points(self.built):
            found.setdefault(resources, point)
        return found

    @cached_property
    def largest(self) -> tuple[Point, Resources]:
        """The run that occupies most cores."""
        resources = max(self.sizes, key=lambda item: item.cores)
        return self.sizes[resources], resources

    @cached_property
    def first_round(self) -> FirstRound | OrchestratorError:
        """The first round, or why there is none."""
        try:
            executor = execution.executor(self.built.campaign, self.directory, 0.0)
            return planning.first_round(self.built, executor)
        except OrchestratorError as error:
            return error
