"""The examples of docs/python.md run as they are written."""

import re
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
import pytest

import orchestrator

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert "p**0.5 * n" in names["models"]["main"].expression
    assert isinstance(names["suggested"], pd.DataFrame)
    assert len(names["suggested"])
    assert len(names["campaign"].measurements)
    assert names["campaign"].status.state == "stopped"
    assert "no column 'm'" in capsys.readouterr().out


def test_the_page_names_everything_that_is_public() -> None:
    text = PAGE.read_text()
    classes = {"Campaign", "FittedModel", "Models", "Status", "__version__"}
    for name in set(orchestrator.__all__) - classes:
        assert f"mo.{name}" in text or f"`{name}`" in text, name
