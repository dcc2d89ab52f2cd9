#!/bin/bash
# Start a program within an allocation of Slurm. Runs once, on its first node, in the attempt's own directory.

# Binding and distribution that sbatch took over from the shell it was called in would apply to srun, too;
# ranks, threads and binding are said explicitly below.
unset ${!SLURM_CPU_BIND@} ${!SLURM_MEM_BIND@} SLURM_DISTRIBUTION SLURM_HINT SLURM_EXPORT_ENV
unset SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK SLURM_TRES_PER_TASK
unset PMI_FD PMI_RANK PMI_SIZE PMI_PORT PMI_ID PMIX_RANK PMIX_NAMESPACE PMIX_ID
unset ${!OMPI_COMM_WORLD_@} ${!PMIX_SERVER_@} ${!MPI_LOCAL@}

module load mpi

export OMP_NUM_THREADS=1
export SCOREP_ENABLE_PROFILING=true
export SCOREP_ENABLE_TRACING=false
export SCOREP_EXPERIMENT_DIRECTORY="$PWD"/scorep
export SCOREP_OVERWRITE_EXPERIMENT_DIRECTORY=true
{ env -0 | sed -z -E 's/^([^=]*(TOKEN|SECRET|PASSW|KEY|CREDENTIAL|AUTH|COOKIE)[^=]*)=.*/\1=***/I; s#://.*@#://***@#' > environment.recorded; } 2> /dev/null || :

exec < /dev/null
exec srun --ntasks=4 --cpus-per-task=1 --export=ALL '/opt/my apps/program.x' -a barnes-hut -t 0.2 --num-neurons-per-rank 200 \
    -s 1000 -r 0 --openmp 1 -l ./
