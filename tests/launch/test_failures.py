"""Who failed, by the words of real launchers, daemons and shells."""

from __future__ import annotations

import pytest

from orchestrator.launch.failures import (
    SIGNS,
    last_telling_line,
    misses_a_file,
    said,
    says_it_failed,
    sign_of_infrastructure,
)

INFRASTRUCTURE = {
    "controller away": "srun: error: Unable to contact slurm controller (connect failure)",
    "allocation": (
        "srun: error: Unable to confirm allocation for job 7: "
        "Unable to contact slurm controller (connect failure)\n"
        "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 7"
    ),
    "expired job": "srun: error: Expired or invalid job 1012",
    "receive": "srun: error: slurm_receive_msg: Zero Bytes were transmitted or received",
    "receive from a node": (
        "srun: error: slurm_receive_msgs: [[n2]:6818] failed: Socket timed out on send/recv operation\n"
        "srun: error: Task launch for StepId=7.0 failed on node n2: Socket timed out on send/recv operation\n"
        "srun: error: Application launch failed: Socket timed out on send/recv operation\n"
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish."
    ),
    "step": "srun: error: Unable to create step for job 7: Unexpected message received",
    "step, timed out": (
        "srun: error: Unable to create step for job 7: Socket timed out on send/recv operation\n"
        "loading modules\nthe end"
    ),
    "credential": "slurmstepd: error: Munge decode failed: Expired credential",
    "cancelled": "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-22T02:14:00 ***",
    "cancelled, labelled": (
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
        "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-22T02:14:00 ***\n"
        "srun: error: n1: tasks 0-3: Terminated"
    ),
    "a step that could not be launched": (
        "srun: launch/slurm: launch_p_step_launch: StepId=159.0 aborted before step completely launched.\n"
        "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n"
        "srun: error: task 0 launch failed: Unspecified error\n"
        "srun: error: n3: tasks 4-7: Killed"
    ),
    "two daemons on a host": "slurmstepd-n3: error: *** STEP 1.0 ON n3 CANCELLED AT 2026-11-23T01:00:33 ***",
    "node failure": (
        "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-22T02:14:00 DUE TO NODE FAILURE, SEE "
        "SLURMCTLD LOG FOR DETAILS ***\nsrun: error: n1: task 0: Exited with exit code 9"
    ),
    "node failure, srun": "srun: error: Node failure on n2\nsrun: error: n1: task 0: Killed",
    "preemption": "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-22T02:14:00 DUE TO PREEMPTION ***",
    "prterun": (
        "--------------------------------------------------------------------------\n"
        "PRTE has lost communication with a remote daemon.\n\n"
        "  HNP daemon   : [prterun-n1-1918870@0,0] on node n1\n"
        "  Remote daemon: [prterun-n1-1918870@0,1] on node n2\n"
    ),
    "orte": "ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[7,0],0] on node n1\n",
    "orte, start": "An ORTE daemon has unexpectedly failed after launch and before\ncommunicating back",
    "orte, rsh": "A daemon (pid 4711) died unexpectedly with status 255 while attempting\nto launch",
    "orte, folder": (
        "A call to mkdir was unable to create the desired directory:\n\n"
        "  Directory: /tmp/ompi.n1.0\n  Error:     File exists\n"
        "[n1:32445] [[4675,0],0] ORTE_ERROR_LOG: Error in file ../../../orte/util/session_dir.c at line 107\n"
        "It looks like orte_init failed for some reason; your parallel process is\nlikely to abort.\n\n"
        "  orte_session_dir failed\n  --> Returned value Error (-1) instead of ORTE_SUCCESS\n"
    ),
    "hydra": "[mpiexec@n1] control_cb (pm/pmiserv/pmiserv_cb.c:200): assert (!closed) failed",
    "stale script": "attempt: cannot start /c/run.sh: [Errno 116] Stale file handle: '/c/run.sh'",
    "program cannot be read": "/c/runs/p=2/time-1/attempt-1/run.sh: line 16: /opt/app: Input/output error",
    "network file system": "run.sh: line 3: /opt/app: Connection timed out",
    "fuse": "bash: /mnt/app: Transport endpoint is not connected",
    "program is being written": "run.sh: line 16: /opt/app: Text file busy",
    "execve": "slurmstepd: error: execve(): /opt/app: Stale file handle",
    "full disk": "cp: error writing 'checkpoint': No space left on device\nrank 0 gives up",
    "quota": "main.c: fopen: Disk quota exceeded",
}

