/* Collective operations, start and end of MPI.
 *
 * Bytes follow Score-P, and so the SWC paper, section III-A: as if every rank sent its data to each rank that
 * gets them, itself included; what MPI_IN_PLACE leaves where it is does not count.
 */
#include "mpi_effort.h"

struct place {
    int size, rank;
};

static struct place place_in(MPI_Comm communicator)
{
    struct place place = {0, 0};
    int inter = 0;
    PMPI_Comm_test_inter(communicator, &inter);
    if (inter)
        PMPI_Comm_remote_size(communicator, &place.size);
    else
        PMPI_Comm_size(communicator, &place.size);
    PMPI_Comm_rank(communicator, &place.rank);
    return place;
}

static uint64_t sum(const int *counts, struct place at)
{
    uint64_t total = 0;
    for (int i = 0; i < at.size; i++)
        total += counts[i];
    return total;
}

#define ROOT (root == at.rank || root == MPI_ROOT)
#define IN_PLACE(buffer) ((buffer) == MPI_IN_PLACE)
#define OTHERS(buffer) ((uint64_t)at.size - IN_PLACE(buffer))

/* One operation, blocking and not: what is sent and received. */
#define COLLECTIVE(name, parameters, arguments, bytes_sent, bytes_received)                                  \
    EXPORT int name parameters                                                                               \
    {                                                                                                        \
        ENTER(name);                                                                                         \
        struct place at = place_in(comm);                                                                    \
        node->sizes += at.size;                                                                              \
        node->sent += bytes_sent;                                                                            \
        node->received += bytes_received;                                                                    \
        return P##name arguments;                                                                            \
    }
#define WITH(...) (__VA_ARGS__)
#define BOTH(name, iname, parameters, arguments, sent, received)                                             \
    COLLECTIVE(name, WITH(parameters), WITH(arguments), sent, received)                                      \
    COLLECTIVE(iname, WITH(parameters, MPI_Request *request), WITH(arguments, request), sent, received)
#define LIST(...) __VA_ARGS__

#define TO_ALL LIST(const void *send, int scount, MPI_Datatype stype, void *receive, int rcount, MPI_Datatype rtype)
#define REDUCTION LIST(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op)

COLLECTIVE(MPI_Barrier, (MPI_Comm comm), (comm), 0, 0)
COLLECTIVE(MPI_Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request), 0, 0)
BOTH(MPI_Bcast, MPI_Ibcast, LIST(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),
     LIST(buffer, count, type, root, comm), ROOT ? at.size * bytes(count, type) : 0, bytes(count, type))
BOTH(MPI_Scatter, MPI_Iscatter, LIST(TO_ALL, int root, MPI_Comm comm),
     LIST(send, scount, stype, receive, rcount, rtype, root, comm),
     ROOT ? OTHERS(receive) * bytes(scount, stype) : 0, IN_PLACE(receive) ? 0 : bytes(rcount, rtype))
BOTH(MPI_Gather, MPI_Igather, LIST(TO_ALL, int root, MPI_Comm comm),
     LIST(send, scount, stype, receive, rcount, rtype, root, comm), IN_PLACE(send) ? 0 : bytes(scount, stype),
     ROOT ? OTHERS(send) * bytes(rcount, rtype) : 0)
BOTH(MPI_Allgather, MPI_Iallgather, LIST(TO_ALL, MPI_Comm comm),
     LIST(send, scount, stype, receive, rcount, rtype, comm),
     OTHERS(send) * (IN_PLACE(send) ? bytes(rcount, rtype) : bytes(scount, stype)),
     OTHERS(send) * bytes(rcount, rtype))
BOTH(MPI_Alltoall, MPI_Ialltoall, LIST(TO_ALL, MPI_Comm comm),
     LIST(send, scount, stype, receive, rcount, rtype, comm),
     OTHERS(send) * (IN_PLACE(send) ? bytes(rcount, rtype) : bytes(scount, stype)),
     OTHERS(send) * bytes(rcount, rtype))
BOTH(MPI_Scatterv, MPI_Iscatterv,
     LIST(const void *send, const int *scounts, const int *displacements, MPI_Datatype stype, void *receive,
          int rcount, MPI_Datatype rtype, int root, MPI_Comm comm),
     LIST(send, scounts, displacements, stype, receive, rcount, rtype, root, comm),
     ROOT ? bytes(sum(scounts, at) - (IN_PLACE(receive) ? scounts[at.rank] : 0), stype) : 0,
     IN_PLACE(receive) ? 0 : bytes(rcount, rtype))
