#!/bin/bash
# RELeARN: structural plasticity of the brain; neurons grow and delete synapses.
#
# Executable: relearn, built with MPI; with OpenMP for t > 1
#   times      a plain build; it prints a tree of timers over all ranks (measure.profiler: stdout)
#   profiles   one compiled and linked through Score-P's wrapper (measure.profiler: scorep)
#   MPI        any dynamically linked build (measure.profiler: mpi times MPI operations by call site)
#   effort     a second one, compiled through `orchestrator effort compiler` (measure.effort: true)
#
# Parameters
#   p          MPI ranks: a power of two, at least 2; RELeARN aborts on others
#   t          OpenMP threads per rank (default 1)
#   n          neurons per rank (weak scaling)
#   theta      acceptance criterion of the Barnes-Hut algorithms, above 0 and at most 0.5 (default 0.3).
#              It changes the complexity: fix it under settings
#   steps      steps of the simulation in ms (default 1000)
#   algorithm  barnes-hut or barnes-hut-inverted (default barnes-hut)
#   seed       random seed (default 0)
#
# Logs go into the directory of the run (-l).

{{launcher}} {{executable}} -a {{algorithm}} -t {{theta}} --num-neurons-per-rank {{n}} \
    -s {{steps}} -r {{seed}} --openmp {{t}} -l ./
