"""Which executables the runs of a campaign start, by their content: measurements of several are mixed. Pure.

Their paths say nothing: programs are compiled again while a campaign is interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import immutables

from orchestrator.units import listed

Digests = Mapping[str, str]
"""SHA-256 by the role of an executable, as in the provenance of a controller."""

Used = immutables.Map[str, tuple[str, ...]]
"""All of them that measured something, by role."""

_MIXED = "measurements of several are mixed, and models are of none of them"
_WOULD = "what is measured from now on is mixed with measurements of the first one"
_REMEDY = (
    "put the first one back before more is measured, or begin another campaign with the new one "
    "(orchestrator run CAMPAIGN.yaml --directory NEW) and compare both (orchestrator compare DIR NEW)"
)
_SHORT, _LISTED = 12, 3  # digits of a digest, and digests

_NAMES = {
    "executable": "the executable",
    "compared_executable": "the executable that it is compared with",
    "effort_executable": "the executable that counts",
}


def digests(provenance: Mapping[str, Any]) -> Digests:
    """Return the SHA-256 of each executable that a controller starts, as far as it is known."""
    found = {role: (provenance.get(role) or {}).get("sha256") for role in _NAMES}
    return {role: digest for role, digest in found.items() if digest}


def named(roles: Iterable[str]) -> str:
    """Return what executables are called."""
    return " and ".join(_NAMES.get(role, role) for role in roles)


def used_after(used: Used, now: Digests) -> Used:
    """Return what measured something, once these did."""
    new = {role: digest for role, digest in now.items() if digest not in used.get(role, ())}
    return used.update({role: (*used.get(role, ()), digest) for role, digest in new.items()}) if new else used


def warnings(used: Used, now: Digests) -> list[str]:
    """Return a sentence for each role in which measurements of several executables are, or will be, mixed."""
    return [
        f"{_NAMES[role]} was replaced during the campaign: "
        f"{_MIXED if len(used.get(role, ())) > 1 else _WOULD} ({in_short(known)}); {_REMEDY}"
        for role, known in used_after(used, now).items()
        if len(known) > 1
    ]


def in_short(digests: Sequence[str]) -> str:
    """Return what tells executables apart, in their order, as the report names them."""
    return f"sha256 {listed([digest[:_SHORT] for digest in digests], _LISTED, ', then ')}"
