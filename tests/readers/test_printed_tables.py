"""Times in tables that programs print: below headings, between commas, with labels or sizes."""

from __future__ import annotations

import pytest

from orchestrator.readers.pattern_candidates import times, times_in
from tests.readers.printed import read


def test_rows_in_a_box_are_found() -> None:
    text = """
+------------------------+-------+-----------+------------+
| Total wall time so far |       |   {whole} |            |
| Part                   | calls | wall time | % of total |
+------------------------+-------+-----------+------------+
| Assembly               |    10 |  {part}   |        41% |
| Solve the system       |    10 |     0.40s |        33% |
+------------------------+-------+-----------+------------+
"""
    first, other = text.format(whole="1.25s", part="0.50s"), text.format(whole="12.5s", part="8.50s")
    assert read(first) == {"main": 1.25, "main->Assembly": 0.5, "main->Solve the system": 0.4}
    assert read(first, other) == {"main": 12.5, "main->Assembly": 8.5, "main->Solve the system": 0.4}


def test_of_timers_with_counts_the_slowest_process_is_read_on_any_number_of_processes() -> None:
    one = """
Timer name      Global time (calls)
-----------------------------------
Heat: total     3.5 (1)
Sweep time (2)  2.5e-01 (20)

Energy          0.75 (3)
"""
    several = """
Timer name      Least        Mean       Most         PerCall
-------------------------------------------------------------
Heat: total     3.25 (1)     4.5 (1)    5.5 (1)      4.5 (1)
Sweep time (2)  0.125 (20)   0.5 (20)   7.5e-01 (20) 0.025 (20)
"""
    assert read(one) == {"main": 3.5, "main->Sweep time (2)": 0.25}
    assert read(several) == read(one, several) == {"main": 5.5, "main->Sweep time (2)": 0.75}


SNAP = """\
  keyword Timing Summary
****************************
  Code Section                          Time (seconds)
 **************                        ****************
    Input                                1.4377E-02
    Solve                                2.7374E-01
       Transport Sweeps                  2.3411E-01
  Total Execution time                   2.8827E-01

  Grind Time (nanoseconds)         3.4808E+01
  Inverse Grind Time FOM (1/ns)         2.8729E-02
"""

YAML_LIKE = "Time Summary: \n  Total   : 0.42\n  DDOT    : 0.1\nMFLOPS Summary: \n  Total   : 1912.5\n"


def test_times_of_a_table_are_found_by_its_header() -> None:
    assert read(SNAP) == {
        "main": 0.28827,
        "main->Solve": 0.27374,
        "main->Solve->Transport Sweeps": 0.23411,
        "main->Input": 0.014377,
        "main->Grind": pytest.approx(34.808e-9),
    }
    assert read(YAML_LIKE) == {"main": 0.42, "main->DDOT": 0.1}
    columns = "Function | Calls | Time (ms)\nsolve | 12 | 350\nhalo | 3 | 20\n\nTemperature | 1 | 3\n"
    assert read(columns) == {"main": pytest.approx(0.35), "main->halo": 0.02}
    assert times("Time statistics:\n  iterations : 50\n\nenergy 5.5\n") == ()


COMD = """\
#                                                  Performance
#  Loop   Time(fs)       Total Energy   Temperature   (us/atom)     # Atoms
    100     100.00    -1.166049903518      314.2007     1.6046        16384

Timings for Rank 0
        Timer        # Calls    Avg/Call (s)   Total (s)    % Loop
___________________________________________________________________
total                      1       2.6593        2.6593      101.15
force                    101       0.0240        2.4204       92.07

Timing Statistics Across 1 Ranks:
        Timer        Rank: Min(s)       Rank: Max(s)      Avg(s)    Stdev(s)
_____________________________________________________________________________
total                0:    2.5593       0:    2.7593      2.6593      0.1000
force                0:    2.4204       0:    2.4204      2.4204      0.0000
"""

STREAM = """\
Function    MB/s        Min (sec)   Max         Average
Copy        124892.670  0.00013     0.00019     0.00014
Triad       136861.314  0.00018     0.00031     0.00020
"""

