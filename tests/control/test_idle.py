"""Parameters that change nothing in what a run executes."""

from __future__ import annotations

import pytest

from orchestrator.campaign import loader
from orchestrator.control import cautions
from orchestrator.control.idle import idle
from orchestrator.errors import CampaignError

TEXT = """
name: tuning
application: generic
executable: 'true'
program: {arguments: ["{n}"]}
measure: {profiler: time}
parameters: {n: [1, 2, 4], tile: [8, 16, 32]}
executor: {name: local, slots: 4}
stop: {budget: 1}
"""
TEMPLATE = TEXT.replace('arguments: ["{n}"]', "") + "template: |\n"
NOTE = (
    "parameter tile changes nothing in what a run executes: write {tile} in program.arguments, files or "
    "environment, or remove it"
)


def found(*overrides: str, text: str = TEXT) -> list[str]:
    return idle(loader.loads(text, overrides=overrides))


def test_a_parameter_that_reaches_nothing_is_told() -> None:
    assert found() == [NOTE]
    assert NOTE in cautions.about_parameters(loader.loads(TEXT))


@pytest.mark.parametrize(
    "override",
    [
        "program.arguments=['{n}', '{tile * 2}']",
        "program.environment={TILE: '{tile}'}",
        "program.files={input: 'tile = {tile}'}",
        "program.threads='2 if tile > 8 else 1'",
        "program.ranks='1 if tile > 8 else 2'",
        "resources={threads: '1 if tile > 8 else 2'}",
        "executor.prologue=['export POINT=$PWD']",
    ],
)
def test_one_that_reaches_a_run_is_not(override: str) -> None:
    assert found(override) == []


@pytest.mark.parametrize("line", ["{{n}} {{tile}}", "{{n * tile}}", "{{n}} $PWD"])
def test_one_that_reaches_the_template_is_not(line: str) -> None:
    assert found(text=TEMPLATE + f"  {{{{launcher}}}} {{{{executable}}}} {line}\n") == []


def test_one_that_others_follow_from_reaches_a_run() -> None:
    assert found("program.arguments=['{n}', '{size}']", "constraints=['size == n * tile']") == []


@pytest.mark.parametrize(
    "override",
    ["constraints=['tile <= n * 100']", "program.check=['tile >= n']", "constraints=['tile > 8']"],
)
def test_a_condition_reaches_no_run(override: str) -> None:
    assert found(override) == [NOTE]


def test_one_that_an_equation_ties_to_others_is_not_told() -> None:
    assert found("constraints=['tile == 8 * n']") == []


def test_with_a_template_the_note_names_it() -> None:
    [note] = found(text=TEMPLATE + "  {{launcher}} {{executable}} {{n}}\n")
    assert note.endswith("write {{tile}} in the template, or remove it")


def test_nothing_is_told_of_rehearsals_adapters_and_single_values() -> None:
    assert found("executor={name: simulated, truth: {main: n}}") == []
    assert found("parameters.tile=[8]") == []
    text = "name: x\napplication: lulesh\nexecutable: 'true'\nparameters: {p: [1, 8], s: [4, 5], i: [1, 2]}\n"
    assert found(text=f"{text}executor: {{name: slurm}}\nstop: {{budget: 1}}\n") == []


def test_what_is_called_like_a_resource_is_told_once() -> None:
    campaign = loader.loads(TEXT.replace("tile", "nodes"))
    [note] = cautions.about_parameters(campaign)
    assert note.startswith("parameter nodes does not change what a run requests")


@pytest.mark.parametrize(
    ("values", "example"),
    [
        ('["1k", "2k"]', "{size}k"),
        ("[1 MiB, 1.5 MiB]", "{size}MiB"),
        ('["2D", "3D"]', ""),
        ('["1k", all]', ""),
        ('["1", "2"]', ""),
    ],
)
def test_sizes_with_units_are_told_to_be_text(values: str, example: str) -> None:
    text = TEXT.replace("tile: [8, 16, 32]", f"size: {values}").replace('"{n}"', '"{n}", "{size}"')
    notes = cautions.about_parameters(loader.loads(text))
    assert [note.rpartition(" ")[2] for note in notes] == ([example] if example else [])
    if example:
        with pytest.raises(CampaignError, match="write numbers, and the unit where the program gets them"):
            loader.loads(f'{text}evaluation_point: {{n: 8, size: "8k"}}\n')


def test_two_executables_are_no_idle_parameter() -> None:
    assert found("compare={with: /bin/false}", "program.arguments=['{n}', '{tile}']") == []
