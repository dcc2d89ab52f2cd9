"""Discard what runs of a campaign measured, or restore it: as one event of its journal.

Nothing is deleted, and no cost changes. All named runs are checked before anything is written.
"""

from __future__ import annotations

import fnmatch
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.control import existing
from orchestrator.control.attempts import RUNS
from orchestrator.errors import CampaignError, ReadError
from orchestrator.executors.attempt.record import read_record
from orchestrator.journal import discards, events
from orchestrator.journal.replay import apply, replay
from orchestrator.journal.state import RunState, RunStatus, State, is_rehearsal
from orchestrator.journal.writer import Boundary, Journal
from orchestrator.report import runs_table
from orchestrator.types import Attempt, Run
from orchestrator.units import closest, count, listed

_SHOWN = 5  # runs of a point that a message names
_ATTEMPT = "attempt-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What was discarded or restored."""

    runs: tuple[Run, ...]  # in order of their ids
    reason: str  # as the user gave it
    cost: float  # core-seconds that all attempts at these runs were charged; they stay charged
    # How many measured runs on several nodes left no record of their names, where a node was asked for.
    unknown: int
    after: State  # the state of the campaign now


def discard(
    directory: Path,
    names: Sequence[str],
    reason: str,
    *,
    node: str | None = None,
    where: str | None = None,
    boundary: Boundary | None = None,
) -> Changed:
    """Leave what some runs measured out of the models from now on.

    Parameters
    ----------
    directory
        The campaign directory; no controller may be running.
    names
        Of the runs: ids, paths of their directories or of those of their accepted attempts, or as the log
        writes them.
    reason
        Why; status, log and report show it.
    node
        Name of a node, or a pattern such as ``n1*``: all measured runs that were there.
    where
        An expression as of `orchestrator.report.runs_table.chosen`: all measured runs for which it holds;
        with a ``node`` only those that were there.
    boundary
        See `Journal`; for tests of crashes.

    Raises
    ------
    CampaignError
        Before anything is written: for a run that is unknown or has no measurement that counts; where no run
        was measured on the node, or none fulfils the condition; without a reason.
    ExpressionError
        For a condition that is malformed, or has an unknown name.
    JournalError
        If a controller is running, or the journal cannot be read or written.
    """
    if not reason.strip():
        raise CampaignError("say why, for all who read the models: --because 'node n3 was throttled'")
    return _change(directory, names, node, where, boundary, " ".join(reason.split()), restored=False)


def restore(
    directory: Path,
    names: Sequence[str],
    reason: str = "",
    *,
    node: str | None = None,
    where: str | None = None,
    boundary: Boundary | None = None,
) -> Changed:
    """Let what was discarded count again; parameters and errors as of `discard`."""
    return _change(directory, names, node, where, boundary, " ".join(reason.split()), restored=True)


def _change(
    directory: Path,
    names: Sequence[str],
    node: str | None,
    where: str | None,
    boundary: Boundary | None,
    reason: str,
    restored: bool,
) -> Changed:
    if not names and node is None and where is None:
        raise CampaignError("name the runs, or give --node or --where; 'orchestrator runs DIR' lists them")
    existing.require(directory)
    with Journal(directory, boundary) as journal:
        known = replay(journal.entries())
        called = {name: run for run in known.runs for name in (run.id, str(run))} if names else {}
        chosen = {_named(name, called, known, directory) for name in names}
        unknown = 0
        if node is not None or where is not None:
            there, unknown = _there(known, directory, node, where, restored)
            chosen.update(there)
        runs = tuple(sorted(chosen, key=lambda run: run.id))
        _refuse(runs, known, directory, restored)
        kind = events.MeasurementsRestored if restored else events.MeasurementsDiscarded
        event = kind(runs, reason)
        # A rehearsal has a virtual clock.
        now = known.time if is_rehearsal(known.campaign) else max(known.time, time.time())
        try:
            after = apply(known, event, now)
        except ValueError as error:  # each could be changed, but not all of them
            raise CampaignError(f"{error}. Nothing was changed") from error
        journal.append([event], now)
    return Changed(
        runs=runs,
        reason=reason,
        cost=sum(known.runs[run].cost for run in runs),
        unknown=unknown,
        after=after,
    )


