"""Placeholders of templates, and how a bad template is named."""

from __future__ import annotations

import pytest

from orchestrator.errors import CampaignError
from orchestrator.launch.script import render
from orchestrator.types import Resources
from tests.launch.scripts import script


def test_placeholders_are_replaced_whatever_the_spaces() -> None:
    assert render("a {{x}} {{ y }} {{x}}", {"x": "1", "y": "2"}, "f") == "a 1 2 1"


def test_values_are_not_scanned_for_placeholders() -> None:
    assert render("{{x}}", {"x": "{{y}} {{"}, "f") == "{{y}} {{"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one\n{{x}} {{typo}}", "job.sh:2: unknown placeholder {{typo}}; known: x"),
        ("{{x}} {{x", "job.sh:1: '{{' belongs to no placeholder"),
        ("{{x}}\n\n}}", "job.sh:3: '}}' belongs to no placeholder"),
        ("{{x}} {{}}", "job.sh:1: '{{}}' belongs to no placeholder"),
        ("nothing", "job.sh: the placeholder {{x}} is missing; add it"),
    ],
)
def test_a_bad_template_is_named_with_line_and_placeholder(text: str, message: str) -> None:
    with pytest.raises(CampaignError) as error:
        render(text, {"x": "1"}, "job.sh")
    assert message in str(error.value)


def test_a_template_may_have_its_own_launcher_but_not_lack_the_command() -> None:
    own = (
        "{{prologue}}\n{{environment}}\naprun -n {{ranks}} -N {{ranks_per_node}} -d {{threads}} {{command}}\n"
    )
    resources = Resources(ranks=12, threads=2, nodes=3, ranks_per_node=4, cores=24)
    assert "aprun -n 12 -N 4 -d 2 ./app" in script(frame=own, resources=resources, launcher="srun")
    with pytest.raises(CampaignError, match=r"\{\{command\}\} is missing"):
        script(frame=own.replace("{{command}}", ""), resources=resources, launcher="srun")
