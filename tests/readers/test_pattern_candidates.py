"""Times in what unknown programs print."""

from __future__ import annotations

import itertools
import re

import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.draft import Draft, campaign_of
from orchestrator.campaign.schema import OutputSection
from orchestrator.launch.generic import application
from orchestrator.readers.pattern_candidates import MOST, times, times_in
from orchestrator.readers.printed_line import tick
from orchestrator.types import Sample


def read(text: str, other: str | None = None) -> dict[str, float]:
    """What the candidates of one output yield in it, or in that of another run."""
    output = tuple(
        OutputSection(
            callpath=item.callpath,
            pattern=item.pattern,
            scale=item.scale,
            aggregate=item.aggregate,  # type: ignore[arg-type]
            thousands=item.thousands,  # type: ignore[arg-type]
        )
        for item in times(text)
    )
    from orchestrator.campaign.schema import ProgramSection

    spec = application(ProgramSection(output=output).described(), {})
    samples: list[Sample] = spec.output({"stdout": other or text, "stderr": ""})
    return {sample.callpath: sample.value for sample in samples}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("total time: 3.25 s", 3.25),
        ("Elapsed time         =       0.25 (s)", 0.25),
        ("Time in solver (ms): 12.5", 0.0125),
        ("solve took 1.5e-3 seconds", 0.0015),
        ("generating structure...0.00266314s, total", 0.00266314),
        ("WALL CLOCK 7.5 sec", 7.5),
        ("run time 1.0D+01", 10.0),
        ("total time: 1,250 ms", 1.25),
        ("total time: 1,020,250.5 s", 1020250.5),
        ("total time: 1,250ms", 1.25),
        ("total time: 1.5e-3s", 0.0015),
        ("Wall clock 2m00.25s", 120.25),
        ("real\t0m1.234s", 1.234),
        ("total time: 1h 2m 3.5s", 3723.5),
        ("total time: 1d 2h 3m 4s", 93784.0),
        ("total time: 1 min 23.4 s", 83.4),
        ("total time: 2m 3.5 sec, of which 1 s was waited", 123.5),
        ("total time: 1 hour 2 minutes 3.5 seconds", 3723.5),
        ("     PWSCF        :      0.35s CPU      0.72s WALL", 0.72),
        ("     PWSCF        :   1m10.35s CPU   1m20.72s WALL", 80.72),
        ("     PWSCF        :   1m 0.35s CPU   1m 2.72s WALL", 62.72),
        ("  Trace Time:   0 hours  0 minutes  4 seconds (4.585 seconds)", 4.585),
        ("elapsed 1m 3s = 63.52 s", 63.52),
        ("\tElapsed (wall clock) time (h:mm:ss or m:ss): 0:00.12", 0.12),
        ("\tElapsed (wall clock) time (h:mm:ss or m:ss): 1:02:03", 3723.0),
        ("Job Wall-clock time: 00:01:23", 83.0),
        ("elapsed 1m 3s (12 s of them waiting)", 63.0),
        ("time 1.5, of which 1 was waited", 1.5),
        ("I/O 250 ms", 0.25),
        ("I/O time: 2.5", 2.5),
        ("Halo update time: 2.5", 2.5),
        ("Time to generate the graph of 20000 vertices (in s): 0.25", 0.25),
        ("upper solve time 0.5", 0.5),
        ("Time for search 63 is 0.0125", 0.0125),
        ("time of step 12 : 0.5", 0.5),
        ("solve_time: 0.25", 0.25),
        ("Solve time (in ms): 12.5", 0.0125),
        ("Solve time in ms: 12.5", 0.0125),
        ("solve_ms = 12.5", 0.0125),
        ("Time for test: ave, stddev, min, max (sec): 0.5 0.1 0.4 0.6", 0.5),
        ('{"phase": 3, "seconds": 0.25}', 0.25),
        ('{"timers": [{"seconds": "0.25"}]}', 0.25),
    ],
)
def test_times_are_found_with_their_unit(line: str, value: float) -> None:
    assert read(f"hello\n{line}\nbye\n")["main"] == pytest.approx(value)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("WallClock: 12.345  CPUTime: 12.125  Memory: 200.5 MB", 12.345),  # NAMD
        ("       1.236789123 seconds time elapsed", 1.236789123),  # perf stat
        ("  1.0125 seconds (1.20 k allocations: 12.3 KiB, 2.1% gc time)", 1.0125),  # Julia
        ("  1.25 ms (12 allocations: 1.2 KiB)", 0.00125),
        ("real 1.25", 1.25),  # time -p
        ("Total Execution Time: 01:01:02.500", 3662.5),
        ("BM_Sort/1024         12345 ns        12340 ns        56789", 1.2345e-5),  # Google Benchmark
    ],
)
def test_times_of_known_programs_are_found(line: str, value: float) -> None:
    assert max(read(f"hello\n{line}\nbye\n").values()) == pytest.approx(value)


