#!/bin/bash
# Start a program on this machine. Runs in the attempt's own directory.

# What an enclosing MPI program or job step left behind makes MPI_Init believe that it belongs to that one.
unset PMI_FD PMI_RANK PMI_SIZE PMI_PORT PMI_ID PMIX_RANK PMIX_NAMESPACE PMIX_ID PMIX_SERVER_URI2 PMIX_SERVER_URI21
unset ${!OMPI_COMM_WORLD_@} ${!PMIX_SERVER_@} ${!MPI_LOCAL@}



export OMP_NUM_THREADS=1

exec < /dev/null
exec mpiexec -n 4 '/opt/my apps/program.x' -nx 20 -ny 20 -nz 20 \
    -load_imbalance 0 -mv_overlap_comm_comp 0
