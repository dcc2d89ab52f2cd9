"""Speedup and efficiency of the largest call paths, where a parameter counts processes."""

from __future__ import annotations

from typing import Any

from orchestrator.models.base import holds_at
from orchestrator.models.scaling import has_speedup
from orchestrator.report import scaling_document
from orchestrator.report.page.callpaths import CallPaths
from orchestrator.report.page.subject import Subject

_MOST, _MANY = (8, 3), 200  # call paths with curves: of few and of many models


def document(subject: Subject, paths: CallPaths) -> dict[str, Any] | None:
    """Return curves over processes up to P₊ (or the largest values), and where efficiency falls."""
    study, there = subject.study, paths.grid.default
    if study is None:
        return None
    chosen = [
        (k, model)
        for k, model in enumerate(paths.models)
        if has_speedup(model) and model.metric == subject.metric and holds_at(model, there)
    ][: _MOST[len(paths.models) > _MANY]]
    entries = []
    for k, model in chosen:
        for found in scaling_document.describe(model, study, [there], scaling_document.DEFAULT_TARGET):
            described = {"callpath": model.callpath, "category": dict(model.category)}
            sentences = list(scaling_document.sentences(described, found))
            entries.append({"id": k, **found, "sentences": sentences})
    if not entries:
        return None
    reason = f" ({study.reason})" if study.reason else ""
    return {
        "text": f"{study.text}{reason}",
        "parameter": study.along,
        "processes": study.processes.text,
        "weak": study.weak,
        "callpaths": entries,
    }
