/* Finds answers in the shared file and passes them on, by NVML's rules for sizes and versions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"

static const char *const names[CALLS] = {
#define CALL(name) #name,
#include "calls.h"
#undef CALL
};

static int compare(const void *left, const void *right)
{
    const struct answer *one = left, *other = right;
    if (one->call != other->call)
        return one->call < other->call ? -1 : 1;
    if (one->scope != other->scope)
        return one->scope < other->scope ? -1 : 1;
    for (int word = 0; word < 2; ++word)
        if (one->key[word] != other->key[word])
            return one->key[word] < other->key[word] ? -1 : 1;
    return 0;
}

static const struct answer *find(const struct gpu_state *state, struct answer wanted)
{
    uint32_t held = state->answers_held < ANSWERS ? state->answers_held : ANSWERS;
    const struct answer *found = bsearch(&wanted, state->answers, held, sizeof wanted, compare);
    if (found != NULL)
        return found;
    wanted.key[0] = wanted.key[1] = ANY_KEY;
    return bsearch(&wanted, state->answers, held, sizeof wanted, compare);
}

/* May run on a state that is just being written: every number is checked before it is used. */
static void take(const struct gpu_state *state, const struct answer *found, struct copy *copy)
{
    copy->result = NVML_ERROR_NOT_SUPPORTED;
    copy->found = found != NULL;
    copy->rows = copy->capacity = copy->value_type = copy->size = 0;
    if (found == NULL)
        return;
    uint32_t offset = found->offset, size = found->size;
    if (size > PAYLOAD || offset > POOL - size)
        return;
    copy->result = (nvmlReturn_t)found->result;
    copy->rows = found->rows;
    copy->capacity = found->capacity;
    copy->value_type = found->value_type;
    copy->size = size;
    memcpy(copy->bytes, state->pool + offset, size);
}

INTERNAL nvmlReturn_t look_up(const struct visit *visit, struct question question, struct copy *copy)
{
    const struct gpu_state *state = &visit->cell->state;
    struct answer wanted = {.call = question.call, .scope = visit->slot,
                            .key = {question.key[0], question.key[1]}};
    nvmlReturn_t result =
        STEADY(visit->cell->sequence, take(state, find(state, wanted), copy));
    return result == NVML_SUCCESS ? copy->result : result;
}

/* Whoever wrote the answer took another structure for the call's. */
static nvmlReturn_t misfit(struct question question, uint32_t held, size_t wanted)
{
    fprintf(stderr, "fake libnvidia-ml: the answer to %s is %u bytes long, %zu are asked for\n",
            names[question.call], held, wanted);
    return NVML_ERROR_UNKNOWN;
}

INTERNAL nvmlReturn_t give_parts(const struct visit *visit, nvmlReturn_t arrived,
                                 struct question question, const struct part *parts)
{
    struct copy copy;
    size_t size = 0;
    if (arrived != NVML_SUCCESS)
        return arrived;
    for (const struct part *part = parts; part->size != 0; ++part) {
        if (part->to == NULL)
            return NVML_ERROR_INVALID_ARGUMENT;
        size += part->size;
    }
    nvmlReturn_t result = look_up(visit, question, &copy);
    if (result != NVML_SUCCESS)
        return result;
    if (copy.size != size)
        return misfit(question, copy.size, size);
    const uint8_t *from = copy.bytes;
    for (const struct part *part = parts; part->size != 0; from += part++->size)
        memcpy(part->to, from, part->size);
    return NVML_SUCCESS;
}

INTERNAL nvmlReturn_t give_text(const struct visit *visit, nvmlReturn_t arrived,
                                struct question question, char *text, unsigned int length)
{
    struct copy copy;
    nvmlReturn_t result = arrived == NVML_SUCCESS ? look_up(visit, question, &copy) : arrived;
    if (result != NVML_SUCCESS)
        return result;
    copy.bytes[copy.size < PAYLOAD ? copy.size : PAYLOAD - 1] = '\0';
    return copy_text(text, length, (const char *)copy.bytes);
}

