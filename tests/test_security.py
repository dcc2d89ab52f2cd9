"""Nothing of a campaign file, a parameter or a file name is executed that is not meant as shell text."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from orchestrator import campaign, expressions, session, templates
from orchestrator.errors import CampaignError, ExpressionError
from orchestrator.executors.slurm_submit import JobOptions
from orchestrator.executors.slurm_submit import script as batch_script
from orchestrator.state import RunStatus
from orchestrator.types import Application, Resources

# Pieces of which every word could do harm in some place: shell, batch script, template, placeholder, path.
PIECES = [
    *("$(touch pwned)", "`touch pwned`", "; touch pwned #", "' ; touch pwned ; '", '" ; touch pwned ; "'),
    *(
        "\ntouch pwned\n",
        "\r\ntouch pwned\r\n",
        "&& touch pwned ",
        "| touch pwned ",
        "> pwned ",
        "$IFS",
        "\\",
    ),
    *(
        "'",
        '"',
        "\\'",
        " ",
        "\t",
        "*",
        "?",
        "~",
        "!",
        "#",
        "{a,b}",
        "[x]",
        "-n",
        "--",
        "%s",
        "=",
        "a",
        "é",
        "🚀",
    ),
    *("{{command}}", "{{", "}}", "{n}", "${HOME}", "$0", "\x1b[2J", "\x85", "\u2028", "<<EOF", "EOF"),
]
words = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
nothing_timed = settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nothing may have been executed at the end."""
    yield tmp_path
    found = [path for path in tmp_path.rglob("*") if path.name == "pwned"]
    assert not found, found


# --- launch scripts -------------------------------------------------------------------------------------

SHOW = '#!/bin/sh\nprintf "%s\\0" "$@" > arguments\nprintf "%s\\0" "$VALUE" > value\n'


