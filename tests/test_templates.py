from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import registry, templates
from orchestrator.errors import CampaignError
from orchestrator.types import Application, Resources, Value
from tests.adapters.outputs import SETTINGS

GOLDEN = Path(__file__).parent / "golden" / "scripts"
# REGENERATE_GOLDEN=1 pytest tests/test_templates.py writes the scripts anew; look at the diff afterwards.
REGENERATE = os.environ.get("REGENERATE_GOLDEN") == "1"
PLAIN = "{{prologue}}\n{{environment}}\nexec {{launcher}} {{command}}\n"
ONE = Resources(1)
# Prints its arguments and environment as JSON.
SHOW = f"""#!{sys.executable}
import json, os, sys
print(json.dumps({{"arguments": sys.argv[1:], "environment": dict(os.environ)}}))
"""


def program(arguments: list[str], environment: Mapping[str, str] | None = None) -> Application:
    return Application(
        "demo",
        "",
        {},
        ranks=lambda s: 1,
        arguments=lambda s: arguments,
        output=lambda texts: [],
        environment=environment or {},
    )


def script(arguments: list[str] | None = None, executable: str = "./app", **changes: Any) -> str:
    chosen: dict[str, Any] = {
        "application": program(arguments or []),
        "executable": executable,
        "settings": {},
        "resources": ONE,
        "launcher": None,
        "template": PLAIN,
        "prologue": (),
        "environment": {},
        "profiler": "stdout",
    }
    return templates.launch_script(**{**chosen, **changes})


