"""The list, the pages and the stream follow the journals; reports are built beside, and not too often."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from orchestrator.control.serving.builds import Reports
from orchestrator.journal.file import FILE_NAME
from orchestrator.report import models_document
from tests.control.serving.running import LINES, Answer, Running, begin, go_on, served, until


def rows(running: Running) -> list[dict[str, object]]:
    found: list[dict[str, object]] = running.ask("/campaigns.json").document
    return found


def read_once(running: Running) -> list[dict[str, object]]:
    return until(lambda: rows(running), lambda found: all(row["state"] != "unread" for row in found))


def test_campaigns_are_found_where_they_are_and_up_to_two_levels_below(tmp_path: Path) -> None:
    for place in ("one", "group/two", "group/deeper/three", "group/deeper/deepest/four"):
        begin(tmp_path / "top" / place, 20, place[-3:])
    begin(tmp_path / "alone", 20, "alone")
    with served(tmp_path / "top", tmp_path / "alone", tmp_path / "alone") as running:
        assert sorted(str(row["campaign"]) for row in read_once(running)) == ["alone", "one", "two"]


def test_the_list_says_where_every_campaign_stands(tmp_path: Path) -> None:
    begin(tmp_path / "a", len(LINES))
    begin(tmp_path / "b", 100, "left")
    begin(tmp_path / "c", 100)
    (tmp_path / "c" / FILE_NAME).write_bytes(b"".join([*LINES[:5], b"damage\n", *LINES[6:]]))
    with served(tmp_path) as running:
        found = {row["campaign"]: row for row in read_once(running)}
        assert found["golden"]["state"] == found["golden"]["standing"] == "stopped"
        assert (found["golden"]["round"], found["golden"]["measured"]) == (3, 21)
        assert found["left"]["state"] == "running" and found["left"]["in_flight"] == 3
        assert found["c"]["state"] == "unreadable" and "line 6" in str(found["c"]["error"])
        page = running.ask("/").body
        assert "of 0.6 core-hours" in page and "line 6" in page and "21 measured" in page
        status = running.ask(f"/campaigns/{found['c']['key']}/status")
        assert status.status == 503 and "begin one with" in status.body


def test_the_stream_has_every_row_first_and_then_what_changes(tmp_path: Path) -> None:
    folder = begin(tmp_path / "c", 95)
    begin(tmp_path / "other", 95)
    with served(tmp_path) as running:
        read_once(running)
        with running.stream() as stream:
            first = {next(stream)[1]["directory"] for _ in range(2)}
            assert first == {str(tmp_path / "c"), str(tmp_path / "other")}
            go_on(folder, 95, 96)
            name, row = next(stream)
            assert (name, row["directory"]) == ("campaign", str(folder))
            assert row["version"] == (folder / FILE_NAME).stat().st_size
            assert "<tr data-key" in row["html"]
            begin(tmp_path / "new", 20, "begun later")
            while (event := next(stream))[1].get("campaign") != "begun later":
                assert event[0] == "campaign"
            shutil.rmtree(tmp_path / "new")
            key = event[1]["key"]
            while (event := next(stream))[0] != "gone":
                assert event[1]["key"] == key
            assert event[1] == {"key": key}


def test_the_status_never_fits_models_and_says_of_when_its_models_are(tmp_path: Path) -> None:
    folder = begin(tmp_path / "c", 100)
    with served(tmp_path) as running:
        [row] = read_once(running)
        path = f"/campaigns/{row['key']}/status"
        document = running.ask(f"{path}.json").document
        assert document["models"] == [] and document["round"] == 2
        assert [item["run"] for item in document["in_flight"]] == [
            "p=4,n=20/time-1",
            "p=4,n=20/time-2",
            "p=4,n=30/time-1",
        ]
        assert "No models: models.json is missing" in running.ask(path).body
        model = {"callpath": "main<b>", "metric": "time", "expression": "1 + p", "normal_form": "1 + p"}
        model |= {"smape": 1.0, "notes": [], "predictions": [], "category": {}}  # type: ignore[dict-item]
        text = json.dumps({"id": document["id"], "round": 1, "measured": 1, "models": [model]})
        (folder / models_document.FILE_NAME).write_text(text)
        page = running.ask(path).body
        assert "main&lt;b&gt;" in page and "those after round 1; " in page
        (folder / models_document.FILE_NAME).write_text('{"models": 1}')
        assert "No models: models.json is missing, damaged" in running.ask(path).body


def _built(answer: Answer) -> bool:
    return answer.status == 200


def _builds(folder: Path) -> int:
    return len((folder / "builds").read_text())


def test_a_report_is_built_when_it_is_wanted_and_once_per_state(tmp_path: Path) -> None:
    folder = begin(tmp_path / "c", 95)
    with served(tmp_path) as running:
        [row] = read_once(running)
        path = f"/campaigns/{row['key']}/report"
        assert row["report"] is None and not (folder / "builds").exists()
        first = running.ask(path)
        assert first.status == 202 and "being built" in first.body
        size = (folder / FILE_NAME).stat().st_size
        assert running.wait_for(path, _built).body == f"<h1>built {size} </h1>\n"
        for _ in range(5):
            running.ask(path)
        assert _builds(folder) == 1
        assert rows(running)[0]["report"] == size
        go_on(folder, 95, 96)  # the round is complete: other models
        until(lambda: rows(running)[0]["stale"], bool)
        assert running.ask(path).body == f"<h1>built {size} </h1>\n", "the old one until the new one is there"
        until(lambda: rows(running)[0], lambda row: not row["stale"] and not row["building"])
        assert running.ask(path).body != f"<h1>built {size} </h1>\n"
        assert _builds(folder) == 2


def test_a_build_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    begin(tmp_path / "c", 95)
    with served(tmp_path) as running:
        assert running.site is not None
        running.site.reports = Reports(running.site.changed, command=("/nowhere/python",))
        [row] = read_once(running)
        path = f"/campaigns/{row['key']}/report"
        failed = running.wait_for(path, lambda answer: answer.status != 202)
        assert failed.status == 503
        assert "cannot start /nowhere/python: No such file or directory" in failed.body


def test_a_report_that_cannot_be_built_says_why_and_is_built_after_the_next_round(tmp_path: Path) -> None:
    folder = begin(tmp_path / "c", 95)
    (folder / "broken").touch()
    with served(tmp_path) as running:
        [row] = read_once(running)
        path = f"/campaigns/{row['key']}/report"
        failed = running.wait_for(path, lambda answer: answer.status != 202)
        assert failed.status == 503
        assert "cannot be built: cannot be read: &lt;it&gt;" in failed.body
        assert rows(running)[0]["report_error"] == "cannot be read: <it>"
        (folder / "broken").unlink()
        go_on(folder, 95, 96)
        assert running.wait_for(path, _built).status == 200