APPLICATION = {
    "own words": "connection to the data base timed out",
    "own words, more": "solver: Connection timed out\nerror: unable to contact slurm controller of my game",
    "nothing": "",
    "exit code": "srun: error: n1: task 0: Exited with exit code 1",
    "crash that ends the step": (
        "srun: error: n1: task 2: Segmentation fault (core dumped)\n"
        "srun: Terminating StepId=7.0\n"
        "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-22T02:14:00 ***"
    ),
    "abort": (
        "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\n"
        "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-22T02:14:00 ***"
    ),
    "abort, MPICH": (
        "Abort(1) on node 0 (rank 0 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0\n"
        "[proxy:0:0@n1] HYD_pmcd_pmip_control_cmd_cb (pm/pmiserv/pmip_cb.c:480): assert (!closed) failed"
    ),
    "too large a step": (
        "srun: error: Unable to create step for job 7: More processors requested than permitted"
    ),
    "missing program": "slurmstepd: error: execve(): /opt/app: No such file or directory",
    "missing program, shell": "run.sh: line 16: /opt/app: No such file or directory",
    "bad input": "main: input.txt: Input/output error in line 3",
    "slots": "There are not enough slots available in the system to satisfy the 9\nslots that were requested",
}


@pytest.mark.parametrize("case", INFRASTRUCTURE)
@pytest.mark.parametrize("around", ["{}", "starting\n{}\n", "{}\n" + "more\n" * 50])
def test_signs_of_the_infrastructure(case: str, around: str) -> None:
    text = around.format(INFRASTRUCTURE[case])
    for texts in ([text], ["", text], [text, "step 1: done\n"]):
        found = sign_of_infrastructure(texts)
        assert found and found.split(": ", 1)[0] in {sign.name for sign in SIGNS}
        assert "\n" not in found and found.split(": ", 1)[1].strip()


@pytest.mark.parametrize("case", APPLICATION)
def test_what_an_application_prints_is_no_sign(case: str) -> None:
    assert sign_of_infrastructure([APPLICATION[case], "done\n"]) == ""


def test_the_reason_quotes_the_line_without_control_characters() -> None:
    text = "begin\nsrun: error: Node failure on n2\x1b[31m\nend\n"
    assert sign_of_infrastructure([text]) == "a node failed: srun: error: Node failure on n2?[31m"


def test_a_step_that_could_not_begin_is_explained_by_the_task_that_failed() -> None:
    text = INFRASTRUCTURE["a step that could not be launched"]
    reason = "Slurm could not start a task: srun: error: task 0 launch failed: Unspecified error"
    assert sign_of_infrastructure([text]) == reason


def test_every_sign_is_seen_in_some_message() -> None:
    texts = [*INFRASTRUCTURE.values()]
    texts.append("srun: Job 7 step creation still disabled, retrying (Requested nodes are busy)")
    texts.append("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-22T02:14:00 DUE TO JOB REQUEUE ***")
    assert [sign.name for sign in SIGNS if not any(sign.pattern.search(text) for text in texts)] == []


@pytest.mark.parametrize(
    ("text", "blamed"),
    [
        ("slurmstepd: error: *** STEP 8.0 ON n2 CANCELLED AT 2026-11-23T01:34:52 ***", False),
        ("srun: Force Terminated StepId=8.0\nsrun: error: slurm_receive_msgs: Socket timed out", False),
        ("srun: error: Unable to confirm allocation for job 7: Unable to contact slurm controller", True),
        ("srun: error: Node failure on n2\nsrun: error: n1: task 0: Killed", True),
    ],
)
def test_what_follows_from_the_end_at_a_time_limit_blames_nobody(text: str, blamed: bool) -> None:
    assert bool(sign_of_infrastructure([text], timed_out=True)) == blamed


