"""Outputs that runs left in files, read as a campaign file says, at the points that their paths say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import orchestrator as mo
from orchestrator.api.inputs import printed
from orchestrator.errors import CampaignError, ReadError
from orchestrator.readers.load import load
from orchestrator.readers.reading import Reading
from orchestrator.types import Measurements, Point
from tests.cli.running import run

CAMPAIGN = """\
name: water
application: generic
executable: md
program:
  arguments: ["{n}", "{t}"]
  threads: t
  output:
    - {callpath: main, pattern: '^ Total +(\\S+)', file: md*.log}
    - {callpath: main, pattern: '^ (?P<callpath>\\S.*?) +\\d+ +(?P<value>\\S+)$', file: md*.log}
parameters: {n: [4, 8], t: [1, 2]}
stop: {budget: 1 core-hours}
executor: {name: local}
"""


@pytest.fixture
def reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reading:
    monkeypatch.chdir(tmp_path)
    Path("water.yaml").write_text(CAMPAIGN)
    return Reading(printed=printed(Path("water.yaml")))


def log(name: str, force: float) -> None:
    path = Path("logs") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f" Force   7 {force}\n Total   {2 * force}\n")


def values(known: Measurements, callpath: str) -> dict[Point, tuple[float, ...]]:
    (found,) = (item for item in known.items if item.callpath == callpath)
    return dict(found.values)


def test_points_stand_in_the_names_of_files_or_folders_and_files_of_a_point_are_repetitions(
    reading: Reading,
) -> None:
    log("water_n4_t1_rep10.log", 3.0)
    log("water_n4_t1_rep9.log", 2.0)
    log("n=8,t=2/md.log", 5.0)
    known = load([Path("logs")], reading)
    first, second = Point.of(n=4, t=1), Point.of(n=8, t=2)
    assert values(known, "main->Force") == {first: (2.0, 3.0), second: (5.0,)}
    assert values(known, "main") == {first: (4.0, 6.0), second: (10.0,)}
    assert known.notes == ()


def test_files_without_the_values_are_left_out_with_a_note(reading: Reading) -> None:
    log("water_n4_t1.log", 2.0)
    Path("logs/water_n8_t1.log").write_text("Fatal error\n")
    known = load([Path("logs")], reading)
    assert list(values(known, "main").values()) == [(4.0,)]
    assert "1 of 2 files left out" in known.notes[-1]
    assert "reread" not in known.notes[-1], "files are read anew each time"
    assert "water_n8_t1.log" in known.notes[-1]
    with pytest.raises(ReadError, match=r"water_n8_t1\.log: generic"):
        load([Path("logs/water_n8_t1.log")], reading)


def test_logs_of_runs_that_failed_although_they_have_times_are_left_out(reading: Reading) -> None:
    measure = "measure: {profiler: stdout, success: ^Finished, failure: ERROR}\n"
    Path("water.yaml").write_text(CAMPAIGN + measure)
    chosen = Reading(printed=printed(Path("water.yaml")))
    for n, ending in ((4, "Finished"), (8, "ERROR: NaN\nFinished"), (16, "Total")):
        log(f"water_n{n}_t1.log", float(n))
        with Path(f"logs/water_n{n}_t1.log").open("a") as file:
            file.write(f"{ending}\n")
    known = load([Path("logs")], chosen)
    assert values(known, "main") == {Point.of(n=4, t=1): (8.0,)}
    assert "2 of 3 files left out" in known.notes[-1]
    with pytest.raises(ReadError, match=r"n8_t1\.log: measure\.failure 'ERROR' matches: ERROR: NaN"):
        load([Path("logs/water_n8_t1.log")], chosen)
    with pytest.raises(ReadError, match=r"n16_t1\.log: nothing in it matches measure\.success '\^Finished'"):
        load([Path("logs/water_n16_t1.log")], chosen)


def test_words_are_categories_and_the_last_mention_of_a_parameter_counts(reading: Reading) -> None:
    log("n2/n=4_t=cg_1.log", 2.0)
    log("n2/n=4_t=mg_1.log", 3.0)
    known = load([Path("logs")], reading)
    assert values(known, "main->Force") == {
        Point.of(n=4, t="cg"): (2.0,),
        Point.of(n=4, t="mg"): (3.0,),
    }


def test_parameters_with_one_value_stay_so_that_sets_can_be_compared(reading: Reading) -> None:
    for n in (4, 8):
        log(f"old/n{n}_t1.log", float(n))
        log(f"new/n{n}_t{n // 4}.log", float(n))
    assert load([Path("logs/old")], reading).parameters == ("n", "t")
    assert run("compare", "logs/old", "logs/new", "--output-of", "water.yaml").code == 0


def test_a_path_that_does_not_say_the_point_is_refused(reading: Reading) -> None:
    log("water_n4_rep1.log", 2.0)
    with pytest.raises(ReadError, match=r"does not say the value of t: .* like n1_t2_rep1\.log"):
        load([Path("logs")], reading)


def test_profiles_are_no_outputs(reading: Reading) -> None:
    Path("water.yaml").write_text(CAMPAIGN + "measure: {profiler: time}\n")
    with pytest.raises(CampaignError, match=r"measure\.profiler is time"):
        printed(Path("water.yaml"))


def test_commands_read_outputs(reading: Reading) -> None:
    for n in (4, 8, 16):
        log(f"water_n{n}_rep1.log", float(n))
    shown = run("export", "logs", "--output-of", "water.yaml", "--parameters", "n", "--format", "csv")
    assert "16,main->Force,time,1,16.0" in shown.out
    options = ("logs", "--output-of", "water.yaml", "--parameters", "n")
    assert "at P(n=32)" in run("model", *options, "--predict", "n=32").out
    assert run("suggest", *options, "--at", "n=32", "--budget", "1 core-hour").code == 0


def test_values_may_stand_anywhere_in_a_path(reading: Reading) -> None:
    for n, t in ((4, 1), (8, 2)):
        log(f"box-{n}k-{t}threads-a17.out", float(n))
        log(f"box-{n}k-{t}threads-b3.out", n + 1.0)
    known = load([Path("logs")], replace(reading, named="box-{n}k-{t}threads"))
    first, second = Point.of(n=4, t=1), Point.of(n=8, t=2)
    assert values(known, "main->Force") == {first: (4.0, 5.0), second: (8.0, 9.0)}
    only = load([Path("logs")], replace(reading, named="box-{n}k-*threads"))
    assert only.parameters == ("n",), "those of the shape vary"


@pytest.mark.parametrize(
    "shape, parameters, message",
    [
        (
            "box-{n}k-{r}threads",
            None,
            r"'box-\{n\}k-\{r\}threads': r is no parameter of the campaign.*n, t; ",
        ),
        ("box-{n}k", ["n", "t"], "has no t, which --parameters names"),
        ("ball-{n}k-{t}", None, r"box-4k-1threads\.out: nothing in the path has the shape"),
    ],
)
def test_shapes_of_other_paths_are_refused(
    reading: Reading, shape: str, parameters: list[str] | None, message: str
) -> None:
    log("box-4k-1threads.out", 2.0)
    with pytest.raises(ReadError, match=message):
        load([Path("logs")], replace(reading, named=shape, parameters=parameters))


def test_commands_take_the_shape_of_paths(reading: Reading) -> None:
    log("box-4k-1threads.out", 2.0)
    options = ("--output-of", "water.yaml", "--named", "box-{n}k-{t}threads", "--format", "csv")
    assert "4,1,main->Force,time,1,2.0" in run("export", "logs", *options).out
    frame = mo.read("logs", output_of="water.yaml", named="box-{n}k-{t}threads")
    assert list(frame["n"]) == [4, 4]
    with pytest.raises(ReadError, match=r"^named 'box': name each parameter once"):
        mo.read("logs", output_of="water.yaml", named="box")
    with pytest.raises(ReadError, match=r"^water\.yaml: named is for .* outputs \(output_of\)"):
        mo.read("water.yaml", named="box-{n}")
