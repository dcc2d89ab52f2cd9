"""What to measure next for existing measurements; measurements for other tools."""

import importlib.util
import io
import json
from pathlib import Path

import pytest

from tests.cli.running import SIMULATED, run, write_campaign
from tests.requirements import need

POINTS = [(p, s) for p in (1, 2, 4, 8, 16) for s in (10, 20, 30, 40, 50)]


@pytest.fixture
def measured() -> Path:
    """A table that lacks the dearest point of its grid; times are 0.1 + 1e-3 p s."""
    rows = [f"{p},{s},main,time,{0.1 + 1e-3 * p * s}" for p, s in POINTS[:-1] for _ in range(2)]
    path = Path("measured.csv")
    path.write_text("p,s,callpath,metric,value\n" + "\n".join(rows) + "\n")
    return path


def suggested(path: Path, *options: str) -> list[dict[str, object]]:
    result = run("suggest", path, "--at", "p=32,s=60", "--budget", "1 core-hour", *options, "--json")
    assert result.code == 0, result.err
    found: list[dict[str, object]] = result.document["suggestions"]
    return found


def test_points_are_suggested_with_cost_and_reason(measured: Path) -> None:
    found = suggested(measured, "--processes", "p", "--values", "p=64")
    assert 0 < len(found) <= 4
    for item in found:
        assert set(item) == {"point", "repetitions", "cost", "reason"}
        assert item["reason"]
    assert len(suggested(measured, "--values", "p=64", "--points", "2")) <= 2


def test_suggestions_satisfy_constraints(measured: Path) -> None:
    found = suggested(measured, "--values", "p=64,128", "--constraint", "p * s >= 640", "--points", "10")
    assert found
    for item in found:
        point = item["point"]
        assert isinstance(point, dict)
        assert point["p"] * point["s"] >= 640


def test_a_suggestion_for_humans(measured: Path) -> None:
    result = run("suggest", measured, "--at", "p=32,s=60", "--budget", "1 core-hour")
    assert result.code == 0
    assert "core-hours" in result.out
    assert "P(p=" in result.out


@pytest.mark.parametrize(
    ("option", "value", "mistake"),
    [
        ("--budget", "much", "much"),
        ("--at", "p=32", "lacks s"),
        ("--values", "q=3", "q=3"),
        ("--constraint", "p *", "p *"),
        ("--processes", "q", "q"),
    ],
)
def test_wrong_usage(measured: Path, option: str, value: str, mistake: str) -> None:
    options = {"--at": "p=32,s=60", "--budget": "1 core-hour", option: value}
    result = run("suggest", measured, *(word for pair in options.items() for word in pair))
    assert result.code == 2, result.err
    assert mistake in result.err
    assert "Traceback" not in result.err


def test_every_repetition_is_exported() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    status = run("run", "campaign.yaml", "--json").document
    header, *rows = run("export", "rehearsal", "--format", "csv").out.splitlines()
    assert header == "p,s,callpath,metric,repetition,value"
    assert len([row for row in rows if ",main,time," in row]) == status["runs"]["measured"]
    lines = [
        json.loads(line) for line in run("export", "rehearsal", "--format", "extrap-jsonl").out.splitlines()
    ]
    assert all(set(line) == {"params", "callpath", "metric", "value"} for line in lines)


def test_parquet_is_exported() -> None:
    need(importlib.util.find_spec("pyarrow") is not None, "pyarrow")
    import pandas as pd

    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    assert run("export", "rehearsal", "--format", "parquet", "--output", "x.parquet").code == 0
    table = pd.read_csv(io.StringIO(run("export", "rehearsal", "--format", "csv").out))
    assert len(pd.read_parquet("x.parquet")) == len(table)


def test_an_output_that_cannot_be_written() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    run("run", "campaign.yaml")
    result = run("export", "rehearsal", "--format", "csv", "--output", "no/such/folder.csv")
    assert result.code == 2
    assert "no/such/folder.csv" in result.err


def test_an_unknown_format_is_wrong_usage() -> None:
    assert run("export", "x", "--format", "xml").code == 2
