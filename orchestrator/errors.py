"""Errors that a user can act on: what went wrong, where, and the remedy."""

from __future__ import annotations


class OrchestratorError(Exception):
    """Base of every error that the command line reports without a traceback."""

    exit_code = 1


class CampaignError(OrchestratorError):
    """An invalid campaign file or command line: nothing was spent."""

    exit_code = 2


class ExpressionError(CampaignError):
    """An expression in a campaign file that is malformed or not allowed."""


class JournalError(OrchestratorError):
    """A journal that cannot be read, or a directory that another controller holds."""


class DamagedJournal(JournalError):
    """A journal with a line that cannot be read, or cannot follow those before it; it stays as it is."""


class NoCampaign(JournalError):
    """A directory that holds no campaign, or that is not there."""

    exit_code = 2


class JournalWriteError(JournalError):
    """An event that could not be made durable (disk full, read-only file system).

    The campaign stops at once and can be resumed: nothing after the last durable event was begun.
    """

    exit_code = 3


class CampaignPaused(OrchestratorError):
    """A campaign that begins nothing more until somebody resumes it: the infrastructure fails too often."""

    exit_code = 3


class ReadError(OrchestratorError):
    """A profile or output that cannot be read; it fails its attempt, never the campaign."""


class MissingInput(ReadError):
    """A file or folder with measurements that is not there."""

    exit_code = 2


class ColumnsError(ReadError):
    """A table of which options do not say, or say wrongly, what its columns are."""

    exit_code = 2


class MeasurementError(OrchestratorError):
    """A table of measurements, or a point in it, that cannot be used as it was given."""

    exit_code = 2


class ModelError(OrchestratorError):
    """Measurements from which no model can be fitted."""


class ExecutorError(OrchestratorError):
    """An executor that cannot work at all (no launcher, no Slurm)."""


class PluginError(OrchestratorError):
    """A plug-in of another distribution that fails, or returns what its contract does not allow."""


class SubmitRejected(ExecutorError):
    """A submission that certainly did not happen, so the attempt cost nothing."""


class SubmitUncertain(ExecutorError):
    """A submission that may or may not have happened; look it up by name before anything else."""
