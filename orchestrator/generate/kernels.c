/* Times single kernels: dgemm and dgeqrf of a BLAS and LAPACK library, and MPI_Bcast.
 *
 *   kernels gemm  -m 512 -n 512 -k 512      C = A B + C with C of m x n, on every rank for itself
 *   kernels geqrf -m 1024 -n 256            QR factorisation of A of m x n
 *   kernels bcast -b 65536                  broadcast of so many bytes from rank 0
 *
 * After one execution that is not timed, the kernel is executed until the coefficient of variation of its time is
 * below 1 % on every rank, at least 5 and at most -e times (default 50). Printed is the mean time of one execution,
 * with minimum, mean and maximum over ranks.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEWEST 5
#define VARIATION 0.01

void dgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k, const double *alpha,
            const double *a, const int *lda, const double *b, const int *ldb, const double *beta, double *c,
            const int *ldc);
void dgeqrf_(const int *m, const int *n, double *a, const int *lda, double *tau, double *work, const int *lwork,
             int *info);

typedef struct {
    int m, n, k;
    long bytes;
    double *a, *b, *c, *work;
    int length; /* of work */
    char *message;
} Problem;

static void fail(const char *text)
{
    fprintf(stderr, "kernels: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static void *allocated(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) fail("out of memory");
    return memory;
}

static double *filled(size_t count)
{
    double *values = allocated(count * sizeof(double));
    unsigned long state = 88172645463325252UL;
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        values[i] = (double)(state >> 33) / 4294967296.0 - 0.25;
    }
    return values;
}

static double gemm(Problem *x)
{
    const double one = 1.0;
    double begin = MPI_Wtime();
    dgemm_("N", "N", &x->m, &x->n, &x->k, &one, x->a, &x->m, x->b, &x->k, &one, x->c, &x->m);
    return MPI_Wtime() - begin;
}

static double geqrf(Problem *x)
{
    int info;
    memcpy(x->c, x->a, (size_t)x->m * x->n * sizeof(double)); /* the factorisation overwrites its matrix */
    double begin = MPI_Wtime();
    dgeqrf_(&x->m, &x->n, x->c, &x->m, x->b, x->work, &x->length, &info);
    double time = MPI_Wtime() - begin;
    if (info != 0) fail("dgeqrf refuses its arguments");
    return time;
}

static double bcast(Problem *x)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    MPI_Bcast(x->message, (int)x->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    return MPI_Wtime() - begin;
}

static void prepare_gemm(Problem *x)
{
    x->a = filled((size_t)x->m * x->k);
    x->b = filled((size_t)x->k * x->n);
    x->c = filled((size_t)x->m * x->n);
}

static void prepare_geqrf(Problem *x)
{
    if (x->m < x->n) fail("geqrf needs m >= n");
    double wanted;
    int ask = -1, info;
    x->a = filled((size_t)x->m * x->n);
    x->c = filled((size_t)x->m * x->n);
    x->b = filled((size_t)x->n);
    dgeqrf_(&x->m, &x->n, x->c, &x->m, x->b, &wanted, &ask, &info);
    x->length = (int)wanted;
    x->work = allocated((size_t)x->length * sizeof(double));
}

static void prepare_bcast(Problem *x)
{
    if (x->bytes > 2147483647L) fail("bcast sends at most 2147483647 bytes");
    x->message = allocated((size_t)x->bytes);
    memset(x->message, 1, (size_t)x->bytes);
}

static const struct {
    const char *name;
    void (*prepare)(Problem *);
    double (*execute)(Problem *);
} KERNELS[] = {{"gemm", prepare_gemm, gemm}, {"geqrf", prepare_geqrf, geqrf}, {"bcast", prepare_bcast, bcast}};

/* Returns the mean time of one execution on this rank; all ranks execute the kernel equally often. */
static double mean_time(double (*execute)(Problem *), Problem *x, long most, long *executions)
{
    double mean = 0.0, squares = 0.0;
    int go_on = 1;
    long count = 0;
    execute(x);
    while (count < most && go_on) {
        double time = execute(x), before = mean;
        count++;
        mean += (time - before) / count;
        squares += (time - before) * (time - mean);
        int varies = count < FEWEST || sqrt(squares / (count - 1)) > VARIATION * mean;
        MPI_Allreduce(&varies, &go_on, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    }
    *executions = count;
    return mean;
}

static long number(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*end != '\0' || value < 1) fail("sizes are whole numbers of at least 1");
    return value;
}

static int size(const char *text)
{
    long value = number(text);
    if (value > 2147483647L) fail("-m, -n and -k are at most 2147483647");
    return (int)value;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    Problem x = {.m = 1, .n = 1, .k = 1, .bytes = 1};
    long most = 50, executions;
    int rank, ranks, chosen = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; argc > 1 && i < 3; i++)
        if (strcmp(argv[1], KERNELS[i].name) == 0) chosen = i;
    if (chosen < 0 || argc % 2 != 0) fail("usage: kernels gemm|geqrf|bcast [-m M] [-n N] [-k K] [-b BYTES] [-e MOST]");
    for (int i = 2; i < argc; i += 2) {
        if (strcmp(argv[i], "-m") == 0) x.m = size(argv[i + 1]);
        else if (strcmp(argv[i], "-n") == 0) x.n = size(argv[i + 1]);
        else if (strcmp(argv[i], "-k") == 0) x.k = size(argv[i + 1]);
        else if (strcmp(argv[i], "-b") == 0) x.bytes = number(argv[i + 1]);
        else if (strcmp(argv[i], "-e") == 0) most = number(argv[i + 1]);
        else fail("unknown option; there are -m, -n, -k, -b and -e");
    }
    KERNELS[chosen].prepare(&x);
    double mean = mean_time(KERNELS[chosen].execute, &x, most, &executions);
    double least, sum, largest;
    MPI_Reduce(&mean, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mean, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mean, &largest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d ranks, %ld executions\n", ranks, executions);
        printf("%s: min %.9e mean %.9e max %.9e s over ranks\n", KERNELS[chosen].name, least, sum / ranks, largest);
    }
    MPI_Finalize();
    return 0;
}
