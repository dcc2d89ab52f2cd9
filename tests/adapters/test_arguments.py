from __future__ import annotations

import pytest

from adapters.amg import APPLICATION as AMG
from adapters.beatnik import APPLICATION as BEATNIK
from adapters.common import Settings
from adapters.exafmm import APPLICATION as EXAFMM
from adapters.fastest import APPLICATION as FASTEST
from adapters.fiesta import APPLICATION as FIESTA
from adapters.hpl import APPLICATION as HPL
from adapters.kripke import APPLICATION as KRIPKE
from adapters.kripke import APPLICATION_1_1 as KRIPKE_1_1
from adapters.lammps import APPLICATION as LAMMPS
from adapters.lulesh import APPLICATION as LULESH
from adapters.minife import APPLICATION as MINIFE
from adapters.mpi_kernel import APPLICATION as MPI_KERNEL
from adapters.quicksilver import APPLICATION as QUICKSILVER
from adapters.relearn import APPLICATION as RELEARN
from adapters.smg2000 import APPLICATION as SMG2000
from orchestrator.types import Application
from tests.adapters.commands import arguments, filled


def line(application: Application, **settings: int | float | str) -> str:
    assert application.check(settings) is None
    return " ".join(arguments(application, settings))


def test_lulesh_has_even_regions_and_a_fixed_number_of_steps() -> None:
    assert line(LULESH, p=8, s=30) == "-s 30 -i 50 -r 1 -b 1 -c 1"
    assert line(LULESH, p=8, s=30, i=10, r=11, b=2, c=32) == "-s 30 -i 10 -r 11 -b 2 -c 32"


def test_lulesh_runs_on_cubes_only() -> None:
    reasons = {count: LULESH.check({"p": count, "s": 10}) for count in range(1, 1001)}
    possible = [count for count, reason in reasons.items() if reason is None]
    assert possible == [1, 8, 27, 64, 125, 216, 343, 512, 729, 1000]
    assert "p is 7" in (reasons[7] or "")


def test_kripke_derives_grid_and_zones_from_p_and_s() -> None:
    assert line(KRIPKE_1_1, p=12, s=4).startswith("--procs 3,2,2 --zones 12,8,8 --zset 1,1,1 --groups 32")
    assert line(KRIPKE_1_1, p=2, n=9, nest="ZGD").endswith("--pmethod sweep --nest ZGD")
    assert "--procs 1,4,1 --zones 8,8,8" in line(KRIPKE, p=4, procs="1,4,1", zones="8,8,8")


def test_kripke_uses_openmp_where_there_are_threads() -> None:
    assert line(KRIPKE, p=2, s=4).endswith("--layout DGZ --arch Sequential")
    assert line(KRIPKE, p=2, s=4, t=2).endswith("--layout DGZ --arch OpenMP")
    assert line(KRIPKE, p=2, s=4, t=2, arch="CUDA").endswith("--arch CUDA")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"p": 4, "procs": "2,1,1", "s": 4}, "procs 2,1,1 has 2 ranks, but p is 4"),
        ({"p": 2, "s": 4, "groups": 32, "gset": 3}, "gset 3 does not divide groups 32"),
        ({"p": 2, "s": 4, "dset": 4}, "dset 4 is not a multiple of 8"),
        ({"p": 2, "s": 4, "quad": 96, "dset": 40}, "dset 40 does not divide the 96 directions"),
        ({"p": 2, "s": 4, "quad": "6:4"}, "polar must be a multiple of 4"),
        ({"p": 2, "s": 4, "quad": "1:2:3"}, "quad must be"),
        ({"p": 2, "s": 4, "legendre": -1}, "legendre"),
        ({"p": 2, "s": 4, "pmethod": "jacobi"}, "pmethod must be one of sweep, bj"),
        ({"p": 8, "n": 1}, "1 zones in x must be"),
        ({"p": 8}, "the problem size is not set"),
    ],
)
@pytest.mark.parametrize("application", [KRIPKE, KRIPKE_1_1])
def test_kripke_refuses_what_it_would_abort_on(
    application: Application, settings: Settings, reason: str
) -> None:
    assert reason in (application.check(settings) or "")


