/* What a GPU measures. A MIG instance has memory of its own and nothing else. */
#include <string.h>

#include "visit.h"

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

/* Utilization is not measured while the GPU is partitioned. */
static nvmlReturn_t visit_unpartitioned(struct visit *visit, enum call call, nvmlDevice_t device)
{
    uint32_t partitioned = 0;
    nvmlReturn_t result = visit_board(visit, call, device);
    if (result == NVML_SUCCESS)
        result = STEADY(visit->cell->sequence, partitioned = visit->cell->state.mig_enabled);
    return result == NVML_SUCCESS && partitioned ? NVML_ERROR_NOT_SUPPORTED : result;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    ANSWER(visit_unpartitioned, nvmlDeviceGetUtilizationRates, device,
           (rates->gpu = state->utilization, rates->memory = state->memory_utilization));
}

/* Copy the samples after `last_seen`, oldest first, as many as there is room for; count them all. */
static unsigned int collect(const struct gpu_state *state, unsigned long long last_seen,
                            unsigned int room, nvmlSample_t *samples)
{
    unsigned int newer = 0;
    for (uint32_t row = 0; row < state->samples_held && row < SAMPLES; ++row) {
        if (state->samples[row].at_us <= last_seen && state->samples[row].at_us != 0)
            continue;
        if (samples != NULL && newer < room) {
            samples[newer].timeStamp = state->samples[row].at_us;
            samples[newer].sampleValue.uiVal = (unsigned int)state->samples[row].percent;
        }
        ++newer;
    }
    return newer;
}

/* A sizing call that is made to announce too little: the buffer grows before the next one. */
static unsigned int announced(struct gpu_cell *cell, unsigned int newer)
{
    if (newer < 2 || atomic_load(&cell->growths) <= 0)
        return newer;
    atomic_fetch_sub(&cell->growths, 1);
    return newer - 1;
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
                                  unsigned long long last_seen, nvmlValueType_t *value_type,
                                  unsigned int *count, nvmlSample_t *samples)
{
    struct visit visit;
    unsigned int newer = 0;
    nvmlReturn_t result = visit_unpartitioned(&visit, CALL_nvmlDeviceGetSamples, device);
    if (result == NVML_SUCCESS && type != NVML_GPU_UTILIZATION_SAMPLES)
        result = NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS && (count == NULL || (samples != NULL && *count == 0)))
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        result = STEADY(visit.cell->sequence,
                        newer = collect(&visit.cell->state, last_seen, *count, samples));
    if (result == NVML_SUCCESS && newer == 0)
        result = NVML_ERROR_NOT_FOUND;
    if (result == NVML_SUCCESS && samples != NULL && newer > *count)
        result = NVML_ERROR_INSUFFICIENT_SIZE;
    if (result == NVML_SUCCESS) {
        *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
        *count = samples == NULL ? announced(visit.cell, newer) : newer;
    }
    return depart(&visit, result);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts)
{
    ANSWER(visit_board, nvmlDeviceGetPowerUsage, device, *milliwatts = state->power_milliwatts);
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *millijoules)
{
    ANSWER(visit_board, nvmlDeviceGetTotalEnergyConsumption, device,
           *millijoules = state->energy_millijoules);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                      unsigned int *celsius)
{
    struct visit visit;
    nvmlReturn_t result = visit_board(&visit, CALL_nvmlDeviceGetTemperature, device);
    if (result == NVML_SUCCESS && sensor != NVML_TEMPERATURE_GPU)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        result = STEADY(visit.cell->sequence, *celsius = (unsigned int)visit.cell->state.celsius);
    return depart(&visit, result);
}

#ifndef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature)
{
    struct visit visit;
    nvmlReturn_t result = visit_board(&visit, CALL_nvmlDeviceGetTemperatureV, device);
    if (result == NVML_SUCCESS && temperature->version != nvmlTemperature_v1)
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (result == NVML_SUCCESS && temperature->sensorType != NVML_TEMPERATURE_GPU)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        result = STEADY(visit.cell->sequence, temperature->temperature = visit.cell->state.celsius);
    return depart(&visit, result);
}
#endif

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *megahertz)
{
    struct visit visit;
    nvmlReturn_t result = visit_board(&visit, CALL_nvmlDeviceGetClockInfo, device);
    if (result == NVML_SUCCESS && type != NVML_CLOCK_SM && type != NVML_CLOCK_MEM)
        result = NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS) {
        const struct gpu_state *state = &visit.cell->state;
        result = STEADY(visit.cell->sequence, *megahertz = type == NVML_CLOCK_SM
                                                  ? state->sm_clock : state->memory_clock);
    }
    return depart(&visit, result);
}

/* Each value carries a return code of its own; the call as a whole works all the same. */
static void fill_field(const struct gpu_state *state, nvmlFieldValue_t *field)
{
    field->nvmlReturn = NVML_SUCCESS;
    switch (field->fieldId) {
    case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
        field->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
        field->value.ullVal = state->energy_millijoules;
        return;
    case NVML_FI_DEV_POWER_INSTANT:
        field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
        field->value.uiVal = state->power_milliwatts;
        return;
    default:
        field->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    }
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    ANSWER(visit_board, nvmlDeviceGetFieldValues, device, {
        for (int row = 0; row < count; ++row)
            fill_field(state, &values[row]);
    });
}
