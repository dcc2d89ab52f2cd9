"""First drafts of a campaign: written, tried with one run, and completed by what that run showed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import registry
from orchestrator.campaign import draft as drafts
from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.draft import Command, Draft
from orchestrator.campaign.paths import find_executable
from orchestrator.control import execution, planning, session
from orchestrator.control.assembly import assemble
from orchestrator.control.attempts import RUNS
from orchestrator.doctor import slurm
from orchestrator.doctor.probe import here
from orchestrator.doctor.trial_run import one_run, smallest
from orchestrator.errors import CampaignError, OrchestratorError
from orchestrator.executors.attempt.directory import OURS
from orchestrator.executors.slurm import partitions
from orchestrator.executors.slurm.commands import environment
from orchestrator.journal.state import RunState, RunStatus
from orchestrator.launch.failures import last_telling_line, misses_a_file, says_it_failed
from orchestrator.launch.script import template_of
from orchestrator.readers.pattern_candidates import Candidate, times_in
from orchestrator.readers.stdout import text_of
from orchestrator.types import Application, FailureClass, Point, Run, Value
from orchestrator.units import count, did_you_mean

_RUNS = 60  # that the budget is to pay for, of the largest cores, each
_GROWTH = 10.0  # times as long as the one that was tried
_LEAST = {"local": 0.05, "slurm": 1.0}  # core-hours
_MOST = 1000  # core-hours for the one run
_LONGEST = 2**22  # bytes of a text that is searched for times
_INTERPRETERS = re.compile(r"python[\d.]*|julia|Rscript|perl|ruby|lua|octave|bash|sh")
_DOUBLINGS = 20  # of the budget, until it pays for the first round


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the user asked for; ``values`` by parameter, the last of each for the evaluation point.

    ``evaluation_point``: coordinates that are to be others.
    """

    application: str
    command: str
    executable: str
    name: str
    executor: str
    values: Mapping[str, tuple[Value, ...]]
    evaluation_point: Mapping[str, Value]
    directory: Path
    tries: bool


@dataclass(frozen=True, kw_only=True)
class Written:
    """What was written, and what a run showed.

    ``trouble`` says why the run failed, ``untried`` why there was none, ``notes`` what to look at.
    """

    files: tuple[Path, ...]
    points: int
    tried: str = ""
    notes: tuple[str, ...] = ()
    trouble: str = ""
    untried: str = ""


@dataclass(frozen=True, kw_only=True)
class _Trial:
    seconds: float
    text: str
    values: int
    outputs: Mapping[str, str]
    campaign: Path  # the directory of the campaign of this one run
    where: Path  # that of the run itself

    @property
    def printed(self) -> dict[str, str]:
        """What it printed, by stream."""
        return {name: self.outputs[name] for name in ("stderr", "stdout")}


def write(wanted: Wanted, interrupted: Callable[[], bool]) -> Written:
    """Write a template and a campaign; try one run of it, and complete the campaign.

    Raises
    ------
    CampaignError
        If nothing was written: for an unknown application, a bad command or value, and for files that exist.
    """
    draft, text = _of_command(wanted) if wanted.command else _of_application(wanted)
    _check_varies(draft, wanted)
    draft = _with_nodes(_evaluated(draft, wanted.evaluation_point))
    campaign = wanted.directory / f"{draft.name}.yaml"
    template = wanted.directory / draft.template if draft.template else None
    for path in (campaign, *([template] if template else [])):
        if path.exists():
            raise CampaignError(f"{path} exists: remove it, or give another --name")
    wanted.directory.mkdir(parents=True, exist_ok=True)
    files = (*([template] if template else []), campaign)
    try:
        if template is not None:
            template.write_text(text, encoding="utf-8")
        campaign.write_text(drafts.campaign_of(draft), encoding="utf-8")
        draft = replace(draft, beyond=_is_beyond(draft, campaign))
        campaign.write_text(drafts.campaign_of(draft), encoding="utf-8")
        return _completed_by_a_run(wanted, draft, files, interrupted)
    except CampaignError:
        for path in files:
            path.unlink(missing_ok=True)
        raise


