/* Memory errors: ECC counters, remapped rows, retired pages. */
#include "answers.h"

ANSWERED(nvmlDeviceGetEccMode,
         (nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending),
         OUT(current), OUT(pending))
ANSWERED_IF(type < NVML_MEMORY_ERROR_TYPE_COUNT && counter < NVML_ECC_COUNTER_TYPE_COUNT,
            nvmlDeviceGetTotalEccErrors,
            (nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
             unsigned long long *count),
            type, counter, OUT(count))

/* Three arguments in two words, as error_counter in answers.py has them. */
#define TYPE_AND_COUNTER(type, counter) ((uint32_t)(type) << 16 | (uint32_t)(counter))
ANSWERED_IF(type < NVML_MEMORY_ERROR_TYPE_COUNT && counter < NVML_ECC_COUNTER_TYPE_COUNT
                && location < NVML_MEMORY_LOCATION_COUNT,
            nvmlDeviceGetMemoryErrorCounter,
            (nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
             nvmlMemoryLocation_t location, unsigned long long *count),
            TYPE_AND_COUNTER(type, counter), location, OUT(count))

ANSWERED(nvmlDeviceGetRemappedRows,
         (nvmlDevice_t device, unsigned int *correctable, unsigned int *uncorrectable,
          unsigned int *pending, unsigned int *failed),
         OUT(correctable), OUT(uncorrectable), OUT(pending), OUT(failed))
ANSWERED(nvmlDeviceGetRowRemapperHistogram,
         (nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *values), OUT(values))
ANSWERED(nvmlDeviceGetRetiredPagesPendingStatus,
         (nvmlDevice_t device, nvmlEnableState_t *pending), OUT(pending))

struct page {
    unsigned long long address, time;
};

/* The rows have both; the caller has an array for each, or, of version 1, for the addresses. */
static nvmlReturn_t give_pages(const struct visit *visit, nvmlReturn_t arrived,
                               struct question question, unsigned int *count,
                               unsigned long long *addresses, unsigned long long *times)
{
    struct page pages[PAYLOAD / sizeof(struct page)];
    struct list list = {.count = count, .rows = addresses ? pages : NULL, .size = sizeof *pages,
                        .time = NO_TIME};
    nvmlReturn_t result = give_list(visit, arrived, question, list);
    if (result != NVML_SUCCESS || addresses == NULL)
        return result;
    for (unsigned int row = 0; row < *count; ++row) {
        addresses[row] = pages[row].address;
        if (times != NULL)
            times[row] = pages[row].time;
    }
    return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetRetiredPages,
      (nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *count,
       unsigned long long *addresses),
      cause < NVML_PAGE_RETIREMENT_CAUSE_COUNT,
      give_pages(&visit, arrived, ASK(nvmlDeviceGetRetiredPages_v2, cause, 0), count, addresses,
                 NULL))
ENTRY(nvmlDeviceGetRetiredPages_v2,
      (nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *count,
       unsigned long long *addresses, unsigned long long *times),
      cause < NVML_PAGE_RETIREMENT_CAUSE_COUNT,
      give_pages(&visit, arrived, ASK(nvmlDeviceGetRetiredPages_v2, cause, 0), count, addresses,
                 times))

#ifndef OLD_DRIVER
VERSIONED(nvmlDeviceGetSramEccErrorStatus,
          (nvmlDevice_t device, nvmlEccSramErrorStatus_t *status), status)
#endif
