/* The writer's half: Python has no memory barriers, so the guarded parts are written here. It is
 * a library of its own, so that a writer does not load the driver that it plays. */
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "state.h"

void slicewatchPublish(_Atomic uint32_t *sequence, void *target, const void *source, uint64_t size)
{
    uint32_t before = atomic_load_explicit(sequence, memory_order_relaxed);
    before += before & 1U; /* a writer that died half way left it odd */
    atomic_store_explicit(sequence, before + 1U, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    memcpy(target, source, size);
    atomic_store_explicit(sequence, before + 2U, memory_order_release);
}

void slicewatchRing(struct shared_state *state)
{
    atomic_fetch_add(&state->bell, 1U);
    syscall(SYS_futex, &state->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void slicewatchAnnounce(struct shared_state *state, const struct event_state *event)
{
    uint64_t number = atomic_load_explicit(&state->events_written, memory_order_relaxed);
    state->events[number % EVENTS] = *event;
    atomic_store_explicit(&state->events_written, number + 1U, memory_order_release);
    slicewatchRing(state);
}

void slicewatchStore(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store(word, value);
}

uint32_t slicewatchLoad(const _Atomic uint32_t *word)
{
    return atomic_load(word);
}

uint64_t slicewatchStateSize(void)
{
    return sizeof(struct shared_state);
}
