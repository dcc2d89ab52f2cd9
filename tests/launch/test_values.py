"""Nothing is executed that was meant as a value."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import CampaignError
from orchestrator.launch.script import find_frame
from tests.launch.scripts import SHOW, script, shown

NASTY = [
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned #",
    "' ; touch pwned ; '",
    '" ; touch pwned ; "',
    "a\ntouch pwned\n",
    "&& touch pwned",
    "$HOME",
    "*",
    "~",
    "{a,b}",
    "\\",
    "-n",
    "",
    " two  spaces ",
    "ümläut € 🚀",
    "{{command}}",
    "\x01\x7f\t",
]


@pytest.mark.parametrize("frame", ["local", "slurm"])
def test_arguments_and_variables_arrive_as_they_are(tmp_path: Path, show: str, frame: str) -> None:
    text = script(
        NASTY,
        executable=show,
        environment={f"NASTY_{i}": value for i, value in enumerate(NASTY)},
        frame=find_frame(None, frame).read_text(),
        launcher="none",
    )
    seen = shown(text, tmp_path)
    assert seen["arguments"] == NASTY
    assert [seen["environment"][f"NASTY_{i}"] for i in range(len(NASTY))] == NASTY
    assert not list(tmp_path.rglob("pwned"))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20), max_size=8
    )
)
def test_any_text_arrives_as_one_argument(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    directory = tmp_path_factory.mktemp("inert")
    path = directory / "show"
    path.write_text(SHOW)
    path.chmod(0o755)
    assert shown(script(words, executable=str(path)), directory)["arguments"] == words


def test_words_of_the_launcher_are_inert_too(tmp_path: Path, show: str) -> None:
    seen = shown(script(["x"], launcher="env 'A=$(touch pwned);' B=`touch", executable=show), tmp_path)
    assert seen["environment"]["A"] == "$(touch pwned);" and seen["environment"]["B"] == "`touch"
    assert not (tmp_path / "pwned").exists()


def test_prologue_is_shell(tmp_path: Path, show: str) -> None:
    seen = shown(script(executable=show, prologue=["export A=$((6 * 7))", "export B=$A"]), tmp_path)
    assert seen["environment"]["B"] == "42"


def test_a_nul_is_refused() -> None:
    with pytest.raises(CampaignError, match="NUL"):
        script(["a\0b"])


@pytest.mark.parametrize("name", ["A B", "A=B", "1A", "A;ls", "", "A\n"])
def test_a_name_that_is_no_variable_is_refused(name: str) -> None:
    with pytest.raises(CampaignError, match="cannot name a variable"):
        script(environment={name: "1"})
