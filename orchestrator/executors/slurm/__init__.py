"""The executor on Slurm. `executor` is the contract; everything else is what it needs.

- Submission: `submission` groups attempts into job arrays (`arrays`) with the options of `options`, and
  `sbatch` hands them to submitit. `job` is what then runs on the node.
- Observation: `poller` asks ``squeue`` and ``sacct`` through `commands`, `states` says what they mean,
  `outcome` what became of an attempt, which is `tracked` as one object. `shared_jobs` divides a job among
  attempts.
- The cluster: `site` has the settings that matter, `cluster` and `partitions` what Slurm reports, `ceilings`
  the longest jobs, `silence` what is said while Slurm does not answer.
"""