def test_a_pattern_with_the_number_ahead_reads_another_run() -> None:
    line = "  {} seconds (1.20 k allocations: {}% gc time)\n"
    assert read(line.format("1.0125", "12.3 KiB, 2.1"), line.format("20.5", "3 MiB, 1")) == {"main": 20.5}
    perf = "  {} seconds time elapsed\n\n  {} seconds user\n"
    assert read(perf.format("1.25", "1.125"), perf.format("2.25", "3.125")) == {
        "main": 2.25,
        "main->user": 3.125,
    }


def test_simulated_time_is_none_of_the_run_beside_an_execution_time() -> None:
    step = "Time = {}\n\nExecutionTime = {} s  ClockTime = {} s\n\n"  # OpenFOAM
    text = step.format("0.1", "6.12", "6") + step.format("0.2", "12.3", "13")
    assert [(item.callpath, item.value) for item in times(text, elapsed=12.9)] == [("main", 12.3)]


def test_wall_time_stands_in_the_column_that_is_called_so() -> None:
    text = """
               Core t (s)   Wall t (s)        (%)
       Time:       {core}       {wall}      200.0
                 (ns/day)    (hour/ns)
Performance:       67.692        0.355
"""
    first, other = text.format(core=25.530, wall=12.765), text.format(core=8.5, wall=4.25)
    assert read(first) == {"main": 12.765}
    assert read(first, other) == {"main": 4.25}


def test_of_cpu_and_wall_time_in_a_line_the_wall_time_counts() -> None:
    text = " Task  times  cpu:  2.5s   wall:  4.1s\n Total times  cpu:  2.6s   wall:  4.2s\n"
    assert read(text) == {"main": 4.2, "main->Task times": 4.1}


def test_cpu_time_that_is_longer_than_the_run_is_not_that_of_the_run() -> None:
    text = "bench: utime=1.802s stime=0.101s rtime=0.913s\n"  # ffmpeg
    assert [item.value for item in times(text, elapsed=1.1, cores=2)] == [0.913, 0.101, 1.802]
    assert times(text, elapsed=1.1, cores=2)[0].callpath == "main"


@pytest.mark.parametrize(
    "line",
    [
        "rate 5.0 GB/s",
        "time/step: 0.5 s",
        "I/O 250 ms/step",
        "12 particles",
        "start time Fri Nov 20 11:30:04 2026",
        "time step: 0.005",
        "time_step: 0.005",
        "output_rate (s): 0.5",
        "stddev_time: 0.5",
        "simulated time: 5.0 ps",
        "MODS (modularity * average time): 0.5",
        "0.5 s",
        "x = 3",
        "time: 0.1,0.2 s",
        "time: 1,2,3 s",
        "Max blocks on a processor at any time: 1",
        "Analysis completed in less than 1 second",
        "Each sample counts as 0.01 seconds.",
        "elapsed: <1 s",
        "output every 5 seconds",
        "time limit: 3600 s",
        "timer resolution (s): 1e-6",
        "Start time: 11:30:04",
        "elapsed: 12:30",  # minutes or hours
        " Step       5 time   0.0160000 timestep   4.00E-03",  # TeaLeaf
        "   wall-r-linpot                  = 0.5",  # GROMACS
        "Distance to the wall of the box: 0.5",
        "   Forming initial guess at       0.3s",  # NWChem
        "time left: -1 s",
        "time  =   2.277871e-03, tstop =   6.000000e-01",  # PENNANT
    ],
)
def test_what_is_no_time_is_left_out(line: str) -> None:
    assert times(line) == ()


