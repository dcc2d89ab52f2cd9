/* Time in MPI operations per call site: the function that calls the operation. */
#ifndef ORCHESTRATOR_MPI_TIME_H
#define ORCHESTRATOR_MPI_TIME_H

#include "effort.h"

/* An operation that is running. Of one that MPI itself calls within another, nothing counts. */
struct timer {
    struct node *node;
    uint64_t start;
    int inner;
};

struct timer mpi_time_start(struct region *operation, uintptr_t back);
void mpi_time_stop(struct timer *timer);

/* Nanoseconds that the process has run, and those of its first thread in MPI operations. */
uint64_t mpi_time_elapsed(void);
uint64_t mpi_time_inside(void);

#endif
