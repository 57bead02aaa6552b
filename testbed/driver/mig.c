/* MIG: mode, enumeration with its holes, GPU instances and profiles. */
#include <string.h>

#include "visit.h"

struct nvmlGpuInstance_st {
    int gpu;
    int slot;
};

static struct nvmlGpuInstance_st instances[GPUS][SLOTS];

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    struct visit visit;
    unsigned int capable = 0;
    nvmlReturn_t result = visit_board(&visit, CALL_nvmlDeviceGetMigMode, device);
    if (result == NVML_SUCCESS) {
        const struct gpu_state *state = &visit.cell->state;
        result = STEADY(visit.cell->sequence, (capable = state->mig_capable,
                                               *current = state->mig_enabled,
                                               *pending = state->mig_pending));
    }
    if (result == NVML_SUCCESS && !capable)
        result = NVML_ERROR_NOT_SUPPORTED;
    return depart(&visit, result);
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    ANSWER(visit_board, nvmlDeviceGetMaxMigDeviceCount, device,
           *count = state->mig_enabled ? state->mig_slots : 0);
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                 nvmlDevice_t *instance)
{
    struct visit visit;
    unsigned int slots = 0, enabled = 0;
    nvmlReturn_t result = visit_board(&visit, CALL_nvmlDeviceGetMigDeviceHandleByIndex, device);
    if (result == NVML_SUCCESS) {
        const struct gpu_state *state = &visit.cell->state;
        result = STEADY(visit.cell->sequence,
                        (slots = state->mig_slots, enabled = state->mig_enabled));
    }
    if (result == NVML_SUCCESS && !enabled)
        result = NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS && (index >= slots || index >= SLOTS || instance == NULL))
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        result = handle_of_slot(visit.gpu, (int)index, instance);
    return depart(&visit, result);
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t instance, nvmlDevice_t *device)
{
    struct visit visit;
    nvmlReturn_t result =
        visit_slot(&visit, CALL_nvmlDeviceGetDeviceHandleFromMigDeviceHandle, instance);
    if (result == NVML_SUCCESS)
        result = handle_of_gpu(visit.gpu, device);
    return depart(&visit, result);
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_instance)
{
    struct visit visit;
    nvmlReturn_t result = visit_device(&visit, CALL_nvmlDeviceIsMigDeviceHandle, device);
    if (result == NVML_SUCCESS)
        *is_instance = visit.slot >= 0;
    return depart(&visit, result);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id)
{
    ANSWER(visit_slot, nvmlDeviceGetGpuInstanceId, device,
           *id = state->slots[visit.slot].gpu_instance);
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id)
{
    ANSWER(visit_slot, nvmlDeviceGetComputeInstanceId, device,
           *id = state->slots[visit.slot].compute_instance);
}

static void fill_attributes(const struct slot_state *slot, nvmlDeviceAttributes_t *attributes)
{
    memset(attributes, 0, sizeof *attributes);
    attributes->multiprocessorCount = slot->sm_count;
    attributes->sharedDecoderCount = slot->media_engines;
    attributes->sharedJpegCount = slot->media_engines;
    attributes->sharedOfaCount = slot->media_engines;
    attributes->gpuInstanceSliceCount = slot->gpu_slices;
    attributes->computeInstanceSliceCount = slot->compute_slices;
    attributes->memorySizeMB = slot->memory_mib;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    struct visit visit;
    nvmlReturn_t result = visit_device(&visit, CALL_nvmlDeviceGetAttributes_v2, device);
    if (result == NVML_SUCCESS && visit.slot < 0)
        result = NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS)
        result = STEADY(visit.cell->sequence,
                        fill_attributes(&visit.cell->state.slots[visit.slot], attributes));
    return depart(&visit, result);
}

