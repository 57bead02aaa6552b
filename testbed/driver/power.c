/* Power, energy, heat and what carries it off. */
#include "answers.h"

ANSWERED(nvmlDeviceGetPowerUsage, (nvmlDevice_t device, unsigned int *milliwatts), OUT(milliwatts))
ANSWERED(nvmlDeviceGetTotalEnergyConsumption,
         (nvmlDevice_t device, unsigned long long *millijoules), OUT(millijoules))
ANSWERED(nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t device, unsigned int *milliwatts),
         OUT(milliwatts))
ANSWERED(nvmlDeviceGetPowerManagementLimit, (nvmlDevice_t device, unsigned int *milliwatts),
         OUT(milliwatts))
ANSWERED(nvmlDeviceGetPowerManagementDefaultLimit, (nvmlDevice_t device, unsigned int *milliwatts),
         OUT(milliwatts))
ANSWERED(nvmlDeviceGetPowerManagementLimitConstraints,
         (nvmlDevice_t device, unsigned int *least, unsigned int *most), OUT(least), OUT(most))

ANSWERED_IF(sensor < NVML_TEMPERATURE_COUNT, nvmlDeviceGetTemperature,
            (nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *celsius), sensor,
            0, OUT(celsius))
ANSWERED_IF(type < NVML_TEMPERATURE_THRESHOLD_COUNT, nvmlDeviceGetTemperatureThreshold,
            (nvmlDevice_t device, nvmlTemperatureThresholds_t type, unsigned int *celsius), type,
            0, OUT(celsius))
ANSWERED(nvmlDeviceGetFanSpeed, (nvmlDevice_t device, unsigned int *percent), OUT(percent))
ANSWERED_IF(true, nvmlDeviceGetFanSpeed_v2,
            (nvmlDevice_t device, unsigned int fan, unsigned int *percent), fan, 0, OUT(percent))

#ifndef OLD_DRIVER
ENTRY(nvmlDeviceGetTemperatureV, (nvmlDevice_t device, nvmlTemperature_t *temperature),
      temperature != NULL,
      give_version(&visit, arrived,
                   ASK(nvmlDeviceGetTemperatureV, 0, temperature ? temperature->sensorType : 0),
                   temperature))
VERSIONED(nvmlDeviceGetMarginTemperature,
          (nvmlDevice_t device, nvmlMarginTemperature_t *margin), margin)
ANSWERED_IF(true, nvmlDeviceGetThermalSettings,
            (nvmlDevice_t device, unsigned int sensor, nvmlGpuThermalSettings_t *settings), sensor,
            0, OUT(settings))
ANSWERED(nvmlDeviceGetNumFans, (nvmlDevice_t device, unsigned int *fans), OUT(fans))
#endif
