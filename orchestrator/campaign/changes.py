"""What may change in a campaign that was begun: how far to go and where, not what is measured."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.journal.differences import differences
from orchestrator.journal.state import FAILURE_RULES, RunStatus, State, has_measured, is_rehearsal
from orchestrator.launch import generic
from orchestrator.launch.script import body_of
from orchestrator.launch.template import Start
from orchestrator.policy import failing
from orchestrator.storage import file_hash
from orchestrator.types import Point, Run
from orchestrator.units import format_cost

CHANGEABLE = (
    "parameters",
    "constraints",
    "evaluation_point",
    "stop",
    "executor",
    "retries",
    "strategy",
    "model",
    "validate",
    "version_arguments",
    "notify",
    "site",
    "template",
)
"""Sections that may change between a stop and a resume: where to measure, as long as runs so far stay what
they were, and how far to go; the template if the commands of measured runs do not change."""
_SPACE = ("parameters", "constraints", "evaluation_point")

_YIELD = ("truth", "dataset", "models", "noise")  # keys of ``executor`` that say what rehearsed runs yield
_MEASURE = (RunStatus.IN_FLIGHT, RunStatus.MEASURED, RunStatus.DISCARDED)
_OPEN = (RunStatus.WAITING, RunStatus.IN_FLIGHT, RunStatus.FAILED)
_SHOWN = 300  # characters of a command
_SAID = ("success", "failure", "exit_codes")  # of ``measure``: what tells runs that did their work
CHANGEABLE_KEYS = {
    "measure": ("time_limit", "limit_margin", "expected_time", "repetitions", "reference", *_SAID),
    "program": ("output",),
}
"""Keys that may change of sections that may not: how long and how often, and what is read."""


_READ = {
    "program": ("output",),
    "measure": ("metrics", "aggregate", "inclusive", "success", "failure", "exit_codes"),
}
_START_ALIKE = {"time", "stdout"}  # profilers of which each finds what it reads in runs for the other
_PROGRAMS = {
    "executable": ("executable",),
    "compared_executable": ("compare", "with"),
    "effort_executable": ("measure", "effort", "executable"),
}
"""Keys of executables, by role: the same program may lie elsewhere."""
_HOW = (
    *("name", "environment", "modules", "prologue", "launcher", "mpi", "template", "partition", "by_size"),
    *("constraint", "reservation", "sbatch", "exclusive", "placement", "ranks_per_node", "threads_per_core"),
    *("share_cores", "oversubscribe"),
)
"""Keys of ``executor`` on which the times of runs may depend."""

_LATER = (
    "for further runs: earlier measurements keep their values, unless 'orchestrator reread' reads them again"
)


def changed_rules(chosen: Campaign, known: State) -> list[str]:
    """Return ``key: before -> after`` for every rule in which a campaign differs from the one begun."""
    old = loader.normalised(known.campaign)
    before, after = old["executor"], chosen.raw["executor"]
    if before["name"] != after["name"]:  # what only one of them has is no change
        both = before.keys() & after.keys()
        before, after = ({key: raw[key] for key in raw if key in both} for raw in (before, after))
    changed = differences(
        {**old, "template": None, "executor": before}, {**chosen.raw, "template": None, "executor": after}
    )
    if old.get("template") != chosen.raw.get("template"):
        changed.append("template: changed; the commands of all measured runs stay the same")
    if is_elsewhere(chosen, known):
        left = [point for point in _begun(known, RunStatus.MEASURED) if point not in chosen.space]
        if known.validation is not None and known.validation.point == chosen.evaluation_point:
            left = [point for point in left if point != chosen.evaluation_point]
        if left:
            where = f"{left[0]}{f' and {len(left) - 1} more points' if left[1:] else ''}"
            changed.append(f"what was measured at {where}, outside of the search space, is used for models")
    how = [key for key in _HOW if before.get(key) != after.get(key)]
    if how and has_measured(known) and not is_rehearsal(chosen.raw):
        changed.append(
            f"executor.{', executor.'.join(how)}: earlier measurements are still used, so models are right "
            "only if runs take the same time as before; if not, begin another campaign"
        )
    if _of_program(old, "output") != _of_program(chosen.raw, "output"):
        changed.append(f"program.output holds {_LATER}")
    if _said(old) != _said(chosen.raw):
        changed.append(f"measure.success, measure.failure and measure.exit_codes hold {_LATER}")
    return changed


def _of_program(raw: Mapping[str, Any], key: str) -> Any:
    return (raw.get("program") or {}).get(key)


def _said(raw: Mapping[str, Any]) -> list[Any]:
    """Return what tells runs that did their work."""
    return [raw["measure"][key] for key in _SAID]


def refusal(chosen: Campaign, known: State) -> str | None:
    """Return why a campaign that was begun, and came to a state, cannot continue as ``chosen``, or None."""
    new, old = chosen.raw, loader.normalised(known.campaign)
    return (
        _rehearsal(new, old)
        or _other(new, old, known)
        or _values(new, old, known)
        or _points(chosen, old, known)
        or _commands(chosen, old, known)
        or _limitless(chosen, known)
        or _unfinished(new, old, known)
        or _overspent(chosen, known)
    )


def is_elsewhere(chosen: Campaign, known: State) -> bool:
    """Return whether models shall hold at other points: those of another search space, or another P₊."""
    old = loader.normalised(known.campaign)
    return any(chosen.raw.get(key) != old.get(key) for key in _SPACE)


def outside(chosen: Campaign, known: State) -> tuple[Run, ...]:
    """Return the runs that wait, and are at points that another search space does not have."""
    open_runs = (*known.failed, *known.waiting)
    return tuple(run for run in open_runs if run != known.validation and run.point not in chosen.space)


def may_try_again(chosen: Campaign, known: State) -> bool:
    """Return whether runs that were given up under the old rules may be tried again.

    They may if time limits, or what is read of outputs or must stand in them, changed: runs may have
    timed out or been unreadable before. They may in a campaign that stopped, or was about to stop, because
    of failures: changing a rule says that their cause is fixed. After any other stop, they may if the
    executor, the retries or the template changed, or if points were left out and no rule changed.
    """
    new, old = chosen.raw, loader.normalised(known.campaign)
    if left_out(known) and not changed_rules(chosen, known):
        return True
    if _of_program(old, "output") != _of_program(new, "output"):
        return True
    if _said(old) != _said(new) or _limits(old) != _limits(new):
        return True
    reason = known.stopped or known.stopping
    if reason is None:
        return False
    other = any(new.get(key) != old.get(key) for key in ("executor", "retries", "template"))
    return reason.rule in FAILURE_RULES or other


def stopped_by_failures(known: State) -> bool:
    """Return whether a campaign has stopped because of failures: resuming it says that the cause is fixed."""
    return known.stopped is not None and known.stopped.rule in FAILURE_RULES


def left_out(known: State) -> bool:
    """Return whether a campaign has measured all but points at which its program fails.

    Resuming it by the same rules says that the program runs there now.
    """
    stop = known.stopped
    return stop is not None and stop.rule == "exhausted" and bool(failing.regions(known))


def _unfinished(new: Mapping[str, Any], old: Mapping[str, Any], known: State) -> str | None:
    """Refuse another executor while attempts are open: it cannot find out their outcome or cost."""
    before, after = old["executor"]["name"], new["executor"]["name"]
    # A local charge is never corrected; and a campaign that stopped has waited for Slurm's accounting.
    unconfirmed = 0 if before == "local" or known.stopped is not None else len(known.unconfirmed)
    if before == after or not (known.in_flight or unconfirmed):
        return None
    return (
        f"executor.name: {before} -> {after}: attempts in flight: {len(known.in_flight)}, charges not "
        f"confirmed: {unconfirmed}; only executor {before} can find out what becomes of them. Resume with "
        f"executor.name={before} first: with --set stop.wall_time='1 s' it stops when all is settled, with "
        "--cancel Ctrl-C ends what is in flight. Nothing was changed"
    )


def _rehearsal(new: Mapping[str, Any], old: Mapping[str, Any]) -> str | None:
    before, after = (is_rehearsal(raw) for raw in (old, new))
    if before and after:
        return _truth(new["executor"], old["executor"])
    if before == after:
        return None
    kinds = ("a rehearsal", "real runs") if before else ("real runs", "a rehearsal")
    return (
        f"the directory holds {kinds[0]} of a campaign (executor {old['executor']['name']}), which "
        f"{kinds[1]} (executor {new['executor']['name']}) cannot continue: simulated and measured times are "
        "not mixed. Give another --directory"
    )


def _truth(new: Mapping[str, Any], old: Mapping[str, Any]) -> str | None:
    """Refuse a rehearsal of something else: what the directory holds would pass for its result."""
    differing = differences(*({"executor": {key: raw.get(key) for key in _YIELD}} for raw in (old, new)))
    if not differing:
        return None
    return (
        f"the directory holds a rehearsal whose runs yield something else ({'; '.join(differing)}): its "
        "measurements are not mixed with those of another one. Give another --directory, or delete this one"
    )


def _other(new: Mapping[str, Any], old: Mapping[str, Any], known: State) -> str | None:
    moved = _programs(old, new, known)
    if isinstance(moved, str):
        return moved
    new, old = _fixed(new), _fixed(_with_doubled_braces(moved, new))
    keys = sorted(key for key in {*new, *old} if new.get(key) != old.get(key))
    if not keys:
        return None
    differs = differences({key: old.get(key) for key in keys}, {key: new.get(key) for key in keys})
    within = [f"{section}.{key}" for section, names in CHANGEABLE_KEYS.items() for key in names]
    read = read_keys(old, new)
    if without(old, (), read) == without(new, (), read):
        return _read_first(differs)
    return (
        f"the directory holds a campaign with other {', '.join(keys)}: measurements cannot be mixed "
        f"({'; '.join(differs)}). Only {', '.join([*CHANGEABLE, *within])} may change on the way; for "
        "anything else begin another campaign: orchestrator run CAMPAIGN.yaml --directory DIR; with "
        "priors.campaigns in its file it begins with what this one has learned"
    )


def _read_first(differs: Sequence[str]) -> str:
    return (
        f"measurements that were read by different rules cannot be mixed ({'; '.join(differs)}): read "
        "what was kept of all runs again first, by the changed campaign file, which costs nothing: "
        "orchestrator reread DIR --campaign FILE; then continue"
    )


def _values(new: Mapping[str, Any], old: Mapping[str, Any], known: State) -> str | None:
    """Refuse other patterns, scales ... of values that were measured; values may be added and left out."""
    if not has_measured(known) or is_rehearsal(new):
        return None
    before, after = _rules(old), _rules(new)
    common = [key for key in after if key in before]
    differs = differences({key: before[key] for key in common}, {key: after[key] for key in common})
    return _read_first(differs) if differs else None


def _rules(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``program.output`` says of how values are read, by call path and metric."""
    found: dict[str, Any] = {}
    for rule in _of_program(raw, "output") or ():
        name = f"program.output of {rule['callpath']} ({rule['metric']})"
        read = {key: value for key, value in rule.items() if key != "optional"}
        found[name] = read if name not in found else {"first": found[name], "next": read}
    return found


