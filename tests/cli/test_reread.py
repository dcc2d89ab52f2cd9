from __future__ import annotations

from pathlib import Path

from orchestrator.cli.main import main
from tests.cli.running import LOCAL, run, write_campaign


def test_a_corrected_pattern_is_read_again_and_the_models_follow(tmp_path: Path) -> None:
    path = write_campaign(tmp_path, LOCAL.replace("'time: (\\S+) s'", "'time: (\\S)\\S* s'"))
    assert main(["run", str(path), "--directory", "dir"]) == 0
    before = run("status", "dir", "--json").document
    assert before["models"][0]["expression"]
    path.write_text(LOCAL)
    shown = run("reread", "dir", "--campaign", path)
    assert shown.code == 0
    assert "rule changed: program.output" in shown.out and "10 have other values" in shown.out
    again = run("reread", "dir", "--json")
    assert again.document == {
        "read": again.document["read"],
        "changed": 0,
        "recovered": 0,
        "rules": [],
        "unreadable": {},
        "refused": False,
    }
    assert run("status", "dir", "--json").document["models_outdated"]
    after = run("status", "dir", "--fit", "--json").document
    main_before, main_after = (
        next(item for item in found["models"] if item["callpath"] == "main") for found in (before, after)
    )
    assert main_after != main_before
    assert "outputs were read again" in run("log", "dir").out
    rehearsed = run("simulate", path, "--models", "dir", "--json")
    assert rehearsed.code == 0, rehearsed.err


def test_of_an_edited_file_only_what_is_read_counts(tmp_path: Path) -> None:
    path = write_campaign(tmp_path, LOCAL)
    main(["run", str(path), "--directory", "dir", "--set", "stop.budget=2 core-hours"])
    path.write_text(
        LOCAL.replace("'time: (\\S+) s'", "'time: (\\S)\\S* s'").replace("patience: 2", "patience: 7")
    )
    shown = run("reread", "dir", "--campaign", path, "--json")
    assert shown.code == 0 and shown.document["changed"] == 10, shown
    saved = Path("dir/campaign.yaml").read_text()
    assert "patience: 2" in saved and "budget: 7200.0 core-seconds" in saved


def test_the_file_of_another_application_is_refused(tmp_path: Path) -> None:
    main(["run", str(write_campaign(tmp_path)), "--directory", "dir"])
    shown = run("reread", "dir", "--campaign", "lulesh")
    assert shown.code == 2 and "is a campaign of lulesh, and dir holds one of generic" in shown.err


def test_a_pattern_that_finds_nothing_changes_nothing_and_fails(tmp_path: Path) -> None:
    path = write_campaign(tmp_path)
    main(["run", str(path), "--directory", "dir"])
    journal = Path("dir/journal.jsonl").read_bytes()
    shown = run("reread", "dir", "--set", "program.output=[{callpath: main, pattern: 'no (.*)'}]")
    assert shown.code == 1
    assert "nothing was changed" in shown.err and "cannot be read: n=1/time-1/attempt-1" in shown.out
    assert Path("dir/journal.jsonl").read_bytes() == journal


def test_a_directory_without_a_campaign_is_named() -> None:
    shown = run("reread", "nowhere")
    assert shown.code == 2 and "nowhere holds no campaign" in shown.err
