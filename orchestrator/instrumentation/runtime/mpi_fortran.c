/* Operations that Fortran calls: its interface leads past the C functions that are wrapped.
 *
 * All arguments are addresses, so they are passed on as they are. Operations with texts among their arguments,
 * whose lengths follow the others, are left to themselves. Bytes are not counted.
 */
#define _GNU_SOURCE
#include "mpi_effort.h"

#include <dlfcn.h>

#define P1 void *a
#define P2 P1, void *b
#define P3 P2, void *c
#define P4 P3, void *d
#define P5 P4, void *e
#define P6 P5, void *f
#define P7 P6, void *g
#define P8 P7, void *h
#define P9 P8, void *i
#define P10 P9, void *j
#define P11 P10, void *k
#define P12 P11, void *l
#define P13 P12, void *m
#define A1 a
#define A2 A1, b
#define A3 A2, c
#define A4 A3, d
#define A5 A4, e
#define A6 A5, f
#define A7 A6, g
#define A8 A7, h
#define A9 A8, i
#define A10 A9, j
#define A11 A10, k
#define A12 A11, l
#define A13 A12, m

/* What follows the start of MPI, and what follows all else. */
static void announce(void)
{
    int rank = 0, size = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    orchestrator_effort_rank(rank, size);
}

static void nothing(void)
{
}

#define WRAPPED(name, symbol, count, afterwards)                                                             \
    EXPORT void symbol(P##count)                                                                             \
    {                                                                                                        \
        static void (*original)(P##count);                                                                   \
        if (!original)                                                                                       \
            original = (void (*)(P##count))dlsym(RTLD_NEXT, #symbol);                                        \
        ENTER(name);                                                                                         \
        (void)node;                                                                                          \
        original(A##count);                                                                                  \
        afterwards();                                                                                        \
    }

/* `name` as in C, `symbol` as gfortran and most others write it: mpif.h and module mpi, module mpi_f08 of
 * Open MPI and of MPICH. In the latter, too, everything is an address, if only of a descriptor. */
#define EACH(name, symbol, count, afterwards)                                                                \
    WRAPPED(name, symbol##_, count, afterwards)                                                              \
    WRAPPED(name, symbol##_f08_, count, afterwards)                                                          \
    WRAPPED(name, symbol##_f08ts_, count, afterwards)
#define STARTING(name, symbol, count) EACH(name, symbol, count, announce)
#define FORTRAN(name, symbol, count) EACH(name, symbol, count, nothing)

STARTING(MPI_Init, mpi_init, 1)
STARTING(MPI_Init_thread, mpi_init_thread, 3)
FORTRAN(MPI_Finalize, mpi_finalize, 1)

FORTRAN(MPI_Send, mpi_send, 7)
FORTRAN(MPI_Bsend, mpi_bsend, 7)
FORTRAN(MPI_Ssend, mpi_ssend, 7)
FORTRAN(MPI_Rsend, mpi_rsend, 7)
FORTRAN(MPI_Recv, mpi_recv, 8)
FORTRAN(MPI_Isend, mpi_isend, 8)
FORTRAN(MPI_Ibsend, mpi_ibsend, 8)
FORTRAN(MPI_Issend, mpi_issend, 8)
FORTRAN(MPI_Irsend, mpi_irsend, 8)
FORTRAN(MPI_Irecv, mpi_irecv, 8)
FORTRAN(MPI_Sendrecv, mpi_sendrecv, 13)
FORTRAN(MPI_Sendrecv_replace, mpi_sendrecv_replace, 10)
FORTRAN(MPI_Probe, mpi_probe, 5)
FORTRAN(MPI_Iprobe, mpi_iprobe, 6)
FORTRAN(MPI_Start, mpi_start, 2)
FORTRAN(MPI_Startall, mpi_startall, 3)
FORTRAN(MPI_Wait, mpi_wait, 3)
FORTRAN(MPI_Waitall, mpi_waitall, 4)
FORTRAN(MPI_Waitany, mpi_waitany, 5)
FORTRAN(MPI_Waitsome, mpi_waitsome, 6)
FORTRAN(MPI_Test, mpi_test, 4)
FORTRAN(MPI_Testall, mpi_testall, 5)
FORTRAN(MPI_Testany, mpi_testany, 6)
FORTRAN(MPI_Testsome, mpi_testsome, 6)

FORTRAN(MPI_Barrier, mpi_barrier, 2)
FORTRAN(MPI_Bcast, mpi_bcast, 6)
FORTRAN(MPI_Gather, mpi_gather, 9)
FORTRAN(MPI_Gatherv, mpi_gatherv, 10)
FORTRAN(MPI_Scatter, mpi_scatter, 9)
FORTRAN(MPI_Scatterv, mpi_scatterv, 10)
FORTRAN(MPI_Allgather, mpi_allgather, 8)
FORTRAN(MPI_Allgatherv, mpi_allgatherv, 9)
FORTRAN(MPI_Alltoall, mpi_alltoall, 8)
FORTRAN(MPI_Alltoallv, mpi_alltoallv, 10)
FORTRAN(MPI_Alltoallw, mpi_alltoallw, 10)
FORTRAN(MPI_Reduce, mpi_reduce, 8)
FORTRAN(MPI_Allreduce, mpi_allreduce, 7)
FORTRAN(MPI_Reduce_scatter, mpi_reduce_scatter, 7)
FORTRAN(MPI_Reduce_scatter_block, mpi_reduce_scatter_block, 7)
FORTRAN(MPI_Scan, mpi_scan, 7)
FORTRAN(MPI_Exscan, mpi_exscan, 7)
FORTRAN(MPI_Ibarrier, mpi_ibarrier, 3)
FORTRAN(MPI_Ibcast, mpi_ibcast, 7)
FORTRAN(MPI_Iallreduce, mpi_iallreduce, 8)
FORTRAN(MPI_Ireduce, mpi_ireduce, 9)
FORTRAN(MPI_Iallgather, mpi_iallgather, 9)
FORTRAN(MPI_Ialltoall, mpi_ialltoall, 9)
FORTRAN(MPI_Neighbor_alltoall, mpi_neighbor_alltoall, 8)
FORTRAN(MPI_Neighbor_alltoallv, mpi_neighbor_alltoallv, 10)

FORTRAN(MPI_Comm_dup, mpi_comm_dup, 3)
FORTRAN(MPI_Comm_split, mpi_comm_split, 5)
FORTRAN(MPI_Comm_create, mpi_comm_create, 4)
FORTRAN(MPI_Comm_free, mpi_comm_free, 2)
FORTRAN(MPI_Cart_create, mpi_cart_create, 7)
FORTRAN(MPI_Put, mpi_put, 9)
FORTRAN(MPI_Get, mpi_get, 9)
FORTRAN(MPI_Accumulate, mpi_accumulate, 10)
FORTRAN(MPI_Win_fence, mpi_win_fence, 3)
FORTRAN(MPI_Win_lock, mpi_win_lock, 5)
FORTRAN(MPI_Win_unlock, mpi_win_unlock, 3)
FORTRAN(MPI_File_read_all, mpi_file_read_all, 6)
FORTRAN(MPI_File_write_all, mpi_file_write_all, 6)
FORTRAN(MPI_File_read_at_all, mpi_file_read_at_all, 7)
FORTRAN(MPI_File_write_at_all, mpi_file_write_at_all, 7)
FORTRAN(MPI_File_close, mpi_file_close, 2)
