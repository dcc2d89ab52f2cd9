"""What a user types who finds a wrong measurement, and what all commands say of it afterwards."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

import orchestrator as mo
from orchestrator.cli.discard import render
from orchestrator.cli.main import main
from orchestrator.control.discarding import discard
from orchestrator.types import Run
from tests.cli.running import LOCAL, run, write_campaign

WRONG = ("n=2/time-1", "P(n=3) time-1")


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A campaign that has stopped."""
    assert main(["run", str(write_campaign(tmp_path, LOCAL)), "--directory", "dir"]) == 0
    return Path("dir")


def test_the_runs_are_named_and_what_to_do_next(begun: Path) -> None:
    before = run("status", begun, "--json").document
    shown = run("discard", begun, "--because", "n3 was throttled", *WRONG)
    assert shown.code == 0, shown.err
    assert shown.out.startswith(
        "discarded what 2 runs measured: n3 was throttled\n  n=2/time-1\n  n=3/time-1\n"
    )
    assert "stay spent" in shown.out
    assert "orchestrator status dir --fit" in shown.out and "orchestrator resume dir" in shown.out
    after = run("status", begun, "--json").document
    assert after["cost"]["spent"] == before["cost"]["spent"]
    assert after["runs"]["discarded"] == 2
    back = run("discard", begun, "--restore", WRONG[0], "--json")
    assert back.document["restored"] == [WRONG[0]] and back.document["node_unknown"] == 0
    again = run("discard", begun, *WRONG, "--because", "hot", "--json")
    assert again.code == 2 and "n=3/time-1: it is discarded already (n3 was throttled)" in again.err
    assert "The other 1 run can be: name only these." in again.err


def test_runs_are_chosen_by_an_expression(begun: Path) -> None:
    wrong = run("discard", begun, "--where", "n >= 3", "--because", "wrong input", "--json")
    rows = run("runs", begun, "--where", "n >= 3", "--json").document
    assert wrong.document["discarded"] == sorted(row["run"] for row in rows) and rows
    some = run("discard", begun, "--restore", "--where", "n == 3", "--node", "*", "--json").document
    assert {name.partition("/")[0] for name in some["restored"]} == {"n=3"}
    none = run("discard", begun, "--where", "n > 99", "--because", "hot")
    assert none.code == 2 and "no run that is measured fulfils 'n > 99'. Nothing was changed" in none.err
    unknown = run("discard", begun, "--where", "m > 99", "--because", "hot")
    assert unknown.code == 2 and "unknown name 'm'" in unknown.err


@pytest.mark.parametrize(("restored", "state"), [(False, "discarded"), (True, "measured")])
def test_of_many_runs_it_says_how_to_list_all(begun: Path, restored: bool, state: str) -> None:
    changed = discard(begun, [WRONG[0]], "hot")
    many = replace(changed, runs=tuple(Run(changed.runs[0].point, "time", k) for k in range(1, 13)))
    assert f"  and 2 more: orchestrator runs dir --state {state}" in render(many, restored, begun)


def test_every_view_says_what_was_discarded_and_why(begun: Path) -> None:
    assert "discarded" not in run("status", begun).out + run("log", begun).out
    run("discard", begun, *WRONG, "--because", "n3 was throttled")
    line = "discarded: 2 runs: n3 was throttled (n=2/time-1 n=3/time-1)"
    status = run("status", begun).out
    assert line in status and "orchestrator resume dir decides again" in status
    log = run("log", begun).out
    assert "discarded: 2 runs (their cost counts, what they measured does not)" in log
    assert "n=2/time-1: n3 was throttled" in log
    assert "discarded: P(n=2) time-1, P(n=3) time-1: n3 was throttled" in log
    assert run("status", begun, "--run", "n=2/time-1").out.startswith(
        "run n=2/time-1: discarded: n3 was throttled"
    )
    for command in (
        ("model",),
        ("suggest", "--budget", "1", "--at", "n=8"),
        ("explore", "--output", "e.html"),
    ):
        assert f"note: dir: {line}" in run(command[0], begun, *command[1:]).err
    rows = run("runs", begun, "--state", "discarded", "--json").document
    assert [(row["run"], row["reason"]) for row in rows] == [
        ("n=2/time-1", "n3 was throttled"),
        ("n=3/time-1", "n3 was throttled"),
    ]
    assert rows[0]["elapsed"] > 0 and rows[0]["core_hours"] > 0


def test_exports_and_python_do_not_see_it(begun: Path) -> None:
    assert {2, 3} <= set(mo.load(begun).measurements["n"])
    run("discard", begun, *(str(row["run"]) for row in of(begun, 2)), "--because", "hot")
    campaign = mo.load(begun)
    assert 2 not in set(campaign.measurements["n"])
    assert set(campaign.runs[campaign.runs["n"] == 2]["status"]) == {"discarded"}
    with pytest.warns(match="discarded: "):
        assert 2 not in set(mo.read(begun)["n"])
    assert run("export", begun, "--format", "csv", "--output", "e.csv").code == 0
    assert {row["n"] for row in csv.DictReader(Path("e.csv").read_text().splitlines())} == {
        "1",
        "3",
        "4",
        "5",
    }


def of(directory: Path, n: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = run("runs", directory, "--where", f"n == {n}", "--json").document
    return rows


def test_the_campaign_measures_the_point_again(begun: Path) -> None:
    names = [str(row["run"]) for row in of(begun, 1)]
    run("discard", begun, *names, "--because", "hot")
    shown = run("resume", begun)
    assert shown.code == 0
    assert (
        "rules changed: measurements were discarded, restored or read again: what to do next is decided again"
        in (shown.err + shown.out)
    )
    assert {str(row["status"]) for row in of(begun, 1)} >= {"discarded", "measured"}
    assert "decides again" not in run("status", begun).out


def test_a_campaign_of_which_everything_was_discarded_has_no_models(begun: Path) -> None:
    rows = run("runs", begun, "--json").document
    assert run("discard", begun, *(row["run"] for row in rows), "--because", "wrong input").code == 0
    assert "the campaign has no measurements: all of them were discarded" in run("model", begun).err
    assert run("status", begun, "--fit").code == 0 and run("report", begun).code == 0


def test_without_a_reason_or_a_run_it_is_wrong_usage(begun: Path) -> None:
    journal = (begun / "journal.jsonl").read_bytes()
    assert (shown := run("discard", begun, WRONG[0])).code == 2 and "--because 'node n3" in shown.err
    assert (shown := run("discard", begun, "--because", "x")).code == 2 and "orchestrator runs" in shown.err
    assert (shown := run("discard", begun, "--node", "zz", "--because", "x")).code == 2
    assert "no run that is measured was on zz: they were on " in shown.err
    assert (begun / "journal.jsonl").read_bytes() == journal