@pytest.mark.parametrize("simulated", ["4.0000000000000008E-002", "0.25"])
def test_a_time_without_words_is_simulated_where_another_is_called_that_of_the_clock(simulated: str) -> None:
    """As TeaLeaf prints both after a run, whatever is longer."""
    text = f" Time    {simulated}\n step: 10 0.1E+03\n\n Wall clock    5.4540634155273438E-003\n"
    assert [(item.callpath, item.value) for item in times(text, 0.4)] == [("main", 5.4540634155273438e-3)]
    assert read(f"Time {simulated}\n") == {"main": float(simulated)}


def test_the_wall_time_of_gnu_time_is_that_of_the_run() -> None:
    one = """\tUser time (seconds): 0.10
\tSystem time (seconds): 0.00
\tPercent of CPU this job got: 85%
\tElapsed (wall clock) time (h:mm:ss or m:ss): 0:00.12
\tMaximum resident set size (kbytes): 9876
"""
    assert read(one) == {"main": 0.12, "main->User": 0.1, "main->System": 0.0}
    assert read(one, one.replace("0:00.12", "1:00:03"))["main"] == 3603.0


def test_patterns_fit_the_output_of_another_run() -> None:
    one = "problem 10^3 time: 0.5 s\nstep 1 took 0.2 s\nstep 2 took 0.3 s\n"
    other = "problem 64^3 time:  12.5 s\nstep 1 took 4 s\nstep 2 took 5 s\nstep 3 took 3.5 s\n"
    assert read(one) == {"main": 0.5, "main->step": 0.5}
    assert read(one, other) == {"main": 12.5, "main->step": 12.5}


def test_another_run_in_which_a_number_is_longer_is_read_or_refused_but_never_cut() -> None:
    other = "total time: 1.25e-05 s\nsolve time: 1.25e-05 s\n"
    assert read("total time: 3 s\nsolve time: 3 s\n", other) == {"main": 1.25e-5, "main->solve": 1.25e-5}
    for one in ("total time: 999 ms", "total time: 999ms", "total time: 999, all"):
        with pytest.raises(ValueError, match=r"'1,020( ?ms)?'.* thousands: \",\""):
            read(one, one.replace("999", "1,020"))


def test_a_run_of_minutes_is_read_by_what_was_found_in_one_of_seconds() -> None:
    text, longer = (
        "PWSCF : {} CPU {} WALL\nreal {}\n".format(*times)
        for times in (("0.35s", "0.72s", "0m1.5s"), ("1m10.35s", "1m20.72s", "1m21.5s"))
    )
    assert read(text, longer) == {"main->PWSCF": pytest.approx(80.72), "main": pytest.approx(81.5)}


@pytest.mark.parametrize(("longer", "value"), [("1m 3.40s", 63.4), ("1h 2m", 3720.0), ("1h22m", 4920.0)])
def test_wall_time_behind_cpu_time_is_read_whatever_its_parts_are(longer: str, value: float) -> None:
    line = "PWSCF : {0} CPU {0} WALL\n"
    assert read(line.format("0.35s"), line.format(longer)) == {"main": pytest.approx(value)}
    assert read(line.format("12ms"), line.format("14ms")) == {"main": pytest.approx(0.014)}


