"""Expressions and templates: they use what is known, and give what is wanted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.derivation import Unsolvable, names_in, solved
from orchestrator.campaign.schema import SimulatedOptions
from orchestrator.campaign.yaml import Path as KeyPath
from orchestrator.campaign.yaml import Problem, Problems
from orchestrator.errors import ExpressionError
from orchestrator.expressions import Kind
from orchestrator.launch import generic

_BRACED = re.compile(r"(?<!\$)\{\s*(\w+)\s*\}")  # a shell's ${NAME} is none of ours


def expressions(campaign: Campaign) -> Problems:
    """Every expression can be evaluated, and gives a number or a truth as it must."""
    wanted: list[tuple[KeyPath, str, Kind]] = []
    missing = campaign.derivation.missing  # reported by `_resources`
    wanted += [
        (("constraints", i), text, "truth")
        for i, text in enumerate(campaign.constraints)
        if not names_in(text) & missing.keys()
    ]
    wanted += [
        (("resources", key), text, "number")
        for key, text in campaign.resources.stated().items()
        if names_in(text) <= set(campaign.names[0])
    ]
    for key in ("time_limit", "expected_time"):
        text = getattr(campaign.measure, key)
        wanted += [(("measure", key), text, "number")] if text is not None else []
    if isinstance(campaign.executor, SimulatedOptions):
        truth = campaign.executor.truth
        wanted += [(("executor", "truth", path), text, "number") for path, text in truth.items()]
        if (region := campaign.executor.fails_where) is not None:
            wanted.append((("executor", "fails_where"), region, "truth"))
    if campaign.program is not None:
        wanted += [
            (("program", key), getattr(campaign.program, key), "number") for key in ("ranks", "threads")
        ]
        wanted += [(("program", "check", i), text, "truth") for i, text in enumerate(campaign.program.check)]
    for path, text, kind in wanted:
        try:
            own = campaign.expression(text).kind
        except ExpressionError as error:
            yield Problem(path, f"{error}{_unused(campaign, text) if path[0] == 'constraints' else ''}")
            continue
        if own != kind:
            remedy = "write a comparison, such as p <= 64" if kind == "truth" else "write a number"
            yield Problem(path, f"expression {text!r} gives a {own}, not a {kind}; {remedy}")
    yield from _templates(campaign)


def _unused(campaign: Campaign, text: str) -> str:
    """Return what to say of an equation that would give a value, if that were used anywhere."""
    unknown = names_in(text) - set(campaign.names[0])
    if len(unknown) != 1:
        return ""
    [name] = unknown
    with suppress(Unsolvable):
        solved(text, name)
        return (
            f" (an equation gives {name} only where {name} is used, such as in program.ranks or an argument)"
        )
    return ""


def _templates(campaign: Campaign) -> Problems:
    if campaign.program is None:
        return
    texts: list[tuple[KeyPath, str]] = [
        (("program", "arguments", i), text) for i, text in enumerate(campaign.program.arguments)
    ]
    texts += [(("program", "files", name), text) for name, text in campaign.program.files.items()]
    for path, text in texts:
        try:
            generic.parse_template(text, *campaign.names)
        except ExpressionError as error:
            yield Problem(path, str(error))


def program_environment(campaign: Campaign) -> Problems:
    """The variables of a generic program are templates, too."""
    for name, text in campaign.program.environment.items() if campaign.program is not None else ():
        try:
            generic.parse_variable(text, *campaign.names)
        except ExpressionError as error:
            yield Problem(("program", "environment", name), str(error))


def environments(campaign: Campaign) -> Problems:
    """Variables that are the same for all runs do not name what varies: it would not be replaced."""
    effort, known = campaign.measure.effort, campaign.names[0]
    sections: list[tuple[KeyPath, Mapping[str, str]]] = [
        (("executor", "environment"), campaign.executor.environment)
    ]
    sections += [(("measure", "effort", "environment"), effort.environment)] if effort is not None else []
    for path, variables in sections:
        for name, text in variables.items():
            varying = next((item for item in _BRACED.findall(text) if item in known), None)
            if varying is not None:
                place = "program.environment"
                if campaign.program is None:
                    place = f"the launch template, as export {name}={{{{{varying}}}}}"
                yield Problem(
                    (*path, name),
                    f"is the same for all runs, so {{{varying}}} would not be replaced: write it in {place}",
                )
