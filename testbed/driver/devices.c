/* Handles and identities. A handle is an address in a table of ours; it stops being valid when
 * the instance it was made for is gone, and the same address may then stand for another. */
#include <stdio.h>
#include <string.h>

#include "visit.h"

struct nvmlDevice_st {
    int gpu;
    int slot;
    _Atomic uint32_t generation;
};

/* Row 0 of a GPU is the GPU itself, the others are its MIG slots. */
static struct nvmlDevice_st handles[GPUS][SLOTS + 1];

static bool is_handle(nvmlDevice_t device)
{
    const char *first = (const char *)handles, *address = (const char *)device;
    return address >= first && address < first + sizeof handles
        && (size_t)(address - first) % sizeof(struct nvmlDevice_st) == 0;
}

static uint32_t generation_of(const struct gpu_state *state, int slot)
{
    if (slot < 0)
        return state->present ? state->generation : 0;
    return state->slots[slot].present ? state->slots[slot].generation : 0;
}

static nvmlReturn_t stamp(int gpu, int slot, nvmlDevice_t *device)
{
    struct gpu_cell *cell = &shared->gpus[gpu];
    uint32_t generation = 0;
    nvmlReturn_t result =
        STEADY(cell->sequence, generation = generation_of(&cell->state, slot));
    if (result != NVML_SUCCESS)
        return result;
    if (generation == 0)
        return NVML_ERROR_NOT_FOUND;
    struct nvmlDevice_st *handle = &handles[gpu][slot + 1];
    handle->gpu = gpu;
    handle->slot = slot;
    atomic_store(&handle->generation, generation);
    *device = handle;
    return NVML_SUCCESS;
}

INTERNAL nvmlReturn_t handle_of_gpu(int gpu, nvmlDevice_t *device)
{
    return stamp(gpu, -1, device);
}

INTERNAL nvmlReturn_t handle_of_slot(int gpu, int slot, nvmlDevice_t *device)
{
    return stamp(gpu, slot, device);
}

/* Wait while the GPU hangs, then tell what it answers to a call of this kind. */
INTERNAL nvmlReturn_t visit_found(struct visit *visit, int gpu)
{
    visit->gpu = gpu;
    visit->cell = &shared->gpus[gpu];
    while (atomic_load(&visit->cell->hang))
        pause_for_microseconds(1000);
    uint32_t gpu_error = 0, call_error = 0;
    nvmlReturn_t result = STEADY(visit->cell->sequence,
                                 (gpu_error = visit->cell->state.error,
                                  call_error = visit->cell->state.call_errors[visit->call]));
    if (result != NVML_SUCCESS)
        return result;
    return (nvmlReturn_t)(gpu_error ? gpu_error : call_error);
}

INTERNAL nvmlReturn_t visit_index(struct visit *visit, enum call call, unsigned int index)
{
    nvmlReturn_t result = enter(visit, call);
    if (result != NVML_SUCCESS)
        return result;
    uint32_t count = 0;
    result = STEADY(shared->sequence, count = shared->system.gpu_count);
    if (result == NVML_SUCCESS && index >= count)
        result = NVML_ERROR_INVALID_ARGUMENT;
    return result == NVML_SUCCESS ? visit_found(visit, (int)index) : result;
}

INTERNAL nvmlReturn_t visit_device(struct visit *visit, enum call call, nvmlDevice_t device)
{
    nvmlReturn_t result = enter(visit, call);
    return result == NVML_SUCCESS ? visit_handle(visit, device) : result;
}

INTERNAL nvmlReturn_t visit_handle(struct visit *visit, nvmlDevice_t device)
{
    if (!is_handle(device))
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = visit_found(visit, device->gpu);
    if (result != NVML_SUCCESS)
        return result;
    visit->slot = device->slot;
    uint32_t generation = 0;
    result = STEADY(visit->cell->sequence, generation = generation_of(&visit->cell->state, device->slot));
    if (result == NVML_SUCCESS && generation != atomic_load(&device->generation))
        result = NVML_ERROR_INVALID_ARGUMENT;
    return result;
}

INTERNAL nvmlReturn_t visit_board(struct visit *visit, enum call call, nvmlDevice_t device)
{
    nvmlReturn_t result = visit_device(visit, call, device);
    return result == NVML_SUCCESS && visit->slot >= 0 ? NVML_ERROR_NOT_SUPPORTED : result;
}

