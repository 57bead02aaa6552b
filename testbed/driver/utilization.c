/* How busy a GPU and its media engines are. */
#include <string.h>

#include "answers.h"

ANSWERED(nvmlDeviceGetUtilizationRates, (nvmlDevice_t device, nvmlUtilization_t *rates), OUT(rates))
ANSWERED(nvmlDeviceGetEncoderUtilization,
         (nvmlDevice_t device, unsigned int *percent, unsigned int *period), OUT(percent),
         OUT(period))
ANSWERED(nvmlDeviceGetDecoderUtilization,
         (nvmlDevice_t device, unsigned int *percent, unsigned int *period), OUT(percent),
         OUT(period))

/* Unlike other lists, sizing succeeds, and a buffer for no rows is a mistake. */
static nvmlReturn_t give_samples(const struct visit *visit, struct question question,
                                 struct list list)
{
    struct copy copy;
    if (list.count == NULL || list.value_type == NULL || (list.rows != NULL && *list.count == 0))
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = fetch_rows(visit, question, &list, &copy);
    if (result != NVML_SUCCESS)
        return result;
    if (copy.rows == 0)
        return NVML_ERROR_NOT_FOUND;
    *list.value_type = copy.value_type;
    if (list.rows == NULL) {
        *list.count = announced(visit->cell, copy.rows);
        return NVML_SUCCESS;
    }
    if (copy.rows > *list.count)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    *list.count = copy.rows;
    memcpy(list.rows, copy.bytes, copy.rows * list.size);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
                                  unsigned long long last_seen, nvmlValueType_t *value_type,
                                  unsigned int *count, nvmlSample_t *samples)
{
    struct visit visit;
    struct list list = {.count = count, .rows = samples, .size = sizeof *samples,
                        .time = offsetof(nvmlSample_t, timeStamp), .after = last_seen,
                        .value_type = value_type};
    nvmlReturn_t result = visit_device(&visit, CALL_nvmlDeviceGetSamples, device);
    if (result == NVML_SUCCESS)
        result = give_samples(&visit, ASK(nvmlDeviceGetSamples, type, 0), list);
    return depart(&visit, result);
}

#ifndef OLD_DRIVER
ANSWERED(nvmlDeviceGetJpgUtilization,
         (nvmlDevice_t device, unsigned int *percent, unsigned int *period), OUT(percent),
         OUT(period))
ANSWERED(nvmlDeviceGetOfaUtilization,
         (nvmlDevice_t device, unsigned int *percent, unsigned int *period), OUT(percent),
         OUT(period))
#endif