def _named(name: str, called: Mapping[str, Run], known: State, directory: Path) -> Run:
    """Return the run that is ``called`` so; raise `CampaignError` where there is none."""
    base, number = _without_attempt(name)
    run = called.get(base) or called.get("/".join([part for part in base.split("/") if part][-2:]))
    if run is None:
        raise CampaignError(f"nothing was changed: {directory} has no run {name!r}; {_meant(base, known)}")
    accepted = known.runs[run].accepted
    if number is not None and accepted is not None and number != accepted:
        raise CampaignError(
            f"{name}: attempt {number} has no measurement; that of the run {run.id} is of attempt "
            f"{accepted}. Nothing was changed"
        )
    return run


def _without_attempt(name: str) -> tuple[str, int | None]:
    """Return the name of a run from that of a run or of one of its attempts, and the attempt's number."""
    name = name.strip().rstrip("/")
    for separator in ("/", " "):
        base, found, last = name.rpartition(separator)
        if found and last.startswith(_ATTEMPT) and last.removeprefix(_ATTEMPT).isdecimal():
            return base, int(last.removeprefix(_ATTEMPT))
    return name, None


def _meant(name: str, known: State) -> str:
    """Return what the user may have meant by a name that no run has."""
    last = name.rpartition("/")[2]
    there = sorted(run.id for run in known.runs if last in (run.point.key, str(run.point)))
    if there:
        return f"it is a point with the runs {listed(there, _SHOWN)}"
    meant = closest(name, (run.id for run in known.runs))
    return f"did you mean {meant!r}?" if meant else "'orchestrator runs DIR' lists its runs"


def _there(
    known: State, directory: Path, node: str | None, where: str | None, restore: bool
) -> tuple[list[Run], int]:
    """Return the runs for which an expression holds and that were on a node, where one is asked for.

    Of how many runs on several nodes the names are not known is returned, too.

    Raises
    ------
    CampaignError
        If there is no such run.
    """
    wanted = RunStatus.DISCARDED if restore else RunStatus.MEASURED
    rows = runs_table.chosen(runs_table.rows(known), states=[wanted], kind=None, where=where, runs=None)
    ids = {row["run"] for row in rows}
    among = [run for run in known.runs if run.id in ids]
    if where is not None and not among:
        raise CampaignError(f"no run that is {wanted} fulfils {where!r}. Nothing was changed")
    if node is None:
        return among, 0
    nodes = {run: nodes_of(run, known.runs[run], directory) for run in among}
    on_node = [run for run in among if fnmatch.filter(nodes[run], node)]
    if not on_node:
        those = "" if where is None else f" and fulfils {where!r}"
        others = ", ".join(sorted(set().union(*nodes.values())))
        were = f": they were on {others}" if others else ""
        raise CampaignError(f"no run that is {wanted}{those} was on {node}{were}. Nothing was changed")
    return on_node, sum(not names for names in nodes.values())


def nodes_of(run: Run, item: RunState, directory: Path) -> Sequence[str]:
    """Return the nodes of the accepted attempt of a run: of several only its record has all names."""
    if item.node or item.accepted is None:
        return (item.node,) if item.node else ()
    try:
        record = read_record(directory / RUNS / Attempt(run, item.accepted).id)
    except (OSError, ReadError):
        return ()
    return () if record is None else record.nodes


def _refuse(runs: Sequence[Run], known: State, directory: Path, restore: bool) -> None:
    """Raise `CampaignError` where a run cannot be changed so; it names every such run."""
    refused = {run: why for run in runs if (why := discards.refusal(known, run, restore)) is not None}
    if not refused:
        return
    what = "restored" if restore else "discarded"
    others = len(runs) - len(refused)
    lines = "; ".join(f"{run.id}: {why}" for run, why in list(refused.items())[:_SHOWN])
    more = f"; and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
    rest = f" The other {count(others, 'run')} can be: name only these." if others else ""
    raise CampaignError(
        f"{count(len(refused), 'run')} cannot be {what}: {lines}{more}. Nothing was changed.{rest} "
        f"What is known of a run: orchestrator status {shlex.quote(str(directory))} --run ID"
    )
