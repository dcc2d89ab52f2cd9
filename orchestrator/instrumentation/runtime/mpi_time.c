/* Time in MPI operations of a program as it is: neither sources nor compiler are needed, only LD_PRELOAD.
 *
 * Without frame pointers nothing leads from a call to its callers but the return address, which says in which
 * function it is. That is the call site.
 */
#include "mpi_effort.h"

#include <string.h>
#include <time.h>

static __thread uint64_t inside __attribute__((tls_model("initial-exec")));
static __thread int depth __attribute__((tls_model("initial-exec")));
static __thread struct node ignored;
static uint64_t *inside_first, began;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

__attribute__((constructor(101))) static void begin(void)
{
    began = now();
    inside_first = &inside;
}

uint64_t mpi_time_elapsed(void)
{
    return now() - began;
}

uint64_t mpi_time_inside(void)
{
    return *inside_first;
}

/* The function that holds the call, or NULL where it has no name. What main calls belongs to the whole run. */
static struct region *caller(uintptr_t back)
{
    struct region *region = effort_region_at(back - 1);
    int is_main = region->starts || strcmp(region->name, "MAIN__") == 0; /* the latter in Fortran */
    return region->size == UINTPTR_MAX || is_main ? NULL : region;
}

struct timer mpi_time_start(struct region *operation, uintptr_t back)
{
    if (depth++)
        return (struct timer){.node = &ignored, .inner = 1};
    struct node *node = effort_called(caller(back), operation);
    node->visits++;
    return (struct timer){.node = node, .start = now()};
}

void mpi_time_stop(struct timer *timer)
{
    depth--;
    if (timer->inner)
        return;
    uint64_t spent = now() - timer->start;
    timer->node->nanoseconds += spent;
    inside += spent;
}

/* Operations whose bytes are not counted, but which take time. */
#define TIMED(name, parameters, arguments)                                                                   \
    EXPORT int name parameters                                                                               \
    {                                                                                                        \
        ENTER(name);                                                                                         \
        (void)node;                                                                                          \
        return P##name arguments;                                                                            \
    }

TIMED(MPI_Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made))
TIMED(MPI_Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made), (comm, color, key, made))
TIMED(MPI_Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made),
      (comm, type, key, info, made))
TIMED(MPI_Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made))
TIMED(MPI_Comm_free, (MPI_Comm * comm), (comm))
TIMED(MPI_Cart_create,
      (MPI_Comm comm, int count, const int sizes[], const int periods[], int reorder, MPI_Comm *made),
      (comm, count, sizes, periods, reorder, made))
TIMED(MPI_Dist_graph_create_adjacent,
      (MPI_Comm comm, int in, const int sources[], const int sweights[], int out, const int targets[],
       const int tweights[], MPI_Info info, int reorder, MPI_Comm *made),
      (comm, in, sources, sweights, out, targets, tweights, info, reorder, made))

TIMED(MPI_Mprobe, (int peer, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
      (peer, tag, comm, message, status))
TIMED(MPI_Alltoallw,
      (const void *send, const int scounts[], const int sdispls[], const MPI_Datatype stypes[], void *receive,
       const int rcounts[], const int rdispls[], const MPI_Datatype rtypes[], MPI_Comm comm),
      (send, scounts, sdispls, stypes, receive, rcounts, rdispls, rtypes, comm))
#define NEIGHBOURS                                                                                           \
    const void *send, int scount, MPI_Datatype stype, void *receive, int rcount, MPI_Datatype rtype,         \
        MPI_Comm comm
TIMED(MPI_Neighbor_allgather, (NEIGHBOURS), (send, scount, stype, receive, rcount, rtype, comm))
TIMED(MPI_Neighbor_alltoall, (NEIGHBOURS), (send, scount, stype, receive, rcount, rtype, comm))
TIMED(MPI_Neighbor_alltoallv,
      (const void *send, const int scounts[], const int sdispls[], MPI_Datatype stype, void *receive,
       const int rcounts[], const int rdispls[], MPI_Datatype rtype, MPI_Comm comm),
      (send, scounts, sdispls, stype, receive, rcounts, rdispls, rtype, comm))

TIMED(MPI_Win_create, (void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *window),
      (base, size, unit, info, comm, window))
TIMED(MPI_Win_allocate, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window),
      (size, unit, info, comm, base, window))
TIMED(MPI_Win_free, (MPI_Win * window), (window))
TIMED(MPI_Win_fence, (int assertion, MPI_Win window), (assertion, window))
TIMED(MPI_Win_lock, (int type, int rank, int assertion, MPI_Win window), (type, rank, assertion, window))
TIMED(MPI_Win_unlock, (int rank, MPI_Win window), (rank, window))
TIMED(MPI_Win_lock_all, (int assertion, MPI_Win window), (assertion, window))
TIMED(MPI_Win_unlock_all, (MPI_Win window), (window))
TIMED(MPI_Win_flush, (int rank, MPI_Win window), (rank, window))
TIMED(MPI_Win_flush_all, (MPI_Win window), (window))
TIMED(MPI_Win_post, (MPI_Group group, int assertion, MPI_Win window), (group, assertion, window))
TIMED(MPI_Win_start, (MPI_Group group, int assertion, MPI_Win window), (group, assertion, window))
TIMED(MPI_Win_complete, (MPI_Win window), (window))
TIMED(MPI_Win_wait, (MPI_Win window), (window))
TIMED(MPI_Fetch_and_op,
      (const void *origin, void *result, MPI_Datatype type, int rank, MPI_Aint offset, MPI_Op op, MPI_Win window),
      (origin, result, type, rank, offset, op, window))

TIMED(MPI_File_open, (MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file),
      (comm, name, mode, info, file))
TIMED(MPI_File_close, (MPI_File * file), (file))
TIMED(MPI_File_sync, (MPI_File file), (file))
TIMED(MPI_File_set_view,
      (MPI_File file, MPI_Offset offset, MPI_Datatype element, MPI_Datatype type, const char *form, MPI_Info info),
      (file, offset, element, type, form, info))
#define READING(name)                                                                                        \
    TIMED(name, (MPI_File file, void *buffer, int count, MPI_Datatype type, MPI_Status *status),             \
          (file, buffer, count, type, status))
#define WRITING(name)                                                                                        \
    TIMED(name, (MPI_File file, const void *buffer, int count, MPI_Datatype type, MPI_Status *status),       \
          (file, buffer, count, type, status))
#define READING_AT(name)                                                                                     \
    TIMED(name,                                                                                              \
          (MPI_File file, MPI_Offset offset, void *buffer, int count, MPI_Datatype type, MPI_Status *status), \
          (file, offset, buffer, count, type, status))
#define WRITING_AT(name)                                                                                     \
    TIMED(name,                                                                                              \
          (MPI_File file, MPI_Offset offset, const void *buffer, int count, MPI_Datatype type,               \
           MPI_Status *status),                                                                              \
          (file, offset, buffer, count, type, status))
READING(MPI_File_read)
READING(MPI_File_read_all)
READING_AT(MPI_File_read_at)
READING_AT(MPI_File_read_at_all)
WRITING(MPI_File_write)
WRITING(MPI_File_write_all)
WRITING_AT(MPI_File_write_at)
WRITING_AT(MPI_File_write_at_all)
