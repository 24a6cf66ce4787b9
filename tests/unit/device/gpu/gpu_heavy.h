/* Runs one heavy operation on a GPU backend, as kernels for cards, and on the interpreter, and compares the
 * results. Include this header after cmocka.h and gpu.h. */
#ifndef WEFT_TESTS_GPU_HEAVY_H
#define WEFT_TESTS_GPU_HEAVY_H

#include "unit/values.h"

#define COUNT(x) ((int)(sizeof(x) / sizeof *(x)))
enum { OPERANDS_MAX = 10 };

static weft_context context;
static weft_device *gpu, *interp;

static inline int open_devices(void **state) {
    (void)state;
    assert_int_equal(weft__device_open(&context, "interp", NULL, &interp), WEFT_OK);
    if (test_without_gpu()) return 0;
    weft__gpu_hook.guard = 64;
    setenv("WEFT_KERNEL_CACHE", "off", 1); /* storing kernels takes longer than compiling the few that run */
    assert_int_equal(weft__device_open(&context, test_gpu(), NULL, &gpu), WEFT_OK);
    return 0;
}

static inline int close_devices(void **state) {
    (void)state;
    if (gpu) gpu->ops->close(gpu);
    interp->ops->close(interp);
    assert_int_equal(weft__gpu_hook.guards_broken, 0);
    weft__strings_free(&context);
    return 0;
}

/* Target of the kernels: a card with groups of that many work-items. */
static inline void aim(int items) {
    weft_target *t = &weft__gpu_of(gpu)->target;
    t->on_processor = false;
    t->lanes = items;
    t->local_bytes = 32768;
}

typedef struct operands {
    int n;
    void *data[OPERANDS_MAX];                         /* equal pointers share a buffer */
    size_t bytes[OPERANDS_MAX], offset[OPERANDS_MAX]; /* of the buffer; of the operand in it */
} operands;

static inline int slot_of(const operands *o, int i) {
    int slot = 0;
    while (o->data[slot] != o->data[i]) slot++;
    return slot;
}

/* Runs the operation once. Its results are then in the operands. */
static inline weft_fault run_on(weft_device *device, const weft_heavy *heavy, const operands *o) {
    const weft_device_ops *ops = device->ops;
    weft_buffer *buffers[OPERANDS_MAX] = {NULL};
    weft_operand where[OPERANDS_MAX];
    weft_command command = {
        .kind = WEFT_COMMAND_HEAVY, .after = true, .heavy = *heavy, .n_operands = o->n, .operands = where};
    const weft_commands commands = {.count = 1, .n_slots = o->n, .list = &command};
    weft_executable *executable;
    weft_fault fault = {0};
    for (int i = 0; i < o->n; i++) {
        const int slot = slot_of(o, i);
        where[i] = (weft_operand){slot, (int64_t)o->offset[i]};
        assert_int_equal(ops->buffer_new(device, slot == i ? o->bytes[i] : 0, &buffers[i]), WEFT_OK);
        if (slot == i && o->bytes[i])
            assert_int_equal(ops->upload(device, buffers[i], 0, o->data[i], o->bytes[i]), WEFT_OK);
    }
    const weft_status status = ops->build(device, &commands, &executable);
    if (status != WEFT_OK) fail_msg("%s", weft_last_error(&context));
    assert_int_equal(ops->run(device, executable, buffers, 1), WEFT_OK);
    for (int i = 0; i < o->n; i++)
        if (where[i].slot == i && o->bytes[i])
            assert_int_equal(ops->download(device, buffers[i], 0, o->data[i], o->bytes[i]), WEFT_OK);
    assert_int_equal(ops->take_fault(device, &fault), WEFT_OK);
    ops->executable_free(device, executable);
    for (int i = 0; i < o->n; i++) ops->buffer_free(device, buffers[i]);
    return fault;
}

static inline void *copy_of(const void *from, size_t bytes) {
    void *to = malloc(bytes + 1);
    return memcpy(to, from, bytes);
}

/* Runs twice on the device, from the same bytes. The results must have the same bits. */
static inline weft_fault run_twice(const weft_heavy *heavy, const operands *o) {
    operands again = *o;
    assert_true(gpu->ops->takes(gpu, heavy));
    for (int i = 0; i < o->n; i++) {
        const int slot = slot_of(o, i);
        again.data[i] = slot == i ? copy_of(o->data[i], o->bytes[i]) : again.data[slot];
    }
    run_on(gpu, heavy, &again);
    const weft_fault fault = run_on(gpu, heavy, o);
    for (int i = 0; i < o->n; i++) assert_memory_equal(again.data[i], o->data[i], o->bytes[i]);
    for (int i = 0; i < o->n; i++)
        if (slot_of(o, i) == i) free(again.data[i]);
    return fault;
}

static inline void check_fault(const weft_fault *got, const weft_fault *want) {
    assert_int_equal(got->set != 0, want->set != 0);
    if (!want->set) return;
    assert_int_equal(got->kind, want->kind);
    assert_string_equal(got->path, want->path);
    assert_int_equal(got->value, want->value);
    assert_int_equal(got->bound, want->bound);
    assert_int_equal(got->element, want->element);
}

static inline void free_operands(operands *o) {
    for (int i = o->n - 1; i >= 0; i--)
        if (slot_of(o, i) == i) free(o->data[i]);
}

/* Each element may be off by `bound` times the largest element. */
static inline void near(const char *what, weft_dtype dt, const void *got, const void *want, size_t bytes,
                        double bound) {
    const int64_t n = (int64_t)(bytes / weft_dtype_size(dt));
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(value(WEFT_F64, want, i))) largest = fmax(largest, fabs(value(WEFT_F64, want, i)));
    for (int64_t i = 0; i < n; i++) {
        const double x = value(dt, got, i), y = value(WEFT_F64, want, i);
        if (x == y || (isfinite(y) && fabs(x - y) <= bound * largest)) continue;
        fail_msg("%s %s: element %lld: %g, should be %g (bound %g)", weft_dtype_name(dt), what, (long long)i,
                 x, y, bound * largest);
    }
}

#endif
