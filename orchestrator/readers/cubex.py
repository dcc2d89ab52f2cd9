"""The CUBE 4 file format: one `.cubex` file into call paths and arrays of values.

A ``.cubex`` is a tar archive of ``anchor.xml`` (metrics, call tree, system tree) and, per metric, an
``<id>.index`` and an ``<id>.data`` file. The binary files are decoded by pycubexr. Archive and XML are
read here, because pycubexr refuses derived metrics and call trees with several roots (threads that
were not started by OpenMP), and because it takes a file that was cut between two members for a
complete one.
"""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import warnings
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray
from pycubexr.parsers.data_parser import parse_data
from pycubexr.parsers.index_parser import parse_index
from pycubexr.utils.custom_tarinfo import TarInfoWithoutCheck
from pycubexr.utils.exceptions import CorruptIndexError
from pycubexr.utils.metric_formats import METRIC_FORMATS

from orchestrator.errors import ReadError
from orchestrator.readers.entries import content_of

Array = NDArray[np.float64]

BLOCK = tarfile.BLOCKSIZE

# Data types whose values are single numbers. COMPLEX, RATE, TAU_ATOMIC, HISTOGRAM, NDOUBLES and
# SCALE_FUNC are not and are skipped.
EXTREMES = frozenset({"MINDOUBLE", "MAXDOUBLE"})
SUMMED = EXTREMES.symmetric_difference(
    name
    for name, numbers in METRIC_FORMATS.items()
    if isinstance(numbers, type) and issubclass(numbers, (np.integer, np.floating))
)

