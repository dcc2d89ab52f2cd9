"""What notebooks show of a campaign; and how tests read pages."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from orchestrator.report import html_sections, status_text
from tests.cli.running import run

CAMPAIGN = """
name: kinds
application: generic
program: {arguments: ["{n}", "{k}"], output: [{callpath: main, pattern: "t=(.*)"}]}
parameters: {n: [10, 20, 30, 40, 50], k: {values: [a1, a2]}}
evaluation_point: {n: 60, k: a2}
measure: {time_limit: 60 s, expected_time: 5 s}
model: {name: pmnf}
stop: {budget: 6 core-hours}
strategy: {name: full}
executor: {name: simulated, noise: 30, truth: {"solve<b>&": "1 + 0.05*n"}}
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


def parsed(text: str) -> Page:
    page = Page()
    page.feed(text)
    assert page.open == []
    return page


def read(path: Path) -> Page:
    return parsed(path.read_text())


def test_models_of_categories_are_told_apart_and_predict_nothing_for_others(tmp_path: Path) -> None:
    (tmp_path / "campaign.yaml").write_text(CAMPAIGN)
    assert run("run", tmp_path / "campaign.yaml", "--directory", tmp_path / "c").code == 0
    status = run("status", tmp_path / "c", "--json").document
    page = parsed(html_sections.status_section(status))
    text = " ".join(page.text)
    assert "Validation at P(n=60, k=a2)" in text and "[-, -]" not in text
    assert all(line in page.text for line in status_text.standing_lines(status))
    assert "solve<b>&" in text  # shown, not interpreted
    for model in status["models"]:
        name, value = f"{model['callpath']} [k={model['category']['k']}]", f"{model['smape']:.2f}"
        where = page.text.index(name)
        assert page.text[where + 3] == value
        assert (page.text[where + 4] == "-") == (model["category"]["k"] == "a1")
        assert all(f"{name} {model['metric']}: {note}" in text for note in model["notes"])
