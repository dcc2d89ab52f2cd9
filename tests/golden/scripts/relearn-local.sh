#!/bin/bash
# Start a program on this machine. Runs in the attempt's own directory.

# What an enclosing MPI program or job step left behind makes MPI_Init believe that it belongs to that one.
unset PMI_FD PMI_RANK PMI_SIZE PMI_PORT PMI_ID PMIX_RANK PMIX_NAMESPACE PMIX_ID PMIX_SERVER_URI2 PMIX_SERVER_URI21
unset ${!OMPI_COMM_WORLD_@} ${!PMIX_SERVER_@} ${!MPI_LOCAL@}



export OMP_NUM_THREADS=1

exec < /dev/null
exec mpiexec -n 4 '/opt/my apps/program.x' -a barnes-hut -t 0.2 --num-neurons-per-rank 200 \
    -s 1000 -r 0 --openmp 1 -l ./
