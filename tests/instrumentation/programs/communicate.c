/* MPI operations with known bytes, for any number of ranks from 3; then it ends as its argument says. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int ranks, rank, *a, *b, *counts, *places;

void collective(MPI_Comm w)
{
    MPI_Request request;
    MPI_Bcast(a, 10, MPI_INT, 1, w);
    MPI_Scatter(a, 3, MPI_INT, b, 3, MPI_INT, 0, w);
    MPI_Gather(a, 3, MPI_INT, b, 3, MPI_INT, 0, w);
    MPI_Allgather(a, 3, MPI_INT, b, 3, MPI_INT, w);
    MPI_Alltoall(a, 3, MPI_INT, b, 3, MPI_INT, w);
    MPI_Reduce(a, b, 5, MPI_INT, MPI_SUM, 0, w);
    MPI_Allreduce(a, b, 5, MPI_INT, MPI_SUM, w);
    MPI_Allreduce(MPI_IN_PLACE, b, 5, MPI_INT, MPI_SUM, w);
    MPI_Barrier(w);
    MPI_Gatherv(a, rank + 1, MPI_INT, b, counts, places, MPI_INT, 0, w);
    MPI_Scatterv(a, counts, places, MPI_INT, b, rank + 1, MPI_INT, 0, w);
    MPI_Allgatherv(a, rank + 1, MPI_INT, b, counts, places, MPI_INT, w);
    MPI_Reduce_scatter_block(a, b, 2, MPI_INT, MPI_SUM, w);
    MPI_Scan(a, b, 2, MPI_INT, MPI_SUM, w);
    MPI_Iallreduce(a, b, 5, MPI_INT, MPI_SUM, w, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void point(MPI_Comm w)
{
    int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks, which, some, places[2];
    MPI_Request requests[2];
    MPI_Status statuses[2];
    if (rank == 0)
        MPI_Send(a, 7, MPI_INT, 1, 0, w);
    if (rank == 1)
        MPI_Recv(b, 100, MPI_INT, 0, 0, w, MPI_STATUS_IGNORE); /* a larger buffer than message */
    MPI_Irecv(b, 100, MPI_INT, from, 1, w, &requests[0]);
    MPI_Isend(a, 9, MPI_INT, to, 1, w, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Sendrecv(a, 4, MPI_DOUBLE, to, 2, b, 50, MPI_DOUBLE, from, 2, w, MPI_STATUS_IGNORE);
    MPI_Recv_init(b, 100, MPI_INT, from, 3, w, &requests[0]);
    MPI_Send_init(a, 6, MPI_INT, to, 3, w, &requests[1]);
    for (int i = 0; i < 3; i++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Irecv(b, 100, MPI_INT, from, 5, w, &requests[0]);
    MPI_Irecv(b + 200, 100, MPI_INT, from, 6, w, &requests[1]);
    MPI_Ssend(a, 0, MPI_INT, MPI_PROC_NULL, 0, w);
    MPI_Bsend(a, 5, MPI_INT, MPI_PROC_NULL, 0, w);
    MPI_Send(a, 2, MPI_INT, to, 5, w);
    MPI_Send(a, 2, MPI_INT, to, 6, w);
    MPI_Waitany(2, requests, &which, MPI_STATUS_IGNORE);
    MPI_Waitsome(2, requests, &some, places, MPI_STATUSES_IGNORE);
    MPI_Irecv(b, 9, MPI_INT, from, 7, w, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &statuses[0]);
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    int one = 1, sum;
    MPI_Comm half;
    MPI_Init(&count, &arguments);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    a = calloc(1000, sizeof *a);
    b = calloc(1000, sizeof *b);
    counts = calloc(ranks, sizeof *counts);
    places = calloc(ranks, sizeof *places);
    for (int i = 0; i < ranks; i++) {
        counts[i] = i + 1;
        places[i] = i * (i + 1) / 2;
    }
    collective(MPI_COMM_WORLD);
    point(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, half);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(how, "abort") && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (!strcmp(how, "unfinished"))
        exit(0);
    MPI_Finalize();
    return 0;
}
