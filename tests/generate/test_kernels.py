"""The benchmark of single kernels compiles, runs, and prints what its adapter reads."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from adapters.mpi_kernel import APPLICATION
from orchestrator.generate import kernels

# The few functions that a LAPACK library would bring: enough to compile, and to see that they are called.
STAND_IN = """\
#include <stdio.h>
void dgemm_(const char *a, const char *b, const int *m, const int *n, const int *k) {
    (void)a; (void)b; fprintf(stderr, "dgemm %d %d %d\\n", *m, *n, *k);
}
void dgeqrf_(const int *m, const int *n, double *a, const int *lda, double *tau, double *work,
             const int *lwork, int *info) {
    (void)a; (void)lda; (void)tau; *info = 0;
    if (*lwork < 0) *work = 64; else fprintf(stderr, "dgeqrf %d %d\\n", *m, *n);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("mpicc") is None or shutil.which("make") is None:
        pytest.skip("no mpicc and make")
    folder = tmp_path_factory.mktemp("kernels")
    kernels.write(folder)
    (folder / "lapack.c").write_text(STAND_IN)
    subprocess.run(["cc", "-c", "lapack.c"], cwd=folder, check=True)
    built = subprocess.run(
        ["make", "LAPACK=lapack.o", "CFLAGS=-std=c11 -Wall -Wextra -Werror"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder / "kernels"


def execute(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize(
    ("arguments", "path", "called"),
    [
        (["gemm", "-m", "3", "-n", "4", "-k", "5"], "main->gemm", "dgemm 3 4 5"),
        (["geqrf", "-m", "6", "-n", "2"], "main->geqrf", "dgeqrf 6 2"),
        (["bcast", "-b", "1000"], "main->bcast", ""),
    ],
)
def test_a_kernel_is_executed_and_its_time_is_read(
    program: Path, arguments: list[str], path: str, called: str
) -> None:
    done = execute(program, *arguments, "-e", "7")
    assert done.returncode == 0, done.stderr
    samples = APPLICATION.output({"stdout": done.stdout, "stderr": ""})
    assert {(sample.callpath, sample.aggregate) for sample in samples} == {
        (path, aggregate) for aggregate in ("min", "mean", "max")
    }
    executions = int(done.stdout.split(" executions")[0].split()[-1])
    assert 5 <= executions <= 7
    if called:
        assert done.stderr.splitlines().count(called) == executions + 1  # the first is not timed


@pytest.mark.parametrize("arguments", ["", "svd", "gemm -m", "gemm -m 0", "gemm -x 1", "geqrf -n 2"])
def test_bad_arguments_are_refused(program: Path, arguments: str) -> None:
    done = execute(program, *arguments.split())
    assert done.returncode != 0 and "kernels: " in done.stderr
    with pytest.raises(ValueError, match="kernels: "):
        APPLICATION.output({"stdout": done.stdout, "stderr": done.stderr})
