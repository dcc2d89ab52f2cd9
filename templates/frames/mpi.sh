#!/bin/bash
# Start a program on this machine. Runs in the attempt's own directory.

# What an enclosing MPI program or job step left behind makes MPI_Init believe that it belongs to that one.
unset PMI_FD PMI_RANK PMI_SIZE PMI_PORT PMI_ID PMIX_RANK PMIX_NAMESPACE PMIX_ID PMIX_SERVER_URI2 PMIX_SERVER_URI21
unset ${!OMPI_COMM_WORLD_@} ${!PMIX_SERVER_@} ${!MPI_LOCAL@}

{{prologue}}

{{environment}}

exec < /dev/null
{{exec}} {{launcher}} {{command}}{{epilogue}}
