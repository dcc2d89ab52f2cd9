"""Semantic validation: what no single key of a campaign file can show to be wrong alone.

Every check yields problems and names the top-level keys that it needs to be right, so that one mistake is
reported once. The last checks, those that need `START`, concern only a campaign that is to be run: earlier
versions accepted what they refuse, so directories of such campaigns can be read but not continued.
"""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.validation import choices, execution, expressions, measuring, names, points
from orchestrator.campaign.yaml import Problem, Problems

START = "(start)"
"""Blocks the checks of a campaign that is to be run; no key of a file has this name."""


def check(campaign: Campaign, blocked: frozenset[str]) -> list[Problem]:
    """Return all problems of a campaign.

    ``blocked`` are the top-level keys known to be wrong: what depends on them is not checked, so that one
    mistake is reported once.
    """
    problems: list[Problem] = []
    for needs, find in _CHECKS:
        if not blocked.union(str(p.path[0]) for p in problems if p.path) & needs:
            problems += find(campaign)
    return problems


_SPACE = frozenset(
    {"template", "application", "program", "settings", "parameters", "constraints", "resources"}
)
_CHECKS: tuple[tuple[frozenset[str], Callable[[Campaign], Problems]], ...] = (
    (frozenset({"settings", "parameters"}), names.identifiers),
    (frozenset({"application", "program"}), execution.template),
    (frozenset({"compare", "parameters"}), names.compared),
    (_SPACE - {"constraints"}, names.resources),
    (_SPACE - {"constraints"}, names.application),
    (frozenset({"settings", "parameters"}), expressions.expressions),
    (frozenset({"program"}), execution.files),
    (frozenset({"measure", "program"}), measuring.measurement),
    (frozenset({"executor"}), execution.simulated),
    (frozenset({"executor"}), execution.jobs),
    (frozenset({"strategy", "model"}), choices.options),
    (frozenset({"model", "priors"}), choices.priors),
    (frozenset({"model", "parameters"}), choices.powers),
    (_SPACE, points.space),
    (_SPACE | {"measure"}, points.times),
    (_SPACE | {"measure", "executor"}, execution.launch_script),
    (
        frozenset({"settings", "parameters", "constraints", "resources", "program", START}),
        expressions.program_environment,
    ),
    (
        frozenset({"settings", "parameters", "executor", "measure", "program", START}),
        expressions.environments,
    ),
    (frozenset({"program", START}), measuring.outputs),
    (frozenset({"program", "measure", "executor", START}), measuring.metrics),
    (frozenset({"stop", "evaluation_point", "parameters", START}), points.width),
    (_SPACE | {"evaluation_point", START}, points.varied),
)
"""The top-level keys that a check needs to be right, and the check."""