def _is_beyond(draft: Draft, path: Path) -> bool:
    """Tell whether this machine has too few cores for a run at the evaluation point of a draft."""
    chosen = loader.load(path, starts=False)
    point, spec = chosen.evaluation_point, chosen.application_spec
    if draft.executor != "local" or point is None:
        return False
    values = {**point.as_dict(), **chosen.settings}
    return spec.check(values) is None and spec.ranks(values) * spec.threads(values) > draft.slots


def _check_varies(draft: Draft, wanted: Wanted) -> None:
    """Refuse options that leave nothing to vary."""
    single = [name for name, values in wanted.values.items() if len(values) == 1]
    if single and all(len(values) == 1 for values in draft.values.values()):
        name = single[0]
        raise CampaignError(
            f"--values {name}={wanted.values[name][0]}: one value makes {name} a setting, and nothing is "
            f"left to vary; give several, like --values {name}=1,2,4"
        )


def _completed_by_a_run(
    wanted: Wanted, draft: Draft, files: tuple[Path, ...], interrupted: Callable[[], bool]
) -> Written:
    campaign = files[-1]
    notes = _of_copies(draft)
    variable = draft.executable.strip("${}")
    if draft.executable.startswith("$") and not os.environ.get(variable):
        why = f"no run was tried: the program is not known. Set {variable}, or write its path into {campaign}"
        return Written(files=files, points=_size(loader.load(campaign, starts=False)), untried=why)
    chosen = _affordable(draft, campaign)
    if not wanted.tries:
        return Written(files=files, points=_size(chosen), untried="no run was tried, as asked", notes=notes)
    # One run may take its whole limit, whatever the budget of the campaign.
    trial = _tried(loader.load(campaign, [f"stop.budget={_MOST} core-hours"]), draft, interrupted)
    if isinstance(trial, str):
        return Written(files=files, points=_size(chosen), trouble=trial, notes=notes)
    draft = _completed(draft, trial, chosen)
    doubt = _doubt(draft, trial) if draft.application == "generic" else ""
    if doubt:
        notes += (doubt,)
    else:
        shutil.rmtree(trial.campaign, ignore_errors=True)
    if draft.application == "generic":
        notes += _of_inputs(draft, trial)
    return Written(files=files, points=_size(_affordable(draft, campaign)), tried=draft.tried, notes=notes)


def _of_copies(draft: Draft) -> tuple[str, ...]:
    if not draft.copied:
        return ()
    names = ", ".join(Path(path).name for path in draft.copied)
    return (f"every run has a directory of its own: {draft.template} copies {names} there",)


def _doubt(draft: Draft, trial: _Trial) -> str:
    """Say what makes doubtful that a run did its work, though its exit code is 0; empty if nothing does."""
    failure = says_it_failed(trial.printed.values())
    if not failure and draft.output != ():
        return ""
    last = last_telling_line(trial.printed)
    line = failure or (last[1] if last else "")
    said = f"it printed: {line}; " if line else ""
    return (
        f"check that this run did its work: {said}a regular expression as measure.success or "
        f"measure.failure tells runs that did from others; see {trial.where}"
    )


def _of_inputs(draft: Draft, trial: _Trial) -> tuple[str, ...]:
    """Say which files a run may have missed."""
    notes = []
    if draft.output == () and misses_a_file(trial.printed.values()):
        notes.append(_inputs(draft))
    here = {path.name for path in Path.cwd().iterdir()} - {Path(path).name for path in draft.copied}
    if both := sorted(here & trial.outputs.keys() - trial.printed.keys()):
        notes.append(
            f"the run wrote {', '.join(both)}, which stands here, too: a program that should have read the "
            f"one here did not see it; {_inputs(draft)}"
        )
    return tuple(notes)


def _inputs(draft: Draft) -> str:
    """Say where a program finds its input files, which were beside it when it was started by hand."""
    ways = [f"copy them in {draft.template}"] if draft.template else []
    ways += ["write them by program.files"] if draft.application == "generic" else []
    other = f", {' or '.join(ways)}" if ways else ""
    return f"every run has a directory of its own: give files that the program reads by absolute paths{other}"


