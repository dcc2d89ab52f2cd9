/* Completes no requests at all, in every way that MPI has, and gives no arrays: what sparse solvers do where a
 * rank has no neighbours. */
#include <mpi.h>
#include <stdio.h>

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

static void complete(MPI_Request *requests, int *indices, MPI_Status *statuses, MPI_Status *status)
{
    int flag = 0, index = 0, number = 0;
    MPI_Waitall(0, requests, statuses);
    MPI_Testall(0, requests, &flag, statuses);
    require(flag, "MPI_Testall");
    MPI_Waitany(0, requests, &index, status);
    require(index == MPI_UNDEFINED, "MPI_Waitany");
    index = flag = 0;
    MPI_Testany(0, requests, &index, &flag, status);
    require(flag && index == MPI_UNDEFINED, "MPI_Testany");
    MPI_Waitsome(0, requests, &number, indices, statuses);
    require(number == MPI_UNDEFINED, "MPI_Waitsome");
    number = 0;
    MPI_Testsome(0, requests, &number, indices, statuses);
    require(number == MPI_UNDEFINED, "MPI_Testsome");
}

int main(int argc, char **argv)
{
    MPI_Request requests[1] = {MPI_REQUEST_NULL};
    MPI_Status statuses[1];
    int indices[1];
    MPI_Init(&argc, &argv);
    complete(NULL, NULL, NULL, MPI_STATUS_IGNORE);
    complete(NULL, NULL, MPI_STATUSES_IGNORE, MPI_STATUS_IGNORE);
    complete(requests, indices, statuses, statuses);
    MPI_Finalize();
    return 0;
}
