/* An annotated program: a ring exchange and a sum per step. README.md says how it is built and run. */
#include <caliper/cali.h>
#include <caliper/cali-mpi.h>
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, n = argc > 1 ? atoi(argv[1]) : 1000;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    cali_set_global_int_byname("problem_size", n);
    CALI_MARK_FUNCTION_BEGIN;
    double *data = calloc(2 * n, sizeof *data), total = 0;
    for (int step = 0; step < 3; step++) {
        CALI_MARK_BEGIN("compute");
        for (int i = 0; i < (rank + 1) * n; i++)
            data[i % n] += i * 0.5;
        CALI_MARK_BEGIN("inner, \"odd\"=\\name");
        total += data[n / 2];
        CALI_MARK_END("inner, \"odd\"=\\name");
        CALI_MARK_END("compute");
        CALI_MARK_BEGIN("exchange");
        MPI_Sendrecv(data, n, MPI_DOUBLE, (rank + 1) % size, 0, data + n, n, MPI_DOUBLE,
                     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CALI_MARK_END("exchange");
        MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        CALI_MARK_BEGIN("report");
        CALI_MARK_END("report");
    }
    CALI_MARK_FUNCTION_END;
    free(data);
    MPI_Finalize();
    return 0;
}
