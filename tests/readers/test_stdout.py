from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from orchestrator.errors import ReadError
from orchestrator.readers import stdout
from orchestrator.types import Application, Sample
from tests.applications import demo


def application(
    samples: list[Sample] | None = None, *patterns: str, error: Exception | None = None
) -> Application:
    def output(texts: Mapping[str, str]) -> list[Sample]:
        if error:
            raise error
        return samples or []

    return demo(output=output, output_files=patterns)


def texts_of(directory: Path, *patterns: str) -> dict[str, str]:
    seen: dict[str, str] = {}

    def output(texts: Mapping[str, str]) -> list[Sample]:
        seen.update(texts)
        return [Sample("main", "time", 1.0)]

    stdout.read(directory, demo(output=output, output_files=patterns))
    return seen


def test_the_application_sees_stdout_stderr_and_its_output_files(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("out")
    (tmp_path / "stderr").write_text("err")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.yaml").write_text("a: 1")
    (tmp_path / "other").write_text("no")
    assert texts_of(tmp_path, "logs/*.yaml", "**/a.*") == {
        "stdout": "out",
        "stderr": "err",
        "logs/a.yaml": "a: 1",
    }


def test_what_is_read_from_stderr_is_said_to_be_looked_for_there(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("out")
    (tmp_path / "stderr").write_text("other")
    error = ValueError("nothing matches")
    with pytest.raises(ReadError, match=r"/stdout: demo: nothing"):
        stdout.read(tmp_path, application(error=error))
    with pytest.raises(ReadError, match=r" \(stdout, stderr\): demo: nothing"):
        stdout.read(tmp_path, application(None, "stderr", error=error))


def test_a_missing_stderr_is_empty(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("out")
    assert texts_of(tmp_path)["stderr"] == ""


def test_a_pipe_in_place_of_the_output_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "stdout")
    # Who opens the pipe after all gets its content: the test fails instead of waiting.
    writer = threading.Thread(target=(tmp_path / "stdout").write_text, args=["t=1"], daemon=True)
    writer.start()
    try:
        with pytest.raises(ReadError, match="is no regular file any more: the program replaced it"):
            texts_of(tmp_path)
        with pytest.raises(ReadError, match="no regular file"):
            list(stdout.parts_of(tmp_path / "stdout"))
    finally:
        reader = os.open(tmp_path / "stdout", os.O_RDONLY | os.O_NONBLOCK)
        writer.join(10)
        os.close(reader)


def test_lines_may_end_as_those_of_windows(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_bytes(b"time: 1 s\r\n50 %\r100 %\r\n")
    assert texts_of(tmp_path)["stdout"] == "time: 1 s\n50 %\r100 %\n"
    assert list(stdout.parts_of(tmp_path / "stdout")) == ["time: 1 s\n50 %\r100 %\n"]


def test_what_is_no_utf_8_is_read_as_latin_1(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_bytes("L\u00f6ser: 12 \u00b5s".encode("latin-1") + " 13 \u00b5s".encode())
    assert texts_of(tmp_path)["stdout"] == "L\u00f6ser: 12 \u00b5s 13 \u00b5s"


def test_of_a_huge_file_beginning_and_end_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdout, "LIMIT", 20)
    (tmp_path / "stdout").write_text("0123456789" + "x" * 50 + "abcdefghij")
    assert texts_of(tmp_path)["stdout"] == "0123456789\n[50 bytes left out]\nabcdefghij"
    (tmp_path / "stdout").write_text("x" * 20)
    assert texts_of(tmp_path)["stdout"] == "x" * 20


def test_of_a_huge_file_no_number_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdout, "LIMIT", 40)
    (tmp_path / "stdout").write_text("".join(f"took {step}.25 s\n" for step in range(10, 20)))
    assert texts_of(tmp_path)["stdout"] == "took 10.25 s\n\n[104 bytes left out]\ntook 19.25 s\n"


def test_too_many_output_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("")
    for number in range(stdout.MOST_FILES + 1):
        (tmp_path / f"{number}.log").touch()
    with pytest.raises(ReadError, match=r"101 output files match \*\.log"):
        texts_of(tmp_path, "*.log")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1e-9])
def test_impossible_values_are_refused_with_call_path_and_value(tmp_path: Path, value: float) -> None:
    (tmp_path / "stdout").write_text("")
    with pytest.raises(ReadError, match=rf"stdout: time \(value\) at main is {value}"):
        stdout.read(tmp_path, application([Sample("main", "time", value)]))


def test_a_negative_remainder_of_a_longer_time_is_zero(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("")
    total, rest = Sample("main", "time", 2.5), Sample("main->rest", "time", -0.004)
    found = stdout.read(tmp_path, application([total, rest]))
    assert found == [total, Sample("main->rest", "time", 0.0)]
    refused = [Sample("main->rest", "time", value) for value in (-3.0, -0.3)]
    for other in (*refused, Sample("main", "iterations", -1.0)):
        with pytest.raises(ReadError, match="not a possible value; correct the adapter"):
            stdout.read(tmp_path, application([total, other]))


def test_minus_one_is_no_remainder_however_long_the_run(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("")
    with pytest.raises(ReadError, match=r"rest is -1\.0"):
        samples = [Sample("main", "time", 250.0), Sample("main->rest", "time", -1.0)]
        stdout.read(tmp_path, application(samples))


def test_zero_is_a_possible_value(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("")
    assert stdout.read(tmp_path, application([Sample("main", "time", 0.0)])) == [Sample("main", "time", 0.0)]


def test_what_the_application_misses_is_told_with_file_and_reason(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("")
    with pytest.raises(ReadError, match=r"stdout: demo: no line 'Elapsed time'"):
        stdout.read(tmp_path, application(error=ValueError("no line 'Elapsed time'")))


def test_the_files_read_are_named_where_there_are_several(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("")
    (tmp_path / "a.yaml").write_text("")
    with pytest.raises(ReadError, match=r"\(stdout, a\.yaml\): demo: no CG time"):
        stdout.read(tmp_path, application(None, "*.yaml", error=ValueError("no CG time")))


@pytest.mark.parametrize(
    "error", [IndexError("list index"), ZeroDivisionError("x"), AttributeError("group"), TypeError("None")]
)
def test_output_that_breaks_the_parser_fails_the_attempt_only(tmp_path: Path, error: Exception) -> None:
    (tmp_path / "stdout").write_text("")
    with pytest.raises(ReadError, match=f"demo: {type(error).__name__}: "):
        stdout.read(tmp_path, application(error=error))


def test_two_values_for_the_same_are_refused(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("")
    twice = [Sample("main", "time", 1.0, "max"), Sample("main", "time", 1.0), Sample("main", "time", 2.0)]
    with pytest.raises(ReadError, match=r"time \(value\) at main is found twice"):
        stdout.read(tmp_path, application(twice))


def test_no_values_at_all_are_refused(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("")
    with pytest.raises(ReadError, match="no values found"):
        stdout.read(tmp_path, application())
