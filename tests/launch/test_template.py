"""Launch templates: how they are divided and filled, and that no value becomes shell text."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.errors import CampaignError
from orchestrator.launch.script import data_directory, template_of
from orchestrator.launch.template import Filled, Start, fill, parse
from orchestrator.types import Value
from tests.launch.scripts import SHOW, execute, script, shown
from tests.launch.test_values import NASTY

HEADER = "#!/bin/bash\n# A demo, with the user's own words.\n\n"


def filled(text: str, values: Mapping[str, Value] | None = None, launcher: str = "mpiexec -n 4") -> Filled:
    values = values or {"n": 64, "p": 4, "word": "fast"}
    texts = [name for name, value in values.items() if isinstance(value, str)]
    return fill(parse(text, "demo.sh"), values, Start(executable="/opt/app", launcher=launcher), texts)


def test_a_template_is_divided_at_the_command_that_starts_the_program() -> None:
    template = parse(
        HEADER + "mkdir out\n# then\n\n{{launcher}} {{executable}} \\\n  -n {{n}}\n\ngrep x out\n",
        "demo.sh",
    )
    assert template.header == HEADER.strip()
    assert template.before == "mkdir out\n# then"
    assert template.command == "{{launcher}} {{executable}} \\\n  -n {{n}}"
    assert template.after == "grep x out"
    assert template.lines == (4, 7, 10)
    assert template.names() == {"n"}


def test_names_and_expressions_are_replaced() -> None:
    body = filled(
        "{{launcher}} {{executable}} -n {{n}} -b {{ n // p }} --mode={{word}} {{n if word == 'fast' else 1}}"
    )
    assert body.command == "/opt/app -n 64 -b 16 --mode=fast 64"
    assert body.launched and body.simple


def test_a_launcher_within_the_command_stays_there() -> None:
    body = filled("env A=1 {{launcher}} {{executable}} {{n}}")
    assert body.command == "env A=1 mpiexec -n 4 /opt/app 64" and not body.launched and not body.simple
    own = filled("aprun -n {{p}} {{executable}}")
    assert own.command == "aprun -n 4 /opt/app" and not own.launched


@pytest.mark.parametrize(
    ("rest", "simple"),
    [
        ("-n 1", True),
        ("< input.txt > out 2>&1", True),
        ("| tee log", False),
        ("|| exit 3", False),
        ("; grep x out", False),
        ("&", False),
    ],
)
def test_only_one_command_alone_replaces_the_shell(rest: str, simple: bool) -> None:
    assert filled(f"{{{{launcher}}}} {{{{executable}}}} {rest}").simple is simple


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("./app -n 1", "demo.sh: no command has {{executable}}"),
        ("# {{executable}}", "demo.sh: no command has {{executable}}"),
        (
            "{{executable}} 1\n{{executable}} 2",
            "demo.sh: lines 1 and 2 each have {{executable}}; keep it in the command that starts",
        ),
        (
            "\n\ntrue\n{{executable}} {{size}}",
            "demo.sh:4: unknown placeholder {{size}}; did you mean 'sizes'?",
        ),
        ("{{executable}} \\\n {{}}", "demo.sh:2: '{{}}' belongs to no placeholder"),
        ("{{executable}} {{n", "demo.sh:1: '{{' belongs to no placeholder"),
        ("x={{n +}}\n{{executable}}", "demo.sh:1: {{n +}}: expression 'n +'"),
        ("{{executable}} {{__import__('os')}}", "demo.sh:1: {{__import__('os')}}: expression"),
    ],
)
def test_a_bad_template_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(CampaignError) as error:
        filled(text, {"n": 1, "sizes": 2})
    assert message in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        'export X="{{word}}"\n{{executable}}',
        "export X={{word}}\n{{executable}}",
        "cat > in << END\n{{word}}\nEND\n{{executable}}",
        "{{executable}}\necho {{word}}",
        '{{executable}} "{{word}}"',
        "{{executable}} '{{word}}'",
        '{{executable}} "$(echo "{{word}}")"',
        "{{executable}} `echo {{word}}`",
        "{{executable}} $'a\\'{{word}}'",
        "{{executable}} << END {{word}}",
        "{{executable}} >& {{word}}",
        "{{executable}} >&1{{word}}",
        "{{executable}} >\\\n&{{word}}",
        "{{executable}} <\\\n< END {{word}}",
        "{{executable}} >&'a'{{word}}",
    ],
)
def test_where_it_cannot_be_quoted_a_value_must_be_plain(text: str) -> None:
    for harmless in ("fast", "a/b-c.d_e", "1,2,3", "1.5e-3", "x=1"):
        assert harmless in "".join(
            (
                filled(text, {"word": harmless}).before,
                filled(text, {"word": harmless}).command,
                filled(text, {"word": harmless}).after,
            )
        )
    for word in (
        "$(touch pwned)",
        "`touch pwned`",
        "a b",
        "a\nEND\ntouch pwned",
        "'",
        '"',
        "*",
        "~",
        "a;b",
        "ü",
    ):
        with pytest.raises(CampaignError, match="the shell could interpret here"):
            filled(text, {"word": word})


def test_values_arrive_as_they_are(tmp_path: Path, show: str) -> None:
    names = [f"v{index}" for index in range(len(NASTY))]
    words = " ".join(f"{{{{{name}}}}}" for name in names)
    text = script(
        executable=show,
        settings=dict(zip(names, NASTY, strict=True)),
        template=parse(f"{HEADER}{{{{launcher}}}} {{{{executable}}}} {words}", "demo.sh"),
        launcher="none",
    )
    assert shown(text, tmp_path)["arguments"] == NASTY
    assert not list(tmp_path.rglob("pwned"))


_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
_AROUND = st.text(st.sampled_from("ab '\"\\$`(){}|&;<>#\t"), max_size=6)


@settings(max_examples=60, deadline=None)
@given(value=_TEXT, before=_AROUND, after=_AROUND)
@example(value="", before=">&", after="")  # bash expands such a word twice
@example(value="", before="2>&1 ", after="")
def test_a_value_never_runs_as_a_command(
    tmp_path_factory: pytest.TempPathFactory, value: str, before: str, after: str
) -> None:
    """Whatever surrounds a placeholder: refused, not valid shell, or nothing but the text's own commands."""
    directory = tmp_path_factory.mktemp("inert")
    path = directory / "show"
    path.write_text(SHOW)
    path.chmod(0o755)
    touch = f"$(touch pwned){value}`touch pwned`';touch pwned;'\";touch pwned;\""
    try:
        text = script(
            executable=str(path),
            settings={"v": touch},
            template=parse(f"{{{{launcher}}}} {{{{executable}}}} {before}{{{{v}}}}{after}", "demo.sh"),
            launcher="none",
            frame="{{prologue}}{{environment}}\n{{exec}} {{launcher}} {{command}} < /dev/null{{epilogue}}\n",
        )
    except CampaignError:
        return
    execute(text, directory)
    assert not (directory / "pwned").exists()


