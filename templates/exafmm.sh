#!/bin/bash
# ExaFMM: the fast multipole method for particles, by dual tree traversal.
#
# Executable: laplace (github.com/exafmm/exafmm, tests/fmm.cxx with -DEXAFMM_LAPLACE), or helmholtz or stokes,
#             built with MPI; with OpenMP (-DEXAFMM_WITH_OPENMP) for t > 1
#   times      a plain build; it prints timers of rank 0 (measure.profiler: stdout)
#   profiles   one compiled and linked through Score-P's wrapper (measure.profiler: scorep)
#   MPI        any dynamically linked build (measure.profiler: mpi times MPI operations by call site)
#   effort     a second one, compiled through `orchestrator effort compiler` (measure.effort: true)
#
# Parameters
#   p             MPI ranks
#   t             OpenMP threads per rank (default 1)
#   n             particles of one rank (weak scaling)
#   order         order of the expansions (default 10); the work grows with its third power or faster
#   ncrit         particles per leaf, at most (default 64)
#   level         level of the octree at which space is divided among ranks (default 4): 8**level must be at least p
#   theta         acceptance criterion of multipoles, above 0 and at most 1 (default 0.4); larger is less exact
#   images        levels of periodic images (default 0: none). Others are checked by an Ewald sum, which takes long
#   distribution  cube, lattice, octant, plummer or sphere (default cube)

{{launcher}} {{executable}} -n {{n}} -P {{order}} -c {{ncrit}} -l {{level}} -t {{theta}} \
    -i {{images}} -d {{distribution}}
