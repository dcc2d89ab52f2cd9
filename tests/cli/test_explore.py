"""``orchestrator explore`` as a user sees it: a table, a page with figures, a JSON document."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.axes import Axes

from orchestrator.report import html_parts
from tests.cli.running import run
from tests.report.test_html_sections import read


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Solve grows with p, setup only depends on the layout; one value of setup is missing."""
    lines = ["p,s,layout,solve,setup"]
    for p in (1, 2, 4, 8):
        for s in (10, 20, 30):
            for layout, cost in (("<DGZ>", 1.0), ("GDZ", 2.0)):
                setup = "" if (p, s, layout) == (1, 10, "GDZ") else f"{cost + 0.001 * p * s % 0.1}"
                lines.append(f"{p},{s},{layout},{p * (1 + 0.01 * s)},{setup}")
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_page_has_findings_rankings_and_figures(table: Path, tmp_path: Path) -> None:
    done = run("explore", table, "--parameters", "p,s,layout", "--output", tmp_path / "page.html")
    assert done.code == 0 and done.out.rstrip().endswith("page.html")
    page = read(tmp_path / "page.html")
    assert len(page.sources) == 3  # clusters, and the associations of two responses
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert "Exploration of runs.csv" in page.text and "layout" in page.text


def test_what_a_parameter_explains_is_one_figure_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    titles: list[str] = []
    monkeypatch.setattr(Axes, "set_title", lambda place, text, **how: titles.append(text))
    rows = [f"{p},{abs(p - 5) + 0.1 * p},{p + p % 3}" for p in range(1, 13)]
    (tmp_path / "runs.csv").write_text("\n".join(["p,solve,setup", *rows]) + "\n")
    given = ("explore", tmp_path / "runs.csv", "--parameters", "p", "--output", tmp_path / "page.html")
    printed, found = run(*given).out, run(*given, "--json").document
    for response, title in zip(found["responses"], titles, strict=False):
        [ranked] = response["ranking"]
        shown = f"{max(ranked['explained'], ranked['bent']):.2f}"
        assert title == f"p: {shown}"
        assert f"p {shown} " in printed
        assert f'<td class="number">{shown}</td>' in (tmp_path / "page.html").read_text()


def test_a_metric_that_is_part_of_a_name_is_not_repeated(tmp_path: Path) -> None:
    rows = [f"{p},{call},{p * k},{p + k}" for p in (1, 2, 4, 8) for k, call in enumerate(("a", "b"), 1)]
    (tmp_path / "runs.csv").write_text("\n".join(["p,callpath,time,bytes", *rows]) + "\n")
    given = (
        "--parameters",
        "p",
        "--response",
        "time",
        "--response",
        "bytes",
        "--output",
        tmp_path / "x.html",
    )
    done = run("explore", tmp_path / "runs.csv", *given)
    assert done.code == 0, done.err
    assert "a time" in done.out and "time time" not in " ".join(done.out.split())
    assert done.out.split()[:2] == ["response", "explained"], "no column of metrics"
    page = (tmp_path / "x.html").read_text()
    assert "<h3>a time</h3>" in page


def test_the_document_ranks_parameters_and_gives_their_intervals(table: Path, tmp_path: Path) -> None:
    done = run("explore", table, "--parameters", "p,s,layout", "--json", "--output", tmp_path / "page.html")
    document = done.document
    solve, setup = document["responses"]
    assert solve["ranking"][0]["parameter"] == "p" and setup["ranking"][0]["parameter"] == "layout"
    assert [i["label"] for i in setup["ranking"][0]["intervals"]] == ["<DGZ>", "GDZ"]
    assert {item["points"] for item in setup["ranking"]} == {23}
    assert len(document["clusters"]["merges"]) == 4


def test_what_cannot_be_explored_is_said_in_one_line(table: Path, tmp_path: Path) -> None:
    wrong = run("explore", table, "--parameters", "p,s,layout", "--callpath", "nowhere")
    assert wrong.code == 2 and "'nowhere' is in none" in wrong.err
    nowhere = run("explore", table, "--parameters", "p,s,layout", "--output", tmp_path / "no" / "page.html")
    assert nowhere.code == 2 and "cannot write" in nowhere.err


def test_the_page_never_replaces_the_measurements(table: Path) -> None:
    before = table.read_text()
    refused = run("explore", table, "--parameters", "p,s,layout", "--output", table.parent / "." / table.name)
    assert refused.code == 2 and "is an input, which it would replace" in refused.err
    assert table.read_text() == before


def test_tables_give_whole_numbers_in_full_and_align_their_heads() -> None:
    text = html_parts.table(
        ("name", "points", "rho"), [("a", 31924, None), ("b", 7, html_parts.Number("< 0.1"))]
    )
    assert '<th>name</th><th class="number">points</th><th class="number">rho</th>' in text
    assert '<td class="number">31924</td><td class="number">-</td>' in text
    assert "&lt; 0.1" in text
