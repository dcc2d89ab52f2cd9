"""A campaign becomes a rehearsal: what its runs yield, by the best that is known.

Runs yield, in this order: what the caller or ``executor.truth``, a data set or ``executor.models`` state;
the models of what the campaign has measured already; ``measure.expected_time``; an assumption.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.paths import find_file
from orchestrator.campaign.schema import SimulatedOptions, executor_keys
from orchestrator.control import assumption
from orchestrator.control.assembly import assemble
from orchestrator.control.execution import Earlier, earlier
from orchestrator.control.runtime import LONGEST_WAITS
from orchestrator.errors import CampaignError
from orchestrator.executors.simulated.truth import BLOCKS_PER_SECOND, COUNTING
from orchestrator.journal.file import holds_campaign
from orchestrator.journal.measurements import WHOLE_RUN
from orchestrator.units import count

NOISE = 5.0  # percent: of a rehearsal that states none
_SOURCES = ("truth", "dataset", "models")
_NO_SOURCE: Mapping[str, Any] = MappingProxyType({"truth": {}, "dataset": None, "models": None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the caller of a rehearsal states, instead of what the campaign file says."""

    dataset: str | os.PathLike[str] | None = None  # a file of measurements to replay
    truth: Mapping[str, str] = field(default_factory=dict)  # call path -> seconds as an expression
    # The directory of an earlier campaign, whose models say what runs yield.
    models: str | os.PathLike[str] | None = None
    # noise, failure_rate, queue_delay: noise of times in percent; share of attempts that fail; mean time in
    # the queue, with its unit.
    noise: float | None = None
    failure_rate: float | None = None
    queue_delay: str | None = None
    fails_where: str | None = None  # condition on the parameters: there every run fails
    cores: int | None = None  # that run at once
    callpaths: int | None = None  # most call paths that are rehearsed of an earlier campaign

    def sources(self) -> dict[str, Any]:
        """Return the keys of ``executor`` that say what runs yield, if any of them is stated."""
        paths = {"dataset": self.dataset, "models": self.models}
        found: dict[str, Any] = {key: str(Path(path).resolve()) for key, path in paths.items() if path}
        if self.truth:
            found["truth"] = dict(self.truth)
        return found

    def others(self) -> dict[str, Any]:
        """Return the other keys of ``executor`` that are stated."""
        keys = ("noise", "failure_rate", "fails_where", "queue_delay", "cores", "callpaths")
        return {key: getattr(self, key) for key in keys if getattr(self, key) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """A campaign that is ready to be rehearsed.

    ``source``: ``truth``, ``dataset``, ``models``, ``expected_time`` or ``assumption``; ``truth`` says in
    words what runs yield, ``notes`` what differs from the campaign.
    """

    campaign: Campaign
    source: str
    truth: str
    notes: tuple[str, ...]


def prepare(path: Path, overrides: Sequence[str] = (), options: Options | None = None) -> Rehearsal:
    """Return the rehearsal of a campaign file; it needs no program and no cluster.

    Parameters
    ----------
    path
        The campaign file.
    overrides
        ``key.path=value`` texts.
    options
        What the caller states.

    Raises
    ------
    CampaignError
        If the file is wrong, or what is stated says nothing about this campaign.
    """
    options = options or Options()
    file = _File.read(path, overrides, options)
    chosen = {**options.sources(), **_likeness(file)}
    source = next((key for key in _SOURCES if key in chosen), "")
    if not source:
        source = next((key for key in _SOURCES if file.section.get(key)), "")
    else:
        chosen = {**_NO_SOURCE, **chosen}
    text = ""
    notes: list[str] = []
    if not source:
        draft = file.load("truth", {**_NO_SOURCE, **chosen, "truth": {"main": "1"}})[0]
        known, notes = file.measured(draft)
        source, text, found = _best(draft, known)
        chosen = {**_NO_SOURCE, **chosen, **found}
    if source not in ("dataset", "models") and "noise" not in file.section:
        chosen["noise"] = NOISE
    if source == "models":
        chosen |= file.conditions(file.earlier(chosen))
    campaign, dropped = file.load(source, {**chosen, **options.others()})
    if dropped:
        notes.append(f"left out: metrics that this truth does not have: {', '.join(dropped)}")
    return Rehearsal(
        campaign=campaign,
        source=source,
        truth=f"{text or _words(campaign)}{_noise(campaign)}",
        notes=(*notes, *_caveats(campaign, source)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A campaign file that becomes a rehearsal.

    ``base``: the overrides; ``said``: what the file says with them, before any check; ``former``: its
    ``executor`` before; ``callpaths``: how many are rehearsed of an earlier campaign at most.
    """

    path: Path
    base: tuple[str, ...]
    said: Mapping[str, Any]
    former: object
    callpaths: int | None

    @classmethod
    def read(cls, path: Path, overrides: Sequence[str], options: Options) -> _File:
        """Read a file; raise `CampaignError` where it is not YAML."""
        former = loader.peek(path, overrides).get("executor")
        base = (*_without_keys_of(former, overrides), *_texts({"executor.name": "simulated"}))
        said = loader.peek(path, base)
        most = options.callpaths or _mapping(said.get("executor")).get("callpaths")
        callpaths = most if isinstance(most, int) and most > 0 else None  # else `load` refuses it
        return cls(path=path, base=base, said=said, former=former, callpaths=callpaths)

    @property
    def section(self) -> Mapping[str, Any]:
        """Return the ``executor`` section."""
        return _mapping(self.said.get("executor"))

    def earlier(self, chosen: Mapping[str, Any]) -> Earlier:
        """Return the earlier campaign that ``models`` names; raise `CampaignError`."""
        named = chosen.get("models") or self.section["models"]
        try:
            return earlier(Path(find_file(str(named), self.path.absolute().parent)), self.callpaths)
        except ValueError as error:
            raise CampaignError(f"executor.models: {error}") from None

    def conditions(self, known: Earlier) -> dict[str, Any]:
        """Return the noise and the wait in the queue of an earlier campaign, where the file states none."""
        noise = NOISE if known.noise is None else float(f"{known.noise:.3g}")
        found = {"noise": noise, "queue_delay": known.wait or 0.0}
        return {key: value for key, value in found.items() if key not in self.section}

    def load(self, source: str, chosen: Mapping[str, Any]) -> tuple[Campaign, list[str]]:
        """Return the campaign with keys of ``executor``, and the metrics of which nothing is known."""
        changes: dict[str, Any] = {f"executor.{key}": value for key, value in chosen.items()}
        wanted = _mapping(self.said.get("measure")).get("metrics")
        dropped: list[str] = []
        if isinstance(wanted, tuple) and source != "dataset":
            there = self.earlier(chosen).metrics if source == "models" else ("time",)
            names = [str(item["name"] if isinstance(item, Mapping) else item) for item in wanted]
            kept = [item for name, item in zip(names, wanted, strict=True) if name in there]
            dropped = [name for name in names if name not in there]
            if dropped:
                changes["measure.metrics"] = kept or ["time"]
        return loader.load(self.path, [*self.base, *_texts(changes)]), dropped

    def measured(self, draft: Campaign) -> tuple[Earlier | None, list[str]]:
        """Return what the campaign itself has measured already, and why that is of no use.

        It is looked for beside the campaign file (a campaign directory keeps one), then in the directory that
        ``run`` uses. A rehearsal's directory has no measurements.
        """
        for directory in (self.path.absolute().parent, Path(draft.name).absolute()):
            if not holds_campaign(directory) or not (directory / loader.CAMPAIGN_FILE).exists():
                continue
            try:
                before = earlier(directory, self.callpaths)
            except CampaignError as error:
                return None, [f"not used: the campaign in {directory}: {error}"]
            same = (before.name, before.application) == (draft.name, draft.application)
            if before.simulated or not before.points or not same:
                continue
            why = before.unfit(draft)
            return (before, []) if why is None else (None, [f"not used: {why}"])
        return None, []


def _name(executor: object) -> str:
    """Return the name that an ``executor`` section or its short form says, or the default."""
    return executor if isinstance(executor, str) else str(_mapping(executor).get("name", "local"))


def _without_keys_of(former: object, overrides: Sequence[str]) -> list[str]:
    """Return the overrides without those of keys that only the executor of the campaign has."""
    lost = executor_keys(_name(former)) - executor_keys("simulated")
    return [text for text in overrides if not _sets(text, lost)]


def _sets(override: str, keys: Collection[str]) -> bool:
    """Whether an override sets one of some keys of ``executor``."""
    section, _, key = override.partition("=")[0].partition(".")
    return section.strip() == "executor" and key.partition(".")[0].strip() in keys


def _likeness(file: _File) -> dict[str, Any]:
    """Return the keys of ``executor`` by which a rehearsal resembles the executor that the file names.

    A local campaign occupies no more cores than its ``slots``, if they are stated, and looks at its runs more
    often than one on a cluster.
    """
    options, name = _mapping(file.former), _name(file.former)
    alike: dict[str, Any] = {} if file.section.get("template") is None else {"template": None}
    if "poll_interval" not in file.section and name in LONGEST_WAITS:
        alike["poll_interval"] = LONGEST_WAITS[name]
    if name == "local" and "slots" in options and not options.get("oversubscribe"):
        alike["cores"] = options["slots"]
    return alike


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _texts(changes: Mapping[str, Any]) -> list[str]:
    return [f"{key}={json.dumps(value)}" for key, value in changes.items()]


def _best(draft: Campaign, known: Earlier | None) -> tuple[str, str, dict[str, Any]]:
    """Return the source of the truth where none is stated, its words, and the keys of ``executor``."""
    if known is not None:
        return "models", "", {"models": str(known.directory)}
    stated = draft.measure.expected_time
    if stated is not None:
        text = f"measure.expected_time, {stated} s, all of it in call path main"
        return "expected_time", text, {"truth": {"main": stated}}
    expression, words = assumption.run_time(assemble(draft))
    text = f"an assumption, as nothing is known of the run time: {expression} s, all of it in call path main"
    return "assumption", f"{text} ({words})", {"truth": {"main": expression}}


def _words(campaign: Campaign) -> str:
    """Return what runs yield, where the caller or the campaign file says so."""
    options = campaign.executor
    assert isinstance(options, SimulatedOptions)
    if options.dataset is not None:
        return f"measurements replayed from {options.dataset}"
    if options.models is not None:
        former = earlier(Path(options.models), options.callpaths)
        number = len({model.callpath for model in former.models} - {WHOLE_RUN})
        longest = " that take longest" if options.callpaths == number else ""
        paths = f"{count(number, 'call path')}{longest}"
        return f"the models of {count(former.points, 'point')} measured in {former.directory}, {paths}"
    functions = "; ".join(f"{path} = {text} s" for path, text in options.truth.items())
    return f"executor.truth, {functions}"


def _noise(campaign: Campaign) -> str:
    options = campaign.executor
    assert isinstance(options, SimulatedOptions)
    if options.dataset is not None:
        return ""
    if options.models is None:
        return f"; noise of ±{options.noise:g} %"
    measured = earlier(Path(options.models), options.callpaths).noise
    same = measured is not None and options.noise == float(f"{measured:.3g}")
    return f"; noise of ±{options.noise:g} %{', as measured there' if same else ''}"


def _caveats(campaign: Campaign, source: str) -> Iterator[str]:
    """Say what is less certain than it seems: costs by an assumption, counts where only times are known."""
    if source == "assumption":
        yield "costs of an assumed run time are no forecast: state measure.expected_time for one"
    if campaign.measure.effort is not None and source not in ("dataset", "models"):
        blocks = f"10^{math.log10(BLOCKS_PER_SECOND):.0f} basic blocks"
        yield (
            f"effort runs take {COUNTING:g} times as long and count {blocks} per second, without noise: the "
            "best case"
        )
