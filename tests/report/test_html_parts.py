"""Pages of tables and figures."""

from __future__ import annotations

from matplotlib.figure import Figure

from orchestrator.report import html_parts


def test_narrow_windows_move_tables_and_figures_by_themselves() -> None:
    """Else the whole page would move, or letters in figures be too small to read."""
    parts = [html_parts.table(["p"], [[1]]), html_parts.image(Figure(), "noise")]
    assert all(part.startswith('<div class="wide"><') and part.endswith("</div>") for part in parts)
    style = html_parts.document("title", parts).partition("<style>")[2]
    assert ".wide { overflow-x: auto }" in style and "max-width: 40em" in style
