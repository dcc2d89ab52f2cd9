#!/bin/bash
# LULESH 2.0: Lagrangian shock hydrodynamics on an unstructured mesh. Every rank has a cube of elements.
#
# Executable: lulesh2.0 (github.com/LLNL/LULESH), built with MPI; with OpenMP for t > 1
#   times      a plain build; it prints the time of all time steps (measure.profiler: stdout)
#   profiles   one compiled and linked through Score-P's wrapper (measure.profiler: scorep)
#   MPI        any dynamically linked build (measure.profiler: mpi times MPI operations by call site)
#   effort     a second one, compiled through `orchestrator effort compiler` (measure.effort: true)
#
# Parameters
#   p   MPI ranks: a cube of an integer (1, 8, 27, 64, 125, ...); LULESH aborts on others
#   t   OpenMP threads per rank (default 1)
#   s   elements along each edge of one rank's cube, so the whole grows with p (weak scaling)
#   i   time steps (default 50); without -i their number would depend on s and p
#   r   regions (default 1: even work for all elements). LULESH's own 11 make the work jump with s
#   b   imbalance of region sizes (default 1)
#   c   extra cost of expensive regions (default 1)

{{launcher}} {{executable}} -s {{s}} -i {{i}} -r {{r}} -b {{b}} -c {{c}}