def _of_application(wanted: Wanted) -> tuple[Draft, str]:
    names = registry.names("application")
    if wanted.application not in names:
        raise CampaignError(
            f"unknown application {wanted.application!r}: {did_you_mean(wanted.application, names)}"
        )
    spec: Application = registry.load("application", wanted.application)
    template = template_of(spec.name)
    values = _beginning(spec, wanted.values)
    if missing := [name for name in spec.required if name not in values]:
        raise CampaignError(
            f"{spec.name} needs values of {', '.join(missing)}: give --values {missing[0]}=1,2,4"
        )
    if unknown := [name for name in wanted.values if name not in spec.parameters]:
        raise CampaignError(
            f"{spec.name} has no parameter {unknown[0]!r}: {did_you_mean(unknown[0], spec.parameters)}"
        )
    name = wanted.name or _free(spec.name, wanted.directory, wanted.executable)
    cores, executor = _machine(wanted)
    draft = Draft(
        name=name,
        application=spec.name,
        executable=_program(wanted.executable) if wanted.executable else f"${{{_variable(spec.name)}}}",
        template="" if template is None else f"{name}.sh",
        values=values,
        meanings=spec.parameters,
        further=[parameter for parameter in spec.parameters if parameter not in values],
        executor=executor,
        slots=cores,
        budget=_LEAST[executor],
    )
    text = "" if template is None else Path(template.source).read_text(encoding="utf-8")
    return (_on_this_machine(draft, spec, wanted) if executor == "local" else draft), text


def _evaluated(draft: Draft, point: Mapping[str, Value]) -> Draft:
    """Return a draft with another evaluation point."""
    varied = [name for name, values in draft.values.items() if len(values) > 1]
    if unknown := [name for name in point if name not in varied]:
        hint = did_you_mean(unknown[0], varied)
        raise CampaignError(f"--evaluation-point {unknown[0]}: is none of the parameters that vary: {hint}")
    chosen = {name: (*draft.values[name][:-1], value) for name, value in point.items()}
    return replace(draft, values={**draft.values, **chosen})


def _on_this_machine(draft: Draft, spec: Application, wanted: Wanted) -> Draft:
    """Return a draft with the points that this machine can hold; for Slurm, where it can hold none."""
    smallest = _smallest(draft.values)
    least = spec.ranks(smallest) * spec.threads(smallest)
    if least <= draft.slots:
        return drafts.fitting(draft, spec, draft.slots)
    if wanted.executor:
        raise CampaignError(
            f"{spec.name} needs at least {least} cores at {Point.of(smallest)}, and this machine has "
            f"{draft.slots}: give --executor slurm, or other --values"
        )
    return replace(draft, executor="slurm", budget=_LEAST["slurm"])


def _beginning(spec: Application, given: Mapping[str, tuple[Value, ...]]) -> dict[str, tuple[Value, ...]]:
    """Return the given values, and those of the application that do not contradict them.

    A size may be given in several ways, of which one is set: ``nx``, ``ny`` and ``nz`` instead of ``s``.
    """
    values = {**spec.start, **given}
    if spec.check(_smallest(values)) is None:
        return values
    for name in spec.start.keys() - given.keys():
        fewer = {key: item for key, item in values.items() if key != name}
        if spec.check(_smallest(fewer)) is None:
            return fewer
    return values


def _smallest(values: Mapping[str, tuple[Value, ...]]) -> dict[str, Value]:
    return {name: items[0] for name, items in values.items()}


def _of_command(wanted: Wanted) -> tuple[Draft, str]:
    command = drafts.parse_command(wanted.command, wanted.values)
    program = _program(wanted.executable or command.program)
    command, script = _with_files(command)
    command = _with_parameters_of_files(command, wanted.values)
    name = wanted.name or _free(_name(script or program), wanted.directory, script or program)
    cores, executor = _machine(wanted)
    values = {**drafts.guessed_values(command, cores), **wanted.values}
    draft = Draft(
        name=name,
        application="generic",
        executable=program,
        template=f"{name}.sh",
        values=values,
        meanings=_guessed(command, wanted.values),
        ranks=command.ranks,
        output=(),
        executor=executor,
        slots=cores,
        budget=_LEAST[executor],
        copied=command.copied,
    )
    return draft, drafts.template_of(command, name)


