from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import pytest

from adapters.amg import APPLICATION as AMG
from adapters.beatnik import APPLICATION as BEATNIK
from adapters.exafmm import APPLICATION as EXAFMM
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
from orchestrator.types import Application, Sample, left_out
from tests.adapters import outputs
from tests.adapters.outputs import COMPLETE


def values(
    application: Application, texts: Mapping[str, str], metric: str = "time"
) -> dict[tuple[str, str], float]:
    return {(s.callpath, s.aggregate): s.value for s in application.output(texts) if s.metric == metric}


def stdout(text: str, stderr: str = "") -> dict[str, str]:
    return {"stdout": text, "stderr": stderr}


def test_lulesh_time_has_the_eight_digits_of_the_grind_time() -> None:
    """The line `Elapsed time` says 0.25."""
    (sample,) = LULESH.output(COMPLETE["lulesh"])
    assert sample == Sample("main", "time", cast(float, pytest.approx(0.253255070, rel=1e-8)))


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_lulesh_not_a_cube(stream: str) -> None:
    complaint = "Num processors must be a cube of an integer (1, 8, 27, ...)\n"
    with pytest.raises(ValueError, match=f"reports on {stream}: Num processors must be a cube"):
        LULESH.output({"stdout": "Running problem size 10^3\n", "stderr": "", stream: complaint})


def test_kripke_1_1_timers_form_a_tree() -> None:
    assert values(KRIPKE_1_1, COMPLETE["kripke-1.1"]) == {
        ("main->Solve->LTimes", "value"): 0.049396,
        ("main->Solve", "value"): 0.412603,
        ("main->Solve->Sweep", "value"): 0.104768,
        ("main->Solve->Sweep->Sweep_Kernel", "value"): 0.035835,
    }


def test_current_kripke_timers_form_a_tree() -> None:
    assert values(KRIPKE, COMPLETE["kripke"]) == {
        ("main->Generate", "value"): 0.001427,
        ("main->Solve->Population", "value"): 0.006143,
        ("main->Solve", "value"): 0.436591,
        ("main->Solve->SweepSolver", "value"): 0.062015,
        ("main->Solve->SweepSolver->SweepSubdomain", "value"): 0.047333,
    }


