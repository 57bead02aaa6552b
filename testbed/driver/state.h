/* What stands in the shared file. One writer; any number of readers in any number of processes.
 *
 * A part that changes as a whole has a sequence in front of it that is odd while it is written:
 * a reader takes its copy again if the sequence moved meanwhile. Words that stand alone are
 * atomic. testbed/driver/state.py mirrors these structures; STATE_VERSION changes with them. */
#ifndef SLICEWATCH_STATE_H
#define SLICEWATCH_STATE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define STATE_MAGIC 0x4C4D564E45434C53ULL
#define STATE_VERSION 3

enum { GPUS = 32, SLOTS = 8, PROFILES = 18, EVENTS = 256 };
enum { ANSWERS = 2048, POOL = 192 * 1024, PAYLOAD = 32 * 1024 };

enum call {
#define CALL(name) CALL_##name,
#include "calls.h"
#undef CALL
    CALLS
};

struct memory_state {
    uint64_t total, reserved, free, used;
};

struct profile_state {
    uint32_t index, id, slices, instances, sm_count, padding;
    uint64_t memory_mib;
    char name[96];
};

/* One index of the MIG enumeration. generation changes whenever another instance lies there. */
struct slot_state {
    uint32_t present, generation, gpu_instance, compute_instance;
    uint32_t profile, placement_start, placement_size, sm_count;
    uint32_t gpu_slices, compute_slices, media_engines, padding;
    uint64_t memory_mib;
    struct memory_state memory;
    char uuid[96];
    char name[96];
};

/* What the GPU (scope -1) or one of its MIG slots answers to a call with certain arguments. The
 * rows of a list lie one after the other; capacity is what a sizing call announces instead of
 * their number, if it is not 0. The payload stands at an offset of the GPU's pool. */
struct answer {
    uint32_t call;
    int32_t scope;
    uint32_t key[2];
    uint32_t result, rows, capacity, value_type;
    uint32_t offset, size;
};

/* error, call_errors: an nvmlReturn_t that answers every call, or calls of one kind.
 * answers: sorted by call, scope and key, which are compared as they are declared. */
struct gpu_state {
    uint32_t present, generation, error, minor;
    uint32_t mig_capable, mig_enabled, mig_pending, mig_slots;
    uint32_t profiles_held, answers_held;
    uint64_t event_types;
    struct memory_state memory;
    char name[96];
    char uuid[96];
    char serial[32];
    char board[80];
    char vbios[32];
    char bus_id[32];
    uint32_t call_errors[CALLS];
    struct profile_state profiles[PROFILES];
    struct slot_state slots[SLOTS];
    struct answer answers[ANSWERS];
    uint8_t pool[POOL];
};

/* hang: while it is set, calls on the GPU do not return.
 * growths: so many sizing calls announce one row fewer than there will be. */
struct gpu_cell {
    _Atomic uint32_t sequence;
    _Atomic uint32_t hang;
    _Atomic int32_t growths;
    uint32_t padding;
    struct gpu_state state;
};

/* load counts the lives of the driver: whoever initialised it in an earlier one gets stale_error,
 * as everybody gets error, and whoever initialises it now gets init_error. */
struct system_state {
    uint32_t gpu_count, init_error, error, stale_error, cuda, load;
    char driver[80];
    char nvml[80];
};

struct event_state {
    uint32_t gpu, gpu_instance, compute_instance, padding;
    uint64_t type, data;
};

/* clients: processes that have it initialised. event_error answers every wait for events.
 * gpm_inside, gpm_most: how many calls take a GPM sample now, and how many did at most, on all
 * GPUs and in all processes together. bell: another number, and a futex woken, whenever there is
 * something new for those who wait for events. */
struct shared_state {
    uint64_t magic;
    uint32_t version, size;
    _Atomic uint32_t sequence;
    _Atomic uint32_t clients;
    _Atomic uint32_t event_error;
    _Atomic uint32_t gpm_inside;
    _Atomic uint32_t gpm_most;
    _Atomic uint32_t bell;
    struct system_state system;
    _Atomic uint64_t events_written;
    struct event_state events[EVENTS];
    struct gpu_cell gpus[GPUS];
};

#endif
