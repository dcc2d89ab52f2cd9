/* The call-back of every basic block, and the call tree that it counts in.
 *
 * gcc and clang call __sanitizer_cov_trace_pc at the start of every basic block. The frame pointer
 * identifies the activation that a block belongs to, so entries and exits need no call: an activation is over
 * once a block of a caller runs, also after an exception or a longjmp. Folded functions (symbols.c says
 * which) and what the compiler inlined count as part of the function that they are in.
 */
#include "effort.h"

#include <pthread.h>

#define likely(x) __builtin_expect(!!(x), 1)

/* The activation on top of the stack: all that is needed as long as blocks of the same one follow. */
struct top {
    uintptr_t frame, low, size, entry;
    uintptr_t inner; /* frame of the last folded function that it called */
    uint64_t *blocks, before; /* its counter, and what that was when it came to the top */
    struct thread *thread;
    int busy;
};

static __thread struct top top __attribute__((tls_model("initial-exec")));
static __thread uint64_t finished __attribute__((tls_model("initial-exec"))); /* blocks of earlier tops */

_Atomic(struct thread *) effort_threads;
static struct thread *idle;
static struct lock guard = {ATOMIC_FLAG_INIT};
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* To be called before the top changes: a call-back has time for one counter only. */
static void leave_top(void)
{
    if (top.frame) {
        finished += *top.blocks - top.before;
        top.before = *top.blocks;
    }
}

static void retire(void *argument)
{
    struct thread *thread = argument;
    leave_top();
    thread->depth = 0;
    top.thread = NULL;
    top.frame = 0;
    effort_lock(&guard);
    thread->free = idle;
    idle = thread;
    effort_unlock(&guard);
}

static void make_key(void)
{
    pthread_key_create(&key, retire);
}

static struct node *new_node(struct thread *thread, struct node *parent, struct region *region)
{
    struct node *node = effort_memory(sizeof *node);
    node->region = region;
    node->parent = parent;
    node->id = thread->nodes++;
    node->older = thread->newest;
    thread->newest = node;
    return node;
}

static struct thread *new_thread(void)
{
    struct thread *thread = effort_memory(sizeof *thread);
    thread->root = new_node(thread, NULL, NULL);
    thread->next = atomic_load(&effort_threads);
    while (!atomic_compare_exchange_weak(&effort_threads, &thread->next, thread))
        ;
    return thread;
}

static struct thread *this_thread(void)
{
    if (likely(top.thread != NULL))
        return top.thread;
    top.busy = 1;
    pthread_once(&once, make_key);
    effort_lock(&guard);
    struct thread *thread = idle;
    if (thread)
        idle = thread->free;
    effort_unlock(&guard);
    if (!thread)
        thread = new_thread();
    while (thread->root->parent)
        thread->root = thread->root->parent;
    top.thread = thread;
    pthread_setspecific(key, thread);
    top.busy = 0;
    return thread;
}

/* Return the node of a region called from a node. Recursion leads back to the region's first activation:
 * call paths that grow with the input could not be compared between inputs. */
static struct node *called(struct thread *thread, struct node *from, struct region *region)
{
    struct edge **link = &from->edges;
    for (struct edge *edge = *link; edge; link = &edge->next, edge = *link)
        if (edge->region == region) {
            *link = edge->next; /* to the front */
            edge->next = from->edges;
            from->edges = edge;
            return edge->target;
        }
    struct node *target = from;
    while (target && target->region != region)
        target = target->parent;
    struct edge *edge = effort_memory(sizeof *edge);
    edge->region = region;
    edge->target = target ? target : new_node(thread, from, region);
    edge->next = from->edges;
    from->edges = edge;
    return edge->target;
}

static void load(const struct thread *thread)
{
    top.inner = 0;
    if (thread->depth == 0) {
        top.frame = 0;
        return;
    }
    const struct activation *last = &thread->stack[thread->depth - 1];
    top.frame = last->frame;
    top.low = last->region->low;
    top.size = last->region->size;
    top.entry = last->region->entry;
    top.blocks = &last->node->blocks;
    top.before = *top.blocks;
}

static int overwritten(const struct activation *activation)
{
    const uintptr_t *frame = (const uintptr_t *)activation->frame;
    return frame[0] != activation->link || frame[1] != activation->back;
}

/* Forget activations that are over now that one with this frame begins. The stack grows downwards: what lies at
 * or below the new frame is over, and so is what lies between it and the frame that it links to. Where code
 * without frame pointers is in between (a library that calls back), it links to nothing that we know; then
 * those are over whose own links have been overwritten. */
static void settle(struct thread *thread, uintptr_t frame)
{
    while (thread->depth && thread->stack[thread->depth - 1].frame <= frame)
        thread->depth--;
    uintptr_t caller = *(const uintptr_t *)frame;
    for (size_t place = thread->depth; place-- > 0 && thread->stack[place].frame <= caller;)
        if (thread->stack[place].frame == caller) {
            thread->depth = place + 1;
            return;
        }
    while (thread->depth && overwritten(&thread->stack[thread->depth - 1]))
        thread->depth--;
}

