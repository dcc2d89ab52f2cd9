"""Follow a journal while it grows: only what was added is read, and nothing is locked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orchestrator.errors import JournalError
from orchestrator.journal import events
from orchestrator.journal.file import FILE_NAME, Entry, TornLine, decode
from orchestrator.journal.state import State, replay
from orchestrator.report import controller

# After these, models may be different ones.
_MILESTONES = (
    events.RoundCompleted,
    events.CampaignChanged,
    events.CampaignStopped,
    events.RereadCompleted,
)


class FollowedJournal:
    """The state of a campaign as of the last complete line of its journal.

    Attributes
    ----------
    state, history
        What the lines so far say about the campaign, and about its controllers.
    offset
        Where the next line begins, in bytes: the version of the state.
    milestone
        The offset after the last event that may have changed the models.
    """

    def __init__(self, directory: Path):
        self.path = directory / FILE_NAME
        self._begin((0, 0))

    def _begin(self, identity: tuple[int, int]) -> None:
        self._identity = identity
        self._damage: tuple[int, JournalError] | None = None  # found at which size
        self.state = State()
        self.history = controller.ControllerHistory()
        self.offset = 0
        self.milestone = 0
        self._lines = 0

    def advance(self) -> bool:
        """Read what was added since the last call; return whether the state is another one.

        A journal that was replaced or cut (restored from a backup, say) is read from its start. One that is
        damaged is not read again before it changes.

        Raises
        ------
        JournalError
            If the file cannot be read, or a line before the last is damaged or out of sequence.
        """
        before = self._identity, self.offset
        try:
            found = self.path.stat()
            identity = found.st_dev, found.st_ino
            if self._damage is not None and identity == self._identity and found.st_size == self._damage[0]:
                raise self._damage[1]
            if identity != self._identity or found.st_size < self.offset or self._damage is not None:
                self._begin(identity)
            if found.st_size > self.offset:
                self.state = replay(self.history.observe(self._added()), self.state)
        except OSError as error:
            raise JournalError(f"cannot read the journal {self.path}: {error.strerror}") from error
        except ValueError as error:  # a line that is no entry, or an event that cannot follow the state
            damage = JournalError(f"{self.path}, line {self._lines + 1}: {error}")
            self._begin(identity)
            self._damage = found.st_size, damage
            raise damage from error
        return (self._identity, self.offset) != before

    def _added(self) -> Iterator[Entry]:
        """Yield the entries of the complete lines after the offset, and move the offset behind them."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            torn: TornLine | None = None
            for line in file:
                if torn is not None:  # and it was not the last line
                    raise torn
                if not line.endswith(b"\n"):
                    break  # being written
                try:
                    entry = decode(line)
                except TornLine as error:
                    torn = error
                    continue
                if entry.sequence != self._lines + 1:
                    raise ValueError(f"its sequence number is {entry.sequence}")
                self._lines += 1
                self.offset += len(line)
                if isinstance(entry.event, _MILESTONES):
                    self.milestone = self.offset
                yield entry
