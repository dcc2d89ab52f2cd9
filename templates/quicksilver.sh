#!/bin/bash
# Quicksilver: Monte Carlo particle transport through a mesh of elements.
#
# Executable: qs (github.com/LLNL/Quicksilver), built with MPI (-DHAVE_MPI); with OpenMP for t > 1
#   times      a plain build; it prints timers with minimum, mean and maximum over ranks (measure.profiler: stdout)
#   profiles   one compiled and linked through Score-P's wrapper (measure.profiler: scorep)
#   MPI        any dynamically linked build (measure.profiler: mpi times MPI operations by call site)
#   effort     a second one, compiled through `orchestrator effort compiler` (measure.effort: true)
#
# Parameters
#   p          MPI ranks, in a grid of domains
#   domains    that grid as 'x,y,z' (default the most cubic one); its product must be p, or Quicksilver hangs
#   t          OpenMP threads per rank (default 1)
#   s          mesh elements along each edge of one rank's domain (weak scaling); or
#   n          mesh elements along each edge of the whole mesh (strong scaling); or
#   mesh       mesh elements of the whole mesh as 'x,y,z', at least one per domain in each dimension
#   density    particles created per mesh element and step (default 1); or
#   particles  -n, of which every step creates a tenth, as whole particles per element: at least 10 per element
#   steps      time steps (default 10)
#   seed       seed of the particles' random numbers (default 1029384756)
#
# -X -Y -Z give every element a size of 1 cm.

{{launcher}} {{executable}} \
    -X {{nx}} -Y {{ny}} -Z {{nz}} -x {{nx}} -y {{ny}} -z {{nz}} \
    -I {{px}} -J {{py}} -K {{pz}} -n {{particles}} -N {{steps}} -s {{seed}}