static void push(struct thread *thread, uintptr_t frame, struct region *region, struct node *node)
{
    if (thread->depth == thread->capacity) {
        size_t capacity = thread->capacity ? 2 * thread->capacity : 256;
        struct activation *stack = effort_memory(capacity * sizeof *stack);
        for (size_t i = 0; i < thread->depth; i++)
            stack[i] = thread->stack[i];
        thread->stack = stack;
        thread->capacity = capacity;
    }
    const uintptr_t *links = (const uintptr_t *)frame;
    thread->stack[thread->depth++] = (struct activation){frame, links[0], links[1], region, node};
}

static struct node *current(const struct thread *thread)
{
    return thread->depth ? thread->stack[thread->depth - 1].node : thread->root;
}

/* Whether the first block of the activation on top, seen again, belongs to a new call. It may be a loop's
 * head instead. A loop in the caller would have executed a block of the caller, so a new call comes from
 * another place of it, or from a caller that is not instrumented. */
static int is_new(const struct thread *thread, struct activation *last)
{
    uintptr_t back = ((const uintptr_t *)last->frame)[1];
    int same = back == last->back;
    last->back = back;
    if (!same || thread->depth < 2)
        return !same; /* what a thread begins in is called once */
    const struct region *caller = last[-1].region;
    return back - caller->low >= caller->size;
}

static __attribute__((noinline)) void change(uintptr_t address, uintptr_t frame)
{
    if (top.busy)
        return; /* a call-back from within what a call-back does */
    struct thread *thread = this_thread();
    leave_top();
    finished++;
    while (thread->depth && thread->stack[thread->depth - 1].frame < frame)
        thread->depth--;
    if (thread->depth && thread->stack[thread->depth - 1].frame == frame) {
        struct activation *last = &thread->stack[thread->depth - 1];
        if (address - last->region->low < last->region->size) { /* returned to, or called again */
            if (address == last->region->entry && !last->region->folded)
                last->node->visits += is_new(thread, last);
            last->node->blocks++;
            load(thread);
            return;
        }
    }
    top.busy = 1;
    struct region *region = effort_region_at(address);
    top.busy = 0;
    if (!region->entry)
        region->entry = address;
    settle(thread, frame);
    if (region->starts)
        thread->depth = 0;
    struct node *node = region->folded ? current(thread) : called(thread, current(thread), region);
    node->visits += !region->folded;
    node->blocks++;
    push(thread, frame, region, node);
    load(thread);
}

/* Whether this is a block of a folded function that the one on top has called, directly or through another:
 * most calls of a C++ program are of such. */
static int in_folded(uintptr_t address, uintptr_t frame)
{
    if (!effort_cache || !top.frame || frame >= top.frame)
        return 0;
    const struct cached *slot = &effort_cache[SLOT(address)];
    if (slot->address != address || !slot->region->folded)
        return 0;
    uintptr_t caller = *(const uintptr_t *)frame;
    if (frame != top.inner && caller != top.frame && caller != top.inner)
        return 0;
    top.inner = frame;
    return 1;
}

/* The compiler's call-back. */
EXPORT void __sanitizer_cov_trace_pc(void)
{
    uintptr_t address = (uintptr_t)__builtin_return_address(0);
    uintptr_t frame = *(uintptr_t *)__builtin_frame_address(0);
    if ((likely(frame == top.frame) && address - top.low < top.size && address != top.entry) ||
        in_folded(address, frame))
        ++*top.blocks;
    else
        change(address, frame);
}

/* Return the call path that the function with this frame was called from. */
struct node *effort_here(void *frame)
{
    struct thread *thread = this_thread();
    leave_top();
    settle(thread, (uintptr_t)frame);
    load(thread);
    return current(thread);
}

/* Return the node of an operation that is called now, by the function with this frame. */
EXPORT struct node *orchestrator_effort_enter(struct region *region, void *frame)
{
    struct node *from = effort_here(frame);
    struct node *node = called(top.thread, from, region);
    node->visits++;
    return node;
}

/* Return the node of an operation that a region calls, whatever the region was called from; NULL: unknown. */
struct node *effort_called(struct region *caller, struct region *region)
{
    struct thread *thread = this_thread();
    struct node *from = caller ? called(thread, thread->root, caller) : thread->root;
    return called(thread, from, region);
}

/* Blocks that the calling thread has executed so far. */
EXPORT uint64_t orchestrator_effort_blocks(void)
{
    leave_top();
    return finished;
}

static struct node *graft(struct thread *thread, struct node *root, const struct node *elsewhere)
{
    return elsewhere->parent ? called(thread, graft(thread, root, elsewhere->parent), elsewhere->region) : root;
}

/* Let this thread's call paths begin below that of another thread; return where they began before. */
struct node *effort_root(struct node *elsewhere)
{
    struct thread *thread = this_thread();
    struct node *before = thread->root, *root = before;
    while (root->parent)
        root = root->parent;
    thread->root = graft(thread, root, elsewhere);
    return before;
}

void effort_restore_root(struct node *root)
{
    this_thread()->root = root;
}
