from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator import registry
from orchestrator.readers.load import load
from orchestrator.report.export import FORMATS

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
EXAMPLES = [
    (kind, content)
    for kind, content in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    if kind != "sh"
]


def test_there_is_an_example_of_every_text_format() -> None:
    assert [kind for kind, _ in EXAMPLES] == ["text", "json", "jsonl", "csv", "csv"]


@pytest.mark.parametrize(("kind", "content"), EXAMPLES)
def test_every_example_is_loaded(tmp_path: Path, kind: str, content: str) -> None:
    path = tmp_path / f"example.{kind}"
    path.write_text(content)
    got = load([path])
    assert got.items[0].callpath == "main->solve"
    assert len(got.parameters) == 2
    assert 1.61 in [value for values in got.items[0].values.values() for value in values]


def test_every_reader_and_export_is_described() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|", PAGE, re.MULTILINE)
    assert {*registry.names("reader"), *FORMATS} <= set(rows)
