/* Start and end: the mapping of the shared file, reference counting, versions, call counters. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "visit.h"

#define VARIABLE "SLICEWATCH_FAKE_NVML_STATE"

INTERNAL struct shared_state *shared;

/* Calls hold it shared, start and end alone: memory is never unmapped under a running call, and
 * a shutdown waits for a call that hangs, as it does with the real driver. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static unsigned int references;
static uint32_t load_seen;
static _Atomic uint64_t counted[CALLS];

static const char *const names[CALLS] = {
#define CALL(name) #name,
#include "calls.h"
#undef CALL
};

static nvmlReturn_t refuse(const char *path, const char *why)
{
    fprintf(stderr, "fake libnvidia-ml: %s=%s: %s\n", VARIABLE, path, why);
    return NVML_ERROR_UNKNOWN;
}

static nvmlReturn_t check(const struct shared_state *state, const char *path)
{
    if (state->magic != STATE_MAGIC)
        return refuse(path, "not a state file");
    if (state->version != STATE_VERSION || state->size != sizeof(struct shared_state))
        return refuse(path, "written for another version of this library");
    return NVML_SUCCESS;
}

static nvmlReturn_t map(struct shared_state **mapped)
{
    const char *path = getenv(VARIABLE);
    if (path == NULL || *path == '\0')
        return NVML_ERROR_DRIVER_NOT_LOADED;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return errno == EACCES ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_DRIVER_NOT_LOADED;
    struct stat status;
    void *memory = MAP_FAILED;
    if (fstat(file, &status) == 0 && (size_t)status.st_size >= sizeof(struct shared_state))
        memory = mmap(NULL, sizeof(struct shared_state), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        return refuse(path, "shorter than its layout");
    nvmlReturn_t result = check(memory, path);
    if (result != NVML_SUCCESS)
        munmap(memory, sizeof(struct shared_state));
    else
        *mapped = memory;
    return result;
}

static nvmlReturn_t first_reference(void)
{
    struct shared_state *mapped = NULL;
    nvmlReturn_t result = map(&mapped);
    if (result != NVML_SUCCESS)
        return result;
    uint32_t error = 0, load = 0;
    result = STEADY(mapped->sequence, (error = mapped->system.init_error, load = mapped->system.load));
    if (result == NVML_SUCCESS)
        result = (nvmlReturn_t)error;
    if (result != NVML_SUCCESS) {
        munmap(mapped, sizeof(struct shared_state));
        return result;
    }
    load_seen = load;
    shared = mapped;
    atomic_fetch_add(&shared->clients, 1);
    return NVML_SUCCESS;
}

static nvmlReturn_t initialise(enum call call)
{
    atomic_fetch_add_explicit(&counted[call], 1, memory_order_relaxed);
    pthread_rwlock_wrlock(&lock);
    nvmlReturn_t result = references > 0 ? NVML_SUCCESS : first_reference();
    if (result == NVML_SUCCESS)
        ++references;
    pthread_rwlock_unlock(&lock);
    return result;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return initialise(CALL_nvmlInit_v2);
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return initialise(CALL_nvmlInitWithFlags);
}

nvmlReturn_t nvmlShutdown(void)
{
    atomic_fetch_add_explicit(&counted[CALL_nvmlShutdown], 1, memory_order_relaxed);
    pthread_rwlock_wrlock(&lock);
    nvmlReturn_t result = references > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    if (result == NVML_SUCCESS && --references == 0) {
        atomic_fetch_sub(&shared->clients, 1);
        munmap(shared, sizeof(struct shared_state));
        shared = NULL;
    }
    pthread_rwlock_unlock(&lock);
    return result;
}

static uint32_t error_of(const struct system_state *system)
{
    if (system->error != 0)
        return system->error;
    return system->load == load_seen ? NVML_SUCCESS : system->stale_error;
}

INTERNAL nvmlReturn_t enter(struct visit *visit, enum call call)
{
    *visit = (struct visit){.call = call, .gpu = -1, .slot = -1};
    atomic_fetch_add_explicit(&counted[call], 1, memory_order_relaxed);
    pthread_rwlock_rdlock(&lock);
    visit->inside = true;
    if (references == 0)
        return NVML_ERROR_UNINITIALIZED;
    uint32_t error = 0;
    nvmlReturn_t result = STEADY(shared->sequence, error = error_of(&shared->system));
    return result == NVML_SUCCESS ? (nvmlReturn_t)error : result;
}

INTERNAL nvmlReturn_t depart(struct visit *visit, nvmlReturn_t result)
{
    if (visit->inside)
        pthread_rwlock_unlock(&lock);
    return result;
}

INTERNAL nvmlReturn_t copy_text(char *target, unsigned int length, const char *source)
{
    if (target == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(source) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(target, source);
    return NVML_SUCCESS;
}

static nvmlReturn_t version_text(enum call call, size_t offset, char *version, unsigned int length)
{
    struct visit visit;
    char copy[80] = "";
    nvmlReturn_t result = enter(&visit, call);
    if (result == NVML_SUCCESS)
        result = STEADY(shared->sequence, memcpy(copy, (char *)&shared->system + offset, sizeof copy));
    if (result == NVML_SUCCESS)
        result = copy_text(version, length, copy);
    return depart(&visit, result);
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    return version_text(CALL_nvmlSystemGetDriverVersion, offsetof(struct system_state, driver),
                        version, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    return version_text(CALL_nvmlSystemGetNVMLVersion, offsetof(struct system_state, nvml),
                        version, length);
}

static nvmlReturn_t cuda_version(enum call call, int *version)
{
    struct visit visit;
    nvmlReturn_t result = enter(&visit, call);
    if (result == NVML_SUCCESS && version == NULL)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        result = STEADY(shared->sequence, *version = (int)shared->system.cuda);
    return depart(&visit, result);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return cuda_version(CALL_nvmlSystemGetCudaDriverVersion, version);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return cuda_version(CALL_nvmlSystemGetCudaDriverVersion_v2, version);
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS: return "The operation was successful";
    case NVML_ERROR_UNINITIALIZED: return "NVML was not initialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "An argument is invalid";
    case NVML_ERROR_NOT_SUPPORTED: return "The device does not support this";
    case NVML_ERROR_NO_PERMISSION: return "The caller may not do this";
    case NVML_ERROR_NOT_FOUND: return "Nothing was found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "The buffer is too small";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "The driver is not loaded";
    case NVML_ERROR_TIMEOUT: return "The time ran out";
    case NVML_ERROR_GPU_IS_LOST: return "The GPU is lost";
    case NVML_ERROR_RESET_REQUIRED: return "The GPU needs a reset";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver and library do not fit together";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "The version of an argument is not known";
    case NVML_ERROR_NO_DATA: return "There is no data";
    case NVML_ERROR_GPU_NOT_FOUND: return "There is no such GPU";
    default: return "An unknown error occurred";
    }
}

/* For tests: how often an entry point was called in this process; UINT64_MAX if there is none. */
uint64_t slicewatchCallCount(const char *name)
{
    for (int call = 0; call < CALLS; ++call)
        if (strcmp(names[call], name) == 0)
            return atomic_load(&counted[call]);
    return UINT64_MAX;
}

void slicewatchForgetCalls(void)
{
    for (int call = 0; call < CALLS; ++call)
        atomic_store(&counted[call], 0);
}

unsigned int slicewatchReferences(void)
{
    return references;
}
