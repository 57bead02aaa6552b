/* Field values: many reads in one call, each with a return code of its own. */
#include <string.h>

#include "answers.h"

/* The answer is a whole field value, of which the caller's question is kept. */
static void fill(const struct visit *visit, nvmlFieldValue_t *field)
{
    struct copy copy;
    nvmlFieldValue_t answer = {0};
    nvmlReturn_t result =
        look_up(visit, ASK(nvmlDeviceGetFieldValues, field->fieldId, field->scopeId), &copy);
    if (result == NVML_SUCCESS && copy.size != sizeof answer)
        result = NVML_ERROR_UNKNOWN;
    if (result == NVML_SUCCESS)
        memcpy(&answer, copy.bytes, sizeof answer);
    answer.fieldId = field->fieldId;
    answer.scopeId = field->scopeId;
    answer.nvmlReturn = result;
    *field = answer;
}

static nvmlReturn_t give_fields(const struct visit *visit, nvmlReturn_t arrived, int count,
                                nvmlFieldValue_t *values)
{
    if (arrived != NVML_SUCCESS)
        return arrived;
    if (visit->slot >= 0)
        return NVML_ERROR_NOT_SUPPORTED;
    for (int row = 0; row < count; ++row)
        fill(visit, &values[row]);
    return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetFieldValues, (nvmlDevice_t device, int count, nvmlFieldValue_t *values),
      values != NULL && count > 0, give_fields(&visit, arrived, count, values))
