"""What the reference pages take for granted: campaigns and files under the names that the pages use.

And which commands of all pages are not run, with the reason. The campaigns are rehearsals of a moment.
"""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.cli.documented import ROOT
from tests.cli.running import run

CLUSTER = "needs a cluster, or a program that is not installed everywhere"
LONG = "measures or fits for longer than a test may"
FOREVER = "ends with Ctrl-C only; run by test_serve.py and test_watch.py"
MPI = "needs an MPI compiler; run by test_generate.py where there is one"
MACHINE = "says what this machine has; run by test_doctor_machine.py"
REAL = "measures this machine, so that its rounds are other ones each time; run by test_run_local.py"
CLOCK = "has a rehearsal that ends by the clock; run by test_plan.py"
DATA = "needs measurements of a real program"
ELSEWHERE = (
    "run by a test of its own: test_reread.py, test_extending.py, test_compare.py, test_prune.py, "
    "test_discard.py, test_output_set.py"
)

NOT_RUN: Mapping[str, Mapping[str, str]] = {
    "README.md": {
        "orchestrator doctor": CLUSTER,
        "orchestrator plan": CLUSTER,
        "orchestrator run": CLUSTER,
        "orchestrator serve": FOREVER,
    },
    "applications.md": {
        "orchestrator plan heat": LONG,
        "orchestrator reread": ELSEWHERE,
        "orchestrator model logs": ELSEWHERE,
        "orchestrator suggest logs": ELSEWHERE,
    },
    "campaigns.md": {
        "orchestrator plan lulesh": CLUSTER,
        "orchestrator run lulesh": CLUSTER,
        "orchestrator run kripke": CLUSTER,
        "orchestrator simulate kripke": DATA,
    },
    "commands.md": {
        "orchestrator init exafmm": CLUSTER,
        "orchestrator init --command": CLUSTER,
        "orchestrator run generic": REAL,
        "orchestrator plan generic": CLOCK,
        "orchestrator status minife": LONG,
        "orchestrator model profiles/": DATA,
        "orchestrator evaluate": LONG,
        "orchestrator doctor": MACHINE,
        "orchestrator generate programs": MPI,
        "orchestrator prune": ELSEWHERE,
        "orchestrator discard": ELSEWHERE,
        "orchestrator runs lulesh-weak --state discarded": ELSEWHERE,
        "orchestrator reread": ELSEWHERE,
        "orchestrator serve": FOREVER,
        "orchestrator explore profiles/": DATA,
    },
    "evaluation.md": {"orchestrator evaluate": LONG},
    "noise.md": {"orchestrator evaluate": LONG, "orchestrator generate": MPI},
    "papers-protocol.md": {"orchestrator evaluate": LONG},
    "extending.md": {"orchestrator": ELSEWHERE},
    "generate.md": {"orchestrator generate": MPI, "orchestrator init mpi-kernel": MPI},
    "priors.md": {"orchestrator model lulesh-effort/": DATA},
    "tutorial.md": {
        "orchestrator init lammps --executor local --executable": REAL,
        "orchestrator run lammps": REAL,
        "orchestrator report lammps": REAL,
    },
    "unattended.md": {"orchestrator discard": ELSEWHERE},
    "watching.md": {"orchestrator watch": FOREVER},
}
"""Page -> how a command begins -> why it is not run."""

OTHER_PROGRAMS = {
    "python": "the tests, benchmarks and reliability runs of this repository",
    "python3": "installs from the network",
    "pip": "installs from the network",
    "export": "a setting of the shell",
    "for": "a loop of the shell over commands that take minutes",
    "awk": "a table of an artifact that is not part of this repository",
    "chmod": "a permission of a file that a page shows",
    "mpiexec": "a program that was built before",
}
"""Programs that stand in the reference pages and are not run, with the reason."""

WEAK = """\
name: {name}
application: generic
parameters: {{{parameters}}}
evaluation_point: {{{point}}}
program: {{ranks: p, arguments: ["{{n}}"], output: [{{callpath: main, pattern: 'time: (\\S+)'}}]}}
measure: {{expected_time: 20 s, time_limit: 10 min}}
strategy: {{name: full}}
stop: {{budget: 50 core-hours}}
executor: {{name: simulated, noise: 3, failure_rate: 0.1, truth: {{main: "{truth}"}}}}
seed: {seed}
"""
LULESH = {
    "parameters": "p: [8, 27, 64, 125], s: [10, 15, 20, 25, 30]",
    "point": "p: 216, s: 35",
    "truth": "0.3 + 1e-4 * s**3 + 0.02 * p**0.5",
}
OWN = {
    "parameters": "p: [8, 27, 64, 125], n: [50, 75, 100, 125, 150]",
    "point": "p: 4096, n: 200",
    "truth": "0.3 + 1e-6 * n**3 + 0.02 * p**0.5",
}


