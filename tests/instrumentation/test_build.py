"""The compiler wrapper behaves as the compiler does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from orchestrator.instrumentation import build as build
from orchestrator.instrumentation.build import EffortError
from tests.instrumentation import tools


def output(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_it_compiles_and_links_in_one_step_or_in_two(name: str, cache: Path, tmp_path: Path) -> None:
    wrapper = build.wrapper(tools.compiler(name, cache))
    source = tools.PROGRAMS / "ends.c"
    for command in (["-Wall", "-Werror", "-c", source], ["ends.o", "-o", "two"], [source, "-o", "one"]):
        done = output(wrapper, *command, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    for program in ("one", "two"):
        tools.start([tmp_path / program], tmp_path / f"in-{program}")
    first, second = (tools.counts(tmp_path / f"in-{program}") for program in ("one", "two"))
    assert first == second and first["basic_blocks"]["main->loop"] > 10


@pytest.mark.parametrize("name", ["gcc", "clang"])
@pytest.mark.parametrize("question", [["--version"], ["-v"], ["-dumpmachine"], ["-print-search-dirs"]])
def test_questions_reach_the_compiler(name: str, question: list[str], cache: Path, tmp_path: Path) -> None:
    built = tools.compiler(name, cache)
    asked, direct = (output(path, *question, cwd=tmp_path) for path in (build.wrapper(built), built.compiler))
    assert asked.returncode == direct.returncode == 0
    assert asked.stdout == direct.stdout


def test_arguments_with_blanks_and_quotes_arrive(cache: Path, tmp_path: Path) -> None:
    wrapper = build.wrapper(tools.compiler("gcc", cache))
    folder = tmp_path / "a 'b' $c"
    folder.mkdir()
    (folder / "m.c").write_text("#include <stdio.h>\nint main(void) { puts(WORD); return 0; }\n")
    done = output(wrapper, '-DWORD="two words"', folder / "m.c", "-o", folder / "m", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert tools.start([folder / "m"], tmp_path).stdout == "two words\n"


def test_a_shared_library_counts_too(cache: Path, tmp_path: Path) -> None:
    wrapper = build.wrapper(tools.compiler("gcc", cache))
    (tmp_path / "part.c").write_text("int part(int n) { int s = 0; while (n--) s ^= n + s; return s; }\n")
    (tmp_path / "all.c").write_text("int part(int); int main(void) { return part(50) == 7; }\n")
    assert output(wrapper, "-fPIC", "-shared", "part.c", "-o", "libpart.so", cwd=tmp_path).returncode == 0
    assert output(wrapper, "all.c", "-L.", "-lpart", f"-Wl,-rpath,{tmp_path}", cwd=tmp_path).returncode == 0
    tools.start([tmp_path / "a.out"], tmp_path)
    assert tools.counts(tmp_path)["basic_blocks"]["main->part"] >= 50


def test_it_is_built_once(cache: Path) -> None:
    built = tools.compiler("gcc", cache)
    library = built.folder / f"lib{build.CORE}.so"
    before = library.stat().st_mtime_ns
    assert build.build("gcc", cache) == built
    assert library.stat().st_mtime_ns == before


def test_the_choice_of_mpis_compiler_is_kept(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = tools.compiler("gcc", cache)
    monkeypatch.setenv("OMPI_CC", "/a path/clang")
    assert "export OMPI_CC='/a path/clang'\n" in build.wrapper(built).read_text()
    monkeypatch.delenv("OMPI_CC")
    assert "OMPI_CC" not in build.wrapper(built).read_text()


def test_an_unknown_compiler_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EffortError, match="no compiler 'icx-of-nobody' on PATH"):
        build.build("icx-of-nobody", tmp_path)


def test_a_compiler_without_coverage_is_refused(tmp_path: Path) -> None:
    fake = tmp_path / "nvc"
    fake.write_text("#!/bin/sh\necho '#define __NVCOMPILER 1'\necho '#define __GNUC__ 4'\n")
    fake.chmod(0o755)
    with pytest.raises(EffortError, match="neither gcc nor clang"):
        build.build(str(fake), tmp_path / "cache")


def test_preloading_needs_an_mpi(cache: Path) -> None:
    with pytest.raises(EffortError, match=r"knows no mpi.h: give the MPI's own compiler"):
        build.preload(tools.compiler("gcc", cache))


def test_the_scorep_plugin_counts_blocks_between_events(cache: Path, tmp_path: Path) -> None:
    built = tools.compiler("gcc", cache)
    include = Path(__file__).parent / "include"
    plugin = build.plugin(built, include)
    program = tools.compile_program(built, "plugin.c", tmp_path / "plugin", f"-I{include}", "-ldl")
    done = tools.start([program, plugin], tmp_path)
    name, wrong, first, second = done.stdout.splitlines()
    assert (name, wrong) == ("basic_blocks end", "unknown")
    assert int(second) - int(first) == 100  # one block per round
    assert not list(tmp_path.rglob("*.effort"))  # Score-P keeps the counts

    uninstrumented = tmp_path / "plain"
    output("gcc", f"-I{include}", tools.PROGRAMS / "plugin.c", "-o", uninstrumented, "-ldl", cwd=tmp_path)
    done = tools.start([uninstrumented, plugin], tmp_path)
    assert done.returncode == 2 and "was not linked by 'orchestrator effort compiler" in done.stderr


def test_the_plugin_needs_scoreps_headers(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(EffortError, match=r"SCOREP_MetricPlugins.h is not found: install Score-P"):
        build.plugin(tools.compiler("gcc", cache), tmp_path)
