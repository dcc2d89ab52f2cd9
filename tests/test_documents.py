"""Every page can be read and followed: its lines, links, commands and paths."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from pathlib import Path

import pytest

from orchestrator import registry
from orchestrator.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
LONGEST = 100
# Not these words, but: expensive, no controller is running, accounting, predict, keeps failing, fix,
# withdrawn, again, revoked, job, remainder owner, report.
UNWANTED = re.compile(
    r"\b(too dear|dearer|at work|the books|its books|foretell|foretold|foretells|in vain|mend|mended"
    r"|taken back|anew|barred|crew|heir|tells? of)\b",
    re.IGNORECASE,
)
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")
# Values of JSON fields keep their words.
FIELDS = ('"at work"', "(`anew`)")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(page: Path) -> list[str]:
    """The lines outside code blocks; as many as the page has, so that numbers stay right."""
    text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text())
    return text.splitlines()


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_lines_fit_a_terminal(page: Path) -> None:
    """Rows of tables cannot be broken, nor can pictures."""
    long = {
        f"{name(page)}:{number}: {len(line)}"
        for number, line in enumerate(prose(page), 1)
        if len(line) > LONGEST and not line.startswith(("|", "!["))
    }
    assert not long


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text()):
        if target.startswith("http"):
            continue
        there = (page.parent / target) if target else page
        assert there.exists(), f"{name(page)}: {target}"
        assert not anchor or anchor[1:] in anchors(there), f"{name(page)}: {target}{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pages_use_the_words_of_the_field(page: Path) -> None:
    wrong = []
    for number, line in enumerate(prose(page), 1):
        for allowed in FIELDS:
            line = line.replace(allowed, "")
        wrong += [f"{name(page)}:{number}: {word}" for word in UNWANTED.findall(line)]
    assert not wrong


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        links = (target for target, _ in LINK.findall(page.read_text()) if target and ":" not in target)
        waiting += [page.parent / target for target in links]
    assert {path.resolve() for path in PAGES} - reached <= {ROOT / "CHANGELOG.md"}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_in_examples_exist(page: Path) -> None:
    blocks = "\n".join(FENCE.findall(page.read_text()))
    for command in re.findall(r"^\$ (?:\S*/)?orchestrator (\w+)", blocks, re.MULTILINE):
        assert command in COMMANDS, f"{name(page)}: orchestrator {command}"
    for script in re.findall(r"\bpython (benchmarks/\S+\.py)", page.read_text()):
        assert (ROOT / script).is_file(), f"{name(page)}: {script}"
    for module in re.findall(r"\bpython -m (tests\.[\w.]+)", page.read_text()):
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), f"{name(page)}: {module}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_are_named_are_there(page: Path) -> None:
    """A path in backticks from the top, such as `orchestrator/journal/state.py` or `tests/models`."""
    top = r"orchestrator|adapters|tests|benchmarks|docs|templates|campaigns"
    named = re.findall(rf"`((?:{top})/[\w./-]*)`", page.read_text())
    named = [path for path in named if "NAME" not in path]
    missing = {path for path in named if not (ROOT / path).exists()}
    assert not missing


def test_every_marker_is_explained() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    registered = {marker.partition(":")[0] for marker in options["markers"]}
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    assert registered == set(re.findall(r"^\| `(\w+)` \| (?=take|need)", contributing, re.MULTILINE))


def test_the_hooks_are_the_checks_of_ci() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    checks = (ROOT / ".ci" / "run").read_text()
    for tool in ("ruff check", "ruff format", "mypy"):
        assert f"python -m {tool}" in hooks
        assert f".venv/bin/{tool}" in checks


def test_every_stop_rule_is_explained() -> None:
    texts = [
        (ROOT / "orchestrator" / path).read_text() for path in ("policy/stop_rules.py", "control/loop.py")
    ]
    rules = {rule for text in texts for rule in re.findall(r'(?:StopRuleReached|Nothing)\(\s*"(\w+)"', text)}
    page = (ROOT / "docs" / "stopping.md").read_text()
    assert rules == set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


@pytest.mark.parametrize(
    ("kind", "pages"), [("model", ("families.md", "priors.md")), ("strategy", ("strategies.md",))]
)
def test_every_option_of_models_and_strategies_is_explained(kind: str, pages: tuple[str, ...]) -> None:
    inner = {"neighbours"}  # what earlier campaigns know: not for users
    options = {
        option
        for plugin in registry.names(kind)
        for option in inspect.signature(registry.load(kind, plugin)).parameters
    }
    text = "\n".join((ROOT / "docs" / page).read_text() for page in pages)
    assert options - inner <= set(re.findall(r"`(\w+)(?::[^`]*)?`", text))


def test_the_notes_of_extra_p_are_explained() -> None:
    source = (ROOT / "orchestrator" / "models" / "extrap" / "modeler.py").read_text()
    page = (ROOT / "docs" / "families.md").read_text()
    for part in (
        "Extra-P asks for ",
        "its logarithm is not tried",
        "is not positive",
        "the coefficients alone",
    ):
        assert part in source and part in page


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_definitions_that_are_named_are_there(page: Path) -> None:
    """`file.py::name` and `file.py::Class.method`, as in the way of one measurement."""
    for path, names in re.findall(r"`([\w./-]+\.py)::([\w.]+)`", page.read_text()):
        body = ast.parse((ROOT / path).read_text()).body
        for part in names.split("."):
            found = [item for item in body if getattr(item, "name", None) == part]
            assert found, f"{name(page)}: {path}::{names}"
            body = getattr(found[0], "body", [])


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_first_installation_is_from_a_checkout(page: Path) -> None:
    """The package is on no index. Behind an installation, `pip` finds the extras of what is installed."""
    assert not re.search(r"^\$ .*pip install '?measurement-orchestrator", page.read_text(), re.MULTILINE)


def test_definitions_that_docstrings_name_are_there() -> None:
    """`orchestrator.policy.decide`, `decide.next_actions`: a module with the word that follows it."""
    sources = sorted((ROOT / "orchestrator").rglob("*.py"))
    words: dict[str, set[str]] = {}
    for path in sources:
        module = path.parent.name if path.stem == "__init__" else path.stem
        words.setdefault(module, set()).update(re.findall(r"\w+", path.read_text()))
        words.setdefault(path.parent.name, set()).add(path.stem)
    wrong = []
    for path in sources:
        for named in re.findall(r"(?<!`)`([a-z_]+(?:\.[A-Za-z_]+)+)`(?!`)", path.read_text()):
            modules = [part for part in named.split(".") if part in words]
            last = named.rpartition(".")[2]
            if not modules or (last not in words and last not in words[modules[-1]]):
                wrong.append(f"{path.relative_to(ROOT)}: {named}")
    assert not wrong
