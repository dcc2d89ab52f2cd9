#!/bin/bash
# Single kernels: matrix multiplication (GEMM) and QR factorisation (GEQRF) of a BLAS library, and MPI broadcast.
#
# Executable: kernels, which `orchestrator generate kernels` writes (C; needs mpicc, and OpenBLAS, MKL or another
#             LAPACK). GEMM and GEQRF are executed by every rank for itself, side by side.
#   times      a plain build; it prints the mean time of one execution, with minimum, mean and maximum over ranks
#   profiles   one compiled and linked through Score-P's wrapper (measure.profiler: scorep)
#   MPI        any dynamically linked build (measure.profiler: mpi times MPI operations by call site)
#   effort     not for these kernels: their work is done in libraries that are not instrumented
#
# Parameters
#   p       MPI ranks
#   t       threads of the BLAS per rank (default 1)
#   kernel  gemm, geqrf or bcast
#   m       gemm, geqrf: rows of C and of A
#   n       gemm: columns of C; geqrf: columns of A, at most m
#   k       gemm: columns of A
#   bytes   bcast: size of the message
#   most    executions, at most (default 50): they end when their coefficient of variation is below 1 %

{{launcher}} {{executable}} {{kernel}} -m {{m}} -n {{n}} -k {{k}} -b {{bytes}} -e {{most}}
