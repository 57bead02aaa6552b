/* The memory of a GPU or MIG instance, in two versions of the same numbers, and its BAR1 window. */
#include "answers.h"

ANSWERED(nvmlDeviceGetBAR1MemoryInfo, (nvmlDevice_t device, nvmlBAR1Memory_t *memory), OUT(memory))

static struct memory_state memory_of(const struct gpu_state *state, int slot)
{
    return slot < 0 ? state->memory : state->slots[slot].memory;
}

/* Version 1 knows no reserved memory: it counts it as used. */
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    struct memory_state copy = {0};
    struct visit visit;
    nvmlReturn_t result = visit_device(&visit, CALL_nvmlDeviceGetMemoryInfo, device);
    if (result == NVML_SUCCESS)
        result = STEADY(visit.cell->sequence, copy = memory_of(&visit.cell->state, visit.slot));
    if (result == NVML_SUCCESS)
        *memory = (nvmlMemory_t){copy.total, copy.free, copy.used + copy.reserved};
    return depart(&visit, result);
}

#ifndef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct memory_state copy = {0};
    struct visit visit;
    nvmlReturn_t result = visit_device(&visit, CALL_nvmlDeviceGetMemoryInfo_v2, device);
    if (result == NVML_SUCCESS && memory->version != nvmlMemory_v2)
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (result == NVML_SUCCESS)
        result = STEADY(visit.cell->sequence, copy = memory_of(&visit.cell->state, visit.slot));
    if (result == NVML_SUCCESS)
        *memory = (nvmlMemory_v2_t){nvmlMemory_v2, copy.total, copy.reserved, copy.free, copy.used};
    return depart(&visit, result);
}
#endif