IOR = """\
access    bw(MiB/s)  Latency(s)  block(KiB) xfer(KiB)  open(s)    close(s)   total(s)   iter
------    ---------  ----------  ---------- ---------  --------   --------   --------   ----
write     3933       0.000428    4096       1024.00    0.000319   0.000224   2.5        0
read      30067      0.000057    4096       1024.00    0.000027   0.000015   0.5        0
write     4808       0.000245    4096       1024.00    0.000018   0.000666   1.5        1
read      33222      0.000059    4096       1024.00    0.000021   0.000015   0.25       1

Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev    Mean(s) Stonewall(s) Test#  aggs(MiB)   API RefNum
write        4807.91    3933.24    4370.57     437.34    0.00185         NA      0        8.0 POSIX      0
"""

SECTIONS = """\
Section |  min time  |  avg time  |  max time  |%varavg| %total
---------------------------------------------------------------
Pair    | 0.25       | 0.5        | 0.75       |   3.5 | 42.60
Comm    | 0.125      | 0.25       | 0.5        |   4.8 | 46.73
"""


def test_headings_with_a_unit_of_time_are_columns_of_times_beside_rates_counts_and_shares() -> None:
    assert read(COMD) == {"main": 2.6593, "main->force": 2.4204}
    assert read(STREAM) == {"main": 0.00018, "main->Copy": 0.00013}
    assert read(SECTIONS) == {"main": 0.5, "main->Comm": 0.25}


PETSC = """\
Time (sec):           1.197e-01     1.000   1.197e-01
Flops/sec:            6.376e+09     1.000   6.376e+09  6.376e+09

-------------------------------------------------------------------------------------------------
Event                Count      Time (sec)     Flop                              --- Global ---
                   Max Ratio  Max     Ratio   Max  Ratio  Mess   AvgLen  Reduct  %T %F %M %L %R
-------------------------------------------------------------------------------------------------

--- Event Stage 0: Main Stage

MatMult              152 1.0 2.8384e-02 1.0 1.24e+08 1.0 0.0e+00 0.0e+00 0.0e+00 24 16  0  0  0
MatSOR               153 1.0 2.5000e-02 1.0 1.24e+08 1.0 0.0e+00 0.0e+00 0.0e+00 24 16  0  0  0
KSPSolve               1 1.0 1.0216e-01 1.0 7.63e+08 1.0 0.0e+00 0.0e+00 0.0e+00 85 99  0  0  0

--- Event Stage 1: Again

MatMult                2 1.0 1.0000e-03 1.0 1.24e+06 1.0 0.0e+00 0.0e+00 0.0e+00  1  1  0  0  0

Object Type          Creations   Destructions. Reports information only for process 0.
              Matrix     1              1
"""


def test_a_header_of_two_lines_has_groups_of_columns() -> None:
    assert read(PETSC) == {
        "main": 0.1197,
        "main->KSPSolve": 0.10216,
        "main->MatMult": pytest.approx(0.029384),
        "main->MatSOR": 0.025,
    }


# A heading of several words over several columns, columns without a name below, and names with numbers.
ROUTINES = """\
 -                                T I M I N G                                  -
 SUBROUTINE                       CALLS  ASD         SELF TIME        TOTAL TIME
                                MAXIMUM       AVERAGE  MAXIMUM  AVERAGE  MAXIMUM
 PROG                                 1  1.0    0.015    0.015    3.004    3.005
 fft_wrap_80                         47 12.5    0.005    0.005    0.263    0.264
 fft_wrap_30                          9 11.3    0.001    0.001    0.029    0.030
 make_m2s                           184 10.8    0.001    0.001    0.032    0.033
"""

