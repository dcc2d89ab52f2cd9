#!/bin/bash
# FIESTA: finite volumes for shocks in compressible flow. A hot sphere expands in a cube of air.
#
# Executable: fiesta (github.com/fiesta-cfd/fiesta), built on Kokkos, HDF5 and Lua, with MPI; with CUDA for GPUs
#   times      a plain build; it prints a table of timers of rank 0 (measure.profiler: stdout)
#   profiles   one with Caliper or Score-P: regions of Kokkos are annotated (measure.profiler: caliper, scorep)
#   MPI        any dynamically linked build (measure.profiler: mpi times MPI operations by call site)
#   effort     a second one, compiled through `orchestrator effort compiler` (measure.effort: true)
#
# This template was run on CPUs; what concerns GPUs is from FIESTA's sources.
#
# Parameters
#   p         MPI ranks, in a grid of ranks
#   grid      that grid as 'x,y,z' (default the most cubic one); its product must be p
#   t         OpenMP threads per rank (default 1)
#   n         cells of the whole domain in each dimension (strong scaling), at least 3 per rank; 10 to 210 in
#             published measurements
#   steps     time steps (default 100); FIESTA makes one more
#   scheme    advection: weno5, centered4 or quick (default weno5)
#   exchange  halo exchange: host, gpu-aware or gpu-type (default host)
#   gpus      GPUs of a node (default 0: none)

cat > fiesta.lua << 'END'
fiesta.title = "Expansion of a hot sphere"
fiesta.eos.R = 8.314462
fiesta.species = { {name = "Air", gamma = 1.4, M = 0.02897, mu = 2.928e-5} }
fiesta.advection_scheme = "{{scheme}}"
fiesta.time.nt = {{steps}}
fiesta.time.dt = 1e-8
fiesta.status.frequency = 0
fiesta.ioviews = {}

local length, cells = 10.0, {{n}}
fiesta.grid.type = "cartesian"
fiesta.grid.ndim = 3
fiesta.grid.ni = {cells, cells, cells}
fiesta.grid.dx = {length / cells, length / cells, length / cells}
fiesta.mpi.procs = { {{px}}, {{py}}, {{pz}} }
fiesta.mpi.type = "{{exchange}}"
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
if [ {{gpus}} -gt 0 ]; then devices=--kokkos-num-devices={{gpus}}; else devices=--num-threads={{t}}; fi

{{launcher}} {{executable}} fiesta.lua "$devices"
