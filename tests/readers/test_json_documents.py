"""JSON documents with parts replaced or left out: measurements, or an error that names the file."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import ReadError
from orchestrator.readers import ramble, reframe
from orchestrator.readers.extrap_json import read_json
from orchestrator.readers.json_parts import list_in, object_in, objects_in, parsed, part
from orchestrator.types import Measurements
from tests.readers.test_extrap_json import NEW, OLD

DATA = Path(__file__).parents[1] / "data"
RAMBLE = json.loads((DATA / "ramble" / "results.latest.json").read_text())
REFRAME = json.loads((DATA / "reframe" / "report.json").read_text())

OTHER: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        -1.5,
        float("nan"),
        float("inf"),
        10**400,
        "",
        " ",
        "x",
        "4",
        [],
        {},
        [None],
        [[]],
        {"": 1},
    ]
)


def places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every object and list with every key and index of it."""
    keys = (
        document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    )
    for key in keys:
        yield document, key
        yield from places(document[key])


@st.composite
def changed(draw: st.DrawFn, document: Any) -> Any:
    """Return the document with one to three parts replaced or left out."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        if not (found := list(places(document))):
            break
        container, key = found[draw(st.integers(0, len(found) - 1))]
        if draw(st.booleans()):
            container[key] = copy.deepcopy(draw(OTHER))
        else:
            del container[key]
    return document


@pytest.mark.parametrize(
    ("document", "read"),
    [
        pytest.param(NEW, read_json, id="Extra-P"),
        pytest.param(OLD, read_json, id="older Extra-P"),
        pytest.param(RAMBLE, ramble.read, id="Ramble"),
        pytest.param(REFRAME, reframe.read, id="ReFrame"),
    ],
)
@settings(deadline=None)
@given(data=st.data())
def test_a_changed_document_gives_measurements_or_an_error_that_names_the_file(
    document: Any, read: Callable[[str, str], Measurements], data: st.DataObject
) -> None:
    text = json.dumps(data.draw(changed(document)))
    try:
        found = read(text, "in.json")
    except ReadError as error:
        assert "in.json" in str(error)
    else:
        assert found.items


def test_parts_are_taken_from_a_document() -> None:
    document = parsed('{"a": [1], "b": {"c": 2}, "d": [{"e": 3}]}', "in.json")
    assert list_in(document, "a", "in.json") == [1]
    assert object_in(document, "b", "in.json") == {"c": 2}
    assert objects_in(document, "d", "in.json") == [{"e": 3}]
    assert part(object_in(document, "b", "in.json"), "c", "in.json") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("7", "in.json: 'a' is missing"),
        ('{"a": {}}', "in.json: 'a' is not a list"),
        ('{"a": [{}, 4]}', "in.json: 'a' holds 4, which is not an object"),
        ('{"a": [], "a": []}', "in.json: the key 'a' is given twice in one object"),
        ('{"a":\n[}', "in.json:2: not JSON: Expecting value: line 2 column 2 (char 7)"),
    ],
)
def test_what_is_no_list_of_objects_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        objects_in(parsed(text, "in.json"), "a", "in.json")
    assert str(caught.value) == message