CYCLES = """\
 Computing:          Num   Num      Call    Wall time         Giga-Cycles
                     Ranks Threads  Count      (s)         total sum    %
-----------------------------------------------------------------------------
 Domain decomp.         1    1          6       0.006          0.014   0.7
 Force                  1    1        201       0.516          1.261  66.6
 Rest                                           0.007          0.018   1.0
-----------------------------------------------------------------------------
 Total                                          0.774          1.893 100.0
-----------------------------------------------------------------------------
 Breakdown of Force computation
-----------------------------------------------------------------------------
 Bonded 3D-FFT          1    1        402       0.071          0.175   9.2
-----------------------------------------------------------------------------

               Core t (s)   Wall t (s)        (%)
       Time:        0.774        0.775      100.0
"""


def test_the_first_row_shows_which_column_stands_below_a_heading_of_times() -> None:
    assert read(ROUTINES) == {
        "main": 3.004,
        "main->fft_wrap_80": 0.263,
        "main->fft_wrap_30": 0.029,
        "main->make_m2s": 0.032,
    }
    assert read(CYCLES) == {
        "main": 0.775,
        "main->Domain decomp": 0.006,
        "main->Force": 0.516,
        "main->Bonded 3D-FFT": 0.071,
    }


def test_a_row_is_not_read_from_one_with_a_further_word_in_its_name() -> None:
    row = " Bonded 3D-FFT          1    1        402       0.071          0.175   9.2\n"
    other = CYCLES.replace(row, row + row.replace("3D-FFT      ", "3D-FFT Comm."))
    assert other != CYCLES
    assert read(CYCLES, other)["main->Bonded 3D-FFT"] == 0.071
    assert read(CYCLES, CYCLES + CYCLES.replace("Force ", "Force wait"))["main->Force"] == 0.516


def test_rows_of_a_table_may_be_missing_from_other_runs() -> None:
    assert [item.optional for item in times(ROUTINES)] == [True] * 4
    assert [item.optional for item in times("setup time: 1.5 s\nsolve time: 2.5 s")] == [False, False]


def test_a_timer_is_not_read_from_one_whose_name_begins_like_its_own() -> None:
    other = PETSC.replace("MatSOR   ", "MatMultAdd") + PETSC[PETSC.index("MatSOR") :]
    assert read(PETSC, other)["main->MatMult"] == pytest.approx(0.030384)


OSU = """\
# OSU MPI Allreduce Latency Test
# Size         Avg Latency(us)   Max Latency(us)  Iterations
4                         0.25              0.30         100
8                         0.50              0.60         100
16                        1.25              1.50         100
"""


def test_of_a_row_per_size_the_last_counts_where_the_heading_is_that_of_a_measured_time() -> None:
    assert read(OSU) == {"main": pytest.approx(1.25e-6)}
    assert read(OSU, OSU + "32    2.5    3   100\n") == {"main": pytest.approx(2.5e-6)}
    [found] = times(OSU, elapsed=0.5)
    assert (found.callpath, found.aggregate) == ("Avg Latency", "last")
    assert times("# Step   Time(s)   Energy\n1   0.5   3.0\n2   1.0   2.5\n") == ()
    assert times("# Size  Latency(us)\n4  none\n") == ()
    assert read("1 solve took 0.25 s\n2 solve took 0.5 s\n") == {"main": 0.75}


def test_headings_may_stand_one_space_apart_and_rows_differ_by_their_number_of_columns() -> None:
    assert read(IOR) == {"write": 4.0, "read": 0.75}
    assert read(IOR, IOR.replace("2.5  ", "12.5 ")) == {"write": 14.0, "read": 0.75}


CPROFILE = """\
         1416154 function calls (1416100 primitive calls) in 0.379 seconds

   Ordered by: cumulative time

   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
        1    0.001    0.001    0.378    0.378 /home/me/prog.py:27(main)
     20/1    0.044    0.000    0.131    0.000 /usr/lib/python3.11/random.py:284(randrange)
        1    0.009    0.009    0.099    0.099 /home/me/prog.py:9(<listcomp>)
        1    0.005    0.005    0.035    0.035 {built-in method builtins.sorted}
        1    0.000    0.000    0.000    0.000 {built-in method builtins.len}
"""

