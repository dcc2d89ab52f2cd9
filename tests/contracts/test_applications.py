"""One suite over every application in the registry."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import pytest

import adapters
from orchestrator import registry
from orchestrator.errors import CampaignError
from orchestrator.launch.script import template_of
from orchestrator.types import Application, Sample, Value
from tests.adapters.commands import arguments, filled
from tests.adapters.outputs import COMPLETE, SETTINGS

NAMES = registry.names("application")
READABLE = sorted(set(NAMES) - {"fastest"})  # in whose output times are known
OURS = {"orchestrator.types", "adapters", "adapters.common"}
WITHOUT_EFFECTS = {"__future__", "collections.abc", "functools", "math", "re"}
AGGREGATES = {"value", "min", "mean", "max", "sum"}


def load(name: str) -> Application:
    application: Application = registry.load("application", name)
    return application


def adapter_files() -> list[Path]:
    return sorted(Path(adapters.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_the_suite_knows_a_point_and_an_output(name: str) -> None:
    assert name in SETTINGS and (name in COMPLETE) == (name in READABLE)


@pytest.mark.parametrize("name", NAMES)
def test_the_registered_name_is_its_own(name: str) -> None:
    assert load(name).name == name
    assert load(name).description


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_explained_and_required_ones_are_parameters(name: str) -> None:
    application = load(name)
    assert all(meaning.strip() for meaning in application.parameters.values())
    assert set(application.required) <= set(application.parameters)


@pytest.mark.parametrize("name", NAMES)
def test_ranks_and_threads_follow_the_convention(name: str) -> None:
    application, settings = load(name), {**SETTINGS[name], "t": 3}
    assert application.ranks(settings) == settings["p"]
    assert application.threads(settings) == 3
    assert application.threads({key: value for key, value in settings.items() if key != "t"}) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_possible_point_gives_arguments_and_files_as_text(name: str) -> None:
    application, settings = load(name), SETTINGS[name]
    assert application.check(settings) is None
    assert all(type(argument) is str for argument in arguments(application, settings))
    files = application.files(settings)
    assert all(type(text) is str and Path(file).name == file for file, text in files.items())


@pytest.mark.parametrize("name", NAMES)
def test_whole_numbers_may_be_floats(name: str) -> None:
    application, settings = load(name), SETTINGS[name]
    floats: dict[str, Value] = {k: float(v) if isinstance(v, int) else v for k, v in settings.items()}
    assert application.check(floats) is None
    assert application.ranks(floats) == application.ranks(settings)
    assert filled(application, floats) == filled(application, settings)
    assert application.files(floats) == application.files(settings)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1, 1.5, "many", float("inf"), float("nan")])
@pytest.mark.parametrize("parameter", ["p", "t"])
def test_impossible_ranks_and_threads_are_refused_with_a_reason(
    name: str, value: Value, parameter: str
) -> None:
    reason = load(name).check({**SETTINGS[name], parameter: value})
    assert reason and parameter in reason


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_required_parameter_is_refused_by_name(name: str) -> None:
    application = load(name)
    for parameter in application.required:
        rest = {key: value for key, value in SETTINGS[name].items() if key != parameter}
        reason = application.check(rest)
        assert reason and parameter in reason


@pytest.mark.parametrize("name", NAMES)
def test_any_text_as_a_value_is_refused_or_passed_on_as_one_argument(name: str) -> None:
    application = load(name)
    for parameter in application.parameters:
        settings = {**SETTINGS[name], parameter: "'; rm -rf / #"}
        if application.check(settings) is not None:
            continue
        try:
            words = arguments(application, settings)
        except CampaignError as error:
            assert "the shell could interpret" in str(error)
        else:
            assert settings[parameter] in words


@pytest.mark.parametrize("name", READABLE)
def test_a_complete_output_gives_times_in_a_tree(name: str) -> None:
    samples = load(name).output(COMPLETE[name])
    assert "time" in {sample.metric for sample in samples}
    assert len({(s.callpath, s.metric, s.aggregate) for s in samples}) == len(samples)
    assert len({sample.callpath.split("->")[0] for sample in samples}) == 1
    for sample in samples:
        assert isinstance(sample, Sample) and sample.aggregate in AGGREGATES
        assert math.isfinite(sample.value) and sample.value >= 0
        assert all(part and part == part.strip() for part in sample.callpath.split("->"))


@pytest.mark.parametrize("name", READABLE)
@pytest.mark.parametrize("stdout", ["", "\n \n", "srun: error: Unable to create step\n"])
def test_an_output_without_values_is_an_error_that_says_what_is_missing(name: str, stdout: str) -> None:
    with pytest.raises(ValueError, match=r"the output has no|stdout is empty"):
        load(name).output({"stdout": stdout, "stderr": ""})


@pytest.mark.parametrize("name", READABLE)
def test_a_torn_output_is_an_error_or_complete(name: str) -> None:
    """Cut after each line: either an error, or everything that the whole output gives."""
    whole = load(name).output(COMPLETE[name])
    lines = COMPLETE[name]["stdout"].splitlines(keepends=True)
    errors = 0
    for count in range(len(lines)):
        texts = {**COMPLETE[name], "stdout": "".join(lines[:count])}
        try:
            assert set(load(name).output(texts)) <= set(whole)
        except ValueError:
            errors += 1
    assert errors >= len(lines) // 2


@pytest.mark.parametrize("name", READABLE)
def test_independent_copies_instead_of_one_parallel_program_are_noticed(name: str) -> None:
    texts = {**COMPLETE[name], "stdout": COMPLETE[name]["stdout"] * 2}
    with pytest.raises(ValueError, match="independent copies"):
        load(name).output(texts)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(READABLE)))
def test_where_no_times_are_known_in_the_output_a_profiler_is_asked_for(name: str) -> None:
    with pytest.raises(ValueError, match=r"set measure\.profiler"):
        load(name).output({"stdout": "Total time: 1.0 s\n", "stderr": ""})


@pytest.mark.parametrize("name", NAMES)
def test_the_header_of_the_template_explains_every_parameter(name: str) -> None:
    template = template_of(name)
    assert template is not None
    assert template.header.startswith("#!/bin/bash\n# ")
    assert re.search(r"^# Executable: ", template.header, re.MULTILINE)
    explained = re.findall(r"^#   (\w+) {2,}\S", template.header.partition("# Parameters\n")[2], re.MULTILINE)
    assert set(explained) == set(load(name).parameters)


@pytest.mark.parametrize("name", NAMES)
def test_the_template_uses_every_parameter_or_what_follows_from_it(name: str) -> None:
    """A placeholder is a parameter or a value of the adapter; a value that the template lacks is useless."""
    template, values = template_of(name), load(name).values(SETTINGS[name])
    assert template is not None
    assert template.names() <= {*values, *load(name).parameters}
    assert set(values) - template.names() <= {"t"}


@pytest.mark.parametrize("path", adapter_files(), ids=lambda path: path.stem)
def test_adapters_import_nothing_that_has_effects(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {node.module or ""}
        else:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"open", "print", "input", "eval", "exec", "__import__"}
            continue
        assert names <= OURS | WITHOUT_EFFECTS
