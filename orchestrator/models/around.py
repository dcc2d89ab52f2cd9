"""What models around another model have in common: what they do not change is that of the other one."""

from __future__ import annotations

from typing import Protocol

from orchestrator.models.base import Category, Model
from orchestrator.models.intervals import FromPredictive


class _Around(Protocol):
    @property
    def model(self) -> Model: ...


class Around(FromPredictive):
    """Base of models with a ``model`` whose call path, category and fit are theirs."""

    __slots__ = ()

    @property
    def callpath(self: _Around) -> str:  # noqa: D102
        return self.model.callpath

    @property
    def metric(self: _Around) -> str:  # noqa: D102
        return self.model.metric

    @property
    def category(self: _Around) -> Category:
        """That of the model."""
        return self.model.category

    @property
    def noise(self: _Around) -> float:
        """That of the model."""
        return self.model.noise

    @property
    def smape(self: _Around) -> float:
        """That of the model."""
        return self.model.smape
