#!/bin/bash
# Kripke 1.1: deterministic Sn particle transport with parallel sweeps, as in the papers of 2015.
#
# Executable: kripke of version 1.1, built with MPI; with OpenMP for t > 1
#   times      a plain build; it prints timers of rank 0 (measure.profiler: stdout)
#   profiles   one compiled and linked through Score-P's wrapper (measure.profiler: scorep)
#   MPI        any dynamically linked build (measure.profiler: mpi times MPI operations by call site)
#   effort     a second one, compiled through `orchestrator effort compiler` (measure.effort: true)
#
# Parameters
#   p         MPI ranks, in a grid of ranks
#   procs     that grid as 'x,y,z' (default the most cubic one: 12 = 3,2,2); its product must be p
#   t         OpenMP threads per rank (default 1)
#   s         zones along each edge of one rank's block (weak scaling); or
#   n         zones along each edge of the whole domain (strong scaling); or
#   zones     zones of the whole domain as 'x,y,z', at least one per rank and zone set in each dimension
#   zset      zone sets of a rank as 'x,y,z' (default 1,1,1); must be 1 where there are several ranks: it hangs
#   groups    energy groups (default 32)
#   gset      group sets, a divisor of groups (default 2)
#   quad      directions, or polar:azimuthal with polar a multiple of 4 and azimuthal of 2 (default 96)
#   dset      direction sets, a multiple of 8 that divides the directions (default 8)
#   legendre  scattering order, from 0 (default 4)
#   niter     solver iterations (default 10)
#   pmethod   sweep, or bj (block Jacobi) (default sweep)
#   nest      loop nesting and data layout: DGZ, DZG, GDZ, GZD, ZDG or ZGD (default DGZ)

{{launcher}} {{executable}} \
    --procs {{procs}} --zones {{zones}} --zset {{zset}} \
    --groups {{groups}} --gset {{gset}} --quad {{quad}} --dset {{dset}} \
    --legendre {{legendre}} --niter {{niter}} --pmethod {{pmethod}} --nest {{nest}}