_DASHES = "-" * 74
OPEN_MPI = f"""{_DASHES}
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
{_DASHES}
{_DASHES}
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[41922,1],0]
  Exit code:    3
{_DASHES}
"""
OPEN_MPI_IMPROPER = f"""{_DASHES}
mpiexec has exited due to process rank 0 with PID 0 on
node n1 exiting improperly. This may be the reason:

1. this process did not call "init", but others did.

You can avoid this message by specifying -quiet on the mpiexec command line.
{_DASHES}
"""
OPEN_MPI_ABORT = f"""{_DASHES}
MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD
with errorcode 3.

NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.
You may or may not see output from other processes, depending on
exactly when Open MPI kills them.
{_DASHES}
[n1:4711] 1 more process has sent help message help-mpi-api.txt / mpi-abort
[n1:4711] Set MCA parameter "orte_base_help_aggregate" to 0 to see all help / error messages
"""
MPICH = """
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 4711 RUNNING AT n1
=   EXIT CODE: 11
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
"""
SRUN = """\
srun: error: n1: tasks 0-3: Exited with exit code 3
srun: launch/slurm: _step_signal: Terminating StepId=30.0
slurmstepd: error: *** STEP 30.0 ON n1 CANCELLED AT 2026-11-27T17:44:39 ***
slurmstepd-n2: error: *** STEP 30.0 ON n2 CANCELLED AT 2026-11-27T17:44:39 ***
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
"""
ERROR = "error: the grid of 3 x 5 does not fit 4 ranks"


@pytest.mark.parametrize(
    "banner", [OPEN_MPI, OPEN_MPI_ABORT, OPEN_MPI_IMPROPER, MPICH, SRUN, "=====\n \n", ""]
)
def test_the_last_telling_line_is_that_of_the_program(banner: str) -> None:
    assert last_telling_line({"stderr": f"{ERROR}\n{banner}", "stdout": "step 1\n"}) == ("stderr", ERROR)
    assert last_telling_line({"stderr": banner, "stdout": f"{ERROR}\n{MPICH}"}) == ("stdout", ERROR)


@pytest.mark.parametrize(
    "parting", ["Exiting...", "exiting now", "Aborting!", "Stopping the program", "exit"]
)
def test_parting_words_say_nothing_of_the_reason(parting: str) -> None:
    assert last_telling_line({"stderr": f"{ERROR}\n{parting}\n{OPEN_MPI}"}) == ("stderr", ERROR)
    assert last_telling_line({"stderr": parting, "stdout": ERROR}) == ("stdout", ERROR)
    assert last_telling_line({"stderr": parting}) == ("stderr", parting)