@pytest.mark.parametrize(
    "complaint",
    [
        "Usage:  [srun ...] kripke [options...]",
        "Number of groups (32) must be evenly divided by number of groupsets (5)",
        "Number of directions (4) needs to be at least 8",
        "Assertion Failed: Number of zones in X must evenly divide into the number of subdomains",
        "ERROR: Incorrect number of MPI tasks. Need 1 MPI tasks.",
        "Unknwon options --foo",
    ],
)
def test_kripke_says_why_it_did_not_run(complaint: str) -> None:
    with pytest.raises(ValueError) as error:
        KRIPKE_1_1.output(stdout(f"KRIPKE VERSION 1.1\n{complaint}\n"))
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("names", "data", "message"),
    [("Solve,Sweep", "1.0", "2 entries"), ("Sweep", "1.0", "no 'Solve'"), ("Solve", "abc", "abc")],
)
def test_kripke_timers_that_do_not_fit(names: str, data: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KRIPKE.output(stdout(f"TIMER_NAMES:{names}\nTIMER_DATA:{data}\n"))


def test_minife_times_come_from_the_report() -> None:
    times = values(MINIFE, COMPLETE["minife"])
    assert times[("main", "value")] == 0.05
    assert times[("main->assembly", "value")] == 0.02
    assert times[("main->cg", "value")] == 0.0195
    assert times[("main->cg->iteration", "value")] == 0.0003
    assert len(times) == 8
    assert values(MINIFE, COMPLETE["minife"], "iterations") == {("main->cg", "value"): 65}


@pytest.mark.parametrize("reports", [{}, {"miniFE.a.yaml": "", "miniFE.b.yaml": ""}])
def test_minife_needs_exactly_one_report(reports: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=f"{len(reports)} reports"):
        MINIFE.output({**stdout(outputs.MINIFE), **reports})


def test_minife_report_without_total() -> None:
    report = outputs.MINIFE_REPORT.replace("Total Program Time", "Program")
    with pytest.raises(ValueError, match="Total Program Time"):
        MINIFE.output({**stdout(outputs.MINIFE), "miniFE.yaml": report})


def test_quicksilver_microseconds_become_seconds() -> None:
    times = values(QUICKSILVER, COMPLETE["quicksilver"])
    assert times[("main", "min")] == pytest.approx(9.216e-3)
    assert times[("main", "mean")] == pytest.approx(9.239e-3)
    assert times[("main->cycleTracking->cycleTracking_Kernel", "max")] == pytest.approx(8.361e-3)
    assert len(times) == 9


def test_quicksilver_without_a_single_particle_measured_nothing() -> None:
    text = outputs.QUICKSILVER.replace("5.166e+06", "0.000e+00")
    with pytest.raises(ValueError, match="no particle was tracked"):
        QUICKSILVER.output(stdout(text))


def test_quicksilver_error_before_it_hangs() -> None:
    with pytest.raises(ValueError, match=r"reports on stdout: file=initMC\.cc: line=273 ERROR"):
        QUICKSILVER.output(stdout("Building partition 0\nfile=initMC.cc: line=273 ERROR\n"))


def test_amg_phases_and_iterations() -> None:
    assert values(AMG, COMPLETE["amg"]) == {
        ("main->matrix", "value"): 0.003756,
        ("main->setup", "value"): 0.012532,
        ("main->solve", "value"): 0.026879,
    }
    assert values(AMG, COMPLETE["amg"], "iterations") == {("main->solve", "value"): 18}


def test_amg_problem_2_has_its_solver_at_the_same_call_path() -> None:
    assert values(AMG, stdout(outputs.AMG_PROBLEM_2)) == {("main->solve", "value"): 0.059057}
    assert values(AMG, stdout(outputs.AMG_PROBLEM_2), "iterations") == {("main->solve", "value"): 187}


def test_amg_says_why_it_did_not_run() -> None:
    with pytest.raises(ValueError, match="Invalid number of processors"):
        AMG.output(stdout("Error: Invalid number of processors or processor topology \n"))


def test_relearn_indentation_becomes_call_paths() -> None:
    times = values(RELEARN, COMPLETE["relearn"])
    assert {path for path, _ in times} == {
        "main->Initialization",
        "main->Initialization->Load Synapses",
        "main->Simulation loop",
        "main->Simulation loop->Connectivity update",
        "main->Simulation loop->Connectivity update->Exchange deletions (w/ all to all)",
        "main->Simulation loop->Print IO",
    }
    assert times[("main->Simulation loop", "min")] == 0.07929263
    assert times[("main->Simulation loop", "mean")] == 0.08007506
    assert times[("main->Simulation loop->Print IO", "max")] == 0.00029482


def test_relearn_error_in_colour() -> None:
    text = "[2026-01-01 00:00:00.000] [\x1b[31m\x1b[1merror\x1b[m] There was an error at rank: 0 of 3!\n"
    stderr = "terminate called after throwing\n  what():  MPIWrapper::init: Number of ranks must be 2^n\n"
    with pytest.raises(ValueError, match="Number of ranks must be"):
        RELEARN.output(stdout(text, stderr))


def test_lammps_sections_have_their_aggregates() -> None:
    times = values(LAMMPS, COMPLETE["lammps"])
    assert times[("loop", "value")] == 0.167967
    assert [times[("loop->Comm", a)] for a in ("min", "mean", "max")] == [0.065173, 0.07849, 0.091806]
    assert times[("loop->Output", "min")] == 6.8573e-05
    assert times[("loop->Other", "mean")] == 0.0007596
    assert ("loop->Other", "min") not in times
    assert len(times) == 11


def test_lammps_runs_of_one_input_are_added() -> None:
    begin, end = outputs.LAMMPS.index("Loop time"), outputs.LAMMPS.index("Total wall time")
    loop = outputs.LAMMPS[begin:end]
    times = values(LAMMPS, stdout(outputs.LAMMPS[:end] + loop + outputs.LAMMPS[end:]))
    assert times[("loop", "value")] == pytest.approx(2 * 0.167967)
    assert times[("loop->Pair", "max")] == pytest.approx(2 * 0.080871)


def test_lammps_times_of_which_some_were_not_read_are_not_added() -> None:
    long = COMPLETE["lammps"]["stdout"].replace("Loop time", left_out(10**9) + "Loop time", 1)
    with pytest.raises(ValueError, match=r"\[1000000000 bytes left out\]: .*every 'Loop time'.* print less"):
        LAMMPS.output({"stdout": long, "stderr": ""})


def test_lammps_error_line() -> None:
    with pytest.raises(ValueError, match="ERROR: Unknown pair style"):
        LAMMPS.output(stdout("LAMMPS (22 Jul 2025)\nERROR: Unknown pair style (src/force.cpp:275)\n"))


def test_hpl_time_has_the_five_digits_of_the_rate() -> None:
    """The line says 0.03 s."""
    (sample,) = HPL.output(COMPLETE["hpl"])
    seconds = (2 / 3 * 1e9 + 1.5 * 1e6) / 21.584e9
    assert sample == Sample("main", "time", cast(float, pytest.approx(seconds)))
    assert 0.025 < sample.value < 0.035


def test_hpl_of_another_counting_of_operations_keeps_the_printed_time() -> None:
    text = outputs.HPL.replace("0.03  ", "12.34 ")
    assert HPL.output(stdout(text)) == [Sample("main", "time", 12.34)]


def test_hpl_wrong_result() -> None:
    text = outputs.HPL.replace("PASSED", "FAILED")
    with pytest.raises(ValueError, match="FAILED"):
        HPL.output(stdout(text))


def test_smg2000_has_timers_of_both_phases() -> None:
    times = values(SMG2000, COMPLETE["smg2000"])
    assert times == {
        ("main->setup", "value"): 0.053302,
        ("main->setup->SMGRelax", "value"): 0.021103,
        ("main->solve", "value"): 0.256739,
        ("main->solve->SMGRelax", "value"): 0.244915,
        ("main->solve->CyclicReduction", "value"): 0.141412,
    }
    assert values(SMG2000, COMPLETE["smg2000"], "iterations") == {("main->solve", "value"): 6.0}


def test_smg2000_without_a_clock_is_refused() -> None:
    text = re.sub(r"time = [\d.]+ seconds", "time = 0.000000 seconds", outputs.SMG2000)
    with pytest.raises(ValueError, match="every time is 0"):
        SMG2000.output(stdout(text))


def test_smg2000_topology_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match="Invalid number of processors"):
        SMG2000.output(stdout("Error: Invalid number of processors or processor topology \n" * 2))


