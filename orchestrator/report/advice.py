"""What to do about a campaign that stopped or paused early: cause, remedy, and the command to continue."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.journal.state import FAILURE_RULES, State, StopReason, has_measured
from orchestrator.policy import failing
from orchestrator.types import FailureClass, Point
from orchestrator.units import campaign_unit, count

_REMEDIES = {
    FailureClass.APPLICATION: "make the program work: its script is run.sh in the directory of an attempt; "
    "or, if it cannot run at some points, say by constraints where it can; "
    "or, if only the exit code is not 0, let such runs count, which costs nothing: "
    "orchestrator reread DIR --set measure.exit_codes='[0, CODE]'",
    FailureClass.TIMEOUT: "see in stdout of an attempt whether the program waited for something; if it only "
    "takes longer, raise measure.time_limit, or leave out the points that take longest",
    FailureClass.MEMORY: "ask for more memory (executor.sbatch.mem), or use more nodes",
    FailureClass.INFRASTRUCTURE: "see what Slurm refuses: orchestrator doctor",
    FailureClass.PARSE: "compare what the program prints with what the campaign file looks for, and read the "
    "kept outputs again by the corrected file, which costs nothing: orchestrator reread DIR --campaign FILE",
}
# What the launch script says (`orchestrator.launch.script`): the program was not started.
_NO_MODULE = "this module cannot be loaded: "
OTHER_VALUES = "measurements were discarded, restored or read again"
# Rules after which a larger budget buys nothing, unless the strategy names a useful run within the ranges.
_DONE = ("exhausted", "converged")
_PAUSED = (
    "see why runs end (the space and quota of the file system; on a cluster sinfo -R and sacct) and have it "
    "repaired"
)


def remedy(stop: StopReason, where: str = "DIR") -> str:
    """Return what to do before a campaign continues that stopped by failures or was paused; else nothing.

    ``where`` is its directory, as a word of a shell.
    """
    if stop.rule == "infrastructure":
        return _PAUSED
    if stop.rule not in FAILURE_RULES:
        return ""
    if _NO_MODULE in stop.detail:
        return "correct executor.modules by what 'module avail' lists on a node"
    found = re.search(rf"\b({'|'.join(FailureClass)}): ", stop.detail)
    if found is None:
        return f"see why the attempts failed: orchestrator log {where}"
    return _remedy_of(FailureClass(found[1]), where)


def _remedy_of(failure: FailureClass, where: str) -> str:
    return _REMEDIES[failure].replace(" DIR", f" {where}")


def to_continue(state: State, directory: Path) -> str:
    """Return how a campaign continues that was paused or has stopped, in one line; empty while it runs."""
    where = shlex.quote(str(directory))
    if state.paused is not None:
        return (
            f"remedy: {remedy(state.paused)}. Then continue with: orchestrator resume {where} (such failures "
            "may then cost as much again: stop.infrastructure)"
        )
    if state.stopped is None:
        return ""
    if state.undecided:
        return f"{OTHER_VALUES} since then: orchestrator resume {where} decides again what to measure"
    if state.stopped.rule in FAILURE_RULES:
        return (
            f"remedy: {remedy(state.stopped, where)}; orchestrator log {where} lists what failed. Then "
            f"continue with: orchestrator resume {where} (failures are counted from zero, and points that "
            "were given up are tried again); with a corrected template or campaign file: orchestrator run "
            f"CAMPAIGN.yaml --directory {where}"
        )
    if state.stopped.rule == "exhausted" and failing.regions(state):
        return (
            "points were left out at which the program fails; once it runs there, continue with: "
            f"orchestrator resume {where} (they are tried again)"
        )
    useful = state.stopping and state.stopping.useful
    wider = _wider(state.campaign, useful) if useful else "--set parameters.NAME='[...]'"
    if state.stopped.rule in _DONE and wider:
        return (
            f"to know more continue with larger ranges or other points, as in orchestrator resume {where} "
            f"{wider}. For other parameters or another program begin another campaign; priors: {{campaigns: "
            f"[{where}]}} in its file lets it begin with what this one has learned"
        )
    over = state.stopped.rule == "wall_time"
    failed = "" if has_measured(state) else _of_failures(state, where)
    rule = "stop.wall_time='...'" if over else f"stop.budget='... {campaign_unit(state.campaign)}'"
    return (
        f"{failed}to continue a campaign that has stopped, change a rule, for example: "
        f"orchestrator resume {where} --set {rule}"
    )


def _of_failures(state: State, where: str) -> str:
    """Return what to do first where all attempts failed, though another rule stopped the campaign."""
    failures = Counter(failure for item in state.runs.values() for failure in item.failures)
    if not failures:
        return ""
    often, number = failures.most_common(1)[0]
    most = "" if number == failures.total() else f", most often ({number})"
    return (
        f"{count(failures.total(), 'attempt')} failed{most}: {often}. "
        f"remedy: {_remedy_of(often, where)}; orchestrator log {where} --all lists what failed. Then, "
    )


def _wider(campaign: Mapping[str, Any], point: Point) -> str:
    """Return the options that add to a campaign's parameters what a point lies beyond; empty within them."""
    options = []
    for name, section in campaign["parameters"].items():
        stated = section if isinstance(section, Mapping) else {"values": section}
        known, value = stated.get("values"), point[name]
        if isinstance(value, str):
            continue
        if known is not None and value not in known:
            options.append(f"--set parameters.{name}='{sorted([*known, value])}'")
        elif known is None and value > stated["to"]:
            options.append(f"--set parameters.{name}.to={value}")
        elif known is None and value < stated["from"]:
            options.append(f"--set parameters.{name}.from={value}")
    return " ".join(options)


def nothing_measured(state: State) -> str:
    """Return why a campaign that has stopped measured nothing; empty where it did, or has not stopped."""
    if state.stopped is None or has_measured(state):
        return ""
    return f"the campaign measured nothing: {state.stopped.rule} ({state.stopped.detail})"
