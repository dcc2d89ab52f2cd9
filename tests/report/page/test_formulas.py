"""Formulas in LaTeX, MathML, Python and C: the same values, and nothing but formulas."""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from orchestrator.report.page.formulas import Formula

TEXT = "0.3 + 2.1e-4 * p**0.5 * log2(p)**2 * n - (1 + n)**(4/3) * p**(-1)"


def formula(text: str) -> Formula:
    found = Formula.of(text, ("p", "n", "cells_per_rank"))
    assert found is not None, text
    return found


def test_a_formula_is_typeset() -> None:
    assert formula(TEXT).latex == (
        r"0.3 + 2.1 \times 10^{-4} \cdot p^{0.5} \, \log_2^{2}{p} \, n - \left(1 + n\right)^{4/3} \, p^{-1}"
    )
    assert formula("2 * cells_per_rank").latex == r"2 \cdot \mathrm{cells\_per\_rank}"
    assert formula("log2(p) / (p + 1)").latex == r"\frac{\log_2{p}}{p + 1}"


def test_mathml_is_well_formed() -> None:
    root = ElementTree.fromstring(formula(TEXT).mathml)
    assert root.tag == "math"
    assert "".join(root.itertext()).replace("\u2061", "") == "0.3+2.1×10−4·p0.5·log22p·n−(1+n)4/3·p−1"


def test_python_gives_the_same_value() -> None:
    expected = eval(TEXT, {"log2": math.log2, "p": 8.0, "n": 3.0})
    assert eval(formula(TEXT).python, {"math": math, "p": 8.0, "n": 3.0}) == pytest.approx(
        expected, rel=1e-12
    )


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_c_gives_the_same_value(tmp_path: Path) -> None:
    texts = [TEXT, "p - (n - 1)", "p / (n * 2)", "-(p + n) * 3", "exp(log(p) * 2) - sqrt(n)"]
    lines = "\n".join(f'printf("%.12g\\n", {formula(text).c});' for text in texts)
    body = f"int main(void) {{ double p = 8, n = 3;\n{lines}\nreturn 0; }}\n"
    (tmp_path / "f.c").write_text(f"#include <math.h>\n#include <stdio.h>\n{body}")
    subprocess.run(["cc", "-o", tmp_path / "f", tmp_path / "f.c", "-lm"], check=True)
    out = subprocess.run([tmp_path / "f"], check=True, capture_output=True, text=True).stdout
    names = {"log2": math.log2, "log": math.log, "exp": math.exp, "sqrt": math.sqrt, "p": 8.0, "n": 3.0}
    assert [float(line) for line in out.split()] == pytest.approx([eval(text, names) for text in texts])


@pytest.mark.parametrize(
    "text",
    [
        "forest of 200 trees",
        "p < 128: 0.01 * n, else 0.017 * n",
        "__import__('os').system('true')",
        "q + 1",
        "p.real",
        "log2(p, n)",
        "[p for p in n]",
        "'text'",
        "True",
        "",
    ],
)
def test_anything_else_is_no_formula(text: str) -> None:
    assert Formula.of(text, ("p", "n")) is None
