"""The command effort: paths alone on standard output, tables of counts, clear refusals."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from tests.instrumentation import tools
from tests.readers.test_effort import SEND, write
from tests.requirements import need


def test_show_prints_the_call_paths_with_most_effort_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    assert main(["effort", "show", str(tmp_path), "--top", "2"]) == 0
    printed = capsys.readouterr().out
    assert "1 rank, 3 call paths" in printed
    # A row of each kind, without types: the function with most blocks, the operation with all bytes.
    assert "main->solve " in printed and "main->solve->MPI_Send " in printed and "main " not in printed
    assert "2 of 3 call paths shown: --top 3 shows all" in printed


def test_show_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path)
    assert main(["effort", "show", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = {row["callpath"]: row for row in document["callpaths"]}
    assert document["ranks"] == 1
    assert (rows[SEND]["bytes_sent"], rows[SEND]["basic_blocks"], rows[SEND]["communicator_size"]) == (
        48,
        None,
        2,
    )
    assert rows["main"]["basic_blocks"] == 10


def test_show_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["effort", "show", str(tmp_path)]) == 1
    assert "was not built with a compiler from 'orchestrator effort compiler'" in capsys.readouterr().err


def test_compiler_prints_one_path_that_can_be_run(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tools.compiler("gcc", cache)  # or skip
    assert main(["effort", "compiler", "gcc", "--cache", str(cache)]) == 0
    captured = capsys.readouterr()
    wrapper = Path(captured.out.strip())
    assert wrapper.name == "gcc" and wrapper.stat().st_mode & 0o111
    assert "MPI is not counted" in captured.err


def test_an_unknown_compiler_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["effort", "compiler", "gcc-of-nobody", "--cache", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("error: no compiler 'gcc-of-nobody'")


@pytest.mark.mpi
def test_timer_prints_the_path_of_a_library(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need(shutil.which("mpicc.openmpi"), "mpicc.openmpi")
    assert main(["effort", "timer", "mpicc.openmpi", "--cache", str(cache)]) == 0
    assert Path(capsys.readouterr().out.strip()).read_bytes().startswith(b"\x7fELF")