def test_exafmm_leaves_out_what_is_not_the_method() -> None:
    times = values(EXAFMM, COMPLETE["exafmm"])
    assert times[("main", "value")] == 0.134945
    assert times[("main->M2L & P2P", "value")] == 0.085642
    assert len(times) == 8
    assert not any("Direct" in path or "bodies" in path for path, _ in times)


def test_beatnik_takes_the_first_rank_and_counts_steps() -> None:
    assert values(BEATNIK, COMPLETE["beatnik"]) == {("main", "value"): 1.58555}
    assert values(BEATNIK, COMPLETE["beatnik"], "steps") == {("main", "value"): 3.0}
    without = outputs.BEATNIK.partition("measured_time")[0]
    with pytest.raises(ValueError, match="build rocketrig with MEASURETIME=1"):
        BEATNIK.output(stdout(without))


def test_fiesta_timers_form_a_tree() -> None:
    times = values(FIESTA, COMPLETE["fiesta"])
    assert times[("main", "value")] == 0.5135
    assert times[("main->startup->Grid Generation", "value")] == 1.463e-6
    assert times[("main->simulation->Halo Exchanges", "value")] == 0.2294
    with pytest.raises(ValueError, match="Could not find required parameter"):
        FIESTA.output(stdout("[     0.01312]   Error: LUA READER: Could not find required parameter 'x'\n"))


def test_a_kernel_has_its_aggregates_over_ranks() -> None:
    assert values(MPI_KERNEL, COMPLETE["mpi-kernel"]) == {
        ("main->gemm", "min"): 1.04538032e-03,
        ("main->gemm", "mean"): 1.12481934e-03,
        ("main->gemm", "max"): 1.204258360e-03,
    }
