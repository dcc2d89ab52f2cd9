"""Names of parameters, settings and resources: valid, known to the application, and not used twice."""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Sequence

from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.derivation import names_in
from orchestrator.campaign.schema import VARIANT
from orchestrator.campaign.yaml import Problem, Problems
from orchestrator.units import closest, did_you_mean


def identifiers(campaign: Campaign) -> Problems:
    """Names are such that expressions and scripts can use them."""
    for section, names in (
        ("settings", list(campaign.settings)),
        ("parameters", [item.name for item in campaign.parameters]),
    ):
        for name in names:
            if keyword.iskeyword(name):
                why = f"is a word of expressions, as in Python; use another name, such as {name}_of_run"
                yield Problem((section, name), why)
            elif not name.isidentifier() or unicodedata.normalize("NFKC", name) != name:
                yield Problem((section, name), "is no name; use letters, digits and '_', as in num_zones")
            if section == "parameters" and name in campaign.settings:
                yield Problem(("settings", name), "is a parameter, too; keep it under parameters or settings")
    if not campaign.parameters:
        yield Problem(("parameters",), "is empty; give at least one parameter with its values")


def application(campaign: Campaign) -> Problems:
    """The adapter knows every parameter and setting, and has those that it requires."""
    if campaign.application == "generic":
        if campaign.program is None:
            yield Problem(("program",), "is required for application: generic; describe the program there")
        return
    if campaign.program is not None:
        remedy = "remove it, or write application: generic"
        yield Problem(
            ("program",), f"is only for generic applications, not for {campaign.application}; {remedy}"
        )
    spec, launch = campaign.application_spec, campaign.launch
    placed = launch.names() if launch is not None else frozenset()
    placed |= {VARIANT} if campaign.compare is not None else set()
    places = [("settings", name) for name in campaign.settings]
    places += [("parameters", item.name) for item in campaign.parameters]
    derived = campaign.derivation.derived
    for section, name in places:
        if name not in spec.parameters and name not in placed and not _decides(campaign, name):
            hint = did_you_mean(name, spec.parameters)
            yield Problem((section, name), f"{spec.name} has no parameter {name!r}; {hint}")
    for name in spec.required:
        if name not in {name for _, name in places} | {item.name for item in derived}:
            meaning = spec.parameters.get(name, "")
            remedy = "vary it or put it under settings"
            if campaign.resources.stated():
                remedy += f", or derive it by a constraint such as {name} == nodes * ppn"
            yield Problem(("parameters",), f"{spec.name} needs {name} ({meaning}); {remedy}")


def compared(campaign: Campaign) -> Problems:
    """The executables that are compared are the values of a parameter, which nothing else may use."""
    if campaign.compare is None:
        return
    found = next((item for item in campaign.parameters if item.name == VARIANT), None)
    if found is None or found.values != campaign.compare.names:
        yield Problem(
            ("parameters", VARIANT),
            f"stands for the executables {' and '.join(campaign.compare.names)} of compare: rename it",
        )


def _decides(campaign: Campaign, name: str) -> bool:
    """Whether a parameter or setting decides what runs ask for, or what follows from it."""
    used = [item.names for item in campaign.requested.values()]
    return any(name in names for names in (*used, *(item.needs for item in campaign.derivation.derived)))


def resources(campaign: Campaign) -> Problems:
    """What runs ask for follows from parameters and settings."""
    known = campaign.names[0]
    given = {*campaign.settings, *(item.name for item in campaign.parameters)}
    for key, text in campaign.resources.stated().items():
        if key in given and text.strip() != key:
            yield Problem(
                ("resources", key),
                f"is {text}, and {key} is also a parameter or setting: write {key}: {key} if that is meant, "
                "or rename the parameter or setting",
            )
        unknown = sorted(names_in(text) - set(known))
        if unknown:
            yield Problem(("resources", key), _not_derived(campaign, text, unknown))
    missing = campaign.derivation.missing
    for place, text in enumerate(campaign.constraints):
        unknown = sorted(names_in(text) - set(known))
        if missing.keys() & unknown:
            reason = next(filter(None, map(missing.get, unknown)), "")
            yield Problem(("constraints", place), _not_derived(campaign, text, unknown, reason))


def _not_derived(campaign: Campaign, text: str, unknown: Sequence[str], reason: str = "") -> str:
    known = campaign.names[0]
    hints = [f"{name}: {did_you_mean(name, known)}" for name in unknown if closest(name, known)]
    are = "is neither a parameter nor a setting" if len(unknown) == 1 else "are no parameters or settings"
    return (
        f"expression {text!r}: {' and '.join(unknown)} {are}, and no constraint gives "
        f"{'it' if len(unknown) == 1 else 'them'}{f' ({reason})' if reason else ''}; "
        f"{' '.join([*hints, 'Otherwise vary' if hints else 'vary'])} {unknown[0]}, or add one equation in "
        "which nothing else is unknown"
    )
