"""Checks of a machine, a cluster and a campaign, before anything is spent.

- `examination` runs all checks, in groups and in order. A `check` is a result with its remedy; checks look at
  the machine through a `probe`.
- Groups: `installation`, `machine`, `slurm`; of a campaign (`examined`): `campaign`, `executor_section`,
  `launch_script`, and one `trial_run`.
- ``orchestrator init``: `first_draft`, which `initial` writes, tries and completes.
"""
