#!/bin/bash
# FASTEST: turbulent flows in complex three-dimensional configurations, with block-structured grids.
#
# Executable: fastest. Its source is not public: this template was written after published measurements and was not
#             run. Compare it with your installation and edit a copy (template: ./fastest.sh).
#   profiles   one compiled and linked through Score-P's wrapper (measure.profiler: scorep), as published
#   times      measure.profiler: time takes the duration of the whole run; no times are read from the output
#   MPI        any dynamically linked build (measure.profiler: mpi times MPI operations by call site)
#   effort     a second one, compiled through `orchestrator effort compiler` (measure.effort: true)
#
# Parameters
#   p      MPI ranks; every rank has the same number of cells, so a case is prepared for every p
#   t      OpenMP threads per rank (default 1)
#   s      cells of one rank. With a fixed set of grids p and s cannot be combined freely: published were
#          p = 16..2048 and s = 8192..131072 with 2**21 <= p * s <= 2**24 (a parallelogram); write such a constraint
#   cases  absolute path of the folder with the prepared cases: p16-s131072, p32-s65536, ...

cp -r {{cases}}/p{{p}}-s{{s}}/. . || exit 1

{{launcher}} {{executable}}
