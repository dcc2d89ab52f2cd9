"""The first draft of a campaign, written, tried with one run, and completed by what that run showed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.campaign import draft as drafts
from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.draft import Draft
from orchestrator.campaign.schema import LARGEST_EXIT_CODE
from orchestrator.control import cautions, execution, planning, session
from orchestrator.control.assembly import Assembly, assemble
from orchestrator.control.attempts import RUNS
from orchestrator.doctor.first_draft import Wanted, first_draft
from orchestrator.doctor.trial_run import one_run, smallest
from orchestrator.errors import CampaignError, OrchestratorError
from orchestrator.executors.attempt.directory import OURS
from orchestrator.executors.attempt.record import read_record
from orchestrator.journal.state import RunState, RunStatus
from orchestrator.launch.failures import last_telling_line, misses_a_file, says_it_failed
from orchestrator.launch.mpi import linked_mpi
from orchestrator.readers.pattern_candidates import times_in
from orchestrator.readers.printed_line import Candidate, printed, tick
from orchestrator.types import FailureClass, Point, Run
from orchestrator.units import count

_PROCESSES = {"p", "np", "nproc", "nprocs", "procs", "processes", "ranks", "nranks", "ntmpi", "cores"}
_RUNS = 60  # that the budget is to pay for, of the largest cores, each
_GROWTH = 10.0  # times as long as the one that was tried
_FEWEST_TICKS = 30  # of what a time is rounded to, that make it a measurement
_MOST = 1000  # core-hours for the one run
_LONGEST = 2**22  # bytes of a text that is searched for times
_DOUBLINGS = 20  # of the budget, until it pays for the first round


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
class _Failure:
    """A run that failed: why, and what it printed and wrote where only its exit code says so."""

    why: str
    outputs: Mapping[str, str]
    exit_code: int = 0


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
    draft, text = first_draft(wanted)
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
        written = _completed_by_a_run(wanted, draft, files, interrupted)
        sizes = cautions.sizes(loader.load(campaign, starts=False))
        return replace(written, notes=(*written.notes, *sizes, *_goal(draft, wanted)))
    except CampaignError:
        for path in files:
            path.unlink(missing_ok=True)
        raise


def _goal(draft: Draft, wanted: Wanted) -> list[str]:
    """Say what the campaign is for, where another one may be wanted: its parameters look like options."""
    if draft.tuning or wanted.evaluation_point or not draft.of_options:
        return []
    point = draft.evaluation_point
    if not point:
        return []
    return [
        f"the models are to hold at {Point.of(point)}, beyond what is measured; if the fastest "
        "configuration is wanted instead: init --goal tuning"
    ]


def _is_beyond(draft: Draft, path: Path) -> bool:
    """Tell whether this machine has too few cores for a run at the evaluation point of a draft."""
    chosen = loader.load(path, starts=False)
    point, spec = chosen.evaluation_point, chosen.application_spec
    if draft.executor != "local" or point is None:
        return False
    values = {**point.as_dict(), **chosen.settings}
    return spec.check(values) is None and spec.ranks(values) * spec.threads(values) > draft.slots


def _completed_by_a_run(
    wanted: Wanted, draft: Draft, files: tuple[Path, ...], interrupted: Callable[[], bool]
) -> Written:
    campaign = files[-1]
    notes = (*_of_copies(draft), *_of_ranks(draft))
    variable = draft.executable.strip("${}")
    if draft.executable.startswith("$") and not os.environ.get(variable):
        why = f"no run was tried: the program is not known. Set {variable}, or write its path into {campaign}"
        return Written(files=files, points=_size(loader.load(campaign, starts=False)), untried=why)
    chosen = _affordable(draft, campaign)
    if not wanted.tries:
        return Written(files=files, points=_size(chosen), untried="no run was tried, as asked", notes=notes)
    # One run may take its whole limit, whatever the budget of the campaign.
    trial = _tried(loader.load(campaign, [f"stop.budget={_MOST} core-hours"]), draft, interrupted)
    if isinstance(trial, _Failure):
        if draft.application == "generic" and (found := times_in(trial.outputs)):
            chosen = _affordable(replace(draft, output=found), campaign)
            notes += (_in_spite_of(found, trial.exit_code),)
        return Written(files=files, points=_size(chosen), trouble=trial.why, notes=notes)
    built = assemble(chosen)
    draft = _completed(draft, trial, built)
    doubt = _doubt(draft, trial) if draft.application == "generic" else ""
    if doubt:
        notes += (doubt,)
    else:
        shutil.rmtree(trial.campaign, ignore_errors=True)
    if draft.application == "generic":
        longer = _of_longer(draft.output or (), trial.seconds * built.cores(smallest(built)))
        notes += (*_of_inputs(draft, trial), *(longer or _of_digits(draft.output or ())))
    return Written(files=files, points=_size(_affordable(draft, campaign)), tried=draft.tried, notes=notes)


def _in_spite_of(candidates: Sequence[Candidate], exit_code: int) -> str:
    return (
        f"the run that failed {_yield(tuple(candidates), 0)}; if it did its work all the same, write "
        f"exit_codes: [0, {exit_code}] below measure, and what only such runs print as success"
    )


def _of_copies(draft: Draft) -> tuple[str, ...]:
    if not draft.copied:
        return ()
    names = ", ".join(Path(path).name for path in draft.copied)
    return (f"every run has a directory of its own: {draft.template} copies {names} there",)


def _of_ranks(draft: Draft) -> tuple[str, ...]:
    """Say where an MPI program is started with one rank: its command did not say how many."""
    if draft.application != "generic" or draft.ranks != "1":
        return ()
    if linked_mpi(draft.executable) == "unknown":
        return _of_processes(draft)
    return (
        f"{Path(draft.executable).name} is linked with MPI, and every run has one rank: to vary the ranks, "
        "write 'mpirun -np {p}' in front of the command, or their number as program.ranks",
    )


def _of_processes(draft: Draft) -> tuple[str, ...]:
    """Say where what looks like a number of processes that the program starts itself has no cores."""
    counted = set(re.findall(r"\w+", draft.threads))
    names = [name for name in draft.varied if name.lower() in _PROCESSES and name not in counted]
    if not names:
        return ()
    cores = " * ".join([*names, *([draft.threads] if draft.threads != "1" else [])])
    return (
        f"{' and '.join(names)} counts for no cores, and all processes of a run would share those of its "
        f"threads ({draft.threads}): if the program starts so many itself, write program.threads: {cores}, "
        f"and 'export OMP_NUM_THREADS={{{{{draft.threads}}}}}' into {draft.template} where it has such "
        "threads, too",
    )


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


def _of_longer(output: Sequence[Candidate], longest: float) -> tuple[str, ...]:
    """Say where the time of the run is longer than the run: it is in another unit, or no time."""
    if not output or output[0].value - tick(output[0]) <= longest:
        return ()
    return (
        f"{output[0].callpath} would be {output[0].value:.3g} s, longer than the run that printed it: if it "
        "has another unit, correct its scale in program.output; if it is something else, remove it",
    )


def _of_digits(output: Sequence[Candidate]) -> tuple[str, ...]:
    """Say where the smallest run is too short for the digits that the time of the run is printed with."""
    if output and not any(item.value for item in output):
        return (
            f"every time is 0, as in {output[0].line!r}: the program's timers are not compiled in, or too "
            "coarse for this run; choose values at which it takes longer, or measure.profiler: time",
        )
    if not output or not (last := tick(output[0])) or output[0].value >= _FEWEST_TICKS * last:
        return ()
    return (
        f"{output[0].callpath} is printed as {printed(output[0])}, so it is known to {last:g} s: choose "
        "values at which it takes longer, or read what is printed with more digits, such as a rate",
    )


def _inputs(draft: Draft) -> str:
    """Say where a program finds its input files, which were beside it when it was started by hand."""
    ways = [f"copy them in {draft.template}"] if draft.template else []
    ways += ["write them by program.files"] if draft.application == "generic" else []
    other = f", {' or '.join(ways)}" if ways else ""
    return f"every run has a directory of its own: give files that the program reads by absolute paths{other}"


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


def _tried(chosen: Campaign, draft: Draft, interrupted: Callable[[], bool]) -> _Trial | _Failure:
    """Run the smallest point once; return what it showed, or why not (with a hint, if a file was missing)."""
    point = smallest(assemble(chosen))
    folder = Path(tempfile.mkdtemp(prefix=f"{chosen.name}.try-", dir=Path.cwd()))
    hooks = session.Hooks(interrupted=interrupted, cancel_on_interrupt=True)
    try:
        state = session.run(one_run(chosen, point), folder, hooks)
    except OrchestratorError as error:
        if not any(folder.glob(f"{RUNS}/*")):
            shutil.rmtree(folder, ignore_errors=True)
        return _Failure(why=f"the run at {point} could not be made: {error}", outputs={})
    run = Run(point)
    item = state.runs.get(run, RunState())
    if item.status is not RunStatus.MEASURED:
        reason = item.reason or (state.stopped.detail if state.stopped else "interrupted")
        where = folder / RUNS / run.id
        failed = FailureClass.APPLICATION in item.failures
        missing = failed and misses_a_file(_printed(where))
        why = f"the run at {point} failed: {reason}; see {where}{missing * f'; {_inputs(draft)}'}"
        last = where / f"attempt-{item.attempts}"
        record = read_record(last) if failed else None
        if record is None or record.exit_code is None or record.exit_code > LARGEST_EXIT_CODE:
            return _Failure(why=why, outputs={})
        return _Failure(why=why, outputs=_outputs(last, draft.copied), exit_code=record.exit_code)
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


def _completed(draft: Draft, trial: _Trial, built: Assembly) -> Draft:
    """Return a draft with the output patterns that a run suggests, and a budget after its duration."""
    cores = max(built.cores(point) for point in built.campaign.space)
    budget = _RUNS * _GROWTH * trial.seconds * cores / 3600
    ran_on = built.cores(smallest(built))
    output = None if draft.output is None else times_in(trial.outputs, trial.seconds, ran_on)
    tried = f"{trial.text} and {_yield(output, trial.values)}"
    return replace(
        draft,
        budget=max(float(f"{budget:.2g}"), draft.budget),
        output=output,
        tried=tried,
        seconds=trial.seconds,
    )


def _yield(output: tuple[Candidate, ...] | None, values: int) -> str:
    """Say what a run yielded: to the reader of its application, or times that were found in its output."""
    if output is None:
        return f"yielded {count(values, 'value')}"
    if not output:
        return "printed no time that was recognised"
    where = "" if output[0].file == "stdout" else f" in {output[0].file}"
    names = ", ".join(item.callpath for item in output[: drafts.MOST_READ])
    shorter = len(output) - drafts.MOST_READ
    rest = f" and {shorter} shorter, which are comments under program.output" if shorter > 0 else ""
    return f"printed {count(len(output), 'time')}{where}: {names}{rest}"
