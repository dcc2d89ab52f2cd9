#!/bin/bash
# AMG: algebraic multigrid for a 27-point Laplacian, the proxy of hypre's BoomerAMG.
#
# Executable: amg (github.com/LLNL/AMG), built with MPI; with OpenMP for t > 1
#   times      a plain build; it prints the times of the slowest rank (measure.profiler: stdout)
#   profiles   one compiled and linked through Score-P's wrapper (measure.profiler: scorep)
#   MPI        any dynamically linked build (measure.profiler: mpi times MPI operations by call site)
#   effort     a second one, compiled through `orchestrator effort compiler` (measure.effort: true)
#
# Parameters
#   p        MPI ranks, in a grid of ranks
#   grid     that grid as 'x,y,z' (default the most cubic one); its product must be p
#   t        OpenMP threads per rank (default 1)
#   s        grid points along each edge of one rank's block (weak scaling); or
#   nx       grid points of one rank in x, with
#   ny       ... in y and
#   nz       ... in z; or
#   block    all three as 'x,y,z'
#   problem  1: conjugate gradients preconditioned by AMG; 2: GMRES with AMG in a loop over time (default 1)
#
# Coarsening, relaxation and interpolation are fixed in this program. To vary them, build hypre's own driver `ij`
# and copy this template for it.

{{launcher}} {{executable}} -problem {{problem}} -n {{nx}} {{ny}} {{nz}} -P {{px}} {{py}} {{pz}}