def test_a_clock_is_not_read_from_one_whose_name_begins_like_its_own() -> None:
    text = (
        "  h_psi        : 0.85s CPU 0.95s WALL (9 calls)\n  h_psi:calbec : 0.01s CPU 0.02s WALL (9 calls)\n"
    )
    assert read(text) == {"main": 0.95, "main->h_psi calbec": 0.02}


def test_numbers_in_the_name_of_a_clock_belong_to_it() -> None:
    text = "PWSCF : 0.85s CPU 0.95s WALL\n"
    first = "  init_us_2    : 0.10s CPU 0.12s WALL (9 calls)\n"
    other = "  init_us_1    : 0.20s CPU 0.25s WALL (1 calls)\n"
    assert read(text + first, text + first + other) == {"main": 0.95, "main->init_us_2": 0.12}


@pytest.mark.parametrize("short", ["850.5ms", "850.5 ms", "85µs", "85 us", "1.5s", "9 nanoseconds"])
@pytest.mark.parametrize(("longer", "value"), [("1.25", 1.25), ("2m3.5", 123.5)])
def test_another_run_may_print_another_unit(short: str, longer: str, value: float) -> None:
    blank = " " if " " in short else ""
    assert read(f"elapsed: {short}\n", f"elapsed: {longer}{blank}s\n") == {"main": pytest.approx(value)}
    assert read(f"elapsed: {longer}{blank}s\n", f"elapsed: 1.5{blank}s\n") == {"main": 1.5}


def test_digits_of_a_time_with_its_unit_are_known() -> None:
    lines = ("time: 12.5ms\n", "time: 12.5 ms\n", "time (ms): 12.5\n", "time: 0.0125 s\n")
    assert [tick(found) for line in lines for found in times(line)] == pytest.approx([1e-4] * 4)


LONGER = """WALL   100   100  16  16   1   1     0.00 PASSED    9.279  0.00
Current time (1795858125) is now
Number of updates EXECUTED = 131072 (for a TIME BOUND of 60.00 secs)
HPL_time=0.25
CPU time used = 0.75 seconds
"""


def test_what_is_longer_than_the_run_is_no_time() -> None:
    assert {item.callpath: item.value for item in times(LONGER, 0.5, cores=2)} == {
        "main": 0.25,
        "main->CPU used": 0.75,
    }
    assert [item.value for item in times(LONGER, elapsed=0.5)] == [0.25]
    assert [item.value for item in times("total time: 1 s\n", elapsed=0.9)] == [1.0]  # it was rounded


def test_a_whole_zero_beside_other_times_is_none() -> None:
    """OpenFOAM: a clock of whole seconds, which would be added up, and a time that is simulated."""
    step = "ExecutionTime = {} s  ClockTime = 0 s\n"
    text = "Create mesh for time = 0\n" + "".join(step.format(0.01 * number) for number in range(1, 8))
    [found] = times(text, 0.1)
    assert (found.callpath, found.aggregate, found.value) == ("main", "last", 0.07)
    assert [item.value for item in times("solver time: 0 s\n")] == [0.0]
    assert len(times("total time: 0.5 s\nsolver time: 0.0 s\n")) == 2


def test_what_ends_at_a_time_took_so_long() -> None:
    assert [item.value for item in times("Finished at 0.3 s\n", 0.4)] == [0.3]


def test_of_two_times_of_the_run_the_one_with_more_digits_is_the_run() -> None:
    text = "total cpu time spent up to now is 0.2 secs\nPWSCF : 0.16s CPU 0.17s WALL\n"
    assert [item.line.split()[0] for item in times(text, elapsed=0.5)] == ["PWSCF", "total"]


def test_time_that_is_called_the_time_so_far_is_not_added() -> None:
    text = 3 * "total cpu time spent up to now is        0.1 secs\n"
    [found] = times(text, 0.5)
    assert (found.aggregate, found.value) == ("last", 0.1)


