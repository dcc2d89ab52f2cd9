"""The files of failed attempts are reached from the report; those of all other attempts are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urljoin

import pytest

from orchestrator.control.serving import files
from orchestrator.journal.codec import decode
from orchestrator.journal.file import read
from orchestrator.journal.replay import replay
from orchestrator.journal.state import State
from orchestrator.report.page.course import failures
from orchestrator.report.page.history import History
from tests.control.serving.running import GOLDEN, LINES, Answer, Running, begin, served

GIVEN_UP = "p=2,n=30/time-2/attempt-2"
RETRIED = "p=4,n=10/time-1/attempt-2"  # the third one measured


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = begin(tmp_path_factory.mktemp("served") / "c", len(LINES))
    for attempt in (GIVEN_UP, RETRIED, "p=4,n=10/time-1/attempt-3"):
        path = folder / "runs" / attempt
        path.mkdir(parents=True)
        (path / "stderr").write_text(f"<b>{attempt}</b>\nkilled\n")
        (path / "run.sh").write_text("exec ./program\n")
        (path / "request.json").write_text("{}")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    with served(folder) as running:
        yield running


def address(server: Running, attempt: str) -> str:
    """Where the link of a report leads: the report encodes every part of the path."""
    row = server.wait_for("/campaigns.json", lambda found: found.document[0]["version"] > 0).document[0]
    path = "/".join(quote(part, safe="") for part in f"runs/{attempt}".split("/"))
    return urljoin(f"/campaigns/{row['key']}/report", f"./{path}")


def get(server: Running, attempt: str, name: str) -> Answer:
    return server.ask(f"{address(server, attempt)}/{name}")


@pytest.mark.parametrize("attempt", [GIVEN_UP, RETRIED])
def test_a_failed_attempt_has_a_list_and_its_files_are_text(server: Running, attempt: str) -> None:
    listing = server.ask(address(server, attempt))
    assert listing.status == 200
    number = attempt.rpartition("/")[2]
    assert f'<a href="{number}/stderr">stderr</a>' in listing.body and "stdout" not in listing.body
    assert "request.json" not in listing.body
    back = urljoin(address(server, attempt), "../../../report")
    assert '<a href="../../../report">' in listing.body and server.ask(back).status in (200, 202)
    answer = get(server, attempt, "stderr")
    assert (answer.status, answer.body) == (200, f"<b>{attempt}</b>\nkilled\n")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert get(server, attempt, "run.sh").headers["content-type"] == "text/plain; charset=utf-8"


def test_the_report_links_exactly_to_what_is_served(server: Running) -> None:
    history = History.of(read(GOLDEN))
    linked = {str(item["files"]) for item in failures(history, "") if item["files"]}
    assert linked == {
        f"runs/{run.id}/attempt-{number}"
        for run, item in history.state.runs.items()
        for number in range(1, item.attempts + 1)
        if files.failed_attempt(history.state, f"{run.id}/attempt-{number}")
    }
    assert f"runs/{GIVEN_UP}" in linked
    for path in linked:
        assert server.ask(address(server, path.removeprefix("runs/"))).status == 200


@pytest.mark.parametrize(
    ("attempt", "name"),
    [
        ("p=4,n=10/time-1/attempt-3", "stderr"),  # it measured
        ("p=4,n=10/time-1/attempt-4", "stderr"),
        ("p=4,n=10/time-1/attempt-0", "stderr"),
        ("p=4,n=10/time-1/attempt-02", "stderr"),
        ("p=4,n=10/time-2/attempt-2", "stderr"),
        (GIVEN_UP, "request.json"),
        (GIVEN_UP, "stdout"),
        (GIVEN_UP, ""),
    ],
)
def test_there_is_nothing_else(server: Running, attempt: str, name: str) -> None:
    assert get(server, attempt, name).status == 404


def test_attempts_in_flight_are_not_shown() -> None:
    now = replay(map(decode, LINES[:100]))
    assert {attempt.run.id for attempt in now.in_flight} == {
        "p=4,n=20/time-1",
        "p=4,n=20/time-2",
        "p=4,n=30/time-1",
    }
    for attempt in now.in_flight:
        assert files.failed_attempt(now, attempt.id) is None


def test_of_a_long_file_the_end_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt = files.failed_attempt(_golden(), GIVEN_UP)
    assert attempt is not None
    path = tmp_path / "runs" / GIVEN_UP
    path.mkdir(parents=True)
    (path / "stdout").write_bytes(b"a" * 10 + b"end\xff\n")
    monkeypatch.setattr(files, "MOST", 5)
    assert files.sizes(tmp_path, attempt) == {"stdout": 15}
    assert (
        files.text(tmp_path, attempt, "stdout")
        == "[the first 10 bytes are not shown]\nend\N{REPLACEMENT CHARACTER}\n"
    )


def _golden() -> State:
    return replay(read(GOLDEN))
