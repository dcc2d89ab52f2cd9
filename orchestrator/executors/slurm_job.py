"""The name under which jobs that an earlier version submitted, and that still wait in Slurm, find their work.

Their pickles name ``orchestrator.executors.slurm_job.run``. Without this module such a job would fail, and
its run would need another attempt. Remove it when no such job can be waiting any more.
"""

from orchestrator.executors.slurm.job import run as run
