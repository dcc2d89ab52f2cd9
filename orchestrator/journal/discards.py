"""How the state changes where the user discards what runs measured, or restores it. Pure.

Costs, attempts and values stay what they are. Only the status of the runs says that they do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.journal import events
from orchestrator.journal.state import Discarded, RunStatus, State, proposed_too, unassessed
from orchestrator.types import Point, Run


def refusal(state: State, run: Run, restore: bool = False) -> str | None:
    """Return why what a run of the campaign measured can neither be discarded nor be restored now, or None.

    Parameters
    ----------
    state, run
        Where the campaign stands, and one of its runs.
    restore
        Whether the measurement is to count again.
    """
    item, known = state.runs[run], state.discarded.get(run)
    if restore:
        return _not_restorable(state, run, known)
    if known is not None:
        return f"it is discarded already ({known.reason}), and counts again after --restore"
    if item.status is not RunStatus.MEASURED:
        why = f" ({item.reason})" if item.reason else ""
        return f"it is {item.status}{why}, so models see nothing of it"
    return None


def _not_restorable(state: State, run: Run, known: Discarded | None) -> str | None:
    if known is None:
        return f"it is {state.runs[run].status}, not discarded"
    if known.rereads != state.rereads:
        return (
            "outputs were read again since it was discarded, its own was not, and values of different rules "
            "are never mixed; where its output is kept, orchestrator reread DIR reads it, too"
        )
    if _is_target(state.campaign, run.point):
        if not known.validation:
            return f"{run.point} is the evaluation point now, and models are never fitted there"
        if state.validation is not None:
            return f"another run validates the models, which must be discarded first: {state.validation.id}"
    return None


def discarded(state: State, event: events.MeasurementsDiscarded) -> State:
    """Return the state after measurements were discarded.

    Raises
    ------
    ValueError
        For a run without a measurement that counts.
    """
    for run in event.runs:
        _check(state, run, restore=False)
        item = state.runs[run]
        entry = Discarded(event.reason, state.time, run == state.validation, state.rereads, item.reason)
        state = state._replace(
            runs=state.runs.set(run, item._replace(status=RunStatus.DISCARDED, reason=event.reason)),
            discarded=state.discarded.set(run, entry),
            validation=None if entry.validation else state.validation,
        )
    return _decided_again(state)


def restored(state: State, event: events.MeasurementsRestored) -> State:
    """Return the state after discarded measurements count again.

    Raises
    ------
    ValueError
        For a run whose measurement was not discarded, or cannot be restored.
    """
    for run in event.runs:
        _check(state, run, restore=True)
        entry = state.discarded[run]
        state = state._replace(
            runs=state.runs.set(
                run, state.runs[run]._replace(status=RunStatus.MEASURED, reason=entry.former)
            ),
            discarded=state.discarded.delete(run),
            validation=run if entry.validation else state.validation,
        )
    return _decided_again(state)


def elsewhere(state: State, campaign: Mapping[str, Any]) -> State:
    """Return the state where models shall hold at other points: discarded validations are runs like others.

    So further runs at their points get further numbers.
    """
    for run, entry in state.discarded.items():
        if entry.validation and not _is_target(campaign, run.point):
            state = state._replace(
                proposed=proposed_too(state.proposed, run),
                discarded=state.discarded.set(run, entry._replace(validation=False)),
            )
    return state


def _check(state: State, run: Run, restore: bool) -> None:
    why = refusal(state, run, restore) if run in state.runs else "it was never proposed"
    if why is not None:
        what = "restored" if restore else "discarded"
        raise ValueError(f"{run} cannot be {what}: {why}")


def _is_target(campaign: Mapping[str, Any], point: Point) -> bool:
    """Return whether a point is the evaluation point of a campaign as journaled."""
    return bool(campaign.get("evaluation_point") == point.as_dict())


def _decided_again(state: State) -> State:
    return undecided(state)._replace(discards=state.discards + 1)


def undecided(state: State) -> State:
    """Return the state where nothing counts that rounds said of models: other values made them.

    What to do next is decided again, by the values of now. Narrow intervals count on where those of what is
    left turn out to be narrow, too.
    """
    before = state.narrow_before if state.reassess else state.narrow_rounds
    return unassessed(state)._replace(smape=None, undecided=True, reassess=True, narrow_before=before)
