/* What the counters of MPI operations share. */
#ifndef ORCHESTRATOR_MPI_EFFORT_H
#define ORCHESTRATOR_MPI_EFFORT_H

#include "effort.h"

#include <mpi.h>

#ifdef ORCHESTRATOR_MPI_TIME

#include "mpi_time.h"

/* The call site of the operation that is running, which is timed until its function returns. */
#define ENTER(operation)                                                                                     \
    static struct region region = {.name = #operation};                                                      \
    struct timer timer __attribute__((cleanup(mpi_time_stop))) =                                             \
        mpi_time_start(&region, (uintptr_t)__builtin_return_address(0));                                     \
    struct node *node = timer.node

#else

/* The call path of the operation that is running. */
#define ENTER(operation)                                                                                     \
    static struct region region = {.name = #operation};                                                      \
    struct node *node = orchestrator_effort_enter(&region, __builtin_frame_address(0))

#endif

/* Bytes of `count` elements. */
static inline uint64_t bytes(MPI_Count count, MPI_Datatype type)
{
    MPI_Count size = 0;
    if (count <= 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size <= 0)
        return 0;
    return (uint64_t)count * (uint64_t)size;
}

/* Bytes that a completed receive really got. */
static inline uint64_t got(const MPI_Status *status)
{
    MPI_Count count = 0;
    int cancelled = 0;
    PMPI_Test_cancelled(status, &cancelled);
    if (cancelled || PMPI_Get_elements_x(status, MPI_BYTE, &count) != MPI_SUCCESS || count < 0)
        return 0;
    return (uint64_t)count;
}

#endif