/* Tell whether the call has answers, but only with structures of other versions. */
static bool is_of_others(const struct gpu_state *state, int slot, struct question question)
{
    bool others = false;
    for (uint32_t row = 0; row < state->answers_held && row < ANSWERS; ++row) {
        const struct answer *answer = &state->answers[row];
        if (answer->call != question.call || answer->scope != slot)
            continue;
        if (answer->key[0] == question.key[0])
            return false;
        others = true;
    }
    return others;
}

INTERNAL nvmlReturn_t give_version(const struct visit *visit, nvmlReturn_t arrived,
                                   struct question question, void *structure)
{
    struct copy copy;
    if (arrived != NVML_SUCCESS)
        return arrived;
    if (structure == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    memcpy(&question.key[0], structure, sizeof question.key[0]);
    nvmlReturn_t result = look_up(visit, question, &copy);
    if (result == NVML_ERROR_NOT_SUPPORTED && !copy.found) {
        bool others = false;
        result = STEADY(visit->cell->sequence,
                        others = is_of_others(&visit->cell->state, visit->slot, question));
        if (result == NVML_SUCCESS)
            result = others ? NVML_ERROR_ARGUMENT_VERSION_MISMATCH : NVML_ERROR_NOT_SUPPORTED;
    }
    if (result == NVML_SUCCESS)
        memcpy(structure, copy.bytes, copy.size);
    return result;
}

/* Keep the rows after a time, and those without one: only a reader can tell what they are. */
static void keep_newer(struct copy *copy, const struct list *list)
{
    uint32_t kept = 0;
    for (uint32_t row = 0; row < copy->rows; ++row) {
        const uint8_t *from = copy->bytes + row * list->size;
        uint64_t time = 0;
        memcpy(&time, from + list->time, sizeof time);
        if (time > list->after || time == 0)
            memmove(copy->bytes + kept++ * list->size, from, list->size);
    }
    copy->rows = kept;
}

INTERNAL nvmlReturn_t fetch_rows(const struct visit *visit, struct question question,
                                 const struct list *list, struct copy *copy)
{
    nvmlReturn_t result = look_up(visit, question, copy);
    if (result != NVML_SUCCESS)
        return result;
    if (copy->size != copy->rows * list->size)
        return misfit(question, copy->size, copy->rows * list->size);
    if (list->time != NO_TIME)
        keep_newer(copy, list);
    return NVML_SUCCESS;
}

INTERNAL unsigned int announced(struct gpu_cell *cell, unsigned int rows)
{
    if (rows < 2 || atomic_load(&cell->growths) <= 0)
        return rows;
    atomic_fetch_sub(&cell->growths, 1);
    return rows - 1;
}

INTERNAL nvmlReturn_t hand_out(const struct visit *visit, const struct copy *copy,
                               struct list list)
{
    if (list.value_type != NULL)
        *list.value_type = copy->value_type;
    unsigned int needed = copy->capacity != 0 ? copy->capacity : copy->rows;
    bool sizing = list.rows == NULL || *list.count == 0;
    if (sizing ? needed > 0 : copy->rows > *list.count) {
        *list.count = announced(visit->cell, needed);
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    if (!sizing && copy->rows == 0 && list.time != NO_TIME)
        return NVML_ERROR_NOT_FOUND;
    *list.count = copy->rows;
    if (list.rows != NULL)
        memcpy(list.rows, copy->bytes, copy->rows * list.size);
    return NVML_SUCCESS;
}

INTERNAL nvmlReturn_t give_list(const struct visit *visit, nvmlReturn_t arrived,
                                struct question question, struct list list)
{
    struct copy copy;
    if (arrived != NVML_SUCCESS)
        return arrived;
    if (list.count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = fetch_rows(visit, question, &list, &copy);
    return result == NVML_SUCCESS ? hand_out(visit, &copy, list) : result;
}
