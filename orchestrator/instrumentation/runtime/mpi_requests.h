/* Requests whose bytes are known only when they are started or completed. */
#ifndef ORCHESTRATOR_MPI_REQUESTS_H
#define ORCHESTRATOR_MPI_REQUESTS_H

#include "mpi_effort.h"

enum kind { NONE, RECEIVE, PERSISTENT_RECEIVE, PERSISTENT_SEND };

void requests_add(MPI_Request request, enum kind kind, uint64_t bytes);

#endif
