"""What surrounds the program in its launch script: launcher, variables, modules, and what follows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.errors import CampaignError
from orchestrator.launch.script import ENVIRONMENT, find_frame
from orchestrator.types import Resources
from tests.launch.scripts import execute, program, script, shown

# --- launcher, environment ------------------------------------------------------------------------------


def test_launcher_placeholders() -> None:
    text = script(
        resources=Resources(ranks=12, threads=2, nodes=3, ranks_per_node=4, cores=24),
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
        script(launcher=launcher, resources=Resources(ranks=2))


def test_threads_are_always_told() -> None:
    assert "export OMP_NUM_THREADS=1\n" in script()
    assert "export OMP_NUM_THREADS=4\n" in script(resources=Resources(ranks=1, threads=4))


def test_variables_of_the_campaign_win_over_those_of_the_application() -> None:
    text = script(application=program([], {"A": "1", "B": "2"}), environment={"B": "3"})
    assert "export A=1\nexport B=3\n" in text


def test_threads_that_contradict_what_is_charged_are_refused() -> None:
    assert "OMP_NUM_THREADS=2" in script(
        resources=Resources(ranks=1, threads=2), environment={"OMP_NUM_THREADS": "2"}
    )
    with pytest.raises(CampaignError, match="charged for 2 threads"):
        script(resources=Resources(ranks=1, threads=2), environment={"OMP_NUM_THREADS": "8"})


def test_scorep_writes_into_the_attempt(tmp_path: Path, show: str) -> None:
    environment = {"SCOREP_TOTAL_MEMORY": "64M", "SCOREP_ENABLE_TRACING": "true"}
    seen = shown(script(executable=show, profiler="scorep", environment=environment), tmp_path)["environment"]
    assert Path(seen["SCOREP_EXPERIMENT_DIRECTORY"]) == tmp_path / "scorep"
    assert seen["SCOREP_ENABLE_PROFILING"] == "true"
    assert seen["SCOREP_ENABLE_TRACING"] == "true"
    assert "SCOREP" not in script(profiler="stdout")


def test_caliper_writes_into_the_attempt_unless_it_is_configured(tmp_path: Path, show: str) -> None:
    folder = tmp_path / "p=8,s=10 (x)"  # what the syntax of the configuration must not see
    folder.mkdir()
    seen = shown(script(executable=show, profiler="caliper"), folder)["environment"]["CALI_CONFIG"]
    assert seen == f'spot(output="{folder}/caliper.cali",time.exclusive,region.count,profile.mpi)'
    own = {"CALI_CONFIG": "runtime-profile(output=own.cali,output.format=cali)"}
    seen = shown(script(executable=show, profiler="caliper", environment=own), folder)["environment"]
    assert seen["CALI_CONFIG"] == own["CALI_CONFIG"]


def test_libraries_are_preloaded_into_the_program_only(tmp_path: Path, show: str) -> None:
    library = tmp_path / "lib 1.so"  # not there: the loader says so and goes on
    text = script(executable=show, profiler="mpi", preload=[str(library)], environment={"LD_PRELOAD": ""})
    assert (
        text.index("mpiexec") < text.index("env LD_PRELOAD")
        if "mpiexec" in text
        else "env LD_PRELOAD" in text
    )
    seen = shown(text, tmp_path)["environment"]
    assert seen["LD_PRELOAD"] == str(library)
    assert Path(seen["ORCHESTRATOR_MPI_TIME_DIRECTORY"]) == tmp_path / "mpi-time"
    before = shown(
        script(executable=show, preload=["/a.so", "/b.so"], environment={"LD_PRELOAD": "/c.so"}), tmp_path
    )["environment"]
    assert before["LD_PRELOAD"] == "/a.so:/b.so:/c.so"


@pytest.mark.parametrize("name", ["mpi.sh", "slurm.sh"])
def test_traces_of_an_enclosing_mpi_program_or_job_step_are_removed(
    tmp_path: Path, show: str, name: str
) -> None:
    frame = find_frame(name, "local").read_text()
    inherited = {
        "PMI_RANK": "3",
        "PMIX_SERVER_URI3": "x",
        "OMPI_COMM_WORLD_SIZE": "4",
        "OMPI_MCA_btl": "self",
        "SLURM_CPU_BIND_TYPE": "mask_cpu:",
        "SLURM_CPUS_PER_TASK": "7",
        "SLURM_JOB_ID": "1",
    }
    seen = shown(script(executable=show, frame=frame), tmp_path, **inherited)["environment"]
    kept = {"OMPI_MCA_btl", "SLURM_JOB_ID"} | (
        {"SLURM_CPU_BIND_TYPE", "SLURM_CPUS_PER_TASK"} if name == "mpi.sh" else set()
    )
    assert {key for key in inherited if key in seen} == kept


@pytest.mark.parametrize("name", ["mpi.sh", "slurm.sh"])
def test_the_exit_code_is_that_of_the_program(tmp_path: Path, name: str) -> None:
    frame = find_frame(name, "local").read_text()
    text = script(["-c", "exit 7"], executable="/bin/sh", frame=frame)
    assert execute(text, tmp_path).returncode == 7


# --- modules, and what follows the program ------------------------------------------------------------

MODULES = """#!/bin/bash
module() {
    [ "$2" = missing ] && { echo "no module $2" >&2; return 1; }
    export LOADEDMODULES="$LOADEDMODULES:$2"
}
"""


@pytest.mark.parametrize("frame", ["mpi.sh", "slurm.sh"])
def test_modules_are_loaded_before_the_prologue(tmp_path: Path, show: str, frame: str) -> None:
    (tmp_path / "lmod" / "init").mkdir(parents=True)
    (tmp_path / "lmod" / "init" / "bash").write_text(MODULES)
    text = script(
        executable=show,
        frame=find_frame(frame, "local").read_text(),
        modules=["gcc/12", "a b'; touch pwned; '"],
        prologue=['export SEEN="$LOADEDMODULES"'],
    )
    seen = shown(text, tmp_path, LMOD_PKG=str(tmp_path / "lmod"), MODULESHOME="")["environment"]
    assert seen["SEEN"] == ":gcc/12:a b'; touch pwned; '"
    assert not (tmp_path / "pwned").exists()
    assert f"LOADEDMODULES={seen['SEEN']}\0" in (tmp_path / ENVIRONMENT).read_text()


def test_a_module_that_cannot_be_loaded_ends_the_script(tmp_path: Path, show: str) -> None:
    (tmp_path / "init").mkdir()
    (tmp_path / "init" / "bash").write_text(MODULES)
    text = script(executable=show, modules=["missing", "gcc"])
    process = execute(text, tmp_path, LMOD_PKG="", MODULESHOME=str(tmp_path))
    assert (process.returncode, process.stdout) == (1, "")
    assert "this module cannot be loaded: missing" in process.stderr


@pytest.mark.parametrize("name", ["mpi.sh", "slurm.sh"])
def test_what_follows_the_program_does_not_change_its_exit_code(tmp_path: Path, name: str) -> None:
    frame = find_frame(name, "local").read_text()
    text = script(["-c", "exit 7"], executable="/bin/sh", frame=frame, epilogue=["touch after", "false"])
    assert execute(text, tmp_path).returncode == 7
    assert (tmp_path / "after").exists()


@pytest.mark.parametrize("lacking", ["{{exec}}", "{{epilogue}}"])
def test_a_template_must_have_a_place_for_what_follows(lacking: str) -> None:
    own = "{{prologue}}\n{{environment}}\n{{exec}} {{command}}{{epilogue}}\n"
    assert "touch after" in script(frame=own, epilogue=["touch after"])
    with pytest.raises(CampaignError, match=re.escape(f"{lacking} is missing")):
        script(frame=own.replace(lacking, ""), epilogue=["touch after"])
