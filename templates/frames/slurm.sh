#!/bin/bash
# Start a program within an allocation of Slurm. Runs once, on its first node, in the attempt's own directory.

# Binding and distribution that sbatch took over from the shell it was called in would apply to srun, too;
# ranks, threads and binding are said explicitly below.
unset ${!SLURM_CPU_BIND@} ${!SLURM_MEM_BIND@} SLURM_DISTRIBUTION SLURM_HINT SLURM_EXPORT_ENV
unset SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK SLURM_TRES_PER_TASK
unset PMI_FD PMI_RANK PMI_SIZE PMI_PORT PMI_ID PMIX_RANK PMIX_NAMESPACE PMIX_ID
unset ${!OMPI_COMM_WORLD_@} ${!PMIX_SERVER_@} ${!MPI_LOCAL@}

{{prologue}}

{{environment}}

exec < /dev/null
{{exec}} {{launcher}} {{command}}{{epilogue}}
