"""The benchmark on tuning spaces, with samples of its own in the places of the measured ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
MARKS = "<!-- tuning spaces -->\noutdated\n<!-- end of tuning spaces -->\n"
OPTIONS = ("--sets", "gemm", "--sizes", "20,500", "--modeler", "pmnf:members=20", "--workers", "1")


def write_gemm(folder: Path) -> None:
    """Write t = 1e-9 m n k with 2 % noise as the measured files are: the header lacks the row number."""
    rng = np.random.default_rng(0)
    (folder / "stampede2" / "gemm").mkdir(parents=True)
    for name, count in (("1-thread.csv", 60), ("1-thread_test.csv", 20)):
        lines = ["m,n,k,avg,std"]
        for row in range(count):
            m, n, k = (int(value) for value in rng.integers(32, 4096, 3))
            lines.append(f"{7 * row},{m},{n},{k},{1e-9 * m * n * k * np.exp(0.02 * rng.normal()):.6g},0.02")
        (folder / "stampede2" / "gemm" / name).write_text("\n".join(lines) + "\n")


def benchmark(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "benchmarks" / "tuning_spaces.py", *OPTIONS, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_tables_are_written_and_rows_are_continued(tmp_path: Path) -> None:
    write_gemm(tmp_path)
    page, out = tmp_path / "page.md", tmp_path / "rows.json"
    page.write_text(f"before\n{MARKS}after\n")
    first = benchmark("--data", tmp_path, "--seeds", "1", "--json", out, "--write", page)
    assert first.returncode == 0, first.stderr
    rows = json.loads(out.read_text())["rows"]
    *sizes, (last, few) = [(row["set"], row["size"]) for row in rows]
    # 500 are more than there are: all are fitted. The extrapolation has even fewer.
    assert sizes == [("gemm", 20), ("gemm", 60), ("gemm, m", 20)]
    assert last == "gemm, m" and 20 < few < 60
    assert all(row["failure"] is None and row["mlogq"] < 0.1 for row in rows)
    text = page.read_text()
    assert text.startswith("before\n<!-- tuning spaces -->\n\nMLogQ, means over 1 draw of the points")
    assert "outdated" not in text and text.endswith("<!-- end of tuning spaces -->\nafter\n")
    assert f"| gemm | 60 | {rows[1]['mlogq']:.3f} |" in text

    # What is there is kept as it is, and only the second seed is computed.
    changed = [{**row, "bytes": 77_000_000} for row in rows]
    out.write_text(json.dumps({"rows": changed}))
    second = benchmark("--data", tmp_path, "--seeds", "2", "--json", out)
    assert second.returncode == 0, second.stderr
    again = json.loads(out.read_text())["rows"]
    assert len(again) == 8 and sum(row["bytes"] == 77_000_000 for row in again) == 4
    assert {row["seed"] for row in again} == {0, 1} and "means over 2 draws" in second.stdout

    # Rows that were computed before with fewer draws are told apart.
    out.write_text(json.dumps({"rows": [row for row in again if row["seed"] == 0 or row["set"] == "gemm"]}))
    mixed = benchmark("--data", tmp_path, "--seeds", "2", "--json", out, "--limit", "0")
    assert "means over 1 to 2 draws" in mixed.stdout


def test_a_page_without_a_place_is_refused_before_anything_is_fitted(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("no block")
    done = benchmark("--data", tmp_path, "--write", page)
    assert done.returncode != 0 and "has 0 blocks <!-- tuning spaces -->" in done.stderr
