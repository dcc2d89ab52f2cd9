"""`orchestrator report` of campaigns and of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import SIMULATED, run, write_campaign

TABLE = "p,n,callpath,metric,value\n" + "".join(
    f"{p},{n},main,time,{0.1 + n / p}\n" for p in (1, 2, 4, 8, 16) for n in (8, 16, 32, 64, 96)
)


def test_a_table_becomes_a_page_and_a_document() -> None:
    Path("runs.csv").write_text(TABLE)
    options = ("runs.csv", "--modeler", "pmnf", "--predict", "p=64,n=200")
    result = run("report", *options)
    assert (result.code, result.out) == (0, "report.html\n"), result.err
    assert Path("report.html").read_text().lower().startswith("<!doctype html>")
    document = run("report", *options, "--json").document
    assert (document["kind"], document["title"]) == ("measurements", "runs.csv")
    assert document["head"]["answer"]["point"] == {"p": 64, "n": 200}
    assert document["head"]["answer"]["value"] == pytest.approx(0.1 + 200 / 64, rel=0.01)


def test_readers_have_the_options_of_model() -> None:
    Path("plain.csv").write_text(TABLE.partition("\n")[2])
    document = run(
        "report", "plain.csv", "--names", "p,n,callpath,metric,value", "--categorical", "n",
        "--parameters", "p,n", "--modeler", "pmnf", "--json",
    ).document  # fmt: skip
    assert [(axis["name"], axis["kind"]) for axis in document["parameters"]] == [
        ("p", "number"),
        ("n", "category"),
    ]


def test_mistakes_name_the_remedy() -> None:
    write_campaign(Path.cwd(), SIMULATED, None)
    assert run("run", "campaign.yaml").code == 0
    result = run("report", "rehearsal", "--predict", "p=8,s=1")
    assert result.code == 2 and "--predict is for measurements in files" in result.err
    assert "orchestrator export rehearsal --format csv" in result.err
    result = run("report", "nowhere")
    assert result.code in (1, 2) and "nowhere holds no campaign" in result.err
    result = run("report", "nowhere.csv")
    assert result.code == 2 and "nowhere.csv: there is no such file or directory" in result.err
    assert "campaign" not in result.err
    Path("runs.csv").write_text(TABLE)
    result = run("report", "runs.csv", "--modeler", "pmnf", "--output", "no/such/folder.html")
    assert result.code != 0 and "cannot write no/such/folder.html" in result.err
    result = run("report", "runs.csv", "--modeler", "pmnf", "--output", "./runs.csv")
    assert result.code == 2 and "runs.csv is an input, which it would replace" in result.err
    assert Path("runs.csv").read_text() == TABLE
    result = run("report", "runs.csv", "--modeler", "pmnf", "--processes", "q")
    assert result.code != 0 and "q" in result.err
