"""The documentation as a site: its links and anchors lead somewhere, and it loads nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import orchestrator

ROOT = Path(__file__).parents[1]
pytest.importorskip("mkdocs")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; warnings, of links and anchors say, are errors."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    variables = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    pages |= {
        Path(name) for name in ("index.html", "CONTRIBUTING.html", "CHANGELOG.html", "reference/keys.html")
    }
    assert not {page for page in pages if not (site / page).is_file()}


def test_every_page_is_in_the_navigation(site: Path) -> None:
    home = (site / "index.html").read_text()
    pages = {str(path.relative_to(site)) for path in site.rglob("*.html")} - {"404.html", "LICENSE.html"}
    assert not {page for page in pages if f'href="{page}"' not in home and page != "index.html"}


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|img|iframe)[^>]*\ssrc=\"?(https?:[^\s\">]+)", page.read_text())
        loaded += re.findall(
            r"<link[^>]*rel=\"?(?:stylesheet|preconnect)[^>]*href=\"?(https?:[^\s\">]+)", page.read_text()
        )
        assert not loaded, page.name


def test_the_reference_has_all_keys_and_all_public_names(site: Path) -> None:
    keys = (site / "reference" / "keys.html").read_text()
    for key in ("stop.budget", "executor.name", "measure.repetitions.maximum", "parameters.*.values"):
        assert f"<code>{key}</code>" in keys
    functions = (site / "reference" / "api.html").read_text()
    for name in set(orchestrator.__all__) - {"__version__"}:
        assert re.search(rf'id="orchestrator\.[\w.]*{name}"', functions), name