INTERNAL int slot_of_instance(const struct gpu_state *state, unsigned int id)
{
    for (int slot = 0; slot < SLOTS; ++slot)
        if (state->slots[slot].present && state->slots[slot].gpu_instance == id)
            return slot;
    return -1;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
                                          nvmlGpuInstance_t *instance)
{
    struct visit visit;
    int slot = -1;
    nvmlReturn_t result = visit_board(&visit, CALL_nvmlDeviceGetGpuInstanceById, device);
    if (result == NVML_SUCCESS)
        result = STEADY(visit.cell->sequence, slot = slot_of_instance(&visit.cell->state, id));
    if (result == NVML_SUCCESS && slot < 0)
        result = NVML_ERROR_NOT_FOUND;
    if (result == NVML_SUCCESS) {
        instances[visit.gpu][slot] = (struct nvmlGpuInstance_st){visit.gpu, slot};
        *instance = &instances[visit.gpu][slot];
    }
    return depart(&visit, result);
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info)
{
    struct visit visit;
    const char *first = (const char *)instances, *address = (const char *)instance;
    bool known = address >= first && address < first + sizeof instances;
    nvmlReturn_t result = visit_index(&visit, CALL_nvmlGpuInstanceGetInfo,
                                      known ? (unsigned int)instance->gpu : GPUS);
    struct slot_state slot = {0};
    if (result == NVML_SUCCESS)
        result = STEADY(visit.cell->sequence, slot = visit.cell->state.slots[instance->slot]);
    if (result == NVML_SUCCESS && !slot.present)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS) {
        info->id = slot.gpu_instance;
        info->profileId = slot.profile;
        info->placement = (nvmlGpuInstancePlacement_t){slot.placement_start, slot.placement_size};
        result = handle_of_gpu(visit.gpu, &info->device);
    }
    return depart(&visit, result);
}

/* Find a profile by NVML's index of it (NVML_GPU_INSTANCE_PROFILE_*), not by its id. */
static nvmlReturn_t profile(struct visit *visit, enum call call, nvmlDevice_t device,
                            unsigned int index, struct profile_state *found)
{
    nvmlReturn_t result = visit_board(visit, call, device);
    if (result != NVML_SUCCESS)
        return result;
    if (index >= NVML_GPU_INSTANCE_PROFILE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct gpu_state *state = &visit->cell->state;
    bool held = false;
    result = STEADY(visit->cell->sequence, {
        held = false;
        for (uint32_t row = 0; row < state->profiles_held && row < PROFILES && !held; ++row) {
            held = state->profiles[row].index == index;
            if (held)
                *found = state->profiles[row];
        }
    });
    return result == NVML_SUCCESS && !held ? NVML_ERROR_NOT_SUPPORTED : result;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int index,
                                                 nvmlGpuInstanceProfileInfo_t *info)
{
    struct visit visit;
    struct profile_state found = {0};
    nvmlReturn_t result =
        profile(&visit, CALL_nvmlDeviceGetGpuInstanceProfileInfo, device, index, &found);
    if (result == NVML_SUCCESS)
        *info = (nvmlGpuInstanceProfileInfo_t){
            .id = found.id, .sliceCount = found.slices, .instanceCount = found.instances,
            .multiprocessorCount = found.sm_count, .memorySizeMB = found.memory_mib,
        };
    return depart(&visit, result);
}

#ifndef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int index,
                                                  nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct visit visit;
    struct profile_state found = {0};
    nvmlReturn_t result =
        profile(&visit, CALL_nvmlDeviceGetGpuInstanceProfileInfoV, device, index, &found);
    if (result == NVML_SUCCESS && info->version != nvmlGpuInstanceProfileInfo_v2)
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (result == NVML_SUCCESS) {
        *info = (nvmlGpuInstanceProfileInfo_v2_t){
            .version = nvmlGpuInstanceProfileInfo_v2, .id = found.id,
            .sliceCount = found.slices, .instanceCount = found.instances,
            .multiprocessorCount = found.sm_count, .memorySizeMB = found.memory_mib,
        };
        memcpy(info->name, found.name, sizeof info->name);
    }
    return depart(&visit, result);
}
#endif
