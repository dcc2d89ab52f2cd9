"""Write the benchmark of single kernels: GEMM and GEQRF of a BLAS and LAPACK library, and MPI broadcast."""

from __future__ import annotations

from pathlib import Path

from orchestrator.errors import CampaignError

SOURCE = "kernels.c"
MAKEFILE = """\
# make                          with OpenBLAS
# make LAPACK=-lmkl_rt          with MKL; or LAPACK="-llapack -lblas"
CC = mpicc
CFLAGS = -O2 -std=c11 -Wall -Wextra
LAPACK = -lopenblas

kernels: kernels.c
\t$(CC) $(CFLAGS) $< -o $@ $(LAPACK) -lm

clean:
\trm -f kernels
"""
NEEDS = """mpicc and OpenBLAS (Debian: libopenblas-dev), or another library: make LAPACK="-llapack -lblas\""""


def source() -> str:
    """Return the text of the program."""
    return Path(__file__).with_name(SOURCE).read_text(encoding="utf-8")


def write(directory: Path) -> list[Path]:
    """Write the program and its Makefile; return the files.

    Raises
    ------
    CampaignError
        When the directory holds other files.
    """
    if directory.exists() and any(directory.iterdir()):
        raise CampaignError(f"{directory} is not empty: name a new directory, or remove it first")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in ((SOURCE, source()), ("Makefile", MAKEFILE)):
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CampaignError(f"cannot write {directory}: {error.strerror}") from error
    return [directory / SOURCE, directory / "Makefile"]
