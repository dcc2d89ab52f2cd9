"""The strategy and the model: the options that they have, and what the model can learn from."""

from __future__ import annotations

import inspect

from orchestrator import registry
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.schema import ModelChoice, Strategy
from orchestrator.campaign.yaml import Problem, Problems
from orchestrator.types import format_value

_OF_POWERS = frozenset({"pmnf", "extra-p", "swc"})  # models of powers, which numbers below 0 do not have


def options(campaign: Campaign) -> Problems:
    """Options are those that the strategy or the model has."""
    sections: tuple[tuple[str, Strategy | ModelChoice], ...] = (
        ("strategy", campaign.strategy),
        ("model", campaign.model),
    )
    for kind, section in sections:
        if section.options:
            own = list(type(section).model_fields)
            factory = registry.load(kind, section.name)
            what = f"{kind} {section.name}"
            for option, text in registry.wrong_options(factory, what, section.options, own):
                yield Problem((kind, option), text)


def priors(campaign: Campaign) -> Problems:
    """A model that is to learn from other campaigns can do so."""
    factory = registry.load("model", campaign.model.name)
    if campaign.priors.campaigns and "neighbours" not in inspect.signature(factory).parameters:
        yield Problem(
            ("priors", "campaigns"),
            f"model {campaign.model.name} learns nothing from other campaigns: use auto, formulas, pmnf "
            "or swc, or leave priors out",
        )


def powers(campaign: Campaign) -> Problems:
    """Parameters below 0 have models: not those of the normal form alone."""
    if campaign.model.name not in _OF_POWERS:
        return
    for item in campaign.parameters:
        least = 0.0 if item.categorical else min(map(float, item.values))
        if least < 0:
            yield Problem(
                ("parameters", item.name),
                f"model {campaign.model.name} has no powers of {format_value(least)}: shift or rescale "
                f"{item.name}, make it categorical, or use model auto",
            )