def _with_files(command: Command) -> tuple[Command, str]:
    """Return a command that finds the files which it names in the directory of any run, and its script.

    The script of an interpreter stays beside what it imports: it gets its absolute path. Other files are
    copied: what was written by an earlier run must not be written by all.
    """
    interprets = bool(_INTERPRETERS.fullmatch(Path(command.program).name))
    words, copied, script = [], dict[str, str](), ""
    for word in command.arguments:
        option, equals, value = word.rpartition("=")
        path, whole = Path(value), str(Path(value).resolve())
        if path.is_absolute() or not path.is_file():
            words.append(word)
        elif interprets and not script and not equals:
            script = whole
            words.append(script)
        elif copied.setdefault(path.name, whole) == whole:
            words.append(f"{option}{equals}{path.name}")
        else:  # two of one name
            words.append(f"{option}{equals}{whole}")
    return replace(command, arguments=tuple(words), copied=tuple(copied.values())), script


def _with_parameters_of_files(command: Command, given: Iterable[str]) -> Command:
    """Return a command whose files get the given values where ``{NAME}`` stands in them."""
    others = [name for name in given if name not in command.parameters]
    texts = {path: text_of(Path(path)) for path in command.copied} if others else {}
    within = {path: tuple(name for name in given if f"{{{name}}}" in text) for path, text in texts.items()}
    for name in others:
        if not any(name in names for names in within.values()):
            files = ", ".join(Path(path).name for path in command.copied)
            has = f"the command has only {', '.join(command.parameters)}" if command.parameters else ""
            has = has or "the command has no parameters"
            where = f"{{{name}}} stands in none of its files ({files})" if files else "it names no file"
            raise CampaignError(
                f"--values {name}: {has}, and {where}; write {{{name}}} where its value belongs"
            )
    return replace(command, parameters=(*command.parameters, *others), within=within)


def _guessed(command: Command, given: Mapping[str, object]) -> dict[str, str]:
    return {
        name: "" if name in given else "a guess: give values at which a run takes seconds"
        for name in command.parameters
    }


def _program(text: str) -> str:
    """Return the path of a program; raise ``CampaignError`` where there is none."""
    try:
        return find_executable(text, Path.cwd())
    except ValueError as error:
        raise CampaignError(f"the program {error}") from None


def _name(program: str) -> str:
    stem = Path(program).name.partition(".")[0]
    kept = "".join(character if character.isalnum() or character in "-_" else "-" for character in stem)
    return kept.strip("-_") or "program"


def _free(name: str, directory: Path, program: str) -> str:
    """Return a name that makes no file or folder of the campaign collide with the program."""
    taken = [directory.absolute() / name, directory.absolute() / f"{name}.sh"]
    return f"{name}-scaling" if Path(program).absolute() in taken else name


def _variable(application: str) -> str:
    return "".join(character if character.isalnum() else "_" for character in application).upper()


def _machine(wanted: Wanted) -> tuple[int, str]:
    """Return the cores of this machine, and the executor to use: Slurm where it answers."""
    cores = len(os.sched_getaffinity(0))
    if wanted.executor:
        return cores, wanted.executor
    _, cluster = slurm.find(here(environment()))
    return cores, "local" if cluster is None else "slurm"


def _with_nodes(draft: Draft) -> Draft:
    """Return a draft for Slurm with the cores of the nodes of its default partition."""
    found = partitions.meant(partitions.partitions(), None) if draft.executor == "slurm" else []
    if not found or not found[0].cores:
        return draft
    return replace(draft, partition=found[0].name, cores_per_node=found[0].cores[0])


def _size(chosen: Campaign) -> int:
    return sum(1 for _ in chosen.space)


