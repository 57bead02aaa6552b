/* How every entry point enters and leaves: counted, under the lock against shutdown, with a valid
 * handle, no further than a hanging GPU lets it. */
#ifndef SLICEWATCH_VISIT_H
#define SLICEWATCH_VISIT_H

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#include <stdbool.h>
#include <time.h>

#include "state.h"

#define INTERNAL __attribute__((visibility("hidden")))

/* Long enough for any writer; a sequence that stays odd longer belongs to one that died. */
enum { STEADY_ATTEMPTS = 20000 };

extern INTERNAL struct shared_state *shared;

struct visit {
    struct gpu_cell *cell;
    enum call call;
    int gpu;
    int slot; /* -1: the GPU itself */
    bool inside;
};

/* enter/depart bracket a call that concerns no GPU; visit/depart one that does. */
INTERNAL nvmlReturn_t enter(struct visit *visit, enum call call);
INTERNAL nvmlReturn_t visit_index(struct visit *visit, enum call call, unsigned int index);
INTERNAL nvmlReturn_t visit_device(struct visit *visit, enum call call, nvmlDevice_t device);
/* As visit_device, for what a MIG instance has none of. */
INTERNAL nvmlReturn_t visit_board(struct visit *visit, enum call call, nvmlDevice_t device);
INTERNAL nvmlReturn_t visit_slot(struct visit *visit, enum call call, nvmlDevice_t device);
/* The second halves of the two above, for calls that have entered already. */
INTERNAL nvmlReturn_t visit_handle(struct visit *visit, nvmlDevice_t device);
INTERNAL nvmlReturn_t visit_found(struct visit *visit, int gpu);
INTERNAL nvmlReturn_t depart(struct visit *visit, nvmlReturn_t result);

INTERNAL nvmlReturn_t handle_of_gpu(int gpu, nvmlDevice_t *device);
INTERNAL nvmlReturn_t handle_of_slot(int gpu, int slot, nvmlDevice_t *device);
/* The slot where a GPU instance lies; -1 where there is none of this id. */
INTERNAL int slot_of_instance(const struct gpu_state *state, unsigned int id);

INTERNAL nvmlReturn_t copy_text(char *target, unsigned int length, const char *source);

static inline void pause_for_microseconds(long microseconds)
{
    struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&time, NULL);
}

/* Run `statement`, which copies out of a part guarded by `counter`, until the copy is whole. */
#define STEADY(counter, statement)                                                                \
    __extension__({                                                                               \
        nvmlReturn_t steady_ = NVML_ERROR_UNKNOWN;                                                \
        for (int attempt_ = 0; attempt_ < STEADY_ATTEMPTS; ++attempt_) {                          \
            uint32_t before_ = atomic_load_explicit(&(counter), memory_order_acquire);            \
            if (before_ & 1U) {                                                                   \
                pause_for_microseconds(50);                                                       \
                continue;                                                                         \
            }                                                                                     \
            statement;                                                                            \
            atomic_thread_fence(memory_order_acquire);                                            \
            if (atomic_load_explicit(&(counter), memory_order_relaxed) == before_) {              \
                steady_ = NVML_SUCCESS;                                                           \
                break;                                                                            \
            }                                                                                     \
        }                                                                                         \
        steady_;                                                                                  \
    })

/* The body of an entry point that copies fields of one GPU: `state` is the GPU's. */
#define ANSWER(how, name, device, statement)                                                      \
    do {                                                                                          \
        struct visit visit;                                                                       \
        nvmlReturn_t result = how(&visit, CALL_##name, device);                                   \
        if (result == NVML_SUCCESS) {                                                             \
            const struct gpu_state *state = &visit.cell->state;                                   \
            result = STEADY(visit.cell->sequence, statement);                                     \
        }                                                                                         \
        return depart(&visit, result);                                                            \
    } while (0)

#endif