SUMMARY = """\
# Timestep T U P Time
0 1.440000e+00 -6.773368e+00 -5.019671e+00  0.000
100 7.310629e-01 -5.712170e+00 1.204577e+00  0.910
# MPI_proc nsteps t_total t_force t_neigh performance grep_string
1 100 5.410621 4.342011 0.621041 2422495.1 PERF_SUMMARY
"""


def test_a_table_whose_labels_come_last() -> None:
    found = read(CPROFILE)
    assert found["main"] == 0.379
    assert found["main->prog.py(main)"] == 0.378
    assert found["main->random.py(randrange)"] == 0.131
    assert found["main->{built-in method builtins.sorted}"] == 0.035
    assert len(found) == 5
    edited = CPROFILE.replace("/home/me/prog.py:27", "/scratch/prog.py:31").replace("0.378", "0.5")
    assert read(CPROFILE, edited)["main->prog.py(main)"] == 0.5


def test_a_row_of_numbers_below_their_names() -> None:
    assert read(SUMMARY) == {"main": 5.410621, "main->force": 4.342011, "main->neigh": 0.621041}
    other = SUMMARY.replace("5.410621", "8.5").replace("1 100", "16 2000")
    assert read(SUMMARY, other)["main"] == 8.5


def test_rows_of_many_steps_below_names_are_no_times_of_the_run() -> None:
    steps = "step t_total t_force\n" + "".join(f"{k} {k}.5 0.25\n" for k in range(1, 5))
    assert times(steps) == ()


def test_shares_in_a_table_whose_labels_come_last_are_no_times() -> None:
    text = " time   seconds   seconds    calls  name\n 33.34      0.02     0.02     7208  open\n"
    assert times(text) == ()


CSV = "kernel,n,time_s,gflops\nsolve,{0},{1},3.5\nassemble,{0},{2},1.5\n"


def test_times_between_commas_are_found_by_their_header() -> None:
    found = read(CSV.format(100, 1.25, 0.25), CSV.format(2000, 20.5, 1.5))
    assert found == {"main": 20.5, "main->assemble": 1.5}
    assert read("n,threads,elapsed [ms]\n100,2,1250.5\n") == {"main": pytest.approx(1.2505)}
    assert times_in({"stdout": "done\n", "r12.csv": CSV.format(100, 1.25, 0.25)})[0].file == "r*.csv"


@pytest.mark.parametrize(
    "text",
    [
        "time,energy\n0.1,2.5\n0.2,2.25\n",  # what is simulated
        "kernel,rate (1/s)\nsolve,2.5\n",
        "kernel,n,time\nsolve,100,3\n",  # a count, perhaps
        "a time, or none\nsolve, 1.5\n",
    ],
)
def test_other_numbers_between_commas_are_no_times(text: str) -> None:
    assert times(text) == ()


def test_user_system_and_elapsed_time_below_their_names() -> None:
    text = "   user  system elapsed \n  1.234   0.012   1.300 \n"  # R
    assert read(text) == {"main": 1.3, "main->user": 1.234, "main->system": 0.012}


# Names of columns with single spaces within and between them, as Caliper prints its reports.
ALONE = """\
Path          Min time/rank Max time/rank Avg time/rank Time %
main               0.001000      0.002000      0.001500  10.00
  solve            0.011000      0.013000      0.012500  80.00
    halo           0.001000      0.001500      0.001250  10.00
"""

WITH_PARTS = """\
Path      Time (E) Time (I) Time % (E) Time % (I)
main      0.000500 0.010500   5.000000 100.000000
  solve   0.008000 0.010000  76.000000  95.000000
    halo  0.002000 0.002000  19.000000  19.000000
"""


def test_names_of_columns_stand_above_the_numbers_of_the_first_row() -> None:
    assert read(WITH_PARTS) == {"main": 0.0105, "main->solve": 0.01, "main->solve->halo": 0.002}
    mean = ALONE.replace("Max time/rank Avg time/rank", "Avg time/rank Max time/rank")
    assert read(mean)["solve"] == 0.013