def test_a_wall_clock_that_rises_is_the_time_so_far_in_short_runs_too() -> None:
    text = " Wall clock   0.004\n Step 2\n Wall clock   0.009\n"
    [found] = times(text, elapsed=0.5)
    assert (found.aggregate, found.value) == ("last", 0.009)
    [parts] = times("Wall clock 0.009\nWall clock 0.004\n", elapsed=0.5)
    assert (parts.aggregate, parts.value) == ("sum", 0.013)


def test_several_times_in_a_line_are_found() -> None:
    text = "hello\ntotal time: 4.5 s, solve time: 3.25s, output 250 ms (1.5 of 2 GB)\nbye\n"
    assert read(text) == {"main": 4.5, "main->solve": 3.25, "main->output": 0.25}
    other = "total time: 14.5 s, solve time: 13.25s, output 1250 ms (2.5 of 12 GB)\n"
    assert read(text, other) == {"main": 14.5, "main->solve": 13.25, "main->output": 1.25}


def test_a_total_behind_a_part_is_that_of_the_run_unless_every_part_has_one() -> None:
    assert read("solve: 3.25 s, total: 4.5 s\n") == {"main": 4.5, "main->solve": 3.25}
    text = "setup: 1 s, total: 1 s\nsolve: 3.25 s, total: 4.25 s\n"
    assert read(text) == {"main": 3.25, "main->setup": 1.0}


def test_a_draft_says_how_thousands_are_separated() -> None:
    found = times("total time (ms): 1,250\n")
    draft = Draft(
        name="x", application="generic", executable="/bin/true", values={"n": (1, 2, 3)}, output=found
    )
    [rule] = loader.loads(campaign_of(draft), starts=False).program.output  # type: ignore[union-attr]
    assert (rule.thousands, rule.scale) == (",", 0.001)


@pytest.mark.parametrize(
    ("text", "value"), [("Zeit: 0,5 s", 0.5), ("time: 0,5s", 0.5), ("time: 12,3456 s", 12.3456)]
)
def test_commas_are_decimal_where_no_other_time_is_found(text: str, value: float) -> None:
    assert [item.thousands for item in times(text)] == ["."]
    assert list(read(f"{text}\n").values()) == [value]
    assert [item.value for item in times(f"{text}\nelapsed time: 0.25 s\n")] == [0.25]


def test_a_decimal_comma_before_three_digits_is_none_of_thousands_of_seconds() -> None:
    assert [(item.value, item.thousands) for item in times("Zeit: 1,234 s\n", elapsed=1.3)] == [(1.234, ".")]
    assert [(item.value, item.thousands) for item in times("Zeit: 1,234 s\n", elapsed=1300)] == [(1234, ",")]


def test_names_of_statistics_are_no_part_of_a_name() -> None:
    text = "Initialize Time: ave, stddev, min, max (sec): 0.25 0.00 0.25 0.25\n"
    assert [item.callpath for item in times(text, elapsed=9)] == ["Initialize"]


def test_a_label_that_lists_parts_is_not_the_whole_run() -> None:
    text = "Main (parse, allocate) Time: 0.25\nTotal time for test: 1.5\n"
    assert read(text) == {"main": 1.5, "main->Main": 0.25}
    assert [item.callpath for item in times(text, elapsed=20)] == ["main", "main->Main"]


def test_a_sum_of_times_below_headings_is_not_the_whole_run_beside_a_named_time() -> None:
    parts = "Compute\n Time: ave, max (sec): 1.0 1.1\n\nRefine\n Time: ave, max (sec): 0.6 0.7\n"
    text = f"Total time for test: ave, max (sec): 1.5 1.6\n\n{parts}"
    assert read(text) == {"main": 1.5, "main->time": 1.6}
    assert read(parts) == {"main": 1.6}


