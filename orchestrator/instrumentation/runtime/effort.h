/* Counters of computational and communication effort per call path: what the parts of the runtime share.
 *
 * Every thread has a call tree of its own, so counting needs no locks. Memory comes from mmap and is never
 * freed: call-backs arrive in the middle of anything, malloc included.
 */
#ifndef ORCHESTRATOR_EFFORT_H
#define ORCHESTRATOR_EFFORT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* A region: a function of the program, or an MPI operation (which has no addresses). */
struct region {
    const char *name;
    uintptr_t low, size; /* of its code */
    uintptr_t entry;     /* address of its first block's call-back, once seen */
    int starts;          /* main: what ran before it, static initialisers, is over */
    int folded;          /* counts as part of its caller; the C++ library and accessors do */
};

/* From a node to the one that a called region leads to: a child, or an ancestor where it recurses. */
struct edge {
    struct region *region;
    struct node *target;
    struct edge *next;
};

/* A call path of one thread. */
struct node {
    struct region *region; /* NULL for the root */
    struct node *parent;
    struct edge *edges;
    struct node *older; /* the thread's nodes, newest first */
    uint64_t id, visits, blocks, sent, received;
    uint64_t sizes; /* communicator sizes, summed over calls */
    uint64_t nanoseconds; /* only where MPI operations are timed */
};

/* A function that runs. What its frame held at the start, the caller's frame and the return address, tells
 * later whether it may still be running. */
struct activation {
    uintptr_t frame, link, back;
    struct region *region;
    struct node *node; /* of the caller, where the region is folded into it */
};

/* A thread's tree and stack. It outlives the thread; a later thread takes it over with its counts. */
struct thread {
    struct thread *next, *free;
    struct node *root; /* what the thread was started in; call paths begin below it */
    struct node *newest;
    struct activation *stack;
    size_t depth, capacity;
    uint64_t nodes;
};

struct lock {
    atomic_flag flag;
};

/* tree.c */
EXPORT struct node *orchestrator_effort_enter(struct region *region, void *frame);
EXPORT uint64_t orchestrator_effort_blocks(void);
struct node *effort_called(struct region *caller, struct region *region);
struct node *effort_here(void *frame);
struct node *effort_root(struct node *elsewhere);
void effort_restore_root(struct node *root);
extern _Atomic(struct thread *) effort_threads;

/* symbols.c */
struct cached {
    uintptr_t address;
    struct region *region;
};
#define CACHE 4096 /* addresses; a power of two */
#define SLOT(address) (((address) ^ (address) >> 12) % CACHE)
extern __thread struct cached *effort_cache __attribute__((tls_model("initial-exec"), visibility("hidden")));
struct region *effort_region_at(uintptr_t address);
extern const char *effort_unnamed; /* a program or library whose functions have no names, or NULL */

/* output.c */
EXPORT void orchestrator_effort_rank(int rank, int size);
EXPORT void orchestrator_effort_end(const char *how);
EXPORT void orchestrator_effort_silence(void);

/* memory.c */
void *effort_memory(size_t bytes);
void effort_lock(struct lock *lock);
void effort_unlock(struct lock *lock);

#endif
