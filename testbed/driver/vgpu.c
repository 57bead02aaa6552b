/* Virtual GPUs, as the host sees them. An instance has a number of its own on the whole node. */
#include <string.h>

#include "answers.h"

ANSWERED(nvmlDeviceGetVirtualizationMode,
         (nvmlDevice_t device, nvmlGpuVirtualizationMode_t *mode), OUT(mode))
ANSWERED(nvmlDeviceGetHostVgpuMode, (nvmlDevice_t device, nvmlHostVgpuMode_t *mode), OUT(mode))
ANSWERED(nvmlDeviceGetGridLicensableFeatures_v4,
         (nvmlDevice_t device, nvmlGridLicensableFeatures_t *features), OUT(features))
LISTED(nvmlDeviceGetActiveVgpus,
       (nvmlDevice_t device, unsigned int *count, nvmlVgpuInstance_t *instances),
       .count = count, .rows = instances, .size = sizeof *instances, .time = NO_TIME)

/* To ask how many there are is to pass no buffer; a buffer for none is a mistake. */
#define HAS_ROOM(count, rows) ((rows) == NULL || (count) == NULL || *(count) > 0)

LISTED_IF(value_type != NULL && HAS_ROOM(count, samples), nvmlDeviceGetVgpuUtilization,
          (nvmlDevice_t device, unsigned long long last_seen, nvmlValueType_t *value_type,
           unsigned int *count, nvmlVgpuInstanceUtilizationSample_t *samples),
          .count = count, .rows = samples, .size = sizeof *samples,
          .time = offsetof(nvmlVgpuInstanceUtilizationSample_t, timeStamp), .after = last_seen,
          .value_type = value_type)
LISTED_IF(HAS_ROOM(count, samples), nvmlDeviceGetVgpuProcessUtilization,
          (nvmlDevice_t device, unsigned long long last_seen, unsigned int *count,
           nvmlVgpuProcessUtilizationSample_t *samples),
          .count = count, .rows = samples, .size = sizeof *samples,
          .time = offsetof(nvmlVgpuProcessUtilizationSample_t, timeStamp), .after = last_seen)

static bool is_active(const struct visit *visit, nvmlVgpuInstance_t instance)
{
    struct copy copy;
    if (look_up(visit, ASK(nvmlDeviceGetActiveVgpus, 0, 0), &copy) != NVML_SUCCESS)
        return false;
    for (uint32_t offset = 0; offset < copy.size; offset += sizeof instance)
        if (memcmp(copy.bytes + offset, &instance, sizeof instance) == 0)
            return true;
    return false;
}

static nvmlReturn_t visit_vgpu(struct visit *visit, enum call call, nvmlVgpuInstance_t instance)
{
    nvmlReturn_t result = enter(visit, call);
    if (result == NVML_SUCCESS && instance == 0)
        result = NVML_ERROR_INVALID_ARGUMENT;
    for (int gpu = 0; gpu < GPUS && result == NVML_SUCCESS; ++gpu) {
        visit->cell = &shared->gpus[gpu];
        if (is_active(visit, instance))
            return visit_found(visit, gpu);
    }
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : result;
}

/* What a type is stands with every GPU that can have it. */
static nvmlReturn_t visit_type(struct visit *visit, enum call call, nvmlVgpuTypeId_t type)
{
    struct copy copy;
    nvmlReturn_t result = enter(visit, call);
    for (int gpu = 0; gpu < GPUS && result == NVML_SUCCESS; ++gpu) {
        visit->cell = &shared->gpus[gpu];
        look_up(visit, (struct question){call, {type, 0}}, &copy);
        if (copy.found)
            return visit_found(visit, gpu);
    }
    return result == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT : result;
}

