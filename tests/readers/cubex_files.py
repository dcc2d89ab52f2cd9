"""Write small CUBE 4 files, so that tests know every value in them."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Node:
    name: str
    children: tuple[Node, ...] = ()

    def preorder(self) -> list[Node]:
        return [self, *(node for child in self.children for node in child.preorder())]

    def wide(self) -> list[Node]:
        """The order in which CUBE stores inclusive metrics: all children, then each child's."""
        return [*self.children, *(node for child in self.children for node in child.wide())]


@dataclass(frozen=True)
class Stored:
    """A metric as in the file: ``values`` has a row per node in preorder, or only for some of them."""

    name: str
    values: Mapping[int, Sequence[float]] | None
    kind: str = "EXCLUSIVE"
    data_type: str = "UINT64"
    unit: str = "occ"


FORMATS = {"DOUBLE": "f8", "MINDOUBLE": "f8", "MAXDOUBLE": "f8", "UINT64": "u8", "INT32": "i4"}


@dataclass(frozen=True)
class Cubex:
    roots: Sequence[Node]
    metrics: Sequence[Stored]
    threads: Sequence[int] = (1,)  # per rank
    byte_order: str = "<"
    compress: bool = False
    gzip_anchor: bool = False
    members: Mapping[str, bytes] = field(default_factory=dict)

    def content(self) -> bytes:
        anchor = self._anchor().encode()
        members = {
            **{
                name: data
                for number, metric in enumerate(self.metrics)
                if metric.values is not None
                for name, data in self._values(number, metric).items()
            },
            "anchor.xml": gzip.compress(anchor) if self.gzip_anchor else anchor,
            **self.members,
        }
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name, data in members.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        return stream.getvalue()

    def _nodes(self) -> list[Node]:
        return [node for root in self.roots for node in root.preorder()]

    def _values(self, number: int, metric: Stored) -> dict[str, bytes]:
        nodes = self._nodes()
        wide = [node for root in self.roots for node in (root, *root.wide())]
        order = wide if metric.kind == "INCLUSIVE" else nodes
        place = {id(node): index for index, node in enumerate(order)}
        assert metric.values is not None
        rows = sorted((place[id(nodes[index])], row) for index, row in metric.values.items())
        index = struct.pack(
            f"{self.byte_order}ihBi{len(rows)}i", 1, 0, 1, len(rows), *(position for position, _ in rows)
        )
        numbers = np.array([row for _, row in rows], dtype=self.byte_order + FORMATS[metric.data_type])
        data = b"CUBEX.DATA" + numbers.tobytes()
        if self.compress:
            packed = zlib.compress(numbers.tobytes())
            header = struct.pack(f"{self.byte_order}4q", 1, 0, 0, len(packed))
            data = b"ZCUBEX.DATA" + header + packed
        return {f"{number}.index": b"CUBEX.INDEX" + index, f"{number}.data": data}

    def _anchor(self) -> str:
        names = list(dict.fromkeys(node.name for node in self._nodes()))
        regions = "".join(
            f'<region id="{i}" mod="" begin="1" end="2"><name>{name}</name></region>'
            for i, name in enumerate(names)
        )
        numbers = iter(range(len(self._nodes())))

        def tree(node: Node) -> str:
            head = f'<cnode id="{next(numbers)}" calleeId="{names.index(node.name)}">'
            return head + "".join(map(tree, node.children)) + "</cnode>"

        metrics = "".join(
            f'<metric id="{i}" type="{m.kind}"><disp_name>x</disp_name><uniq_name>{m.name}</uniq_name>'
            f"<dtype>{m.data_type}</dtype><uom>{m.unit}</uom></metric>"
            for i, m in enumerate(self.metrics)
        )
        locations = iter(range(sum(self.threads)))
        groups = "".join(
            f'<locationgroup Id="{rank}"><rank>{rank}</rank><type>process</type>'
            + "".join(
                f'<location Id="{next(locations)}"><rank>{t}</rank><type>thread</type></location>'
                for t in range(count)
            )
            + "</locationgroup>"
            for rank, count in enumerate(self.threads)
        )
        return (
            f'<?xml version="1.0" encoding="UTF-8"?><cube version="4.4"><metrics>{metrics}</metrics>'
            f"<program>{regions}{''.join(map(tree, self.roots))}</program>"
            f'<system><systemtreenode Id="0"><name>node</name>{groups}</systemtreenode></system></cube>'
        )
