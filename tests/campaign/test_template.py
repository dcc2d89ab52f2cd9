"""``template`` in a campaign file: where it is found, what it may use, and when it may change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.campaign import changes, loader
from orchestrator.campaign.definition import Campaign
from orchestrator.control import assembly, attempts
from orchestrator.errors import CampaignError
from orchestrator.journal.state import RunState, RunStatus, State, StopReason
from orchestrator.types import Point, Run

OWN = """\
#!/bin/bash
# My LULESH.
export MODE={{mode}}
{{launcher}} {{executable}} -s {{s}} -q {{q}} -h "${HOME}"
"""
LULESH = """\
name: x
application: lulesh
executable: 'true'
template: ./my-lulesh.sh
settings: {mode: quick}
parameters: {p: [1, 8], s: [10, 15], q: [1, 2]}
stop: {budget: 1}
"""
GENERIC = """\
name: x
application: generic
executable: 'true'
template: ./prog.sh
program: {ranks: p, output: [{callpath: main, pattern: 'time (.*)'}]}
parameters: {p: [1, 2], n: [8, 16]}
stop: {budget: 1}
"""


def loaded(folder: Path, campaign: str, template: str, *overrides: str) -> Campaign:
    (folder / ("my-lulesh.sh" if "my-lulesh" in campaign else "prog.sh")).write_text(template)
    path = folder / "x.yaml"
    path.write_text(campaign)
    return loader.load(path, ["executor.slots=8", *overrides])


def script(campaign: Campaign, **point: int) -> str:
    parts = assembly.assemble(campaign)
    at = Point.of(point)
    return attempts.script(parts, at, parts.resources(at))


def test_a_copy_beside_the_campaign_may_use_further_parameters(tmp_path: Path) -> None:
    text = script(loaded(tmp_path, LULESH, OWN), p=1, s=15, q=2)
    assert "export MODE=quick" in text
    assert '/true -s 15 -q 2 -h "${HOME}"' in text


def test_a_parameter_that_neither_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="lulesh has no parameter 'q'"):
        loaded(tmp_path, LULESH, OWN.replace(" -q {{q}}", ""))


def test_a_program_without_an_adapter_needs_no_python(tmp_path: Path) -> None:
    campaign = loaded(tmp_path, GENERIC, "{{launcher}} {{executable}} --size={{n // p}}\n")
    assert "/true --size=8" in script(campaign, p=2, n=16)
    with pytest.raises(CampaignError, match=r"program\.arguments: are in the template, too"):
        loaded(tmp_path, GENERIC, "{{executable}} {{n}}", "program.arguments=['{n}']")


def test_the_text_may_be_one_line(tmp_path: Path) -> None:
    campaign = loaded(
        tmp_path, GENERIC, "", "template='{{launcher}} {{executable}} --size={{n // p}} || true'"
    )
    assert "/true --size=8 || true" in script(campaign, p=2, n=16)


def test_the_text_becomes_part_of_the_campaign(tmp_path: Path) -> None:
    first = loaded(tmp_path, LULESH, OWN)
    saved = tmp_path / "dir" / "campaign.yaml"
    saved.parent.mkdir()
    saved.write_text(loader.dump(first))
    (tmp_path / "my-lulesh.sh").unlink()
    again = loader.load(saved)
    assert again == first and again.template == OWN
    assert script(again, p=1, s=10, q=1) == script(first, p=1, s=10, q=1)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("./no.sh", "template: ./no.sh cannot be read"),
        ("lulsh", "template: there is no launch template 'lulsh'; give a path or one of: amg, "),
        ("mpi", "template: there is no launch template 'mpi'"),
    ],
)
def test_a_missing_template_is_named(tmp_path: Path, template: str, message: str) -> None:
    with pytest.raises(CampaignError) as error:
        loaded(
            tmp_path,
            LULESH.replace(", q: [1, 2]", "").replace("{mode: quick}", "{}"),
            OWN,
            f"template={template}",
        )
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("echo\n", "my-lulesh.sh: no command has {{executable}}"),
        (OWN.replace("{{s}}", "{{size}}"), "my-lulesh.sh:4: unknown placeholder {{size}}"),
        (OWN.replace("{{mode}}", "'{{mode}} {{s +}}'"), "my-lulesh.sh:3: {{s +}}"),
    ],
)
def test_a_mistake_in_a_template_is_one_of_the_campaign(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CampaignError) as error:
        loaded(tmp_path, LULESH, text)
    lines = str(error.value).splitlines()
    assert any(message in line and "x.yaml:4: template: " in line for line in lines), lines


def test_a_shipped_template_may_be_named(tmp_path: Path) -> None:
    campaign = LULESH.replace(", q: [1, 2]", "").replace("{mode: quick}", "{}")
    named = loaded(tmp_path, campaign, OWN, "template=lulesh")
    default = loaded(tmp_path, campaign, OWN, "template=null")
    assert script(named, p=8, s=10) == script(default, p=8, s=10)
    assert "-s 10 -i 50 -r 1 -b 1 -c 1" in script(default, p=8, s=10)


def begun(campaign: Campaign, status: RunStatus = RunStatus.MEASURED) -> State:
    """The state in which one run was made."""
    state = State(id="1", campaign=dict(campaign.raw), time_limit=10.0)
    made = RunState(status=status, attempts=1)
    return state._replace(runs=state.runs.set(Run(Point.of(p=1, s=10, q=1)), made))


def test_a_template_may_change_if_no_run_so_far_would_have_another_command(tmp_path: Path) -> None:
    campaign = loaded(tmp_path, LULESH, OWN)
    known = begun(campaign)
    commented = replace(campaign, template=f"# Better words.\n{OWN}", raw={**campaign.raw, "template": "new"})
    assert changes.refusal(commented, known) is None
    assert changes.changed_rules(commented, known) == [
        "template: changed; the commands of all measured runs stay the same"
    ]
    other = OWN.replace("-q {{q}}", "-q {{2 * q}}")
    changed = replace(campaign, template=other, raw={**campaign.raw, "template": other})
    refusal = changes.refusal(changed, known)
    assert refusal is not None and "-q 1" in refusal and "-q 2" in refusal and "P(p=1, s=10, q=1)" in refusal


def test_of_two_scripts_the_lines_that_differ_are_shown(tmp_path: Path) -> None:
    long = OWN.replace("{{launcher}}", f"cp {'input ' * 100}.\n{{{{launcher}}}}", 1)
    campaign = loaded(tmp_path, LULESH, long)
    other = long.replace("-q {{q}}", "-q {{2 * q}}")
    refusal = changes.refusal(
        replace(campaign, template=other, raw={**campaign.raw, "template": other}), begun(campaign)
    )
    assert refusal is not None and "-q 1" in refusal and "-q 2" in refusal and "cp input" not in refusal


@pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.GIVEN_UP])
def test_a_template_with_which_runs_only_failed_may_be_corrected(tmp_path: Path, status: RunStatus) -> None:
    campaign = loaded(tmp_path, LULESH, OWN)
    other = OWN.replace("-q {{q}}", "-q {{2 * q}}")
    changed = replace(campaign, template=other, raw={**campaign.raw, "template": other})
    known = begun(campaign, status)._replace(stopped=StopReason("exhausted", "nothing is left"))
    assert changes.refusal(changed, known) is None
    assert changes.may_try_again(changed, known)
    assert changes.refusal(changed, begun(campaign, RunStatus.IN_FLIGHT)) is not None


def test_campaigns_of_earlier_versions_have_the_template_of_their_application(tmp_path: Path) -> None:
    campaign = loaded(
        tmp_path, LULESH.replace(", q: [1, 2]", "").replace("{mode: quick}", "{}"), OWN, "template=null"
    )
    raw = {key: value for key, value in campaign.raw.items() if key != "template"}
    assert loader.normalised(raw) == dict(campaign.raw)
