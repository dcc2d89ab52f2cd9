"""Who failed: signs of Slurm, of a launcher, of a node or of a file system in what an attempt printed. Pure.

An attempt that ends with an error is the application's failure only where nothing says that something else
failed. What says so must be words of the launcher, of Slurm's daemons, of the shell that starts the program,
or an error of the operating system that no program invents. A program may print "connection timed out"
itself.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.units import without_controls

# Who speaks, at the beginning of a line. srun may put the rank and a colon before it (--label).
_SLURM = (
    r"^(?:\d+: )?(?:srun|slurmstepd|slurmd|sbcast|slurm_load_\w+)(?:-[\w.-]+)?(?:\[[^\]]*\])?: "
    r"(?:(?:error|fatal): )?"
)
_SHELL = (
    r"^(?:attempt: cannot start |\S*run\.sh: |\S*(?:bash|sh|dash): |slurmstepd: error: execve|srun: error: )"
)

# What a shell, srun or a daemon says of a file that it cannot start or read. "Connection timed out" is an
# error of network file systems. A program that is being written has a busy file.
_BROKEN_FILES = (
    r"(?:Input/output error|Remote I/O error|Stale (?:NFS )?file handle|No space left on device"
    r"|Disk quota exceeded|Transport endpoint is not connected|Host is down|Connection timed out"
    r"|Text file busy)"
)


@dataclass(frozen=True, slots=True)
class Sign:
    """A pattern of lines that Slurm, a launcher or the operating system prints."""

    name: str  # what has failed, in words
    pattern: re.Pattern[str]  # to search in the lines
    # Whether it outweighs a sign of the application's own failure. Slurm cancels the other processes of a
    # step, and communication breaks, because of a program that crashed, too.
    decisive: bool


def _sign(name: str, pattern: str, decisive: bool = True) -> Sign:
    return Sign(name, re.compile(pattern, re.MULTILINE), decisive)


SIGNS = (
    _sign("Slurm's controller did not answer", _SLURM + r".*Unable to contact slurm controller"),
    _sign(
        "Slurm did not start the job step",
        # Not where the script asks for more than the job has: another attempt would end the same way.
        _SLURM + r"Unable to create (?:job )?step (?!.*(?:More processors requested|Memory required by task"
        r"|Requested node configuration|Invalid (?:generic|Trackable|account|partition|qos)))",
    ),
    _sign("Slurm did not confirm the job", _SLURM + r"Unable to confirm allocation"),
    _sign("Slurm did not know the job", _SLURM + r".*(?:Expired or invalid job|Invalid job id specified)"),
    _sign("Slurm could not start a task", _SLURM + r"tasks? [\d,-]+ launch failed: ", decisive=False),
    _sign(
        "Slurm did not start all tasks",
        _SLURM + r".*(?:Task launch for .* failed on node|timeout waiting for task launch"
        r"|Application launch failed|aborted before step completely launched)",
        decisive=False,
    ),
    _sign(
        "the step could not begin",
        _SLURM + r"Job \d+ step creation (?:still|temporarily) disabled",
        decisive=False,
    ),
    _sign(
        "communication of Slurm failed",
        _SLURM + r".*(?:slurm_(?:receive|send)_\w*|Socket timed out|Zero Bytes were transmitted"
        r"|Communication connection failure|Communication shutdown failure|Unexpected message received"
        r"|Connection (?:refused|timed out|reset by peer)|No route to host|Transport endpoint"
        r"|Protocol authentication error|Munge (?:encode|decode) failed|Invalid job credential)",
        decisive=False,
    ),
    _sign("a node failed", _SLURM + r".*(?:Node failure on|DUE TO NODE FAILURE)"),
    _sign("the job was preempted", _SLURM + r"\*\*\* .*CANCELLED AT .*DUE TO PREEMPTION"),
    _sign("the job was requeued", _SLURM + r"\*\*\* .*CANCELLED AT .*DUE TO JOB REQUEUE"),
    _sign("Slurm ended the step", _SLURM + r"\*\*\* .*CANCELLED AT", decisive=False),
    _sign(
        "a daemon of the launcher was lost",
        r"^(?:An? )?(?:ORTE|PRTE) (?:has lost communication with|daemon has unexpectedly failed)"
        r"|^A daemon \(pid \d+\) died unexpectedly"
        r"|^ORTE was unable to reliably start one or more daemons"
        r"|^An? (?:ORTE|PRTE) daemon has unexpectedly failed",
    ),
    # Launchers that begin and end at the same time remove the folder that they share from under each other.
    _sign("the launcher could not make its folder", r"^[ \t]*(?:orte|prte)_session_dir failed[ \t]*$"),
    _sign(
        "a proxy of the launcher was lost",
        r"^\[(?:mpiexec|proxy:[\d:]+)@[^\]]+\] .*(?:assert \(!closed\) failed|unable to connect to proxy"
        r"|unable to connect from|error waiting for event|launcher returned error waiting for completion)",
        decisive=False,
    ),
    _sign("a file could not be read", _SHELL + rf".*(?:: |\] ){_BROKEN_FILES}"),
    _sign(
        "the file system failed",
        r": (?:Stale (?:NFS )?file handle|No space left on device|Disk quota exceeded)\s*$",
        decisive=False,
    ),
)
"""In this order; the first one that is found names the reason."""

# A program that crashed, exited with an error, or ended its own MPI job.
_OWN = re.compile(
    _SLURM + r"\S+: tasks? [\d,-]+: (?:Exited with exit code [1-9]|Segmentation fault|Aborted|Bus error"
    r"|Floating point exception|Illegal instruction|Out Of Memory)"
    r"|MPI_ABORT was invoked|application called MPI_Abort|^Abort\(-?\d+\) on node"
    r"|BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES"
    r"|exited on signal (?:4|6|8|11)\b|Segmentation fault",
    re.MULTILINE,
)


# What launchers print after a program has said what is wrong, if it said anything, and parting words.
_BANNER = re.compile(
    r"Primary job\s+terminated normally, but \d+ process"
    r"|a non-zero exit code\.+ Per user-direction, the job has been aborted"
    r"|\S+ (?:has )?detected that one or more processes exited with non-zero status"
    r"|the job to be terminated\. The first process to do so was:"
    r"|(?:Process name|Exit code|Proc|Errorcode):"
    r"|MPI_ABORT was invoked on rank|with errorcode -?\d+\."
    r"|NOTE: invoking MPI_ABORT causes|You may or may not see output from other processes"
    r"|exactly when Open MPI kills them"
    # Open MPI could not print its message, as the processes had ended.
    r"|\[\S+:\d+\] \[\[\d+,\d+\],\d+\] ORTE_ERROR_LOG: .* in file \S*show_help\.c"
    r"|\[\S+:\d+\] (?:\d+ more process(?:es)? ha(?:s|ve) sent help message|Set MCA parameter)"
    r"|=\s+(?:BAD TERMINATION|(?:RANK \d+ )?PID \d+ RUNNING AT|EXIT CODE:|KILLED BY SIGNAL:|CLEANING UP"
    r"|YOU CAN IGNORE)"
    r"|YOUR APPLICATION TERMINATED WITH THE EXIT STRING|This typically refers to a problem with your app"
    r"|Please see the FAQ page for debugging suggestions"
    r"|(?:\d+: )?srun: (?:launch/slurm: \w+: )?(?:(?:Force )?Terminat(?:ing|ed) |Job step aborted: )"
    r"|(?:\d+: )?srun: error: \S+: tasks? [\d,-]+: Exited with exit code"
    r"|slurmstepd(?:-[\w.-]+)?: error: \*\*\* STEP \S+ ON \S+ CANCELLED AT \S+ \*\*\*"
    r"|srun: cluster configuration lacks support for cpu binding|cpu-bind\S*="
    r"|(?i:exit|exiting|quitting|aborting|terminating|stopping)(?i: (?:now|(?:the )?(?:program|run)))?\W*$"
    r"|For (?:more|further) (?:information|details)\b|(?:web)?site at https?:"
)
# What Open MPI explains at length of a program that ended without MPI_Finalize, as `stop 1` of Fortran does.
_IMPROPER = re.compile(
    r"^\S+ has exited due to process rank \d+ with PID \d+ on\s.*?(?=^-{20,}$|\Z)", re.MULTILINE | re.DOTALL
)
# A line above what is wrong: `Fatal error:`, `--> FOAM FATAL IO ERROR:`, `Error in user input:`.
_HEADING = re.compile(
    r"^[^\w\n]*(?:(?:[A-Z]+ )?(?i:fatal (?:\w+ )?error)|(?i:error)(?: in [a-z ]{1,30})?) ?:[ ]*$",
    re.MULTILINE,
)
_RANK = re.compile(r"^\[\d+\] ?", re.MULTILINE)  # before every line of a rank, in some programs
# What launchers say of processes that were ended from outside: at a time limit nothing new.
_ENDED = re.compile(
    r"(?:\d+: )?srun: error: \S+: tasks? [\d,-]+: (?:Killed|Terminated)$"
    r"|\S+ noticed that process rank .* exited on signal (?:9|15) "
)
_SAYS = re.compile(r"[^\W_]")  # a line of dashes says nothing
_NO_FILE = re.compile(
    r"no such file|file.* not found|not found:.*[./]|does not exist|FileNotFound"
    r"|(?:can(?:no|'| no)t|could(?: not|n't)|unable to|failed to) (?:open|find|read|locate)"
    r"|error (?:open|find|locat)",  # an error in reading may be one in what is there
    re.IGNORECASE,
)
# Of what is there in numbers, an error, its tolerance or a count of failed tests, a program only reports.
_FAILED = re.compile(
    r"\bFATAL\b|^\W*(?i:error)\b(?!\W*(?i:tol|(?:(?:is|was|of|norm)\b\W*)*[\d.]))|\bFAILED\b(?!\W*[\d.])"
    r"|\bNOT CONVERGED\b",
    re.MULTILINE,
)
# A message of a failure has one of these; an output without any, such as times of GNU time, has no reason.
_TROUBLE = re.compile(
    r"error|fail|fault|fatal|abort|exception|trace|kill|signal|cannot|can't|invalid|denied|unknown|missing"
    r"|\b(?:no|not|un\w+)\b",
    re.IGNORECASE,
)
_OF_LOADER = re.compile(r"shared (?:object|librar)|command not found|execvp?\b|cannot start", re.IGNORECASE)

# The job itself may end in good order after one of its steps was out of memory.
_MEMORY = re.compile(
    _SLURM + r"(?:Detected \d+ oom[-_ ]kill event|\S+: tasks? [\d,-]+: Out Of Memory)", re.MULTILINE
)


def sign_of_memory(texts: Iterable[str]) -> str:
    """Return the line in which Slurm says that a step used too much memory; empty without one."""
    for text in texts:
        if found := _MEMORY.search(text):
            return printed_line(text, found.start())
    return ""


def sign_of_infrastructure(texts: Iterable[str], timed_out: bool = False) -> str:
    """Return what has failed beside the application, and the line that says so; empty without a sign.

    Parameters
    ----------
    texts
        The ends of the standard error and of the standard output of an attempt that ended with an error.
    timed_out
        Whether the attempt was ended at its time limit. Slurm then cancels the step, and communication
        breaks, so only decisive signs say that the launcher had waited for something other than the
        application.
    """
    known = tuple(texts)
    own = timed_out or any(_OWN.search(text) for text in known)
    for sign in SIGNS:
        for text in known:
            found = sign.pattern.search(text)
            if found is not None and (sign.decisive or not own):
                return f"{sign.name}: {printed_line(text, found.start())}"
    return ""


def last_telling_line(texts: Mapping[str, str], timed_out: bool = False) -> tuple[str, str] | None:
    """Return the last line that says something, printable, and the name of the output that has it.

    The first output that has one counts. Lines without letters or digits say nothing, banners of launchers
    nothing about the program, and "Exiting" nothing about the reason: such a line is only taken if there is
    no other, and never where the attempt ``timed_out``. Its reason is known.
    """
    saying = _saying(texts)
    own = _saying({name: _IMPROPER.sub("", text) for name, text in texts.items()})
    telling = [(name, line) for name, line in own if not _BANNER.match(line.strip())]
    if timed_out:
        telling, saying = [item for item in telling if not _ENDED.match(item[1].strip())], []
    return next(((name, printable(line)) for name, line in (*telling, *saying)), None)


def _saying(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the lines that say something, the last of each output first."""
    lines = [(name, line) for name, text in texts.items() for line in reversed(text.splitlines())]
    return [(name, line) for name, line in lines if _SAYS.search(line)]


