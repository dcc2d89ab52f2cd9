"""The manifest: what was generated, and the true complexities, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import ReadError
from orchestrator.generate.complexity import (
    Communication,
    Computation,
    Element,
    Function,
    Product,
    model_terms,
    text,
)
from orchestrator.generate.population import Range

NAME = "manifest.json"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """Generated programs with their functions; ``seed`` is what random parts were drawn with."""

    seed: int
    range: Range
    programs: Mapping[str, tuple[Function, ...]]


def callpaths(function: Function) -> tuple[str, str]:
    """Return the call paths of computation and communication."""
    operation = function.communication.operation.capitalize()
    stem = f"main->{function.name}->{function.name}"
    return f"{stem}_compute", f"{stem}_communicate->MPI_{operation}"


def parts(function: Function) -> tuple[tuple[Product, ...], tuple[Product, ...]]:
    """Return the terms of computation and communication, in the order of `callpaths`."""
    return function.computation.terms, function.communication.terms


def document(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest, JSON-ready."""
    return {
        "schema": SCHEMA,
        "seed": manifest.seed,
        "smallest": dict(manifest.range.smallest),
        "largest": dict(manifest.range.largest),
        "programs": {
            name: [_function(function) for function in functions]
            for name, functions in manifest.programs.items()
        },
    }


def _function(function: Function) -> dict[str, Any]:
    computation, communication = function.computation, function.communication
    first, second = callpaths(function)
    return {
        "name": function.name,
        "computation": {
            "callpath": first,
            "arrangement": computation.arrangement,
            "loops": [_element(loop) for loop in computation.loops],
            "complexity": text(computation.terms),
            "terms": model_terms(computation.terms),
        },
        "communication": {
            "callpath": second,
            "operation": communication.operation,
            "message": [_element(e) for e in communication.message],
            "calls": _element(communication.calls) if communication.calls else None,
            "complexity": text(communication.terms),
            "terms": model_terms(communication.terms),
        },
    }


def _element(element: Element) -> dict[str, Any]:
    return {
        "parameter": element.parameter,
        "exponent": element.exponent,
        "log_exponent": element.log_exponent,
    }


def read(path: Path) -> Manifest:
    """Read a manifest.

    Raises
    ------
    ReadError
        When the file is missing or no manifest that this version knows.
    """
    if not path.exists():
        raise ReadError(f"there is no {path}: name a directory that 'orchestrator generate' has written")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["schema"] != SCHEMA:
            raise ReadError(f"{path}: schema {found['schema']}, but this version reads {SCHEMA}")
        programs = {
            name: tuple(map(_read_function, functions)) for name, functions in found["programs"].items()
        }
        return Manifest(found["seed"], Range(found["smallest"], found["largest"]), programs)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReadError(f"{path}: not a manifest of generated programs ({error!r})") from error


def _read_function(entry: Mapping[str, Any]) -> Function:
    computation, communication = entry["computation"], entry["communication"]
    return Function(
        entry["name"],
        Computation(computation["arrangement"], _elements(computation["loops"])),
        Communication(
            communication["operation"],
            _elements(communication["message"]),
            Element(**communication["calls"]) if communication["calls"] else None,
        ),
    )


def _elements(entries: Sequence[Mapping[str, Any]]) -> tuple[Element, ...]:
    return tuple(Element(**entry) for entry in entries)
