/* One file per process, written whatever way the process ends, whole or not at all.
 *
 * Signal handlers write it, too: nothing here allocates memory or uses stdio.
 */
#define _GNU_SOURCE
#include "effort.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The same files hold counts, and times in MPI operations in the place of blocks. */
#ifdef ORCHESTRATOR_MPI_TIME
#include "mpi_time.h"
#define KIND "mpi-time"
#define CONTENT "times"
#define SUFFIX ".mpitime"
#define DIRECTORY "ORCHESTRATOR_MPI_TIME_DIRECTORY"
#define VALUE(node) (node)->nanoseconds
#else
#define KIND "effort"
#define CONTENT "counts"
#define SUFFIX ".effort"
#define DIRECTORY "ORCHESTRATOR_EFFORT_DIRECTORY"
#define VALUE(node) (node)->blocks
#endif

static char folder[PATH_MAX - 128];
static char host[256];
static int rank = -1, ranks = 1;
static int counted; /* the MPI operations announced themselves */
static int silent;
static pid_t owner; /* children that only fork must not write what they inherited */
static atomic_flag written = ATOMIC_FLAG_INIT;

static int file = -1;
static char buffer[1 << 16];
static size_t used;
static int failed;

static void flush(void)
{
    for (size_t done = 0; done < used && !failed;) {
        ssize_t count = write(file, buffer + done, used - done);
        if (count < 0 && errno != EINTR)
            failed = 1;
        done += count > 0 ? (size_t)count : 0;
    }
    used = 0;
}

static void text(const char *words)
{
    for (; *words; words++) {
        if (used == sizeof buffer)
            flush();
        buffer[used++] = *words == '\n' ? ' ' : *words;
    }
}

static void line(void)
{
    if (used == sizeof buffer)
        flush();
    buffer[used++] = '\n';
}

static void number(uint64_t value)
{
    char digits[24];
    char *place = digits + sizeof digits;
    *--place = 0;
    do
        *--place = '0' + value % 10;
    while (value /= 10);
    text(place);
    text(" ");
}

static void item(const char *name, const char *value)
{
    text(name);
    text(" ");
    text(value);
    line();
}

static void nodes(const struct thread *thread, uint64_t place)
{
    for (const struct node *node = thread->newest; node; node = node->older) {
        if (!node->parent && !VALUE(node))
            continue;
        /* Number 0, the root, calls the first functions. What counts at itself gets a number of its own. */
        uint64_t id = node->parent ? node->id : thread->nodes, parent = node->parent ? node->parent->id : 0;
        const uint64_t values[] = {place,       id,         parent,         node->visits,
                                   VALUE(node), node->sent, node->received, node->sizes};
        text("node ");
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            number(values[i]);
        text(node->region ? node->region->name : "(initialisers)");
        line();
    }
}

static void content(const char *how)
{
    text("orchestrator-" KIND " 1");
    line();
    item("host", host);
    text("rank ");
    number(rank < 0 ? 0 : rank);
    number(ranks);
    line();
    item("mpi", counted ? "counted" : rank >= 0 ? "uncounted" : "none");
#ifdef ORCHESTRATOR_MPI_TIME
    text("elapsed ");
    number(mpi_time_elapsed());
    number(mpi_time_inside());
    line();
#else
    if (effort_unnamed)
        item("unnamed", effort_unnamed);
#endif
    uint64_t place = 0;
    for (const struct thread *thread = atomic_load(&effort_threads); thread; thread = thread->next)
        nodes(thread, place++);
    item("end", how);
    flush();
}

static char *append(char *place, const char *words)
{
    while (*words)
        *place++ = *words++;
    *place = 0;
    return place;
}

static char *append_number(char *place, uint64_t value)
{
    char digits[24];
    size_t count = 0;
    do
        digits[count++] = '0' + value % 10;
    while (value /= 10);
    while (count)
        *place++ = digits[--count];
    *place = 0;
    return place;
}