def _affordable(draft: Draft, path: Path) -> Campaign:
    """Write a draft with a budget that pays for its first round; return its campaign."""
    for _ in range(_DOUBLINGS):
        path.write_text(drafts.campaign_of(draft), encoding="utf-8")
        chosen = loader.load(path)
        try:
            built = assemble(chosen)
            planning.first_round(built, execution.executor(chosen, Path(chosen.name), 0.0))
        except CampaignError as error:
            if "budget" not in str(error):
                raise
            draft = replace(draft, budget=2 * draft.budget)
        else:
            return chosen
    raise CampaignError(f"{path}: no budget was found that pays for the first round: set stop.budget")


def _tried(chosen: Campaign, draft: Draft, interrupted: Callable[[], bool]) -> _Trial | str:
    """Run the smallest point once; return what it showed, or why not (with a hint, if a file was missing)."""
    point = smallest(assemble(chosen))
    folder = Path(tempfile.mkdtemp(prefix=f"{chosen.name}.try-", dir=Path.cwd()))
    hooks = session.Hooks(interrupted=interrupted, cancel_on_interrupt=True)
    try:
        state = session.run(one_run(chosen, point), folder, hooks)
    except OrchestratorError as error:
        if not any(folder.glob(f"{RUNS}/*")):
            shutil.rmtree(folder, ignore_errors=True)
        return f"the run at {point} could not be made: {error}"
    run = Run(point)
    item = state.runs.get(run, RunState())
    if item.status is not RunStatus.MEASURED:
        reason = item.reason or (state.stopped.detail if state.stopped else "interrupted")
        where = folder / RUNS / run.id
        missing = FailureClass.APPLICATION in item.failures and misses_a_file(_printed(where))
        return f"the run at {point} failed: {reason}; see {where}{missing * f'; {_inputs(draft)}'}"
    where = folder / RUNS / run.id / f"attempt-{item.accepted}"
    values = sum(map(len, item.samples.values()))
    text = f"one run at {point} took {item.elapsed:.3g} s"
    outputs = _outputs(where, draft.copied)
    return _Trial(
        seconds=item.elapsed, text=text, values=values, outputs=outputs, campaign=folder, where=where
    )


def _outputs(attempt: Path, copied: Sequence[str]) -> dict[str, str]:
    """Return the texts that a run printed and wrote, by name."""
    names = [path for path in sorted(attempt.iterdir()) if path.name not in OURS]
    texts = {path.name: text for path in names if (text := _text(path)) is not None}
    for path in map(Path, copied):
        if texts.get(path.name) == _text(path):
            texts.pop(path.name, None)
    return {name: _text(attempt / name) or "" for name in ("stdout", "stderr")} | texts


def _text(path: Path) -> str | None:
    """Return the text of a file; None of one that is none, or too long for people to read."""
    if not path.is_file() or path.stat().st_size > _LONGEST:
        return None
    data = path.read_bytes()
    return None if b"\0" in data else data.decode(errors="replace")


def _printed(run: Path) -> list[str]:
    """Return what the attempts at a run printed."""
    return [path.read_text(errors="replace") for path in sorted(run.glob("attempt-*/std*"))]


def _completed(draft: Draft, trial: _Trial, chosen: Campaign) -> Draft:
    """Return a draft with the output patterns that a run suggests, and a budget after its duration."""
    built = assemble(chosen)
    cores = max(built.cores(point) for point in chosen.space)
    budget = _RUNS * _GROWTH * trial.seconds * cores / 3600
    output = None if draft.output is None else times_in(trial.outputs, trial.seconds)
    tried = f"{trial.text} and {_yield(output, trial.values)}"
    return replace(draft, budget=max(float(f"{budget:.2g}"), draft.budget), output=output, tried=tried)


def _yield(output: tuple[Candidate, ...] | None, values: int) -> str:
    """Say what a run yielded: to the reader of its application, or times that were found in its output."""
    if output is None:
        return f"yielded {count(values, 'value')}"
    if not output:
        return "printed no time that was recognised"
    where = "" if output[0].file == "stdout" else f" in {output[0].file}"
    return f"printed {count(len(output), 'time')}{where}: {', '.join(item.callpath for item in output)}"
