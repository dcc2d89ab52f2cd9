#!/bin/bash
# HPL: High-Performance Linpack, dense linear equations by LU factorisation.
#
# Executable: xhpl (netlib.org/benchmark/hpl), built with MPI and a BLAS; with a threaded one for t > 1
#   times      a plain build; it prints time and rate (measure.profiler: stdout)
#   profiles   one compiled and linked through Score-P's wrapper (measure.profiler: scorep)
#   MPI        any dynamically linked build (measure.profiler: mpi times MPI operations by call site)
#   effort     a second one, compiled through `orchestrator effort compiler`; it does not count in a BLAS
#
# Parameters
#   p      MPI ranks, in a grid of rows and columns
#   t      threads of the BLAS per rank (default 1)
#   n      order of the matrix (N); a rank needs 8 * n**2 / p bytes
#   nb     block size (NB, default 128)
#   rows   rows of the grid (P), a divisor of p (default the most square grid); columns are p / rows
#   pfact  panel factorisation: 0 left, 1 Crout, 2 right (default 2)
#   rfact  recursive factorisation: 0 left, 1 Crout, 2 right (default 1)
#   nbmin  columns at which recursion stops (default 4)
#   ndiv   panels into which recursion divides, from 2 (default 2)
#   bcast  broadcast of panels: 0 1rg, 1 1rM, 2 2rg, 3 2rM, 4 Lng, 5 LnM (default 0)
#   depth  lookahead, 0..9 (default 1)
#
# HPL reads HPL.dat in the working directory: by position, and only the first words of a line.

cat > HPL.dat << 'END'
HPL.dat written by measurement-orchestrator
one problem, one process grid, one variant
HPL.out  output file
6        device out (6 = stdout)
1        number of problem sizes
{{n}}        N
1        number of block sizes
{{nb}}        NB
0        process mapping (0 = row-major)
1        number of process grids
{{rows}}        P
{{columns}}        Q
16.0     threshold of the residual
1        number of panel factorisations
{{pfact}}        PFACT (0 = left, 1 = Crout, 2 = right)
1        number of stopping criteria
{{nbmin}}        NBMIN
1        number of panels in recursion
{{ndiv}}        NDIV
1        number of recursive factorisations
{{rfact}}        RFACT (0 = left, 1 = Crout, 2 = right)
1        number of broadcasts
{{bcast}}        BCAST (0 = 1rg, 1 = 1rM, 2 = 2rg, 3 = 2rM, 4 = Lng, 5 = LnM)
1        number of lookahead depths
{{depth}}        DEPTH
2        SWAP (0 = binary exchange, 1 = long, 2 = mix)
64       swapping threshold
0        L1 (0 = transposed)
0        U (0 = transposed)
1        equilibration (1 = yes)
8        memory alignment in doubles
END

{{launcher}} {{executable}}