static void complain(const char *path)
{
    char code[24];
    append_number(code, errno);
    const char *parts[] = {"orchestrator " KIND ": " CONTENT " cannot be written: ", path, " (errno ", code, ")\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (write(2, parts[i], strlen(parts[i])) < 0)
            return;
}

static void write_file(const char *how)
{
    char path[PATH_MAX], hidden[PATH_MAX];
    char *place = append(append(path, folder), "/rank-");
    place = append(append_number(place, rank < 0 ? 0 : rank), ".");
    append(append_number(place, owner), SUFFIX);
    append(append(hidden, path), ".part");
    mkdir(folder, 0777);
    file = open(hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        complain(hidden);
        return;
    }
    content(how);
    /* No fsync: the file must survive this process, not the node, and a launcher gives little time. */
    if (failed || close(file) != 0 || rename(hidden, path) != 0) {
        complain(path);
        unlink(hidden);
    }
}

/* Write the counts, once; `how` the process ended is the last line of the file. */
EXPORT void orchestrator_effort_end(const char *how)
{
    sigset_t all, before;
#ifdef ORCHESTRATOR_MPI_TIME
    if (rank < 0)
        return; /* what is preloaded is so in shells, too: only programs that use MPI are measured */
#endif
    if (silent || getpid() != owner || atomic_flag_test_and_set(&written))
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* or the launcher's signal would end us half way */
    write_file(how);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The rank of this process and the number of ranks; set by the library that counts MPI operations. */
EXPORT void orchestrator_effort_rank(int number, int size)
{
    rank = number;
    ranks = size;
    counted = 1;
}

/* Write nothing: the counts go elsewhere. */
EXPORT void orchestrator_effort_silence(void)
{
    silent = 1;
}

/* MPI that was used without its operations being counted (from Fortran, say): the launcher sets the rank. */
static void uncounted_rank(void)
{
    int (*initialized)(int *) = (int (*)(int *))dlsym(RTLD_DEFAULT, "PMPI_Initialized");
    int started = 0;
    if (counted || !initialized || initialized(&started) != 0 || !started)
        return;
    static const char *const names[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
                                           {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    rank = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i][0]) && getenv(names[i][1])) {
            rank = atoi(getenv(names[i][0]));
            ranks = atoi(getenv(names[i][1]));
            return;
        }
}

static void on_signal(int signal_number)
{
    char how[32];
    append_number(append(how, "signal "), signal_number);
    orchestrator_effort_end(how);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void in_child(void)
{
    owner = 0;
}

static void on_quick_exit(void)
{
    orchestrator_effort_end("exit");
}

__attribute__((constructor)) static void begin(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGXCPU};
    const char *wanted = getenv(DIRECTORY);
    if (!wanted || !*wanted)
        wanted = KIND;
    char here[PATH_MAX] = "";
    if (*wanted != '/' && !getcwd(here, sizeof here))
        here[0] = 0;
    if (snprintf(folder, sizeof folder, "%s%s%s", here, *here ? "/" : "", wanted) >= (int)sizeof folder) {
        static const char message[] = "orchestrator " KIND ": " DIRECTORY " is too long\n";
        if (write(2, message, sizeof message - 1) > 0)
            silent = 1;
    }
    gethostname(host, sizeof host - 1);
    owner = getpid();
    pthread_atfork(NULL, NULL, in_child);
    at_quick_exit(on_quick_exit);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction before, ours = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(signals[i], &ours, NULL);
    }
}

__attribute__((destructor)) static void finish(void)
{
    uncounted_rank();
    orchestrator_effort_end("exit");
}

/* What ends a process without running destructors. */
EXPORT void _exit(int status)
{
    orchestrator_effort_end("exit");
    syscall(SYS_exit_group, status);
    __builtin_unreachable();
}

EXPORT void _Exit(int status)
{
    _exit(status);
}
