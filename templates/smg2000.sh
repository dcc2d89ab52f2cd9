#!/bin/bash
# SMG2000: semicoarsening multigrid for diffusion on structured grids, an ASC Purple benchmark built on hypre.
#
# Executable: smg2000, built with MPI and its timers (-DHYPRE_TIMING -DTIMER_USE_MPI); with OpenMP for t > 1.
#             It calls functions that MPI 3 removed: Open MPI has them only if configured so, MPICH still has them.
#   times      a plain build; it prints timers of the setup and the solve phase (measure.profiler: stdout)
#   profiles   one compiled and linked through Score-P's wrapper (measure.profiler: scorep)
#   MPI        any dynamically linked build (measure.profiler: mpi times MPI operations by call site)
#   effort     a second one, compiled through `orchestrator effort compiler` (measure.effort: true)
#
# Parameters
#   p       MPI ranks, in a grid of ranks
#   px      ranks in x (default the most cubic grid)
#   py      ranks in y
#   pz      ranks in z (default what remains: p / px / py). The product must be p
#   t       OpenMP threads per rank (default 1)
#   s       grid points along each edge of one rank's block (weak scaling); or
#   nx      grid points of one rank in x, with
#   ny      ... in y and
#   nz      ... in z; or
#   block   all three as 'x,y,z'. A rank needs about 54 * 8 bytes per grid point
#   cx      diffusion coefficient in x, at least 0 (default 1); they decide about the number of iterations
#   cy      ... in y
#   cz      ... in z
#   solver  0: SMG; conjugate gradients preconditioned by 1: SMG, 2: diagonal scaling, 3: nothing (default 0)

{{launcher}} {{executable}} -n {{nx}} {{ny}} {{nz}} -P {{px}} {{py}} {{pz}} \
    -c {{cx}} {{cy}} {{cz}} -solver {{solver}}