def said(texts: Mapping[str, str], timed_out: bool = False) -> str:
    """Return what outputs say of a failure, and the name of the output; empty where nothing says anything.

    What stands below a heading such as ``Fatal error:`` counts before the last telling line: traces, advice
    and banners may follow it. Where that output speaks of no trouble, the line of another that says that the
    program failed does.
    """
    last = last_telling_line(texts, timed_out)
    if last is None:
        return ""
    name, line = last
    if not _TROUBLE.search(texts[name]):
        for other, printed in texts.items():
            if failure := says_it_failed([printed]):
                return f"{other}: {failure}"
    text = _RANK.sub("", texts[name])
    found = _HEADING.search(text)
    if found is None:
        return _last_message(text, line, name)
    below = itertools.takewhile(_SAYS.search, text[found.end() :].lstrip().splitlines())
    return f"{name}: {printable(' '.join(map(str.strip, (found[0], *below))))}"


def _last_message(text: str, line: str, name: str) -> str:
    """Return the last telling line; with those above it, up to the one that says that the program failed.

    Advice may stand below that: ``Error(input): cannot read tasks``, ``(a blank line must follow them)``.
    """
    lines = [printable(item) for item in text.splitlines()]
    end = len(lines) - lines[::-1].index(line) if line in lines else 0
    block = list(itertools.takewhile(_SAYS.search, reversed(lines[:end])))[::-1]
    first = next((index for index, item in enumerate(block) if _FAILED.search(item)), len(block) - 1)
    if _TROUBLE.search(line) or first == len(block) - 1:
        return f"last line of {name}: {line}"
    return f"{name}: {printable(' '.join(block[first:]))}"


def misses_a_file(texts: Iterable[str]) -> bool:
    """Whether what a program printed looks as if it did not find a file of its input."""
    lines = (line for text in texts for line in text.splitlines())
    return any(_NO_FILE.search(line) and not _OF_LOADER.search(line) for line in lines)


def says_it_failed(texts: Iterable[str]) -> str:
    """Return the first line in which a program that ended in good order says that it failed, or empty."""
    return next((printed_line(text, found.start()) for text in texts if (found := _FAILED.search(text))), "")


def printed_line(text: str, position: int) -> str:
    """Return the line at a position, printable: terminals would obey control characters."""
    start = text.rfind("\n", 0, position) + 1
    return printable(text[start:].partition("\n")[0])


def printable(line: str) -> str:
    """Return the beginning of a line that a program printed, without control characters."""
    return without_controls(line.strip()[:200])