def test_only_the_current_kripke_needs_an_even_division_of_zones() -> None:
    assert "9 zones in x must be a multiple of procs x zset = 2 x 1" in (KRIPKE.check({"p": 2, "n": 9}) or "")
    assert KRIPKE_1_1.check({"p": 2, "n": 9}) is None


def test_kripke_1_1_hangs_with_zone_sets_across_ranks() -> None:
    assert "hangs" in (KRIPKE_1_1.check({"p": 2, "n": 8, "zset": "2,1,1"}) or "")
    assert KRIPKE_1_1.check({"p": 2, "n": 8, "zset": "1,2,2"}) is None
    assert KRIPKE.check({"p": 2, "n": 8, "zset": "2,1,1"}) is None


def test_gauss_legendre_quadrature() -> None:
    assert "--quad 8:4 --dset 32" in line(KRIPKE, p=2, s=4, quad="8:4", dset=32)


def test_minife_sizes_are_those_of_the_whole_domain() -> None:
    rest = "-load_imbalance 0 -mv_overlap_comm_comp 0"
    assert line(MINIFE, p=4, n=20) == f"-nx 20 -ny 20 -nz 20 {rest}"
    assert line(MINIFE, p=4, s=20) == f"-nx 40 -ny 40 -nz 20 {rest}"
    text = line(MINIFE, p=4, elements="9,8,7", load_imbalance=2.5, mv_overlap_comm_comp=1)
    assert text == "-nx 9 -ny 8 -nz 7 -load_imbalance 2.5 -mv_overlap_comm_comp 1"
    assert "fewer than p" in (MINIFE.check({"p": 9, "n": 2}) or "")


def test_quicksilver_domains_match_the_ranks() -> None:
    assert line(QUICKSILVER, p=2, s=4, steps=3, seed=1) == (
        "-X 8 -Y 4 -Z 4 -x 8 -y 4 -z 4 -I 2 -J 1 -K 1 -n 1920 -N 3 -s 1"
    )
    assert "but p is 4" in (QUICKSILVER.check({"p": 4, "s": 4, "domains": "2,1,1"}) or "")
    assert "fewer than 4 domains" in (QUICKSILVER.check({"p": 4, "mesh": "2,2,2", "domains": "4,1,1"}) or "")


@pytest.mark.parametrize("density", [1, 2, 7])
@pytest.mark.parametrize("size", [1, 3, 10, 37])
def test_quicksilver_creates_density_particles_per_element(density: int, size: int) -> None:
    words = arguments(QUICKSILVER, {"p": 1, "n": size, "density": density})
    particles = int(words[words.index("-n") + 1])
    assert int(0.1 * particles / size**3) == density


def test_quicksilver_refuses_so_few_particles_that_it_would_create_none() -> None:
    assert "would create none" in (QUICKSILVER.check({"p": 1, "n": 10, "particles": 9_999}) or "")
    assert QUICKSILVER.check({"p": 1, "n": 10, "particles": 10_000}) is None
    assert "set one of them" in (
        QUICKSILVER.check({"p": 1, "n": 10, "particles": 10_000, "density": 2}) or ""
    )


