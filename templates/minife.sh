#!/bin/bash
# miniFE: implicit finite elements; assembles a matrix and solves it by conjugate gradients.
#
# Executable: miniFE.x (github.com/Mantevo/miniFE, folder ref or openmp), built with MPI (-DHAVE_MPI)
#   times      a plain build; its report miniFE*.yaml has the times of rank 0 (measure.profiler: stdout)
#   profiles   one compiled and linked through Score-P's wrapper (measure.profiler: scorep)
#   MPI        any dynamically linked build (measure.profiler: mpi times MPI operations by call site)
#   effort     a second one, compiled through `orchestrator effort compiler` (measure.effort: true)
#
# Parameters
#   p                     MPI ranks
#   t                     OpenMP threads per rank (default 1)
#   s                     elements along each edge per rank, times the most cubic grid of p ranks (weak scaling); or
#   n                     elements along each edge of the whole domain (strong scaling); or
#   elements              elements of the whole domain as 'x,y,z'; at least one per rank
#   load_imbalance        imbalance of rows in percent (default 0)
#   mv_overlap_comm_comp  1: communication overlaps computation (default 0)

{{launcher}} {{executable}} -nx {{nx}} -ny {{ny}} -nz {{nz}} \
    -load_imbalance {{load_imbalance}} -mv_overlap_comm_comp {{mv_overlap_comm_comp}}
