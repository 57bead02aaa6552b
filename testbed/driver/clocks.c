/* Clocks, and what holds them back. */
#include "answers.h"

ANSWERED_IF(type < NVML_CLOCK_COUNT, nvmlDeviceGetClockInfo,
            (nvmlDevice_t device, nvmlClockType_t type, unsigned int *megahertz), type, 0,
            OUT(megahertz))
ANSWERED_IF(type < NVML_CLOCK_COUNT, nvmlDeviceGetMaxClockInfo,
            (nvmlDevice_t device, nvmlClockType_t type, unsigned int *megahertz), type, 0,
            OUT(megahertz))
ANSWERED_IF(type < NVML_CLOCK_COUNT && id < NVML_CLOCK_ID_COUNT, nvmlDeviceGetClock,
            (nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id, unsigned int *megahertz),
            type, id, OUT(megahertz))
ANSWERED(nvmlDeviceGetPerformanceState, (nvmlDevice_t device, nvmlPstates_t *state), OUT(state))
ANSWERED_IF(policy < NVML_PERF_POLICY_COUNT, nvmlDeviceGetViolationStatus,
            (nvmlDevice_t device, nvmlPerfPolicyType_t policy, nvmlViolationTime_t *time), policy,
            0, OUT(time))

/* Drivers since R535 say "event" where they said "throttle". */
ANSWERED_AS(nvmlDeviceGetCurrentClocksEventReasons, nvmlDeviceGetCurrentClocksThrottleReasons,
            (nvmlDevice_t device, unsigned long long *reasons), true, 0, 0, OUT(reasons))
ANSWERED_AS(nvmlDeviceGetSupportedClocksEventReasons, nvmlDeviceGetSupportedClocksThrottleReasons,
            (nvmlDevice_t device, unsigned long long *reasons), true, 0, 0, OUT(reasons))

#ifndef OLD_DRIVER
ANSWERED(nvmlDeviceGetCurrentClocksEventReasons,
         (nvmlDevice_t device, unsigned long long *reasons), OUT(reasons))
ANSWERED(nvmlDeviceGetSupportedClocksEventReasons,
         (nvmlDevice_t device, unsigned long long *reasons), OUT(reasons))
#endif
