/* The generic half of the driver: a call that only passes on what the shared file holds for it is
 * one line here. Calls with a state or a protocol of their own are written out elsewhere. */
#ifndef SLICEWATCH_ANSWERS_H
#define SLICEWATCH_ANSWERS_H

#include "visit.h"

/* A key of an answer that stands for every other key of the same call. */
#define ANY_KEY 0xFFFFFFFFU

struct question {
    enum call call;
    uint32_t key[2];
};

/* An answer, taken whole. */
struct copy {
    nvmlReturn_t result;
    bool found;
    uint32_t rows, capacity, value_type, size;
    uint8_t bytes[PAYLOAD];
};

/* Where a part of the payload goes; the parts follow each other in it without gaps. */
struct part {
    void *to;
    size_t size;
};

/* Where a list goes. time is the offset of a row's timestamp, by which only rows newer than
 * after are wanted, or NO_TIME. */
struct list {
    unsigned int *count;
    void *rows;
    size_t size;
    size_t time;
    unsigned long long after;
    nvmlValueType_t *value_type;
};

#define NO_TIME SIZE_MAX

/* NOT_SUPPORTED where the visited GPU or slot has no such answer; else the answer's own result. */
INTERNAL nvmlReturn_t look_up(const struct visit *visit, struct question question, struct copy *copy);

/* Each passes `arrived` on if the visit failed. What is NULL among the targets is
 * INVALID_ARGUMENT; of a failed call nothing is written but the counts of lists. */
INTERNAL nvmlReturn_t give_parts(const struct visit *visit, nvmlReturn_t arrived,
                                 struct question question, const struct part *parts);
INTERNAL nvmlReturn_t give_text(const struct visit *visit, nvmlReturn_t arrived,
                                struct question question, char *text, unsigned int length);
/* The structure begins with its version, which is the first word of the answer's key. */
INTERNAL nvmlReturn_t give_version(const struct visit *visit, nvmlReturn_t arrived,
                                   struct question question, void *structure);
INTERNAL nvmlReturn_t give_list(const struct visit *visit, nvmlReturn_t arrived,
                                struct question question, struct list list);
/* The halves of give_list: the rows that are wanted, with their number in copy->rows; then what the
 * caller has room for. */
INTERNAL nvmlReturn_t fetch_rows(const struct visit *visit, struct question question,
                                 const struct list *list, struct copy *copy);
INTERNAL nvmlReturn_t hand_out(const struct visit *visit, const struct copy *copy,
                               struct list list);
/* What a sizing call says of so many rows: one fewer, if the list is to grow before the next. */
INTERNAL unsigned int announced(struct gpu_cell *cell, unsigned int rows);

#define OUT(pointer) {(pointer), sizeof *(pointer)}
#define PARTS(...) ((const struct part[]){__VA_ARGS__, {0}})
#define NOTHING ((const struct part[]){{0}})
#define ASK(name, first, second) ((struct question){CALL_##name, {(uint32_t)(first), (uint32_t)(second)}})

/* An entry point whose parameter `device` is asked; `valid` is what its arguments must be.
 * `answered_by` is the call under which the answer is kept, the same unless names are aliases. */
#define ENTRY(name, parameters, valid, give)                                                      \
    nvmlReturn_t name parameters                                                                  \
    {                                                                                             \
        struct visit visit;                                                                       \
        nvmlReturn_t arrived = visit_device(&visit, CALL_##name, device);                         \
        if (arrived == NVML_SUCCESS && !(valid))                                                  \
            arrived = NVML_ERROR_INVALID_ARGUMENT;                                                \
        return depart(&visit, give);                                                              \
    }

#define ANSWERED_AS(answered_by, name, parameters, valid, first, second, ...)                     \
    ENTRY(name, parameters, valid,                                                                \
          give_parts(&visit, arrived, ASK(answered_by, first, second), PARTS(__VA_ARGS__)))
#define ANSWERED_IF(valid, name, parameters, first, second, ...)                                  \
    ANSWERED_AS(name, name, parameters, valid, first, second, __VA_ARGS__)
#define ANSWERED(name, parameters, ...)                                                           \
    ANSWERED_AS(name, name, parameters, true, 0, 0, __VA_ARGS__)
#define VERSIONED(name, parameters, structure)                                                    \
    ENTRY(name, parameters, true, give_version(&visit, arrived, ASK(name, 0, 0), structure))
#define LISTED(name, parameters, ...) LISTED_IF(true, name, parameters, __VA_ARGS__)
#define LISTED_IF(valid, name, parameters, ...)                                                   \
    ENTRY(name, parameters, valid,                                                                \
          give_list(&visit, arrived, ASK(name, 0, 0), (struct list){__VA_ARGS__}))

#endif
