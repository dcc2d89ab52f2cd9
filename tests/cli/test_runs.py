from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.cli.running import SIMULATED, run, write_campaign


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    path = write_campaign(folder, SIMULATED, None)
    assert run("run", path, "--directory", folder / "done").code == 0
    return folder / "done"


def test_every_run_is_a_row(campaign: Path) -> None:
    rows = run("runs", campaign, "--json").document
    status = run("status", campaign, "--json").document
    assert len(rows) == sum(status["runs"].values())
    assert sum(row["core_hours"] for row in rows) == pytest.approx(status["cost"]["spent"])
    assert [row["point"]["p"] for row in rows] == sorted(row["point"]["p"] for row in rows)


def test_rows_are_chosen_by_state_kind_expression_and_node(campaign: Path) -> None:
    rows = run("runs", campaign, "--json").document

    def found(*options: str) -> list[str]:
        return [row["run"] for row in run("runs", campaign, "--json", *options).document]

    some = [row["run"] for row in rows if row["point"]["p"] > 8 and (row["elapsed"] or 0) > 0.1]
    assert 0 < len(some) < len(rows)
    assert found("--where", "p > 8 and elapsed > 0.1") == some
    assert found("--state", "measured") == [row["run"] for row in rows if row["status"] == "measured"]
    assert found("--state", "in-flight") == found("--kind", "effort") == found("--node", "other*") == []
    assert found("--node", "simul*", "--state", "measured") == found("--state", "measured")


def test_rows_are_sorted(campaign: Path) -> None:
    table = run("runs", campaign, "--json", "--sort", "p", "--sort=-elapsed", "--state", "measured").document
    keys = [(row["point"]["p"], -row["elapsed"]) for row in table]
    assert len(keys) > 10 and keys == sorted(keys)


def test_csv_has_a_column_per_parameter(campaign: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run("runs", campaign, "--csv").out)))
    known = run("runs", campaign, "--json").document
    assert [row["run"] for row in rows] == [row["run"] for row in known]
    assert [int(row["p"]) for row in rows] == [row["point"]["p"] for row in known]


def test_a_table_says_how_many_rows_it_leaves_out(campaign: Path) -> None:
    number = len(run("runs", campaign, "--json").document)
    assert f"{number} runs, 3 rows shown: --limit 0 shows all" in run("runs", campaign, "--limit", "3").out
    everything = run("runs", campaign, "--limit", "0").out
    assert everything.count(" time-") == number and "shown" not in everything


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_figures_are_never_cut_in_a_table(
    campaign: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = run("runs", campaign, "--state", "measured").out.splitlines()
    heads = [cell.strip() for cell in lines[0].split("┃")]
    assert heads[:7] == ["p", "s", "run", "state", "attempts", "elapsed s", "core-hours"]
    assert ("began" in heads, "node" in heads) == (columns > 60, columns > 80) and "reason" not in heads
    table = [line for line in lines if "│" in line]
    rows = run("runs", campaign, "--state", "measured", "--json").document
    assert len(table) == len(rows) and not any("…" in line for line in table)
    for line, row in zip(table, rows, strict=True):
        assert line.split("│")[5].strip() == f"{row['elapsed']:.4g}"
    assert ("no space for: node" in lines[-2]) == (columns < 200)


def test_a_rehearsal_names_no_date(campaign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    clock = "rehearsal: no program was run; times are of a virtual clock"
    for command in ("runs", "log", "status"):
        assert "1970" not in run(command, campaign).out
    assert clock in run("status", campaign).out.splitlines()
    log = run("log", campaign).out.splitlines()
    assert log[1] == clock and log[2].startswith("over 0:") and "of that clock" in log[2]
    first = log.index("what happened") + 1
    assert log[first].split()[0] == "0:00:00"
    began = run("log", campaign, "--json").document["started"]
    assert began.startswith("1970-01-01T00:00:00"), "documents have instants"
    run("campaigns", "--keep", campaign)
    assert "rehearsal, after " in run("campaigns").out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--where", "ranks > 2"), "unknown name 'ranks'"),
        (("--sort", "elapse"), "did you mean 'elapsed'?"),
        (("--state", "lost"), "'lost' is none of: waiting, in flight"),
        (("--json", "--csv"), "not allowed with argument"),
    ],
)
def test_mistakes_name_the_remedy(campaign: Path, options: tuple[str, ...], message: str) -> None:
    result = run("runs", campaign, *options)
    assert result.code == 2 and message in result.err
