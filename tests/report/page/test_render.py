"""The page as text: what is inside, and that nothing of the document gets out of its place."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from typing import Any

import numpy as np
import pytest

from orchestrator.report.page.render import library, page, script
from tests.report.page import sample
from tests.report.page.fetch_library import FOLDER, RECORD, digest


def embedded(text: str) -> Any:
    """Return the document that a page holds."""
    found = re.search(r'<script type="application/(json|gzip)" id="document">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[2] if found[1] == "json" else gzip.decompress(base64.b64decode(found[2])))


def test_a_small_document_can_be_read_in_the_file() -> None:
    document = sample.comparison()
    assert embedded(page(document)) == document


def test_a_large_document_is_packed_and_the_same() -> None:
    document = sample.large(200)
    text = page(document)
    assert 'type="application/gzip"' in text
    assert embedded(text)["callpaths"][150]["value"] == document["callpaths"][150]["value"]


def test_a_thousand_call_paths_stay_under_five_megabytes() -> None:
    assert len(page(sample.large(1000)).encode()) < 5_000_000


def test_names_cannot_end_the_element_that_holds_them() -> None:
    document = sample.comparison() | {"title": sample.HOSTILE}
    text = page(document)
    assert text.count("</script>") == 3  # the document, the library, the page's own
    assert "<title>&lt;img" in text
    assert embedded(text)["title"] == sample.HOSTILE


def test_what_looks_like_a_placeholder_stays() -> None:
    text = page(sample.comparison() | {"title": "{{library}}"})
    assert "<h1>{{library}}</h1>" in text


def test_numbers_that_json_lacks_become_null() -> None:
    document = sample.comparison()
    document["comparison"]["rows"][0]["ratio"] = float("nan")
    document["comparison"]["rows"][1]["ratio"] = np.float64(1.5)
    rows = embedded(page(document))["comparison"]["rows"]
    assert (rows[0]["ratio"], rows[1]["ratio"]) == (None, 1.5)


def test_only_the_pages_own_scripts_may_run() -> None:
    text = page(sample.comparison())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy and "default-src 'none'" in policy[1] and "unsafe-eval" not in policy[1]
    for own in (library(), script()):
        assert own in text
        assert f"'sha256-{base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()}'" in policy[1]


def test_modules_keep_their_names_to_themselves() -> None:
    assert not re.search(r"^(import|export) ", script(), re.MULTILINE)
    assert "module_dom" in script()


@pytest.mark.parametrize("name", sorted(json.loads(RECORD.read_text())["files"]))
def test_the_library_is_as_recorded(name: str) -> None:
    file = FOLDER / name.rpartition("/")[2]
    assert digest(file.read_bytes()) == json.loads(RECORD.read_text())["files"][name]


def test_the_caption_of_speedup_counts_processes_by_the_letter_of_the_sentence_above_it() -> None:
    assert "time on N of them" in script()  # as in `strong scaling: one problem on N = t`
