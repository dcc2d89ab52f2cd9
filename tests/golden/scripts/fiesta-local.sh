#!/bin/bash
# Start a program on this machine. Runs in the attempt's own directory.

# What an enclosing MPI program or job step left behind makes MPI_Init believe that it belongs to that one.
unset PMI_FD PMI_RANK PMI_SIZE PMI_PORT PMI_ID PMIX_RANK PMIX_NAMESPACE PMIX_ID PMIX_SERVER_URI2 PMIX_SERVER_URI21
unset ${!OMPI_COMM_WORLD_@} ${!PMIX_SERVER_@} ${!MPI_LOCAL@}



export OMP_NUM_THREADS=1

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
exec mpiexec -n 4 '/opt/my apps/program.x' fiesta.lua "$devices"