def test_a_row_without_its_parts_is_not_the_whole_run() -> None:
    assert read(ALONE) == {"solve": 0.0125, "main": 0.0015, "halo": 0.00125}
    assert "main" not in [item.callpath for item in times(ALONE.replace("main ", "work "), elapsed=0.015)]
    longer = ALONE.replace("0.012500", "0.512500").replace("0.011000", "0.411000")
    assert read(ALONE, longer)["solve"] == 0.5125


def test_words_that_are_not_above_the_numbers_are_no_names_of_columns() -> None:
    assert times("what  time and words of which the last ends behind\nmain 0.5 0.25\n") == ()


def test_a_column_of_shares_whose_name_is_a_sign_counts_as_one() -> None:
    text = (
        "part:  Routine        Calls   Time/call    Tot.time        %\n"
        "part:  all                1       3.456       3.456   100.00\n"
        "part:  solve             12       0.200       2.400    69.44\n"
    )
    assert {item.callpath: item.value for item in times(text, elapsed=3.6)} == {
        "main": 3.456,
        "main->part solve": 2.4,
    }


def test_a_time_per_process_is_a_time() -> None:
    text = (
        " unit          max/proc (s)  min/proc (s)  num calls\n"
        " solver               3.020         3.010         20\n"
    )
    assert read(text) == {"main": 3.02}


def both(parts: dict[str, tuple[float, float]]) -> str:
    """Tables of the times of parts alone, and of those with what they call, as profilers print them."""
    return "\n\n".join(
        "\n".join(
            [
                f"Name                 NCalls  {kind}. Min  {kind}. Avg  {kind}. Max   Max %",
                "-" * 69,
                *(
                    f"{name:20} {12:6}  {pair[k] / 4:9.4g}  {pair[k] / 2:9.4g}  {pair[k]:9.4g}  5.1%"
                    for name, pair in parts.items()
                ),
                "-" * 69,
            ]
        )
        for k, kind in [(0, "Excl"), (1, "Incl")]
    )


def test_of_tables_without_and_with_what_is_called_the_slowest_process_with_it_is_read() -> None:
    first = both({"Grid::solve()": (1.25, 4.5), "Grid::idle()": (0, 0), "Grid::smooth()": (2.5, 3.25)})
    other = both({"Grid::smooth()": (0.25, 0.75), "Grid::solve()": (0.5, 1.5), "Grid::copy()": (0.1, 0.1)})
    assert read(first) == {"main": 4.5, "main->Grid smooth": 3.25}
    assert read(first, other) == {"main": 1.5, "main->Grid smooth": 0.75}
    memory = f"{'Grid::solve()':20} {64:6} {64:6}   6649 KiB   6751 KiB   14 MiB\n"
    assert read(first, other + memory) == read(first, other)
    total = "Total time across processes [min...avg...max]: 4.25 ... 4.5 ... 4.75\n\n"
    assert read(total + first)["main"] == 4.75


def test_of_tables_that_regions_repeat_the_times_in_all_of_the_run_are_read() -> None:
    whole = both({"Grid::solve()": (1.25, 4.5), "Grid::smooth()": (2.5, 3.25)})
    first = both({"Grid::solve()": (0.75, 3.5), "Grid::smooth()": (1.5, 2.25)})
    second = both({"Grid::smooth()": (0.5, 0.5)})
    text = f"{whole}\nBEGIN REGION one\n{first}\nBEGIN REGION two\n{second}"
    assert read(text) == {"main": 4.5, "main->Grid smooth": 3.25}
    assert {item.aggregate for item in times(text)} == {"max"}
    assert {item.aggregate for item in times(whole)} == {"last"}


def test_of_tables_after_every_step_nothing_is_read() -> None:
    steps = [both({"Grid::solve()": (0.5, 1.5 + k)}) for k in range(3)]
    assert read("\n".join(steps)) == {}


# Names of columns without a heading of the labels, and signs in place of numbers.
INDENTED = """\
Stats for thread 0:
                   Called  Recurse     Wall      max      min %_of_all
  all                   1     -       1.250    1.250    1.250   100.00
    run_loop            1     -       1.125    1.125    1.125    90.00
*     halo copy       120        3    0.500 5.00e-03 1.25e-03    40.00
      physics         120     -    7.25e-02 1.25e-03 5.00e-04     5.80

Overhead sum =  2.87e-06 wallclock seconds
"""


