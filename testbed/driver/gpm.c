/* GPM: rates between two samples of counters. A sample keeps the counters of the shared file as
 * they were; it holds no reference to the GPU. */
#include <stdlib.h>
#include <string.h>

#include "answers.h"

#ifndef OLD_DRIVER
/* As long as a call of a real driver takes at least: short ones would hardly ever overlap. */
enum { SAMPLING_US = 300, METRICS = 512 };

/* The payload of an answer to nvmlGpmMetricsGet, whose key is the metric: the integral of the
 * metric over time, and when it was that. */
struct counter {
    double total, seconds;
};

struct metric {
    uint32_t id, result;
    struct counter counter;
};

struct nvmlGpmSample_st {
    int gpu, slot;
    uint32_t generation, held;
    struct metric metrics[METRICS];
};

VERSIONED(nvmlGpmQueryDeviceSupport, (nvmlDevice_t device, nvmlGpmSupport_t *support), support)

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    struct visit visit;
    nvmlReturn_t result = enter(&visit, CALL_nvmlGpmSampleAlloc);
    if (result == NVML_SUCCESS && sample == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS) {
        *sample = calloc(1, sizeof **sample);
        result = *sample == NULL ? NVML_ERROR_MEMORY : NVML_SUCCESS;
    }
    return depart(&visit, result);
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    struct visit visit;
    nvmlReturn_t result = enter(&visit, CALL_nvmlGpmSampleFree);
    if (result == NVML_SUCCESS && sample == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        free(sample);
    return depart(&visit, result);
}

static void collect(const struct gpu_state *state, int slot, nvmlGpmSample_t sample)
{
    sample->held = 0;
    sample->slot = slot;
    sample->generation = slot < 0 ? state->generation : state->slots[slot].generation;
    for (uint32_t row = 0; row < state->answers_held && row < ANSWERS; ++row) {
        const struct answer *answer = &state->answers[row];
        uint32_t offset = answer->offset, size = answer->size;
        if (answer->call != CALL_nvmlGpmMetricsGet || answer->scope != slot
            || sample->held == METRICS || size > sizeof(struct counter) || offset > POOL - size)
            continue;
        struct metric *metric = &sample->metrics[sample->held++];
        *metric = (struct metric){.id = answer->key[0], .result = answer->result};
        memcpy(&metric->counter, state->pool + offset, size);
    }
}

static nvmlReturn_t fill(const struct visit *visit, nvmlReturn_t arrived, nvmlGpmSample_t sample)
{
    if (arrived != NVML_SUCCESS)
        return arrived;
    if (sample == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = STEADY(visit->cell->sequence,
                                 collect(&visit->cell->state, visit->slot, sample));
    sample->gpu = visit->gpu;
    pause_for_microseconds(SAMPLING_US);
    return result == NVML_SUCCESS && sample->held == 0 ? NVML_ERROR_NOT_SUPPORTED : result;
}

/* A call that hangs is inside, too. */
static void begin(void)
{
    uint32_t inside = atomic_fetch_add(&shared->gpm_inside, 1) + 1;
    uint32_t most = atomic_load(&shared->gpm_most);
    while (inside > most && !atomic_compare_exchange_weak(&shared->gpm_most, &most, inside))
        ;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    struct visit visit;
    nvmlReturn_t result = enter(&visit, CALL_nvmlGpmSampleGet);
    if (result != NVML_SUCCESS)
        return depart(&visit, result);
    begin();
    result = fill(&visit, visit_handle(&visit, device), sample);
    atomic_fetch_sub(&shared->gpm_inside, 1);
    return depart(&visit, result);
}

static nvmlReturn_t enter_instance(struct visit *visit, nvmlDevice_t device, unsigned int id)
{
    nvmlReturn_t result = visit_handle(visit, device);
    if (result == NVML_SUCCESS && visit->slot >= 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        result = STEADY(visit->cell->sequence,
                        visit->slot = slot_of_instance(&visit->cell->state, id));
    return result == NVML_SUCCESS && visit->slot < 0 ? NVML_ERROR_INVALID_ARGUMENT : result;
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int instance, nvmlGpmSample_t sample)
{
    struct visit visit;
    nvmlReturn_t result = enter(&visit, CALL_nvmlGpmMigSampleGet);
    if (result != NVML_SUCCESS)
        return depart(&visit, result);
    begin();
    result = fill(&visit, enter_instance(&visit, device, instance), sample);
    atomic_fetch_sub(&shared->gpm_inside, 1);
    return depart(&visit, result);
}

static const struct metric *find(nvmlGpmSample_t sample, unsigned int id)
{
    for (uint32_t row = 0; row < sample->held; ++row)
        if (sample->metrics[row].id == id || sample->metrics[row].id == ANY_KEY)
            return &sample->metrics[row];
    return NULL;
}

static void mean(nvmlGpmSample_t first, nvmlGpmSample_t second, nvmlGpmMetric_t *wanted)
{
    const struct metric *one = find(first, wanted->metricId), *two = find(second, wanted->metricId);
    memset(&wanted->metricInfo, 0, sizeof wanted->metricInfo);
    wanted->value = 0;
    wanted->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    if (one == NULL || two == NULL)
        return;
    wanted->nvmlReturn = (nvmlReturn_t)(one->result ? one->result : two->result);
    double seconds = two->counter.seconds - one->counter.seconds;
    double amount = two->counter.total - one->counter.total;
    if (wanted->nvmlReturn == NVML_SUCCESS && (seconds <= 0 || amount < 0))
        wanted->nvmlReturn = NVML_ERROR_NO_DATA;
    if (wanted->nvmlReturn == NVML_SUCCESS)
        wanted->value = amount / seconds;
}

static nvmlReturn_t check(const nvmlGpmMetricsGet_t *wanted)
{
    if (wanted == NULL || wanted->sample1 == NULL || wanted->sample2 == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (wanted->version != NVML_GPM_METRICS_GET_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlGpmSample_t first = wanted->sample1, second = wanted->sample2;
    bool same = first->gpu == second->gpu && first->slot == second->slot
        && first->generation == second->generation;
    bool taken = first->held > 0 && second->held > 0;
    return same && taken && wanted->numMetrics <= NVML_GPM_METRIC_MAX ? NVML_SUCCESS
                                                                       : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *wanted)
{
    struct visit visit;
    nvmlReturn_t result = enter(&visit, CALL_nvmlGpmMetricsGet);
    if (result == NVML_SUCCESS)
        result = check(wanted);
    if (result == NVML_SUCCESS)
        result = visit_found(&visit, wanted->sample1->gpu);
    for (unsigned int row = 0; result == NVML_SUCCESS && row < wanted->numMetrics; ++row)
        mean(wanted->sample1, wanted->sample2, &wanted->metrics[row]);
    return depart(&visit, result);
}
#endif
