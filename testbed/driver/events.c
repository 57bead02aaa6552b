/* Events: a ring in the shared file, read by event sets of which each has its own place in it. */
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "visit.h"

/* A set sees what happens on a GPU after the GPU was registered with it, once, in order. */
struct nvmlEventSet_st {
    uint64_t next;
    unsigned long long types[GPUS];
    uint64_t since[GPUS];
};

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    struct visit visit;
    nvmlReturn_t result = enter(&visit, CALL_nvmlEventSetCreate);
    if (result == NVML_SUCCESS && set == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS) {
        *set = calloc(1, sizeof **set);
        if (*set == NULL)
            result = NVML_ERROR_MEMORY;
        else
            (*set)->next = atomic_load(&shared->events_written);
    }
    return depart(&visit, result);
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    ANSWER(visit_board, nvmlDeviceGetSupportedEventTypes, device, *types = state->event_types);
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    struct visit visit;
    unsigned long long supported = 0;
    nvmlReturn_t result = visit_board(&visit, CALL_nvmlDeviceRegisterEvents, device);
    if (result == NVML_SUCCESS && set == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        result = STEADY(visit.cell->sequence, supported = visit.cell->state.event_types);
    if (result == NVML_SUCCESS && (types & ~supported) != 0)
        result = NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS) {
        if (set->types[visit.gpu] == 0)
            set->since[visit.gpu] = atomic_load(&shared->events_written);
        set->types[visit.gpu] |= types;
    }
    return depart(&visit, result);
}

static bool wanted(const struct nvmlEventSet_st *set, const struct event_state *event, uint64_t number)
{
    return event->gpu < GPUS && number >= set->since[event->gpu]
        && (event->type & set->types[event->gpu]) != 0;
}

/* Move the set's place on to the next event that it wants; false when there is none yet. */
static bool take(struct nvmlEventSet_st *set, struct event_state *event)
{
    uint64_t written = atomic_load_explicit(&shared->events_written, memory_order_acquire);
    if (written > set->next + EVENTS)
        set->next = written - EVENTS;
    while (set->next < written) {
        uint64_t number = set->next++;
        *event = shared->events[number % EVENTS];
        if (wanted(set, event, number))
            return true;
    }
    return false;
}

static uint64_t now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000U + (uint64_t)time.tv_nsec / 1000U;
}

/* Sleep until the bell is rung; not at all if it was since `heard`. As a driver's wait, this costs
 * nothing while nothing happens. */
static void sleep_until_rung(uint32_t heard, uint64_t microseconds)
{
    struct timespec time = {(time_t)(microseconds / 1000000U), (long)(microseconds % 1000000U) * 1000};
    syscall(SYS_futex, &shared->bell, FUTEX_WAIT, heard, &time, NULL, 0);
}

static nvmlReturn_t await(struct nvmlEventSet_st *set, unsigned int timeout_ms, struct event_state *event)
{
    uint64_t deadline = now_us() + (uint64_t)timeout_ms * 1000U;
    for (;;) {
        uint32_t heard = atomic_load(&shared->bell);
        uint32_t error = atomic_load(&shared->event_error);
        uint64_t now = now_us();
        if (error != 0)
            return (nvmlReturn_t)error;
        if (take(set, event))
            return NVML_SUCCESS;
        if (now >= deadline)
            return NVML_ERROR_TIMEOUT;
        sleep_until_rung(heard, deadline - now);
    }
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    struct visit visit;
    struct event_state event = {0};
    nvmlReturn_t result = enter(&visit, CALL_nvmlEventSetWait_v2);
    if (result == NVML_SUCCESS && (set == NULL || data == NULL))
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        result = await(set, timeout_ms, &event);
    if (result == NVML_SUCCESS) {
        memset(data, 0, sizeof *data);
        data->eventType = event.type;
        data->eventData = event.data;
        data->gpuInstanceId = event.gpu_instance;
        data->computeInstanceId = event.compute_instance;
        result = handle_of_gpu((int)event.gpu, &data->device);
    }
    return depart(&visit, result);
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    struct visit visit;
    nvmlReturn_t result = enter(&visit, CALL_nvmlEventSetFree);
    if (result == NVML_SUCCESS && set == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        free(set);
    return depart(&visit, result);
}
