/* Who runs on a GPU or MIG instance, and how much of the GPU each process uses. */
#include <string.h>

#include "answers.h"

/* The key of the ring, beside the rows of NVML's own structures that are passed on as they are. */
enum { ROWS, RING };
/* More than the 72 samples of a driver; a ring is put by this test bed alone. */
enum { MOST_SAMPLES = 128 };
enum { ENGINES = 4 };

/* What the driver noted of one period: who was active at its end, 0 where nobody was, and how busy
 * SMs, memory, encoder and decoder were, in hundredths of a percent. */
struct sample {
    uint64_t at;
    uint32_t pid;
    uint32_t busy[ENGINES];
    uint32_t padding;
};

struct share {
    uint64_t at;
    uint32_t pid;
    uint64_t busy[ENGINES];
};

/* Writes a share as a row of the caller's structure; percents are cut, as the driver does. */
typedef void write_row(void *row, const struct share *share, unsigned int samples);

static unsigned int percent(const struct share *share, int engine, unsigned int samples)
{
    return (unsigned int)(share->busy[engine] / (100U * samples));
}

static struct share *share_of(struct share *shares, unsigned int *held, uint32_t pid)
{
    unsigned int place = 0;
    while (place < *held && shares[place].pid < pid)
        ++place;
    if (place < *held && shares[place].pid == pid)
        return &shares[place];
    memmove(&shares[place + 1], &shares[place], (*held - place) * sizeof *shares);
    ++*held;
    shares[place] = (struct share){.pid = pid};
    return &shares[place];
}

/* Add the samples after a time up by process, and count them, idle ones included. */
static unsigned int add_up(const struct copy *ring, unsigned long long after,
                           struct share *shares, unsigned int *samples)
{
    unsigned int held = 0;
    *samples = 0;
    for (uint32_t row = 0; row < ring->rows && row < MOST_SAMPLES; ++row) {
        struct sample sample;
        memcpy(&sample, ring->bytes + row * sizeof sample, sizeof sample);
        if (sample.at <= after)
            continue;
        ++*samples;
        if (sample.pid == 0)
            continue;
        struct share *share = share_of(shares, &held, sample.pid);
        share->at = sample.at;
        for (int engine = 0; engine < ENGINES; ++engine)
            share->busy[engine] += sample.busy[engine];
    }
    return held;
}

/* Put a row per process of the ring in front of the rows that are there already. */
static nvmlReturn_t prepend_shares(const struct copy *ring, const struct list *list,
                                   struct copy *rows, write_row *write)
{
    struct share shares[MOST_SAMPLES];
    unsigned int samples;
    if (ring->size != ring->rows * sizeof(struct sample))
        return NVML_ERROR_UNKNOWN;
    unsigned int held = add_up(ring, list->after, shares, &samples);
    if ((held + rows->rows) * list->size > PAYLOAD)
        return NVML_ERROR_UNKNOWN;
    memmove(rows->bytes + held * list->size, rows->bytes, rows->rows * list->size);
    for (unsigned int row = 0; row < held; ++row)
        write(rows->bytes + row * list->size, &shares[row], samples);
    rows->rows += held;
    return NVML_SUCCESS;
}

static nvmlReturn_t give_shares(const struct visit *visit, nvmlReturn_t arrived, enum call call,
                                struct list list, write_row *write)
{
    struct copy rows, ring;
    if (arrived != NVML_SUCCESS)
        return arrived;
    if (list.count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = fetch_rows(visit, (struct question){call, {ROWS, 0}}, &list, &rows);
    if (result != NVML_SUCCESS)
        return result;
    if (look_up(visit, (struct question){call, {RING, 0}}, &ring) == NVML_SUCCESS)
        result = prepend_shares(&ring, &list, &rows, write);
    return result == NVML_SUCCESS ? hand_out(visit, &rows, list) : result;
}

static void write_old(void *row, const struct share *share, unsigned int samples)
{
    nvmlProcessUtilizationSample_t written = {
        .pid = share->pid,
        .timeStamp = share->at,
        .smUtil = percent(share, 0, samples),
        .memUtil = percent(share, 1, samples),
        .encUtil = percent(share, 2, samples),
        .decUtil = percent(share, 3, samples),
    };
    memcpy(row, &written, sizeof written);
}

ENTRY(nvmlDeviceGetProcessUtilization,
      (nvmlDevice_t device, nvmlProcessUtilizationSample_t *utilization, unsigned int *count,
       unsigned long long last_seen),
      true,
      give_shares(&visit, arrived, CALL_nvmlDeviceGetProcessUtilization,
                  (struct list){.count = count, .rows = utilization, .size = sizeof *utilization,
                                .time = offsetof(nvmlProcessUtilizationSample_t, timeStamp),
                                .after = last_seen},
                  write_old))

#ifndef OLD_DRIVER
#define PROCESSES(name)                                                                           \
    LISTED(name, (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos),            \
           .count = count, .rows = infos, .size = sizeof *infos, .time = NO_TIME)

PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

static void write_new(void *row, const struct share *share, unsigned int samples)
{
    nvmlProcessUtilizationInfo_v1_t written = {
        .timeStamp = share->at,
        .pid = share->pid,
        .smUtil = percent(share, 0, samples),
        .memUtil = percent(share, 1, samples),
        .encUtil = percent(share, 2, samples),
        .decUtil = percent(share, 3, samples),
    };
    memcpy(row, &written, sizeof written);
}

static nvmlReturn_t give_info(const struct visit *visit, nvmlReturn_t arrived,
                              nvmlProcessesUtilizationInfo_t *info)
{
    if (arrived != NVML_SUCCESS)
        return arrived;
    if (info->version != nvmlProcessesUtilizationInfo_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return give_shares(visit, arrived, CALL_nvmlDeviceGetProcessesUtilizationInfo,
                       (struct list){.count = &info->processSamplesCount,
                                     .rows = info->procUtilArray,
                                     .size = sizeof *info->procUtilArray,
                                     .time = offsetof(nvmlProcessUtilizationInfo_v1_t, timeStamp),
                                     .after = info->lastSeenTimeStamp},
                       write_new);
}

ENTRY(nvmlDeviceGetProcessesUtilizationInfo,
      (nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info), info != NULL,
      give_info(&visit, arrived, info))
#endif