# What a broken file can make the standard library, numpy and pycubexr (which asserts) raise.
_BROKEN = (
    AssertionError,
    CorruptIndexError,
    EOFError,
    LookupError,
    OSError,
    OverflowError,
    ValueError,
    ElementTree.ParseError,
    struct.error,
    tarfile.TarError,
    zlib.error,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeMetric:
    """A metric of a profile; ``values`` has shape (call-tree nodes, locations), as in the file.

    ``inclusive`` says what the file holds: values that include those of the called regions, or not.
    ``data_type`` is one of `SUMMED` or `EXTREMES`.
    """

    name: str
    unit: str
    data_type: str
    inclusive: bool
    values: Array


@dataclass(frozen=True, slots=True)
class CubeProfile:
    """A call tree and its metrics.

    ``callpaths`` and ``parents`` (index of the calling node, -1 for a root) list the nodes in
    preorder; ``ranks`` gives each location (thread) the number of its rank, counted from 0.
    """

    callpaths: tuple[str, ...]
    parents: NDArray[np.int64]
    ranks: NDArray[np.int64]
    metrics: tuple[CubeMetric, ...]


def read_cubex(path: Path) -> CubeProfile:
    """Read a CUBE 4 file.

    A metric that is declared but has no data is zero everywhere. Derived metrics, and those whose
    values are not single numbers, are left out.

    Raises
    ------
    ReadError
        For a file that is missing, empty, cut short or otherwise broken, with the file and the reason.
    """
    content = content_of(path)
    try:
        members = _members(content)
        if "anchor.xml" not in members:
            raise ReadError("the archive has no anchor.xml")
        anchor = members["anchor.xml"]
        root = ElementTree.fromstring(gzip.decompress(anchor) if anchor[:2] == b"\x1f\x8b" else anchor)
        tree = _Tree.of(root)
        return CubeProfile(tree.callpaths, tree.parents, _ranks(root), tuple(_metrics(root, tree, members)))
    except ReadError as error:
        raise ReadError(f"{path}: {error}") from error
    except _BROKEN as error:
        reason = str(error) or "unexpected content"
        raise ReadError(f"{path}: broken CUBE profile ({type(error).__name__}: {reason})") from error


def _members(data: bytes) -> dict[str, bytes]:
    if not data:
        raise ReadError("the file is empty")
    tarinfo = TarInfoWithoutCheck if _has_cube_4_8_checksums(data) else tarfile.TarInfo
    try:
        # TarInfoWithoutCheck warns of every member.
        with (
            warnings.catch_warnings(action="ignore"),
            tarfile.open(fileobj=io.BytesIO(data), tarinfo=tarinfo) as archive,
        ):
            entries = [entry for entry in archive.getmembers() if entry.isfile()]
            _check_end(archive)
            return {entry.name: _content(archive, entry) for entry in entries}
    except tarfile.ReadError as error:
        reason = str(error).splitlines()[-1]
        raise ReadError(f"cut short or not a CUBE 4 profile, which is a tar archive ({reason})") from error


def _content(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(entry)
    content = stream.read() if stream is not None else b""
    if len(content) != entry.size:
        raise ReadError(f"cut short within {entry.name}")
    return content


def _check_end(archive: tarfile.TarFile) -> None:
    """A complete archive ends with blocks of zeros; tarfile is silent when they are missing."""
    entries = archive.getmembers()
    last = entries[-1] if entries else None
    end = last.offset_data + -(-last.size // BLOCK) * BLOCK if last else 0
    stream = archive.fileobj
    if stream is None or last is None:
        raise ReadError("the archive is empty")
    stream.seek(end)
    if stream.read(BLOCK) != bytes(BLOCK):
        raise ReadError(f"cut short or damaged after {last.name}: the end of the archive is missing")


def _has_cube_4_8_checksums(data: bytes) -> bool:
    """Recognise CubeWriter 4.8, which counts one space too few in the checksum of tar headers."""
    header = data[:BLOCK]
    stored = header[148:156].rstrip(b"\0 ")
    actual = sum(header[:148]) + sum(header[156:]) + 8 * ord(" ")
    return stored.isdigit() and int(stored, 10) == int(f"{actual - ord(' '):o}")


@dataclass(frozen=True, slots=True)
class _Tree:
    callpaths: tuple[str, ...]
    parents: NDArray[np.int64]
    wide: tuple[int, ...]  # the order in which inclusive metrics are stored; exclusive ones: preorder

    @classmethod
    def of(cls, root: Element) -> _Tree:
        program = _child(root, "program")
        names = {_number(region, "id"): region.findtext("name") or "" for region in program.iter("region")}
        callpaths: list[str] = []
        parents: list[int] = []
        children: list[list[int]] = []
        stack = [(node, -1) for node in reversed(program.findall("cnode"))]
        while stack:
            node, parent = stack.pop()
            here = len(parents)
            region = _number(node, "calleeId")
            if region not in names:
                raise ReadError(f"anchor.xml: call-tree node {here} refers to the unknown region {region}")
            callpaths.append(f"{callpaths[parent]}->{names[region]}" if parent >= 0 else names[region])
            parents.append(parent)
            children.append([])
            if parent >= 0:
                children[parent].append(here)
            stack += [(child, here) for child in reversed(node.findall("cnode"))]
        if not parents:
            raise ReadError("anchor.xml: the call tree is empty")
        wide: list[int] = []
        for here, parent in enumerate(parents):
            if parent < 0:
                wide.append(here)
            wide += children[here]
        return cls(tuple(callpaths), np.array(parents, dtype=np.int64), tuple(wide))


def _ranks(root: Element) -> NDArray[np.int64]:
    """Return the rank of each location. A rank is a location group: a process, or an accelerator."""
    groups = _child(root, "system").iter("locationgroup")
    sizes = [len(group.findall("location")) for group in groups]
    if not sum(sizes):
        raise ReadError("anchor.xml: no locations (ranks or threads)")
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)


def _metrics(root: Element, tree: _Tree, members: Mapping[str, bytes]) -> Iterator[CubeMetric]:
    locations = len(_ranks(root))
    for node in _child(root, "metrics").iter("metric"):
        kind = node.get("type")
        data_type = (node.findtext("dtype") or "").strip()
        if kind not in ("INCLUSIVE", "EXCLUSIVE") or data_type not in SUMMED | EXTREMES:
            continue
        name = node.findtext("uniq_name") or ""
        inclusive = kind == "INCLUSIVE"
        order = tree.wide if inclusive else range(len(tree.parents))
        try:
            values = _values(members, _number(node, "id"), data_type, order, locations)
        except _BROKEN as error:
            raise ReadError(f"broken values of metric {name} ({type(error).__name__}: {error})") from error
        yield CubeMetric(
            name=name,
            unit=(node.findtext("uom") or "").strip(),
            data_type=data_type,
            inclusive=inclusive,
            values=values,
        )


def _values(
    members: Mapping[str, bytes], number: int, data_type: str, order: range | tuple[int, ...], locations: int
) -> Array:
    values = np.zeros((len(order), locations))
    if f"{number}.index" not in members:
        return values
    index = parse_index(index_file=io.BufferedReader(io.BytesIO(members[f"{number}.index"])))
    data = parse_data(
        data_file=io.BytesIO(members[f"{number}.data"]),
        data_type=data_type,
        endianness_format_char=index.endianness_format,
    ).astype(float)
    rows = [order[i] for i in index.tree_indices]
    if min(index.tree_indices) < 0 or len(set(rows)) != len(rows):
        raise ReadError(f"{number}.index names a call-tree node twice")
    if len(data) != len(rows) * locations:
        raise ReadError(
            f"{number}.data has {len(data)} values, not {len(rows)} nodes x {locations} locations"
        )
    values[rows] = data.reshape(len(rows), locations)
    return values


def _child(node: Element, name: str) -> Element:
    child = node.find(name)
    if child is None:
        raise ReadError(f"anchor.xml: no <{name}>")
    return child


def _number(node: Element, name: str) -> int:
    text = node.get(name, "")
    if not text.isdecimal():
        raise ReadError(f"anchor.xml: {name}={text!r} of a <{node.tag}> is not a number")
    return int(text)
