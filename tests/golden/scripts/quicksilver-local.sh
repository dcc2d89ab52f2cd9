#!/bin/bash
# Start a program on this machine. Runs in the attempt's own directory.

# What an enclosing MPI program or job step left behind makes MPI_Init believe that it belongs to that one.
unset PMI_FD PMI_RANK PMI_SIZE PMI_PORT PMI_ID PMIX_RANK PMIX_NAMESPACE PMIX_ID PMIX_SERVER_URI2 PMIX_SERVER_URI21
unset ${!OMPI_COMM_WORLD_@} ${!PMIX_SERVER_@} ${!MPI_LOCAL@}



export OMP_NUM_THREADS=1

exec < /dev/null
exec mpiexec -n 4 '/opt/my apps/program.x' \
    -X 6 -Y 6 -Z 3 -x 6 -y 6 -z 3 \
    -I 2 -J 2 -K 1 -n 1620 -N 10 -s 1029384756
