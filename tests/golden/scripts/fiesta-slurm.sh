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

cat > fiesta.lua << 'END'
fiesta.title = "Expansion of a hot sphere"
fiesta.eos.R = 8.314462
fiesta.species = { {name = "Air", gamma = 1.4, M = 0.02897, mu = 2.928e-5} }
fiesta.advection_scheme = "weno5"
fiesta.time.nt = 100
fiesta.time.dt = 1e-8
fiesta.status.frequency = 0
fiesta.ioviews = {}

local length, cells = 10.0, 60
fiesta.grid.type = "cartesian"
fiesta.grid.ndim = 3
fiesta.grid.ni = {cells, cells, cells}
fiesta.grid.dx = {length / cells, length / cells, length / cells}
fiesta.mpi.procs = { 2, 2, 1 }
fiesta.mpi.type = "host"
fiesta.bc.xmin, fiesta.bc.xmax = "outflow", "outflow"
fiesta.bc.ymin, fiesta.bc.ymax = "outflow", "outflow"
fiesta.bc.zmin, fiesta.bc.zmax = "outflow", "outflow"

function fiesta.initial_conditions(x, y, z, variable)
    local dx, dy, dz = x - length / 2, y - length / 2, z - length / 2
    local hot = dx * dx + dy * dy + dz * dz < 0.25
    local cv = fiesta.eos.R / (fiesta.species[1].M * (fiesta.species[1].gamma - 1))
    if variable == 3 then return hot and 3000 * cv * 1000 or 300 * cv end
    if variable == 4 then return hot and 1000 or 1 end
    return 0
end
END
# One option has two names: GPUs of a node in a build for GPUs, threads in one with OpenMP.
if [ 0 -gt 0 ]; then devices=--kokkos-num-devices=0; else devices=--num-threads=1; fi

exec < /dev/null
exec srun --ntasks=4 --cpus-per-task=1 --export=ALL '/opt/my apps/program.x' fiesta.lua "$devices"
