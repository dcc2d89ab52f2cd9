"""Measured programs get the user's environment, whatever libraries set inside the controller."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, LOCAL, write_campaign
from tests.executors.under_test import EXECUTORS, run
from tests.slurm.fixtures import executor as slurm_executor

# What a program may find beyond the environment of the controller: what its attempt and its script set.
ADDED = {"ORCHESTRATOR_ATTEMPT", "OMP_NUM_THREADS", "PWD", "OLDPWD", "SHLVL", "_"}
ASK = """
import json, os, sys
os.environ.update({"KMP_INIT_AT_FORK": "FALSE", "OMP_PLACES": "threads", "MINE": "1"})
del os.environ["MKL_NUM_THREADS"]
from orchestrator.executors import inherited
json.dump(inherited.environment(), sys.stdout)
"""


def test_thread_libraries_are_as_the_user_left_them_and_the_rest_as_it_is_now() -> None:
    given = {**os.environ, "OMP_PLACES": "cores", "MKL_NUM_THREADS": "3"}
    given = {name: value for name, value in given.items() if not name.startswith("KMP_")}
    answer = subprocess.run([sys.executable, "-c", ASK], env=given, capture_output=True, check=True)
    found = json.loads(answer.stdout)
    assert found["OMP_PLACES"] == "cores" and found["MKL_NUM_THREADS"] == "3" and found["MINE"] == "1"
    assert "KMP_INIT_AT_FORK" not in found


def test_a_locally_measured_program_sees_the_environment_of_the_user(tmp_path: Path) -> None:
    """The strategy `gpr` imports scikit-learn, which sets KMP_* in the controller: see the last run."""
    program = '#!/bin/sh\nenv -0 > environment\necho "time: $1.5 s"\n'
    text = LOCAL.replace("name: cpf", "name: gpr")
    given = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OMP_PROC_BIND": "close", "MINE": "a b"}
    command = [*COMMAND, "run", str(write_campaign(tmp_path, text, program))]
    done = subprocess.run(command, env=given, cwd=tmp_path, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    seen = list(tmp_path.glob("tiny/runs/*/*/*/environment"))
    assert len(seen) >= 5
    for path in seen:
        found = dict(item.split("=", 1) for item in path.read_text().split("\0") if item)
        assert {name: found.get(name) for name in given} == given, path
        assert set(found) - set(given) <= ADDED, path


def test_a_job_sees_the_environment_of_the_user(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = EXECUTORS["faulty slurm"](request, tmp_path / "campaign")
    monkeypatch.setenv("KMP_DUPLICATE_LIB_OK", "True")  # as scikit-learn does
    monkeypatch.setenv("MINE", "1")
    attempt = machine.request("env -0 > environment\n")
    [observation] = run(slurm_executor(machine.directory, "small"), attempt)
    assert observation.record is not None, observation
    found = (attempt.directory / "environment").read_text().split("\0")
    assert "MINE=1" in found
    assert not [item for item in found if item.startswith("KMP_")]