@nothing_timed
@given(
    name=words,
    arguments=st.lists(words, max_size=3),
    value=words,
    launcher=words,
    modules=st.lists(words, max_size=2),
)
@example(name="a\nb", arguments=["\n"], value="\n", launcher="x'y z", modules=["gcc\ntouch pwned"])
def test_a_launch_script_executes_none_of_its_values(
    name: str, arguments: list[str], value: str, launcher: str, modules: list[str]
) -> None:
    assume("/" not in name)
    application = Application(
        "demo", "", {}, lambda s: 1, lambda s: arguments, lambda texts: [], environment={"VALUE": value}
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        program = folder / f"p{name}"
        program.write_text(SHOW)
        program.chmod(0o755)
        (folder / "env").write_text('#!/bin/sh\nshift\nexec "$@"\n')
        (folder / "env").chmod(0o755)
        text = templates.launch_script(
            application=application,
            executable=str(program),
            settings={},
            resources=Resources(1),
            launcher=f"{folder}/env '{launcher.replace(chr(39), '').replace('{', '(').replace('}', ')')}'",
            template=templates.find_template(None, "slurm").read_text(),
            prologue=["module() { :; }"] if modules else [],
            environment={},
            profiler="stdout",
            epilogue=["touch over"],
        )
        (folder / "run.sh").write_text(text)
        # The modules' lines are looked at by themselves: `module` here would be defined after them.
        loads = "\n".join(["module() { :; }", *templates.load_lines(modules)])
        for script in (text, loads):
            subprocess.run(["bash", "-c", script], cwd=folder, check=True, capture_output=True, timeout=60)
        assert (folder / "arguments").read_bytes() == b"".join(
            word.encode() + b"\0" for word in arguments or [""]
        )
        assert (folder / "value").read_bytes() == value.encode() + b"\0"
        assert not (folder / "pwned").exists() and (folder / "over").exists()


@given(
    st.lists(st.sampled_from(["{{a}}", "{{b}}", "{{ b }}", "{{c}}", "{{", "}}", "{{a.b}}", "{a}", "x", "\n"]))
)
def test_a_template_is_rendered_with_declared_placeholders_or_not_at_all(parts: list[str]) -> None:
    values = {"a": "{{b}}{{c}}", "b": "B"}
    try:
        text = templates.render("".join(parts), values, "t.sh", optional=("a", "b"))
    except CampaignError as error:
        assert str(error).startswith("t.sh:")
        return
    expected = {"{{a}}": values["a"], "{{b}}": "B", "{{ b }}": "B"}
    assert text == "".join(expected.get(part, part) for part in parts)


# --- batch scripts --------------------------------------------------------------------------------------


def executed(options: JobOptions) -> list[str]:
    """Return the lines of a batch script that a shell would execute."""
    text = batch_script("n", Resources(1), (60.0,), options, Path("/x"), 1, Path("/opt"), "/bin/python3")
    return [line for line in text.split("\n") if not line.startswith("#")]


PLAIN = executed(JobOptions())
KEYS = st.sampled_from(["partition", "account", "qos", "constraint", "reservation"])


@given(KEYS, words)
def test_no_option_of_a_job_is_executed(key: str, text: str) -> None:
    try:
        chosen: dict[str, Any] = {key: text}
        options = [JobOptions(**chosen), JobOptions(sbatch={"comment": text})]
        size: dict[str, Any] = {"partition": "a", "qos": None, "constraint": None, "up_to": None}
        if key in size:
            options.append(JobOptions(by_size=[{**size, key: text}]))
    except CampaignError as error:
        assert "line break" in str(error)
        assert not text.isprintable()
        return
    assert text.isprintable()
    for item in options:
        assert executed(item.fitting(Resources(1))) == PLAIN


@pytest.mark.parametrize(
    "executor",
    [
        *({key: "a\ntouch pwned"} for key in ("partition", "account", "qos", "constraint", "reservation")),
        {"sbatch": {"comment": "a\ntouch pwned"}},
        {"by_size": [{"partition": "a\ntouch pwned"}]},
        {"modules": ["gcc\ntouch pwned"]},
        {"mpi": "pmix; touch pwned"},
    ],
)
def test_line_breaks_in_options_of_jobs_are_refused_with_their_line(executor: dict[str, Any]) -> None:
    document = {
        "name": "demo",
        "application": "generic",
        "executable": "/bin/true",
        "program": {"arguments": ["{p}"]},
        "measure": {"profiler": "time"},
        "parameters": {"p": [1, 2]},
        "stop": {"budget": 1000},
        "executor": {"name": "slurm", **executor},
    }
    with pytest.raises(CampaignError, match=rf"f.yaml:\d+: executor.{next(iter(executor))}"):
        campaign.loads(yaml.safe_dump(document), "f.yaml")


# --- a whole campaign -----------------------------------------------------------------------------------

PROGRAM = '#!/bin/sh\n[ -s "in put" ] || exit 9\nprintf "%s\\n" "$@" > seen\necho "time: 1.5 s"\n'


@settings(nothing_timed, max_examples=5)
@given(words, words, words)
@example("$(touch pwned)'\"\n", "`touch pwned`\n'\"", "; touch pwned\n'\"")
def test_a_campaign_of_nasty_words_measures_and_executes_none_of_them(
    name: str, value: str, text: str
) -> None:
    assume("/" not in name and value)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, f"a{name}")
        folder.mkdir()
        program = folder / f"pro gram{name}"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        literal = {"{": "{{", "}": "}}"}
        document = {
            "name": "demo",
            "application": "generic",
            "executable": str(program).replace("${", "$${"),
            "settings": {"setting": text.replace("${", "$${")},
            "program": {
                "arguments": [
                    "{v}",
                    "{setting}",
                    "".join(literal.get(c, c) for c in text).replace("${", "$${"),
                ],
                "environment": {"VALUE": text.replace("${", "$${")},
                "files": {"in put": "{v} "},
                "output": [{"callpath": "main", "pattern": r"time: (\S+) s"}],
            },
            "parameters": {"v": {"values": [value.replace("${", "$${"), "plain"], "type": "categorical"}},
            "measure": {"time_limit": 60, "repetitions": {"initial": 1, "maximum": 1}},
            "strategy": "full",
            "stop": {"budget": 10},
            "executor": {
                "name": "local",
                "slots": 1,
                "launcher": "none",
                "environment": {"OTHER": value.replace("${", "$${")},
            },
        }
        assume(value != "plain")
        chosen = campaign.loads(json.dumps(document), "f.yaml", folder)
        state = session.run(chosen, folder / f"cam paign{name}", session.Hooks())
        assert {item.status for item in state.runs.values()} == {RunStatus.MEASURED}, state.runs
        seen = {path.read_bytes().decode() for path in folder.rglob("seen")}
        assert f"{value}\n{text}\n{text}\n" in seen
        assert not list(Path(scratch).rglob("pwned"))
        assert campaign.loads(campaign.dump(chosen)) == chosen


def test_a_campaign_file_makes_no_python_objects(tmp_path: Path) -> None:
    text = f"name: !!python/object/apply:os.system ['touch {tmp_path}/pwned']\n"
    with pytest.raises(CampaignError, match=r"f\.yaml:1"):
        campaign.loads(text, "f.yaml")
    assert not list(tmp_path.iterdir())


def test_text_that_no_journal_can_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = '{"name": "a", "settings": {"x": "\\ud83d\\ude80"}}'
    bad = good.replace("\\ude80", "")
    for text, wrong in ((good, False), (bad, True)):
        with pytest.raises(CampaignError) as error:
            campaign.loads(text, "f.yaml")
        assert ("settings.x: " in str(error.value)) is wrong
    monkeypatch.setenv("BYTES", os.fsdecode(b"a\xff"))
    with pytest.raises(CampaignError, match=r"settings\.x: 'a\\udcff' is not valid Unicode"):
        campaign.loads("settings: {x: '${BYTES}'}", "f.yaml")
    with pytest.raises(CampaignError, match=r"f\.yaml:2: executor.environment.A: 'a\\x00' has a NUL"):
        campaign.loads('executor:\n  environment: {A: "a\\0"}', "f.yaml")
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    (folder / "program").touch(0o755)
    with pytest.raises(CampaignError, match=r"executable: .* is not valid UTF-8; rename"):
        campaign.loads("executable: ./program", "f.yaml", folder)


