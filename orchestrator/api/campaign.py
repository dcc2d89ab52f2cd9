"""A campaign directory as tables and objects; it is only read, also while a controller is running."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.api import arguments
from orchestrator.api.fitted import Models
from orchestrator.api.temporary import Temporary
from orchestrator.control import assembly, existing, overview, runtime
from orchestrator.journal.measurements import measurements
from orchestrator.journal.state import State
from orchestrator.types import Measurements

if TYPE_CHECKING:
    import pandas as pd

_RUN_COLUMNS = ("kind", "repetition", "status", "attempts", "elapsed", "core_hours", "node", "reason")


def load(directory: str | os.PathLike[str]) -> Campaign:
    """Open the campaign that a directory holds, finished or running.

    Raises
    ------
    JournalError
        If the directory holds no readable campaign.
    CampaignError
        For what is no path.
    """
    return Campaign(arguments.path(directory, "directory"))


class Campaign:
    """A campaign as its journal described it when it was read; `refresh` reads it again.

    Attributes
    ----------
    directory
        The campaign directory.
    """

    def __init__(self, directory: Path, kept: Temporary | None = None):
        self.directory = directory
        self._kept = kept  # a rehearsal's directory exists as long as this object
        self.refresh()

    def refresh(self) -> Campaign:
        """Read the directory again; return the same object."""
        self._rules = existing.load(self.directory)
        self._state, self._controller = overview.seen(self.directory)
        self._forget()
        return self

    def _forget(self) -> None:
        for name in ("_known", "measurements", "runs", "models", "status"):
            self.__dict__.pop(name, None)

    def __reduce__(self) -> tuple[type[Campaign], tuple[Path]]:
        """Pickle the directory only: the campaign is read again from it, as `load` does."""
        return type(self), (self.directory.absolute(),)

    def __copy__(self) -> Campaign:
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Campaign:
        """Copy the campaign as it was read; a rehearsal's directory exists as long as either object."""
        copied = self.__copy__()
        copied._forget()
        return copied

    @property
    def name(self) -> str:
        """The campaign's name."""
        return str(self._state.campaign["name"])

    @cached_property
    def measurements(self) -> pd.DataFrame:
        """A row per value: parameters, ``callpath``, ``metric``, ``repetition``, ``value`` (times: seconds).

        The validation run is not among them: models are never fitted to it.
        """
        from orchestrator.api import frames

        return frames.to_frame(self._known)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row per run that was proposed.

        ``run`` (its id), the parameters, ``kind`` (time or effort), ``repetition``, ``status``, ``attempts``,
        ``elapsed`` (seconds of the accepted attempt), ``core_hours`` (of all attempts), ``node``, and the
        ``reason`` why it failed, was skipped, given up or discarded.
        """
        return _runs(self._state, [item.name for item in self._rules.parameters])

    @cached_property
    def models(self) -> Models:
        """The models of everything that was measured; empty while too little was."""
        fitted = runtime.fit(assembly.modeler(self._rules), self._known)
        return Models(self._known, fitted)

    @cached_property
    def status(self) -> Status:
        """Where the campaign stands."""
        return Status(
            overview.status_in(self.directory, (self._state, self._controller), fit=True), self.directory
        )

    @cached_property
    def _known(self) -> Measurements:
        return measurements(self._state, self._rules.parameters)

    def __repr__(self) -> str:
        return repr(self.status)

    def _repr_html_(self) -> str:
        return self.status._repr_html_()


class Status(Mapping[str, Any]):
    """What ``orchestrator status --json`` prints, by key; as text what ``orchestrator status`` prints."""

    def __init__(self, document: Mapping[str, Any], directory: Path | None = None):
        self._document = document
        self._directory = directory

    @property
    def state(self) -> str:
        """``not started``, ``running``, ``paused``, ``stopping`` or ``stopped``."""
        return str(self["state"])

    def __getitem__(self, key: str) -> Any:
        return self._document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)

    def __repr__(self) -> str:
        from orchestrator.report import status_text

        return status_text.plain_text(self._document, self._directory)

    def _repr_html_(self) -> str:
        from orchestrator.report import html_sections

        return html_sections.status_section(self)


def _runs(state: State, parameters: list[str]) -> pd.DataFrame:
    import pandas as pd

    from orchestrator.report import runs_table

    rows = [
        (row["run"], *(row["point"][name] for name in parameters), *(row[name] for name in _RUN_COLUMNS))
        for row in runs_table.rows(state)
    ]
    return pd.DataFrame(rows, columns=["run", *parameters, *_RUN_COLUMNS]).astype({"elapsed": float})
