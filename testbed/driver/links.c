/* PCIe and NVLink. */
#include "answers.h"

/* The header says over what time the driver measures, and the call does not return before. */
enum { PCIE_MEASURING_US = 20000 };

ANSWERED(nvmlDeviceGetCurrPcieLinkGeneration, (nvmlDevice_t device, unsigned int *generation),
         OUT(generation))
ANSWERED(nvmlDeviceGetMaxPcieLinkGeneration, (nvmlDevice_t device, unsigned int *generation),
         OUT(generation))
ANSWERED(nvmlDeviceGetCurrPcieLinkWidth, (nvmlDevice_t device, unsigned int *width), OUT(width))
ANSWERED(nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice_t device, unsigned int *width), OUT(width))
ANSWERED(nvmlDeviceGetPcieReplayCounter, (nvmlDevice_t device, unsigned int *count), OUT(count))

static nvmlReturn_t give_measured(const struct visit *visit, nvmlReturn_t arrived,
                                  nvmlPcieUtilCounter_t counter, unsigned int *throughput)
{
    struct part parts[] = {OUT(throughput), {0}};
    nvmlReturn_t result =
        give_parts(visit, arrived, ASK(nvmlDeviceGetPcieThroughput, counter, 0), parts);
    if (result == NVML_SUCCESS)
        pause_for_microseconds(PCIE_MEASURING_US);
    return result;
}

ENTRY(nvmlDeviceGetPcieThroughput,
      (nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned int *throughput),
      counter < NVML_PCIE_UTIL_COUNT, give_measured(&visit, arrived, counter, throughput))

ANSWERED_IF(link < NVML_NVLINK_MAX_LINKS, nvmlDeviceGetNvLinkState,
            (nvmlDevice_t device, unsigned int link, nvmlEnableState_t *active), link, 0,
            OUT(active))
ANSWERED_IF(link < NVML_NVLINK_MAX_LINKS, nvmlDeviceGetNvLinkVersion,
            (nvmlDevice_t device, unsigned int link, unsigned int *version), link, 0, OUT(version))
ANSWERED_IF(link < NVML_NVLINK_MAX_LINKS, nvmlDeviceGetNvLinkRemotePciInfo_v2,
            (nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci), link, 0, OUT(pci))
ANSWERED_IF(link < NVML_NVLINK_MAX_LINKS && counter < NVML_NVLINK_ERROR_COUNT,
            nvmlDeviceGetNvLinkErrorCounter,
            (nvmlDevice_t device, unsigned int link, nvmlNvLinkErrorCounter_t counter,
             unsigned long long *count),
            link, counter, OUT(count))

#ifndef OLD_DRIVER
ANSWERED(nvmlDeviceGetGpuMaxPcieLinkGeneration, (nvmlDevice_t device, unsigned int *generation),
         OUT(generation))
VERSIONED(nvmlDeviceGetGpuFabricInfoV, (nvmlDevice_t device, nvmlGpuFabricInfoV_t *fabric), fabric)
#endif