def test_a_name_that_is_cut_does_not_end_in_a_space() -> None:
    text = "User Optimization Overheads::Optimization phase time vs reference SpMV+MG time=0.5\n"
    paths = [item.callpath for item in times(text, elapsed=9)]
    assert paths == ["User Optimization Overheads Optimization phase vs reference"]


def test_the_total_is_the_root_and_paths_are_unique() -> None:
    found = times("solve time: 9 s\ntotal time: 3 s\nsolve (a) time: 2 s\n")
    assert [item.callpath for item in found] == ["main", "main->solve", "main->solve a"] or [
        item.callpath for item in found
    ] == ["main", "main->solve", "main->solve 2"]
    assert found[0].value == 3.0


def test_a_phase_is_not_called_the_run_and_contains_no_other_phase() -> None:
    text = "Generate Time: 0.9\nBuild Time: 0.25\nTrial Time: 0.125\n"
    assert read(text) == {"Generate": 0.9, "Build": 0.25, "Trial": 0.125}
    assert read("Generate Time: 0.9\n") == {"main": 0.9}
    assert read(f"{text}Total Time: 1.4\n")["main->Generate"] == 0.9


def test_times_to_come_were_not_measured() -> None:
    announced = "Each test will take about 2 microseconds.\nEstimated time: 3 s\ntime remaining: 4 s\n"
    assert read(f"{announced}solve time: 0.5 s\n") == {"main": 0.5}


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


HPCCG = "SPARSEMV PARALLEL OVERHEAD Time: 0.00016\nSPARSEMV PARALLEL OVERHEAD Setup Time: 0.0000032\n"


def test_a_tiny_share_of_a_run_is_not_called_the_run() -> None:
    paths = ["SPARSEMV PARALLEL OVERHEAD", "SPARSEMV PARALLEL OVERHEAD Setup"]
    assert [item.callpath for item in times(HPCCG, elapsed=0.429)] == paths
    assert [item.callpath for item in times(HPCCG, elapsed=0.001)] == ["main", f"main->{paths[1]}"]
    longer = "run time: 0.001 s\nsolve time: 9 s\n"
    assert [item.callpath for item in times(longer, elapsed=10)] == ["main", "main->run"]


def test_what_is_called_the_total_is_the_run_where_starting_it_takes_longest() -> None:
    found = times("total time: 0.004 s\nsolve time: 0.003 s\n", elapsed=0.5)
    assert [item.callpath for item in found] == ["main", "main->solve"]


