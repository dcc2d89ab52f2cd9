/* Threads: their call paths begin where they were started. */
#define _GNU_SOURCE
#include "effort.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct start {
    void *(*function)(void *);
    void *argument;
    struct node *from;
};

static void *thread_main(void *data)
{
    struct start start = *(struct start *)data;
    free(data);
    effort_root(start.from);
    return start.function(start.argument);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                          void *argument)
{
    static int (*original)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!original)
        original = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
            RTLD_NEXT, "pthread_create");
    struct start *start = malloc(sizeof *start);
    if (!start)
        return EAGAIN;
    *start = (struct start){function, argument, effort_here(__builtin_frame_address(0))};
    int error = original(thread, attributes, thread_main, start);
    if (error)
        free(start);
    return error;
}

/* GNU OpenMP keeps a pool of threads, so it is the parallel region that says where they work. */
struct team {
    void (*function)(void *);
    void *data;
    struct node *from;
};

static void in_team(void *data)
{
    struct team *team = data;
    effort_here(__builtin_frame_address(0)); /* what ran here before is over, whatever its frame was */
    struct node *before = effort_root(team->from);
    team->function(team->data);
    effort_restore_root(before);
}

#define REGION(name, parameters, arguments)                                                                  \
    EXPORT void name parameters                                                                              \
    {                                                                                                        \
        static void(*original) parameters;                                                                   \
        if (!original)                                                                                       \
            original = (void(*) parameters)dlsym(RTLD_NEXT, #name);                                          \
        struct team team = {function, data, effort_here(__builtin_frame_address(0))};                        \
        original arguments;                                                                                  \
    }

#define LOOP(name)                                                                                           \
    REGION(name,                                                                                             \
           (void (*function)(void *), void *data, unsigned threads, long start, long end, long step,         \
            long chunk, unsigned flags),                                                                     \
           (in_team, &team, threads, start, end, step, chunk, flags))

#define LOOP_WITHOUT_CHUNK(name)                                                                             \
    REGION(name,                                                                                             \
           (void (*function)(void *), void *data, unsigned threads, long start, long end, long step,         \
            unsigned flags),                                                                                 \
           (in_team, &team, threads, start, end, step, flags))

REGION(GOMP_parallel, (void (*function)(void *), void *data, unsigned threads, unsigned flags),
       (in_team, &team, threads, flags))
REGION(GOMP_parallel_sections,
       (void (*function)(void *), void *data, unsigned threads, unsigned count, unsigned flags),
       (in_team, &team, threads, count, flags))
LOOP(GOMP_parallel_loop_static)
LOOP(GOMP_parallel_loop_dynamic)
LOOP(GOMP_parallel_loop_guided)
LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
LOOP(GOMP_parallel_loop_nonmonotonic_guided)
LOOP_WITHOUT_CHUNK(GOMP_parallel_loop_runtime)
LOOP_WITHOUT_CHUNK(GOMP_parallel_loop_nonmonotonic_runtime)
LOOP_WITHOUT_CHUNK(GOMP_parallel_loop_maybe_nonmonotonic_runtime)
