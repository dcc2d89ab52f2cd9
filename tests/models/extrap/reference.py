"""The functions of `tests.models.extrap.cases` as Extra-P models them.

    python -m tests.models.extrap.reference /path/to/an/environment/bin/python

writes ``reference.jsonl``, one line per function: the constant, and the coefficient and factors (number of
the parameter, exponent, exponent of the logarithm) of every term.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.models.extrap.cases import Case, cases

VERSION = "4.2.5"
FILE = Path(__file__).parent / "reference.jsonl"

# Runs in the other environment.
_SCRIPT = """
import json, logging, sys, warnings
warnings.simplefilter("ignore"); logging.disable(logging.CRITICAL)
import extrap
from extrap.entities.callpath import Callpath
from extrap.entities.coordinate import Coordinate
from extrap.entities.experiment import Experiment
from extrap.entities.measurement import Measurement
from extrap.entities.metric import Metric
from extrap.entities.parameter import Parameter
from extrap.entities.terms import CompoundTerm
from extrap.modelers.model_generator import ModelGenerator

def block(term):
    by = {t.term_type: float(t.exponent) for t in term.simple_terms}
    return [by.get("polynomial", 0.0), by.get("logarithm", 0.0)]

def model(case):
    experiment, metric, callpath = Experiment(), Metric("time"), Callpath("main")
    for axis in range(len(case["points"][0])):
        experiment.add_parameter(Parameter("abcd"[axis]))
    experiment.add_metric(metric)
    experiment.add_callpath(callpath)
    for point, values in zip(case["points"], case["values"]):
        coordinate = Coordinate(*point)
        experiment.add_coordinate(coordinate)
        experiment.add_measurement(Measurement(coordinate, callpath, metric, values))
    generator = ModelGenerator(experiment)
    generator.model_all()
    function = generator.models[callpath, metric].hypothesis.function
    terms = []
    for term in function.compound_terms:
        pairs = [(0, term)] if isinstance(term, CompoundTerm) else term.parameter_term_pairs
        factors = [[axis, *block(part)] for axis, part in pairs]
        terms.append([float(term.coefficient), factors])
    return {"constant": float(function.constant_coefficient), "terms": terms}

models = [model(case) for case in json.load(sys.stdin)]
json.dump({"version": extrap.__version__, "models": models}, sys.stdout)
"""


def modelled(python: Path, chosen: Sequence[Case]) -> tuple[str, list[dict[str, Any]]]:
    """Return the version of Extra-P in the environment of an interpreter, and its models."""
    found = subprocess.run(
        [python, "-c", _SCRIPT],
        input=json.dumps([asdict(case) for case in chosen]),
        check=True,
        capture_output=True,
        text=True,
    )
    result = json.loads(found.stdout[found.stdout.index('{"version') :])
    return result["version"], result["models"]


def known() -> list[dict[str, Any]]:
    """Return the models that are kept."""
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Write the models again."""
    version, models = modelled(Path(sys.argv[1]), list(cases()))
    if version != VERSION:
        sys.exit(f"{sys.argv[1]} has Extra-P {version}, not {VERSION}")
    FILE.write_text("".join(json.dumps(model) + "\n" for model in models), encoding="utf-8")


if __name__ == "__main__":
    main()