@pytest.mark.parametrize("name", ["run.sh", "attempt.json", "claim", "request.json", "environment.recorded"])
def test_an_input_file_cannot_take_the_place_of_an_attempts_own(name: str) -> None:
    document = {
        "name": "demo",
        "application": "generic",
        "executable": "/bin/true",
        "program": {"files": {name: "touch pwned"}},
        "measure": {"profiler": "time"},
        "parameters": {"p": [1, 2]},
        "stop": {"budget": 10},
    }
    with pytest.raises(CampaignError, match=f"program.files.{name}: is a file of the attempt's own"):
        campaign.loads(yaml.safe_dump(document), "f.yaml")


def test_last_words_of_a_program_command_no_terminal(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nprintf '\\033]0;owned\\007\\033[2J gone\\n' >&2\nexit 3\n")
    program.chmod(0o755)
    text = LOCAL.replace("/bin/true", str(program))
    state = session.run(campaign.loads(text), tmp_path / "campaign", session.Hooks())
    reasons = {item.reason for item in state.runs.values() if item.reason}
    assert any("?]0;owned??[2J gone" in reason for reason in reasons)
    assert all(reason.isprintable() for reason in reasons)


# --- expressions ----------------------------------------------------------------------------------------

ATOMS = [
    *(
        "p",
        "n",
        "1",
        "2.5",
        "'text'",
        "__import__('os')",
        "().__class__",
        "p.real",
        "p[0]",
        "lambda: 0",
        "[p]",
    ),
    *(
        "{p}",
        "f'{p}'",
        "(p := 1)",
        "open('pwned')",
        "eval('1')",
        "exec",
        "globals()",
        "abs",
        "max(p, n)",
        "abs(p)",
    ),
    *(
        "[x for x in (1,)]",
        "*p",
        "yield",
        "await p",
        "print(p)",
        "min.__self__",
        "'%s' % p",
        "...",
        "True",
        "None",
    ),
]
OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "<",
    "==",
    "and",
    "or",
    "if p else",
    "in",
    ",",
    ".",
    "@",
    "(",
    ")",
]
formulas = st.lists(
    st.one_of(st.sampled_from(ATOMS), st.sampled_from(OPERATORS)), min_size=1, max_size=7
).map(" ".join)


def names_in(code: CodeType) -> set[str]:
    inner = [names_in(item) for item in code.co_consts if isinstance(item, CodeType)]
    return set(code.co_names).union(*inner)


@settings(max_examples=1000)
@given(formulas)
def test_an_expression_reaches_nothing_of_python(text: str) -> None:
    try:
        parsed = expressions.parse(text, ("p", "n"))
    except ExpressionError:
        return
    code = parsed._function.__code__
    # Every other way to an attribute, an item or a builtin would need its name here.
    assert names_in(code) <= {*expressions.FUNCTIONS, "**"}, text
    assert parsed.names <= {"p", "n"}
    try:
        result = parsed({"p": 3, "n": 4.5})
    except ExpressionError:
        return
    assert type(result) in (bool, int, float, str)


# --- files ----------------------------------------------------------------------------------------------

LOCAL = """
name: tiny
application: generic
executable: /bin/true
program: {arguments: ["{n}"]}
parameters: {n: [1, 2]}
measure: {profiler: time, time_limit: 60 s, repetitions: {initial: 1, maximum: 1}}
strategy: full
stop: {budget: 10 core-hours}
executor: {name: local, slots: 1, launcher: none}
"""


@pytest.mark.parametrize("umask", [0o000, 0o002])
def test_nobody_else_can_write_into_a_campaign_whatever_the_umask(folder: Path, umask: int) -> None:
    directory = folder / "campaign"
    before = os.umask(umask)
    try:
        session.run(campaign.loads(LOCAL), directory, session.Hooks())
        assert os.umask(umask) == umask, "which is given back"
    finally:
        os.umask(before)
    paths = [directory, *directory.rglob("*")]
    assert len(paths) > 10
    assert [path for path in paths if path.stat().st_mode & stat.S_IWOTH] == []


def test_a_directory_that_everybody_can_write_to_is_refused(folder: Path) -> None:
    directory = folder / "campaign"
    directory.mkdir()
    directory.chmod(0o777)
    with pytest.raises(CampaignError, match="chmod o-w it"):
        session.run(campaign.loads(LOCAL), directory, session.Hooks())
    assert list(directory.iterdir()) == []
    directory.chmod(0o755)
    session.run(campaign.loads(LOCAL), directory, session.Hooks())
    directory.chmod(0o757)
    with pytest.raises(CampaignError, match="everybody can write"):
        session.run(campaign.loads(LOCAL), directory, session.Hooks())