# Of OpenFOAM and GROMACS, in runs of several ranks and of one.
FOAM = """\
mesh took 0.041 s
[0]
[0]
[0] --> FOAM FATAL ERROR:
[0] cannot open case directory "/work/cavity/processor0"
[0]
[0]     From function static Foam::fileOperation::New()
[0]     in file fileOperation.C at line 102.
FOAM parallel run exiting
[0]
"""
GROMACS = """\
-------------------------------------------------------
Program:     gmx mdrun, version 2022.5
Source file: src/gromacs/domdec/domdec.cpp (line 2277)

Fatal error:
The size of the domain decomposition grid (3) does not match the number of PP
ranks (2). The total number of ranks is 2

For more information and tips for troubleshooting, please check the GROMACS
website at http://www.gromacs.org/Documentation/Errors
-------------------------------------------------------
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FOAM, '--> FOAM FATAL ERROR: cannot open case directory "/work/cavity/processor0"'),
        (
            "--> FOAM FATAL IO ERROR :\nkeyword n is undefined\n\nfile: a\n",
            "--> FOAM FATAL IO ERROR : keyword n is undefined",
        ),
        (
            GROMACS,
            "Fatal error: The size of the domain decomposition grid (3) does not match the number of PP "
            "ranks (2). The total number of ranks is 2",
        ),
        (
            "Error in user input:\nInvalid option\n  -s\n\nFor more\n",
            "Error in user input: Invalid option -s",
        ),
    ],
)
def test_what_stands_below_the_heading_of_an_error_is_its_reason(text: str, expected: str) -> None:
    assert said({"stderr": f"{text}{OPEN_MPI}", "stdout": "step 1\n"}) == f"stderr: {expected}"


def test_without_a_heading_the_last_line_is_said() -> None:
    assert said({"stderr": "L2 error:\n0.5\nno input\n", "stdout": ""}) == "last line of stderr: no input"
    assert said({"stderr": "no input\n", "stdout": "Fatal error:\nx\n"}) == "last line of stderr: no input"
    assert said({"stderr": "", "stdout": ""}) == ""


def test_advice_below_an_error_is_quoted_with_it() -> None:
    printed = "version 3\n\nError(input): bad tasks\n(a blank line must follow them)\n"
    texts = {"stderr": OPEN_MPI_IMPROPER, "stdout": printed}
    assert said(texts) == "stdout: Error(input): bad tasks (a blank line must follow them)"
    assert said({"stdout": "Error: no grid\n\nwall time 3 s\n"}) == "last line of stdout: wall time 3 s"
    two = "Error: no grid\nError: no mesh file\n"
    assert said({"stdout": two}) == "last line of stdout: Error: no mesh file"


def test_times_on_one_output_do_not_hide_the_error_on_the_other() -> None:
    times = "real 0.12\nuser 0.10\nsys 0.01\n"
    printed = "step 1\nERROR: box too small\n0 steps done\n"
    assert said({"stderr": times, "stdout": printed}) == "stdout: ERROR: box too small"
    assert said({"stderr": times, "stdout": "error: 1e-9\ndone\n"}) == "last line of stderr: sys 0.01"
    assert said({"stderr": f"{ERROR}\n", "stdout": printed}) == f"last line of stderr: {ERROR}"


def test_where_open_mpi_could_not_print_its_message_the_line_before_is_telling() -> None:
    noise = (
        "[n1:24095] [[13025,0],0] ORTE_ERROR_LOG: Data unpack would read past end of buffer in file "
        "../../../orte/util/show_help.c at line 501"
    )
    assert last_telling_line({"stderr": f"{ERROR}\n{noise}\n"}) == ("stderr", ERROR)


def test_advice_is_not_the_reason() -> None:
    advice = "For more information see the manual at https://example.org/wiki"
    assert last_telling_line({"stderr": f"{ERROR}\n{advice}\n"}) == ("stderr", ERROR)


def test_where_only_launchers_speak_their_banner_is_taken() -> None:
    assert last_telling_line({"stderr": OPEN_MPI, "stdout": "====\n"}) == ("stderr", "Exit code:    3")
    assert last_telling_line({"stderr": "---\n", "stdout": ""}) is None


def test_a_signal_that_a_launcher_noticed_is_telling() -> None:
    noticed = "mpirun noticed that process rank 0 with PID 0 on node n1 exited on signal 9 (Killed)."
    assert last_telling_line({"stderr": f"{_DASHES}\n{noticed}\n{_DASHES}\n"}) == ("stderr", noticed)


@pytest.mark.parametrize(
    "ended",
    [
        f"{SRUN}srun: error: n1: tasks 0-1: Killed",
        "srun: error: n2: task 0: Terminated",
        "mpirun noticed that process rank 0 with PID 0 on node n1 exited on signal 9 (Killed).",
    ],
)
def test_what_follows_from_the_end_at_a_time_limit_is_not_the_last_line(ended: str) -> None:
    step = "# Starting dynamics ..."
    assert last_telling_line({"stderr": ended, "stdout": step}, timed_out=True) == ("stdout", step)
    assert last_telling_line({"stderr": ended, "stdout": ""}, timed_out=True) is None
    assert last_telling_line({"stderr": ended, "stdout": ""}) is not None


def test_what_srun_says_of_a_crash_is_telling() -> None:
    crash = "srun: error: n1: task 2: Segmentation fault (core dumped)"
    assert last_telling_line({"stderr": f"{crash}\n{SRUN}"}) == ("stderr", crash)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Traceback\nFileNotFoundError: [Errno 2] No such file or directory: 'input.txt'", True),
        ("ERROR: Cannot open input script in.lj", True),
        ("fopen: No such file or directory", True),
        ("could not read mesh.dat", True),
        ("Error opening mesh.dat", True),
        ("error reading the number of steps in line 3 of in.dat", False),
        ("Fortran runtime error: Cannot open file 'in.dat': No such file or directory", True),
        (ERROR, False),
        ("./app: error while loading shared libraries: libx.so: cannot open shared object file", False),
        ("Segmentation fault", False),
    ],
)
def test_only_what_speaks_of_a_missing_file_looks_so(text: str, missing: bool) -> None:
    assert misses_a_file(["begin\n", f"{text}\n"]) is missing


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("### FATAL ERROR in function [f]", True),
        ("   ***ERROR: INPUT_CHECK: NPEY*NPEZ must equal", True),
        ("Error: no such solver", True),
        (" This run FAILED (Difference is within 11285 %)", True),
        (" Error: \t\t6.336299e-31", False),
        ("error   1.2E-3", False),
        (" Error is    1.0331046659065e-15", False),
        ("Error norm: 1.5", False),
        ("Error is fatal", True),
        ("Error tolerance for sums is 10^(-8)", False),
        ("relative error: 1e-9", False),
        ("tests FAILED: 0", False),
        ("0 errors", False),
    ],
)
def test_a_program_says_that_it_failed(text: str, said: bool) -> None:
    assert says_it_failed(["begin\n", f"one\n{text}\nbye\n"]) == (text.strip() if said else "")
