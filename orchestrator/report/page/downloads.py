"""Files that the report carries: measurements, formulas, the campaign file."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Sequence
from typing import Any

from orchestrator.errors import OrchestratorError
from orchestrator.models.base import Model
from orchestrator.report.export import export
from orchestrator.report.models_document import label
from orchestrator.report.page.formulas import Formula
from orchestrator.report.page.subject import Subject

_MOST_VALUES = 10_000  # of a table of measurements in the file

_HEADER = "Models as formulas; numbers have four digits. Values may differ slightly from predictions, whose"
_HEADER_MORE = "numbers are exact and which also consider what a formula cannot say."


def downloads(subject: Subject, models: Sequence[Model], campaign: str | None) -> list[dict[str, Any]]:
    """Return the files.

    Parameters
    ----------
    subject, models
        Measurements, and the models in the order of the report.
    campaign
        Content of the campaign file, if there is one.
    """
    files = [] if campaign is None else [_file("campaign.yaml", "application/yaml", campaign)]
    files.append(_measurements(subject))
    named = _named(models)
    if not named:
        return files
    return [
        *files,
        _file("models.tex", "text/x-tex", _latex(named)),
        _file("models.py", "text/x-python", _python(named)),
        _file("models.c", "text/x-c", _c(named)),
    ]


def _file(name: str, kind: str, text: str | None, note: str | None = None) -> dict[str, Any]:
    return {"name": name, "type": kind, "text": text, "note": note}


def _measurements(subject: Subject) -> dict[str, Any]:
    name, kind = "measurements.csv", "text/csv"
    values = sum(len(values) for item in subject.known.items for values in item.values.values())
    if values > _MOST_VALUES:
        note = f"{values} values are too many for this file: orchestrator export DIR --format csv writes them"
        return _file(name, kind, None, note)
    try:
        return _file(name, kind, export(subject.known, "csv").decode())
    except OrchestratorError as error:
        return _file(name, kind, None, str(error))


def _named(models: Sequence[Model]) -> list[tuple[str, Model, Formula]]:
    """Return the models that are formulas, each with the name of a function."""
    taken: set[str] = set()
    formulas = []
    for model in models:
        formula = Formula.of(model.expression, model.parameters)
        if formula is not None:
            formulas.append((_name(model, taken), model, formula))
    return formulas


def _name(model: Model, taken: set[str]) -> str:
    """Return an identifier for a model that no other one has."""
    parts = [model.callpath.rpartition("->")[2], *(value for _, value in model.category), model.metric]
    base = re.sub(r"\W+", "_", "_".join(parts)).strip("_").lower() or "model"
    base = f"f_{base}" if base[0].isdigit() or keyword.iskeyword(base) else base
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    taken.add(name)
    return name


def _title(model: Model) -> str:
    return f"{label({'callpath': model.callpath, 'category': dict(model.category)})} {model.metric}"


def _latex(named: Iterable[tuple[str, Model, Formula]]) -> str:
    rows = "\n".join(f"% {_title(model)}\n\\[ {formula.latex} \\]" for _, model, formula in named)
    return f"% {_HEADER}\n% {_HEADER_MORE}\n{rows}\n"


def _python(named: Iterable[tuple[str, Model, Formula]]) -> str:
    functions = "\n\n\n".join(
        f"def {name}({', '.join(model.parameters)}):\n"
        f"    {json.dumps(_title(model), ensure_ascii=False)}\n"
        f"    return {formula.python}"
        for name, model, formula in named
    )
    return f'"""{_HEADER}\n{_HEADER_MORE}\n"""\n\nimport math\n\n\n{functions}\n'


def _c(named: Iterable[tuple[str, Model, Formula]]) -> str:
    functions = "\n\n".join(
        f"/* {_title(model).replace('*/', '* /')} */\n"
        f"double {name}({', '.join(f'double {item}' for item in model.parameters) or 'void'})\n"
        f"{{\n    return {formula.c};\n}}"
        for name, model, formula in named
    )
    return f"/* {_HEADER}\n   {_HEADER_MORE} */\n\n#include <math.h>\n\n{functions}\n"