def test_there_are_not_too_many_and_they_are_regular_expressions() -> None:
    pairs = itertools.islice(itertools.product("abcdefgh", repeat=2), 2 * MOST)
    text = "\n".join(f"part {a}{b}* time: {index}.5 s" for index, (a, b) in enumerate(pairs))
    assert text.count("\n") > MOST
    found = times(text)
    assert len(found) == MOST
    assert all(re.compile(item.pattern).groups == 1 for item in found)


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
CLOVER = """\
 Step       1 time   0.0000000 control    sound
 Wall clock    0.1
 Step       2 time   0.8000000 control    sound
 Wall clock    0.25
 Step       3 time   1.6000000 control    sound
 Wall clock    0.4

Profiler Output                 Time            Percentage
PdV                   :          0.0700         17.5
MPI Halo Exchange     :          0.0100          2.5
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


def test_a_number_and_s_in_a_name_are_no_seconds() -> None:
    assert times(" make_m2s 184 10.8 0.001 0.017") == ()


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


def test_lines_that_begin_farther_right_are_parts_of_those_above() -> None:
    text = (
        "total        1   2.5\nstep         2   2.0\n  force      9   1.5\n    halo     9   0.5\n"
        "  move       9   0.25\nreduce       3   0.125\n"
    )
    assert read("Timer    Calls   Total (s)\n" + text) == {
        "main": 2.5,
        "main->step": 2.0,
        "main->step->force": 1.5,
        "main->step->force->halo": 0.5,
        "main->step->move": 0.25,
        "main->reduce": 0.125,
    }
    lines = "total time: 3 s\n  solve time: 2 s\n    products: 1 s\n\n      write time: 0.5 s\n"
    assert list(read(lines)) == ["main", "main->solve", "main->solve->products", "main->write"]


def test_lines_that_are_aligned_at_their_right_or_are_longer_are_no_parts() -> None:
    aligned = " solver time: 3 s\n   init time: 2 s\n output time: 1 s\n  total time: 7 s\n"
    assert list(read(aligned)) == ["main", "main->solver", "main->init", "main->output"]
    longer = "total time: 9 s\nsetup time: 1 s\n  all steps time: 5 s\n"
    assert list(read(longer)) == ["main", "main->all steps", "main->setup"]


def test_headings_may_stand_one_space_apart_and_rows_differ_by_their_number_of_columns() -> None:
    assert read(IOR) == {"write": 4.0, "read": 0.75}
    assert read(IOR, IOR.replace("2.5  ", "12.5 ")) == {"write": 14.0, "read": 0.75}


def test_numbers_of_a_label_are_no_times_and_differ_in_other_runs() -> None:
    one = "Running search 0\nTime for search 0 is 0.5\nTime for search 1 is 0.25\n"
    assert read(one) == {"main": 0.75}
    assert read(one, "Time for search 7 is 1.5\n") == {"main": 1.5}
    assert [item.callpath for item in times(one, elapsed=90)] == ["search"]


def test_time_so_far_is_not_added_and_simulated_time_is_not_the_run() -> None:
    found = {item.callpath: (item.value, item.aggregate) for item in times(CLOVER, elapsed=0.5)}
    assert found == {
        "main": (0.4, "last"),
        "main->PdV": (0.07, "last"),
        "main->MPI Halo Exchange": (0.01, "last"),
    }
    simulated = "cycle=1 time=2.5e-2 dt=3e-3\nomp wtime used = 0.25\n"
    assert [item.value for item in times(simulated, elapsed=0.5)] == [0.25]


def test_a_time_behind_a_rate_is_found() -> None:
    [found] = times("Rate (MB/s):  2614.64  Avg time (s):  0.0016\n", elapsed=0.5)
    assert (found.callpath, found.value) == ("Avg", 0.0016)


def test_of_several_outputs_what_is_printed_counts_first_then_the_one_with_most() -> None:
    outputs = {"stdout": "hello", "stderr": "time: 1 s", "prog.log": "total time: 2 s\nsolve time: 1 s\n"}
    assert [(item.file, item.value) for item in times_in(outputs)] == [("prog.log", 2.0), ("prog.log", 1.0)]
    assert [item.file for item in times_in({**outputs, "stdout": "time: 3 s"})] == ["stdout"]
    assert times_in({"stdout": "", "stderr": ""}) == ()


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (("result_3.1_2026-11-27_21-22-28.txt", "log20261127.out"), "result_*.*_*-*-*_*-*-*.txt"),
        (("times.1", "times.2"), "times.1"),  # a pattern would match both
        (("times[a].txt",), "times[[]a].txt"),
        (("times.txt",), "times.txt"),
    ],
)
def test_numbers_in_the_name_of_a_file_may_differ_in_the_next_run(
    names: tuple[str, ...], pattern: str
) -> None:
    outputs = dict.fromkeys(names, "") | {"stdout": "done", names[0]: "total time: 2.0 s"}
    assert [item.file for item in times_in(outputs)] == [pattern]


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


def test_hours_are_no_seconds() -> None:
    assert read("  Total wall time:          25    seconds     0.01 hours\n") == {"main": 25.0}


def test_a_time_per_process_is_a_time() -> None:
    text = (
        " unit          max/proc (s)  min/proc (s)  num calls\n"
        " solver               3.020         3.010         20\n"
    )
    assert read(text) == {"main": 3.02}
