"""The head of a report: what was measured, where, when, at what cost, and what to be careful with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orchestrator.journal.state import is_rehearsal, runs_measured
from orchestrator.models.effort import EFFORT
from orchestrator.models.symbolic import terms_of
from orchestrator.report import extrapolation
from orchestrator.report.metrics import meanings
from orchestrator.report.page import validation
from orchestrator.report.page.history import History
from orchestrator.report.page.numerals import figure, interval, powers
from orchestrator.report.page.subject import Subject
from orchestrator.report.tables import configuration, fastest_lines
from orchestrator.report.wording import clock, discarded_lines, moment, rehearsed
from orchestrator.storage import iso
from orchestrator.types import format_value
from orchestrator.units import (
    campaign_unit,
    count,
    format_cost,
    format_duration,
    listed,
    place,
    plain,
    uncertainty,
)

_DIGEST = 12  # characters of a hash that are shown
_MOST_HOSTS = 8
_LONGER = 1.25  # times what includes a call path: less is within the errors of both models
_EXECUTABLES = {"executable": "Executable", "effort_executable": "Executable of effort runs"}


def _fact(label: str, value: object, detail: str | None = None) -> dict[str, Any]:
    return {"label": label, "value": str(value), "detail": detail, "list": []}


def of_measurements(subject: Subject, sources: Sequence[str], modeler: str) -> list[dict[str, Any]]:
    """Return the facts of a report on files.

    Parameters
    ----------
    subject
        Measurements and models.
    sources
        Names of the files.
    modeler
        The kind of models.
    """
    return [_fact("Measurements", ", ".join(sources)), *_measured(subject), _fact("Models", modeler)]


def _measured(subject: Subject) -> Iterable[dict[str, Any]]:
    known = subject.known
    values = sum(len(values) for item in known.items for values in item.values.values())
    paths = len({item.callpath for item in known.items})
    yield _fact(
        "Measured",
        f"{count(len(known.points), 'point')}, {count(paths, 'call path')}, {count(values, 'value')}",
        "metrics: " + ", ".join(known.metrics()),
    )
    for name in known.parameters:
        found = known.values_of(name)
        ordered = found if known.is_categorical(name) else sorted(found)
        yield _fact(f"Parameter {name}", ", ".join(map(format_value, ordered)))


def of_campaign(subject: Subject, history: History, status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the facts of a campaign, as its journal has them; what it does not say is left out."""
    state, rules = history.state, history.state.campaign
    return [
        _fact("Application", rules.get("application"), f"campaign {rules.get('name')}, id {state.id}"),
        *_executables(history),
        *_where(history),
        *_when(history),
        *_spent(history),
        *_stop(history),
        _fact("Method", *_method(rules)),
        *_measured(subject),
        *_found(subject, status),
    ]