def test_amg_blocks_are_per_rank() -> None:
    assert line(AMG, p=6, s=20) == "-problem 1 -n 20 20 20 -P 3 2 1"
    assert line(AMG, p=6, block="5,6,7", grid="1,6,1", problem=2.0) == "-problem 2 -n 5 6 7 -P 1 6 1"
    assert "has 4 ranks, but p is 6" in (AMG.check({"p": 6, "s": 5, "grid": "2,2,1"}) or "")
    assert "problem must be one of 1, 2" in (AMG.check({"p": 1, "s": 5, "problem": 3}) or "")
    assert line(AMG, p=6, nx=5, ny=6, nz=7) == "-problem 1 -n 5 6 7 -P 3 2 1"
    wrong: list[Settings] = [
        {},
        {"s": 3, "nx": 1, "ny": 1, "nz": 1},
        {"nx": 4, "ny": 4},
        {"s": 3, "block": "1,1,1"},
    ]
    for size in wrong:
        assert "exactly one of s, block, and nx with ny and nz" in (AMG.check({"p": 1, **size}) or "")


def test_relearn_runs_on_powers_of_two_from_two() -> None:
    possible = [count for count in range(1, 70) if RELEARN.check({"p": count, "n": 10}) is None]
    assert possible == [2, 4, 8, 16, 32, 64]
    assert line(RELEARN, p=2, n=300, t=4) == (
        "-a barnes-hut -t 0.3 --num-neurons-per-rank 300 -s 1000 -r 0 --openmp 4 -l ./"
    )


@pytest.mark.parametrize("theta", [0, -0.1, 0.6, "wide"])
def test_relearn_refuses_a_theta_that_it_would_abort_on(theta: float | str) -> None:
    assert "theta" in (RELEARN.check({"p": 2, "n": 10, "theta": theta}) or "")


def test_lammps_brings_its_own_input() -> None:
    words = "-in in.melt -log none -var x 20 -var y 10 -var z 10 -var steps 100 ${openmp[@]}"
    assert line(LAMMPS, p=2, x=20) == words
    text = filled(LAMMPS, {"p": 2}).before
    assert "cat > in.melt" in text
    assert all(f"${{{name}}}" in text for name in ("x", "y", "z", "steps"))


def test_lammps_runs_another_input_that_has_an_absolute_path() -> None:
    settings: Settings = {"p": 2, "input": "/home/me/in.crack"}
    assert line(LAMMPS, **settings).startswith("-in /home/me/in.crack -log none")
    assert "absolute" in (LAMMPS.check({"p": 2, "input": "in.crack"}) or "")


def test_lammps_threads_need_its_openmp_package() -> None:
    assert "if [ 4 -gt 1 ]; then openmp=(-sf omp -pk omp 4); fi" in filled(LAMMPS, {"p": 2, "t": 4}).before


def input_of_hpl(**settings: int) -> list[str]:
    """The here-document that the template writes."""
    text = filled(HPL, settings).before
    return text.partition("cat > HPL.dat << 'END'\n")[2].partition("\nEND")[0].splitlines()


def test_hpl_is_told_everything_by_a_file_of_fixed_lines() -> None:
    lines = input_of_hpl(p=6, n=1000, nb=64, depth=0, ndiv=3)
    assert arguments(HPL, {"p": 6, "n": 1000}) == []
    assert len(lines) == 31
    first = " ".join(text.split()[0] for text in lines[3:])
    assert first == "6 1 1000 1 64 0 1 2 3 16.0 1 2 1 4 1 3 1 1 1 0 1 0 2 64 0 0 1 8"


def test_hpl_grids_divide_the_ranks() -> None:
    lines = input_of_hpl(p=12, n=1000, rows=2)
    assert (lines[10].split()[0], lines[11].split()[0]) == ("2", "6")
    assert "5 rows do not divide p = 12" in (HPL.check({"p": 12, "n": 1000, "rows": 5}) or "")
    assert "bcast must be within 0 and 5" in (HPL.check({"p": 12, "n": 1000, "bcast": 6}) or "")


