"""What runs of a campaign could never yield, and rules that could never hold, are refused with the file."""

from __future__ import annotations

import pytest

from orchestrator.campaign import loader
from orchestrator.errors import CampaignError

TEXT = """\
name: tiny
application: generic
executable: 'true'
program:
  output:
    - {callpath: main, pattern: '(.*)'}
parameters: {n: [1, 2, 4]}
measure: {time_limit: 5 s}
stop: {budget: 1, width: 0.1}
evaluation_point: {n: 8}
"""


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("'(.*)'}", "'(.*)', scale: 0}", "6: program.output.0.scale: must be greater than 0.*write 1, or"),
        ("'(.*)'}", "'(.*)', scale: -1}", r"6: program.output.0.scale: must be greater .*\(value: -1\)"),
        ("main", "''", "6: program.output.0.callpath: is empty; name what the value belongs to"),
        ("'(.*)'}", "'(.*)', metric: ' '}", "6: program.output.0.metric: is empty; name what"),
        (
            "{n: [1, 2, 4]}",
            "{n: [-2, 1, 4]}\nmodel: pmnf",
            "7: parameters.n: model pmnf has no powers of -2: shift or rescale n, .* or use model auto",
        ),
        (
            "{n: [1, 2, 4]}",
            "{n: [4]}",
            "7: parameters.n: has only the value 4 in .*, and evaluation_point has 8: .* further",
        ),
        (
            "{n: [1, 2, 4]}",
            "{n: {values: [1, 2, 4], constraint: n > 2}}",
            "7: parameters.n: has only the value 4 .* write n: 4 under evaluation_point",
        ),
        ("evaluation_point: {n: 8}\n", "", "9: stop.width: .* not given.*; add evaluation_point"),
        (
            "5 s}",
            "5 s, metrics: [visits]}",
            "8: measure.metrics: no run produces metric visits: runs produce only time;",
        ),
        (
            "5 s}",
            "5 s, metrics: [a], profiler: time}",
            "8: measure.metrics: no run produces metric a: .* another measure.profiler",
        ),
        ("5 s}", "5 minuts}", "8: measure.time_limit: unknown unit 'minuts' .*write for example 10 min"),
        ("5 s}", "0 s}", r"8: measure.time_limit: 0.0 gives 0.0 s at P\(n=1\); it must be positive"),
        ("budget: 1", "budget: 1 core-weeks", "9: stop.budget: unknown unit 'core-weeks' .*core-hours"),
    ],
)
def test_what_can_never_work_is_refused(old: str, new: str, mistake: str) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(CampaignError, match=f"^f.yaml:{mistake}.*$"):
        loader.loads(TEXT.replace(old, new), "f.yaml")


@pytest.mark.parametrize(
    "overrides",
    [
        ["program.output.0.metric=visits", "measure.metrics=[visits]"],
        ["measure.profiler=scorep", "measure.metrics=[visits]"],
        ["stop.width=null", "evaluation_point=null"],
        ["measure.time_limit='5 * n'"],
    ],
)
def test_what_may_work_is_not_refused(overrides: list[str]) -> None:
    assert loader.loads(TEXT, overrides=overrides).name == "tiny"


def test_what_earlier_versions_accepted_can_still_be_read() -> None:
    text = TEXT.replace("'(.*)'}", "'(.*)', scale: 0}").replace("evaluation_point: {n: 8}\n", "")
    assert loader.loads(text, starts=False).stop.width == 0.1


def test_a_point_that_the_application_cannot_run_is_named_although_it_would_be_validated() -> None:
    text = (
        "name: tiny\napplication: exafmm\nexecutable: 'true'\nparameters: {n: [500, 1000], p: [1]}\n"
        "settings: {level: 0}\nexecutor: {name: local}\nvalidate: true\n"
        "measure: {time_limit: 5 s}\nstop: {budget: 1}\nevaluation_point: {n: 2000, p: 2}\n"
    )
    with pytest.raises(CampaignError, match=r"^f.yaml:10: evaluation_point: .* level 0 divides space into"):
        loader.loads(text, "f.yaml")


def test_a_category_may_be_below_0_whatever_the_model() -> None:
    category = "{n: [1, 2, 4], mode: {values: [-1, 0], type: categorical}}\nmodel: pmnf"
    text = TEXT.replace("{n: [1, 2, 4]}", category).replace("{n: 8}", "{n: 8, mode: 0}")
    assert loader.loads(text, "f.yaml").model.name == "pmnf"