def _found(subject: Subject, status: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Yield what metrics mean, the validation, and the fastest configurations."""
    for text in meanings(status["metrics"]):
        yield _fact("Metrics", text.removeprefix("metrics: "))
    yield from validation.facts(status["validation"], subject.unit)
    for row in (status["fastest"] or {}).get("measured", ()):
        ends = {"value": row["predicted"], "low": row["low"], "high": row["high"]}
        yield _fact(
            "Fastest measured configurations",
            f"{configuration(row)}: {figure(row['seconds'])} s",
            f"mean of {count(row['runs'], 'run')}; predicted {interval(ends, 's')}",
        )
    for line in fastest_lines(status["fastest"]) if status["fastest"] else ():
        label, _, text = line.partition(": ")
        yield _fact(label.capitalize(), text)


def _executables(history: History) -> Iterable[dict[str, Any]]:
    """Yield the executables of all controllers: path, hash, version and source revision."""
    seen: set[tuple[str, str]] = set()
    compared = history.state.campaign.get("compare")
    labels = dict(_EXECUTABLES)
    if compared:
        first, second = compared["names"]
        labels |= {"executable": f"Executable {first}", "compared_executable": f"Executable {second}"}
    for controller in history.controllers:
        for key, label in labels.items():
            program = controller.provenance.get(key) or {}
            name = str(program.get("path", ""))
            digest = str(program.get("sha256", ""))
            if not name or (name, digest) in seen:
                continue
            seen.add((name, digest))
            parts = {
                "sha256": digest[:_DIGEST],
                "version": program.get("version"),
                "git revision": program.get("revision"),
            }
            known = [f"{word} {value}" for word, value in parts.items() if value]
            yield _fact(label, name, "; ".join(known) or None)


def _where(history: History) -> Iterable[dict[str, Any]]:
    """Yield hosts, executor, partition and versions."""
    rules = history.state.campaign
    executor = rules.get("executor") or {}
    options = ("partition", "account", "qos", "constraint", "reservation", "launcher", "mpi")
    detail = [f"{key} {executor[key]}" for key in options if executor.get(key)]
    detail += [f"modules {', '.join(executor['modules'])}"] if executor.get("modules") else []
    yield _fact("Executor", executor.get("name"), "; ".join(detail) or None)
    hosts = Counter(
        node
        for course in history.attempts.values()
        for node in course.node.split(", ")
        if node and course.state == "measured"
    )
    if hosts:
        named = [f"{node} ({count(number, 'run')})" for node, number in hosts.most_common()]
        yield _fact("Ran on", listed(named, _MOST_HOSTS))
    controllers = dict.fromkeys(item.host for item in history.controllers if item.host)
    versions = dict.fromkeys(f"orchestrator {item.version}" for item in history.controllers if item.version)
    pythons = dict.fromkeys(
        f"Python {item.provenance['python']}" for item in history.controllers if item.provenance.get("python")
    )
    if controllers:
        yield _fact("Controlled from", ", ".join(controllers), ", ".join([*versions, *pythons]) or None)
    if rules.get("site") and rules["site"] != "none":
        yield _fact("Site file", rules["site"])


def _when(history: History) -> Iterable[dict[str, Any]]:
    state = history.state
    if state.started is None:
        return
    lasted = state.time - state.started
    if is_rehearsal(state.campaign):
        virtual = f"no program was run; times are of a virtual clock, {clock(0)} to {clock(lasted)}"
        yield _fact("When", rehearsed(lasted), virtual)
        return
    began, last = moment(iso(state.started)), moment(iso(state.time))
    took = format_duration(round(lasted))
    yield _fact("When", f"{began} to {last}", f"{took}; local time of the machine that wrote this report")


def _spent(history: History) -> Iterable[dict[str, Any]]:
    """Yield what was spent of which budget, and how many runs and attempts that were."""
    state = history.state
    unit, budget = campaign_unit(state.campaign), history.spending[-1].budget
    failed = sum(c.charge or 0.0 for c in history.attempts.values() if c.state in ("failed", "cancelled"))
    reserved = f"; {format_cost(state.reserved, unit)} reserved" if state.reserved else ""
    lost = f"; {format_cost(failed, unit)} of it for failed attempts" if failed else ""
    spent = f"{format_cost(state.spent, unit)} of {format_cost(budget, unit)}"
    yield _fact("Cost", spent, (lost + reserved)[2:] or None)
    failures = sum(course.state == "failed" for course in history.attempts.values())
    yield _fact(
        "Runs",
        f"{count(runs_measured(state), 'run')} measured in {count(state.rounds_completed, 'round')}",
        f"{count(len(history.attempts), 'attempt')}, {failures} failed",
    )


def _stop(history: History) -> Iterable[dict[str, Any]]:
    stop = history.state.stopped or history.state.stopping
    if stop is not None:
        yield _fact("Stopped by", stop.rule, stop.detail)
    elif history.state.paused is not None:
        yield _fact("Paused by", history.state.paused.rule, history.state.paused.detail)
    else:
        yield _fact("Stopped by", "not stopped yet", None)


def _method(rules: Mapping[str, Any]) -> tuple[str, str | None]:
    measure = rules.get("measure") or {}
    strategy, model = (rules.get(key) or {} for key in ("strategy", "model"))
    detail = {"profiler": measure.get("profiler"), "seed": rules.get("seed")}
    chosen = f"strategy {strategy.get('name')}, models {model.get('name')}"
    return chosen, "; ".join(f"{key} {value}" for key, value in detail.items() if value is not None) or None


def warnings(subject: Subject) -> list[str]:
    """Return what a reader must know before trusting the models."""
    texts = extrapolation.of_measured(subject.point, subject.known)
    times = ({"terms": terms_of(model)} for model in subject.models if model.metric not in EFFORT)
    texts += extrapolation.steep(list(times), extrapolation.counts(subject.known))
    texts += _longer_than_callers(subject)
    repeated = any(len(values) > 1 for item in subject.known.items for values in item.values.values())
    if not repeated:
        texts.append("no point was measured more than once: the noise is only estimated from the fit")
    return [powers(text) for text in (*texts, *subject.known.notes)]


def _longer_than_callers(subject: Subject) -> list[str]:
    """Say where a part is predicted to take longer than what includes it, as each has a model of its own."""
    point = subject.point or subject.fastest
    if point is None or not subject.includes:
        return []
    models = {model.callpath: model for model in subject.models if model.metric == subject.metric}
    seconds = {path: float(model.predict([point]).value[0]) for path, model in models.items()}
    pairs = [
        (seconds[part] / seconds[whole], part, whole)
        for whole, children in subject.children.items()
        for part in children
        if part in seconds and seconds.get(whole, 0.0) > 0
    ]
    longer = sorted((pair for pair in pairs if pair[0] > _LONGER), reverse=True)
    if not longer:
        return []
    times, part, whole = longer[0]
    more = f", and {count(len(longer) - 1, 'other part')} likewise" if len(longer) > 1 else ""
    return [
        f"{part} is predicted to take {plain(times, 2)} times as long as {whole}, which includes it{more}: "
        f"each has a model of its own, and at {point} at least one is wrong; measure closer to it"
    ]


def campaign_warnings(subject: Subject, status: Mapping[str, Any]) -> list[str]:
    """Return what a campaign adds to them: contradictions, the machine, what was not done.

    Parameters
    ----------
    subject, status
        Measurements and models, and the status document.
    """
    texts = [f"contradiction: {item['note']}" for item in status["contradictions"]]
    texts += [f"{kind}: {text}" for kind, text in status["machine"].items()]
    if status["no_validation"]:
        texts.append(status["no_validation"])
    if status["given_up"]:
        given_up = len(status["given_up"])
        verb = "was" if given_up == 1 else "were"
        texts.append(f"{count(given_up, 'run')} {verb} given up: see the list below the failures")
    texts += status["left_out"]
    texts += discarded_lines(status["discarded"])
    texts += status["executables"]
    if status["uncertainty_percent"] is not None and status["uncertainty_percent"] > 100:
        wide = uncertainty(status["uncertainty_percent"] / 100)
        texts.append(f"the mean width of the 90 % intervals {place(status['uncertainty_targets'])} is {wide}")
    texts += validation.warnings(status["validation"], subject.unit)
    return [powers(text) for text in texts]