BOTH(MPI_Gatherv, MPI_Igatherv,
     LIST(const void *send, int scount, MPI_Datatype stype, void *receive, const int *rcounts,
          const int *displacements, MPI_Datatype rtype, int root, MPI_Comm comm),
     LIST(send, scount, stype, receive, rcounts, displacements, rtype, root, comm),
     IN_PLACE(send) ? 0 : bytes(scount, stype),
     ROOT ? bytes(sum(rcounts, at) - (IN_PLACE(send) ? rcounts[at.rank] : 0), rtype) : 0)
BOTH(MPI_Allgatherv, MPI_Iallgatherv,
     LIST(const void *send, int scount, MPI_Datatype stype, void *receive, const int *rcounts,
          const int *displacements, MPI_Datatype rtype, MPI_Comm comm),
     LIST(send, scount, stype, receive, rcounts, displacements, rtype, comm),
     OTHERS(send) * (IN_PLACE(send) ? bytes(rcounts[at.rank], rtype) : bytes(scount, stype)),
     bytes(sum(rcounts, at) - (IN_PLACE(send) ? rcounts[at.rank] : 0), rtype))
BOTH(MPI_Alltoallv, MPI_Ialltoallv,
     LIST(const void *send, const int *scounts, const int *sdispls, MPI_Datatype stype, void *receive,
          const int *rcounts, const int *rdispls, MPI_Datatype rtype, MPI_Comm comm),
     LIST(send, scounts, sdispls, stype, receive, rcounts, rdispls, rtype, comm),
     IN_PLACE(send) ? bytes(sum(rcounts, at) - rcounts[at.rank], rtype) : bytes(sum(scounts, at), stype),
     bytes(sum(rcounts, at) - (IN_PLACE(send) ? rcounts[at.rank] : 0), rtype))
BOTH(MPI_Reduce, MPI_Ireduce, LIST(REDUCTION, int root, MPI_Comm comm),
     LIST(send, receive, count, type, op, root, comm), IN_PLACE(send) ? 0 : bytes(count, type),
     ROOT ? OTHERS(send) * bytes(count, type) : 0)
BOTH(MPI_Allreduce, MPI_Iallreduce, LIST(REDUCTION, MPI_Comm comm), LIST(send, receive, count, type, op, comm),
     OTHERS(send) * bytes(count, type), OTHERS(send) * bytes(count, type))
BOTH(MPI_Scan, MPI_Iscan, LIST(REDUCTION, MPI_Comm comm), LIST(send, receive, count, type, op, comm),
     (at.size - at.rank - IN_PLACE(send)) * bytes(count, type),
     (at.rank + 1 - IN_PLACE(send)) * bytes(count, type))
BOTH(MPI_Exscan, MPI_Iexscan, LIST(REDUCTION, MPI_Comm comm), LIST(send, receive, count, type, op, comm),
     (at.size - at.rank - 1) * bytes(count, type), at.rank * bytes(count, type))
BOTH(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, LIST(REDUCTION, MPI_Comm comm),
     LIST(send, receive, count, type, op, comm), OTHERS(send) * bytes(count, type),
     OTHERS(send) * bytes(count, type))
BOTH(MPI_Reduce_scatter, MPI_Ireduce_scatter,
     LIST(const void *send, void *receive, const int *counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     LIST(send, receive, counts, type, op, comm),
     bytes(sum(counts, at) - (IN_PLACE(send) ? counts[at.rank] : 0), type),
     OTHERS(send) * bytes(counts[at.rank], type))

static void announce(void)
{
    int rank = 0, size = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    orchestrator_effort_rank(rank, size);
}

EXPORT int MPI_Init(int *argc, char ***argv)
{
    ENTER(MPI_Init);
    (void)node;
    int error = PMPI_Init(argc, argv);
    announce();
    return error;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    ENTER(MPI_Init_thread);
    (void)node;
    int error = PMPI_Init_thread(argc, argv, required, provided);
    announce();
    return error;
}

EXPORT int MPI_Finalize(void)
{
    ENTER(MPI_Finalize);
    (void)node;
    return PMPI_Finalize();
}

EXPORT int MPI_Abort(MPI_Comm comm, int code)
{
    ENTER(MPI_Abort);
    (void)node;
    orchestrator_effort_end("MPI_Abort");
    return PMPI_Abort(comm, code);
}