def test_columns_may_begin_above_the_first_numbers_and_rows_have_signs_for_none() -> None:
    assert read(INDENTED) == {
        "main": 1.25,
        "main->run_loop": 1.125,
        "main->run_loop->halo copy": 0.5,
        "main->run_loop->physics": 0.0725,
    }
    other = INDENTED.replace("120     -   ", "120        7").replace("120        3", "120     -   ")
    assert read(INDENTED, other) == read(INDENTED)
    assert times(INDENTED)[0].line == "all                   1     -       1.250    1.250    1.250   100.00"


def test_of_which_process_a_time_is_stands_behind_it() -> None:
    text = (
        "name            ncalls nranks mean_time   std_dev   wallmax (rank  )   wallmin (rank  )\n"
        "total                4      4     2.500     0.125     2.750 (    11)     2.250 (     0)\n"
        "run loop            40      4     1.500     0.125     1.750 (     3)     1.250 (     0)\n"
    )
    assert read(text) == {"main": 2.5, "main->run loop": 1.5}


@pytest.mark.parametrize(
    ("caption", "heading", "value"),
    [
        ("--- Time in all (descending, milliseconds) ---", "Time", 0.25),
        ("Times [us]", "Time", 0.00025),
        ("Times (ms)", "Time (s)", 250.0),
        ("Calls (per ms)", "Time", 250.0),
        ("Parts (sorted)", "Time", 250.0),
    ],
)
def test_the_unit_of_a_table_may_stand_above_its_header(caption: str, heading: str, value: float) -> None:
    text = f"{caption}\n-----\nCall        Site    {heading}    App%\nexchange       1      250.0     9.13\n"
    assert read(text) == {"main": pytest.approx(value)}


def test_a_unit_above_an_empty_line_is_that_of_something_else() -> None:
    assert read(
        "Latency (us)\n\nCall        Site    Time    App%\nexchange       1      250.0     9.13\n"
    ) == {"main": 250.0}


def test_of_groups_of_columns_in_a_header_of_three_lines_the_mean_is_read() -> None:
    text = """
Timer            Cumulative   Cumulative   Cumulative   Cumulative
Name                 number    microSecs    microSecs   Efficiency
                   of calls          min          avg       Rating
main                      1    2.250e+06    2.500e+06        99.45
kernel                  600    1.250e+06    1.500e+06        98.25
"""
    assert read(text) == {"main": pytest.approx(2.5), "main->kernel": pytest.approx(1.5)}


@pytest.mark.parametrize(
    ("heading", "columns"),
    [("Timings", "count  wall avg  wall tot"), ("Timings (s)", "count       avg       tot")],
)
def test_a_label_before_a_bar_may_have_numbers(heading: str, columns: str) -> None:
    """Of a mean and a sum over calls the sum is read."""
    text = f"""
{heading}          |  {columns}
------------------------------------------
Assemble cells      |      1  0.250000  0.250000
Faces of dim = 2    |      2  0.125000  0.250000
Map 2-0             |      2  0.062500  0.125000
Map 2-3             |      3  0.031250  0.093750
Solver: apply       |      4  0.500000  2.000000
"""
    assert read(text) == {
        "main": 2.0,
        "main->Assemble cells": 0.25,
        "main->Faces dim": 0.25,
        "main->Map 2-0": 0.125,
        "main->Map 2-3": 0.09375,
    }


def test_statistics_below_another_heading_are_no_times() -> None:
    assert read("Residuals (s)  |  count  avg  tot\nFirst part     |  2  0.5  1.0\n") == {}


def test_a_quotient_of_two_times_is_none() -> None:
    text = "Summary of times:\n\n  Elapsed time:   12.120 s\n  CPU / elapsed time      0.973\n"
    assert read(text) == {"main": 12.12}
