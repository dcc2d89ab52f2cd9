from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.errors import ReadError
from orchestrator.readers.time import read
from tests.applications import demo

APPLICATION = demo()


def write(tmp_path: Path, **record: object) -> Path:
    (tmp_path / "attempt.json").write_text(json.dumps({"run": "p=1/time-1", "attempt": 1, **record}))
    return tmp_path


@pytest.mark.parametrize(
    ("started", "finished", "seconds"),
    [
        ("2026-03-01T10:00:00.250000+00:00", "2026-03-01T10:00:02.000000+00:00", 1.75),
        ("2026-03-01T10:00:00.250000Z", "2026-03-01T10:00:02Z", 1.75),
        ("2026-12-31T23:59:59.999999", "2027-01-01T00:00:00.000001+00:00", 2e-6),
        ("2026-03-01T10:00:00Z", "2026-03-01T12:00:00+02:00", 0.0),
    ],
)
def test_elapsed_time_is_the_time_of_main(
    tmp_path: Path, started: str, finished: str, seconds: float
) -> None:
    (sample,) = read(write(tmp_path, started=started, finished=finished), APPLICATION)
    assert (sample.callpath, sample.metric, sample.aggregate) == ("main", "time", "value")
    assert sample.value == pytest.approx(seconds, abs=1e-9)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({}, "'finished' is missing"),
        ({"started": "2026-03-01T10:00:00Z", "finished": None}, "'finished' is missing"),
        ({"finished": "2026-03-01T10:00:00Z"}, "'started' is missing"),
        ({"started": 17, "finished": "2026-03-01T10:00:00Z"}, "started is 17"),
        ({"started": "2026-03-01T10:00:05Z", "finished": "2026-03-01T10:00:00Z"}, "5.0 s before it started"),
    ],
)
def test_records_without_an_elapsed_time_are_refused(
    tmp_path: Path, record: dict[str, object], reason: str
) -> None:
    with pytest.raises(ReadError, match=rf"attempt\.json: .*{reason}"):
        read(write(tmp_path, **record), APPLICATION)
