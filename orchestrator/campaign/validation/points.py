"""The search space, times at its points, and the evaluation point."""

from __future__ import annotations

import itertools

from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.yaml import Problem, Problems
from orchestrator.errors import CampaignError
from orchestrator.space import ListedSpace
from orchestrator.types import Point, Value

_MOST_POINTS = 100_000  # that are looked at for a second value of a parameter


def space(campaign: Campaign) -> Problems:
    """There are points, and the evaluation point is none of them."""
    try:
        evaluation = list(_evaluation_point(campaign))
    except CampaignError as error:
        yield Problem(("constraints",) if campaign.constraints else ("parameters",), str(error))
        return
    yield from evaluation


def times(campaign: Campaign) -> Problems:
    """Times in seconds are positive everywhere, not only where the campaign begins."""
    points, measure = campaign.space, campaign.measure
    for key, text, seconds in (
        ("time_limit", measure.time_limit, campaign.time_limit),
        ("expected_time", measure.expected_time, campaign.expected_time),
    ):
        if text is None:
            continue
        everywhere = points.some()
        if not campaign.expression(text).names:
            everywhere = itertools.islice(everywhere, 1)
        if campaign.validate and campaign.evaluation_point is not None:
            everywhere = itertools.chain(everywhere, [campaign.evaluation_point])
        try:
            for point in everywhere:
                seconds(point)
        except CampaignError as error:
            yield Problem(("measure", key), str(error).removeprefix(f"measure.{key}: "))


def _evaluation_point(campaign: Campaign) -> Problems:
    points, spec, point = campaign.space, campaign.application_spec, campaign.evaluation_point
    if point is None:
        if campaign.validate:
            yield Problem(
                ("validate",), "needs an evaluation_point to measure; give one or write validate: false"
            )
        return
    if point in points:
        yield Problem(
            ("evaluation_point",),
            f"{point} is a point of the search space: models would be validated on data they were fitted to; "
            f"move it or narrow parameter {_narrowest(campaign, point)}",
        )
    try:
        values = campaign.values(point)
    except CampaignError as error:
        yield Problem(("evaluation_point",), f"{error}; move it, or change that constraint")
        return
    reason = spec.check(values)
    if reason is not None:
        yield Problem(("evaluation_point",), f"{point} is impossible for {spec.name}: {reason}")
    elif campaign.validate:
        try:
            campaign.resources_at(values)
        except ValueError as error:
            yield Problem(("validate",), f"{point} cannot be measured: {error}; or write validate: false")


def varied(campaign: Campaign) -> Problems:
    """Every parameter in which the evaluation point lies elsewhere has several values in the search space."""
    point = campaign.evaluation_point
    if point is None:
        return
    for parameter in campaign.parameters:
        only = _only_value(campaign, parameter.name)
        if only is not None and point[parameter.name] != only:
            yield Problem(
                ("parameters", parameter.name),
                f"has only the value {only} in the search space, and evaluation_point has "
                f"{point[parameter.name]}: runs cannot show what depends on {parameter.name}; give it "
                f"further values (four show the form of most models), or write {parameter.name}: {only} "
                "under evaluation_point",
            )


def _only_value(campaign: Campaign, name: str) -> Value | None:
    """Return the value that a parameter has everywhere; None if it has several, or there are too many points.

    The machine does not count: a campaign may go on where only its small runs fit.
    """
    replayed = isinstance(campaign.space, ListedSpace)
    space = campaign.space if replayed else campaign.space_of(campaign.application_spec.check)
    points = itertools.islice(space, _MOST_POINTS + 1)
    first = next(points)[name]
    for number, point in enumerate(points, start=1):
        if point[name] != first or number == _MOST_POINTS:
            return None
    return first


def _narrowest(campaign: Campaign, point: Point) -> str:
    """Return the numeric parameter in whose range the evaluation point is highest: the one to narrow."""
    numeric = [item for item in campaign.parameters if not item.categorical]
    ranked = sorted(numeric, key=lambda item: item.values.index(point[item.name]) / len(item.values))
    return ranked[-1].name if ranked else campaign.parameters[0].name


def width(campaign: Campaign) -> Problems:
    """A stop rule on intervals at the evaluation point has such a point."""
    if campaign.stop.width is not None and campaign.evaluation_point is None:
        yield Problem(
            ("stop", "width"),
            "is the width of intervals at the evaluation point, which is not given, so the rule never holds; "
            f"add evaluation_point, or remove it (value: {campaign.stop.width:g})",
        )