def _rehearse(directory: str, seed: int, study: Mapping[str, str] = LULESH) -> None:
    """Rehearse a weak scaling study of 20 points in a directory; its campaign file stays beside it."""
    file = Path(f"{directory}.yaml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_campaign(file.stem, seed, study))
    result = run("run", file, "--directory", directory)
    assert result.code == 0, result.err


def _campaign(name: str, seed: int, study: Mapping[str, str]) -> str:
    text = WEAK.format(name=name, seed=seed, **study)
    if study is not LULESH:
        return text
    return re.sub("(program|measure): .*\n", "", text.replace("generic", "lulesh"))


def _table(name: str, columns: Mapping[str, str], values: Mapping[str, tuple[object, ...]]) -> None:
    """Write a CSV table: a row for all combinations of values, with columns that are calculated from them."""
    lines = [",".join([*values, *columns])]
    for row in itertools.product(*values.values()):
        known = dict(zip(values, row, strict=True))
        known |= {column: eval(text, {}, known) for column, text in columns.items()}
        lines.append(",".join(map(str, known.values())))
    Path(name).write_text("\n".join(lines) + "\n")


def _weak() -> None:
    _rehearse("lulesh-weak", 1)


def _readme() -> None:
    _weak()
    _rehearse("lulesh-next", 2)


def _applications() -> None:
    Path("heat").write_text('#!/bin/sh\necho "time: $2.$4 s"\n')
    Path("heat").chmod(0o755)


def _commands() -> None:
    _weak()
    assert run("simulate", "generic", "--directory", "generic").code == 0
    _table("runs.csv", {"solve": "ranks / threads", "setup": "0.1 * ranks"}, _TUNING)
    assert run("export", "generic", "--format", "csv", "--output", "measured.csv").code == 0
    _lines("measured.txt", "n", "0.5 + 1e-3 * n")
    Path("more.jsonl").write_text('{"params": {"n": 512}, "metric": "time", "value": 0.61}\n')


_TUNING: Mapping[str, tuple[object, ...]] = {
    "ranks": (1, 2, 4, 8),
    "threads": (1, 2),
    "solver": ("cg", "gmres"),
}


def _lines(name: str, parameter: str, truth: str) -> None:
    """Write a file of Extra-P's text format, or of its JSON Lines."""
    known = {value: eval(truth, {}, {parameter: value}) for value in (16, 32, 64, 128, 256)}
    if name.endswith(".txt"):
        values = [f"DATA {value} {value * 1.01}" for value in known.values()]
        points = " ".join(f"({value})" for value in known)
        head = [f"PARAMETER {parameter}", f"POINTS {points}", "REGION main", "METRIC time"]
        lines = [*head, *values]
    else:
        lines = [
            f'{{"params": {{"{parameter}": {p}}}, "metric": "time", "value": {v}}}' for p, v in known.items()
        ]
    Path(name).write_text("\n".join(lines) + "\n")


def _comparing() -> None:
    for name, seed in (("results/v1", 1), ("results/v2", 2)):
        _rehearse(name, seed, OWN)
    for name, directory in (("before.jsonl", "results/v1"), ("after.jsonl", "results/v2")):
        assert run("export", directory, "--format", "extrap-jsonl", "--output", name).code == 0
    two = "compare: {with: ./other}\nexecutable: ./app\n"
    Path("scaling.yaml").write_text(_campaign("scaling", 3, OWN) + two)
    for name in ("app", "other"):
        Path(name).touch(0o755)
    columns = {"time": "0.1 + 1e-3 * n * p ** -0.5 + (0.01 if solver == 'cg' else 0.02)"}
    _table("kripke.csv", columns, {"p": (4, 8, 16, 32), "n": (50, 100, 200), "solver": ("cg", "gmres")})


def _models() -> None:
    columns = {"solve": "1 / (ppn * nthreads)", "sweep": "0.1 * ngroups"}
    values = {"ppn": (1, 2, 4), "nthreads": (1, 2), "ngroups": (16, 32), "solver": (1, 2)}
    _table("kripke.csv", columns, values)


def _priors() -> None:
    _lines("old.jsonl", "p", "0.3 + 0.02 * p**0.5")
    _lines("new.jsonl", "p", "0.2 + 0.03 * p**0.5")


def _report() -> None:
    _weak()
    _table("runs.csv", {"time": "0.1 + 1e-3 * n / p ** 0.5"}, {"p": (4, 8, 16, 32), "n": (50, 100, 200)})


def _unattended() -> None:
    _rehearse("DIR", 1)
    shutil.copytree("DIR", "old/lulesh-weak")
    shutil.copy("DIR.yaml", "kripke.yaml")


TAKEN_FOR_GRANTED: Mapping[str, Callable[[], None]] = {
    "README.md": _readme,
    "applications.md": _applications,
    "commands.md": _commands,
    "comparing.md": _comparing,
    "models.md": _models,
    "priors.md": _priors,
    "report.md": _report,
    "unattended.md": _unattended,
}
"""Page -> what writes all that the page needs into the current directory."""


def reason(page: Path, command: str) -> str | None:
    """Return why a command of a page is not run; None if it is."""
    known = NOT_RUN.get(page.name, {})
    return next((why for start, why in known.items() if f"{command}\n".startswith(start)), None)


REFERENCE = tuple(
    page
    for page in (
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "docs" / "evaluation").glob("*.md")),
    )
    if page.name != "tutorial.md" and "```console" in page.read_text()
)
"""The pages with commands that are neither the tutorial nor a guide."""
