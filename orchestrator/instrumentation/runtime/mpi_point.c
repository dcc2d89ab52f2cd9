/* Point-to-point and one-sided operations that send or receive at once, and those that begin to. */
#include "mpi_effort.h"
#include "mpi_requests.h"

static int size_of(MPI_Comm communicator)
{
    int size = 0;
    PMPI_Comm_size(communicator, &size);
    return size;
}

#define SENDING(name)                                                                                        \
    EXPORT int name(const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm)      \
    {                                                                                                        \
        ENTER(name);                                                                                         \
        node->sizes += size_of(comm);                                                                        \
        node->sent += peer == MPI_PROC_NULL ? 0 : bytes(count, type);                                        \
        return P##name(buffer, count, type, peer, tag, comm);                                                \
    }

#define BEGINNING_TO_SEND(name)                                                                              \
    EXPORT int name(const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,      \
                    MPI_Request *request)                                                                    \
    {                                                                                                        \
        ENTER(name);                                                                                         \
        node->sizes += size_of(comm);                                                                        \
        node->sent += peer == MPI_PROC_NULL ? 0 : bytes(count, type);                                        \
        return P##name(buffer, count, type, peer, tag, comm, request);                                       \
    }

/* Persistent: the bytes are sent when the request is started. */
#define PREPARING_TO_SEND(name)                                                                              \
    EXPORT int name(const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,      \
                    MPI_Request *request)                                                                    \
    {                                                                                                        \
        ENTER(name);                                                                                         \
        node->sizes += size_of(comm);                                                                        \
        int error = P##name(buffer, count, type, peer, tag, comm, request);                                  \
        requests_add(*request, PERSISTENT_SEND, peer == MPI_PROC_NULL ? 0 : bytes(count, type));             \
        return error;                                                                                        \
    }

SENDING(MPI_Send)
SENDING(MPI_Bsend)
SENDING(MPI_Ssend)
SENDING(MPI_Rsend)
BEGINNING_TO_SEND(MPI_Isend)
BEGINNING_TO_SEND(MPI_Ibsend)
BEGINNING_TO_SEND(MPI_Issend)
BEGINNING_TO_SEND(MPI_Irsend)
PREPARING_TO_SEND(MPI_Send_init)
PREPARING_TO_SEND(MPI_Bsend_init)
PREPARING_TO_SEND(MPI_Ssend_init)
PREPARING_TO_SEND(MPI_Rsend_init)

EXPORT int MPI_Recv(void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                    MPI_Status *status)
{
    ENTER(MPI_Recv);
    MPI_Status own;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    node->sizes += size_of(comm);
    int error = PMPI_Recv(buffer, count, type, peer, tag, comm, status);
    node->received += error == MPI_SUCCESS ? got(status) : 0;
    return error;
}

EXPORT int MPI_Mrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
    ENTER(MPI_Mrecv);
    MPI_Status own;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    int error = PMPI_Mrecv(buffer, count, type, message, status);
    node->received += error == MPI_SUCCESS ? got(status) : 0;
    return error;
}

EXPORT int MPI_Sendrecv(const void *send, int scount, MPI_Datatype stype, int target, int stag, void *receive,
                        int rcount, MPI_Datatype rtype, int source, int rtag, MPI_Comm comm, MPI_Status *status)
{
    ENTER(MPI_Sendrecv);
    MPI_Status own;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    node->sizes += size_of(comm);
    node->sent += target == MPI_PROC_NULL ? 0 : bytes(scount, stype);
    int error = PMPI_Sendrecv(send, scount, stype, target, stag, receive, rcount, rtype, source, rtag, comm, status);
    node->received += error == MPI_SUCCESS ? got(status) : 0;
    return error;
}

EXPORT int MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int target, int stag, int source,
                                int rtag, MPI_Comm comm, MPI_Status *status)
{
    ENTER(MPI_Sendrecv_replace);
    MPI_Status own;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    node->sizes += size_of(comm);
    node->sent += target == MPI_PROC_NULL ? 0 : bytes(count, type);
    int error = PMPI_Sendrecv_replace(buffer, count, type, target, stag, source, rtag, comm, status);
    node->received += error == MPI_SUCCESS ? got(status) : 0;
    return error;
}

EXPORT int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                     MPI_Request *request)
{
    ENTER(MPI_Irecv);
    node->sizes += size_of(comm);
    int error = PMPI_Irecv(buffer, count, type, peer, tag, comm, request);
    requests_add(*request, RECEIVE, 0);
    return error;
}

EXPORT int MPI_Imrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request)
{
    ENTER(MPI_Imrecv);
    (void)node;
    int error = PMPI_Imrecv(buffer, count, type, message, request);
    requests_add(*request, RECEIVE, 0);
    return error;
}

EXPORT int MPI_Recv_init(void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                         MPI_Request *request)
{
    ENTER(MPI_Recv_init);
    node->sizes += size_of(comm);
    int error = PMPI_Recv_init(buffer, count, type, peer, tag, comm, request);
    requests_add(*request, PERSISTENT_RECEIVE, 0);
    return error;
}

/* Polling: only the calls count. Their number depends on timing, so two runs will differ in them. */
EXPORT int MPI_Probe(int peer, int tag, MPI_Comm comm, MPI_Status *status)
{
    ENTER(MPI_Probe);
    node->sizes += size_of(comm);
    return PMPI_Probe(peer, tag, comm, status);
}

EXPORT int MPI_Iprobe(int peer, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    ENTER(MPI_Iprobe);
    node->sizes += size_of(comm);
    return PMPI_Iprobe(peer, tag, comm, flag, status);
}

#define WINDOW_PARAMETERS                                                                                    \
    int count, MPI_Datatype type, int target, MPI_Aint offset, int tcount, MPI_Datatype ttype

EXPORT int MPI_Put(const void *origin, WINDOW_PARAMETERS, MPI_Win window)
{
    ENTER(MPI_Put);
    node->sent += target == MPI_PROC_NULL ? 0 : bytes(count, type);
    return PMPI_Put(origin, count, type, target, offset, tcount, ttype, window);
}

EXPORT int MPI_Get(void *origin, WINDOW_PARAMETERS, MPI_Win window)
{
    ENTER(MPI_Get);
    node->received += target == MPI_PROC_NULL ? 0 : bytes(count, type);
    return PMPI_Get(origin, count, type, target, offset, tcount, ttype, window);
}

EXPORT int MPI_Accumulate(const void *origin, WINDOW_PARAMETERS, MPI_Op operation, MPI_Win window)
{
    ENTER(MPI_Accumulate);
    node->sent += target == MPI_PROC_NULL ? 0 : bytes(count, type);
    return PMPI_Accumulate(origin, count, type, target, offset, tcount, ttype, operation, window);
}
