/* Starting and completing requests. Received bytes come from the status, at the call path of the completion. */
#include "mpi_requests.h"

#include <stdlib.h>

struct entry {
    struct entry *next;
    MPI_Request request;
    enum kind kind;
    uint64_t bytes;
};

#define BUCKETS 4096

static struct entry *buckets[BUCKETS];
static struct entry *spare;
static struct lock guard = {ATOMIC_FLAG_INIT};

static struct entry **bucket(MPI_Request request)
{
    uintptr_t handle = (uintptr_t)request; /* a number or a pointer */
    return &buckets[(handle ^ handle >> 6 ^ handle >> 18) % BUCKETS];
}

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&guard.flag, memory_order_acquire))
        ;
}

static void unlock(void)
{
    atomic_flag_clear_explicit(&guard.flag, memory_order_release);
}

/* Remember a request. Handles that MPI shares between requests that are complete at once are kept once. */
void requests_add(MPI_Request request, enum kind kind, uint64_t bytes)
{
    if (request == MPI_REQUEST_NULL)
        return;
    lock();
    struct entry *entry = *bucket(request);
    while (entry && entry->request != request)
        entry = entry->next;
    if (!entry) {
        entry = spare;
        if (entry)
            spare = entry->next;
        else
            entry = calloc(1, sizeof *entry);
        if (!entry)
            abort();
        entry->request = request;
        entry->next = *bucket(request);
        *bucket(request) = entry;
    }
    entry->kind = kind;
    entry->bytes = bytes;
    unlock();
}

/* Return what is known of a request; forget it if it is `over` and not persistent. */
static struct entry find(MPI_Request request, int over, int for_good)
{
    struct entry found = {.kind = NONE};
    lock();
    for (struct entry **link = bucket(request); *link; link = &(*link)->next) {
        struct entry *entry = *link;
        if (entry->request != request)
            continue;
        found = *entry;
        if (for_good || (over && entry->kind == RECEIVE)) {
            *link = entry->next;
            entry->next = spare;
            spare = entry;
        }
        break;
    }
    unlock();
    return found;
}

static uint64_t completed(MPI_Request request, const MPI_Status *status)
{
    if (request == MPI_REQUEST_NULL)
        return 0;
    struct entry entry = find(request, 1, 0);
    return entry.kind == RECEIVE || entry.kind == PERSISTENT_RECEIVE ? got(status) : 0;
}

/* Copies of handles and room for statuses, as calls set handles to null and may ignore statuses. */
struct batch {
    MPI_Request *requests;
    MPI_Status *statuses, *own;
};

static void *room(int count, size_t size)
{
    void *found = malloc((count > 0 ? count + (size_t)1 : 1) * size); /* never 0 bytes, which may give NULL */
    if (!found)
        abort();
    return found;
}

static struct batch batch(int count, const MPI_Request *requests, MPI_Status *statuses)
{
    struct batch batch = {room(count, sizeof *batch.requests), statuses, NULL};
    /* Programs that wait for nothing pass NULL, which is not what MPICH calls MPI_STATUSES_IGNORE. */
    if (statuses == MPI_STATUSES_IGNORE || !statuses)
        batch.statuses = batch.own = room(count, sizeof *batch.own);
    for (int i = 0; i < count; i++)
        batch.requests[i] = requests[i];
    return batch;
}

static void release(struct batch batch)
{
    free(batch.requests);
    free(batch.own);
}

EXPORT int MPI_Start(MPI_Request *request)
{
    ENTER(MPI_Start);
    node->sent += find(*request, 0, 0).bytes;
    return PMPI_Start(request);
}

EXPORT int MPI_Startall(int count, MPI_Request requests[])
{
    ENTER(MPI_Startall);
    for (int i = 0; i < count; i++)
        node->sent += find(requests[i], 0, 0).bytes;
    return PMPI_Startall(count, requests);
}

EXPORT int MPI_Request_free(MPI_Request *request)
{
    ENTER(MPI_Request_free);
    (void)node;
    find(*request, 0, 1);
    return PMPI_Request_free(request);
}

EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    ENTER(MPI_Wait);
    MPI_Request before = *request;
    MPI_Status own;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    int error = PMPI_Wait(request, status);
    node->received += completed(before, status);
    return error;
}

EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    ENTER(MPI_Test);
    MPI_Request before = *request;
    MPI_Status own;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    int error = PMPI_Test(request, flag, status);
    node->received += *flag ? completed(before, status) : 0;
    return error;
}

EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status *statuses)
{
    ENTER(MPI_Waitall);
    struct batch all = batch(count, requests, statuses);
    int error = PMPI_Waitall(count, requests, all.statuses);
    for (int i = 0; i < count; i++)
        node->received += completed(all.requests[i], &all.statuses[i]);
    release(all);
    return error;
}

EXPORT int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status *statuses)
{
    ENTER(MPI_Testall);
    struct batch all = batch(count, requests, statuses);
    int error = PMPI_Testall(count, requests, flag, all.statuses);
    for (int i = 0; *flag && i < count; i++)
        node->received += completed(all.requests[i], &all.statuses[i]);
    release(all);
    return error;
}

EXPORT int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    ENTER(MPI_Waitany);
    MPI_Status own;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    struct batch all = batch(count, requests, status);
    int error = PMPI_Waitany(count, requests, index, status);
    node->received += *index == MPI_UNDEFINED ? 0 : completed(all.requests[*index], status);
    release(all);
    return error;
}

EXPORT int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    ENTER(MPI_Testany);
    MPI_Status own;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    struct batch all = batch(count, requests, status);
    int error = PMPI_Testany(count, requests, index, flag, status);
    node->received += !*flag || *index == MPI_UNDEFINED ? 0 : completed(all.requests[*index], status);
    release(all);
    return error;
}

#define SOME(name)                                                                                           \
    EXPORT int name(int count, MPI_Request requests[], int *number, int indices[], MPI_Status *statuses)     \
    {                                                                                                        \
        ENTER(name);                                                                                         \
        struct batch all = batch(count, requests, statuses);                                                 \
        int error = P##name(count, requests, number, indices, all.statuses);                                 \
        for (int i = 0; *number != MPI_UNDEFINED && i < *number; i++)                                        \
            node->received += completed(all.requests[indices[i]], &all.statuses[i]);                         \
        release(all);                                                                                        \
        return error;                                                                                        \
    }

SOME(MPI_Waitsome)
SOME(MPI_Testsome)
