"""Checks of a campaign: its programs, its machine, its first round and its directory."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.control.assembly import assemble
from orchestrator.doctor import campaign
from orchestrator.doctor.check import Check, Status
from orchestrator.doctor.examined import Examined
from orchestrator.doctor.probe import Answer, Probe, here
from orchestrator.errors import CampaignError
from orchestrator.journal.writer import LOCK_NAME, Journal
from tests.cli.machines import probe
from tests.cli.running import LOCAL, PROGRAM, SIMULATED, run, tree, write_campaign, write_program


def examined(text: str = LOCAL, directory: str = "tiny", machine: Probe | None = None) -> dict[str, Check]:
    chosen = loader.loads(text, "campaign.yaml", Path.cwd())
    built = Examined(assemble(chosen), Path(directory))
    return {item.name: item for item in campaign.checks(built, machine or here())}


@pytest.fixture(autouse=True)
def files() -> None:
    write_campaign(Path.cwd())


def test_a_campaign_that_can_be_run() -> None:
    before = tree(Path.cwd())
    checks = examined()
    assert {item.status for item in checks.values()} == {Status.OK}
    assert set(checks) == {
        "executable", "launcher", "launch script", "slots", "resources", "first round", "directory",
        "disk space"
    }  # fmt: skip
    assert checks["directory"].detail == "tiny is free"
    assert checks["first round"].detail.startswith("10 runs, at most 0.0")
    assert tree(Path.cwd()) == before


def test_a_rehearsal_needs_no_program() -> None:
    assert set(examined(SIMULATED)) == {"resources", "first round", "directory", "disk space"}


# --- programs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["#!/no/such/interpreter", "#!/usr/bin/env no-such-interpreter", "#!"])
def test_a_script_without_its_interpreter(line: str) -> None:
    write_campaign(Path.cwd(), program=f"{line}\necho time: 1 s\n")
    check = examined()["executable"]
    assert check.status is Status.FAILED
    assert "first line" in check.remedy


def test_a_file_that_is_no_program() -> None:
    write_campaign(Path.cwd(), program="echo time: 1 s\n")
    assert examined()["executable"].status is Status.FAILED


def test_a_program_whose_libraries_are_missing() -> None:
    shutil.copy("/bin/true", "program.sh")
    assert examined()["executable"].status is Status.OK
    output = "\tlinux-vdso.so.1 (0x7fff)\n\tlibmpi.so.40 => not found\n\tlibc.so.6 => /lib/libc.so.6\n"
    check = examined(machine=probe(answers={"ldd": Answer(True, output)}))["executable"]
    assert check.status is Status.FAILED
    assert "libmpi.so.40" in check.detail
    assert "libc" not in check.detail
    assert "module load" in check.remedy


def test_a_program_for_another_processor() -> None:
    content = bytearray(Path("/bin/true").read_bytes())
    content[18] ^= 0xFF  # e_machine of the ELF header
    Path("program.sh").write_bytes(content)
    check = examined()["executable"]
    assert check.status is Status.WARNING
    assert "processor" in check.detail


def test_a_program_that_is_not_instrumented() -> None:
    text = LOCAL.replace("{time_limit: 20 s}", "{time_limit: 20 s, profiler: scorep}")
    shutil.copy("/bin/true", "program.sh")
    check = examined(text)["instrumentation"]
    assert check.status is Status.WARNING
    assert "scorep mpicc" in check.remedy
    Path("program.sh").write_bytes(Path("/bin/true").read_bytes() + b"SCOREP_InitMeasurement")
    assert examined(text)["instrumentation"].status is Status.OK
    shutil.copy("/bin/true", "program.sh")
    shared = probe(answers={"ldd": Answer(True, "\tlibscorep_measurement.so.0 => /opt/lib/x.so\n")})
    assert examined(text, machine=shared)["instrumentation"].status is Status.OK


@pytest.mark.parametrize("mentioned", ["", "export SCOREP_TOTAL_MEMORY=64M\n"])
def test_a_script_is_not_called_linked_with_scorep_nor_without_a_trace_of_it(mentioned: str) -> None:
    text = LOCAL.replace("{time_limit: 20 s}", "{time_limit: 20 s, profiler: scorep}")
    write_program(Path.cwd(), f"#!/bin/sh\n{mentioned}./lulesh\n")
    check = examined(text)["instrumentation"]
    assert check.status is Status.WARNING
    assert "is a script: whether what it starts is built with Score-P" in check.detail
    assert "doctor --try" in check.remedy


def test_a_program_without_caliper() -> None:
    text = LOCAL.replace("{time_limit: 20 s}", "{time_limit: 20 s, profiler: caliper}")
    shutil.copy("/bin/true", "program.sh")
    check = examined(text)["instrumentation"]
    assert (check.status, "ENABLE_CALIPER" in check.remedy) == (Status.WARNING, True)
    shared = probe(answers={"ldd": Answer(True, "\tlibcaliper.so.2 => /opt/lib/libcaliper.so.2\n")})
    assert examined(text, machine=shared)["instrumentation"].status is Status.OK


def test_the_program_that_counts_is_looked_at_too() -> None:
    text = LOCAL.replace("{time_limit: 20 s}", "{time_limit: 20 s, effort: true}")
    counting = Path("program.sh-effort")
    counting.write_text("#!/no/such/interpreter\n")
    counting.chmod(0o755)
    checks = examined(text)
    assert checks["executable"].status is Status.OK
    assert checks["effort executable"].status is Status.FAILED
    assert "/no/such/interpreter" in checks["effort executable"].detail


def test_times_of_a_program_that_counts_are_doubted() -> None:
    assert "counters" not in examined()
    Path("program.sh").write_bytes(Path("/bin/true").read_bytes() + b"liborchestrator-effort.so")
    check = examined()["counters"]
    assert check.status is Status.WARNING
    assert "times include the counting" in check.detail


def parallel(launcher: str) -> str:
    text = LOCAL.replace("  output:", "  ranks: n\n  output:").replace("slots: 1", "slots: 5")
    return text.replace("launcher: none", f"launcher: {launcher}")


def test_several_ranks_without_a_launcher() -> None:
    with pytest.raises(CampaignError, match="2 ranks need a launcher"):
        examined(parallel("none"))


def test_a_launcher_that_is_not_here() -> None:
    check = examined(parallel("'no-such-launcher -n {ranks}'"))["launcher"]
    assert check.status is Status.FAILED
    assert "no-such-launcher" in check.detail
    loaded = parallel("'no-such-launcher -n {ranks}', prologue: [module load it]")
    assert examined(loaded)["launcher"].status is Status.WARNING


def test_a_launcher_of_another_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    mpiexec = Path("mpiexec")
    mpiexec.write_text("#!/bin/sh\necho HYDRA build details\n")
    mpiexec.chmod(0o755)
    ldd = Path("ldd")
    ldd.write_text("#!/bin/sh\necho 'libmpi.so.40 => /opt/lib/libmpi.so.40'\n")
    ldd.chmod(0o755)
    monkeypatch.setenv("PATH", f"{Path.cwd()}:/nowhere")
    text = parallel("x").replace(", launcher: x", "")
    check = examined(text)["launcher"]
    assert check.status is Status.FAILED
    assert "every rank would run alone" in check.detail
    configured = examined(parallel(f"'{mpiexec.absolute()} -n {{ranks}}'"))["launcher"]
    assert configured.status is Status.FAILED
    assert "is of MPICH (or derived)" in configured.detail and "with Open MPI" in configured.detail


def test_no_launcher_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    text = parallel("x").replace(", launcher: x", "")
    assert examined(text)["launcher"].status is Status.MISSING
    single = LOCAL.replace(", launcher: none", "")
    assert examined(single)["launcher"].status is Status.OK


def test_slots_beyond_the_cores() -> None:
    assert campaign.slots(4, False, 4).status is Status.OK
    assert campaign.slots(8, False, 4).remedy == "set executor.slots: 4"
    assert campaign.slots(4, True, 4).status is Status.WARNING


# --- budget and directory -----------------------------------------------------------------------------


def test_a_first_round_that_is_too_dear() -> None:
    check = examined(LOCAL.replace("1 core-hour,", "10 core-seconds,"))["first round"]
    assert check.status is Status.FAILED
    assert "stop.budget" in check.detail


def test_a_model_that_cannot_be() -> None:
    check = examined(LOCAL.replace("model: pmnf", "model: {name: speedup, processes: k}"))["first round"]
    assert check.status is Status.FAILED and "k is no numeric parameter" in check.detail
    assert "budget" not in check.remedy


@pytest.mark.slow
def test_a_directory_that_holds_this_campaign_or_another() -> None:
    run("run", "campaign.yaml")
    assert "would be continued" in examined()["directory"].detail
    wider = examined(LOCAL.replace("[1, 2, 3, 4, 5]", "[1, 2, 3, 4, 5, 6]"))["directory"]
    assert wider.status is Status.OK
    assert "rules would change: parameters.n.values: [1, 2, 3, 4, 5] -> [1, 2, 3, 4, 5, 6]" in wider.detail
    other = examined(LOCAL + "seed: 5\n")["directory"]
    assert other.status is Status.FAILED
    assert "other seed" in other.detail


def test_a_directory_that_a_controller_holds() -> None:
    write_campaign(Path.cwd(), SIMULATED)
    run("run", "campaign.yaml")
    with Journal(Path("rehearsal")):
        check = examined(SIMULATED, "rehearsal")["directory"]
    assert check.status is Status.FAILED
    assert "pid" in check.detail
    Path("rehearsal", LOCK_NAME).unlink()
    assert examined(SIMULATED, "rehearsal")["directory"].status is Status.OK
    assert not Path("rehearsal", LOCK_NAME).exists(), "who only looks takes no lock"


def test_a_directory_whose_journal_is_damaged() -> None:
    Path("tiny").mkdir()
    Path("tiny/journal.jsonl").write_text("garbage\nmore garbage\n")
    check = examined()["directory"]
    assert check.status is Status.FAILED
    assert "line 1" in check.detail


def test_a_directory_that_cannot_be_created() -> None:
    check = examined(directory="campaign.yaml/below")["directory"]
    assert check.status is Status.FAILED
    assert "--directory" in check.remedy


def test_the_program_is_never_started() -> None:
    write_campaign(Path.cwd(), program=PROGRAM + "touch started\n")
    assert run("doctor", "campaign.yaml").code == 0
    assert not Path("started").exists()


# --- the command --------------------------------------------------------------------------------------


def test_the_document_of_a_campaign_that_can_be_run() -> None:
    result = run("doctor", "campaign.yaml", "--json")
    assert result.code == 0, result.out
    assert result.err == ""
    assert set(result.document) == {"ok", "checks"}
    assert result.document["ok"] is True
    for check in result.document["checks"]:
        assert set(check) == {"group", "name", "status", "detail", "remedy", "needed"}
        assert check["status"] in ("ok", "warning", "missing", "failed")
        assert check["status"] == "ok" or check["remedy"]
    groups = dict.fromkeys(check["group"] for check in result.document["checks"])
    assert list(groups) == ["installation", "this machine", "Slurm", "campaign tiny"]


def test_without_a_campaign_only_the_essentials_are_needed() -> None:
    result = run("doctor", "--json")
    assert result.code == 0, result.out
    needed = {check["name"] for check in result.document["checks"] if check["needed"]}
    assert needed == {"Python", "packages", "adapters", "data files"}


def test_an_invalid_campaign_is_a_result_not_wrong_usage() -> None:
    result = run("doctor", "campaign.yaml", "--set", "stop.patience=0", "--json")
    assert result.code == 1
    (fault,) = [check for check in result.document["checks"] if check["status"] == "failed"]
    assert fault["name"] == "campaign file"
    assert "patience" in fault["detail"]
    assert run("doctor", "missing.yaml").code == 2


def test_remedies_are_printed_for_humans() -> None:
    text = LOCAL.replace("1 core-hour,", "10 core-seconds,").replace("slots: 1,", "slots: 9999,")
    write_campaign(Path.cwd(), text)
    result = run("doctor", "campaign.yaml")
    assert result.code == 1
    assert "needed, but missing or broken: first round" in result.out
    assert "-> set executor.slots" in result.out
    fine = run("doctor")
    assert fine.code == 0
    assert "nothing needed is missing" in fine.out