def test_smg2000_blocks_and_grids_of_ranks() -> None:
    rest = "-c 1 1 1 -solver 0"
    assert line(SMG2000, p=6, s=20) == f"-n 20 20 20 -P 3 2 1 {rest}"
    assert line(SMG2000, p=8, nx=5, ny=6, nz=7, px=1, py=2) == f"-n 5 6 7 -P 1 2 4 {rest}"
    text = line(SMG2000, p=1, s=5, cx=0.1, cy=1, cz=10.0, solver=3)
    assert text == "-n 5 5 5 -P 1 1 1 -c 0.1 1 10 -solver 3"
    assert "are 4 ranks, but p is 8" in (SMG2000.check({"p": 8, "s": 5, "px": 2, "py": 2, "pz": 1}) or "")
    assert "are 9 ranks, but p is 8" in (SMG2000.check({"p": 8, "s": 5, "px": 3, "py": 3}) or "")
    assert "cx must be a number from 0" in (SMG2000.check({"p": 1, "s": 5, "cx": -1}) or "")


def test_beatnik_writes_no_files_and_has_a_fixed_number_of_steps() -> None:
    assert line(BEATNIK, p=4, n=256, w=4) == (
        "-x serial -n 256 -w 4 -t 50 -F 0 -O low -S exact -c 0.5 -H 6 -I cos -b periodic"
    )
    assert line(BEATNIK, p=4, n=256, t=2).startswith("-x openmp")


def test_beatnik_needs_a_square_for_its_cutoff_solver() -> None:
    cutoff: Settings = {"n": 100, "order": "high", "solver": "cutoff"}
    assert [p for p in range(1, 17) if BEATNIK.check({"p": p, **cutoff}) is None] == [1, 4, 9, 16]
    assert BEATNIK.check({"p": 3, "n": 100, "solver": "cutoff"}) is None  # order low does not use it
    assert "heffte must be within 0 and 7" in (BEATNIK.check({"p": 1, "n": 100, "heffte": 8}) or "")


def test_exafmm_divides_space_among_all_ranks() -> None:
    assert line(EXAFMM, p=8, n=5000, order=6, level=1) == ("-n 5000 -P 6 -c 64 -l 1 -t 0.4 -i 0 -d cube")
    assert "fewer than p = 9" in (EXAFMM.check({"p": 9, "n": 100, "level": 1}) or "")
    assert EXAFMM.check({"p": 1, "n": 100, "level": 0}) is None
    assert "theta" in (EXAFMM.check({"p": 1, "n": 100, "theta": 0}) or "")


def test_fiesta_is_told_by_a_lua_script() -> None:
    before = filled(FIESTA, {"p": 4, "n": 60, "steps": 7, "scheme": "quick"}).before
    assert "local length, cells = 10.0, 60\n" in before
    assert "fiesta.mpi.procs = { 2, 2, 1 }\n" in before
    assert 'fiesta.advection_scheme = "quick"\nfiesta.time.nt = 7\n' in before
    assert "fewer than 3 cells" in (FIESTA.check({"p": 8, "n": 5}) or "")


def test_fastest_takes_the_prepared_case_of_a_point() -> None:
    settings: Settings = {"p": 32, "s": 65536, "cases": "/work/cases"}
    assert filled(FASTEST, settings).before == "cp -r /work/cases/p32-s65536/. . || exit 1"
    assert "absolute path" in (FASTEST.check({"p": 32, "s": 65536, "cases": "cases"}) or "")


def test_kernels_need_their_own_sizes_only() -> None:
    assert line(MPI_KERNEL, p=1, kernel="gemm", m=10, n=20, k=30) == "gemm -m 10 -n 20 -k 30 -b 1 -e 50"
    assert line(MPI_KERNEL, p=4, kernel="bcast", bytes=65536).endswith("-b 65536 -e 50")
    assert "gemm needs k" in (MPI_KERNEL.check({"p": 1, "kernel": "gemm", "m": 1, "n": 1}) or "")
    assert "m 3 < n 4" in (MPI_KERNEL.check({"p": 1, "kernel": "geqrf", "m": 3, "n": 4}) or "")
    assert "kernel must be one of" in (MPI_KERNEL.check({"p": 1, "kernel": "svd"}) or "")