INTERNAL nvmlReturn_t visit_slot(struct visit *visit, enum call call, nvmlDevice_t device)
{
    nvmlReturn_t result = visit_device(visit, call, device);
    return result == NVML_SUCCESS && visit->slot < 0 ? NVML_ERROR_INVALID_ARGUMENT : result;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    struct visit visit;
    nvmlReturn_t result = enter(&visit, CALL_nvmlDeviceGetCount_v2);
    if (result == NVML_SUCCESS && count == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        result = STEADY(shared->sequence, *count = shared->system.gpu_count);
    return depart(&visit, result);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    struct visit visit;
    nvmlReturn_t result = visit_index(&visit, CALL_nvmlDeviceGetHandleByIndex_v2, index);
    if (result == NVML_SUCCESS && device == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        result = handle_of_gpu(visit.gpu, device);
    return depart(&visit, result == NVML_ERROR_NOT_FOUND ? NVML_ERROR_GPU_NOT_FOUND : result);
}

/* Tell whether `uuid` names the GPU (slot -1) or one of its instances; -2 where it names none. */
static int slot_named(const struct gpu_state *state, const char *uuid)
{
    if (state->present && strcmp(state->uuid, uuid) == 0)
        return -1;
    for (int slot = 0; slot < SLOTS; ++slot)
        if (state->slots[slot].present && strcmp(state->slots[slot].uuid, uuid) == 0)
            return slot;
    return -2;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    struct visit visit;
    nvmlReturn_t result = enter(&visit, CALL_nvmlDeviceGetHandleByUUID);
    if (result == NVML_SUCCESS && (uuid == NULL || device == NULL))
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result != NVML_SUCCESS)
        return depart(&visit, result);
    result = NVML_ERROR_NOT_FOUND;
    for (int gpu = 0; gpu < GPUS && result == NVML_ERROR_NOT_FOUND; ++gpu) {
        int slot = -2;
        nvmlReturn_t seen = STEADY(shared->gpus[gpu].sequence,
                                   slot = slot_named(&shared->gpus[gpu].state, uuid));
        if (seen != NVML_SUCCESS)
            result = seen;
        else if (slot > -2)
            result = visit_found(&visit, gpu);
        if (result == NVML_SUCCESS)
            result = stamp(gpu, slot, device);
    }
    return depart(&visit, result);
}

static nvmlReturn_t text(enum call call, nvmlDevice_t device, size_t of_gpu, size_t of_slot,
                         char *target, unsigned int length)
{
    struct visit visit;
    char copy[97] = "";
    nvmlReturn_t result = visit_device(&visit, call, device);
    if (result == NVML_SUCCESS) {
        const struct gpu_state *state = &visit.cell->state;
        const char *source = visit.slot < 0 ? (const char *)state + of_gpu
                                            : (const char *)&state->slots[visit.slot] + of_slot;
        result = STEADY(visit.cell->sequence, memcpy(copy, source, 96));
    }
    if (result == NVML_SUCCESS)
        result = copy_text(target, length, copy);
    return depart(&visit, result);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    return text(CALL_nvmlDeviceGetName, device, offsetof(struct gpu_state, name),
                offsetof(struct slot_state, name), name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    return text(CALL_nvmlDeviceGetUUID, device, offsetof(struct gpu_state, uuid),
                offsetof(struct slot_state, uuid), uuid, length);
}

/* What only boards carry; an empty text means that this one does not. */
static nvmlReturn_t board_text(enum call call, nvmlDevice_t device, size_t offset, size_t size,
                               char *target, unsigned int length)
{
    struct visit visit;
    char copy[81] = "";
    nvmlReturn_t result = visit_board(&visit, call, device);
    if (result == NVML_SUCCESS) {
        const char *source = (const char *)&visit.cell->state + offset;
        result = STEADY(visit.cell->sequence, memcpy(copy, source, size));
    }
    if (result == NVML_SUCCESS)
        result = copy[0] ? copy_text(target, length, copy) : NVML_ERROR_NOT_SUPPORTED;
    return depart(&visit, result);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length)
{
    return board_text(CALL_nvmlDeviceGetSerial, device, offsetof(struct gpu_state, serial), 32,
                      serial, length);
}

nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char *part, unsigned int length)
{
    return board_text(CALL_nvmlDeviceGetBoardPartNumber, device, offsetof(struct gpu_state, board),
                      80, part, length);
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int length)
{
    return board_text(CALL_nvmlDeviceGetVbiosVersion, device, offsetof(struct gpu_state, vbios), 32,
                      version, length);
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor)
{
    ANSWER(visit_board, nvmlDeviceGetMinorNumber, device, *minor = state->minor);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    struct visit visit;
    char bus_id[33] = "";
    nvmlReturn_t result = visit_device(&visit, CALL_nvmlDeviceGetPciInfo_v3, device);
    if (result == NVML_SUCCESS)
        result = STEADY(visit.cell->sequence, memcpy(bus_id, visit.cell->state.bus_id, 32));
    if (result == NVML_SUCCESS) {
        memset(pci, 0, sizeof *pci);
        snprintf(pci->busId, sizeof pci->busId, "%s", bus_id);
        if (sscanf(bus_id, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) == 3)
            snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, NVML_DEVICE_PCI_BUS_ID_LEGACY_FMT,
                     pci->domain & 0xFFFFU, pci->bus & 0xFFU, pci->device & 0xFFU);
    }
    return depart(&visit, result);
}
