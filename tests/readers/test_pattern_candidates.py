"""Times in what unknown programs print."""

from __future__ import annotations

import itertools
import re

import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.draft import Draft, campaign_of
from orchestrator.readers.pattern_candidates import MOST, times, times_in
from orchestrator.readers.printed_line import tick
from tests.readers.printed import read


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


def test_a_number_and_s_in_a_name_are_no_seconds() -> None:
    assert times(" make_m2s 184 10.8 0.001 0.017") == ()


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


def test_hours_are_no_seconds() -> None:
    assert read("  Total wall time:          25    seconds     0.01 hours\n") == {"main": 25.0}


def test_a_number_of_processes_is_no_time() -> None:
    text = (
        "Info: Startup time: 2 CPUs 0.112 s/step\nInfo: run time: 4 threads\nWallClock: 5.5  CPUTime: 5.25\n"
    )
    assert read(text) == {"main": 5.5, "main->CPU": 5.25}


def test_what_a_time_is_without_is_no_rate() -> None:
    text = " total elapsed time       : 1.25E+01 sec\n total solver time w/o IO : 1.10E+01 sec\n"
    assert read(text) == {"main": 12.5, "main->total solver w/o IO": 11.0}


def test_dashes_before_a_label_are_no_part_of_its_name() -> None:
    assert read("- Assembly time:  1.5 s\n- Solver time:  2.5 s\n") == {"main": 2.5, "main->Assembly": 1.5}
