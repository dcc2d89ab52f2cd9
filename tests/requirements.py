"""What a test needs from the machine: skip without it, or fail where nothing may be skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def need(available: bool | str | None, what: str) -> None:
    """Skip the test unless ``available``; with ``REQUIRE_ALL=1`` fail it instead."""
    if available:
        return
    if os.environ.get("REQUIRE_ALL") == "1":
        pytest.fail(f"{what} is required here (REQUIRE_ALL=1) but missing")
    pytest.skip(f"{what} is missing")


def measurement_data() -> Path:
    """Return the folder of shared measurements, or skip."""
    folder = os.environ.get("MEASUREMENT_DATA")
    need(folder and Path(folder).is_dir(), "the folder named by MEASUREMENT_DATA")
    return Path(str(folder))