def test_what_precedes_and_follows_the_command_runs_around_it(tmp_path: Path, show: str) -> None:
    template = parse(
        "echo first > order\n{{launcher}} {{executable}} {{n}} < order\necho last >> order\nfalse", "demo.sh"
    )
    frame = (data_directory("templates") / "frames" / "mpi.sh").read_text()
    program = tmp_path / "copy"
    program.write_text("#!/bin/sh\ncat > seen\nexit 7\n")
    program.chmod(0o755)
    text = script(executable=str(program), settings={"n": 1}, template=template, launcher="none", frame=frame)
    assert execute(text, tmp_path).returncode == 7
    assert (tmp_path / "seen").read_text() == "first\n"
    assert (tmp_path / "order").read_text() == "first\nlast\n"


@pytest.mark.parametrize(
    ("command", "seen"),
    [
        ("{{executable}} -c 'first\n  n={{n}}\n' x", "<-c><first\n  n=64\n><x>"),
        ('{{executable}} "first # not\n\n  last"', "<first # not\n\n  last>"),
        ("{{launcher}} {{executable}} <<EOF\nn = {{n}}\n\nit's \"so\nEOF", "n = 64\n\nit's \"so\n"),
        ("{{executable}} <<-'END x' # it's\n\tn = $n\n\tEND x", "n = $n\n"),
        ("{{executable}} {{n}} |\n  sed s/64/128/", "<128>"),
        ("{{executable}} \\\n  {{n}} <<< 'a\nb'", "<64>a\nb\n"),
        ("true &&\n{{executable}} $((1 << 2)) # don't", "<4>"),
        ("{{executable}} don\\'t", "<don't>"),
    ],
)
@pytest.mark.parametrize("after", ["", "\n\necho last > last\n# don't\nfalse"])
def test_a_command_of_several_lines_stays_whole(tmp_path: Path, command: str, seen: str, after: str) -> None:
    program = tmp_path / "copy"
    program.write_text('#!/bin/bash\n[ $# = 0 ] || printf "<%s>" "$@"\n[ -t 0 ] || cat\nexit 7\n')
    program.chmod(0o755)
    frame = (data_directory("templates") / "frames" / "mpi.sh").read_text()
    text = script(
        executable=str(program),
        settings={"n": 64},
        template=parse(f"{HEADER}{command}{after}\n", "demo.sh"),
        launcher="none",
        frame=frame,
    )
    done = execute(text, tmp_path)
    assert (done.stdout, done.stderr) == (seen, "")
    assert done.returncode == (0 if "|" in command else 7)
    assert (tmp_path / "last").exists() == bool(after)


def test_a_frame_without_a_place_for_what_follows_is_refused() -> None:
    template = parse("{{executable}} {{n}}\ntrue", "demo.sh")
    with pytest.raises(CampaignError, match=r"\{\{e\w+\}\} is missing"):
        script(settings={"n": 1}, template=template, launcher="none")


def test_the_header_is_no_part_of_the_launch_script() -> None:
    template = parse(f"{HEADER}{{{{launcher}}}} {{{{executable}}}}", "demo.sh")
    assert "demo" not in script(template=template, launcher="none")


@pytest.mark.parametrize("path", sorted(data_directory("templates").glob("*.sh")), ids=lambda path: path.stem)
def test_shipped_templates_are_shell_that_explains_itself(path: Path) -> None:
    template = template_of(path.stem)
    assert template is not None and len(template.header.splitlines()) > 5
    assert subprocess.run(["bash", "-n", path], check=False).returncode == 0
    assert max(map(len, path.read_text().splitlines())) <= 120


def test_libraries_are_preloaded_into_the_program_of_a_template_only(tmp_path: Path) -> None:
    template = parse("env > before\n{{launcher}} {{executable}} {{n}}", "demo.sh")
    program = tmp_path / "env"
    program.write_text('#!/bin/sh\necho "$LD_PRELOAD"\n')
    program.chmod(0o755)
    text = script(
        executable=str(program),
        settings={"n": 1},
        template=template,
        launcher="none",
        preload=["/no/such lib.so"],
        frame="{{prologue}}{{environment}}\n{{exec}} {{launcher}} {{command}}{{epilogue}}\n",
    )
    assert execute(text, tmp_path).stdout == "/no/such lib.so\n"
    assert "LD_PRELOAD" not in (tmp_path / "before").read_text()
