/* Memory that malloc knows nothing of, and locks that a call-back may take. */
#include "effort.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK ((size_t)1 << 18)

static struct lock guard = {ATOMIC_FLAG_INIT};
static char *chunk;
static size_t left;

void effort_lock(struct lock *lock)
{
    while (atomic_flag_test_and_set_explicit(&lock->flag, memory_order_acquire))
        sched_yield();
}

void effort_unlock(struct lock *lock)
{
    atomic_flag_clear_explicit(&lock->flag, memory_order_release);
}

static void *pages(size_t bytes)
{
    void *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) {
        static const char message[] = "orchestrator effort: out of memory\n";
        if (write(2, message, sizeof message - 1) < 0)
            _exit(71);
        _exit(70);
    }
    return found;
}

/* Return zeroed memory that stays for ever. */
void *effort_memory(size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes > CHUNK / 4)
        return pages(bytes);
    effort_lock(&guard);
    if (bytes > left) {
        chunk = pages(CHUNK);
        left = CHUNK;
    }
    void *found = chunk;
    chunk += bytes;
    left -= bytes;
    effort_unlock(&guard);
    return found;
}
