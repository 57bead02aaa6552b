/* What a board is and how it is set up: generation, modes, the contents of its InfoROM. */
#include "answers.h"

ANSWERED(nvmlDeviceGetComputeMode, (nvmlDevice_t device, nvmlComputeMode_t *mode), OUT(mode))
ANSWERED(nvmlDeviceGetPersistenceMode, (nvmlDevice_t device, nvmlEnableState_t *mode), OUT(mode))
ANSWERED(nvmlDeviceGetArchitecture,
         (nvmlDevice_t device, nvmlDeviceArchitecture_t *architecture), OUT(architecture))
ANSWERED(nvmlDeviceGetCudaComputeCapability, (nvmlDevice_t device, int *major, int *minor),
         OUT(major), OUT(minor))
ANSWERED(nvmlDeviceGetBrand, (nvmlDevice_t device, nvmlBrandType_t *type), OUT(type))

ENTRY(nvmlDeviceGetInforomVersion,
      (nvmlDevice_t device, nvmlInforomObject_t object, char *version, unsigned int length),
      object < NVML_INFOROM_COUNT,
      give_text(&visit, arrived, ASK(nvmlDeviceGetInforomVersion, object, 0), version, length))
ENTRY(nvmlDeviceGetInforomImageVersion, (nvmlDevice_t device, char *version, unsigned int length),
      true,
      give_text(&visit, arrived, ASK(nvmlDeviceGetInforomImageVersion, 0, 0), version, length))
ENTRY(nvmlDeviceValidateInforom, (nvmlDevice_t device), true,
      give_parts(&visit, arrived, ASK(nvmlDeviceValidateInforom, 0, 0), NOTHING))

#ifndef OLD_DRIVER
VERSIONED(nvmlDeviceGetAddressingMode, (nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode), mode)
#endif