def execute(text: str, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (directory / "run.sh").write_text(text)
    return subprocess.run(
        ["bash", "run.sh"],
        cwd=directory,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def shown(text: str, directory: Path, **environment: str) -> Any:
    process = execute(text, directory, **environment)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.fixture
def show(tmp_path: Path) -> str:
    path = tmp_path / "sh ow's"
    path.write_text(SHOW)
    path.chmod(0o755)
    return str(path)


# --- rendering ----------------------------------------------------------------------------------------


def test_placeholders_are_replaced_whatever_the_spaces() -> None:
    assert templates.render("a {{x}} {{ y }} {{x}}", {"x": "1", "y": "2"}, "f") == "a 1 2 1"


def test_values_are_not_scanned_for_placeholders() -> None:
    assert templates.render("{{x}}", {"x": "{{y}} {{"}, "f") == "{{y}} {{"


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
        templates.render(text, {"x": "1"}, "job.sh")
    assert message in str(error.value)


def test_a_template_may_have_its_own_launcher_but_not_lack_the_command() -> None:
    own = (
        "{{prologue}}\n{{environment}}\naprun -n {{ranks}} -N {{ranks_per_node}} -d {{threads}} {{command}}\n"
    )
    resources = Resources(12, 2, 3, 4, 24)
    assert "aprun -n 12 -N 4 -d 2 ./app" in script(template=own, resources=resources, launcher="srun")
    with pytest.raises(CampaignError, match=r"\{\{command\}\} is missing"):
        script(template=own.replace("{{command}}", ""), resources=resources, launcher="srun")


# --- nothing is executed that was meant as a value ------------------------------------------------------

NASTY = [
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned #",
    "' ; touch pwned ; '",
    '" ; touch pwned ; "',
    "a\ntouch pwned\n",
    "&& touch pwned",
    "$HOME",
    "*",
    "~",
    "{a,b}",
    "\\",
    "-n",
    "",
    " two  spaces ",
    "ümläut € 🚀",
    "{{command}}",
    "\x01\x7f\t",
]


@pytest.mark.parametrize("template", ["local", "slurm"])
def test_arguments_and_variables_arrive_as_they_are(tmp_path: Path, show: str, template: str) -> None:
    text = script(
        NASTY,
        executable=show,
        environment={f"NASTY_{i}": value for i, value in enumerate(NASTY)},
        template=templates.find_template(None, template).read_text(),
        launcher="none",
    )
    seen = shown(text, tmp_path)
    assert seen["arguments"] == NASTY
    assert [seen["environment"][f"NASTY_{i}"] for i in range(len(NASTY))] == NASTY
    assert not list(tmp_path.rglob("pwned"))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20), max_size=8
    )
)
def test_any_text_arrives_as_one_argument(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    directory = tmp_path_factory.mktemp("inert")
    path = directory / "show"
    path.write_text(SHOW)
    path.chmod(0o755)
    assert shown(script(words, executable=str(path)), directory)["arguments"] == words


def test_words_of_the_launcher_are_inert_too(tmp_path: Path, show: str) -> None:
    seen = shown(script(["x"], launcher="env 'A=$(touch pwned);' B=`touch", executable=show), tmp_path)
    assert seen["environment"]["A"] == "$(touch pwned);" and seen["environment"]["B"] == "`touch"
    assert not (tmp_path / "pwned").exists()


def test_prologue_is_shell(tmp_path: Path, show: str) -> None:
    seen = shown(script(executable=show, prologue=["export A=$((6 * 7))", "export B=$A"]), tmp_path)
    assert seen["environment"]["B"] == "42"


def test_a_nul_is_refused() -> None:
    with pytest.raises(CampaignError, match="NUL"):
        script(["a\0b"])


@pytest.mark.parametrize("name", ["A B", "A=B", "1A", "A;ls", "", "A\n"])
def test_a_name_that_is_no_variable_is_refused(name: str) -> None:
    with pytest.raises(CampaignError, match="cannot name a variable"):
        script(environment={name: "1"})


# --- launcher, environment ------------------------------------------------------------------------------


def test_launcher_placeholders() -> None:
    text = script(
        resources=Resources(12, 2, 3, 4, 24),
        launcher="mpiexec -n {ranks} --map-by ppr:{ranks_per_node}:node:PE={threads} -N {nodes} '{{x}}'",
    )
    assert "exec mpiexec -n 12 --map-by ppr:4:node:PE=2 -N 3 '{x}' ./app" in text


@pytest.mark.parametrize("launcher", ["mpiexec -n {rank}", "mpiexec -n {", "mpiexec -n }", "mpiexec '"])
def test_a_bad_launcher_is_named(launcher: str) -> None:
    with pytest.raises(CampaignError, match=r"executor\.launcher"):
        script(launcher=launcher)


@pytest.mark.parametrize("launcher", [None, "", " ", "none"])
def test_one_rank_needs_no_launcher_but_two_do(launcher: str | None) -> None:
    assert script(launcher=launcher).splitlines()[-1].split() == ["exec", "./app"]
    with pytest.raises(CampaignError, match=r"2 ranks need a launcher.*mpiexec -n \{ranks\}"):
        script(launcher=launcher, resources=Resources(2))


def test_threads_are_always_told() -> None:
    assert "export OMP_NUM_THREADS=1\n" in script()
    assert "export OMP_NUM_THREADS=4\n" in script(resources=Resources(1, 4))


def test_variables_of_the_campaign_win_over_those_of_the_application() -> None:
    text = script(application=program([], {"A": "1", "B": "2"}), environment={"B": "3"})
    assert "export A=1\nexport B=3\n" in text


def test_threads_that_contradict_what_is_charged_are_refused() -> None:
    assert "OMP_NUM_THREADS=2" in script(resources=Resources(1, 2), environment={"OMP_NUM_THREADS": "2"})
    with pytest.raises(CampaignError, match="charged for 2 threads"):
        script(resources=Resources(1, 2), environment={"OMP_NUM_THREADS": "8"})


def test_scorep_writes_into_the_attempt(tmp_path: Path, show: str) -> None:
    environment = {"SCOREP_TOTAL_MEMORY": "64M", "SCOREP_ENABLE_TRACING": "true"}
    seen = shown(script(executable=show, profiler="scorep", environment=environment), tmp_path)["environment"]
    assert Path(seen["SCOREP_EXPERIMENT_DIRECTORY"]) == tmp_path / "scorep"
    assert seen["SCOREP_ENABLE_PROFILING"] == "true"
    assert seen["SCOREP_ENABLE_TRACING"] == "true"
    assert "SCOREP" not in script(profiler="stdout")


@pytest.mark.parametrize("name", ["mpi.sh", "slurm.sh"])
def test_traces_of_an_enclosing_mpi_program_or_job_step_are_removed(
    tmp_path: Path, show: str, name: str
) -> None:
    template = templates.find_template(name, "local").read_text()
    inherited = {
        "PMI_RANK": "3",
        "PMIX_SERVER_URI3": "x",
        "OMPI_COMM_WORLD_SIZE": "4",
        "OMPI_MCA_btl": "self",
        "SLURM_CPU_BIND_TYPE": "mask_cpu:",
        "SLURM_CPUS_PER_TASK": "7",
        "SLURM_JOB_ID": "1",
    }
    seen = shown(script(executable=show, template=template), tmp_path, **inherited)["environment"]
    kept = {"OMPI_MCA_btl", "SLURM_JOB_ID"} | (
        {"SLURM_CPU_BIND_TYPE", "SLURM_CPUS_PER_TASK"} if name == "mpi.sh" else set()
    )
    assert {key for key in inherited if key in seen} == kept


@pytest.mark.parametrize("name", ["mpi.sh", "slurm.sh"])
def test_the_exit_code_is_that_of_the_program(tmp_path: Path, name: str) -> None:
    template = templates.find_template(name, "local").read_text()
    text = script(["-c", "exit 7"], executable="/bin/sh", template=template)
    assert execute(text, tmp_path).returncode == 7


# --- modules, and what follows the program ------------------------------------------------------------

MODULES = """#!/bin/bash
module() {
    [ "$2" = missing ] && { echo "no module $2" >&2; return 1; }
    export LOADEDMODULES="$LOADEDMODULES:$2"
}
"""


@pytest.mark.parametrize("template", ["mpi.sh", "slurm.sh"])
def test_modules_are_loaded_before_the_prologue(tmp_path: Path, show: str, template: str) -> None:
    (tmp_path / "lmod" / "init").mkdir(parents=True)
    (tmp_path / "lmod" / "init" / "bash").write_text(MODULES)
    text = script(
        executable=show,
        template=templates.find_template(template, "local").read_text(),
        modules=["gcc/12", "a b'; touch pwned; '"],
        prologue=['export SEEN="$LOADEDMODULES"'],
    )
    seen = shown(text, tmp_path, LMOD_PKG=str(tmp_path / "lmod"), MODULESHOME="")["environment"]
    assert seen["SEEN"] == ":gcc/12:a b'; touch pwned; '"
    assert not (tmp_path / "pwned").exists()
    assert f"LOADEDMODULES={seen['SEEN']}\0" in (tmp_path / templates.ENVIRONMENT).read_text()


def test_a_module_that_cannot_be_loaded_ends_the_script(tmp_path: Path, show: str) -> None:
    (tmp_path / "init").mkdir()
    (tmp_path / "init" / "bash").write_text(MODULES)
    text = script(executable=show, modules=["missing", "gcc"])
    process = execute(text, tmp_path, LMOD_PKG="", MODULESHOME=str(tmp_path))
    assert (process.returncode, process.stdout) == (1, "")
    assert "this module cannot be loaded: missing" in process.stderr


@pytest.mark.parametrize("name", ["mpi.sh", "slurm.sh"])
def test_what_follows_the_program_does_not_change_its_exit_code(tmp_path: Path, name: str) -> None:
    template = templates.find_template(name, "local").read_text()
    text = script(
        ["-c", "exit 7"], executable="/bin/sh", template=template, epilogue=["touch after", "false"]
    )
    assert execute(text, tmp_path).returncode == 7
    assert (tmp_path / "after").exists()


@pytest.mark.parametrize("lacking", ["{{exec}}", "{{epilogue}}"])
def test_a_template_must_have_a_place_for_what_follows(lacking: str) -> None:
    own = "{{prologue}}\n{{environment}}\n{{exec}} {{command}}{{epilogue}}\n"
    assert "touch after" in script(template=own, epilogue=["touch after"])
    with pytest.raises(CampaignError, match=re.escape(f"{lacking} is missing")):
        script(template=own.replace(lacking, ""), epilogue=["touch after"])


# --- golden scripts ---------------------------------------------------------------------------------------

LAUNCHERS = {
    "local": "mpiexec -n {ranks}",
    "slurm": "srun --ntasks={ranks} --cpus-per-task={threads} --export=ALL",
}


@pytest.mark.parametrize("executor", LAUNCHERS)
@pytest.mark.parametrize("name", registry.names("application"))
def test_scripts_are_as_they_were(name: str, executor: str) -> None:
    application: Application = registry.load("application", name)
    point: Mapping[str, Value] = SETTINGS[name]
    ranks, threads = application.ranks(point), application.threads(point)
    text = script(
        application=application,
        executable="/opt/my apps/program.x",
        settings=point,
        resources=Resources(ranks, threads, 1, ranks, ranks * threads),
        launcher=LAUNCHERS[executor],
        template=templates.find_template(None, executor).read_text(),
        prologue=["module load mpi"] if executor == "slurm" else [],
        profiler="scorep" if executor == "slurm" else "stdout",
    )
    path = GOLDEN / f"{name}-{executor}.sh"
    if REGENERATE:
        path.write_text(text)
    assert path.read_text() == text


def test_no_golden_script_is_left_over() -> None:
    expected = {f"{name}-{executor}.sh" for name in registry.names("application") for executor in LAUNCHERS}
    assert {path.name for path in GOLDEN.iterdir()} == expected


def test_scripts_are_shell() -> None:
    for path in GOLDEN.iterdir():
        assert subprocess.run(["bash", "-n", path], check=False).returncode == 0, path


# --- where templates and campaigns are ----------------------------------------------------------------------


def test_every_executor_has_a_template() -> None:
    assert templates.find_template(None, "local").name == "mpi.sh"
    assert templates.find_template(None, "slurm").name == "slurm.sh"
    assert templates.find_template("slurm", "local").name == "slurm.sh"


def test_a_template_may_be_a_path(tmp_path: Path) -> None:
    own = tmp_path / "own.sh"
    own.write_text(PLAIN)
    assert templates.find_template(str(own), "slurm") == own


@pytest.mark.parametrize("name", ["sluurm", "no/such/file.sh", "../templates/slurm.sh"])
def test_an_unknown_template_is_an_error_that_lists_the_known(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CampaignError, match=r"no launch script .*one of: mpi, slurm"):
        templates.find_template(name, "local")


@pytest.mark.parametrize("kind", ["templates", "campaigns"])
@pytest.mark.parametrize("layout", ["clone", "wheel"])
def test_data_is_found_beside_the_package_and_inside_it(tmp_path: Path, kind: str, layout: str) -> None:
    """The layout of a wheel is what pyproject.toml force-includes."""
    root = Path(__file__).parent.parent
    shutil.copytree(root / "orchestrator", tmp_path / "orchestrator", ignore=shutil.ignore_patterns("_data"))
    data = tmp_path / kind if layout == "clone" else tmp_path / "orchestrator" / "_data" / kind
    shutil.copytree(root / kind, data)
    command = f"from orchestrator.templates import data_directory; print(data_directory({kind!r}))"
    process = subprocess.run(
        [sys.executable, "-c", command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(process.stdout.strip()) == data.resolve()


def test_an_incomplete_installation_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.__file__", str(tmp_path / "orchestrator" / "__init__.py"))
    with pytest.raises(CampaignError, match="install again"):
        templates.data_directory("templates")
