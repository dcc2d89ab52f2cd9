"""What the tests of the effort counters share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the runtime is built, once per compiler."""
    return tmp_path_factory.mktemp("effort-cache")
