from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from orchestrator.cli.main import main

CAMPAIGN = """
name: rehearsal
application: generic
program: {arguments: ["{p}"], ranks: p, output: [{callpath: main, pattern: "t=(.*)"}]}
parameters: {p: [1, 2, 4, 8], n: [10, 20, 30, 40]}
evaluation_point: {p: 16, n: 50}
measure: {time_limit: 60 s, expected_time: 5 s}
stop: {budget: 6 core-hours}
executor:
  name: simulated
  failure_rate: 0.3
  noise: 3
  truth: {"solve<b>&": "0.5 + 0.05*n*p", exchange: "1 + log2(p)*n*0.01"}
validate: true
"""


class Page(HTMLParser):
    """Collects what a browser would show."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.sources: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text())
    assert page.open == []
    return page


def reported(folder: Path, campaign: str) -> Page:
    """Run a campaign, and read its report."""
    file = folder / "campaign.yaml"
    file.write_text(campaign)
    assert main(["run", str(file), "--directory", str(folder / "c")]) == 0
    assert main(["report", str(folder / "c")]) == 0
    return read(folder / "c" / "report.html")


@pytest.mark.slow
def test_the_report_is_one_file_with_models_figures_and_validation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = reported(tmp_path, CAMPAIGN)
    text = " ".join(page.text)
    assert "Campaign rehearsal" in text and "Validation at P(p=16, n=50)" in text
    assert "solve<b>&" in text  # shown, not interpreted
    assert re.search(r"exchange\s+time\s+\S+ \+ \S+ \* log2\(p\) \* n", text)
    assert "Speedup and efficiency" in text and "relative to p=1" in text
    assert len(page.sources) == 7  # spending; two call paths and the whole run, each with its speedup
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)


def test_a_campaign_without_measurements_has_a_report_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "campaign.yaml"
    file.write_text(CAMPAIGN.replace("failure_rate: 0.3", "failure_rate: 0.999"))
    assert main(["run", str(file), "--directory", str(tmp_path / "c")]) == 1
    assert main(["report", str(tmp_path / "c"), "--output", str(tmp_path / "r.html")]) == 0
    text = " ".join(read(tmp_path / "r.html").text)
    assert "No models yet." in text and "Given up" in text


CATEGORIES = """
name: kinds
application: generic
program: {arguments: ["{n}", "{k}"], output: [{callpath: main, pattern: "t=(.*)"}]}
parameters: {n: [10, 20, 30, 40, 50], k: {values: [a1, a2]}}
evaluation_point: {n: 60, k: a2}
measure: {time_limit: 60 s, expected_time: 5 s}
stop: {budget: 6 core-hours}
strategy: {name: full}
executor: {name: simulated, noise: 30, truth: {main: "1 + 0.05*n"}}
validate: true
"""


@pytest.mark.slow
def test_models_of_categories_are_told_apart_and_predict_nothing_for_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = reported(tmp_path, CATEGORIES)
    capsys.readouterr()
    assert main(["status", str(tmp_path / "c"), "--json"]) == 0
    models = json.loads(capsys.readouterr().out)["models"]
    text = " ".join(page.text)
    assert "[-, -]" not in text
    assert {"main [k=a1] ", "main [k=a2] "} <= set(page.text), "the figures' headings"
    for model in models:
        name, value = f"{model['callpath']} [k={model['category']['k']}]", f"{model['smape']:.2f}"
        where = page.text.index(name)
        assert page.text[where + 3] == value
        assert (page.text[where + 4] == "-") == (model["category"]["k"] == "a1")
        assert all(f"{name} {model['metric']}: {note}" in text for note in model["notes"])


@pytest.mark.slow
def test_the_validation_is_a_reason_in_the_last_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = " ".join(reported(tmp_path, CATEGORIES).text)
    assert re.search(r"n=60,k=a2/time-1\s+measured\s+validation at the evaluation point", text)
