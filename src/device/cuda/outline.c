/* The CUDA device as it is for a card that is only described. It says which heavy operations the card takes,
 * and which of them cuBLASLt and cuDNN compute. The libraries are not opened. So it is assumed that they
 * grant each problem that Weft would offer to them. Epilogues are used that paid on a card. Must not know:
 * drivers. Read next: gpu/card/card.h, device/null/null.c. */
#include <stdio.h>

#include "device/cuda/cuda.h"
#include "device/cuda/dnn/dnn_attention.h"
#include "device/gpu/driver/run.h"
#include "device/gpu/card/card.h"
#include "device/gpu/gpu.h"

enum {
    DNN_VERSION = 91900,
    BYTES_AT_ONCE = 16,
    /* With more elements, the gradient of GELU and sums of a bias gradient are slower as epilogues than
     * apart. Measured with cuBLASLt 13.1 on an H200: 256 x 3,072 are faster, 65,536 x 3,072 slower. */
    EPILOGUE_MOST = 1 << 24,
    SCORE_BYTES = 4 /* the gradient of a score is written and read again, in 16 bits */
};

/* Stands for all calls. Nothing runs it. */
static const weft_call planned;

/* ---- cuBLASLt ---- */

/* Returns whether a matmul and its epilogue may be one command. */
static bool outline_suits(const weft_target *target, const weft_heavy *heavy) {
    weft__blas_problem problem;
    weft__blas_operands operands;
    weft_heavy_matmul plain, with;
    if (heavy->kind != WEFT_HEAVY_MATMUL || !(heavy->as.matmul.epilogue || heavy->as.matmul.sums))
        return true;
    weft__blas_forms(&heavy->as.matmul, &plain, &with);
    if (!weft__blas_problem_of(&plain, target->tf32, &problem, &operands)) return true;
    if (!weft__blas_problem_of(&with, target->tf32, &problem, &operands)) return false;
    const bool slope = (problem.epilogue & CUBLASLT_EPILOGUE_DGELU) == CUBLASLT_EPILOGUE_DGELU;
    if (!slope && !(problem.epilogue & CUBLASLT_EPILOGUE_BGRADB)) return true;
    return (double)with.m * (double)(slope ? with.n : with.k) <= EPILOGUE_MOST;
}

static bool takes_with_libraries(const weft_target *target, const weft_heavy *heavy) {
    return weft__gpu_takes(target, heavy) && outline_suits(target, heavy);
}

static weft_unit unit_of(const weft_target *target, int dtype) {
    switch (dtype) {
    case WEFT_F64: return WEFT_UNIT_F64;
    case WEFT_F32: return target->tf32 ? WEFT_UNIT_TF32 : WEFT_UNIT_F32;
    default: return WEFT_UNIT_TENSOR;
    }
}

/* Adds the launch of a call that reaches this part of the unit's rate. */
static weft_status add_call(weft_launches *launches, const char *name, const weft_heavy *heavy,
                            weft_unit unit, double part) {
    double flops = 0;
    weft_launch launch = {.name = name, .call = &planned, .groups = {1, 1, 1}, .items = {1, 1, 1}};
    weft__heavy_class(heavy)->cost(heavy, &flops, &launch.facts.bytes);
    launch.facts.work[unit] = flops / part;
    launch.facts.least = WEFT_CARD_LIBRARY_LEAST;
    launch.facts.width = launch.facts.allowed = launch.facts.at_once = BYTES_AT_ONCE;
    return weft__launch(launches, &launch);
}

static weft_status offer_matmul(const weft_card *card, weft_launches *launches, const weft_heavy *heavy) {
    const weft_heavy_matmul *mm = &heavy->as.matmul;
    weft__blas_problem problem;
    weft__blas_operands operands;
    const weft_target *target = launches->target;
    if (!weft__blas_problem_of(mm, target->tf32, &problem, &operands)) return WEFT_OK;
    if (operands.narrow) WEFT_TRY(weft__blas_narrow(launches, &problem, &operands));
    const weft_unit unit = unit_of(target, mm->dtype);
    const double shape[] = {(double)problem.batch, (double)mm->m, (double)mm->n, (double)mm->k};
    return add_call(launches, "cublasLt", heavy, unit, weft__card_library_matmul(card, unit, shape));
}

/* ---- cuDNN ---- */

/* A backward pass in a fixed order computes parts of the batch one after the other. Each part counts as a
 * call. */
static weft_status offer_attention(const weft_card *card, weft_launches *launches, const weft_heavy *heavy) {
    const weft_heavy_attention *at = &heavy->as.attention;
    char message[WEFT_DNN_MESSAGE];
    weft_dnn_attention part;
    if (!weft__dnn_attention_part(at, card->capability, DNN_VERSION, false,
                                  weft__dnn_memory_of((uint64_t)card->memory), &part, message))
        return WEFT_OK;
    const int l = launches->count;
    const double pairs = (double)(part.at.heads * part.at.batch * part.heads * part.batches);
    const double scores = pairs * (double)at->t_q * (double)at->t_k * (at->causal ? 0.5 : 1);
    WEFT_TRY(add_call(launches, at->backward ? "cudnn_attention_gradient" : "cudnn_attention", heavy,
                      WEFT_UNIT_TENSOR, weft__card_library_attention(at->backward, false)));
    if (!at->backward) return WEFT_OK;
    launches->list[l].facts.least *= (double)(part.batches * part.heads);
    launches->list[l].facts.bytes += SCORE_BYTES * scores;
    launches->scratch_bytes = part.dots + 2 * part.at.heads * part.at.batch * at->t_q * at->t_k;
    return WEFT_OK;
}

static weft_status outline_offer(const weft_device_outline *outline, weft_launches *launches,
                                 const weft_command *command) {
    const weft_heavy *heavy = &command->heavy;
    if (command->kind != WEFT_COMMAND_HEAVY) return WEFT_OK;
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: return offer_matmul(outline->card, launches, heavy);
    case WEFT_HEAVY_ATTENTION: return offer_attention(outline->card, launches, heavy);
    case WEFT_HEAVY_CONV:
        if (!weft__dnn_suits_convolution(&heavy->as.conv)) return WEFT_OK;
        return add_call(launches, "cudnn_convolution", heavy, unit_of(launches->target, heavy->as.conv.dtype),
                        weft__card_library_convolution());
    default: return WEFT_OK;
    }
}

/* ---- the card ---- */

void weft__cuda_outline_card(const weft_card *card, weft_device_outline *outline) {
    snprintf(outline->name, sizeof outline->name, "%s", card->key);
    snprintf(outline->detail, sizeof outline->detail,
             "%s, compute capability %d.%d, %d multiprocessors, %.0f GB at %.0f GB/s, %s; a description, not "
             "a card",
             card->name, card->capability / 10, card->capability % 10, card->units, 1e-9 * card->memory,
             1e-9 * card->bandwidth,
             card->libraries ? "with cuBLASLt and cuDNN" : "without cuBLASLt and cuDNN");
    outline->absent = true;
    outline->memory = (uint64_t)card->memory;
    outline->launches = outline->links = true;
    outline->target = weft__card_target(card);
    outline->takes = card->libraries ? takes_with_libraries : weft__gpu_takes;
    outline->offer = card->libraries ? outline_offer : NULL;
    outline->card = card;
}
