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

cat > HPL.dat << 'END'
HPL.dat written by measurement-orchestrator
one problem, one process grid, one variant
HPL.out  output file
6        device out (6 = stdout)
1        number of problem sizes
1000        N
1        number of block sizes
128        NB
0        process mapping (0 = row-major)
1        number of process grids
2        P
3        Q
16.0     threshold of the residual
1        number of panel factorisations
2        PFACT (0 = left, 1 = Crout, 2 = right)
1        number of stopping criteria
4        NBMIN
1        number of panels in recursion
2        NDIV
1        number of recursive factorisations
1        RFACT (0 = left, 1 = Crout, 2 = right)
1        number of broadcasts
0        BCAST (0 = 1rg, 1 = 1rM, 2 = 2rg, 3 = 2rM, 4 = Lng, 5 = LnM)
1        number of lookahead depths
1        DEPTH
2        SWAP (0 = binary exchange, 1 = long, 2 = mix)
64       swapping threshold
0        L1 (0 = transposed)
0        U (0 = transposed)
1        equilibration (1 = yes)
8        memory alignment in doubles
END

exec < /dev/null
exec srun --ntasks=6 --cpus-per-task=1 --export=ALL '/opt/my apps/program.x'