def _programs(old: Mapping[str, Any], new: Mapping[str, Any], known: State) -> Mapping[str, Any] | str:
    """Return a campaign with the paths of ``new`` where these are the programs that measured, or why not."""
    for role, keys in _PROGRAMS.items():
        before, after = _at(old, keys), _at(new, keys)
        if not before or not after or before == after or is_rehearsal(new):
            continue
        used = known.measured_with.get(role, ())
        if has_measured(known) and file_hash(Path(after)) not in used:
            return (
                f"{'.'.join(keys)}: {before} -> {after}: that is not the program of the runs so far (its "
                "content differs, or theirs is not known), so measurements cannot be mixed. Only its path "
                "may change; for another program begin another campaign: orchestrator run CAMPAIGN.yaml "
                "--directory DIR; with priors.campaigns in its file it begins with what this one has "
                "learned. Nothing was changed"
            )
        old = _with(old, keys, after)
    return old


def _at(raw: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        raw = raw.get(key) if isinstance(raw, Mapping) else None
    return raw


def _with(raw: Mapping[str, Any], keys: Sequence[str], value: Any) -> dict[str, Any]:
    first, *rest = keys
    return {**raw, first: _with(raw[first], rest, value) if rest else value}


def _with_doubled_braces(old: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a campaign whose variables have braces doubled where ``new`` has doubled them.

    Earlier versions took variables literally: what is no template, such as ``{0:4}``, is now written
    ``{{0:4}}``, and means the same.
    """
    before, after = (_of_program(raw, "environment") or {} for raw in (old, new))
    doubled = {
        name: after[name]
        for name, text in before.items()
        if after.get(name) == generic.literal(text) != text and generic.is_literal(text)
    }
    if not doubled:
        return old
    return {**old, "program": {**old["program"], "environment": {**before, **doubled}}}


def _points(chosen: Campaign, old: Mapping[str, Any], known: State) -> str | None:
    """Refuse parameters of which the runs so far have no values, and a P₊ that does not stay apart."""
    names = [list(raw["parameters"]) for raw in (old, chosen.raw)]
    if names[0] != names[1]:
        change = f"parameters: {', '.join(names[0])} -> {', '.join(names[1])}"
        if sorted(names[0]) == sorted(names[1]):
            return f"{change}: write them in the same order as before, which names runs. Nothing was changed"
        return (
            f"{change}: measurements have no values of other parameters. Undo that, or begin another "
            "campaign: orchestrator run CAMPAIGN.yaml --directory DIR; with priors.campaigns in its file it "
            "begins with what this one has learned. Nothing was changed"
        )
    if not is_elsewhere(chosen, known):
        return None
    begun = _begun(known)
    for item in chosen.parameters:
        kinds = {type(value) for value in item.values}
        types = {raw["parameters"][item.name].get("type") for raw in (old, chosen.raw)}
        if len(types) > 1 or any(type(point[item.name]) not in kinds for point in begun):
            return (
                f"parameters.{item.name}: the type of its values would be another one than in the runs so "
                "far, so measurements cannot be mixed: write numbers, and the key type, as before. Nothing "
                "was changed"
            )
    validation, target = known.validation, chosen.evaluation_point
    if validation is not None and target != validation.point and known.runs[validation].status in _OPEN:
        return (
            f"evaluation_point: the run at {validation.point} is not settled: resume with that evaluation "
            "point first. Nothing was changed"
        )
    if target in _begun(known, RunStatus.MEASURED) and (validation is None or target != validation.point):
        return (
            f"evaluation_point: {target} was measured, and models would be validated on data they were "
            "fitted to: give another one. Nothing was changed"
        )
    return None


def _begun(known: State, *statuses: RunStatus) -> list[Point]:
    """Return the points at which runs were begun, those of some statuses only, if given; in order.

    The runs of a state come in any order, and what is said of the points goes into the journal.
    """
    of = statuses or tuple(RunStatus)
    runs = (run for run, item in known.runs.items() if item.attempts and item.status in of)
    return sorted({run.point for run in runs}, key=lambda point: point.order)


def _commands(chosen: Campaign, old: Mapping[str, Any], known: State) -> str | None:
    """Refuse a template, or constraints that give values, that would have started a run otherwise.

    Runs that failed measured nothing that could be mixed: their template may be corrected.
    """
    for point in _begun(known, *_MEASURE):
        before, after = _starts(chosen, old, point)
        if before != after:
            key = "template" if old.get("template") != chosen.template else "constraints"
            first, second = _differing(before, after)
            return (
                f"{key}: {point} was started with {_shortened(first)!r}, and would be with "
                f"{_shortened(second)!r}: measurements cannot be mixed. Undo that, or begin another "
                "campaign: orchestrator run CAMPAIGN.yaml --directory DIR. Nothing was changed"
            )
    return None


def starts_alike(chosen: Campaign, old: Mapping[str, Any], point: Point) -> bool:
    """Return whether runs at a point start as they did when ``old``, as journaled, was the campaign."""
    before, after = _starts(chosen, loader.normalised(old), point)
    return before == after


def _starts(chosen: Campaign, old: Mapping[str, Any], point: Point) -> tuple[str, str]:
    """Return the commands of a run before and after a change, or its resources if only these differ."""
    if all(chosen.raw.get(key) == old.get(key) for key in ("template", "constraints")):
        return "", ""
    former = replace(
        chosen,
        template=old.get("template"),
        template_source="the former template",
        constraints=tuple(old["constraints"]),
    )
    before, after = (_command(campaign, point) for campaign in (former, chosen))
    if before == after:
        before, after = (_resources(campaign, point) for campaign in (former, chosen))
    return before, after


def _command(campaign: Campaign, point: Point) -> str:
    spec, values = campaign.application_spec, campaign.values(point)
    program = Start(executable="PROGRAM", launcher="LAUNCHER")
    body = body_of(spec, program, values, campaign.resources_at(values), campaign.launch)
    return "\n".join([body.before, "LAUNCHER " * body.launched + body.command, body.after]).strip()


def _resources(campaign: Campaign, point: Point) -> str:
    found = asdict(campaign.resources_at(campaign.values(point)))
    return ", ".join(f"{key} {value}" for key, value in found.items())


def _differing(before: str, after: str) -> tuple[str, str]:
    """Return the first lines that differ."""
    lines = itertools.zip_longest(before.splitlines(), after.splitlines(), fillvalue="")
    return next((first, second) for first, second in lines if first != second)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _fixed(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return what may not change in a campaign."""
    return without(raw, CHANGEABLE, CHANGEABLE_KEYS)


def read_keys(*campaigns: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the keys that only say how runs are read, by section, for normalised campaigns.

    ``orchestrator reread`` changes them, and nothing else. The profiler is one where the runs differ in
    nothing that the profilers need.
    """
    profilers = {raw["measure"]["profiler"] for raw in campaigns}
    alike = ("profiler",) if profilers and profilers <= _START_ALIKE else ()
    return {**_READ, "measure": (*_READ["measure"], *alike)}


def without(
    raw: Mapping[str, Any], sections: Collection[str], keys: Mapping[str, Collection[str]]
) -> dict[str, Any]:
    """Return a normalised campaign without some sections, and without some keys of others."""
    kept = {section: value for section, value in raw.items() if section not in sections}
    for section, names in keys.items():
        if isinstance(kept.get(section), Mapping):
            kept[section] = {key: value for key, value in kept[section].items() if key not in names}
    return kept


def _limits(raw: Mapping[str, Any]) -> list[Any]:
    return [raw["measure"].get(key) for key in ("time_limit", "limit_margin")]


def _limitless(chosen: Campaign, known: State) -> str | None:
    """Refuse to take away the time limit: one is derived only from the first round of a campaign."""
    if chosen.measure.time_limit is not None or known.time_limit is not None:
        return None
    before = {"measure": {"time_limit": known.campaign["measure"]["time_limit"]}}
    change = next(iter(differences(before, {"measure": {"time_limit": None}})), "measure.time_limit")
    return (
        f"{change}: a limit is derived from the budget only when a campaign begins; give one. Nothing was "
        "changed"
    )


def _overspent(chosen: Campaign, known: State) -> str | None:
    budget, unit = chosen.stop.budget, chosen.stop.unit
    if (
        chosen.raw["stop"]["budget"] == known.campaign["stop"]["budget"]
        or known.spent + known.reserved <= budget
    ):
        return None
    given, spent, reserved, least = (
        format_cost(cost, unit)
        for cost in (budget, known.spent, known.reserved, known.spent + known.reserved)
    )
    return (
        f"stop.budget: {given} is less than the {spent} that are spent and the {reserved} that are reserved "
        f"for what is in flight, so the budget would be exceeded: give more than {least}. Nothing was changed"
    )
