#!/bin/bash
# Beatnik: a 3D fluid interface (Z-model) as a benchmark of global communication: its program rocketrig.
#
# Executable: rocketrig (github.com/CUP-ECS/beatnik), built on Kokkos, Cabana and HeFFTe, with MPI
#   times      a build with MEASURETIME=1, without which no time is printed (measure.profiler: stdout)
#   profiles   one with Caliper or Score-P: regions of Kokkos are annotated (measure.profiler: caliper, scorep)
#   MPI        any dynamically linked build (measure.profiler: mpi times MPI operations by call site)
#   effort     a second one, compiled through `orchestrator effort compiler` (measure.effort: true)
#
# Parameters
#   p         MPI ranks; a square (1, 4, 9, ...) for the cutoff solver
#   t         threads per rank (default 1); more need a Kokkos with OpenMP
#   n         points of the interface in each of its two dimensions; 250 to 8000 in published strong scaling
#   w         weak scaling factor: the mesh and the area become w times as large (default 1); set w = p
#   steps     time steps (default 50; rounding may add one)
#   order     low (Fourier transforms), medium, or high (far forces everywhere) (default low)
#   solver    far forces of order medium and high: exact (work grows with n**4) or cutoff (default exact)
#   cutoff    distance up to which the cutoff solver looks (default 0.5)
#   heffte    configuration of HeFFTe: 0..7: add 4 for alltoall, 2 for pencils, 1 for reordering (default 6)
#   initial   initial interface: cos, sech2, gaussian or random (default cos)
#   boundary  periodic or free (default periodic)
#   driver    serial, openmp, threads, cuda or hip (default serial, openmp where t > 1)
#
# -F 0: nothing is written, so that no file system is measured.

{{launcher}} {{executable}} -x {{driver}} -n {{n}} -w {{w}} -t {{steps}} -F 0 \
    -O {{order}} -S {{solver}} -c {{cutoff}} -H {{heffte}} -I {{initial}} -b {{boundary}}