#define OF_VGPU(visitor, name, parameters, give)                                                  \
    nvmlReturn_t name parameters                                                                  \
    {                                                                                             \
        struct visit visit;                                                                       \
        nvmlReturn_t arrived = visitor(&visit, CALL_##name, vgpu);                                \
        struct question question = ASK(name, vgpu, 0);                                            \
        return depart(&visit, give);                                                              \
    }

OF_VGPU(visit_vgpu, nvmlVgpuInstanceGetUUID,
        (nvmlVgpuInstance_t vgpu, char *uuid, unsigned int size),
        give_text(&visit, arrived, question, uuid, size))
OF_VGPU(visit_vgpu, nvmlVgpuInstanceGetMdevUUID,
        (nvmlVgpuInstance_t vgpu, char *uuid, unsigned int size),
        give_text(&visit, arrived, question, uuid, size))
OF_VGPU(visit_vgpu, nvmlVgpuInstanceGetType, (nvmlVgpuInstance_t vgpu, nvmlVgpuTypeId_t *type),
        give_parts(&visit, arrived, question, PARTS(OUT(type))))
OF_VGPU(visit_vgpu, nvmlVgpuInstanceGetFbUsage,
        (nvmlVgpuInstance_t vgpu, unsigned long long *bytes),
        give_parts(&visit, arrived, question, PARTS(OUT(bytes))))
OF_VGPU(visit_vgpu, nvmlVgpuInstanceGetLicenseInfo_v2,
        (nvmlVgpuInstance_t vgpu, nvmlVgpuLicenseInfo_t *license),
        give_parts(&visit, arrived, question, PARTS(OUT(license))))
OF_VGPU(visit_type, nvmlVgpuTypeGetFramebufferSize,
        (nvmlVgpuTypeId_t vgpu, unsigned long long *bytes),
        give_parts(&visit, arrived, question, PARTS(OUT(bytes))))

/* The answer's text is the id; its rows are one; the kind of the id is its value type. */
static nvmlReturn_t give_vm(const struct visit *visit, nvmlReturn_t arrived,
                            struct question question, char *id, unsigned int size,
                            nvmlVgpuVmIdType_t *type)
{
    struct copy copy;
    if (arrived == NVML_SUCCESS && type == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = give_text(visit, arrived, question, id, size);
    if (result == NVML_SUCCESS)
        result = look_up(visit, question, &copy);
    if (result == NVML_SUCCESS)
        *type = (nvmlVgpuVmIdType_t)copy.value_type;
    return result;
}

OF_VGPU(visit_vgpu, nvmlVgpuInstanceGetVmID,
        (nvmlVgpuInstance_t vgpu, char *id, unsigned int size, nvmlVgpuVmIdType_t *type),
        give_vm(&visit, arrived, question, id, size, type))

/* The size is both: what there is room for, and what is needed. */
static nvmlReturn_t give_name(const struct visit *visit, nvmlReturn_t arrived,
                              struct question question, char *name, unsigned int *size)
{
    struct copy copy;
    if (arrived == NVML_SUCCESS && size == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = arrived == NVML_SUCCESS ? look_up(visit, question, &copy) : arrived;
    if (result != NVML_SUCCESS)
        return result;
    result = give_text(visit, arrived, question, name, *size);
    if (result == NVML_SUCCESS || result == NVML_ERROR_INSUFFICIENT_SIZE)
        *size = copy.size + 1;
    return result;
}

OF_VGPU(visit_type, nvmlVgpuTypeGetName, (nvmlVgpuTypeId_t vgpu, char *name, unsigned int *size),
        give_name(&visit, arrived, question, name, size))

#ifndef OLD_DRIVER
static nvmlReturn_t give_info(const struct visit *visit, nvmlReturn_t arrived,
                              nvmlVgpuInstancesUtilizationInfo_t *info)
{
    if (arrived != NVML_SUCCESS)
        return arrived;
    if (info->version != nvmlVgpuInstancesUtilizationInfo_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return give_list(visit, arrived, ASK(nvmlDeviceGetVgpuInstancesUtilizationInfo, 0, 0),
                     (struct list){.count = &info->vgpuInstanceCount, .rows = info->vgpuUtilArray,
                                   .size = sizeof *info->vgpuUtilArray,
                                   .time = offsetof(nvmlVgpuInstanceUtilizationInfo_v1_t, timeStamp),
                                   .after = info->lastSeenTimeStamp,
                                   .value_type = &info->sampleValType});
}

ENTRY(nvmlDeviceGetVgpuInstancesUtilizationInfo,
      (nvmlDevice_t device, nvmlVgpuInstancesUtilizationInfo_t *info), info != NULL,
      give_info(&visit, arrived, info))

/* Each engine has a run list of its own; the caller names it in the structure. */
#define OF_ENGINE(name, structure)                                                                \
    ANSWERED_IF(info != NULL, name, (nvmlDevice_t device, structure *info),                       \
                info ? info->engineId : 0, 0, OUT(info))

ANSWERED(nvmlDeviceGetVgpuSchedulerState,
         (nvmlDevice_t device, nvmlVgpuSchedulerGetState_t *state), OUT(state))
OF_ENGINE(nvmlDeviceGetVgpuSchedulerState_v2, nvmlVgpuSchedulerStateInfo_v2_t)
OF_ENGINE(nvmlDeviceGetVgpuSchedulerLog, nvmlVgpuSchedulerLog_t)
OF_ENGINE(nvmlDeviceGetVgpuSchedulerLog_v2, nvmlVgpuSchedulerLogInfo_v2_t)
#endif
