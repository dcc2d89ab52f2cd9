"""A program that shows its arguments and environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.launch.scripts import SHOW


@pytest.fixture
def show(tmp_path: Path) -> str:
    path = tmp_path / "sh ow's"
    path.write_text(SHOW)
    path.chmod(0o755)
    return str(path)
