"""Nothing of a campaign is executed by launch scripts and batch scripts that is not meant as shell text."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from orchestrator.campaign import loader
from orchestrator.errors import CampaignError
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.executors.slurm.sbatch import ArrayRequest
from orchestrator.executors.slurm.sbatch import script as batch_script
from orchestrator.launch.script import Frame, find_frame, launch_script, load_lines, render
from orchestrator.types import Resources
from tests.applications import demo
from tests.security.words import nothing_timed, words

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
    application = demo(arguments=arguments, environment={"VALUE": value})
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        program = folder / f"p{name}"
        program.write_text(SHOW)
        program.chmod(0o755)
        (folder / "env").write_text('#!/bin/sh\nshift\nexec "$@"\n')
        (folder / "env").chmod(0o755)
        text = launch_script(
            application=application,
            executable=str(program),
            settings={},
            resources=Resources(ranks=1),
            launcher=f"{folder}/env '{launcher.replace(chr(39), '').replace('{', '(').replace('}', ')')}'",
            frame=Frame(
                text=find_frame(None, "slurm").read_text(),
                prologue=["module() { :; }"] if modules else [],
                epilogue=["touch over"],
                profiler="stdout",
            ),
        )
        (folder / "run.sh").write_text(text)
        # The modules' lines are looked at by themselves: `module` here would be defined after them.
        loads = "\n".join(["module() { :; }", *load_lines(modules)])
        for script in (text, loads):
            subprocess.run(["bash", "-c", script], cwd=folder, check=True, capture_output=True, timeout=300)
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
        text = render("".join(parts), values, "t.sh", optional=("a", "b"))
    except CampaignError as error:
        assert str(error).startswith("t.sh:")
        return
    expected = {"{{a}}": values["a"], "{{b}}": "B", "{{ b }}": "B"}
    assert text == "".join(expected.get(part, part) for part in parts)


# --- batch scripts --------------------------------------------------------------------------------------


def executed(options: JobOptions) -> list[str]:
    """Return the lines of a batch script that a shell would execute."""
    text = batch_script(
        ArrayRequest(
            name="n", resources=Resources(ranks=1), limits=(60.0,), options=options, folder=Path("/x")
        )
    )
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
        assert executed(item.fitting(Resources(ranks=1))) == PLAIN


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
        loader.loads(yaml.safe_dump(document), "f.yaml")
